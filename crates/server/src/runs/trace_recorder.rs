//! Recorder of run traces: the time of each step of a run, in milliseconds.
//!
//! Each step is recorded in memory as it happens, at almost no cost to a fire. A background task stores the traces
//! once a second, many in one statement ([`super::TraceWriter`]), so that they outlive the node: those of all runs
//! with trouble, and as many others as fit ([`ORDINARY`]). A row for each run would add a third to the database cost
//! of a run; at most a thousand rows a second are a hundredth of the database's capacity.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use engine::{AppId, Order, Receipt, RunId};
use store::{NodeTrace, Sending};
use timer::Timestamp;

use crate::share::has_room;

/// The latest traces, as recorded by one node.
pub struct TraceRecorder {
    node: String,
    recorded: Mutex<Recorded>,
}

#[derive(Default)]
struct Recorded {
    /// Claim times of runs that have not been sent yet.
    claimed: HashMap<RunId, Timestamp>,
    /// Claimed runs, oldest first. Some of them have been sent since.
    claims: VecDeque<RunId>,
    traces: HashMap<RunId, Held>,
    /// Runs in `traces`, oldest first.
    order: VecDeque<RunId>,
    /// How many runs of `order`, from the oldest on, were already checked for long duration.
    looked_at: usize,
    /// Traces of runs with trouble, still to be stored.
    troubled: Queue,
    /// Other traces still to be stored.
    ordinary: Queue,
}

/// Traces still to be stored, with the number of each app.
#[derive(Default)]
struct Queue {
    traces: Vec<NodeTrace>,
    of: HashMap<Option<AppId>, usize>,
}

impl Queue {
    /// Adds a trace, if its app has a share left of at most `max`.
    fn push(&mut self, app: Option<AppId>, max: usize, trace: impl FnOnce() -> NodeTrace) {
        let own = self.of.entry(app).or_default();
        if has_room(max, self.traces.len(), *own) {
            *own += 1;
            self.traces.push(trace());
        }
    }

    fn take(&mut self) -> Vec<NodeTrace> {
        self.of.clear();
        std::mem::take(&mut self.traces)
    }
}

struct Held {
    trace: NodeTrace,
    /// App of the job; unknown if another node sent the run.
    app: Option<AppId>,
    /// Handler that was called.
    handler: String,
    /// Time since which this node knows the run.
    since: Timestamp,
    /// Whether the trace is stored or queued for storing.
    is_kept: bool,
}

impl TraceRecorder {
    /// Creates an empty recorder for this node.
    pub fn new(node: &str) -> TraceRecorder {
        TraceRecorder { node: node.to_owned(), recorded: Mutex::default() }
    }

    /// Returns the name of the node.
    pub fn node(&self) -> &str {
        &self.node
    }

    /// Records that runs were claimed.
    pub fn claimed(&self, orders: &[Order], now: Timestamp) {
        let mut recorded = self.recorded();
        for order in orders {
            recorded.claimed.insert(order.run.id, now);
            recorded.claims.push_back(order.run.id);
        }
        while recorded.claims.len() > CLAIMED_MAX
            && let Some(oldest) = recorded.claims.pop_front()
        {
            recorded.claimed.remove(&oldest);
        }
    }

    /// Records that a run is sent.
    pub fn leaves(&self, order: &Order, now: Timestamp) {
        let (run, spec) = (&order.run, &order.job.spec);
        let mut recorded = self.recorded();
        let sending = Sending {
            scheduled_at: run.scheduled_at,
            origin: run.origin,
            attempt: run.attempt,
            retry_of: run.retry_of,
            route: spec.route.clone(),
            claimed_at: recorded.claimed.remove(&run.id),
            left_at: now,
            answer: None,
        };
        let trace = self.trace(run.id, Some(sending));
        let app = Some(spec.app);
        recorded.hold(Held { trace, app, handler: spec.handler.clone(), since: now, is_kept: false });
    }

    /// Records the executor's answer to a dispatch, or that there was none.
    pub fn answered(&self, run: RunId, receipt: &Receipt, now: Timestamp) {
        if let Some(held) = self.recorded().traces.get_mut(&run)
            && let Some(sending) = &mut held.trace.sending
        {
            sending.answer = Some((now, receipt.clone()));
        }
    }

