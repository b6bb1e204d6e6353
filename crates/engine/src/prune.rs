//! Deletes old rows, and detects changes made by others in the database.

use std::time::Duration;

use crate::engine::Engine;
use crate::plan::Tick;
use crate::ports::{Retention, StoreError};

impl Engine {
    pub(crate) async fn prune_loop(&self) {
        loop {
            self.inner.clock.sleep(PRUNE_EVERY).await;
            loop {
                let started = self.inner.clock.monotonic();
                let now = self.now();
                let retention = Retention {
                    runs_before: now - self.inner.options.keep_runs,
                    runs_max: self.inner.options.keep_runs_max,
                    history_before: now - self.inner.options.keep_history,
                };
                match self.inner.store.prune(&retention, PRUNE_MAX).await {
                    Ok(PRUNE_MAX) => {
                        let took = self.inner.clock.monotonic() - started;
                        self.inner.clock.sleep(PRUNE_PAUSE.max(took * PRUNE_SHARE)).await;
                    }
                    Ok(_) => break,
                    Err(error) => {
                        self.complain(&error, "failed to delete old rows", PRUNE_EVERY);
                        break;
                    }
                }
            }
        }
    }

    /// Detects jobs that a Java admin or a person changed in the database.
    pub(crate) async fn adopt_loop(&self) {
        loop {
            let started = self.inner.clock.monotonic();
            if let Err(error) = self.adopt().await {
                self.complain(&error, "failed to list jobs changed by other programs", ADOPT_EVERY);
            }
            // On very large tables a scan takes long; it then runs less often, to keep the load small.
            let took = self.inner.clock.monotonic() - started;
            self.inner.clock.sleep(ADOPT_EVERY.max(took * ADOPT_SHARE)).await;
        }
    }

    async fn adopt(&self) -> Result<(), StoreError> {
        let tick = Tick::new(self.now(), &*self.inner.router, self.inner.options.bugs);
        let changed = self.inner.store.adopt(ADOPT_MAX, &tick).await?;
        if changed > 0 {
            tracing::info!(changed, "found jobs changed by other programs");
            self.inner.claim_now.notify_one();
        }
        self.finish_withdrawals().await
    }
}

const PRUNE_EVERY: Duration = Duration::from_secs(60);

/// Rows per transaction: a fire waits for one of them at most, and SQLite has one writer.
const PRUNE_MAX: usize = 200;

/// Minimum pause between two deletions.
const PRUNE_PAUSE: Duration = Duration::from_millis(10);

/// Pause after a deletion as a multiple of its duration, so that firing gets most of the database's time.
const PRUNE_SHARE: u32 = 2;

const ADOPT_EVERY: Duration = Duration::from_secs(1);
const ADOPT_MAX: usize = 1000;

/// Scanning takes at most this share (1/n) of the time.
const ADOPT_SHARE: u32 = 50;
