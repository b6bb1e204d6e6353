//! Rate limit per caller.

use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::Mutex;
use std::time::Duration;

/// Allows a number of requests per second, with bursts of one second's worth. Requests above it wait, but not
/// long.
struct Rate {
    every: Duration,
    /// When the next request is due, at an even rate.
    next: Mutex<Duration>,
}

impl Rate {
    /// Limit of `count` requests per second.
    fn per_second(count: u32) -> Rate {
        Rate { every: Duration::from_secs(1) / count.max(1), next: Mutex::new(Duration::ZERO) }
    }

    /// How long a caller has to wait; `None` if that would be too long. `now` never goes back.
    fn turn(&self, now: Duration) -> Option<Duration> {
        let mut next = self.next.lock().expect("no holder of this lock panics");
        let at = (*next).max(now.saturating_sub(BURST));
        let wait = at.saturating_sub(now);
        if wait > WAIT_MAX {
            return None;
        }
        *next = at + self.every;
        Some(wait)
    }
}

/// A rate limit for each of many callers. Its size is fixed: callers share lanes, found by a secret hash.
pub struct Rates {
    hasher: RandomState,
    lanes: Vec<Rate>,
}

impl Rates {
    /// Limit of `count` requests per second for each caller.
    pub fn per_second(count: u32) -> Rates {
        let lanes = (0..LANES).map(|_| Rate::per_second(count)).collect();
        Rates { hasher: RandomState::new(), lanes }
    }

    /// How long that caller has to wait; `None` if that would be too long.
    pub fn turn(&self, caller: impl Hash, now: Duration) -> Option<Duration> {
        let lane = self.hasher.hash_one(caller) % LANES;
        self.lanes[usize::try_from(lane).unwrap_or(0)].turn(now)
    }
}

/// Large enough that two callers share a lane only by chance.
const LANES: u64 = 1_024;

/// Unused requests of the last second may be made up for.
const BURST: Duration = Duration::from_secs(1);

/// Maximum wait, the same as in XXL-JOB.
const WAIT_MAX: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_s_worth_passes_at_once_another_waits_and_the_rest_is_refused() {
        let rate = Rate::per_second(100);
        let now = Duration::from_secs(1_000);
        let turns: Vec<_> = (0..300).map(|_| rate.turn(now)).collect();
        assert_eq!(turns.iter().filter(|turn| **turn == Some(Duration::ZERO)).count(), 101);
        assert_eq!(turns.iter().filter(|turn| turn.is_none()).count(), 99);
        assert_eq!(rate.turn(now + Duration::from_secs(3)), Some(Duration::ZERO));
    }

    #[test]
    fn callers_do_not_take_each_others_turns() {
        let rates = Rates::per_second(10);
        let now = Duration::from_secs(1_000);
        let refused = |caller: &str| (0..100).filter(|_| rates.turn(caller, now).is_none()).count();
        assert!(refused("ann") > 70);
        // Of a hundred other callers, hardly any shares the lane by chance.
        let served = (0..100).filter(|other| rates.turn(format!("other {other}"), now).is_some()).count();
        assert!(served > 90, "{served}");
    }
}