    /// Records the app of a run whose result was received. Another node may have sent the run.
    pub fn belongs(&self, run: RunId, app: AppId, now: Timestamp) {
        let mut recorded = self.recorded();
        match recorded.traces.get_mut(&run) {
            Some(held) => held.app = Some(app),
            None => {
                let (trace, handler) = (self.trace(run, None), String::new());
                recorded.hold(Held { trace, app: Some(app), handler, since: now, is_kept: false });
            }
        }
    }

    /// Records that a run's result was received. Another node may have sent the run.
    pub fn reported(&self, run: RunId, now: Timestamp) {
        let mut recorded = self.recorded();
        match recorded.traces.get_mut(&run) {
            Some(held) => held.trace.reported_at = held.trace.reported_at.or(Some(now)),
            None => {
                let trace = NodeTrace { reported_at: Some(now), ..self.trace(run, None) };
                let handler = String::new();
                recorded.hold(Held { trace, app: None, handler, since: now, is_kept: false });
            }
        }
    }

    /// Records that the end of a run was stored, and whether the run succeeded.
    pub fn recorded_end(&self, run: RunId, is_good: bool, now: Timestamp) {
        let recorded = &mut *self.recorded();
        let held = recorded.traces.get_mut(&run).map(|held| {
            held.trace.recorded_at = Some(now);
            held.is_kept = true;
            &*held
        });
        let sending = held.and_then(|held| held.trace.sending.as_ref());
        let is_troubled = !is_good || sending.is_some_and(|sending| is_slow(sending, now));
        let (queue, max) = match is_troubled {
            true => (&mut recorded.troubled, TROUBLED),
            false => (&mut recorded.ordinary, ORDINARY),
        };
        queue.push(held.and_then(|held| held.app), max, || match held {
            Some(held) => held.trace.clone(),
            None => NodeTrace { recorded_at: Some(now), ..self.trace(run, None) },
        });
    }

    /// Returns this node's trace of a run.
    pub fn of(&self, run: RunId) -> Option<NodeTrace> {
        self.recorded().traces.get(&run).map(|held| held.trace.clone())
    }

    /// Returns the app of a run that this node sent.
    pub fn app_of(&self, run: RunId) -> Option<AppId> {
        self.recorded().traces.get(&run)?.app
    }

    /// Returns the apps of those runs that this node sent.
    pub fn apps_of(&self, runs: impl Iterator<Item = RunId>) -> HashMap<RunId, AppId> {
        let recorded = self.recorded();
        let app = |run: RunId| Some((run, recorded.traces.get(&run)?.app?));
        runs.filter_map(app).collect()
    }

    /// Returns the claim time of a run that has not been sent yet.
    pub fn claimed_at(&self, run: RunId) -> Option<Timestamp> {
        self.recorded().claimed.get(&run).copied()
    }

    /// Returns the handlers that were called at an address.
    pub fn handlers_at(&self, address: &str) -> Vec<String> {
        let recorded = self.recorded();
        let there = recorded.traces.values().filter(|held| went_to(&held.trace) == Some(address));
        let handlers: BTreeSet<&str> = there.map(|held| held.handler.as_str()).collect();
        handlers.into_iter().filter(|handler| !handler.is_empty()).map(str::to_owned).collect()
    }

    /// Takes the traces to be stored now, including those of runs that take long or that report to other nodes.
    pub fn take(&self, now: Timestamp) -> Vec<NodeTrace> {
        let mut recorded = self.recorded();
        recorded.look_for_long_ones(now);
        let mut taken = recorded.troubled.take();
        taken.append(&mut recorded.ordinary.take());
        taken
    }

    fn trace(&self, run: RunId, sending: Option<Sending>) -> NodeTrace {
        NodeTrace { run, node: self.node.clone(), sending, reported_at: None, recorded_at: None }
    }

    fn recorded(&self) -> MutexGuard<'_, Recorded> {
        self.recorded.lock().expect("no holder of this lock panics")
    }
}

