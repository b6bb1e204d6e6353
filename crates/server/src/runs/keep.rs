//! Stores the logs of finished runs, so that they outlive the executors that wrote them.
//!
//! The engine passes on which runs have finished, and never waits for this module. A log is read at once if capacity
//! is free, and again a second later: page by page, a few logs at a time and at most [`PER_SECOND`]. It is stored
//! with others in one transaction. If the executor dies in between, the part that was read is stored. A log that
//! cannot be stored stays with its executor. Apps are served in turn and share all limits fairly, and one log of an
//! executor is read at a time, so that neither an app with many runs nor an executor that hangs holds up the others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use engine::{AppId, Outcome, RunId};
use store::{Database, RunLog};
use timer::Clock;
use tokio::sync::{Mutex as AsyncMutex, OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;

use super::follow::{Following, store_part};
use super::log::{LogLocation, Source, location_of};
use super::tail::{Reached, Tail};
use crate::executors::Directory;
use crate::outbound::Outbound;
use crate::request_error::RequestError;
use crate::share::{FairQueue, Shares};
use crate::telemetry::Metrics;
use crate::warn::warn_store;

/// Queue of finished runs for the [`LogKeeper`], served app by app. Runs of which this node does not know the app
/// are served like one more app.
#[derive(Clone)]
pub struct Ended(Arc<FairQueue<Option<AppId>, RunId>>);

impl Default for Ended {
    fn default() -> Ended {
        Ended(Arc::new(FairQueue::new(WAITING_MAX)))
    }
}

impl Ended {
    /// Adds a finished run. Never waits: if there are too many, logs of failed runs are the last to be dropped.
    /// Returns false if this one is dropped.
    pub fn tell(&self, run: RunId, app: Option<AppId>, outcome: &Outcome) -> bool {
        match outcome {
            // There is no log.
            Outcome::Refused(_) | Outcome::Dropped(..) => true,
            Outcome::Succeeded(_) => self.0.push(app, run, WAITING_MAX / 2),
            _ => self.0.push(app, run, WAITING_MAX),
        }
    }

    /// Adds a finished run that was followed. Returns false if there are too many.
    pub(super) fn tell_again(&self, run: RunId, app: Option<AppId>) -> bool {
        self.0.push(app, run, WAITING_MAX)
    }
}

/// Reads logs from executors and stores them.
#[derive(Clone)]
pub struct LogKeeper {
    /// Clock.
    pub clock: Arc<dyn Clock>,
    /// Database that stores the logs.
    pub database: Arc<Database>,
    /// Registry of executors.
    pub directory: Arc<Directory>,
    /// Client for executors.
    pub outbound: Outbound,
    /// Counters of stored logs.
    pub metrics: Arc<Metrics>,
    /// Runs with logs that were read before they finished.
    pub following: Arc<Following>,
}

/// Limits of concurrent work.
struct Limits {
    /// Runs whose logs are being read, or wait to be read again.
    tasks: Arc<Shares<Option<AppId>>>,
    calls: Calls,
    held: Arc<Shares<Option<AppId>>>,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { tasks: Shares::new(WAITING_MAX), calls: Calls::new(), held: Shares::new(HELD_MAX) }
    }
}

/// Limits concurrent reads: [`AT_ONCE`] in total, one of each executor.
struct Calls {
    all: Arc<Semaphore>,
    each: Mutex<HashMap<String, Arc<Semaphore>>>,
}

impl Calls {
    fn new() -> Calls {
        Calls { all: Arc::new(Semaphore::new(AT_ONCE)), each: Mutex::default() }
    }

    /// Waits until a log of this executor may be read.
    async fn enter(&self, address: &str) -> [OwnedSemaphorePermit; 2] {
        const OPEN: &str = "the semaphore is never closed";
        // First its own turn: the executor then takes one place of those that wait for all.
        let own = self.of(address).acquire_owned().await.expect(OPEN);
        [own, Arc::clone(&self.all).acquire_owned().await.expect(OPEN)]
    }

    /// Permission to read a log of this executor, if it is free now.
    fn try_enter(&self, address: &str) -> Option<[OwnedSemaphorePermit; 2]> {
        let own = self.of(address).try_acquire_owned().ok()?;
        Some([own, Arc::clone(&self.all).try_acquire_owned().ok()?])
    }

