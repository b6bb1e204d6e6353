//! The flight recorder: what happened to the runs that this node sent last, to the millisecond.
//!
//! The database remembers what a run came to, not each step on the way there: a row for each would double what a run
//! costs. So the steps are kept in memory, of as many runs as somebody may still ask about.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard};

use engine::{Order, Origin, Receipt, RunId};
use timer::Timestamp;

/// The last flights.
#[derive(Default)]
pub struct Flights(Mutex<Recorded>);

#[derive(Default)]
struct Recorded {
    flights: HashMap<RunId, Flight>,
    /// The oldest first.
    order: VecDeque<RunId>,
}

/// One run on its way.
#[derive(Clone, Debug)]
pub struct Flight {
    /// The instant it stands for.
    pub scheduled_at: Timestamp,
    /// Why it exists.
    pub origin: Origin,
    /// Which attempt it is,
    pub attempt: u32,
    /// and of which run.
    pub retry_of: Option<RunId>,
    /// The node that had it.
    pub node: Option<String>,
    /// How its executor was chosen.
    pub route: String,
    /// What was called there.
    pub handler: String,
    /// When it left this node.
    pub left_at: Timestamp,
    /// What the executor answered, and when.
    pub answer: Option<(Timestamp, Receipt)>,
    /// When the result came.
    pub reported_at: Option<Timestamp>,
    /// When its end was written down.
    pub recorded_at: Option<Timestamp>,
}

impl Flights {
    /// A run leaves.
    pub fn leaves(&self, order: &Order, now: Timestamp) {
        let (run, spec) = (&order.run, &order.job.spec);
        let flight = Flight {
            scheduled_at: run.scheduled_at,
            origin: run.origin,
            attempt: run.attempt,
            retry_of: run.retry_of,
            node: run.node.as_ref().map(|node| node.name.clone()),
            route: spec.route.clone(),
            handler: spec.handler.clone(),
            left_at: now,
            answer: None,
            reported_at: None,
            recorded_at: None,
        };
        let mut recorded = self.recorded();
        if recorded.flights.insert(run.id, flight).is_none() {
            recorded.order.push_back(run.id);
        }
        if recorded.order.len() > KEPT
            && let Some(oldest) = recorded.order.pop_front()
        {
            recorded.flights.remove(&oldest);
        }
    }

    /// Its executor answered, or nobody did.
    pub fn answered(&self, run: RunId, receipt: &Receipt, now: Timestamp) {
        self.change(run, |flight| flight.answer = Some((now, receipt.clone())));
    }

    /// Its result came.
    pub fn reported(&self, run: RunId, now: Timestamp) {
        self.change(run, |flight| flight.reported_at = flight.reported_at.or(Some(now)));
    }

    /// Its end was written down.
    pub fn recorded_end(&self, run: RunId, now: Timestamp) {
        self.change(run, |flight| flight.recorded_at = Some(now));
    }

    /// What is known of a run's way.
    pub fn of(&self, run: RunId) -> Option<Flight> {
        self.recorded().flights.get(&run).cloned()
    }

    /// The handlers that were called at an address.
    pub fn handlers_at(&self, address: &str) -> Vec<String> {
        let recorded = self.recorded();
        let there = recorded.flights.values().filter(|flight| flight.went_to() == Some(address));
        let handlers: BTreeSet<&str> = there.map(|flight| flight.handler.as_str()).collect();
        handlers.into_iter().filter(|handler| !handler.is_empty()).map(str::to_owned).collect()
    }

    fn change(&self, run: RunId, change: impl FnOnce(&mut Flight)) {
        if let Some(flight) = self.recorded().flights.get_mut(&run) {
            change(flight);
        }
    }

    fn recorded(&self) -> MutexGuard<'_, Recorded> {
        self.0.lock().expect("no holder of this lock panics")
    }
}

impl Flight {
    /// The executor that took it.
    fn went_to(&self) -> Option<&str> {
        match &self.answer {
            Some((_, Receipt::Accepted { address })) => Some(address),
            _ => None,
        }
    }
}

/// A few megabytes.
const KEPT: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;
    use engine::{AppId, Job, JobId, JobSpec, Run, RunState, Shard};
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
            running: None,
            waiting: 0,
            problem,
        };
        Order { run, job: Arc::new(job) }
    }

    #[test]
    fn the_last_flights_are_kept_and_the_oldest_go() {
        let flights = Flights::default();
        let at = Timestamp::from_millis;
        for id in 1..=KEPT as i64 + 2 {
            flights.leaves(&order(id), at(id + 1));
        }
        assert!(flights.of(RunId(2)).is_none());
        let last = RunId(KEPT as i64 + 2);
        flights.answered(last, &Receipt::Accepted { address: "http://a:1/".into() }, at(7));
        flights.reported(last, at(8));
        flights.reported(last, at(9));
        flights.recorded_end(last, at(10));
        let flight = flights.of(last).unwrap();
        assert_eq!((flight.left_at, flight.reported_at), (at(last.0 + 1), Some(at(8))));
        assert_eq!(flights.handlers_at("http://a:1/"), ["echo"]);
        assert!(flights.handlers_at("http://b:1/").is_empty());
    }
}