impl Recorded {
    fn hold(&mut self, held: Held) {
        let run = held.trace.run;
        if self.traces.insert(run, held).is_none() {
            self.order.push_back(run);
        }
        if self.order.len() > HELD_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.traces.remove(&oldest);
            self.looked_at = self.looked_at.saturating_sub(1);
        }
    }

    fn keep(&mut self, trace: NodeTrace, app: Option<AppId>, is_troubled: bool) {
        match is_troubled {
            true => self.troubled.push(app, TROUBLED, || trace),
            false => self.ordinary.push(app, ORDINARY, || trace),
        }
    }

    fn look_for_long_ones(&mut self, now: Timestamp) {
        while let Some(run) = self.order.get(self.looked_at).copied() {
            let mut long = None;
            if let Some(held) = self.traces.get_mut(&run) {
                if now.duration_since(held.since) < LONG {
                    return;
                }
                // For runs sent by other nodes, the trace is stored with the run's end.
                if !held.is_kept && held.trace.sending.is_some() {
                    held.is_kept = true;
                    long = Some((held.trace.clone(), held.app));
                }
            }
            self.looked_at += 1;
            if let Some((trace, app)) = long {
                let is_troubled = went_to(&trace).is_none();
                self.keep(trace, app, is_troubled);
            }
        }
    }
}

/// Returns the executor that accepted the run.
fn went_to(trace: &NodeTrace) -> Option<&str> {
    match &trace.sending.as_ref()?.answer {
        Some((_, Receipt::Accepted { address })) => Some(address),
        _ => None,
    }
}

/// Returns whether the run was slow enough that a user may ask why.
fn is_slow(sending: &Sending, ended_at: Timestamp) -> bool {
    let is_late = sending.left_at.duration_since(sending.scheduled_at) > LATE;
    let answered_late =
        sending.answer.as_ref().is_some_and(|(at, _)| at.duration_since(sending.left_at) > LATE);
    is_late || answered_late || ended_at.duration_since(sending.left_at) > SLOW
}

/// Far later than we guarantee.
const LATE: Duration = Duration::from_secs(1);

/// Longer than most runs.
const SLOW: Duration = Duration::from_secs(60);

/// When the trace of a run that has not finished is stored as far as known: its end may be reported to another node,
/// or after this one stops.
const LONG: Duration = Duration::from_secs(10);

/// Traces in memory: a few megabytes.
const HELD_MAX: usize = 10_000;

/// Runs claimed but not sent: more than the engine holds.
const CLAIMED_MAX: usize = 65_536;

/// Traces of runs with trouble that wait to be stored, which is done each second, shared fairly by apps: if more runs
/// fail, these are enough to see the cause.
const TROUBLED: usize = 800;

