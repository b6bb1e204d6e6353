//! Accepts runs and executes them: one lane per job, runs in order, each at most once.
//!
//! A run is in one place at a time: being written to the journal, waiting in its job's lane, or running. Its
//! outcome goes to the journal, which passes it to the reporter.

use std::collections::{HashMap, VecDeque};
use std::future::pending;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use protocol::v1::Block;
use protocol::xxl::texts;
use timer::Clock;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::context::Context;
use crate::job::{self, Job};
use crate::journal::Journal;
use crate::ledger::Standing;
use crate::process::Workspace;
use crate::run::{Outcome, Overlap, Report, Run};
use crate::run_log::RunLogs;
use crate::scripts::{Script, ScriptCache};

/// Shared handle; clones refer to the same inbox.
#[derive(Clone)]
pub(crate) struct Inbox {
    shared: Arc<Shared>,
}

struct Shared {
    jobs: HashMap<String, Arc<Job>>,
    /// Cache of script files; `None` if scripts are disabled.
    script_cache: Option<Arc<ScriptCache>>,
    workspace: Arc<Workspace>,
    journal: Journal,
    logs: RunLogs,
    clock: Arc<dyn Clock>,
    limits: Limits,
    lanes: Mutex<Lanes>,
    /// Notified when a lane ends.
    lane_ended: Notify,
}

/// Limits on waiting and unreported runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Maximum number of waiting runs in one job's lane.
    pub waiting: usize,
    /// Maximum number of runs that are not yet confirmed by the centre, which may be unavailable for days while
    /// memory is limited.
    pub unreported: usize,
    /// How long a stopped run may take to return before its lane continues without it.
    pub stop_grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { waiting: 1_000, unreported: 100_000, stop_grace: Duration::from_secs(5) }
    }
}

/// Result of offering a run to the inbox.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Acceptance {
    /// The run is on disk and will be executed.
    Accepted,
    /// The run is finished; its outcome is being reported.
    AlreadyOver,
}

/// Why a run was rejected.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Rejection {
    #[error("{}", texts::unknown_handler(.0))]
    UnknownHandler(String),
    #[error("this executor failed to store the script: {0}")]
    Script(io::Error),
    #[error("{}", texts::repeated(*.0))]
    Repeated(i64),
    #[error("{}", texts::blocked(Block::DiscardLater))]
    Discarded,
    #[error("job {job_id} has {waiting} runs waiting on this executor, the maximum; retry later")]
    LaneFull { job_id: i64, waiting: usize },
    #[error(
        "this executor has {0} results that the scheduling centre has not acknowledged, the maximum; it \
         accepts no runs until then"
    )]
    Unreported(usize),
    #[error("this executor is stopping; use another one")]
    Stopping,
    #[error("this executor failed to write its journal and accepts no runs until it succeeds: {0}")]
    Journal(io::Error),
}

#[derive(Default)]
struct Lanes {
    /// Lanes with runs; empty ones are removed.
    by_job: HashMap<i64, Lane>,
    is_stopping: bool,
}

/// The runs of one job.
#[derive(Default)]
struct Lane {
    /// Runs that are being written to the journal and will wait or run next.
    arriving: usize,
    waiting: VecDeque<Order>,
    running: Option<Arc<Switch>>,
    has_worker: bool,
    /// The handler of these runs. A job with another handler or another version of its script counts as changed.
    job: Option<Arc<Job>>,
}

/// A run and its handler.
struct Order {
    run: Run,
    job: Arc<Job>,
    is_script: bool,
}

/// Stops a run; the first reason is kept.
#[derive(Debug, Default)]
struct Switch {
    reason: OnceLock<String>,
    cancellation: CancellationToken,
}

impl Inbox {
    pub fn new(
        jobs: HashMap<String, Arc<Job>>,
        script_cache: Option<Arc<ScriptCache>>,
        workspace: Arc<Workspace>,
        journal: Journal,
        logs: RunLogs,
        clock: Arc<dyn Clock>,
        limits: Limits,
    ) -> Inbox {
        let (lanes, lane_ended) = (Mutex::default(), Notify::new());
        let shared =
            Shared { jobs, script_cache, workspace, journal, logs, clock, limits, lanes, lane_ended };
        Inbox { shared: Arc::new(shared) }
    }

    /// Accepts a run, or returns the reason for rejecting it. Must not be dropped halfway: a run that is in the
    /// journal has to be executed.
    pub async fn accept(&self, mut run: Run) -> Result<Acceptance, Rejection> {
        let script = run.script.take();
        let is_script = script.is_some();
        let job = match script {
            Some(script) => self.script_handler(run.job_id, script, &run.handler).await?,
            None => match self.shared.jobs.get(&run.handler) {
                Some(job) => Arc::clone(job),
                None => return Err(Rejection::UnknownHandler(run.handler)),
            },
        };
        let order = Order { run, job, is_script };
        let written = {
            let mut lanes = self.shared.lanes();
            let run = &order.run;
            match self.shared.journal.standing(run.id) {
                Standing::New => {}
                Standing::Unacknowledged => return Ok(Acceptance::AlreadyOver),
                Standing::Open | Standing::Done => return Err(Rejection::Repeated(run.id)),
            }
            self.reserve(&mut lanes, &order)?;
            self.shared.journal.accept(run.id, run.triggered_at)
        };
        let written = written.await;
        self.arrive(order, written)
    }

