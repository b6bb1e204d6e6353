//! Time zones by name, and their periods of constant offset.

use std::fmt;
use std::str::FromStr;

use jiff::tz::TimeZone;

use crate::day::Day;
use crate::error::Error;
use crate::timestamp::Timestamp;

/// A time zone of the IANA database. Cheap to clone.
///
/// The machine's own database is used if there is one, else the built-in copy.
///
/// ```
/// use tickwright_cron::Zone;
///
/// let zone: Zone = "asia/shanghai".parse().unwrap();
/// assert_eq!(zone.name(), "Asia/Shanghai");
///
/// let error = Zone::parse("Shanghai").unwrap_err();
/// assert!(error.to_string().contains("did you mean `Asia/Shanghai`?"));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Zone(TimeZone);

impl Zone {
    /// The zone of that name, such as `Europe/London`; case-insensitive.
    pub fn parse(name: &str) -> Result<Zone, Error> {
        match TimeZone::get(name.trim()) {
            Ok(zone) => Ok(Zone(zone)),
            Err(_) => Err(Error::Zone { name: name.to_owned(), suggestion: similar(name) }),
        }
    }

    /// Coordinated universal time.
    pub fn utc() -> Zone {
        Zone(TimeZone::UTC)
    }

    /// The zone of this machine (`TZ`, or its system setting); UTC if it has none. The only function here that
    /// depends on the machine.
    pub fn system() -> Zone {
        TimeZone::try_system().map_or_else(|_| Zone::utc(), Zone)
    }

    /// Its name in the database; `local`, which cannot be parsed, if the machine's setting has no name.
    pub fn name(&self) -> &str {
        self.0.iana_name().unwrap_or("local")
    }

    /// The date in this zone at that time; outside the calendar's range, its first or last date.
    pub fn day_at(&self, at: Timestamp) -> Day {
        let second = at.as_millis().div_euclid(1_000).clamp(-SECOND_LIMIT, SECOND_LIMIT);
        Day::from_epoch_day((second + self.offset_at(second)).div_euclid(86_400))
    }

    /// The first time of that day in this zone.
    ///
    /// ```
    /// use tickwright_cron::{Timestamp, Zone};
    ///
    /// let zone = Zone::parse("Asia/Shanghai").unwrap();
    /// let start = zone.start_of("2026-06-21".parse().unwrap());
    /// assert_eq!(start.to_string(), "2026-06-20T16:00:00Z");
    /// ```
    pub fn start_of(&self, day: Day) -> Timestamp {
        self.end_of(Day::from_epoch_day(day.epoch_day() - 1))
    }

    /// The first time in this zone that is later than that whole day.
    pub(crate) fn end_of(&self, day: Day) -> Timestamp {
        let midnight = (day.epoch_day() + 1) * 86_400;
        let mut second = midnight - OFFSET_MAX;
        loop {
            let period = self.period_at(second);
            let here = (midnight - period.offset).max(period.start);
            if here < period.end {
                return Timestamp::from_millis(here * 1_000);
            }
            second = period.end;
        }
    }

    /// The period of constant offset that contains this time, in seconds since the epoch.
    pub(crate) fn period_at(&self, second: i64) -> Period {
        let instant = instant(second);
        let offset = self.offset_at(second);
        let before = self.0.preceding(instant + jiff::SignedDuration::from_secs(1)).next();
        let start = before.map_or(i64::MIN / 2, |transition| transition.timestamp().as_second());
        let after = self.0.following(instant).next();
        Period {
            start,
            end: after.as_ref().map_or(i64::MAX / 2, |transition| transition.timestamp().as_second()),
            offset,
            offset_before: if start > -SECOND_LIMIT { self.offset_at(start - 1) } else { offset },
            offset_after: after.map_or(offset, |transition| i64::from(transition.offset().seconds())),
        }
    }

    fn offset_at(&self, second: i64) -> i64 {
        i64::from(self.0.to_offset(instant(second)).seconds())
    }
}

