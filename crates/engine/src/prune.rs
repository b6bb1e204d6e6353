//! Deletes old rows.

use std::time::Duration;

use crate::engine::Engine;
use crate::ports::Retention;

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
}

/// Interval of deletions. Retention periods are days, so rows may stay a little longer.
const PRUNE_EVERY: Duration = Duration::from_secs(2 * 60);

/// Rows per transaction: a fire waits for one of them at most, and SQLite has one writer.
const PRUNE_MAX: usize = 200;

/// Minimum pause between two deletions.
const PRUNE_PAUSE: Duration = Duration::from_millis(10);

/// Pause after a deletion as a multiple of its duration, so that firing gets most of the database's time.
const PRUNE_SHARE: u32 = 2;
