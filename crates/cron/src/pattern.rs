//! An expression as bit sets, and the search for the next matching wall-clock time.
//!
//! Time here is *local*: seconds since 1970-01-01T00:00:00 of a wall clock, where every day has 86 400 of them.
//! Zones are handled in `local`.
//!
//! The search is bounded: a time of day is found with three bit scans, and a day by building at most one mask of
//! days per month, each in constant time, for at most the 2 760 months from 1970 to 2199. The length of an
//! expression's lists does not matter, because they have become a few words of bits.

use crate::day::Day;
use crate::days::{MonthDays, MonthShape, WeekDays};
use crate::field::{Expression, Field, YEAR_MAX, YEAR_MIN};
use crate::local::LocalTimes;

/// The fields of an expression as bit sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Pattern {
    seconds: u64,
    minutes: u64,
    hours: u64,
    month_days: MonthDays,
    months: u64,
    week_days: WeekDays,
    years: Years,
    either_day: bool,
}

impl Pattern {
    pub(crate) fn new(expression: &Expression) -> Pattern {
        let values = |field| expression.field(field).iter().flat_map(move |part| part.values(field));
        let bits = |field| values(field).fold(0, |bits, value| bits | 1u64 << value);
        Pattern {
            seconds: bits(Field::Second),
            minutes: bits(Field::Minute),
            hours: bits(Field::Hour),
            month_days: MonthDays::new(expression.field(Field::DayOfMonth), bits(Field::DayOfMonth)),
            months: bits(Field::Month),
            week_days: WeekDays::new(expression.field(Field::DayOfWeek), bits(Field::DayOfWeek)),
            years: Years::new(values(Field::Year)),
            either_day: expression.either_day,
        }
    }

    fn time_at_or_after(&self, second_of_day: i64) -> Option<i64> {
        let (hour, minute, second) = clock(second_of_day);
        let (first_minute, first_second) = (at_or_after(self.minutes, 0)?, at_or_after(self.seconds, 0)?);
        let in_hour = contains(self.hours, hour);
        let in_minute = in_hour && contains(self.minutes, minute);

        let this_minute = || at_or_after(self.seconds, second).map(|s| (hour, minute, s));
        let this_hour = || at_or_after(self.minutes, minute + 1).map(|m| (hour, m, first_second));
        let later = || at_or_after(self.hours, hour + 1).map(|h| (h, first_minute, first_second));
        let found = in_minute.then(this_minute).flatten();
        found.or_else(|| in_hour.then(this_hour).flatten()).or_else(later).map(second_of)
    }

    fn time_at_or_before(&self, second_of_day: i64) -> Option<i64> {
        let (hour, minute, second) = clock(second_of_day);
        let (last_minute, last_second) = (at_or_before(self.minutes, 63)?, at_or_before(self.seconds, 63)?);
        let in_hour = contains(self.hours, hour);
        let in_minute = in_hour && contains(self.minutes, minute);

        let this_minute = || at_or_before(self.seconds, second).map(|s| (hour, minute, s));
        let this_hour = || at_or_before(self.minutes, minute.checked_sub(1)?).map(|m| (hour, m, last_second));
        let earlier =
            || at_or_before(self.hours, hour.checked_sub(1)?).map(|h| (h, last_minute, last_second));
        let found = in_minute.then(this_minute).flatten();
        found.or_else(|| in_hour.then(this_hour).flatten()).or_else(earlier).map(second_of)
    }

    fn day_at_or_after(&self, epoch_day: i64) -> Option<i64> {
        let day = Day::from_epoch_day(epoch_day.min(FAR_DAY));
        let (mut year, mut month, mut from) = (day.year(), u32::from(day.month()), u32::from(day.day()));
        loop {
            let found = self.years.at_or_after(year)?;
            if found > year {
                (year, month, from) = (found, 1, 1);
            }
            let Some(found) = at_or_after(self.months, month) else {
                (year, month, from) = (year + 1, 1, 1);
                continue;
            };
            if found > month {
                (month, from) = (found, 1);
            }
            if let Some(day) = at_or_after(self.days_of(year, month as u8), from) {
                return Some(epoch_day_of(year, month, day));
            }
            (month, from) = (month + 1, 1);
        }
    }