    fn of(&self, address: &str) -> Arc<Semaphore> {
        let mut each = self.each.lock().expect("no holder of this lock panics");
        if each.len() >= ADDRESSES_MAX {
            each.retain(|_, own| Arc::strong_count(own) > 1);
        }
        Arc::clone(each.entry(address.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(1))))
    }
}

/// Executors whose turns are remembered; beyond it, those without a read in progress are forgotten. At most
/// [`WAITING_MAX`] have one.
const ADDRESSES_MAX: usize = 1_024;

impl LogKeeper {
    /// Stores the logs of runs as they finish, forever.
    pub async fn run(self, ended: Ended) {
        let (fetched, waiting) = mpsc::channel(AT_ONCE);
        let writer = self.clone();
        let (limits, mut tasks) = (Arc::new(Limits::default()), JoinSet::new());
        tasks.spawn(async move { writer.write_loop(waiting).await });
        let mut burst = 0;
        loop {
            let (app, run) = ended.0.pop().await;
            while tasks.try_join_next().is_some() {}
            let Some(task) = limits.tasks.take(app) else {
                self.following.take(run);
                self.metrics.log_kept("too_many", 1);
                continue;
            };
            let (keeper, limits, fetched) = (self.clone(), Arc::clone(&limits), fetched.clone());
            tasks.spawn(async move {
                let _task = task;
                match keeper.fetch(run, app, &limits).await {
                    Ok(Some(log)) => drop(fetched.send((run, log)).await),
                    Ok(None) => {}
                    Err(why) => {
                        keeper.metrics.log_kept("unreachable", 1);
                        if why.is_store_failure() {
                            tracing::warn!(%run, %why, "failed to read where the log of a run is; it is not stored and stays with its executor");
                        } else {
                            tracing::debug!(%run, %why, "failed to read the log of a run; it is not stored and stays with its executor");
                        }
                    }
                }
            });
            burst += 1;
            if burst == BURST {
                burst = 0;
                self.clock.sleep(Duration::from_secs(1) * BURST / PER_SECOND).await;
            }
        }
    }

    /// Returns a run's log, once its executor has had time to write the last lines. `None` if there is none, or if
    /// only a part could be read, which is then already stored.
    async fn fetch(
        &self,
        id: RunId,
        app: Option<AppId>,
        limits: &Limits,
    ) -> Result<Option<RunLog>, RequestError> {
        let (mut location, followed) = self.following.take(id).unzip();
        let followed: Arc<AsyncMutex<Tail>> = followed.unwrap_or_default();
        let mut tail = followed.lock().await;
        // At once if there is capacity: the executor may be gone a second later.
        let held = limits.held.take(app);
        if held.is_some()
            && let Ok(Some(found)) = self.locate(id, &mut location).await
            && let Some(_call) = limits.calls.try_enter(found.executor())
        {
            match self.read_on(found, &mut tail).await {
                Ok(Reached::End) => return Ok(Some(tail.to_log(true))),
                Ok(_) => {}
                Err(why) => tracing::debug!(run = %id, %why, "failed to read the log of a run; retrying"),
            }
        }
        let mut tried = 0;
        loop {
            self.clock.sleep(PAUSES[tried]).await;
            tried += 1;
            let read = match self.locate(id, &mut location).await {
                Ok(None) => return Ok(None),
                Ok(Some(found)) => {
                    let _call = limits.calls.enter(found.executor()).await;
                    self.read_on(found, &mut tail).await
                }
                Err(why) => Err(why),
            };
            match read {
                Ok(Reached::Newest | Reached::End) => {
                    return Ok((tail.last() > 0).then(|| tail.to_log(true)));
                }
                Ok(Reached::More) => return Ok(Some(tail.to_log(false))),
                Err(why) => {
                    if tail.last() > 0 {
                        // It is stored, so it need not be held until the next attempt, which starts over.
                        store_part(&self.database, id, tail.to_log(false)).await;
                        *tail = Tail::default();
                    }
                    if tried == PAUSES.len() {
                        return Err(why);
                    }
                }
            }
        }
    }

