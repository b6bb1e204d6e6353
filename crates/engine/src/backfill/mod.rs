//! Backfills: runs of a job for scheduled times of the past.
//!
//! A backfill is a row, and a row for each of its scheduled times. The end of a run is stored as an event, in the
//! transaction that closes the run. [`Store::advance_backfills`](crate::Store::advance_backfills) applies the events of a
//! backfill and opens its next runs in one transaction, so any node can go on, and a crash before or after it neither
//! leaves out nor doubles a scheduled time. The claim loop calls it, because it claims the runs that open.

mod rules;
mod times;

use std::sync::atomic::Ordering;

use cron::Timestamp;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};

pub use rules::{
    Backfill, BackfillChange, BackfillId, BackfillSettings, EarlierRun, InstantCounts, PARALLEL_MAX, Turn,
    state_after, turn,
};
pub use times::{INSTANTS_MAX, TimeRange, TimesError, times_of};

use crate::engine::Engine;
use crate::job::JobId;
use crate::kill::Killed;
use crate::ports::StoreError;

/// A backfill to start.
#[derive(Clone, Debug, PartialEq)]
pub struct NewBackfill {
    /// Idempotency key of the request.
    pub key: i64,
    /// Settings.
    pub settings: BackfillSettings,
    /// Scheduled times to run, each once, at most [`INSTANTS_MAX`].
    pub times: Vec<Timestamp>,
}

/// Result of [`Store::advance_backfills`](crate::Store::advance_backfills).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filled {
    /// Number of runs that were opened, and now wait to be claimed.
    pub opened: usize,
    /// Whether more events are due.
    pub more: bool,
}

impl Engine {
    /// Starts a backfill of a job, whether or not the job is started. Idempotent: the same key for the same job returns
    /// the same backfill.
    pub async fn start_backfill(&self, job: JobId, new: &NewBackfill) -> Result<BackfillId, StoreError> {
        let mut tries = 0;
        loop {
            match self.inner.store.start_backfill(job, new).await {
                Ok(id) => {
                    self.fill_now();
                    return Ok(id);
                }
                Err(error) if error.is_transient() && tries < TRIES => tries += 1,
                Err(error) => return Err(error),
            }
            self.inner.clock.sleep(crate::engine::RETRY).await;
        }
    }

    /// Pauses, continues, cancels or retries a backfill. [`StoreError::Conflict`] if its state does not allow it.
    pub async fn change_backfill(
        &self,
        id: BackfillId,
        change: BackfillChange,
    ) -> Result<Backfill, StoreError> {
        let changed = self.inner.store.change_backfill(id, change).await?;
        self.fill_now();
        Ok(changed)
    }

    /// Cancels the open runs of a backfill; returns the number of those that go on, because their executors do not end
    /// them.
    pub async fn kill_backfill_runs(&self, id: BackfillId, reason: &str) -> Result<usize, StoreError> {
        let open = self.inner.store.backfill_runs(id).await?;
        let killed = open.into_iter().map(|run| self.kill(run, reason, false));
        let killed: Vec<Killed> = stream::iter(killed).buffer_unordered(KILLS_AT_ONCE).try_collect().await?;
        Ok(killed.iter().filter(|killed| matches!(killed, Killed::Open(_))).count())
    }

    /// Lets the claim loop apply events of backfills.
    pub(crate) fn fill_now(&self) {
        self.inner.has_backfill_events.store(true, Ordering::Relaxed);
        self.inner.claim_now.notify_one();
    }

    /// Whether events of backfills are due, as far as this node knows.
    pub(crate) fn has_backfill_events(&self) -> bool {
        let now = self.now();
        let agenda = self.inner.agenda.lock().expect("no holder of this lock panics");
        let is_due = agenda.as_ref().is_some_and(|agenda| agenda.backfill_at.is_some_and(|at| at <= now));
        is_due || self.inner.has_backfill_events.load(Ordering::Relaxed)
    }

    /// Applies events of backfills; returns whether there are more. Only the claim loop calls it.
    pub(crate) async fn advance_backfills(&self) -> Result<bool, StoreError> {
        self.inner.has_backfill_events.store(false, Ordering::Relaxed);
        let filled = self.inner.store.advance_backfills(self.now(), BACKFILLS_MAX).await;
        let filled = filled.inspect_err(|_| self.inner.has_backfill_events.store(true, Ordering::Relaxed))?;
        if filled.more {
            self.inner.has_backfill_events.store(true, Ordering::Relaxed);
        }
        Ok(filled.more)
    }
}

/// Maximum number of backfills per transaction.
const BACKFILLS_MAX: usize = 10;

/// Number of executors that are asked at the same time to end runs.
const KILLS_AT_ONCE: usize = 16;

/// Number of times a start is repeated if its commit is in doubt; its key makes it idempotent.
const TRIES: u32 = 5;