    fn day_at_or_before(&self, epoch_day: i64) -> Option<i64> {
        if epoch_day < 0 {
            return None;
        }
        let day = Day::from_epoch_day(epoch_day.min(FAR_DAY));
        let (mut year, mut month, mut to) = (day.year(), u32::from(day.month()), u32::from(day.day()));
        loop {
            let found = self.years.at_or_before(year)?;
            if found < year {
                (year, month, to) = (found, 12, 31);
            }
            let Some(found) = at_or_before(self.months, month) else {
                (year, month, to) = (year - 1, 12, 31);
                continue;
            };
            if found < month {
                (month, to) = (found, 31);
            }
            if let Some(day) = at_or_before(self.days_of(year, month as u8), to) {
                return Some(epoch_day_of(year, month, day));
            }
            (month, to) = (month - 1, 31);
        }
    }

    /// The matching days of a month, as bits 1 to 31.
    fn days_of(&self, year: i16, month: u8) -> u64 {
        let month = MonthShape::new(year, month);
        let (by_date, by_weekday) = (self.month_days.within(month), self.week_days.within(month));
        if self.either_day { by_date | by_weekday } else { by_date & by_weekday }
    }
}

impl LocalTimes for Pattern {
    fn is_every_hour(&self) -> bool {
        self.hours == (1 << 24) - 1
    }

    fn at_or_after(&self, local: i64) -> Option<i64> {
        let local = local.max(0);
        let (day, second) = (local.div_euclid(DAY), local.rem_euclid(DAY));
        let first = self.day_at_or_after(day)?;
        if first == day
            && let Some(second) = self.time_at_or_after(second)
        {
            return Some(day * DAY + second);
        }
        let first = if first == day { self.day_at_or_after(day + 1)? } else { first };
        Some(first * DAY + self.time_at_or_after(0)?)
    }

    fn at_or_before(&self, local: i64) -> Option<i64> {
        let (day, second) = (local.div_euclid(DAY), local.rem_euclid(DAY));
        let last = self.day_at_or_before(day)?;
        if last == day
            && let Some(second) = self.time_at_or_before(second)
        {
            return Some(day * DAY + second);
        }
        let last = if last == day { self.day_at_or_before(day - 1)? } else { last };
        Some(last * DAY + self.time_at_or_before(DAY - 1)?)
    }
}

const DAY: i64 = 86_400;
/// After the last year of any expression.
const FAR_DAY: i64 = 231 * 366;

fn clock(second_of_day: i64) -> (u32, u32, u32) {
    let second = second_of_day as u32;
    (second / 3_600, second / 60 % 60, second % 60)
}

fn second_of((hour, minute, second): (u32, u32, u32)) -> i64 {
    i64::from(hour * 3_600 + minute * 60 + second)
}

fn epoch_day_of(year: i16, month: u32, day: u32) -> i64 {
    Day::new(year, month as u8, day as u8).expect("the mask has no day that the month lacks").epoch_day()
}

fn contains(bits: u64, index: u32) -> bool {
    bits >> index & 1 == 1
}

/// The lowest bit not below `from`.
fn at_or_after(bits: u64, from: u32) -> Option<u32> {
    let bits = bits & u64::MAX.checked_shl(from)?;
    (bits != 0).then(|| bits.trailing_zeros())
}

/// The highest bit not above `to`, which is 63 at most.
fn at_or_before(bits: u64, to: u32) -> Option<u32> {
    let bits = bits & (u64::MAX >> (63 - to));
    (bits != 0).then(|| 63 - bits.leading_zeros())
}

/// A set of years from [`YEAR_MIN`] to [`YEAR_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Years([u64; 4]);

impl Years {
    fn new(years: impl Iterator<Item = u16>) -> Years {
        let mut words = [0; 4];
        for year in years {
            let index = usize::from(year - YEAR_MIN);
            words[index / 64] |= 1 << (index % 64);
        }
        Years(words)
    }

    fn at_or_after(&self, year: i16) -> Option<i16> {
        (year.max(YEAR_MIN as i16)..=YEAR_MAX as i16).find(|year| self.contains(*year))
    }

    fn at_or_before(&self, year: i16) -> Option<i16> {
        (YEAR_MIN as i16..=year.min(YEAR_MAX as i16)).rev().find(|year| self.contains(*year))
    }

    fn contains(&self, year: i16) -> bool {
        let index = (year - YEAR_MIN as i16) as usize;
        contains(self.0[index / 64], index as u32 % 64)
    }
}
