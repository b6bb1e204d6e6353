//! Adopts jobs of the database that others wrote: a Java admin, a person with SQL.
//!
//! The first sweep ends before this node claims anything, so that no job is silent while the others fire. Later
//! sweeps find what was added, started, stopped, edited or deleted since, in one range of jobs after the other. They
//! are omitted while the database reports that no other program has written to it.

use std::time::Duration;

use crate::engine::{Engine, RETRY};
use crate::job::JobId;
use crate::plan::Tick;
use crate::ports::{JobRange, StoreError};

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
        let mut sweep = Sweep::new(self.inner.clock.monotonic());
        loop {
            let started = self.inner.clock.monotonic();
            if let Err(error) = self.adopt_changes(&mut sweep).await {
                self.complain(&error, "failed to list jobs changed by other programs", ADOPT_EVERY);
            }
            // On a slow database a range takes long; ranges then follow less often, to keep the load small.
            let took = self.inner.clock.monotonic() - started;
            let every = if sweep.range == JobRange::ALL { ADOPT_ALL_EVERY } else { ADOPT_EVERY };
            let pause = every.saturating_sub(took).max(took.min(ADOPT_LONG) * ADOPT_SHARE);
            self.inner.clock.sleep(pause).await;
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
        self.sweep(JobRange::ALL, |changed| {
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

    /// Adopts the changes of one range of jobs.
    async fn adopt_changes(&self, sweep: &mut Sweep) -> Result<(), StoreError> {
        let now = self.inner.clock.monotonic();
        if self.inner.store.others_wrote().await? || now - sweep.since >= ADOPT_ALWAYS {
            sweep.begin(now);
        }
        let mut found = 0;
        if sweep.rounds > 0 {
            if now >= sweep.whole_until {
                sweep.range = self.inner.store.jobs_after(sweep.after, RANGE_MAX).await?;
                sweep.whole_until =
                    if sweep.range == JobRange::ALL { now + ADOPT_ALWAYS } else { Duration::ZERO };
            }
            let range = sweep.range;
            if self.inner.store.has_changed_jobs(range).await? {
                self.sweep(range, |changed| found += changed).await?;
            }
            sweep.ended(range);
        }
        if found > 0 {
            tracing::info!(changed = found, "found jobs changed by other programs");
            self.inner.claim_now.notify_one();
        }
        if found > 0 || self.has_withdrawals() { self.finish_withdrawals().await } else { Ok(()) }
    }

    /// Adopts all changes in a range, a few jobs per transaction; calls `each` with the number of every transaction.
    async fn sweep(&self, range: JobRange, mut each: impl FnMut(usize)) -> Result<(), StoreError> {
        let mut left = Some(range);
        while let Some(range) = left {
            let tick = Tick::new(self.now(), &*self.inner.router, self.inner.options.bugs);
            let adopted = self.inner.store.adopt(range, ADOPT_MAX, &tick).await?;
            if adopted.unreadable > 0 {
                tracing::warn!(
                    jobs = adopted.unreadable,
                    "started jobs have schedules that cannot be read, and do not fire; `tickwright doctor` lists them"
                );
            }
            each(adopted.changed);
            left = adopted.next.map(|after| JobRange { after, ..range });
        }
        loop {
            let gone = self.inner.store.forget_deleted(range, ADOPT_MAX).await?;
            each(gone);
            if gone < ADOPT_MAX {
                return Ok(());
            }
        }
    }
}

/// Position of the sweeps after the first.
struct Sweep {
    /// Last job of the range before.
    after: JobId,
    /// Number of times that the last job is still to be reached, until all have been compared since others wrote.
    rounds: u8,
    /// Time of the last reason to compare.
    since: Duration,
    /// Last range.
    range: JobRange,
    /// Time until which that range is taken to have all jobs.
    whole_until: Duration,
}

impl Sweep {
    fn new(now: Duration) -> Sweep {
        let (after, whole_until) = (JobId(0), Duration::ZERO);
        Sweep { after, rounds: 1, since: now, range: JobRange::ALL, whole_until }
    }

    /// Begins to compare all jobs.
    fn begin(&mut self, now: Duration) {
        // The jobs before the current position may have been changed too.
        self.rounds = if self.after == JobId(0) { 1 } else { 2 };
        self.since = now;
    }

    /// Records that a range was compared.
    fn ended(&mut self, range: JobRange) {
        self.after = range.until.unwrap_or(JobId(0));
        if range.until.is_none() {
            self.rounds = self.rounds.saturating_sub(1);
        }
    }
}

/// Time from one range to the next. A change may be made just after its range was compared, so 100 000 jobs take two
/// of these, and must take less than two seconds.
const ADOPT_EVERY: Duration = Duration::from_millis(800);

/// Interval if one range has all jobs. Changes are found within two seconds, as with two ranges.
const ADOPT_ALL_EVERY: Duration = Duration::from_millis(1_750);

/// Jobs per transaction: on SQLite a fire waits for one of them at most.
const ADOPT_MAX: usize = 1000;

/// The pause after a range is this many times as long as comparing it took, at least. The largest query of a range of
/// 50 000 jobs took 0.17 s on a busy MariaDB server and 0.06 s on PostgreSQL.
const ADOPT_SHARE: u32 = 3;

/// Maximum time that counts: with many changes to adopt, a sweep takes longer, and the next one must not wait for that.
const ADOPT_LONG: Duration = Duration::from_millis(500);

/// Jobs compared at a time: changes to 100 000 jobs are found within two seconds, and no single scan takes long.
const RANGE_MAX: usize = 50_000;

/// All jobs are compared this often even if the database reports no writes of others, and counted this often if one
/// range has all of them.
const ADOPT_ALWAYS: Duration = Duration::from_secs(60);

const LOG_EVERY: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_jobs_are_compared_after_others_wrote() {
        let range = |after, until: Option<i64>| JobRange { after: JobId(after), until: until.map(JobId) };
        let mut sweep = Sweep { rounds: 0, ..Sweep::new(Duration::ZERO) };
        sweep.begin(Duration::from_secs(1));
        sweep.ended(range(0, Some(50)));
        assert_eq!((sweep.after, sweep.rounds), (JobId(50), 1));
        // They wrote again, perhaps to one of the first jobs.
        sweep.begin(Duration::from_secs(2));
        sweep.ended(range(50, None));
        assert_eq!((sweep.after, sweep.rounds), (JobId(0), 1));
        sweep.ended(range(0, Some(50)));
        sweep.ended(range(50, None));
        assert_eq!((sweep.after, sweep.rounds), (JobId(0), 0));
    }
}
