//! Schedules: cron, timetable, fixed rate, fixed delay, once, or manual only.

use std::time::Duration;

use crate::calendar::Calendar;
use crate::cron::Cron;
use crate::dst::DstRule;
use crate::error::Error;
use crate::timestamp::Timestamp;
use crate::timetable::{Rule, Timetable};
use crate::workdays::Workdays;
use crate::zone::Zone;

/// The rule for when a job fires.
///
/// ```
/// use std::time::Duration;
/// use tickwright_cron::{Schedule, Timestamp};
///
/// let ms = Timestamp::from_millis;
/// let schedule = Schedule::fixed_rate(ms(1_000), Duration::from_millis(250)).unwrap();
/// assert_eq!(schedule.next_after(ms(1_600)), Some(ms(1_750)));
/// assert_eq!(schedule.previous_before(ms(1_600)), Some(ms(1_500)));
///
/// assert!(Schedule::fixed_rate(ms(0), Duration::ZERO).is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Schedule {
    /// By a cron expression.
    Cron {
        /// The expression.
        cron: Cron,
        /// Time zone of the expression.
        zone: Zone,
        /// Daylight saving rule.
        dst: DstRule,
    },
    /// By the rules of a timetable: when one of them fires.
    Timetable(Timetable),
    /// At `anchor + k * period` for k = 0, 1, 2, …; late runs do not shift it.
    FixedRate {
        /// The first fire.
        anchor: Timestamp,
        /// Whole milliseconds, at least one.
        period: Duration,
    },
    /// A fixed delay after the end of the last run, so the next fire is only known then; see
    /// [`Schedule::next_after_end`].
    FixedDelay {
        /// Whole milliseconds, at least one.
        delay: Duration,
    },
    /// Once.
    Once {
        /// Time of the fire.
        at: Timestamp,
    },
    /// Only when a user or another job triggers it.
    Never,
}

impl Schedule {
    /// By a cron expression in a zone.
    pub fn cron(cron: Cron, zone: Zone, dst: DstRule) -> Schedule {
        Schedule::Cron { cron, zone, dst }
    }

    /// Every `period` from `anchor` on.
    pub fn fixed_rate(anchor: Timestamp, period: Duration) -> Result<Schedule, Error> {
        Ok(Schedule::FixedRate { anchor, period: countable(period)? })
    }

    /// `delay` after the end of each run.
    pub fn fixed_delay(delay: Duration) -> Result<Schedule, Error> {
        Ok(Schedule::FixedDelay { delay: countable(delay)? })
    }

    /// Once, at a given time.
    pub fn once(at: Timestamp) -> Schedule {
        Schedule::Once { at }
    }

    /// The first fire strictly after `t`; `None` if there is none, or if it depends on the end of a run.
    pub fn next_after(&self, t: Timestamp) -> Option<Timestamp> {
        match self {
            Schedule::Cron { cron, zone, dst } => cron.next_after(t, zone, *dst),
            Schedule::Timetable(timetable) => timetable.next_after(t),
            Schedule::FixedRate { anchor, period } => {
                let beat = Beat::new(*anchor, *period);
                beat.fire(beat.fires_until(i128::from(t.as_millis())))
            }
            Schedule::Once { at } => (*at > t).then_some(*at),
            Schedule::FixedDelay { .. } | Schedule::Never => None,
        }
    }

    /// The last fire strictly before `t`; `None` if there was none, or if it depended on the end of a run.
    pub fn previous_before(&self, t: Timestamp) -> Option<Timestamp> {
        match self {
            Schedule::Cron { cron, zone, dst } => cron.previous_before(t, zone, *dst),
            Schedule::Timetable(timetable) => timetable.previous_before(t),
            Schedule::FixedRate { anchor, period } => {
                let beat = Beat::new(*anchor, *period);
                beat.fire(beat.fires_until(i128::from(t.as_millis()) - 1) - 1)
            }
            Schedule::Once { at } => (*at < t).then_some(*at),
            Schedule::FixedDelay { .. } | Schedule::Never => None,
        }
    }

    /// The next fire after a run that ended at `ended`; `None` unless this is a fixed delay, because no other
    /// schedule depends on the end of a run.
    pub fn next_after_end(&self, ended: Timestamp) -> Option<Timestamp> {
        match self {
            Schedule::FixedDelay { delay } => Some(ended + *delay),
            _ => None,
        }
    }

