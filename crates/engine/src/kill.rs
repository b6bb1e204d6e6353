//! Cancels one run at a user's request.
//!
//! A run that an executor has accepted is first marked, then the executor is asked to end it. The mark turns a
//! failure of the run into a cancellation that is not retried, because the executor's report may arrive before its
//! response to the request. The run is closed here only if the executor agrees: if it refuses or cannot be reached,
//! the run stays open and its real result still counts. `force` closes the run regardless of the executor's
//! response.

use std::time::Duration;

use crate::engine::Engine;
use crate::ports::{Ending, KillAnswer, StoreError, Verdict};
use crate::run::{Outcome, Run, RunId, RunState};

/// Result of a request to cancel a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Killed {
    /// The run is cancelled.
    Cancelled,
    /// The run had already finished, or succeeded before the executor could stop it.
    Over,
    /// The executor has not ended it; the run stays open until it ends, is lost or is killed with `force`. The
    /// value is never [`KillAnswer::Ended`].
    Open(KillAnswer),
    /// The workflow run is cancelled; steps that executors have, or the phase `finally`, are still to end.
    Ending,
}

impl Engine {
    /// Cancels a run without retries. With `force` the run is closed first and the executor notified afterwards.
    pub async fn kill(&self, id: RunId, reason: &str, force: bool) -> Result<Killed, StoreError> {
        let started = self.inner.clock.monotonic();
        loop {
            let Some(run) = self.inner.store.open_runs(&[id]).await?.pop() else { return Ok(Killed::Over) };
            let killed = match run.state {
                // A node holds the run and is about to send it; shortly afterwards an executor can be asked.
                RunState::Claimed | RunState::Cancelling => None,
                RunState::Waiting => self.close_killed(&run, reason).await?,
                // No executor has a workflow run.
                RunState::Running if run.address.is_none() => match self.kill_workflow(id, force).await? {
                    None if force => self.kill_by_force(&run, reason).await?,
                    None => self.kill_politely(&run, reason).await?,
                    killed => killed,
                },
                _ if force => self.kill_by_force(&run, reason).await?,
                _ => self.kill_politely(&run, reason).await?,
            };
            if let Some(killed) = killed {
                return Ok(killed);
            }
            if self.inner.clock.monotonic() - started > KILL_MAX {
                return Err(StoreError::Conflict(format!("run {id} is being sent; retry")));
            }
            self.inner.clock.sleep(LOOK_AGAIN).await;
        }
    }

    /// Closes the run at the version that was read. `None` if it has changed since.
    async fn close_killed(&self, run: &Run, reason: &str) -> Result<Option<Killed>, StoreError> {
        let outcome = Outcome::Cancelled(reason.to_owned());
        Ok(
            match self.end(Ending { run: run.id, outcome, version: Some(run.version), address: None }).await?
            {
                Verdict::Stale => None,
                Verdict::Applied => Some(Killed::Cancelled),
                _ => Some(Killed::Over),
            },
        )
    }

    async fn kill_by_force(&self, run: &Run, reason: &str) -> Result<Option<Killed>, StoreError> {
        let closed = self.close_killed(run, reason).await?;
        if closed == Some(Killed::Cancelled) {
            let job = self.inner.store.job(run.job).await?;
            self.inner.dispatch.kill(run, job.as_ref()).await;
        }
        Ok(closed)
    }

    /// Marks the run, then asks the executor. `None` if the run changed before it could be marked.
    async fn kill_politely(&self, run: &Run, reason: &str) -> Result<Option<Killed>, StoreError> {
        if !self.inner.store.request_cancel(run.id).await? {
            return Ok(None);
        }
        let job = self.inner.store.job(run.job).await?;
        let answer = self.inner.dispatch.kill(run, job.as_ref()).await;
        if answer != KillAnswer::Ended {
            return Ok(Some(Killed::Open(answer)));
        }
        let outcome = Outcome::Cancelled(reason.to_owned());
        match self.end(Ending { run: run.id, outcome, version: None, address: None }).await? {
            Verdict::Applied | Verdict::Late => Ok(Some(Killed::Cancelled)),
            // The executor's own report arrived first.
            _ => {
                let before = Some(RunId(run.id.0 - 1));
                let record = self.inner.store.runs(run.job, before, 1).await?.pop();
                let succeeded = record.is_some_and(|record| record.state == RunState::Succeeded);
                Ok(Some(if succeeded { Killed::Over } else { Killed::Cancelled }))
            }
        }
    }
}

/// A claimed run is sent within the look-ahead; an executor that does not respond takes a little longer.
const KILL_MAX: Duration = Duration::from_secs(5);

/// Interval of checks whether the run was sent.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
