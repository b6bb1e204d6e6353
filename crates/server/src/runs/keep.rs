//! Stores the logs of finished runs, so that they outlive the executors that wrote them.
//!
//! The engine passes on which runs have finished, and never waits for this module. A log is read at once if capacity
//! is free, and again a second later: page by page, a few logs at a time and at most [`PER_SECOND`]. It is stored
//! with others in one transaction. If the executor dies in between, the part that was read is stored. A log that
//! cannot be stored stays with its executor.

use std::sync::Arc;
use std::time::Duration;

use engine::{Outcome, RunId};
use store::{Database, RunLog};
use timer::Clock;
use tokio::sync::{Mutex as AsyncMutex, Semaphore, mpsc};
use tokio::task::JoinSet;

use super::follow::{Following, store_part};
use super::log::{LogLocation, Source, location_of};
use super::tail::{Reached, Tail};
use crate::executors::Directory;
use crate::outbound::Outbound;
use crate::request_error::RequestError;
use crate::telemetry::Metrics;

/// Sender of finished runs to the [`LogKeeper`].
#[derive(Clone)]
pub struct Ended(mpsc::Sender<RunId>);

/// Creates the channel of finished runs to the keeper.
pub fn ended() -> (Ended, mpsc::Receiver<RunId>) {
    let (sender, receiver) = mpsc::channel(WAITING_MAX);
    (Ended(sender), receiver)
}

impl Ended {
    /// Adds a finished run. Never waits: if there are too many, logs of failed runs are the last to be dropped.
    /// Returns false if this one is dropped.
    pub fn tell(&self, run: RunId, outcome: &Outcome) -> bool {
        let has_log = !matches!(outcome, Outcome::Refused(_) | Outcome::Dropped(..));
        let is_wanted = match outcome {
            Outcome::Succeeded(_) => self.0.capacity() > WAITING_MAX / 2,
            _ => true,
        };
        !has_log || is_wanted && self.0.try_send(run).is_ok()
    }

    /// Adds a finished run that was followed. Returns false if the channel is full.
    pub(super) fn tell_again(&self, run: RunId) -> bool {
        self.0.try_send(run).is_ok()
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
    calls: Semaphore,
    held: Semaphore,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { calls: Semaphore::new(AT_ONCE), held: Semaphore::new(HELD_MAX) }
    }
}

impl LogKeeper {
    /// Stores the logs of runs as they finish, forever.
    pub async fn run(self, mut ended: mpsc::Receiver<RunId>) {
        let (fetched, waiting) = mpsc::channel(AT_ONCE);
        let writer = self.clone();
        let (limits, mut tasks) = (Arc::new(Limits::default()), JoinSet::new());
        tasks.spawn(async move { writer.write_loop(waiting).await });
        while let Some(run) = ended.recv().await {
            if tasks.len() > WAITING_MAX {
                tasks.join_next().await;
            }
            while tasks.try_join_next().is_some() {}
            let (keeper, limits, fetched) = (self.clone(), Arc::clone(&limits), fetched.clone());
            tasks.spawn(async move {
                match keeper.fetch(run, &limits).await {
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
            self.clock.sleep(Duration::from_secs(1) / PER_SECOND).await;
        }
    }

    /// Returns a run's log, once its executor has had time to write the last lines. `None` if there is none, or if
    /// only a part could be read, which is then already stored.
    async fn fetch(&self, id: RunId, limits: &Limits) -> Result<Option<RunLog>, RequestError> {
        let (mut location, followed) = self.following.take(id).unzip();
        let followed: Arc<AsyncMutex<Tail>> = followed.unwrap_or_default();
        let mut tail = followed.lock().await;
        // At once if there is capacity: the executor may be gone a second later.
        let held = limits.held.try_acquire();
        if held.is_ok()
            && let Ok(_call) = limits.calls.try_acquire()
        {
            match self.read_on(id, &mut location, &mut tail).await {
                Ok(Some(Reached::End)) => return Ok(Some(tail.to_log(true))),
                Ok(_) => {}
                Err(why) => tracing::debug!(run = %id, %why, "failed to read the log of a run; retrying"),
            }
        }
        let mut tried = 0;
        loop {
            self.clock.sleep(PAUSES[tried]).await;
            let _call = limits.calls.acquire().await.expect("the semaphore is never closed");
            tried += 1;
            match self.read_on(id, &mut location, &mut tail).await {
                Ok(None) if location.is_none() => return Ok(None),
                Ok(None | Some(Reached::Newest | Reached::End)) => {
                    return Ok((tail.last() > 0).then(|| tail.to_log(true)));
                }
                Ok(Some(Reached::More)) => return Ok(Some(tail.to_log(false))),
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

    /// Continues reading after the last line read. `None` if the run was sent to no executor.
    async fn read_on(
        &self,
        id: RunId,
        location: &mut Option<LogLocation>,
        tail: &mut Tail,
    ) -> Result<Option<Reached>, RequestError> {
        if location.is_none() {
            *location =
                self.database.run(id).await?.filter(|run| run.address.is_some()).map(|run| location_of(&run));
        }
        let Some(location) = location else { return Ok(None) };
        let source = Source { directory: &self.directory, outbound: &self.outbound, location };
        Ok(Some(tail.read(&source, PAGES_MAX).await?))
    }

    /// Stores logs; those that arrive together go into one transaction.
    async fn write_loop(&self, mut fetched: mpsc::Receiver<(RunId, RunLog)>) {
        while let Some(first) = fetched.recv().await {
            let (mut logs, mut bytes) = (vec![first], 0);
            bytes += logs[0].1.text.len();
            while bytes < BATCH_BYTES
                && let Ok(next) = fetched.try_recv()
            {
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
                    tracing::warn!(%error, logs = logs.len(), "failed to store logs of runs; retrying in {pause:?}");
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

/// Runs that wait for their log to be read. Half of the slots are reserved for failed runs.
const WAITING_MAX: usize = 4_096;

/// Logs read concurrently.
const AT_ONCE: usize = 4;

/// Logs that were read when their runs finished and wait for their last lines: 16 MiB at most.
const HELD_MAX: usize = 64;

/// Logs read per second; the rest of two processors is for dispatch.
const PER_SECOND: u32 = 200;

/// Wait before a log counts as complete, since an executor may add a line after its result was received, and before
/// each further attempt.
const PAUSES: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(30)];

/// Pages read per log. Since lines in between are skipped, even a log of gigabytes has fewer.
const PAGES_MAX: usize = 16;

/// Bytes of logs stored in one transaction, which then commits in milliseconds.
const BATCH_BYTES: usize = 512 * 1024;
