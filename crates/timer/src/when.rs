//! Schedules of tasks, as pure functions of the time.
//!
//! Two clocks are used. Calendar schedules (once at, cron, custom triggers) follow the wall clock and its steps;
//! durations (after, fixed rate, fixed delay) follow the monotonic clock, which has none.

use std::fmt;
use std::time::Duration;

use cron::{Cron, DstRule, Timestamp, Timetable, Zone};

use crate::Clock;

/// The schedule of a task.
///
/// A task never runs concurrently with itself. If it is still running or queued when it is due again, it runs once
/// more as soon as possible; the ticks that passed meanwhile are counted as missed and reported, but not run, unless
/// [`catch_up`](When::catch_up) is set.
///
/// ```
/// use std::time::Duration;
/// use tickwright_timer::{Clock, SystemClock, When};
///
/// let (second, minute) = (Duration::from_secs(1), Duration::from_secs(60));
/// let tomorrow = SystemClock::new().now() + 24 * 60 * minute;
/// When::at(tomorrow);
/// When::after(minute);
/// When::fixed_rate(second).initial_delay(minute).catch_up();
/// When::fixed_delay(second).initial_delay(minute);
/// When::cron("0 30 2 * * ?", "Europe/London").unwrap();
/// ```
#[derive(Debug)]
pub struct When {
    rule: Rule,
    initial_delay: Duration,
    catch_up: bool,
}

#[derive(Debug)]
enum Rule {
    At(Timestamp),
    After,
    Rate(Duration),
    Delay(Duration),
    Calendar(Box<Calendar>),
    Own(Box<dyn Trigger>),
}

#[derive(Debug)]
struct Calendar {
    times: Timetable,
    /// The last time that fired. It does not fire again, even if the clock shows it again.
    fired: Option<Timestamp>,
    /// Monotonic end of the initial delay.
    not_before: Duration,
}

impl When {
    /// Once, when the wall clock shows `at`; at once if that is past.
    pub fn at(at: Timestamp) -> When {
        When::new(Rule::At(at))
    }

    /// Once, after `delay`.
    pub fn after(delay: Duration) -> When {
        When::new(Rule::After).initial_delay(delay)
    }

    /// At once and then every `period`, from start to start; at least a millisecond.
    pub fn fixed_rate(period: Duration) -> When {
        When::new(Rule::Rate(period.max(SHORTEST)))
    }

    /// At once and then `delay` after the end of each run; at least a millisecond.
    pub fn fixed_delay(delay: Duration) -> When {
        When::new(Rule::Delay(delay.max(SHORTEST)))
    }

    /// By a Quartz or Unix cron expression in a time zone, for example `0 30 2 * * ?` in `Europe/London`.
    ///
    /// On days when clocks change, fixed hours fire exactly once; see [`DstRule::NATURAL`].
    ///
    /// ```
    /// use tickwright_timer::When;
    ///
    /// When::cron("0 30 2 * * ?", "Europe/London").unwrap();
    /// let error = When::cron("0 30 2 * * ?", "London").unwrap_err();
    /// assert!(error.to_string().contains("did you mean `Europe/London`?"));
    /// ```
    pub fn cron(expr: &str, zone: &str) -> Result<When, cron::Error> {
        Ok(When::calendar(Cron::parse(expr)?, Zone::parse(zone)?, DstRule::NATURAL))
    }

    /// Like [`cron`](When::cron), with a parsed expression and zone and a choice of daylight saving rule.
    pub fn calendar(cron: Cron, zone: Zone, dst: DstRule) -> When {
        When::timetable(cron::Rule::cron(cron, zone).dst(dst))
    }