/// Other traces that wait to be stored. Most installations never have so many runs a second; at ten thousand a
/// second this is a fiftieth of them, a representative sample for less than a hundredth of their cost.
const ORDINARY: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;
    use engine::{Job, JobId, JobSpec, Origin, Run, RunState, Shard};
    use std::sync::Arc;

    fn order(id: i64) -> Order {
        let spec = JobSpec::new(AppId(1), "job", cron::Schedule::Never, "echo");
        let at = Timestamp::from_millis(id);
        let run = Run {
            id: RunId(id),
            fire: RunId(id),
            job: JobId(1),
            scheduled_at: at,
            origin: Origin::Schedule,
            shard: Shard::WHOLE,
            attempt: 1,
            retry_of: None,
            depth: 0,
            state: RunState::Claimed,
            version: 1,
            node: None,
            due_at: at,
            check_at: at,
            doubt_since: None,
            recalled: false,
            cancel: false,
            replaced: false,
            address: None,
            param: None,
        };
        let (enabled, next_fire_at, problem) = (true, None, None);
        let job = Job {
            id: JobId(1),
            spec,
            enabled,
            next_fire_at,
            revision: 0,
            fires: 0,
            running: None,
            waiting: 0,
            problem,
        };
        Order { run, job: Arc::new(job) }
    }

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn accepted() -> Receipt {
        Receipt::Accepted { address: "http://a:1/".into() }
    }

    #[test]
    fn the_last_traces_are_kept_and_the_oldest_go() {
        let traces = TraceRecorder::new("one");
        for id in 1..=HELD_MAX as i64 + 2 {
            traces.leaves(&order(id), at(id + 1));
        }
        assert!(traces.of(RunId(2)).is_none());
        let last = RunId(HELD_MAX as i64 + 2);
        traces.answered(last, &accepted(), at(7));
        traces.reported(last, at(8));
        traces.reported(last, at(9));
        let trace = traces.of(last).unwrap();
        assert_eq!(trace.sending.unwrap().left_at, at(last.0 + 1));
        assert_eq!(trace.reported_at, Some(at(8)));
        assert_eq!(traces.handlers_at("http://a:1/"), ["echo"]);
        assert!(traces.handlers_at("http://b:1/").is_empty());
    }

    #[test]
    fn a_run_is_written_down_when_it_is_over_with_when_it_was_claimed() {
        let traces = TraceRecorder::new("one");
        traces.claimed(&[order(1), order(2)], at(1));
        traces.leaves(&order(1), at(5));
        traces.answered(RunId(1), &accepted(), at(6));
        assert!(traces.take(at(7)).is_empty(), "it goes on");
        traces.reported(RunId(1), at(8));
        traces.recorded_end(RunId(1), true, at(9));
        let [trace] = &traces.take(at(10))[..] else { panic!("one trace") };
        assert_eq!((trace.run, trace.node.as_str()), (RunId(1), "one"));
        assert_eq!((trace.reported_at, trace.recorded_at), (Some(at(8)), Some(at(9))));
        assert_eq!(trace.sending.as_ref().unwrap().claimed_at, Some(at(1)));
        assert!(traces.take(at(60_000)).is_empty(), "once is enough");
    }

    #[test]
    fn a_run_that_another_node_sent_is_written_down_with_its_end() {
        let traces = TraceRecorder::new("two");
        traces.reported(RunId(1), at(8));
        traces.recorded_end(RunId(1), true, at(9));
        let [trace] = &traces.take(at(10))[..] else { panic!("one trace") };
        assert_eq!((&trace.sending, trace.reported_at, trace.recorded_at), (&None, Some(at(8)), Some(at(9))));
    }

    #[test]
    fn a_run_that_takes_long_is_written_down_before_its_end_and_after() {
        let traces = TraceRecorder::new("one");
        traces.leaves(&order(1), at(1));
        traces.answered(RunId(1), &accepted(), at(2));
        assert!(traces.take(at(5_000)).is_empty());
        let [begun] = &traces.take(at(10_001))[..] else { panic!("one trace") };
        assert_eq!(begun.recorded_at, None);
        assert!(traces.take(at(20_000)).is_empty());
        traces.recorded_end(RunId(1), true, at(70_000));
        assert_eq!(traces.take(at(70_001)).len(), 1);
    }

    #[test]
    fn those_with_trouble_have_their_own_place() {
        let traces = TraceRecorder::new("one");
        for id in 1..=2_000 {
            traces.leaves(&order(id), at(id));
            traces.recorded_end(RunId(id), id % 2 == 0, at(id));
        }
        let taken = traces.take(at(2_001));
        let troubled = TROUBLED - TROUBLED / 4;
        assert_eq!(taken.len(), troubled + ORDINARY - ORDINARY / 4, "the rest is for other apps");
        assert!(taken[..troubled].iter().all(|trace| trace.run.0 % 2 == 1));
        for id in 1..=2_000 {
            traces.belongs(RunId(id), AppId(1), at(id));
            traces.recorded_end(RunId(id), false, at(id));
        }
        traces.belongs(RunId(3_000), AppId(2), at(3_000));
        traces.recorded_end(RunId(3_000), false, at(3_000));
        assert!(traces.take(at(3_001)).iter().any(|trace| trace.run == RunId(3_000)));
        let late = TraceRecorder::new("one");
        late.leaves(&order(1), at(1_100));
        late.recorded_end(RunId(1), true, at(1_101));
        assert!(is_slow(late.take(at(1_102))[0].sending.as_ref().unwrap(), at(1_101)));
    }
}
