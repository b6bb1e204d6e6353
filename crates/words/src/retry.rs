//! Retry policy of failed runs.

use std::time::Duration;

/// Retry policy of failed runs. Each attempt is a run of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Retry {
    /// Maximum number of retries, not counting the first attempt.
    #[cfg_attr(feature = "serde", serde(default))]
    pub count: u32,
    /// Delay between the end of an attempt and the next.
    #[cfg_attr(feature = "serde", serde(default))]
    pub backoff: Backoff,
}

/// Backoff between retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)
)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Backoff {
    /// The same delay before each retry.
    Fixed {
        /// Delay, in whole milliseconds.
        #[cfg_attr(feature = "serde", serde(rename = "delay_ms", with = "crate::millis"))]
        #[cfg_attr(feature = "openapi", schema(value_type = u64))]
        delay: Duration,
    },
    /// The delay doubles with each retry.
    Exponential {
        /// Delay before the first retry, in whole milliseconds.
        #[cfg_attr(feature = "serde", serde(rename = "first_ms", with = "crate::millis"))]
        #[cfg_attr(feature = "openapi", schema(value_type = u64))]
        first: Duration,
        /// Maximum delay, in whole milliseconds.
        #[cfg_attr(feature = "serde", serde(rename = "max_ms", with = "crate::millis"))]
        #[cfg_attr(feature = "openapi", schema(value_type = u64))]
        max: Duration,
    },
}

impl Retry {
    /// No retries.
    pub const NONE: Retry = Retry { count: 0, backoff: Backoff::NONE };

    /// Delay after attempt number `attempt` (from 1) failed; `None` if it was the last.
    pub fn delay_after(self, attempt: u32) -> Option<Duration> {
        (attempt <= self.count).then(|| self.backoff.delay_after(attempt))
    }
}

impl Backoff {
    /// No delay.
    pub const NONE: Backoff = Backoff::Fixed { delay: Duration::ZERO };

    /// Longest delay that the backoff can have.
    pub fn longest(self) -> Duration {
        match self {
            Backoff::Fixed { delay } => delay,
            Backoff::Exponential { first, max } => first.max(max),
        }
    }

    /// Text for a column: kind and durations in milliseconds, for example `exponential 1000 60000`.
    pub fn stored(self) -> String {
        match self {
            Backoff::Fixed { delay } => format!("fixed {}", delay.as_millis()),
            Backoff::Exponential { first, max } => {
                format!("exponential {} {}", first.as_millis(), max.as_millis())
            }
        }
    }

    /// Inverse of [`stored`](Backoff::stored); `None` for a text that another program stored.
    pub fn from_stored(text: &str) -> Option<Backoff> {
        let mut words = text.split(' ');
        let kind = words.next()?;
        let mut millis = || Some(Duration::from_millis(words.next()?.parse().ok()?));
        match kind {
            "fixed" => Some(Backoff::Fixed { delay: millis()? }),
            "exponential" => Some(Backoff::Exponential { first: millis()?, max: millis()? }),
            _ => None,
        }
    }

    fn delay_after(self, attempt: u32) -> Duration {
        match self {
            Backoff::Fixed { delay } => delay,
            Backoff::Exponential { first, max } => {
                let doublings = attempt.saturating_sub(1).min(31);
                first.saturating_mul(1 << doublings).min(max)
            }
        }
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Backoff::NONE
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
        check(Retry { count: 2, backoff: Backoff::Fixed { delay: secs(3) } }, &[Some(3), Some(3), None]);
        let growing = Backoff::Exponential { first: secs(1), max: secs(5) };
        check(Retry { count: 4, backoff: growing }, &[Some(1), Some(2), Some(4), Some(5), None]);
        check(Retry { count: u32::MAX, backoff: growing }, &[Some(1), Some(2), Some(4), Some(5), Some(5)]);
    }

    #[test]
    fn a_backoff_is_read_back_as_it_was_stored() {
        let millis = Duration::from_millis;
        let check = |backoff: Backoff, text: &str| {
            assert_eq!(backoff.stored(), text);
            assert_eq!(Backoff::from_stored(text), Some(backoff));
        };
        check(Backoff::Fixed { delay: millis(250) }, "fixed 250");
        check(Backoff::Exponential { first: millis(1_000), max: millis(60_000) }, "exponential 1000 60000");
        for foreign in ["", "fixed", "fixed x", "fixed -1", "exponential 1", "linear 1"] {
            assert_eq!(Backoff::from_stored(foreign), None, "{foreign}");
        }
    }
}