    /// By a timetable: one or several rules, such as time windows, calendar intervals or the nth workday, each with a
    /// work calendar if needed.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::time::Duration;
    /// use tickwright_timer::{
    ///     CalendarFormat, CalendarInterval, Cron, DailyWindow, IntervalUnit, NthWorkday, OnDays, Rule, Shift, Span,
    ///     Timetable, Weekdays, When, WorkCalendar, Workdays, Zone,
    /// };
    ///
    /// let zone = Zone::parse("Asia/Shanghai")?;
    /// let file = "2026-10-01,off,国庆节\n2026-10-10,work,国庆节\n";
    /// let mut calendar = WorkCalendar::default();
    /// calendar.extend(&CalendarFormat::Csv.parse(file, "2026-01-01".parse()?)?);
    /// let calendar = Arc::new(calendar);
    ///
    /// // At 18:00 on workdays only.
    /// let workdays = Workdays::new(Arc::clone(&calendar), OnDays::Work, Shift::Skip);
    /// When::timetable(Rule::cron(Cron::parse("0 0 18 * * ?")?, zone.clone()).on(workdays));
    ///
    /// // On the first of the month, or on the next workday.
    /// let payday = Workdays::new(Arc::clone(&calendar), OnDays::Work, Shift::Next);
    /// When::timetable(Rule::cron(Cron::parse("0 0 9 1 * ?")?, zone.clone()).on(payday));
    ///
    /// // On the last workday of the quarter.
    /// let last = NthWorkday::new(-1, Span::Quarter, "17:00".parse()?, calendar)?;
    /// When::timetable(Rule::nth_workday(last, zone.clone()));
    ///
    /// // Every 15 minutes from 09:00 to 17:30, Monday to Friday, and every second week at noon.
    /// let quarter_hour = Duration::from_secs(15 * 60);
    /// let window =
    ///     DailyWindow::new("09:00".parse()?, "17:30".parse()?, quarter_hour, Weekdays::MONDAY_TO_FRIDAY)?;
    /// let fortnight = CalendarInterval::new("2026-11-21".parse()?, "12:00".parse()?, 2, IntervalUnit::Weeks)?;
    /// When::timetable(Timetable::new(vec![
    ///     Rule::window(window, zone.clone()),
    ///     Rule::interval(fortnight, zone),
    /// ])?);
    /// # Ok::<(), tickwright_timer::CronError>(())
    /// ```
    pub fn timetable(times: impl Into<Timetable>) -> When {
        let calendar = Calendar { times: times.into(), fired: None, not_before: Duration::ZERO };
        When::new(Rule::Calendar(Box::new(calendar)))
    }

    /// By a custom trigger.
    pub fn trigger(trigger: impl Trigger + 'static) -> When {
        When::new(Rule::Own(Box::new(trigger)))
    }

    /// Nothing is due before this has passed.
    pub fn initial_delay(self, delay: Duration) -> When {
        When { initial_delay: delay, ..self }
    }

    /// Runs every missed tick of a fixed rate or a calendar too, one after the other.
    pub fn catch_up(self) -> When {
        When { catch_up: true, ..self }
    }

    fn new(rule: Rule) -> When {
        When { rule, initial_delay: Duration::ZERO, catch_up: false }
    }

    /// The first due time; `None` if never.
    pub(crate) fn first(&mut self, now: Now) -> Option<Due> {
        let earliest = now.monotonic.saturating_add(self.initial_delay);
        let not_early = |at: Timestamp| match self.initial_delay {
            Duration::ZERO => Due::Wall(at),
            delay => Due::Wall(at.max(now.wall + delay)),
        };
        match &mut self.rule {
            Rule::After | Rule::Rate(_) | Rule::Delay(_) => Some(Due::Monotonic(earliest)),
            Rule::At(at) => Some(not_early(*at)),
            Rule::Calendar(calendar) => {
                calendar.not_before = earliest;
                calendar.next(now)
            }
            Rule::Own(trigger) => trigger.next(Past { now: now.wall, last: None }).map(not_early),
        }
    }

    /// Records that the run due at `due` starts now; returns its missed ticks and the next due time.
    pub(crate) fn start(&mut self, due: Due, now: Now) -> Start {
        match (&mut self.rule, due) {
            (Rule::Rate(period), Due::Monotonic(at)) => {
                let missed = if self.catch_up { 0 } else { ticks(now.monotonic.saturating_sub(at), *period) };
                let next = at.saturating_add(times(*period, missed + 1));
                Start { missed, next: Next::Due(Due::Monotonic(next)) }
            }
            (Rule::Calendar(calendar), Due::Wall(at)) => {
                calendar.fired = Some(at);
                let until = if self.catch_up { at } else { now.wall.max(at) };
                let missed = calendar.times.count_between(at, until, MISSED_COUNTED_MAX);
                let next = calendar.times.next_after(until);
                Start { missed, next: next.map_or(Next::Never, |at| Next::Due(Due::Wall(at))) }
            }
            (Rule::Delay(_) | Rule::Own(_), _) => Start { missed: 0, next: Next::AfterRun },
            _ => Start { missed: 0, next: Next::Never },
        }
    }

