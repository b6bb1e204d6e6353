//! Timetables: rules with a time of day, alone or several for one job, each with a work calendar if needed.

use std::sync::Arc;
use std::time::Duration;

use crate::cron::Cron;
use crate::day::{Day, month_length};
use crate::dst::DstRule;
use crate::error::Error;
use crate::local::{self, DAY, LAST_DAY, LocalTimes, Single, split, weekday};
use crate::time_of_day::{TimeOfDay, Weekdays};
use crate::timestamp::Timestamp;
use crate::work_calendar::WorkCalendar;
use crate::workdays::{OnWorkdays, Verdict, Workdays};
use crate::zone::Zone;

/// One or several rules; it fires when one of them does. Rules that fire at the same time fire once.
///
/// ```
/// use std::time::Duration;
/// use tickwright_cron::{Cron, DailyWindow, Rule, Timestamp, Timetable, Weekdays, Zone};
///
/// let shanghai = Zone::parse("Asia/Shanghai")?;
/// let window = DailyWindow::new(
///     "09:00".parse()?,
///     "17:30".parse()?,
///     Duration::from_secs(30 * 60),
///     Weekdays::MONDAY_TO_FRIDAY,
/// )?;
/// let timetable = Timetable::new(vec![
///     Rule::window(window, shanghai.clone()),
///     Rule::cron(Cron::parse("0 0 12 ? * SAT")?, shanghai),
/// ])?;
///
/// let friday_evening = Timestamp::from_millis(1_794_565_800_000); // 2026-11-13T18:30 in Shanghai
/// let fires: Vec<String> = timetable.iter_from(friday_evening).take(3).map(|at| at.to_string()).collect();
/// assert_eq!(fires, ["2026-11-14T04:00:00Z", "2026-11-16T01:00:00Z", "2026-11-16T01:30:00Z"]);
/// # Ok::<(), tickwright_cron::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timetable {
    rules: Vec<Rule>,
}

/// One rule of a [`Timetable`]: wall-clock times in a zone.
///
/// The daylight saving rule is [`DstRule::NATURAL`] unless [`Rule::dst`] changes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    pub(crate) times: Times,
    zone: Zone,
    dst: DstRule,
    pub(crate) workdays: Option<Workdays>,
}

/// The times of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Times {
    Cron(Cron),
    Window(DailyWindow),
    Interval(CalendarInterval),
    NthWorkday(NthWorkday),
}

impl Timetable {
    /// Maximum number of rules: each search visits every one.
    pub(crate) const RULES_MAX: usize = 32;

    /// Creates a timetable of 1 to 32 rules.
    pub fn new(rules: Vec<Rule>) -> Result<Timetable, Error> {
        match rules.len() {
            1..=Timetable::RULES_MAX => Ok(Timetable { rules }),
            count => Err(Error::Rules { count }),
        }
    }

    /// The rules; at least one.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The timetable with this work calendar for each rule, in place of the rule's own. A rule for the nth workday
    /// counts the workdays of the calendar.
    pub fn on(&self, workdays: &Workdays) -> Timetable {
        let rule = |rule: &Rule| {
            let mut rule = rule.clone().on(workdays.clone());
            if let Times::NthWorkday(nth) = &mut rule.times {
                nth.calendar = Arc::clone(&workdays.calendar);
            }
            rule
        };
        Timetable { rules: self.rules.iter().map(rule).collect() }
    }

    /// The first fire strictly after `t`; `None` if there is none until the end of 2199, or if a work calendar has no
    /// fitting day in ten years.
    pub fn next_after(&self, t: Timestamp) -> Option<Timestamp> {
        self.rules.iter().filter_map(|rule| rule.next_after(t)).min()
    }

    /// The last fire strictly before `t`; `None` if there is none since the start of 1970.
    pub fn previous_before(&self, t: Timestamp) -> Option<Timestamp> {
        self.rules.iter().filter_map(|rule| rule.previous_before(t)).max()
    }

    /// Every fire strictly after `t`, in order.
    pub fn iter_from(&self, t: Timestamp) -> impl Iterator<Item = Timestamp> {
        std::iter::successors(self.next_after(t), |fire| self.next_after(*fire))
    }

