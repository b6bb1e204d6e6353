//! Pace: adapts batch sizes to the database's speed, so that no kind of write waits long for another.
//!
//! Claims, notes and results take turns in the database. While it keeps up, large batches are cheapest. When it
//! does not, a large batch of one kind would delay the others, and claims that wait longer than their look-ahead
//! make fires late.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Batch size for one kind of write.
#[derive(Debug)]
pub(crate) struct Pace {
    size: AtomicUsize,
    limits: Limits,
}

/// Range of batch sizes, and target time of a batch.
#[derive(Clone, Copy, Debug)]
struct Limits {
    min: usize,
    max: usize,
    moment: Duration,
}

impl Pace {
    /// For writes that all jobs need: claims, notes, results.
    pub(crate) fn new() -> Self {
        Pace::within(Limits { min: BATCH_MIN, max: BATCH_MAX, moment: MOMENT })
    }

    /// For stopping or deleting one job, which must not delay the fires of others: at most `max` rows.
    pub(crate) fn step(max: usize) -> Self {
        Pace::within(Limits { min: STEP_MIN.min(max), max, moment: STEP_MOMENT })
    }

    /// For changes of many jobs at once: at most `max` jobs.
    pub(crate) fn changes(max: usize) -> Self {
        Pace::within(Limits { min: CHANGES_MIN.min(max), max, moment: CHANGES_MOMENT })
    }

    fn within(limits: Limits) -> Self {
        Pace { size: AtomicUsize::new(limits.max), limits }
    }

    /// Maximum number of rows of the next batch.
    pub(crate) fn size(&self) -> usize {
        self.size.load(Ordering::Relaxed)
    }

    /// Adapts the size after a batch was written.
    pub(crate) fn took(&self, rows: usize, time: Duration) {
        self.size.store(self.limits.next_size(self.size(), rows, time), Ordering::Relaxed);
    }
}

impl Limits {
    fn next_size(&self, size: usize, rows: usize, time: Duration) -> usize {
        let next = match time.as_micros() {
            slow if slow > self.moment.as_micros() => {
                let fitting = rows as u128 * self.moment.as_micros() / slow;
                size.min(usize::try_from(fitting).unwrap_or(self.max))
            }
            _ if rows >= size => size * 2,
            _ => size,
        };
        next.clamp(self.min, self.max)
    }
}

/// Maximum number of rows per transaction: it commits in milliseconds, and the round trip is not the limit.
const BATCH_MAX: usize = 500;

/// Minimum number of rows: with smaller batches, the commit itself would be most of the work.
const BATCH_MIN: usize = 50;

/// Target time of one batch, including its wait for others. Several kinds and nodes fit into the look-ahead of
/// claims.
const MOMENT: Duration = Duration::from_millis(150);

/// Default maximum number of rows of one step of a stop or deletion.
pub(crate) const STEP_MAX: usize = 200;

/// Minimum number of rows of one step. They take a few milliseconds; if a step takes longer, that is the commit or
/// other work of the database, and a smaller step would take as long.
const STEP_MIN: usize = 100;

/// Target time of one step. On SQLite, which has one writer, a fire that is claimed exactly at its time waits for
/// it.
const STEP_MOMENT: Duration = Duration::from_millis(15);

/// Default maximum number of jobs changed by one transaction.
pub(crate) const CHANGES_MAX: usize = 500;

/// Minimum number of jobs: with fewer, the dozen statements of a transaction take longer than its rows, and smaller
/// transactions would not end sooner.
const CHANGES_MIN: usize = 250;

/// Target time of one transaction that changes many jobs. On SQLite all other writes wait for it: no change may delay
/// the fires of other apps by more than 50 ms.
const CHANGES_MOMENT: Duration = Duration::from_millis(40);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_shrink_to_what_fits_into_a_moment_and_grow_while_they_are_full() {
        let check = |size, rows, millis, next| {
            let time = Duration::from_millis(millis);
            let limits = Pace::new().limits;
            assert_eq!(limits.next_size(size, rows, time), next, "{rows} of {size} rows in {millis} ms");
        };
        check(500, 500, 20, 500);
        check(500, 500, 600, 125);
        check(500, 100, 300, 50);
        check(125, 125, 140, 250);
        check(125, 30, 10, 125);
        check(50, 50, 9_000, 50);
    }
}
