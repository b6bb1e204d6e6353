//! Applies a work calendar to a set of wall-clock times: keeps, drops or moves them by day.
//!
//! Each fitting day receives the times of a range of days around it: with `next`, those since the fitting day before
//! it; with `nearest`, those to which no other fitting day is nearer. The ranges do not overlap and are in order, so
//! a search goes from fitting day to fitting day and never looks back.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::day::Day;
use crate::error::Error;
use crate::local::{DAY, LAST_DAY, LocalTimes, split};
use crate::time_of_day::shortened;
use crate::work_calendar::WorkCalendar;

/// The days of a work calendar on which a schedule fires, and its rule for times on other days.
///
/// Equal times that meet on one day fire once. A time moves by at most 366 days; if no day fits within them, it does
/// not fire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workdays {
    /// The work calendar.
    pub calendar: Arc<WorkCalendar>,
    /// Days on which the schedule fires.
    pub on: OnDays,
    /// Rule for times on other days.
    pub shift: Shift,
}

/// Kind of days on which a schedule fires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OnDays {
    /// Workdays.
    Work,
    /// Days off.
    Off,
    /// All days, up to the end of the calendar's data if it stops there.
    Any,
}

/// Rule for a time on a day that does not fit. A moved time keeps its time of day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shift {
    /// It does not fire.
    Skip,
    /// It moves to the next fitting day.
    Next,
    /// It moves to the previous fitting day.
    Previous,
    /// It moves to the nearest fitting day; of two at the same distance, to the later one.
    Nearest,
}

/// What a work calendar does with one time of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// It fires.
    Fires,
    /// It fires on another day.
    MovedTo(Day),
    /// It does not fire.
    Skipped,
}

impl Workdays {
    /// Creates a rule.
    pub fn new(calendar: Arc<WorkCalendar>, on: OnDays, shift: Shift) -> Workdays {
        Workdays { calendar, on, shift }
    }

    /// What becomes of a time on this day.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tickwright_cron::{DayEntry, OnDays, Shift, Verdict, WorkCalendar, Workdays};
    ///
    /// let mut calendar = WorkCalendar::default();
    /// calendar.set("2026-12-25".parse().unwrap(), DayEntry::off("Christmas Day"));
    /// let workdays = Workdays::new(Arc::new(calendar), OnDays::Work, Shift::Next);
    /// let christmas = workdays.verdict("2026-12-25".parse().unwrap());
    /// assert_eq!(christmas, Verdict::MovedTo("2026-12-28".parse().unwrap()));
    /// ```
    pub fn verdict(&self, day: Day) -> Verdict {
        let day = day.epoch_day();
        match self.target(day) {
            None => Verdict::Skipped,
            Some(target) if target == day => Verdict::Fires,
            Some(target) => Verdict::MovedTo(Day::from_epoch_day(target)),
        }
    }

    fn fits(&self, day: i64) -> bool {
        let by_kind = match self.on {
            OnDays::Work => self.calendar.is_work_on(day),
            OnDays::Off => !self.calendar.is_work_on(day),
            OnDays::Any => true,
        };
        by_kind && (0..=self.last_day()).contains(&day)
    }

    /// The last day whose times count; nothing is known about later ones.
    fn last_day(&self) -> i64 {
        self.calendar.last_day().unwrap_or(LAST_DAY).min(LAST_DAY)
    }

    /// The first fitting day of `from..=to`.
    fn first_in(&self, from: i64, to: i64) -> Option<i64> {
        (from..=to).find(|day| self.fits(*day))
    }

    /// The last fitting day of `from..=to`.
    fn last_in(&self, from: i64, to: i64) -> Option<i64> {
        (from..=to).rev().find(|day| self.fits(*day))
    }

    /// The day on which the times of `day` fire.
    fn target(&self, day: i64) -> Option<i64> {
        if day > self.last_day() {
            return None;
        }
        if self.fits(day) {
            return Some(day);
        }
        let next = || self.first_in(day + 1, day + SHIFT_MAX);
        let previous = || self.last_in(day - SHIFT_MAX, day - 1);
        match self.shift {
            Shift::Skip => None,
            Shift::Next => next(),
            Shift::Previous => previous(),
            Shift::Nearest => match (previous(), next()) {
                (Some(previous), Some(next)) if day - previous < next - day => Some(previous),
                (previous, next) => next.or(previous),
            },
        }
    }

    /// The days whose times fire on `day`, which fits.
    fn sources(&self, day: i64) -> (i64, i64) {
        let before = || self.last_in(day - 2 * SHIFT_MAX, day - 1);
        let after = || self.first_in(day + 1, day + 2 * SHIFT_MAX);
        let (first, last) = (day - SHIFT_MAX, (day + SHIFT_MAX).min(self.last_day()));
        match self.shift {
            Shift::Skip => (day, day),
            Shift::Next => (before().map_or(first, |before| first.max(before + 1)), day),
            Shift::Previous => (day, after().map_or(last, |after| last.min(after - 1))),
            Shift::Nearest => {
                // Half way between two fitting days, the later one is nearer.
                let half = |early: i64, late: i64| early + (late - early + 1) / 2;
                (
                    before().map_or(first, |before| first.max(half(before, day))),
                    after().map_or(last, |after| last.min(half(day, after) - 1)),
                )
            }
        }
    }
}

