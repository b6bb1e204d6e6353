//! Excluded days of a schedule. Work calendars, with make-up workdays and moved fires, are in `work_calendar`.

use std::collections::BTreeSet;

use crate::day::Day;

/// Defines the days on which a schedule does not fire; see
/// [`Schedule::next_after_in`](crate::Schedule::next_after_in).
pub trait Calendar {
    /// Whether nothing may fire on this day, a day in the schedule's own zone.
    fn excludes(&self, day: Day) -> bool;
}

/// A calendar that excludes a set of days.
///
/// ```
/// use tickwright_cron::{Calendar, Day, Holidays};
///
/// let golden_week: Holidays = (1..=7).map(|day| Day::new(2026, 10, day).unwrap()).collect();
/// assert!(golden_week.excludes("2026-10-03".parse().unwrap()));
/// assert!(!golden_week.excludes("2026-10-08".parse().unwrap()));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holidays(BTreeSet<Day>);

impl FromIterator<Day> for Holidays {
    fn from_iter<I: IntoIterator<Item = Day>>(days: I) -> Self {
        Holidays(days.into_iter().collect())
    }
}

impl Calendar for Holidays {
    fn excludes(&self, day: Day) -> bool {
        self.0.contains(&day)
    }
}
