//! Adopts jobs of the database that others wrote: a Java admin, a person with SQL.
//!
//! The first sweep ends before this node claims anything, so that no job is silent while the others fire. Later
//! sweeps find what was added, started, stopped, edited or deleted since.

use std::time::Duration;

use crate::engine::{Engine, RETRY};
use crate::job::JobId;
use crate::plan::Tick;
use crate::ports::StoreError;

/// Progress of the first sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Adopting {
    /// Number of jobs adopted so far.
    pub done: u64,
    /// Number of jobs to adopt, as counted at the start.
    pub total: u64,
}

impl Engine {
    /// Sweeps once before the first claim, then again and again.
    pub(crate) async fn adopt_loop(&self) {
        while self.adopting().is_some() {
            match self.adopt_all().await {
                Ok(()) => {}
                // No repetition helps, and the jobs that are adopted must not wait for the others.
                Err(error) if !error.is_transient() && !matches!(error, StoreError::Conflict(_)) => {
                    self.complain(&error, "failed to adopt all jobs of the database", ADOPT_EVERY);
                    self.begin_claims();
                }
                Err(error) => {
                    self.complain(&error, "failed to adopt jobs of the database", RETRY);
                    self.inner.clock.sleep(RETRY).await;
                }
            }
        }
        loop {
            let started = self.inner.clock.monotonic();
            if let Err(error) = self.adopt_changes().await {
                self.complain(&error, "failed to list jobs changed by other programs", ADOPT_EVERY);
            }
            // On very large tables a scan takes long; it then runs less often, to keep the load small.
            let took = self.inner.clock.monotonic() - started;
            self.inner.clock.sleep(ADOPT_EVERY.max(took * ADOPT_SHARE)).await;
        }
    }

    /// Progress of the first sweep; `None` once it has ended. An interrupted sweep continues with the jobs that are
    /// left.
    pub(crate) fn adopting(&self) -> Option<Adopting> {
        *self.inner.adopting.lock().expect("no holder of this lock panics")
    }

    fn set_adopting(&self, progress: Option<Adopting>) {
        *self.inner.adopting.lock().expect("no holder of this lock panics") = progress;
    }

    async fn adopt_all(&self) -> Result<(), StoreError> {
        let total = self.inner.store.jobs_to_adopt().await?;
        let started = self.inner.clock.monotonic();
        let (mut done, mut logged) = (0, started);
        self.set_adopting(Some(Adopting { done, total }));
        self.sweep(|changed| {
            done = (done + changed as u64).min(total);
            self.set_adopting(Some(Adopting { done, total }));
            let now = self.inner.clock.monotonic();
            if now - logged >= LOG_EVERY {
                logged = now;
                tracing::info!("adopting jobs: {done} of {total}");
            }
        })
        .await?;
        if total > 0 {
            let took = self.inner.clock.monotonic() - started;
            tracing::info!(
                jobs = total,
                took_ms = took.as_millis() as u64,
                "adopted the jobs of the database"
            );
        }
        self.finish_withdrawals().await?;
        self.begin_claims();
        Ok(())
    }

    fn begin_claims(&self) {
        self.set_adopting(None);
        self.inner.claim_now.notify_one();
    }

    async fn adopt_changes(&self) -> Result<(), StoreError> {
        let mut found = 0;
        self.sweep(|changed| found += changed).await?;
        if found > 0 {
            tracing::info!(changed = found, "found jobs changed by other programs");
            self.inner.claim_now.notify_one();
        }
        self.finish_withdrawals().await
    }

    /// Adopts all changes, a few jobs per transaction; calls `each` with the number of every transaction.
    async fn sweep(&self, mut each: impl FnMut(usize)) -> Result<(), StoreError> {
        let mut after = Some(JobId(0));
        while let Some(from) = after {
            let tick = Tick::new(self.now(), &*self.inner.router, self.inner.options.bugs);
            let adopted = self.inner.store.adopt(from, ADOPT_MAX, &tick).await?;
            each(adopted.changed);
            after = adopted.next;
        }
        Ok(())
    }
}

const ADOPT_EVERY: Duration = Duration::from_secs(1);

/// Jobs per transaction: on SQLite a fire waits for one of them at most.
const ADOPT_MAX: usize = 1000;

/// Scanning takes at most this share (1/n) of the time.
const ADOPT_SHARE: u32 = 20;

const LOG_EVERY: Duration = Duration::from_secs(1);
