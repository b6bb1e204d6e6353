//! Kill: a person ends one run.
//!
//! The row first, the executor second: were the executor told first, its own report of the end could be the one that
//! counts, and the run would be tried again.

use std::time::Duration;

use crate::engine::Engine;
use crate::ports::{Ending, StoreError, Verdict};
use crate::run::{Outcome, RunId, RunState};

impl Engine {
    /// Ends a run, wherever it is, and says whether it was still there to be ended. It is not tried again. An executor
    /// that has it is told; whether it obeys is its own affair.
    pub async fn kill(&self, id: RunId, reason: &str) -> Result<bool, StoreError> {
        let started = self.inner.clock.monotonic();
        loop {
            let Some(run) = self.inner.store.open_runs(&[id]).await?.pop() else { return Ok(false) };
            match run.state {
                // A node has it in hand and is about to send it: a moment later an executor can be told.
                RunState::Claimed | RunState::Cancelling => {}
                _ => {
                    let outcome = Outcome::Cancelled(reason.to_owned());
                    let ending = Ending { run: id, outcome, version: Some(run.version) };
                    match self.end(ending).await? {
                        Verdict::Stale => {}
                        Verdict::Applied => {
                            let job = self.inner.store.job(run.job).await?;
                            if run.state != RunState::Waiting {
                                self.inner.dispatch.kill(&run, job.as_ref()).await;
                            }
                            return Ok(true);
                        }
                        _ => return Ok(false),
                    }
                }
            }
            if self.inner.clock.monotonic() - started > KILL_MAX {
                return Err(StoreError::Conflict(format!("run {id} is just being sent; try again")));
            }
            self.inner.clock.sleep(LOOK_AGAIN).await;
        }
    }
}

/// A claimed run is sent within the look-ahead; an executor that does not answer takes a little longer.
const KILL_MAX: Duration = Duration::from_secs(5);

/// How often to look whether it was sent.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
