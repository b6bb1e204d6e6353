//! The wall times in XXL-JOB's `DATETIME` columns: whole seconds in one zone, which the columns do not name.

use cron::Zone;
use jiff::tz::TimeZone;
use timer::Timestamp;

use crate::session::Value;

/// Turns instants into the columns' wall times and back.
#[derive(Clone, Debug)]
pub struct Wall {
    zone: TimeZone,
}

impl Wall {
    pub fn new(zone: &Zone) -> Self {
        Wall { zone: TimeZone::get(zone.name()).unwrap_or_else(|_| TimeZone::system()) }
    }

    /// The column's value at that instant, cut to the second: rounding up would put a run into the future.
    pub fn time(&self, at: Timestamp) -> Value {
        let second = at.as_millis().div_euclid(1_000).clamp(FIRST_SECOND, LAST_SECOND);
        let instant = jiff::Timestamp::from_second(second).expect("between the years 1970 and 9999");
        let time = self.zone.to_datetime(instant);
        Value::Time(format!(
            "{:04}-{:02}-{:02} {:02}:{:02}:{:02}",
            time.year(),
            time.month(),
            time.day(),
            time.hour(),
            time.minute(),
            time.second()
        ))
    }

    /// The instant of a column's value; of two, in the hour that clocks show twice, the first.
    pub fn instant(&self, text: &str) -> Option<Timestamp> {
        let time: jiff::civil::DateTime = text.parse().ok()?;
        let instant = self.zone.to_ambiguous_timestamp(time).compatible().ok()?;
        Some(Timestamp::from_millis(instant.as_millisecond()))
    }
}

/// What `DATETIME` holds in all databases, a day short of its ends so that every zone fits.
const FIRST_SECOND: i64 = 86_400;
const LAST_SECOND: i64 = 253_402_128_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_come_back_cut_to_the_second() {
        let check = |zone: &str, millis: i64, text: &str, back: i64| {
            let wall = Wall::new(&Zone::parse(zone).unwrap());
            assert_eq!(wall.time(Timestamp::from_millis(millis)), Value::Time(text.into()));
            assert_eq!(wall.instant(text), Some(Timestamp::from_millis(back)));
        };
        check("UTC", 1_782_000_000_999, "2026-06-21 00:00:00", 1_782_000_000_000);
        check("Asia/Shanghai", 1_782_000_000_000, "2026-06-21 08:00:00", 1_782_000_000_000);
        // Clocks show 01:30 twice.
        check("Europe/London", 1_792_888_200_000, "2026-10-25 01:30:00", 1_792_888_200_000);
        check("Europe/London", 1_792_891_800_000, "2026-10-25 01:30:00", 1_792_888_200_000);
        check("UTC", i64::MIN, "1970-01-02 00:00:00", 86_400_000);
        check("UTC", i64::MAX, "9999-12-30 00:00:00", 253_402_128_000_000);
    }
}