    /// The number of fires after `from` and not after `to`; counting stops at `cap`.
    pub fn count_between(&self, from: Timestamp, to: Timestamp, cap: u64) -> u64 {
        let cap = usize::try_from(cap).unwrap_or(usize::MAX);
        self.iter_from(from).take_while(|fire| *fire <= to).take(cap).count() as u64
    }
}

impl From<Rule> for Timetable {
    fn from(rule: Rule) -> Timetable {
        Timetable { rules: vec![rule] }
    }
}

impl Rule {
    /// By a cron expression.
    pub fn cron(cron: Cron, zone: Zone) -> Rule {
        Rule::new(Times::Cron(cron), zone)
    }

    /// Every few minutes within a window of the day.
    pub fn window(window: DailyWindow, zone: Zone) -> Rule {
        Rule::new(Times::Window(window), zone)
    }

    /// Every few days, weeks, months or years.
    pub fn interval(interval: CalendarInterval, zone: Zone) -> Rule {
        Rule::new(Times::Interval(interval), zone)
    }

    /// On the nth workday of each week, month, quarter or year.
    pub fn nth_workday(nth: NthWorkday, zone: Zone) -> Rule {
        Rule::new(Times::NthWorkday(nth), zone)
    }

    pub(crate) fn new(times: Times, zone: Zone) -> Rule {
        Rule { times, zone, dst: DstRule::NATURAL, workdays: None }
    }

    /// Sets the daylight saving rule.
    pub fn dst(self, dst: DstRule) -> Rule {
        Rule { dst, ..self }
    }

    /// Fires only on fitting days of a work calendar; times on other days are skipped or moved.
    pub fn on(self, workdays: Workdays) -> Rule {
        Rule { workdays: Some(workdays), ..self }
    }

    /// Its time zone.
    pub fn zone(&self) -> &Zone {
        &self.zone
    }

    /// Its daylight saving rule.
    pub fn dst_rule(&self) -> DstRule {
        self.dst
    }

    /// The first fire strictly after `t`; see [`Timetable::next_after`].
    pub fn next_after(&self, t: Timestamp) -> Option<Timestamp> {
        self.search(|times| local::next_after(times, t, &self.zone, self.dst))
    }

    /// The last fire strictly before `t`; see [`Timetable::previous_before`].
    pub fn previous_before(&self, t: Timestamp) -> Option<Timestamp> {
        self.search(|times| local::previous_before(times, t, &self.zone, self.dst))
    }

    /// The times of the rule strictly after `t`, each with the verdict of the work calendar and the name of the
    /// holiday, for previews.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tickwright_cron::{Cron, DayEntry, OnDays, Rule, Shift, Timestamp, Verdict, WorkCalendar, Workdays, Zone};
    ///
    /// let mut calendar = WorkCalendar::default();
    /// calendar.set("2026-10-01".parse()?, DayEntry::off("国庆节"));
    /// let workdays = Workdays::new(Arc::new(calendar), OnDays::Work, Shift::Next);
    /// let rule = Rule::cron(Cron::parse("0 0 9 1 * ?")?, Zone::parse("Asia/Shanghai")?).on(workdays);
    ///
    /// let september = Timestamp::from_millis(1_788_300_000_000);
    /// let first_of_october = rule.preview(september).next().unwrap();
    /// assert_eq!(first_of_october.verdict, Verdict::MovedTo("2026-10-02".parse()?));
    /// assert_eq!(first_of_october.name.as_deref(), Some("国庆节"));
    /// assert_eq!(first_of_october.fires_at.unwrap().to_string(), "2026-10-02T01:00:00Z");
    /// # Ok::<(), tickwright_cron::Error>(())
    /// ```
    pub fn preview(&self, t: Timestamp) -> impl Iterator<Item = PreviewedTime> {
        let second = t.as_millis().div_euclid(1_000).clamp(0, LAST_DAY * DAY);
        // Where the clocks go back, a time that they have shown may still be to come.
        let start = second + self.zone.period_at(second).offset - CLOCKS_BACK_MAX;
        let first = self.times.as_local().at_or_after(start);
        let locals = std::iter::successors(first, |last| self.times.as_local().at_or_after(last + 1));
        let is_after = move |time: &PreviewedTime| time.scheduled_at.is_none_or(|at| at > t);
        locals.map(|time| self.previewed(time)).skip_while(move |time| !is_after(time))
    }

