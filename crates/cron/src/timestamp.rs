//! A point in time: milliseconds since 1970-01-01T00:00:00Z.
//!
//! The one type for this in all crates. Databases, wire formats and tests use a plain integer; only this crate uses
//! a calendar library.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

/// A point in time, in whole milliseconds since the Unix epoch.
///
/// ```
/// use std::time::Duration;
/// use tickwright_cron::Timestamp;
///
/// let at = Timestamp::from_millis(1_782_000_000_500);
/// assert_eq!(at.to_string(), "2026-06-21T00:00:00.5Z");
/// assert_eq!((at + Duration::from_secs(2)).as_millis(), 1_782_000_002_500);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The time `millis` after (or, negative, before) the epoch.
    pub const fn from_millis(millis: i64) -> Self {
        Timestamp(millis)
    }

    /// Milliseconds since the epoch.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Time since `earlier`; zero if this is not after it.
    pub fn duration_since(self, earlier: Timestamp) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0).max(0) as u64)
    }
}

impl Add<Duration> for Timestamp {
    type Output = Timestamp;

    /// Saturates at the last representable time.
    fn add(self, length: Duration) -> Timestamp {
        Timestamp(self.0.saturating_add(i64::try_from(length.as_millis()).unwrap_or(i64::MAX)))
    }
}

impl Sub<Duration> for Timestamp {
    type Output = Timestamp;

    fn sub(self, length: Duration) -> Timestamp {
        Timestamp(self.0.saturating_sub(i64::try_from(length.as_millis()).unwrap_or(i64::MAX)))
    }
}

impl fmt::Display for Timestamp {
    /// RFC 3339 in UTC, or the plain number outside the calendar's range.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(at) => at.fmt(f),
            Err(_) => write!(f, "{} ms", self.0),
        }
    }
}