    /// Every fire strictly after `t`, in order.
    pub fn iter_from(&self, t: Timestamp) -> impl Iterator<Item = Timestamp> {
        std::iter::successors(self.next_after(t), |fire| self.next_after(*fire))
    }

    /// The number of fires after `from` and not after `to`; counting stops at `cap`.
    pub fn count_between(&self, from: Timestamp, to: Timestamp, cap: u64) -> u64 {
        match self {
            Schedule::FixedRate { anchor, period } => {
                let beat = Beat::new(*anchor, *period);
                let until = |t: Timestamp| beat.fires_until(i128::from(t.as_millis()));
                (until(to) - until(from)).clamp(0, i128::from(cap)) as u64
            }
            _ => {
                let cap_or_all = usize::try_from(cap).unwrap_or(usize::MAX);
                self.iter_from(from).take_while(|fire| *fire <= to).take(cap_or_all).count() as u64
            }
        }
    }

    /// Time zone of a cron expression, or of the first rule of a timetable; `None` if the schedule has none.
    pub fn zone(&self) -> Option<&Zone> {
        match self {
            Schedule::Cron { zone, .. } => Some(zone),
            Schedule::Timetable(timetable) => timetable.rules().first().map(Rule::zone),
            Schedule::FixedRate { .. }
            | Schedule::FixedDelay { .. }
            | Schedule::Once { .. }
            | Schedule::Never => None,
        }
    }

    /// The schedule as a work calendar keeps or moves its times; `None` unless it is a cron expression or a timetable.
    /// A rule for the nth workday counts the workdays of the calendar.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tickwright_cron::{Cron, DayEntry, DstRule, OnDays, Schedule, Shift, Timestamp, WorkCalendar, Workdays, Zone};
    ///
    /// let mut calendar = WorkCalendar::default();
    /// calendar.set("2026-12-25".parse()?, DayEntry::off("Christmas Day"));
    /// let workdays = Workdays::new(Arc::new(calendar), OnDays::Work, Shift::Next);
    ///
    /// let fridays = Schedule::cron(Cron::parse("0 0 9 ? * FRI")?, Zone::utc(), DstRule::NATURAL);
    /// let planned = fridays.on(&workdays).unwrap();
    /// let december_24 = Timestamp::from_millis(1_798_070_400_000);
    /// assert_eq!(planned.next_after(december_24).unwrap().to_string(), "2026-12-28T09:00:00Z");
    /// # Ok::<(), tickwright_cron::Error>(())
    /// ```
    pub fn on(&self, workdays: &Workdays) -> Option<Timetable> {
        match self {
            Schedule::Cron { cron, zone, dst } => {
                let rule = Rule::cron(cron.clone(), zone.clone()).dst(*dst);
                Some(rule.on(workdays.clone()).into())
            }
            Schedule::Timetable(timetable) => Some(timetable.on(workdays)),
            Schedule::FixedRate { .. }
            | Schedule::FixedDelay { .. }
            | Schedule::Once { .. }
            | Schedule::Never => None,
        }
    }

    /// Like [`Schedule::next_after`], but skips the days that the calendar excludes: days in the schedule's zone, UTC
    /// if it has none. Returns `None` after 3 660 excluded days with a fire in them.
    ///
    /// ```
    /// use tickwright_cron::{Calendar, Cron, Day, DstRule, Schedule, Timestamp, Zone};
    ///
    /// struct Friday13th;
    /// impl Calendar for Friday13th {
    ///     fn excludes(&self, day: Day) -> bool {
    ///         day.day() == 13
    ///     }
    /// }
    ///
    /// let fridays = Cron::parse("0 0 9 ? * FRI").unwrap();
    /// let schedule = Schedule::cron(fridays, Zone::utc(), DstRule::NATURAL);
    /// let november_2026 = Timestamp::from_millis(1_794_000_000_000);
    /// let next = schedule.next_after_in(&Friday13th, november_2026).unwrap();
    /// assert_eq!(next.to_string(), "2026-11-20T09:00:00Z");
    /// ```
    pub fn next_after_in(&self, calendar: &dyn Calendar, t: Timestamp) -> Option<Timestamp> {
        let utc = Zone::utc();
        let zone = self.zone().unwrap_or(&utc);
        let mut after = t;
        for _ in 0..EXCLUDED_MAX {
            let fire = self.next_after(after)?;
            let day = zone.day_at(fire);
            if !calendar.excludes(day) {
                return Some(fire);
            }
            let last_of_day = zone.end_of(day) - Duration::from_millis(1);
            // Where clocks go back over midnight, a day continues after its first end.
            after = last_of_day.max(fire);
        }
        None
    }
}

