//! Times in XXL-JOB's formats.

use cron::{Timestamp, Zone};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Span, Zoned};

/// Local time in the zone, to the second.
pub fn wall(at: Timestamp, zone: &Zone) -> String {
    zoned(at, zone).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// Local date in the zone.
pub fn day(at: Timestamp, zone: &Zone) -> String {
    zoned(at, zone).strftime("%Y-%m-%d").to_string()
}

/// UTC time, with milliseconds.
pub fn universal(at: Timestamp) -> String {
    zoned(at, &Zone::utc()).strftime("%Y-%m-%dT%H:%M:%S%.3f+00:00").to_string()
}

/// Parses a local time in the zone; of two possible times, returns the first.
pub fn read(text: &str, zone: &Zone) -> Option<Timestamp> {
    let shown = DateTime::strptime("%Y-%m-%d %H:%M:%S", text.trim()).ok()?;
    let at = calendar(zone).to_ambiguous_timestamp(shown).compatible().ok()?;
    Some(Timestamp::from_millis(at.as_millisecond()))
}

/// Time that many months earlier.
pub fn months_before(at: Timestamp, months: i32, zone: &Zone) -> Timestamp {
    let then = zoned(at, zone).checked_sub(Span::new().months(months));
    then.map_or(at, |then| Timestamp::from_millis(then.timestamp().as_millisecond()))
}

fn zoned(at: Timestamp, zone: &Zone) -> Zoned {
    let instant = jiff::Timestamp::from_millisecond(at.as_millis()).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    instant.to_zoned(calendar(zone))
}

fn calendar(zone: &Zone) -> TimeZone {
    TimeZone::get(zone.name()).unwrap_or_else(|_| TimeZone::system())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_read_as_in_xxl_job() {
        let at = Timestamp::from_millis(1_713_343_811_000);
        let shanghai = Zone::parse("Asia/Shanghai").unwrap();
        assert_eq!(universal(at), "2024-04-17T08:50:11.000+00:00");
        assert_eq!(wall(at, &shanghai), "2024-04-17 16:50:11");
        assert_eq!(day(at, &shanghai), "2024-04-17");
        assert_eq!(read("2024-04-17 16:50:11", &shanghai), Some(at));
        assert_eq!(read("yesterday", &shanghai), None);
        let before = months_before(read("2024-03-31 12:00:00", &shanghai).unwrap(), 1, &shanghai);
        assert_eq!(wall(before, &shanghai), "2024-02-29 12:00:00");
    }
}
