//! Rules of a timetable as text, as users write them and as they are stored.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::cron::Cron;
use crate::duration::parse_duration;
use crate::error::Error;
use crate::field::Dialect;
use crate::time_of_day::{Weekdays, shortened};
use crate::timetable::{
    CalendarInterval, DailyWindow, IntervalUnit, NthWorkday, Rule, Span, Times, Timetable,
};
use crate::work_calendar::WorkCalendar;
use crate::zone::Zone;
use crate::{Day, DstRule};

impl Timetable {
    /// Parses rules, all in one zone:
    ///
    /// * `daily 09:00-17:30 every 30m on Mon-Fri`; without `on`, every day.
    /// * `every 2 weeks at 09:00 from 2026-08-31`: days, weeks, months or years. Without the number, every one.
    /// * `workday -1 of quarter at 18:00`: the last workday, Monday to Friday, of each week, month, quarter or year.
    /// * `cron 0 0 12 ? * SAT`, or `unix 0 12 * * 6` in the syntax of Unix.
    ///
    /// ```
    /// use tickwright_cron::{DstRule, Timestamp, Timetable, Zone};
    ///
    /// let rules = ["daily 09:00-17:30 every 30m on Mon-Fri", "cron 0 0 12 ? * SAT"];
    /// let timetable = Timetable::parse(&rules, &Zone::utc(), DstRule::NATURAL)?;
    /// let friday = Timestamp::from_millis(1_794_591_000_000); // 2026-11-13T17:30:00Z
    /// assert_eq!(timetable.next_after(friday).unwrap().to_string(), "2026-11-14T12:00:00Z");
    /// assert_eq!(timetable.to_texts().unwrap(), rules);
    /// # Ok::<(), tickwright_cron::Error>(())
    /// ```
    pub fn parse(rules: &[impl AsRef<str>], zone: &Zone, dst: DstRule) -> Result<Timetable, Error> {
        // Before they are parsed: a caller may send very many.
        if rules.len() > Timetable::RULES_MAX {
            return Err(Error::Rules { count: rules.len() });
        }
        let rule = |(index, text): (usize, &_)| match parse(AsRef::as_ref(text)) {
            Ok(times) => Ok(Rule::new(times, zone.clone()).dst(dst)),
            Err(error) => Err(Error::InRule { number: index + 1, error: Box::new(error) }),
        };
        Timetable::new(rules.iter().enumerate().map(rule).collect::<Result<_, _>>()?)
    }

    /// The rules as text, without their zones and daylight saving rules; `None` if one has a work calendar, which has
    /// no text.
    pub fn to_texts(&self) -> Option<Vec<String>> {
        let text = |rule: &Rule| rule.has_text().then(|| rule.times.to_string());
        self.rules().iter().map(text).collect()
    }
}

impl Rule {
    fn has_text(&self) -> bool {
        let is_plain = match &self.times {
            Times::NthWorkday(nth) => *nth.calendar == WorkCalendar::default(),
            Times::Cron(_) | Times::Window(_) | Times::Interval(_) => true,
        };
        is_plain && self.workdays.is_none()
    }
}

fn parse(text: &str) -> Result<Times, Error> {
    let wrong = || Error::Rule { text: shortened(text.trim()) };
    let (kind, rest) = text.trim().split_once(char::is_whitespace).ok_or_else(wrong)?;
    match kind {
        "cron" => return Cron::parse(rest).map(Times::Cron),
        "unix" => return Cron::parse_in(Dialect::Unix, rest).map(Times::Cron),
        _ => {}
    }
    let words: Vec<&str> = rest.split_whitespace().take(WORDS_MAX).collect();
    match (kind, words.as_slice()) {
        ("daily", [window, "every", interval]) => daily(window, interval, Weekdays::ALL, wrong),
        ("daily", [window, "every", interval, "on", days]) => daily(window, interval, days.parse()?, wrong),
        ("every", [unit, "at", time, "from", first]) => every("1", unit, time, first, wrong),
        ("every", [count, unit, "at", time, "from", first]) => every(count, unit, time, first, wrong),
        ("workday", [nth, "of", span, "at", time]) => {
            let (nth, span) = (nth.parse().map_err(|_| wrong())?, parse_span(span).ok_or_else(wrong)?);
            let calendar = Arc::new(WorkCalendar::default());
            NthWorkday::new(nth, span, time.parse()?, calendar).map(Times::NthWorkday)
        }
        _ => Err(wrong()),
    }
}

/// More words than any rule has, so that a long text is not split to its end.
const WORDS_MAX: usize = 8;

fn daily(window: &str, interval: &str, days: Weekdays, wrong: impl Fn() -> Error) -> Result<Times, Error> {
    let (from, until) = window.split_once('-').ok_or_else(wrong)?;
    DailyWindow::new(from.parse()?, until.parse()?, parse_duration(interval)?, days).map(Times::Window)
}

fn every(
    count: &str,
    unit: &str,
    time: &str,
    first: &str,
    wrong: impl Fn() -> Error,
) -> Result<Times, Error> {
    let unit = match unit.strip_suffix('s').unwrap_or(unit) {
        "day" => IntervalUnit::Days,
        "week" => IntervalUnit::Weeks,
        "month" => IntervalUnit::Months,
        "year" => IntervalUnit::Years,
        _ => return Err(wrong()),
    };
    let (first, count): (Day, u32) = (first.parse()?, count.parse().map_err(|_| wrong())?);
    CalendarInterval::new(first, time.parse()?, count, unit).map(Times::Interval)
}