/// A time moves no further: a calendar without a fitting day in a whole year has an error in it.
const SHIFT_MAX: i64 = 366;

/// A search ends after so many days of the schedule without a fitting day, about ten years.
const UNFIT_MAX: usize = 3_660;

/// The times of a set, as a work calendar keeps or moves them.
pub(crate) struct OnWorkdays<'a> {
    pub(crate) times: &'a dyn LocalTimes,
    pub(crate) workdays: &'a Workdays,
}

impl LocalTimes for OnWorkdays<'_> {
    fn at_or_after(&self, local: i64) -> Option<i64> {
        let (start, mut earliest) = split(local.max(0));
        let mut day = self.workdays.first_in(start, (start + UNFIT_MAX as i64).min(LAST_DAY))?;
        if day > start {
            earliest = 0;
        }
        for _ in 0..UNFIT_MAX {
            let (first, last) = self.workdays.sources(day);
            if let Some(second) = self.first_second(first, last, earliest) {
                return Some(day * DAY + second);
            }
            // The next day with times that has a day to fire on.
            let mut source = split(self.times.at_or_after((last.max(day) + 1) * DAY)?).0;
            let mut target = self.workdays.target(source);
            let mut tried = 0;
            while target.is_none_or(|target| target <= day) {
                tried += 1;
                if tried > UNFIT_MAX || source > self.workdays.last_day() {
                    return None;
                }
                source = split(self.times.at_or_after((source + 1) * DAY)?).0;
                target = self.workdays.target(source);
            }
            (day, earliest) = (target?, 0);
        }
        None
    }

    fn at_or_before(&self, local: i64) -> Option<i64> {
        let (start, mut latest) = split(local.min((LAST_DAY + 1) * DAY - 1));
        let start_or_last = start.min(self.workdays.last_day());
        let mut day = self.workdays.last_in((start_or_last - UNFIT_MAX as i64).max(0), start_or_last)?;
        if day < start {
            latest = DAY - 1;
        }
        for _ in 0..UNFIT_MAX {
            let (first, last) = self.workdays.sources(day);
            if let Some(second) = self.last_second(first, last, latest) {
                return Some(day * DAY + second);
            }
            let mut source = split(self.times.at_or_before(first.min(day) * DAY - 1)?).0;
            let mut target = self.workdays.target(source);
            let mut tried = 0;
            while target.is_none_or(|target| target >= day) {
                tried += 1;
                if tried > UNFIT_MAX {
                    return None;
                }
                source = split(self.times.at_or_before(source * DAY - 1)?).0;
                target = self.workdays.target(source);
            }
            (day, latest) = (target?, DAY - 1);
        }
        None
    }

    fn is_every_hour(&self) -> bool {
        self.times.is_every_hour()
    }
}

impl OnWorkdays<'_> {
    /// The first second of a day, not before `earliest`, at which one of the days `first..=last` has a time.
    fn first_second(&self, first: i64, last: i64, earliest: i64) -> Option<i64> {
        let mut found: Option<i64> = None;
        let mut day = first;
        while day <= last {
            // The schedule may have ended.
            let Some(time) = self.times.at_or_after(day * DAY + earliest) else { break };
            let (next, second) = split(time);
            if next == day {
                found = Some(found.map_or(second, |found| found.min(second)));
            }
            // Days without a time are left out at once.
            day = next.max(day + 1);
        }
        found
    }

    /// The last second of a day, not after `latest`, at which one of the days `first..=last` has a time.
    fn last_second(&self, first: i64, last: i64, latest: i64) -> Option<i64> {
        let mut found: Option<i64> = None;
        let mut day = last;
        while day >= first {
            let Some(time) = self.times.at_or_before(day * DAY + latest) else { break };
            let (previous, second) = split(time);
            if previous == day {
                found = found.max(Some(second));
            }
            day = previous.min(day - 1);
        }
        found
    }
}

impl fmt::Display for OnDays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OnDays::Work => "work",
            OnDays::Off => "off",
            OnDays::Any => "any",
        })
    }
}

impl FromStr for OnDays {
    type Err = Error;

    fn from_str(text: &str) -> Result<OnDays, Error> {
        match text {
            "work" => Ok(OnDays::Work),
            "off" => Ok(OnDays::Off),
            "any" => Ok(OnDays::Any),
            _ => Err(Error::Word { text: shortened(text), words: "work, off, any" }),
        }
    }
}

impl fmt::Display for Shift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Shift::Skip => "skip",
            Shift::Next => "next",
            Shift::Previous => "previous",
            Shift::Nearest => "nearest",
        })
    }
}

impl FromStr for Shift {
    type Err = Error;

    fn from_str(text: &str) -> Result<Shift, Error> {
        match text {
            "skip" => Ok(Shift::Skip),
            "next" => Ok(Shift::Next),
            "previous" => Ok(Shift::Previous),
            "nearest" => Ok(Shift::Nearest),
            _ => Err(Error::Word { text: shortened(text), words: "skip, next, previous, nearest" }),
        }
    }
}