    async fn script_handler(&self, job_id: i64, script: Script, kind: &str) -> Result<Arc<Job>, Rejection> {
        let Some(script_cache) = self.shared.script_cache.clone() else {
            return Err(Rejection::UnknownHandler(kind.to_owned()));
        };
        let handler = tokio::task::spawn_blocking(move || script_cache.handler(job_id, &script)).await;
        handler.unwrap_or_else(|error| Err(io::Error::other(error))).map_err(Rejection::Script)
    }

    /// Whether a job has waiting or running runs.
    pub fn is_busy(&self, job_id: i64) -> bool {
        self.shared.lanes().by_job.contains_key(&job_id)
    }

    /// Stops the current run of a job and drops its waiting runs; returns whether there were any.
    pub fn kill(&self, job_id: i64, reason: &str) -> bool {
        let mut lanes = self.shared.lanes();
        let Some(lane) = lanes.by_job.get_mut(&job_id) else { return false };
        let dropped = lane.stop(reason);
        let had_any = lane.running.is_some() || !dropped.is_empty();
        drop(lanes);
        self.report_dropped(dropped, reason);
        had_any
    }

    /// Rejects all further runs.
    pub fn close(&self) {
        self.shared.lanes().is_stopping = true;
    }

    /// Stops all runs and returns their number.
    pub fn kill_all(&self, reason: &str) -> usize {
        let mut lanes = self.shared.lanes();
        let running = lanes.by_job.values().filter(|lane| lane.running.is_some()).count();
        let dropped: Vec<Order> = lanes.by_job.values_mut().flat_map(|lane| lane.stop(reason)).collect();
        drop(lanes);
        let count = running + dropped.len();
        self.report_dropped(dropped, reason);
        count
    }

    /// Waits until no run is waiting or running.
    pub async fn idle(&self) {
        loop {
            let lane_ended = self.shared.lane_ended.notified();
            tokio::pin!(lane_ended);
            lane_ended.as_mut().enable();
            if self.shared.lanes().by_job.is_empty() {
                return;
            }
            lane_ended.await;
        }
    }

    /// Calls `destroy` of every handler that was ever ready to run.
    pub async fn end_jobs(&self) {
        for job in self.shared.jobs.values() {
            let job = Arc::clone(job);
            // A task of its own, so that a panic does not affect the others.
            let ended = tokio::spawn(async move { job.end().await });
            tokio::select! {
                _ = ended => {}
                () = self.shared.clock.sleep(DESTROY_MAX) => {
                    tracing::warn!("the destroy hook of a handler did not end in time; continuing without it");
                }
            }
        }
    }

    fn reserve(&self, lanes: &mut Lanes, order: &Order) -> Result<(), Rejection> {
        let run = &order.run;
        if lanes.is_stopping {
            return Err(Rejection::Stopping);
        }
        let unreported = self.shared.journal.open_count();
        if unreported >= self.shared.limits.unreported {
            return Err(Rejection::Unreported(unreported));
        }
        // Lanes are never empty, so an existing one is busy.
        if let Some(lane) = lanes.by_job.get(&run.job_id).filter(|lane| !lane.is_changed_by(order)) {
            let waiting = lane.waiting.len() + lane.arriving;
            match run.overlap {
                Overlap::RefuseNew => return Err(Rejection::Discarded),
                Overlap::Wait if waiting >= self.shared.limits.waiting => {
                    return Err(Rejection::LaneFull { job_id: run.job_id, waiting });
                }
                Overlap::Wait | Overlap::StopOld => {}
            }
        }
        lanes.by_job.entry(run.job_id).or_default().arriving += 1;
        Ok(())
    }

    fn arrive(&self, order: Order, written: io::Result<()>) -> Result<Acceptance, Rejection> {
        let mut lanes = self.shared.lanes();
        let job_id = order.run.job_id;
        let lane = lanes.by_job.get_mut(&job_id).expect("a lane with a run arriving is kept");
        lane.arriving -= 1;
        if let Err(error) = written {
            if lane.is_empty() {
                lanes.by_job.remove(&job_id);
                self.shared.lane_ended.notify_waiters();
            }
            return Err(Rejection::Journal(error));
        }
        let reason = lane.reason_to_stop(&order);
        let dropped = reason.as_deref().map(|reason| lane.stop(reason)).unwrap_or_default();
        lane.job = Some(Arc::clone(&order.job));
        lane.waiting.push_back(order);
        if !lane.has_worker {
            lane.has_worker = true;
            tokio::spawn(self.clone().work(job_id));
        }
        drop(lanes);
        self.report_dropped(dropped, reason.as_deref().unwrap_or_default());
        Ok(Acceptance::Accepted)
    }