/// No zone is further from UTC; the calendar library's own limit.
pub(crate) const OFFSET_MAX: i64 = 26 * 3_600;

/// Times further than this from the epoch (about 7 900 years) are outside the calendar library's range.
const SECOND_LIMIT: i64 = 250_000_000_000;

fn instant(second: i64) -> jiff::Timestamp {
    jiff::Timestamp::from_second(second.clamp(-SECOND_LIMIT, SECOND_LIMIT))
        .expect("within the library's range")
}

/// Times `start..end` with one offset, and the offsets before and after; all in seconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Period {
    pub(crate) start: i64,
    pub(crate) end: i64,
    pub(crate) offset: i64,
    pub(crate) offset_before: i64,
    pub(crate) offset_after: i64,
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Zone({})", self.name())
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Zone {
    type Err = Error;

    fn from_str(name: &str) -> Result<Zone, Error> {
        Zone::parse(name)
    }
}

/// Finds a zone with `name` as its city, or a name with few typing errors.
fn similar(name: &str) -> Option<String> {
    let wanted = name.trim().to_ascii_lowercase().replace(' ', "_");
    if matches!(wanted.as_str(), "beijing" | "asia/beijing" | "china" | "gmt+8" | "utc+8") {
        return Some("Asia/Shanghai".to_owned());
    }
    // Offsets are not guessed: `Etc/GMT+5` looks like `GMT+5` and means the opposite.
    if wanted.len() > NAME_MAX || wanted.contains(|letter: char| letter.is_ascii_digit()) {
        return None;
    }
    // At most one error in every four letters, or `CST` would match `EST`.
    let errors_max = (wanted.len().saturating_sub(1) / 3).min(2);
    let distance = |zone: &str| {
        let zone = zone.to_ascii_lowercase();
        let city = zone.rsplit('/').next().unwrap_or(&zone);
        edits(&wanted, &zone).min(edits(&wanted, city))
    };
    jiff::tz::db()
        .available()
        .map(|zone| (distance(zone.as_str()), zone.as_str().to_owned()))
        .filter(|(errors, _)| *errors <= errors_max)
        .min()
        .map(|(_, zone)| zone)
}

/// No name in the database is longer, so longer input is not compared.
const NAME_MAX: usize = 40;

/// Edit distance: letters to change, add or remove to turn one word into the other.
fn edits(from: &str, to: &str) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in to.bytes().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_name_gets_the_nearest_right_one() {
        let check = |name: &str, suggestion: Option<&str>| match Zone::parse(name) {
            Err(Error::Zone { suggestion: found, .. }) => assert_eq!(found.as_deref(), suggestion, "{name}"),
            other => panic!("{name}: {other:?}"),
        };
        check("Europe/Lodnon", Some("Europe/London"));
        check("New York", Some("America/New_York"));
        check("Beijing", Some("Asia/Shanghai"));
        check("GMT+8", Some("Asia/Shanghai"));
        check("GMT+5", None);
        check("CST", None);
        check("../../etc/passwd", None);
        check("Middle-earth/Mordor", None);
        check("", None);
        check(&"x".repeat(100_000), None);
    }

    #[test]
    fn a_day_ends_where_the_next_one_begins() {
        let check = |zone: &str, day: &str, end: &str| {
            let zone = Zone::parse(zone).unwrap();
            assert_eq!(zone.end_of(day.parse().unwrap()).to_string(), end);
        };
        check("UTC", "2026-06-21", "2026-06-22T00:00:00Z");
        check("Asia/Shanghai", "2026-06-21", "2026-06-21T16:00:00Z");
        // Samoa had no 30 December 2011.
        check("Pacific/Apia", "2011-12-29", "2011-12-30T10:00:00Z");
        // Midnight comes twice; the first ends the day.
        check("America/Havana", "2026-10-31", "2026-11-01T04:00:00Z");
    }
}