fn parse_span(word: &str) -> Option<Span> {
    Some(match word {
        "week" => Span::Week,
        "month" => Span::Month,
        "quarter" => Span::Quarter,
        "year" => Span::Year,
        _ => return None,
    })
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Times::Cron(cron) => match cron.dialect() {
                Dialect::Quartz => write!(f, "cron {cron}"),
                Dialect::Unix => write!(f, "unix {cron}"),
            },
            Times::Window(DailyWindow { from, until, every, weekdays }) => {
                write!(f, "daily {from}-{until} every {}", Interval(*every))?;
                if *weekdays == Weekdays::ALL { Ok(()) } else { write!(f, " on {weekdays}") }
            }
            Times::Interval(CalendarInterval { first, at, every, unit }) => {
                let unit = match unit {
                    IntervalUnit::Days => "day",
                    IntervalUnit::Weeks => "week",
                    IntervalUnit::Months => "month",
                    IntervalUnit::Years => "year",
                };
                match every {
                    1 => write!(f, "every {unit} at {at} from {first}"),
                    _ => write!(f, "every {every} {unit}s at {at} from {first}"),
                }
            }
            Times::NthWorkday(NthWorkday { nth, of, at, .. }) => {
                let span = match of {
                    Span::Week => "week",
                    Span::Month => "month",
                    Span::Quarter => "quarter",
                    Span::Year => "year",
                };
                write!(f, "workday {nth} of {span} at {at}")
            }
        }
    }
}

/// Seconds in the largest unit without a fraction: `90s`, `30m`, `2h`.
struct Interval(i64);

impl Interval {
    const HOUR: i64 = 3_600;
    const MINUTE: i64 = 60;
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Interval(seconds) = *self;
        if seconds % Interval::HOUR == 0 {
            write!(f, "{}h", seconds / Interval::HOUR)
        } else if seconds % Interval::MINUTE == 0 {
            write!(f, "{}m", seconds / Interval::MINUTE)
        } else {
            write!(f, "{seconds}s")
        }
    }
}

impl DailyWindow {
    /// The interval between two fires of a day.
    pub(crate) fn interval(&self) -> Duration {
        Duration::from_secs(self.every.unsigned_abs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_one(text: &str) -> Result<Timetable, Error> {
        Timetable::parse(&[text], &Zone::utc(), DstRule::NATURAL)
    }

    #[test]
    fn rules_are_printed_in_one_form() {
        let check = |written: &str, printed: &str| {
            let timetable = parse_one(written).unwrap();
            assert_eq!(timetable.to_texts().unwrap(), [printed], "{written}");
            assert_eq!(parse_one(printed).unwrap(), timetable, "{printed}");
        };
        check("daily 09:00-17:30 every 30m on Mon-Fri", "daily 09:00-17:30 every 30m on Mon-Fri");
        check("  daily  9:00-17:30:15  every 1h30m ", "daily 09:00-17:30:15 every 90m");
        check("daily 00:00-23:59 every 3600s on mon-sun", "daily 00:00-23:59 every 1h");
        check("daily 00:00-23:59 every 45s", "daily 00:00-23:59 every 45s");
        check("every 2 weeks at 9:00 from 2026-08-31", "every 2 weeks at 09:00 from 2026-08-31");
        check("every 1 months at 9:00 from 2026-08-31", "every month at 09:00 from 2026-08-31");
        check("every year at 00:00 from 2024-02-29", "every year at 00:00 from 2024-02-29");
        check("workday -1 of quarter at 18:00", "workday -1 of quarter at 18:00");
        check("cron 0 0 12 ? * SAT", "cron 0 0 12 ? * SAT");
        check("unix 0 12 * * 6", "unix 0 12 * * 6");
    }

    #[test]
    fn a_wrong_rule_gets_an_error_with_a_right_one() {
        let check = |text: &str, expected: &str| {
            let error = parse_one(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        };
        for text in
            ["", "daily", "hourly 09:00-17:00 every 5m", "daily 09:00 every 5m", "every 2 at 9:00 from x"]
        {
            check(text, "is not a rule; write for example `daily 09:00-17:30 every 30m on Mon-Fri`");
        }
        check("every two weeks at 09:00 from 2026-08-31", "is not a rule");
        check("workday last of month at 09:00", "is not a rule");
        check("workday 1 of month at 09:00 on Mon", "is not a rule");
        check("daily 09:00-17:00 every 5m on Mo", "is not a set of weekdays");
        check("daily 09:00-17:00 every 5", "5");
        check("daily 25:00-26:00 every 5m", "`25:00` is not a time of day");
        check("daily 17:00-09:00 every 5m", "before it begins");
        check("daily 09:00-17:00 every 0s", "whole seconds, 1 s to 24 h");
        check("every 0 weeks at 09:00 from 2026-08-31", "1 to 1000");
        check("every week at 09:00 from 2026-02-30", "`2026-02-30` is not a date");
        check("workday 0 of month at 09:00", "1 to 31");
        check("cron 0 0 25 * * ?", "25");
        check(&"daily ".repeat(100_000), "is not a rule");
        let second = Timetable::parse(&["cron 0 0 12 ? * SAT", "hourly"], &Zone::utc(), DstRule::NATURAL);
        assert!(second.unwrap_err().to_string().starts_with("rule 2: `hourly` is not a rule"));
        assert_eq!(
            Timetable::parse(&["x"; 33], &Zone::utc(), DstRule::NATURAL),
            Err(Error::Rules { count: 33 })
        );
        let none: [&str; 0] = [];
        assert_eq!(Timetable::parse(&none, &Zone::utc(), DstRule::NATURAL), Err(Error::Rules { count: 0 }));
    }
}