    /// Executes a lane's runs one after the other until none is left.
    async fn work(self, job_id: i64) {
        while let Some((order, switch)) = self.next(job_id) {
            let (run_id, triggered_at) = (order.run.id, order.run.triggered_at);
            let outcome = self.perform(order, &switch).await;
            self.shared.journal.finish(Report { run_id, triggered_at, outcome });
        }
    }

    fn next(&self, job_id: i64) -> Option<(Order, Arc<Switch>)> {
        let mut lanes = self.shared.lanes();
        let lane = lanes.by_job.get_mut(&job_id)?;
        lane.running = None;
        if let Some(order) = lane.waiting.pop_front() {
            let switch = Arc::new(Switch::default());
            lane.running = Some(Arc::clone(&switch));
            return Some((order, switch));
        }
        // No run is left that a changed job would have to stop.
        lane.job = None;
        lane.has_worker = false;
        if lane.is_empty() {
            lanes.by_job.remove(&job_id);
            self.shared.lane_ended.notify_waiters();
        }
        None
    }

    async fn perform(&self, Order { run, job, .. }: Order, switch: &Switch) -> Outcome {
        let Shared { clock, limits, workspace, .. } = &*self.shared;
        let log = self.shared.logs.of(run.id, run.triggered_at, heading(&run));
        let (run_id, timeout) = (run.id, run.timeout);
        let cancellation = switch.cancellation.clone();
        let context = Context::new(run, Arc::clone(clock), cancellation, log.clone(), Arc::clone(workspace));
        let mut task = job.start(context);
        let limit = async {
            match timeout {
                Some(timeout) => clock.sleep(timeout).await,
                None => pending().await,
            }
        };
        let outcome = tokio::select! {
            biased;
            () = switch.cancellation.cancelled() => {
                let reason = switch.reason.get().map(String::as_str).unwrap_or_default();
                Outcome::Failed(texts::stopped_running(reason))
            }
            ended = &mut task => match ended {
                Ok(Ok(message)) => Outcome::Succeeded(message.map(texts::shortened)),
                Ok(Err(error)) => Outcome::Failed(texts::shortened(error)),
                Err(error) => Outcome::Failed(texts::shortened(job::panicked(error))),
            },
            () = limit => Outcome::TimedOut,
        };
        if !task.is_finished() {
            // Blocking handlers check the token; async handlers are dropped at their next `.await`.
            switch.cancellation.cancel();
            if job.ends_when_dropped() {
                task.abort();
            }
            tokio::select! {
                _ = &mut task => {}
                () = clock.sleep(limits.stop_grace) => {
                    task.abort();
                    tracing::warn!(run_id, "a cancelled run did not end in time; its job continues with the next run");
                }
            }
        }
        log_ending(&log, &outcome);
        outcome
    }

    fn report_dropped(&self, dropped: Vec<Order>, reason: &str) {
        for Order { run: Run { id: run_id, triggered_at, .. }, .. } in dropped {
            let outcome = Outcome::Failed(texts::stopped_waiting(reason));
            self.shared.journal.finish(Report { run_id, triggered_at, outcome });
        }
    }
}

/// Bounds the stop of the executor when a `destroy` hangs.
const DESTROY_MAX: Duration = Duration::from_secs(10);

impl Shared {
    fn lanes(&self) -> MutexGuard<'_, Lanes> {
        // No user code runs under the lock, so the data is consistent even after a panic.
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lane {
    fn is_empty(&self) -> bool {
        self.arriving == 0 && self.waiting.is_empty() && !self.has_worker
    }

    /// Whether the runs in this lane use a different handler.
    fn is_changed_by(&self, order: &Order) -> bool {
        self.job.as_ref().is_some_and(|job| !Arc::ptr_eq(job, &order.job))
    }

    /// The reason to stop the runs in this lane in favour of an accepted run, if there is one.
    fn reason_to_stop(&self, order: &Order) -> Option<String> {
        if self.is_changed_by(order) {
            let reason = if order.is_script { texts::SOURCE_CHANGED } else { texts::HANDLER_CHANGED };
            return Some(reason.to_owned());
        }
        (order.run.overlap == Overlap::StopOld).then(|| texts::blocked(Block::CoverEarly))
    }

    /// Cancels the current run and returns the waiting ones.
    fn stop(&mut self, reason: &str) -> Vec<Order> {
        if let Some(switch) = &self.running {
            // The first reason is kept.
            let _ = switch.reason.set(reason.to_owned());
            switch.cancellation.cancel();
        }
        self.waiting.drain(..).collect()
    }
}

fn heading(run: &Run) -> String {
    let Run { id, job_id, handler, param, shard, .. } = run;
    format!("run {id} of job {job_id}: handler {handler}, shard {shard}, parameter `{param}`")
}

/// Writes the last line of the log. A successful run without log lines gets no file.
fn log_ending(log: &crate::run_log::RunLog, outcome: &Outcome) {
    match outcome {
        Outcome::Succeeded(_) if !log.is_begun() => {}
        Outcome::Succeeded(None) => log.line("succeeded"),
        Outcome::Succeeded(Some(message)) => log.line(format_args!("succeeded: {message}")),
        Outcome::Failed(error) => log.line(format_args!("failed: {error}")),
        Outcome::TimedOut => log.line("timed out"),
    }
}
