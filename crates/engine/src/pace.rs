//! Pace: a batch is as large as the database writes in a moment, so that nobody waits long for their turn.
//!
//! Claims, notes and results take turns in the database. While it keeps up, large batches are cheapest. When it does not,
//! a large batch of one kind would make the others wait, and claims that wait longer than they look ahead make fires late.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// How many rows of one kind are written at a time.
#[derive(Debug)]
pub(crate) struct Pace {
    size: AtomicUsize,
    limits: Limits,
}

/// Between which sizes a batch is, and how long it may take.
#[derive(Clone, Copy, Debug)]
struct Limits {
    min: usize,
    max: usize,
    moment: Duration,
}

impl Pace {
    /// For what all jobs need: claims, notes, results.
    pub(crate) fn new() -> Self {
        Pace::within(Limits { min: BATCH_MIN, max: BATCH_MAX, moment: MOMENT })
    }

    /// For one job's stop or deletion, which must not delay the fires of others: at most `max` rows.
    pub(crate) fn step(max: usize) -> Self {
        Pace::within(Limits { min: STEP_MIN.min(max), max, moment: STEP_MOMENT })
    }

    fn within(limits: Limits) -> Self {
        Pace { size: AtomicUsize::new(limits.max), limits }
    }

    /// The most rows of the next batch.
    pub(crate) fn size(&self) -> usize {
        self.size.load(Ordering::Relaxed)
    }

    /// Learns from a batch that was written.
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

/// Rows per transaction: it commits in milliseconds, and the round trip is not the limit.
const BATCH_MAX: usize = 500;

/// So few that they are not worth parting: the commit itself would be most of the work.
const BATCH_MIN: usize = 50;

/// How long one batch may take, with its wait for others. Several kinds and nodes fit into what claims look ahead.
const MOMENT: Duration = Duration::from_millis(150);

/// Rows of one step of a stop or deletion, by default at most.
pub(crate) const STEP_MAX: usize = 200;

/// So few that they are not worth parting.
const STEP_MIN: usize = 20;

/// How long one step may take. On SQLite, which has one writer, a fire that is claimed at its very time waits for it.
const STEP_MOMENT: Duration = Duration::from_millis(15);

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