    /// The next due time, for schedules that depend on the end of a run. May call user code.
    pub(crate) fn after_run(&mut self, run: Run, now: Now) -> Option<Due> {
        match &mut self.rule {
            Rule::Delay(delay) => Some(Due::Monotonic(now.monotonic.saturating_add(*delay))),
            Rule::Own(trigger) => trigger.next(Past { now: now.wall, last: Some(run) }).map(Due::Wall),
            _ => None,
        }
    }

    /// Whether the next time changes when the wall clock is set back.
    pub(crate) fn is_calendar(&self) -> bool {
        matches!(self.rule, Rule::Calendar(_))
    }

    /// The next due time after the wall clock was set back; for calendars only.
    pub(crate) fn rewound(&self, now: Now) -> Option<Due> {
        match &self.rule {
            Rule::Calendar(calendar) => calendar.next(now),
            _ => None,
        }
    }
}

impl Calendar {
    fn next(&self, now: Now) -> Option<Due> {
        let from = now.wall + self.not_before.saturating_sub(now.monotonic);
        self.times.next_after(self.fired.map_or(from, |fired| fired.max(from))).map(Due::Wall)
    }
}

/// A custom rule for when a task runs next.
///
/// Called once when the task is added and again after each run. A time in the past is due at once; `None` ends the
/// task. Closures are triggers:
///
/// ```
/// use std::time::Duration;
/// use tickwright_timer::{Past, When};
///
/// // Three runs, each a little later than the one before.
/// let mut waits = [1, 2, 4].map(Duration::from_secs).into_iter();
/// let backing_off = When::trigger(move |past: Past| waits.next().map(|wait| past.now + wait));
/// ```
pub trait Trigger: Send {
    /// Returns the next time to run, or `None` to stop.
    fn next(&mut self, past: Past) -> Option<Timestamp>;
}

impl<F: FnMut(Past) -> Option<Timestamp> + Send> Trigger for F {
    fn next(&mut self, past: Past) -> Option<Timestamp> {
        self(past)
    }
}

impl fmt::Debug for dyn Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("own trigger")
    }
}

/// Input of a [`Trigger`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Past {
    /// Wall clock time.
    pub now: Timestamp,
    /// The last run, if there was one.
    pub last: Option<Run>,
}

/// One run of a task, in wall clock time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Scheduled time of the run.
    pub scheduled_at: Timestamp,
    /// When the run started.
    pub started_at: Timestamp,
    /// When the run ended.
    pub completed_at: Timestamp,
}

/// Both clocks, read together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    pub wall: Timestamp,
    pub monotonic: Duration,
}

impl Now {
    pub fn read(clock: &dyn Clock) -> Now {
        Now { wall: clock.now(), monotonic: clock.monotonic() }
    }
}

/// A due time on the clock that the schedule follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    Wall(Timestamp),
    Monotonic(Duration),
}

impl Due {
    /// Converts it to the wall clock as it is set now.
    pub fn at(self, now: Now) -> Timestamp {
        match self {
            Due::Wall(at) => at,
            Due::Monotonic(at) if at >= now.monotonic => now.wall + (at - now.monotonic),
            Due::Monotonic(at) => now.wall - (now.monotonic - at),
        }
    }

    /// How long ago it was; zero if it is still to come.
    pub fn late_by(self, now: Now) -> Duration {
        match self {
            Due::Wall(at) => now.wall.duration_since(at),
            Due::Monotonic(at) => now.monotonic.saturating_sub(at),
        }
    }
}

/// Result of starting a run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Start {
    /// Ticks after its own that passed before it could start.
    pub missed: u64,
    pub next: Next,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Due(Due),
    /// Known when the run has ended; see [`When::after_run`].
    AfterRun,
    Never,
}

/// Whole periods in a duration.
fn ticks(length: Duration, period: Duration) -> u64 {
    u64::try_from(length.as_nanos() / period.as_nanos()).unwrap_or(u64::MAX - 1)
}

fn times(period: Duration, count: u64) -> Duration {
    let nanos = period.as_nanos().saturating_mul(u128::from(count));
    Duration::from_nanos_u128(nanos.min(Duration::MAX.as_nanos()))
}

/// The wheel's tick; a shorter period would only start several runs at once.
const SHORTEST: Duration = Duration::from_millis(1);

/// Upper bound of the count: counting a year of seconds would take half a minute.
const MISSED_COUNTED_MAX: u64 = 10_000;
