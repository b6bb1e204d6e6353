//! Sleeping tasks, ordered by wake time. Both clocks keep one of these.

use std::collections::BTreeMap;
use std::task::Waker;
use std::time::Duration;

/// Wakers by the monotonic time they wait for.
#[derive(Debug, Default)]
pub(crate) struct Sleepers {
    waiting: BTreeMap<Bed, Waker>,
    next_number: u64,
}

/// Wake time, and a number that distinguishes sleepers with the same wake time.
pub(crate) type Bed = (Duration, u64);

impl Sleepers {
    pub fn bed(&mut self, due: Duration) -> Bed {
        self.next_number += 1;
        (due, self.next_number)
    }

    /// Adds a sleeper or replaces its waker.
    pub fn sleep(&mut self, bed: Bed, waker: &Waker) {
        self.waiting.insert(bed, waker.clone());
    }

    pub fn leave(&mut self, bed: Bed) {
        self.waiting.remove(&bed);
    }

    /// Removes all wakers due by `now`, the earliest first.
    pub fn take_due(&mut self, now: Duration) -> impl Iterator<Item = Waker> + use<> {
        let later = self.waiting.split_off(&(now.saturating_add(Duration::from_nanos(1)), 0));
        std::mem::replace(&mut self.waiting, later).into_values()
    }

    pub fn first_due(&self) -> Option<Duration> {
        self.waiting.first_key_value().map(|((due, _), _)| *due)
    }

    pub fn len(&self) -> usize {
        self.waiting.len()
    }
}
