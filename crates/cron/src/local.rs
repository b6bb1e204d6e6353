//! Sets of wall-clock times, and when a clock of a zone shows them.
//!
//! A local time is a number of seconds since 1970-01-01T00:00:00 of a wall clock, where every day has 86 400 of them.
//! Every kind of schedule with a time of day is such a set, so the rules for skipped and repeated times are applied
//! here once for all of them.

use crate::day::Day;
use crate::dst::{DstRule, Fold, Gap};
use crate::timestamp::Timestamp;
use crate::zone::{OFFSET_MAX, Period, Zone};

/// A set of local times.
pub(crate) trait LocalTimes {
    /// The first of its times not before `local`.
    fn at_or_after(&self, local: i64) -> Option<i64>;

    /// The last of its times not after `local`.
    fn at_or_before(&self, local: i64) -> Option<i64>;

    /// Whether it has times in all 24 hours of a day; [`DstRule::NATURAL`] depends on it.
    fn is_every_hour(&self) -> bool;
}

/// The first fire strictly after `t`; `None` if there is none until the end of 2199.
pub(crate) fn next_after(
    times: &dyn LocalTimes,
    t: Timestamp,
    zone: &Zone,
    dst: DstRule,
) -> Option<Timestamp> {
    let (gap, fold) = dst.resolve(times.is_every_hour());
    // Fires fall on whole seconds.
    let mut second = t.as_millis().div_euclid(1_000).saturating_add(1).max(-OFFSET_MAX);
    while second < HORIZON {
        let period = zone.period_at(second);
        if second == period.start && gap == Gap::Next && fires_in_gap_before(times, period) {
            return Some(at(second));
        }
        let (first, end) = period.local_range(fold);
        let local = (second + period.offset).max(first);
        let found = times.at_or_after(local);
        if let Some(found) = found.filter(|found| *found < end) {
            return Some(at(found - period.offset));
        }
        second = period.end;
        // The clocks may still go back behind `local`; otherwise there is no fire before the one found.
        if period.end.saturating_add(period.offset_after) >= local {
            second = second.max(found? - OFFSET_MAX);
        }
    }
    None
}

/// The last fire strictly before `t`; `None` if there is none since the start of 1970.
pub(crate) fn previous_before(
    times: &dyn LocalTimes,
    t: Timestamp,
    zone: &Zone,
    dst: DstRule,
) -> Option<Timestamp> {
    let (gap, fold) = dst.resolve(times.is_every_hour());
    let mut second = t.as_millis().saturating_sub(1).div_euclid(1_000).min(HORIZON);
    while second > -OFFSET_MAX {
        let period = zone.period_at(second);
        let (first, end) = period.local_range(fold);
        let local = (second + period.offset).min(end - 1);
        let found = times.at_or_before(local);
        if let Some(found) = found.filter(|found| *found >= first) {
            return Some(at(found - period.offset));
        }
        if gap == Gap::Next && fires_in_gap_before(times, period) {
            return Some(at(period.start));
        }
        second = period.start - 1;
        // The clocks may have been ahead of `local` before; otherwise there was no fire since the one found.
        if period.start + period.offset_before <= local {
            second = second.min(found? + OFFSET_MAX);
        }
    }
    None
}

/// Whether a time of the set was skipped when this period began.
fn fires_in_gap_before(times: &dyn LocalTimes, period: Period) -> bool {
    let (from, to) = (period.start + period.offset_before, period.start + period.offset);
    from < to && times.at_or_after(from).is_some_and(|found| found < to)
}

impl Period {
    /// The local times that count in this period: a repeated time counts in one of its two periods, or in both.
    fn local_range(self, fold: Fold) -> (i64, i64) {
        let (start, end) = (self.start + self.offset, self.end + self.offset);
        match fold {
            Fold::First => (start.max(self.start + self.offset_before), end),
            Fold::Second => (start, end.min(self.end + self.offset_after)),
            Fold::Both => (start, end),
        }
    }
}

/// Nothing fires later: 2200-01-03T00:00:00Z, past the end of 2199 in every zone.
const HORIZON: i64 = 7_258_291_200;

/// The last day with fires, 2199-12-31, as days since the epoch.
pub(crate) const LAST_DAY: i64 = 84_005;

/// Seconds of a local day.
pub(crate) const DAY: i64 = 86_400;

fn at(second: i64) -> Timestamp {
    Timestamp::from_millis(second * 1_000)
}

/// Splits a local time into its day, as days since the epoch, and the second of that day.
pub(crate) fn split(local: i64) -> (i64, i64) {
    (local.div_euclid(DAY), local.rem_euclid(DAY))
}

/// Weekday of a day since the epoch; 0 is Monday.
pub(crate) fn weekday(epoch_day: i64) -> u32 {
    // 1970-01-01 was a Thursday.
    (epoch_day + 3).rem_euclid(7) as u32
}

/// The day of a local time.
pub(crate) fn day_of(local: i64) -> Day {
    Day::from_epoch_day(split(local).0)
}

/// A single local time.
pub(crate) struct Single(pub(crate) i64);

impl LocalTimes for Single {
    fn at_or_after(&self, local: i64) -> Option<i64> {
        (self.0 >= local).then_some(self.0)
    }

    fn at_or_before(&self, local: i64) -> Option<i64> {
        (self.0 <= local).then_some(self.0)
    }

    fn is_every_hour(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_day_is_the_last_of_2199() {
        assert_eq!(Day::from_epoch_day(LAST_DAY).to_string(), "2199-12-31");
        assert_eq!(weekday("2026-11-16".parse::<Day>().unwrap().epoch_day()), 0);
    }
}
