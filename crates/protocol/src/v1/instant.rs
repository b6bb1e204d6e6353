//! Timestamp in requests and responses.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Timestamp with millisecond precision, written as RFC 3339 in UTC, for example `2026-06-21T08:00:00.000Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(jiff::Timestamp);

impl Instant {
    /// Converts milliseconds since the Unix epoch; values outside the supported range are clamped.
    pub fn from_millis(millis: i64) -> Instant {
        let edge = if millis < 0 { jiff::Timestamp::MIN } else { jiff::Timestamp::MAX };
        Instant(jiff::Timestamp::from_millisecond(millis).unwrap_or(edge))
    }

    /// Milliseconds since the Unix epoch.
    pub fn millis(self) -> i64 {
        self.0.as_millisecond()
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", self.0)
    }
}

impl FromStr for Instant {
    type Err = NotAnInstant;

    fn from_str(text: &str) -> Result<Instant, NotAnInstant> {
        let at: jiff::Timestamp =
            text.parse().map_err(|_| NotAnInstant(text.chars().take(SHOWN_MAX).collect()))?;
        Ok(Instant::from_millis(at.as_millisecond()))
    }
}

/// The text is not a timestamp.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a time; use for example `2026-06-21T08:00:00Z` or `2026-06-21T10:00:00+02:00`")]
pub struct NotAnInstant(String);

/// Maximum length of the invalid text in the error message.
const SHOWN_MAX: usize = 40;

impl Serialize for Instant {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Instant {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Instant, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_written_in_utc_to_the_millisecond() {
        let check = |millis, text: &str| {
            assert_eq!(Instant::from_millis(millis).to_string(), text);
            assert_eq!(text.parse(), Ok(Instant::from_millis(millis)));
        };
        check(0, "1970-01-01T00:00:00.000Z");
        check(1_782_028_800_123, "2026-06-21T08:00:00.123Z");
        assert_eq!("2026-06-21T10:00:00+02:00".parse(), Ok(Instant::from_millis(1_782_028_800_000)));
        assert!("yesterday".parse::<Instant>().is_err());
        assert!(Instant::from_millis(i64::MAX).to_string().starts_with("9999-12-3"));
    }
}