    fn previewed(&self, time: i64) -> PreviewedTime {
        let day = local::day_of(time);
        let (verdict, name, is_assumed) = match &self.workdays {
            None => (Verdict::Fires, None, false),
            Some(workdays) => {
                let entry = workdays.calendar.entry(day).map(|entry| entry.name().to_owned());
                let name = entry.filter(|name| !name.is_empty());
                (workdays.verdict(day), name, workdays.calendar.is_assumed(day))
            }
        };
        let fires_on = match verdict {
            Verdict::Fires => Some(day),
            Verdict::MovedTo(day) => Some(day),
            Verdict::Skipped => None,
        };
        let resolve = |day: Day| {
            let time = Single(day.epoch_day() * DAY + split(time).1);
            let before = self.zone.start_of(day) - Duration::from_secs(2 * DAY as u64);
            local::next_after(&time, before, &self.zone, self.dst)
        };
        PreviewedTime {
            day,
            at: TimeOfDay::from_second(split(time).1 as u32),
            scheduled_at: resolve(day),
            verdict,
            fires_at: fires_on.and_then(resolve),
            name,
            is_assumed,
        }
    }

    fn search<T>(&self, find: impl FnOnce(&dyn LocalTimes) -> Option<T>) -> Option<T> {
        let times = self.times.as_local();
        match &self.workdays {
            None => find(times),
            Some(workdays) => find(&OnWorkdays { times, workdays }),
        }
    }
}

/// Clocks go back by an hour or less; three were the most since 1970 within one day.
const CLOCKS_BACK_MAX: i64 = 3 * 3_600;

/// A time of a rule, and what its work calendar makes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviewedTime {
    /// Day of the time, before it is moved.
    pub day: Day,
    /// Time of day.
    pub at: TimeOfDay,
    /// When it would fire without the work calendar; `None` if a change of the clocks skips it.
    pub scheduled_at: Option<Timestamp>,
    /// Whether it fires, on that day or another.
    pub verdict: Verdict,
    /// When it fires; `None` if it is skipped, by the calendar or by a change of the clocks.
    pub fires_at: Option<Timestamp>,
    /// Name of the holiday or make-up workday on `day`.
    pub name: Option<String>,
    /// Whether the data of the work calendar ends before `day`.
    pub is_assumed: bool,
}

impl Times {
    fn as_local(&self) -> &dyn LocalTimes {
        match self {
            Times::Cron(cron) => cron.pattern(),
            Times::Window(window) => window,
            Times::Interval(interval) => interval,
            Times::NthWorkday(nth) => nth,
        }
    }
}

// ── Daily windows ───────────────────────────────────────────────────────────────────────────────────────────────

/// At regular intervals within a window of the day, on some weekdays: Quartz's `DailyTimeIntervalTrigger`.
///
/// The first fire of a day is at the begin of the window; the end is included.
///
/// ```
/// use std::time::Duration;
/// use tickwright_cron::{DailyWindow, Weekdays};
///
/// let every_15_minutes = Duration::from_secs(15 * 60);
/// assert!(DailyWindow::new("09:00".parse()?, "17:30".parse()?, every_15_minutes, Weekdays::ALL).is_ok());
///
/// let error = DailyWindow::new("22:00".parse()?, "06:00".parse()?, every_15_minutes, Weekdays::ALL).unwrap_err();
/// assert!(error.to_string().starts_with("the window ends at 06:00, before it begins at 22:00"));
/// # Ok::<(), tickwright_cron::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DailyWindow {
    pub(crate) from: TimeOfDay,
    pub(crate) until: TimeOfDay,
    /// Seconds.
    pub(crate) every: i64,
    pub(crate) weekdays: Weekdays,
}