    /// Location of a run's log, read once. `None` if the run was sent to no executor.
    async fn locate<'a>(
        &self,
        id: RunId,
        location: &'a mut Option<LogLocation>,
    ) -> Result<Option<&'a LogLocation>, RequestError> {
        if location.is_none() {
            *location =
                self.database.run(id).await?.filter(|run| run.address.is_some()).map(|run| location_of(&run));
        }
        Ok(location.as_ref())
    }

    /// Continues reading after the last line read.
    async fn read_on(&self, location: &LogLocation, tail: &mut Tail) -> Result<Reached, RequestError> {
        let source = Source { directory: &self.directory, outbound: &self.outbound, location };
        tail.read(&source, PAGES_MAX).await
    }

    /// Stores logs; those of a short time go into one transaction.
    async fn write_loop(&self, mut fetched: mpsc::Receiver<(RunId, RunLog)>) {
        while let Some(first) = fetched.recv().await {
            let mut bytes = first.1.text.len();
            let mut logs = vec![first];
            let mut end = self.clock.sleep(LINGER);
            while bytes < BATCH_BYTES {
                let next = tokio::select! {
                    biased;
                    next = fetched.recv() => next,
                    () = &mut end => None,
                };
                let Some(next) = next else { break };
                bytes += next.1.text.len();
                logs.push(next);
            }
            self.write(&logs).await;
        }
    }

    async fn write(&self, logs: &[(RunId, RunLog)]) {
        for pause in PAUSES {
            match self.database.keep_run_logs(logs).await {
                Ok(kept) => return self.metrics.log_kept("kept", kept),
                Err(error) if error.is_transient() => {
                    warn_store!(
                        error,
                        logs = logs.len(),
                        "failed to store logs of runs; retrying in {pause:?}"
                    );
                    self.clock.sleep(pause).await;
                }
                Err(error) => {
                    tracing::error!(%error, "failed to store logs of runs; they stay with their executors");
                    break;
                }
            }
        }
        self.metrics.log_kept("not_written", logs.len());
    }
}

/// Runs that wait for their log to be read, shared fairly by apps. Half of the slots are reserved for failed runs.
const WAITING_MAX: usize = 4_096;

/// Logs read concurrently, one of each executor.
const AT_ONCE: usize = 4;

/// Logs that were read when their runs finished and wait for their last lines: 16 MiB at most.
const HELD_MAX: usize = 64;

/// Logs read per second; the rest of two processors is for dispatch.
const PER_SECOND: u32 = 200;

/// Logs read before a pause that keeps to [`PER_SECOND`].
const BURST: u32 = 4;

/// Wait before a log counts as complete, since an executor may add a line after its result was received, and before
/// each further attempt.
const PAUSES: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(30)];

/// Pages read per log. Since lines in between are skipped, even a log of gigabytes has fewer.
const PAGES_MAX: usize = 16;

/// How long a log that was read waits for others to share its transaction. Until then its executor has it.
const LINGER: Duration = Duration::from_millis(200);

/// Bytes of logs stored in one transaction, which then commits in milliseconds.
const BATCH_BYTES: usize = 512 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_app_with_many_runs_does_not_hold_up_the_logs_of_others() {
        let (ended, done) = (Ended::default(), Outcome::Succeeded(String::new()));
        let failed = Outcome::Failed(String::new());
        let greedy = (0..10_000).filter(|id| ended.tell(RunId(*id), Some(AppId(1)), &failed)).count();
        assert!(greedy < WAITING_MAX);
        assert!(!ended.tell(RunId(20_000), Some(AppId(1)), &done), "failed runs come first");
        assert!(ended.tell(RunId(30_000), Some(AppId(2)), &failed));
        ended.0.pop().await;
        assert_eq!(ended.0.pop().await, (Some(AppId(2)), RunId(30_000)), "it is the next app's turn");
    }

    #[tokio::test]
    async fn an_executor_that_hangs_takes_one_read_at_a_time() {
        let calls = Calls::new();
        let hung = calls.enter("hung").await;
        assert!(calls.try_enter("hung").is_none());
        let other = calls.try_enter("other");
        assert!(other.is_some());
        drop(hung);
        assert!(calls.try_enter("hung").is_some());
    }
}
