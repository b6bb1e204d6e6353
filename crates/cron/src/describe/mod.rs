//! Describes schedules in words. This module analyses the expression and has the wording of each kind of schedule;
//! the wording of cron expressions has one module per language.

mod chinese;
mod english;
mod rules;

use std::time::Duration;

use crate::cron::Cron;
use crate::field::{Expression, Field, Part};
use crate::schedule::Schedule;

/// A language to describe schedules in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Language {
    /// English.
    English,
    /// Simplified Chinese.
    Chinese,
}

impl Cron {
    /// Describes the expression in words.
    ///
    /// ```
    /// use tickwright_cron::{Cron, Language};
    ///
    /// let cron = Cron::parse("0 0/15 9-17 ? * MON-FRI").unwrap();
    /// assert_eq!(cron.describe(Language::English), "Every 15 minutes, from 09:00 to 17:59, on Monday through Friday");
    /// assert_eq!(cron.describe(Language::Chinese), "每周一至周五，09:00 至 17:59，每 15 分钟");
    /// ```
    pub fn describe(&self, language: Language) -> String {
        let expression = self.expression();
        match language {
            Language::English => english::cron(&expression),
            Language::Chinese => chinese::cron(&expression),
        }
    }
}

impl Schedule {
    /// Describes the schedule in words.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwright_cron::{Language, Schedule};
    ///
    /// let schedule = Schedule::fixed_delay(Duration::from_secs(90)).unwrap();
    /// assert_eq!(schedule.describe(Language::English), "1 minute 30 seconds after each run ends");
    /// assert_eq!(schedule.describe(Language::Chinese), "每次执行结束后 1 分钟 30 秒");
    /// ```
    pub fn describe(&self, language: Language) -> String {
        let length = |length| match language {
            Language::English => english::length(length),
            Language::Chinese => chinese::length(length),
        };
        let say = |english: &str, chinese: &str, value: &str| match language {
            Language::English => english.replace("{}", value),
            Language::Chinese => chinese.replace("{}", value),
        };
        match self {
            Schedule::Cron { cron, zone, .. } => {
                cron.describe(language) + &say(" ({})", "（{}）", zone.name())
            }
            Schedule::Timetable(timetable) => timetable.describe(language),
            Schedule::FixedRate { period, .. } => say("Every {}", "每隔 {}", &length(*period)),
            Schedule::FixedDelay { delay } => {
                say("{} after each run ends", "每次执行结束后 {}", &length(*delay))
            }
            Schedule::Once { at } => say("Once, at {}", "仅一次，{}", &at.to_string()),
            Schedule::Never => say("Manual only", "仅手动", ""),
        }
    }
}

/// The times of day, if there are few enough to list them.
fn clock_times(expression: &Expression) -> Option<Vec<String>> {
    let [hours, minutes, seconds] =
        [Field::Hour, Field::Minute, Field::Second].map(|field| expression.values(field));
    if hours.len() * minutes.len() * seconds.len() > CLOCK_TIMES_MAX {
        return None;
    }
    let mut times = Vec::new();
    for hour in &hours {
        for minute in &minutes {
            for second in &seconds {
                times.push(match second {
                    0 => format!("{hour:02}:{minute:02}"),
                    _ => format!("{hour:02}:{minute:02}:{second:02}"),
                });
            }
        }
    }
    Some(times)
}

/// Maximum times of day to list; more are described as a pattern.
const CLOCK_TIMES_MAX: usize = 6;

/// Whether the field restricts nothing: `*`, `?`, or every value in another notation.
fn is_any(expression: &Expression, field: Field) -> bool {
    let (min, max) = field.bounds();
    expression.field(field).is_empty() || expression.values(field).len() == usize::from(max - min + 1)
}

/// Whether the field has single values only, without a step.
fn is_list(expression: &Expression, field: Field) -> bool {
    expression.field(field).iter().all(|part| matches!(part, Part::One(_)))
}

/// Adjacent single values as one list, every other part by itself; in the order written.
enum Group {
    Values(Vec<u16>),
    Part(Part),
}

fn groups(parts: &[Part]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for part in parts {
        match (*part, groups.last_mut()) {
            (Part::One(value), Some(Group::Values(values))) => values.push(value),
            (Part::One(value), _) => groups.push(Group::Values(vec![value])),
            (part, _) => groups.push(Group::Part(part)),
        }
    }
    groups
}

/// Expands steps to lists for fields with named values, because `2/2` is unclear for weekdays.
fn spelled_out(parts: &[Part], field: Field) -> Vec<Part> {
    parts
        .iter()
        .flat_map(|part| match *part {
            Part::Every { .. } | Part::From { .. } => part.values(field).map(Part::One).collect(),
            Part::Range { step, .. } if step > 1 => part.values(field).map(Part::One).collect(),
            part => vec![part],
        })
        .collect()
}

/// Splits a duration into days, hours, minutes, seconds and milliseconds; only those that are not zero.
fn units(length: Duration) -> Vec<(usize, u128)> {
    let mut rest = length.as_millis();
    let mut units = Vec::new();
    for (index, millis) in [86_400_000, 3_600_000, 60_000, 1_000, 1].into_iter().enumerate() {
        if rest >= millis {
            units.push((index, rest / millis));
            rest %= millis;
        }
    }
    units
}