impl DailyWindow {
    /// Creates a window; `every` is 1 second to 24 hours, in whole seconds.
    pub fn new(
        from: TimeOfDay,
        until: TimeOfDay,
        every: Duration,
        weekdays: Weekdays,
    ) -> Result<DailyWindow, Error> {
        if until < from {
            return Err(Error::Window { from, until });
        }
        let seconds = every.as_secs();
        if every.subsec_nanos() != 0 || seconds == 0 || seconds > DAY as u64 {
            let millis = i64::try_from(every.as_millis()).unwrap_or(i64::MAX);
            let allowed = "whole seconds, 1 s to 24 h";
            return Err(Error::Number { name: "the interval in milliseconds", value: millis, allowed });
        }
        if weekdays == Weekdays::NONE {
            return Err(Error::Weekdays { text: weekdays.to_string() });
        }
        Ok(DailyWindow { from, until, every: seconds as i64, weekdays })
    }

    fn last_second(&self) -> i64 {
        self.from.second() + (self.until.second() - self.from.second()) / self.every * self.every
    }
}

impl LocalTimes for DailyWindow {
    fn at_or_after(&self, local: i64) -> Option<i64> {
        let (day, second) = split(local.max(0));
        let steps = (second - self.from.second() + self.every - 1).div_euclid(self.every).max(0);
        let here = self.from.second() + steps * self.every;
        if self.weekdays.contains(weekday(day)) && here <= self.until.second() {
            return Some(day * DAY + here).filter(|_| day <= LAST_DAY);
        }
        let next = (day + 1..=(day + 7).min(LAST_DAY)).find(|day| self.weekdays.contains(weekday(*day)))?;
        Some(next * DAY + self.from.second())
    }

    fn at_or_before(&self, local: i64) -> Option<i64> {
        let (day, second) = split(local.min((LAST_DAY + 1) * DAY - 1));
        if day >= 0 && self.weekdays.contains(weekday(day)) && second >= self.from.second() {
            let steps = (second.min(self.last_second()) - self.from.second()) / self.every;
            return Some(day * DAY + self.from.second() + steps * self.every);
        }
        let previous = ((day - 7).max(0)..day).rev().find(|day| self.weekdays.contains(weekday(*day)))?;
        Some(previous * DAY + self.last_second())
    }

    fn is_every_hour(&self) -> bool {
        self.from.second() < 3_600 && self.last_second() >= 23 * 3_600 && self.every <= 3_600
    }
}

// ── Calendar intervals ──────────────────────────────────────────────────────────────────────────────────────────

/// Every few days, weeks, months or years from a first day on, always at the same wall-clock time: Quartz's
/// `CalendarIntervalTrigger`.
///
/// In a month without the day of the month of `first`, it fires on the last day; the next one has the day again.
///
/// ```
/// use tickwright_cron::{CalendarInterval, IntervalUnit, Rule, Timestamp, Zone};
///
/// let quarterly = CalendarInterval::new("2026-08-31".parse()?, "09:00".parse()?, 3, IntervalUnit::Months)?;
/// let rule = Rule::interval(quarterly, Zone::parse("Europe/Berlin")?);
/// let fires: Vec<String> = std::iter::successors(rule.next_after(Timestamp::from_millis(0)), |at| rule.next_after(*at))
///     .take(4)
///     .map(|at| at.to_string())
///     .collect();
/// // Always 09:00 in Berlin.
/// assert_eq!(
///     fires,
///     ["2026-08-31T07:00:00Z", "2026-11-30T08:00:00Z", "2027-02-28T08:00:00Z", "2027-05-31T07:00:00Z"]
/// );
/// # Ok::<(), tickwright_cron::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CalendarInterval {
    pub(crate) first: Day,
    pub(crate) at: TimeOfDay,
    pub(crate) every: i64,
    pub(crate) unit: IntervalUnit,
}

/// Unit of a [`CalendarInterval`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IntervalUnit {
    /// Days.
    Days,
    /// Weeks.
    Weeks,
    /// Months.
    Months,
    /// Years.
    Years,
}

