//! An expression as sets of bits, and the search for the next wall-clock time that fits.
//!
//! Time here is *local*: seconds since 1970-01-01T00:00:00 on the wall of some place, where every day has
//! 86 400 of them. What a zone does to it is `cron`'s to say.
//!
//! The search is bounded: a time of day is found with three bit scans, and a day by building at most one
//! mask of days per month, each in constant time, for at most the 2 760 months from 1970 to 2199. However
//! long an expression's lists are, they have become a handful of words by then.

use crate::calendar::{Day, month_length};
use crate::field::{Expression, Field, Part, YEAR_MAX, YEAR_MIN};

/// What the fields of an expression mean.
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

    /// Whether it speaks of minutes in whichever hour, not of hours.
    pub(crate) fn is_every_hour(&self) -> bool {
        self.hours == (1 << 24) - 1
    }

    /// The first fitting local second not before `local`.
    pub(crate) fn at_or_after(&self, local: i64) -> Option<i64> {
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

    /// The last fitting local second not after `local`.
    pub(crate) fn at_or_before(&self, local: i64) -> Option<i64> {
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

    fn time_at_or_after(&self, second_of_day: i64) -> Option<i64> {
        let (hour, minute, second) = clock(second_of_day);
        let first = |bits| at_or_after(bits, 0);
        let (h, m, s) = match at_or_after(self.hours, hour)? {
            h if h > hour => (h, first(self.minutes)?, first(self.seconds)?),
            h => match at_or_after(self.minutes, minute) {
                Some(m) if m > minute => (h, m, first(self.seconds)?),
                Some(m) if at_or_after(self.seconds, second).is_some() => {
                    (h, m, at_or_after(self.seconds, second)?)
                }
                Some(m) if at_or_after(self.minutes, m + 1).is_some() => {
                    (h, at_or_after(self.minutes, m + 1)?, first(self.seconds)?)
                }
                _ => (at_or_after(self.hours, h + 1)?, first(self.minutes)?, first(self.seconds)?),
            },
        };
        Some(second_of(h, m, s))
    }

    fn time_at_or_before(&self, second_of_day: i64) -> Option<i64> {
        let (hour, minute, second) = clock(second_of_day);
        let last = |bits| at_or_before(bits, 63);
        let (h, m, s) = match at_or_before(self.hours, hour)? {
            h if h < hour => (h, last(self.minutes)?, last(self.seconds)?),
            h => match at_or_before(self.minutes, minute) {
                Some(m) if m < minute => (h, m, last(self.seconds)?),
                Some(m) if at_or_before(self.seconds, second).is_some() => {
                    (h, m, at_or_before(self.seconds, second)?)
                }
                Some(m) if m > 0 && at_or_before(self.minutes, m - 1).is_some() => {
                    (h, at_or_before(self.minutes, m - 1)?, last(self.seconds)?)
                }
                _ if h == 0 => return None,
                _ => (at_or_before(self.hours, h - 1)?, last(self.minutes)?, last(self.seconds)?),
            },
        };
        Some(second_of(h, m, s))
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

    /// The fitting days of a month, as bits 1 to 31.
    fn days_of(&self, year: i16, month: u8) -> u64 {
        let month = MonthShape {
            length: u32::from(month_length(year, month)),
            // 1970-01-01 was a Thursday.
            first_weekday: (epoch_day_of(year, u32::from(month), 1) + 4).rem_euclid(7) as u32,
        };
        let (by_date, by_weekday) = (self.month_days.within(month), self.week_days.within(month));
        if self.either_day { by_date | by_weekday } else { by_date & by_weekday }
    }
}

const DAY: i64 = 86_400;
/// Past every year an expression can name.
const FAR_DAY: i64 = 231 * 366;

fn clock(second_of_day: i64) -> (u32, u32, u32) {
    let second = second_of_day as u32;
    (second / 3_600, second / 60 % 60, second % 60)
}

fn second_of(hour: u32, minute: u32, second: u32) -> i64 {
    i64::from(hour * 3_600 + minute * 60 + second)
}

fn epoch_day_of(year: i16, month: u32, day: u32) -> i64 {
    Day::new(year, month as u8, day as u8).expect("the mask has no day that the month lacks").epoch_day()
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

/// The positions of the bits that are set.
fn ones(mut bits: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let lowest = (bits != 0).then(|| bits.trailing_zeros())?;
        bits &= bits - 1;
        Some(lowest)
    })
}

/// What the rules about days need to know of a month.
#[derive(Clone, Copy)]
struct MonthShape {
    length: u32,
    /// 0 is Sunday.
    first_weekday: u32,
}

impl MonthShape {
    fn all(self) -> u64 {
        ((1 << self.length) - 1) << 1
    }

    /// The workday nearest to `day`, without leaving the month.
    fn nearest_workday(self, day: u32) -> u32 {
        match (self.first_weekday + day - 1) % 7 {
            6 if day == 1 => 3,
            6 => day - 1,
            0 if day == self.length => day - 2,
            0 => day + 1,
            _ => day,
        }
    }

    /// The `nth` (from 1) such weekday, 1 being Sunday; may lie past the month's end.
    fn nth_weekday(self, weekday: u32, nth: u32) -> u32 {
        (weekday - 1 + 7 - self.first_weekday) % 7 + 1 + (nth - 1) * 7
    }
}

/// Day-of-month: sets of `n` for each way of writing it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
struct MonthDays {
    /// `n`.
    plain: u64,
    /// `L-n`.
    last: u64,
    /// `L-nW`.
    last_workday: u64,
    /// `nW`.
    nearest: u64,
}

impl MonthDays {
    fn new(parts: &[Part], plain: u64) -> MonthDays {
        let mut days =
            MonthDays { plain: if parts.is_empty() { u64::MAX } else { plain }, ..Self::default() };
        if days.plain.count_ones() == 31 {
            days.plain = u64::MAX;
        }
        for part in parts {
            match *part {
                Part::Last { before, workday: false } => days.last |= 1 << before,
                Part::Last { before, workday: true } => days.last_workday |= 1 << before,
                Part::Nearest(day) => days.nearest |= 1 << day,
                _ => {}
            }
        }
        days
    }

    fn within(&self, month: MonthShape) -> u64 {
        let from_end =
            |bits: u64| ones(bits).filter_map(move |n| month.length.checked_sub(n)).filter(|d| *d > 0);
        let mut days = self.plain & month.all();
        for day in from_end(self.last) {
            days |= 1 << day;
        }
        for day in from_end(self.last_workday).chain(ones(self.nearest).filter(|day| *day <= month.length)) {
            days |= 1 << month.nearest_workday(day);
        }
        days
    }
}

/// Day-of-week: sets of weekdays (bit 1 is Sunday) for each way of writing it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
struct WeekDays {
    plain: u64,
    /// `6L`.
    last: u64,
    /// `6#n`, by n from 1.
    nth: [u8; 6],
}

impl WeekDays {
    fn new(parts: &[Part], plain: u64) -> WeekDays {
        let mut days =
            WeekDays { plain: if parts.is_empty() { EVERY_WEEKDAY } else { plain }, ..Self::default() };
        for part in parts {
            match *part {
                Part::LastOf(weekday) => days.last |= 1 << weekday,
                Part::Nth { weekday, nth } => days.nth[usize::from(nth)] |= 1 << weekday,
                _ => {}
            }
        }
        days
    }

    fn within(&self, month: MonthShape) -> u64 {
        if self.plain == EVERY_WEEKDAY {
            return month.all();
        }
        // One week as seven bits, turned so that the month's first day is the lowest, then laid out five times.
        let week = self.plain >> 1;
        let turned = (week >> month.first_weekday | week << (7 - month.first_weekday)) & 0x7f;
        let mut days = (turned * (1 | 1 << 7 | 1 << 14 | 1 << 21 | 1 << 28)) << 1;
        for weekday in ones(self.last) {
            let fifth = month.nth_weekday(weekday, 5);
            days |= 1 << if fifth <= month.length { fifth } else { fifth - 7 };
        }
        for (nth, weekdays) in (0..).zip(self.nth) {
            for weekday in ones(u64::from(weekdays)) {
                days |= 1 << month.nth_weekday(weekday, nth);
            }
        }
        days & month.all()
    }
}

const EVERY_WEEKDAY: u64 = 0b1111_1110;

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
        self.0[index / 64] >> (index % 64) & 1 == 1
    }
}