/// Ten years of days: a calendar that excludes more excludes everything.
const EXCLUDED_MAX: usize = 3_660;

/// `anchor + k * period`, in a width that cannot overflow.
struct Beat {
    anchor: i128,
    period: i128,
}

impl Beat {
    fn new(anchor: Timestamp, period: Duration) -> Beat {
        // The enum's fields are public, so the period may be zero here; dividing by it would panic.
        let period = i128::try_from(period.as_millis()).unwrap_or(i128::MAX).max(1);
        Beat { anchor: i128::from(anchor.as_millis()), period }
    }

    /// The k-th fire; `None` before the first or past the end of time.
    fn fire(&self, k: i128) -> Option<Timestamp> {
        let millis = self.period.checked_mul(k)?.checked_add(self.anchor)?;
        (k >= 0).then_some(i64::try_from(millis).ok()?).map(Timestamp::from_millis)
    }

    /// The number of fires up to and including `t`, given in milliseconds.
    fn fires_until(&self, t: i128) -> i128 {
        (t - self.anchor).div_euclid(self.period).max(-1) + 1
    }
}

/// Rejects a period that is not in whole milliseconds, or so long that adding it would leave the calendar.
fn countable(period: Duration) -> Result<Duration, Error> {
    let whole = period.subsec_nanos().is_multiple_of(1_000_000);
    if whole && !period.is_zero() && period <= PERIOD_MAX {
        Ok(period)
    } else {
        Err(Error::Period { period })
    }
}

