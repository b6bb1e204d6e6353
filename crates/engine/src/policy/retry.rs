//! Retry policy of failed runs.

use std::time::Duration;

/// Number and delay of retries. Each attempt is a run of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Maximum number of retries, not counting the first attempt.
    pub count: u32,
    /// Delay between the end of an attempt and the next.
    pub backoff: Backoff,
}

/// Backoff between retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backoff {
    /// The same delay before each retry.
    Fixed(Duration),
    /// Doubles from `first` up to `max`.
    Exponential {
        /// Delay before the first retry.
        first: Duration,
        /// Maximum delay.
        max: Duration,
    },
}

impl Retry {
    /// No retries.
    pub const NONE: Retry = Retry { count: 0, backoff: Backoff::Fixed(Duration::ZERO) };

    /// Delay after attempt number `attempt` (from 1) failed; `None` if it was the last.
    pub fn delay_after(self, attempt: u32) -> Option<Duration> {
        if attempt > self.count {
            return None;
        }
        Some(match self.backoff {
            Backoff::Fixed(delay) => delay,
            Backoff::Exponential { first, max } => {
                let doublings = attempt.saturating_sub(1).min(31);
                first.saturating_mul(1 << doublings).min(max)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_their_limit_and_end_with_the_count() {
        let secs = Duration::from_secs;
        let check = |retry: Retry, expected: &[Option<u64>]| {
            let delays: Vec<_> =
                (1..=expected.len() as u32).map(|attempt| retry.delay_after(attempt)).collect();
            assert_eq!(delays, expected.iter().map(|s| s.map(secs)).collect::<Vec<_>>());
        };
        check(Retry::NONE, &[None, None]);
        check(Retry { count: 2, backoff: Backoff::Fixed(secs(3)) }, &[Some(3), Some(3), None]);
        let growing = Backoff::Exponential { first: secs(1), max: secs(5) };
        check(Retry { count: 4, backoff: growing }, &[Some(1), Some(2), Some(4), Some(5), None]);
        check(Retry { count: u32::MAX, backoff: growing }, &[Some(1), Some(2), Some(4), Some(5), Some(5)]);
    }
}
