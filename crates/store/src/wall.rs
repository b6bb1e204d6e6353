//! Wall-clock times in XXL-JOB's `DATETIME` columns: whole seconds in one zone, which the columns do not name.

use std::time::Duration;

use cron::Zone;
use jiff::SignedDuration;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use timer::Timestamp;

use crate::session::Value;

/// Converts times to the columns' wall-clock times and back.
#[derive(Clone, Debug)]
pub struct Wall {
    zone: TimeZone,
}

impl Wall {
    pub fn new(zone: &Zone) -> Self {
        Wall { zone: TimeZone::get(zone.name()).unwrap_or_else(|_| TimeZone::system()) }
    }

    /// The column value of a time, rounded down to the second: rounding up would put a run into the future.
    pub fn time(&self, at: Timestamp) -> Value {
        Value::Time(written(self.shown(at)))
    }

    /// The first column value that stands for this time or a later one. A value that clocks show twice stands for
    /// the first of the two; while clocks show it again, the result is the next value that they show only once.
    pub fn first_from(&self, at: Timestamp) -> Value {
        let second = at.as_millis().div_euclid(1_000).clamp(FIRST_SECOND, LAST_SECOND);
        let instant = jiff::Timestamp::from_second(second).expect("between the years 1970 and 9999");
        let shown = self.zone.to_datetime(instant);
        let first = self.zone.to_ambiguous_timestamp(shown).compatible().unwrap_or(instant);
        if first >= instant {
            return Value::Time(written(shown));
        }
        let put_back = self.zone.preceding(instant + SignedDuration::from_secs(1)).next();
        let put_back = put_back.map_or(instant, |change| change.timestamp());
        Value::Time(written(self.zone.to_datetime(put_back + (instant - first))))
    }

    /// The smallest column value that was written between `from` and `now`. After clocks were set back, it is less
    /// than the value at `from`.
    pub fn least(&self, from: Timestamp, now: Timestamp) -> Value {
        let between = SignedDuration::from_millis(now.as_millis().saturating_sub(from.as_millis()));
        let shown = self.shown(from);
        let put_back = self.shown(now).saturating_sub(between);
        Value::Time(written(shown.min(put_back)))
    }

    /// The day of a time: its date, its first second and that of the next day.
    pub fn day(&self, at: Timestamp) -> (String, Value, Value) {
        let date = self.shown(at).date();
        let start = |date: Date| Value::Time(written(date.at(0, 0, 0, 0)));
        (date.to_string(), start(date), start(date.tomorrow().unwrap_or(date)))
    }

    /// The wall-clock time in this zone.
    fn shown(&self, at: Timestamp) -> DateTime {
        let second = at.as_millis().div_euclid(1_000).clamp(FIRST_SECOND, LAST_SECOND);
        let instant = jiff::Timestamp::from_second(second).expect("between the years 1970 and 9999");
        self.zone.to_datetime(instant)
    }

    /// The time of a column value; in the hour that clocks show twice, the first of the two.
    pub fn instant(&self, text: &str) -> Option<Timestamp> {
        let time: DateTime = text.parse().ok()?;
        let instant = self.zone.to_ambiguous_timestamp(time).compatible().ok()?;
        Some(Timestamp::from_millis(instant.as_millisecond()))
    }

    /// The time of a recently written value; of two, the last that is not after `now`.
    pub fn instant_before(&self, text: &str, now: Timestamp) -> Option<Timestamp> {
        let time: DateTime = text.parse().ok()?;
        let later = self.zone.to_ambiguous_timestamp(time).later().ok()?;
        let later = Timestamp::from_millis(later.as_millisecond());
        if later <= now + CLOCKS_DIFFER { Some(later) } else { self.instant(text) }
    }
}

/// The clock of the writer may be ahead of ours by this much.
const CLOCKS_DIFFER: Duration = Duration::from_secs(60);

fn written(time: DateTime) -> String {
    let (year, month, day) = (time.year(), time.month(), time.day());
    let (hour, minute, second) = (time.hour(), time.minute(), time.second());
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}

/// Range of `DATETIME` in all databases, one day short at both ends so that every zone fits.
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

    #[test]
    fn spans_next_to_each_other_share_no_value() {
        let check = |zone: &str, second: i64, text: &str| {
            let wall = Wall::new(&Zone::parse(zone).unwrap());
            assert_eq!(wall.first_from(Timestamp::from_millis(second * 1_000)), Value::Time(text.into()));
        };
        check("Asia/Shanghai", 1_782_000_000, "2026-06-21 08:00:00");
        check("Europe/London", 1_792_888_200, "2026-10-25 01:30:00");
        check("Europe/London", 1_792_889_999, "2026-10-25 01:59:59");
        check("Europe/London", 1_792_890_000, "2026-10-25 02:00:00");
        check("Europe/London", 1_792_891_800, "2026-10-25 02:00:00");
        check("Europe/London", 1_792_893_601, "2026-10-25 02:00:01");
    }

    #[test]
    fn around_the_hour_that_comes_twice_nobody_looks_gone() {
        let london = Wall::new(&Zone::parse("Europe/London").unwrap());
        let check = |from: i64, now: i64, text: &str| {
            let (from, now) = (Timestamp::from_millis(from * 1_000), Timestamp::from_millis(now * 1_000));
            assert_eq!(london.least(from, now), Value::Time(text.into()));
        };
        // 00:58:30 to 01:00:00 summer time, then 90 s around the moment when 02:00 becomes 01:00.
        check(1_792_886_310, 1_792_886_400, "2026-10-25 00:58:30");
        check(1_792_889_940, 1_792_890_030, "2026-10-25 00:59:00");
        let seen = |text: &str, now: i64| {
            let now = Timestamp::from_millis(now * 1_000);
            london.instant_before(text, now).map(|at| at.as_millis() / 1_000)
        };
        assert_eq!(seen("2026-10-25 01:30:00", 1_792_888_210), Some(1_792_888_200));
        assert_eq!(seen("2026-10-25 01:30:00", 1_792_891_810), Some(1_792_891_800));
    }
}