/// About a century.
const PERIOD_MAX: Duration = Duration::from_secs(36_525 * 86_400);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calendar::Holidays;
    use crate::day::Day;

    fn ms(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn a_fixed_rate_keeps_its_phase() {
        let check = |anchor, period, t, previous: Option<i64>, next| {
            let schedule = Schedule::fixed_rate(ms(anchor), Duration::from_millis(period)).unwrap();
            assert_eq!(schedule.next_after(ms(t)), Some(ms(next)));
            assert_eq!(schedule.previous_before(ms(t)), previous.map(ms));
        };
        check(500, 1_000, -7_000, None, 500);
        check(500, 1_000, 499, None, 500);
        check(500, 1_000, 500, None, 1_500);
        check(500, 1_000, 501, Some(500), 1_500);
        check(500, 1_000, 1_500, Some(500), 2_500);
        check(0, 1, 41, Some(40), 42);
        check(7, 3, 1_782_000_000_000, Some(1_781_999_999_998), 1_782_000_000_001);
        check(-10, 4, -3, Some(-6), -2);
        // Nine years later, the fires are still aligned to the anchor.
        check(123, 86_400_000, 300_000_000_000, Some(299_980_800_123), 300_067_200_123);
    }

    #[test]
    fn the_ends_of_time_do_not_overflow() {
        let schedule = Schedule::fixed_rate(ms(i64::MIN), Duration::from_millis(1)).unwrap();
        assert_eq!(schedule.next_after(ms(i64::MAX)), None);
        assert_eq!(schedule.previous_before(ms(i64::MIN)), None);
        assert_eq!(schedule.count_between(ms(i64::MIN), ms(i64::MAX), 10), 10);
        assert_eq!(Schedule::once(ms(i64::MAX)).next_after(ms(i64::MIN)), Some(ms(i64::MAX)));
        let unchecked = Schedule::FixedRate { anchor: ms(0), period: Duration::ZERO };
        assert_eq!(unchecked.next_after(ms(5)), Some(ms(6)));
    }

    #[test]
    fn a_period_is_whole_milliseconds_and_not_nothing() {
        let check = |period: Duration, good: bool| {
            assert_eq!(Schedule::fixed_rate(ms(0), period).is_ok(), good, "{period:?}");
            assert_eq!(Schedule::fixed_delay(period).is_ok(), good, "{period:?}");
        };
        check(Duration::ZERO, false);
        check(Duration::from_micros(999), false);
        check(Duration::from_micros(1_500), false);
        check(Duration::from_millis(1), true);
        check(Duration::from_secs(86_400 * 365), true);
        check(Duration::MAX, false);
    }

    #[test]
    fn a_fixed_delay_is_only_known_when_a_run_ends() {
        let schedule = Schedule::fixed_delay(Duration::from_millis(300)).unwrap();
        assert_eq!(schedule.next_after(ms(0)), None);
        assert_eq!(schedule.previous_before(ms(0)), None);
        assert_eq!(schedule.next_after_end(ms(1_000)), Some(ms(1_300)));
        assert_eq!(Schedule::Never.next_after_end(ms(1_000)), None);
    }

    #[test]
    fn one_shot_fires_once() {
        let schedule = Schedule::once(ms(1_000));
        assert_eq!(schedule.iter_from(ms(0)).collect::<Vec<_>>(), [ms(1_000)]);
        assert_eq!(schedule.next_after(ms(1_000)), None);
        assert_eq!(schedule.previous_before(ms(1_000)), None);
        assert_eq!(schedule.previous_before(ms(1_001)), Some(ms(1_000)));
        assert_eq!(Schedule::Never.iter_from(ms(0)).next(), None);
    }

    #[test]
    fn counting_stops_at_the_cap() {
        let check = |schedule: Schedule, from, to, count| {
            assert_eq!(schedule.count_between(ms(from), ms(to), 1_000), count, "{schedule:?}");
            assert_eq!(schedule.count_between(ms(from), ms(to), 2), count.min(2), "{schedule:?}");
        };
        let rate = |period| Schedule::fixed_rate(ms(0), Duration::from_millis(period)).unwrap();
        check(rate(100), 0, 1_000, 10);
        check(rate(100), -1, 1_000, 11);
        check(rate(100), 1_000, 0, 0);
        check(rate(1), 0, i64::MAX, 1_000);
        check(Schedule::once(ms(5)), 0, 5, 1);
        check(Schedule::once(ms(5)), 5, 9, 0);
        check(Schedule::Never, 0, 1_000, 0);
        check(daily_at_nine("UTC"), 0, 10 * 86_400_000, 10);
    }

    #[test]
    fn excluded_days_are_days_of_the_schedule_s_own_zone() {
        let check = |zone, holidays: &[&str], t: &str, next: Option<&str>| {
            let holidays: Holidays = holidays.iter().map(|day| day.parse::<Day>().unwrap()).collect();
            let t = ms(t.parse::<jiff::Timestamp>().unwrap().as_millisecond());
            let found = daily_at_nine(zone).next_after_in(&holidays, t);
            assert_eq!(found.map(|fire| fire.to_string()).as_deref(), next);
        };
        check("UTC", &[], "2026-10-01T00:00:00Z", Some("2026-10-01T09:00:00Z"));
        check("UTC", &["2026-10-01", "2026-10-02"], "2026-10-01T00:00:00Z", Some("2026-10-03T09:00:00Z"));
        // 09:00 in Auckland is the evening before in UTC.
        check("Pacific/Auckland", &["2026-10-01"], "2026-09-30T00:00:00Z", Some("2026-10-01T20:00:00Z"));
    }

    #[test]
    fn a_calendar_that_excludes_everything_gives_none() {
        struct Always;
        impl Calendar for Always {
            fn excludes(&self, _: Day) -> bool {
                true
            }
        }
        assert_eq!(daily_at_nine("UTC").next_after_in(&Always, ms(0)), None);
        let rate = Schedule::fixed_rate(ms(0), Duration::from_millis(1)).unwrap();
        assert_eq!(rate.next_after_in(&Always, ms(0)), None);
        assert_eq!(rate.next_after_in(&Always, ms(i64::MAX - 10)), None);
    }

    fn daily_at_nine(zone: &str) -> Schedule {
        let cron = Cron::parse("0 0 9 * * ?").unwrap();
        Schedule::cron(cron, Zone::parse(zone).unwrap(), DstRule::NATURAL)
    }
}
