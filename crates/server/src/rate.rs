//! Rate limits: one token bucket, used alone or for each of many callers.

use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::Mutex;
use std::time::Duration;

/// A token bucket, full at first. It is stored as one time: when it will be full again.
#[derive(Clone, Debug)]
pub struct Bucket {
    /// Time in which one token is added.
    every: Duration,
    /// Time in which an empty bucket fills up.
    burst: Duration,
    /// How far ahead tokens may be taken.
    wait_max: Duration,
    full_at: Duration,
}

impl Bucket {
    /// Bucket that gets one token per `every` and holds the tokens of `burst`. Callers may wait for the next tokens for
    /// up to `wait_max`.
    pub fn new(every: Duration, burst: Duration, wait_max: Duration) -> Bucket {
        Bucket { every, burst, wait_max, full_at: Duration::ZERO }
    }

    /// Takes a token. Returns how long the caller has to wait for it; `None` if that would be too long. `now` never
    /// goes back.
    pub fn take(&mut self, now: Duration) -> Option<Duration> {
        let at = self.full_at.max(now);
        let wait = at.saturating_sub(now + self.burst);
        if wait > self.wait_max {
            return None;
        }
        self.full_at = at + self.every;
        Some(wait)
    }
}

/// A rate limit for each of many callers. Its size is fixed: callers share buckets, found by a secret hash.
pub struct Rates {
    hasher: RandomState,
    buckets: Vec<Mutex<Bucket>>,
}

impl Rates {
    /// Limit of `count` requests per second for each caller, with bursts of one second's worth. Requests above it
    /// wait, but not long.
    pub fn per_second(count: u32) -> Rates {
        Rates::of(Bucket::new(Duration::from_secs(1) / count.max(1), BURST, WAIT_MAX))
    }

    /// A limit with a copy of this bucket for each caller.
    pub fn of(bucket: Bucket) -> Rates {
        let buckets = (0..BUCKETS).map(|_| Mutex::new(bucket.clone())).collect();
        Rates { hasher: RandomState::new(), buckets }
    }

    /// How long that caller has to wait; `None` if that would be too long.
    pub fn turn(&self, caller: impl Hash, now: Duration) -> Option<Duration> {
        let bucket = usize::try_from(self.hasher.hash_one(caller) % BUCKETS).unwrap_or(0);
        self.buckets[bucket].lock().expect("no holder of this lock panics").take(now)
    }
}

/// Large enough that two callers share a bucket only by chance.
const BUCKETS: u64 = 1_024;

/// Unused requests of the last second may be made up for.
const BURST: Duration = Duration::from_secs(1);

/// Maximum wait, the same as in XXL-JOB.
const WAIT_MAX: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_s_worth_passes_at_once_another_waits_and_the_rest_is_refused() {
        let mut bucket = Bucket::new(Duration::from_millis(10), BURST, WAIT_MAX);
        let now = Duration::from_secs(1_000);
        let turns: Vec<_> = (0..300).map(|_| bucket.take(now)).collect();
        assert_eq!(turns.iter().filter(|turn| **turn == Some(Duration::ZERO)).count(), 101);
        assert_eq!(turns.iter().filter(|turn| turn.is_none()).count(), 99);
        assert_eq!(bucket.take(now + Duration::from_secs(3)), Some(Duration::ZERO));
    }

    #[test]
    fn callers_do_not_take_each_others_turns() {
        let rates = Rates::per_second(10);
        let now = Duration::from_secs(1_000);
        let refused = |caller: &str| (0..100).filter(|_| rates.turn(caller, now).is_none()).count();
        assert!(refused("ann") > 70);
        // Of a hundred other callers, hardly any shares the bucket by chance.
        let served = (0..100).filter(|other| rates.turn(format!("other {other}"), now).is_some()).count();
        assert!(served > 90, "{served}");
    }
}
