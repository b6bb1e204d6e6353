//! The two day fields: the matching days of a given month, as bits 1 to 31.

use crate::day::{Day, month_length};
use crate::field::Part;

/// Day-of-month: sets of `n` for each notation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct MonthDays {
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
    /// `plain` holds the values of the parts that have any; an empty list of parts is `?`.
    pub(crate) fn new(parts: &[Part], plain: u64) -> MonthDays {
        let mut days =
            MonthDays { plain: if parts.is_empty() { EVERY_DAY } else { plain }, ..Self::default() };
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

    pub(crate) fn within(&self, month: MonthShape) -> u64 {
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

const EVERY_DAY: u64 = 0xffff_fffe;

/// Day-of-week: sets of weekdays (bit 1 is Sunday) for each notation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct WeekDays {
    plain: u64,
    /// `6L`.
    last: u64,
    /// `6#n`, by n from 1.
    nth: [u8; 6],
}

impl WeekDays {
    /// Same as [`MonthDays::new`].
    pub(crate) fn new(parts: &[Part], plain: u64) -> WeekDays {
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

    pub(crate) fn within(&self, month: MonthShape) -> u64 {
        if self.plain == EVERY_WEEKDAY {
            return month.all();
        }
        // One week as seven bits, rotated so that the month's first day is the lowest, then repeated five times.
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

/// Length and first weekday of a month.
#[derive(Clone, Copy)]
pub(crate) struct MonthShape {
    length: u32,
    /// 0 is Sunday.
    first_weekday: u32,
}

impl MonthShape {
    pub(crate) fn new(year: i16, month: u8) -> MonthShape {
        let first = Day::new(year, month, 1).expect("every month has a first");
        // 1970-01-01 was a Thursday.
        let first_weekday = (first.epoch_day() + 4).rem_euclid(7) as u32;
        MonthShape { length: u32::from(month_length(year, month)), first_weekday }
    }

    fn all(self) -> u64 {
        ((1 << self.length) - 1) << 1
    }

    /// The workday nearest to `day` within the month.
    fn nearest_workday(self, day: u32) -> u32 {
        match (self.first_weekday + day - 1) % 7 {
            6 if day == 1 => 3,
            6 => day - 1,
            0 if day == self.length => day - 2,
            0 => day + 1,
            _ => day,
        }
    }

    /// Day of the `nth` (from 1) such weekday, 1 being Sunday; may lie past the month's end.
    fn nth_weekday(self, weekday: u32, nth: u32) -> u32 {
        (weekday - 1 + 7 - self.first_weekday) % 7 + 1 + (nth - 1) * 7
    }
}

/// The positions of the bits that are set.
fn ones(mut bits: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let lowest = (bits != 0).then(|| bits.trailing_zeros())?;
        bits &= bits - 1;
        Some(lowest)
    })
}