impl CalendarInterval {
    /// Creates an interval of 1 to 1 000 units; `first` is from 1970 on.
    pub fn new(first: Day, at: TimeOfDay, every: u32, unit: IntervalUnit) -> Result<CalendarInterval, Error> {
        let allowed = "1 to 1000";
        if every == 0 || every > INTERVAL_MAX {
            return Err(Error::Number { name: "the interval", value: every.into(), allowed });
        }
        if !(0..=LAST_DAY).contains(&first.epoch_day()) {
            let value = i64::from(first.year());
            return Err(Error::Number { name: "the first year", value, allowed: "1970 to 2199" });
        }
        Ok(CalendarInterval { first, at, every: every.into(), unit })
    }

    /// Day of the k-th fire, from 0; `None` before the first and after the last.
    fn day(&self, k: i64) -> Option<i64> {
        let day = match self.unit {
            IntervalUnit::Days => self.first.epoch_day() + k * self.every,
            IntervalUnit::Weeks => self.first.epoch_day() + k * self.every * 7,
            IntervalUnit::Months => self.in_months(k * self.every)?,
            IntervalUnit::Years => self.in_months(k * self.every * 12)?,
        };
        (k >= 0 && day <= LAST_DAY).then_some(day)
    }

    fn in_months(&self, months: i64) -> Option<i64> {
        let month = i64::from(self.first.year()) * 12 + i64::from(self.first.month()) - 1 + months;
        let (year, month) = (i16::try_from(month.div_euclid(12)).ok()?, month.rem_euclid(12) as u8 + 1);
        let day = self.first.day().min(month_length(year, month));
        Day::new(year, month, day).ok().map(Day::epoch_day)
    }

    /// A number of a fire near a day, at most one too high or too low.
    fn near(&self, day: i64) -> i64 {
        let months = |day: Day| i64::from(day.year()) * 12 + i64::from(day.month());
        let passed = || months(Day::from_epoch_day(day)) - months(self.first);
        match self.unit {
            IntervalUnit::Days => (day - self.first.epoch_day()).div_euclid(self.every),
            IntervalUnit::Weeks => (day - self.first.epoch_day()).div_euclid(self.every * 7),
            IntervalUnit::Months => passed().div_euclid(self.every),
            IntervalUnit::Years => passed().div_euclid(self.every * 12),
        }
    }

    fn time(&self, k: i64) -> Option<i64> {
        self.day(k).map(|day| day * DAY + self.at.second())
    }
}

/// More would be past the last year for most units.
const INTERVAL_MAX: u32 = 1_000;

impl LocalTimes for CalendarInterval {
    fn at_or_after(&self, local: i64) -> Option<i64> {
        let near = self.near(split(local.clamp(0, (LAST_DAY + 1) * DAY)).0).max(0);
        (near.saturating_sub(1).max(0)..=near + 2).filter_map(|k| self.time(k)).find(|time| *time >= local)
    }

    fn at_or_before(&self, local: i64) -> Option<i64> {
        let near = self.near(split(local.clamp(0, (LAST_DAY + 1) * DAY)).0);
        (near - 1..=near + 2).rev().filter_map(|k| self.time(k)).find(|time| *time <= local)
    }

    fn is_every_hour(&self) -> bool {
        false
    }
}

// ── The nth workday ─────────────────────────────────────────────────────────────────────────────────────────────

/// On the nth workday of each week, month, quarter or year of a work calendar.
///
/// A period with fewer workdays has no fire. If the calendar stops at the end of its data, a period that is not known
/// to its end has no nth workday from its end.
///
/// ```
/// use std::sync::Arc;
/// use tickwright_cron::{DayEntry, NthWorkday, Rule, Span, Timestamp, WorkCalendar, Zone};
///
/// let mut calendar = WorkCalendar::default();
/// calendar.set("2026-12-31".parse()?, DayEntry::off("New Year's Eve"));
/// let last = NthWorkday::new(-1, Span::Quarter, "18:00".parse()?, Arc::new(calendar))?;
/// let rule = Rule::nth_workday(last, Zone::utc());
/// let october = Timestamp::from_millis(1_790_900_000_000);
/// assert_eq!(rule.next_after(october).unwrap().to_string(), "2026-12-30T18:00:00Z");
/// # Ok::<(), tickwright_cron::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NthWorkday {
    pub(crate) nth: i64,
    pub(crate) of: Span,
    pub(crate) at: TimeOfDay,
    pub(crate) calendar: Arc<WorkCalendar>,
}

/// A period in which workdays are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Span {
    /// Monday to Sunday.
    Week,
    /// A month.
    Month,
    /// January to March, and so on.
    Quarter,
    /// A year.
    Year,
}

impl NthWorkday {
    /// Creates a rule; `nth` counts from 1, or from -1 for the last workday, up to the days of the period.
    pub fn new(nth: i16, of: Span, at: TimeOfDay, calendar: Arc<WorkCalendar>) -> Result<NthWorkday, Error> {
        let (max, allowed) = match of {
            Span::Week => (7, "1 to 7, or -1 to -7 from the end of the week"),
            Span::Month => (31, "1 to 31, or -1 to -31 from the end of the month"),
            Span::Quarter => (92, "1 to 92, or -1 to -92 from the end of the quarter"),
            Span::Year => (366, "1 to 366, or -1 to -366 from the end of the year"),
        };
        match nth.unsigned_abs() {
            1.. if nth.unsigned_abs() <= max => Ok(NthWorkday { nth: nth.into(), of, at, calendar }),
            _ => Err(Error::Number { name: "the number of the workday", value: nth.into(), allowed }),
        }
    }

    /// First and last day of the period with this day.
    fn period(&self, epoch_day: i64) -> (i64, i64) {
        let day = Day::from_epoch_day(epoch_day);
        let (first_month, months) = match self.of {
            Span::Week => {
                let monday = epoch_day - i64::from(weekday(epoch_day));
                return (monday, monday + 6);
            }
            Span::Month => (day.month(), 1),
            Span::Quarter => ((day.month() - 1) / 3 * 3 + 1, 3),
            Span::Year => (1, 12),
        };
        let last_month = first_month + months - 1;
        let date = |month, day_of_month| {
            Day::new(day.year(), month, day_of_month).expect("every month has these days").epoch_day()
        };
        (date(first_month, 1), date(last_month, month_length(day.year(), last_month)))
    }

    /// The nth workday of the period.
    fn day_in(&self, (first, last): (i64, i64)) -> Option<i64> {
        let known = self.calendar.last_day().unwrap_or(i64::MAX);
        let is_work = |day: &i64| self.calendar.is_work_on(*day);
        let found = match self.nth {
            1.. => (first..=last).filter(is_work).nth(self.nth as usize - 1),
            _ if last > known => None,
            _ => (first..=last).rev().filter(is_work).nth(self.nth.unsigned_abs() as usize - 1),
        };
        found.filter(|day| *day <= known && (0..=LAST_DAY).contains(day))
    }

    fn time_in(&self, period: (i64, i64)) -> Option<i64> {
        self.day_in(period).map(|day| day * DAY + self.at.second())
    }
}

/// A search ends after so many days without an nth workday, about ten years.
const SEARCHED_MAX: i64 = 3_660;

impl LocalTimes for NthWorkday {
    fn at_or_after(&self, local: i64) -> Option<i64> {
        let start = split(local.max(0)).0;
        let mut period = self.period(start.min(LAST_DAY));
        while period.0 <= LAST_DAY && period.0 <= start + SEARCHED_MAX {
            if let Some(time) = self.time_in(period).filter(|time| *time >= local) {
                return Some(time);
            }
            period = self.period(period.1 + 1);
        }
        None
    }

    fn at_or_before(&self, local: i64) -> Option<i64> {
        let start = split(local).0.min(LAST_DAY);
        // Years without a fire are passed over once the data has ended.
        let start = start.min(self.calendar.last_day().unwrap_or(LAST_DAY));
        let mut period = self.period(start);
        while period.1 >= 0 && period.1 >= start - SEARCHED_MAX {
            if let Some(time) = self.time_in(period).filter(|time| *time <= local) {
                return Some(time);
            }
            period = self.period(period.0 - 1);
        }
        None
    }

    fn is_every_hour(&self) -> bool {
        false
    }
}
