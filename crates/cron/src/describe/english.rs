//! Descriptions in English: the time first, then the days.

use std::time::Duration;

use super::{Group, clock_times, groups, is_any, is_list, spelled_out, units};
use crate::field::{Expression, Field, Part};

pub(super) fn cron(expression: &Expression) -> String {
    let mut clauses = Vec::new();
    let times = clock_times(expression);
    match &times {
        Some(times) => clauses.push(format!("at {}", and(times))),
        None => clauses.extend(time_of_day(expression)),
    }
    let (days, months) = (days(expression), months(expression));
    if let (None, None, Some(_)) = (&days, &months, &times) {
        clauses.push("every day".to_owned());
    }
    clauses.extend(days);
    clauses.extend(months);
    clauses.extend(years(expression));
    capitalized(&clauses.join(", "))
}

fn time_of_day(expression: &Expression) -> Vec<String> {
    let mut clauses = Vec::new();
    let on_the_minute = expression.values(Field::Second) == [0];
    if !on_the_minute {
        clauses.push(clause(expression, Field::Second, "second"));
    }
    if !is_any(expression, Field::Minute) || on_the_minute {
        clauses.push(clause(expression, Field::Minute, "minute"));
    } else if is_list(expression, Field::Second) {
        clauses.push("every minute".to_owned());
    }
    if !is_any(expression, Field::Hour) {
        clauses.push(and(&groups(expression.field(Field::Hour)).iter().map(hours).collect::<Vec<_>>()));
    } else if is_list(expression, Field::Minute) {
        clauses.push("every hour".to_owned());
    }
    clauses
}

/// Describes seconds or minutes.
fn clause(expression: &Expression, field: Field, unit: &str) -> String {
    let words = |group: &Group| match group {
        Group::Values(values) => {
            let plural = if values.len() > 1 { "s" } else { "" };
            format!("at {unit}{plural} {}", and(&strings(values)))
        }
        Group::Part(Part::Every { step } | Part::From { start: 0, step }) => every(*step, unit),
        Group::Part(Part::From { start, step }) => format!("{} from {unit} {start}", every(*step, unit)),
        Group::Part(Part::Range { start, end, step }) => {
            format!("{} from {unit} {start} to {end}", every(*step, unit))
        }
        Group::Part(_) => String::new(),
    };
    and(&groups(expression.field(field)).iter().map(words).collect::<Vec<_>>())
}

fn hours(group: &Group) -> String {
    match group {
        Group::Values(hours) if hours.len() == 1 => format!("from {0:02}:00 to {0:02}:59", hours[0]),
        Group::Values(hours) => format!("during the hours {}", and(&strings(hours))),
        Group::Part(Part::Every { step } | Part::From { start: 0, step }) => every(*step, "hour"),
        Group::Part(Part::From { start, step }) => format!("{} from {start:02}:00", every(*step, "hour")),
        Group::Part(Part::Range { start, end, step: 1 }) => format!("from {start:02}:00 to {end:02}:59"),
        Group::Part(Part::Range { start, end, step }) => {
            format!("{} from {start:02}:00 to {end:02}:59", every(*step, "hour"))
        }
        Group::Part(_) => String::new(),
    }
}

fn days(expression: &Expression) -> Option<String> {
    let by_date = (!is_any(expression, Field::DayOfMonth)).then(|| month_days(expression));
    let by_weekday = (!is_any(expression, Field::DayOfWeek)).then(|| week_days(expression));
    match (by_date, by_weekday) {
        (Some(date), Some(weekday)) if expression.either_day => Some(format!("on {date} or on {weekday}")),
        (Some(date), Some(weekday)) => Some(format!("on {date}, only if it is {weekday}")),
        (Some(days), None) | (None, Some(days)) if !expression.either_day => Some(format!("on {days}")),
        // Either day field is enough, and one of them matches any day.
        _ => None,
    }
}

fn month_days(expression: &Expression) -> String {
    let words = |part: &Part| match *part {
        Part::One(day) => format!("the {}", ordinal(day)),
        Part::Every { step } => format!("every {} day from the 1st", ordinal(step)),
        Part::From { start, step } => format!("every {} day from the {}", ordinal(step), ordinal(start)),
        Part::Range { start, end, step: 1 } => format!("the {} through the {}", ordinal(start), ordinal(end)),
        Part::Range { start, end, step } => {
            format!("every {} day from the {} to the {}", ordinal(step), ordinal(start), ordinal(end))
        }
        Part::Last { before: 0, workday: false } => "the last day".to_owned(),
        Part::Last { before: 0, workday: true } => "the last workday".to_owned(),
        Part::Last { before, workday: false } => format!("the day {} before the last", days_long(before)),
        Part::Last { before, workday: true } => {
            format!("the workday nearest to the day {} before the last", days_long(before))
        }
        Part::Nearest(day) => format!("the workday nearest to the {}", ordinal(day)),
        Part::LastOf(_) | Part::Nth { .. } => String::new(),
    };
    let parts: Vec<String> = expression.field(Field::DayOfMonth).iter().map(words).collect();
    format!("{} of the month", and(&parts))
}

fn week_days(expression: &Expression) -> String {
    let words = |part: &Part| match *part {
        Part::One(day) => WEEKDAYS[usize::from(day) - 1].to_owned(),
        Part::Range { start, end, .. } => {
            format!("{} through {}", WEEKDAYS[usize::from(start) - 1], WEEKDAYS[usize::from(end) - 1])
        }
        Part::LastOf(day) => format!("the last {} of the month", WEEKDAYS[usize::from(day) - 1]),
        Part::Nth { weekday, nth } => {
            format!("the {} {} of the month", ordinal(nth), WEEKDAYS[usize::from(weekday) - 1])
        }
        _ => String::new(),
    };
    let parts = spelled_out(expression.field(Field::DayOfWeek), Field::DayOfWeek);
    and(&parts.iter().map(words).collect::<Vec<_>>())
}

fn months(expression: &Expression) -> Option<String> {
    let words = |part: &Part| match *part {
        Part::One(month) => MONTHS[usize::from(month) - 1].to_owned(),
        Part::Range { start, end, .. } => {
            format!("{} through {}", MONTHS[usize::from(start) - 1], MONTHS[usize::from(end) - 1])
        }
        _ => String::new(),
    };
    let parts = spelled_out(expression.field(Field::Month), Field::Month);
    (!is_any(expression, Field::Month))
        .then(|| format!("in {}", and(&parts.iter().map(words).collect::<Vec<_>>())))
}

fn years(expression: &Expression) -> Option<String> {
    let words = |group: &Group| match group {
        Group::Values(years) => format!("in {}", and(&strings(years))),
        Group::Part(Part::Every { step }) => format!("{} from 1970", every(*step, "year")),
        Group::Part(Part::From { start, step }) => format!("{} from {start}", every(*step, "year")),
        Group::Part(Part::Range { start, end, step: 1 }) => format!("from {start} to {end}"),
        Group::Part(Part::Range { start, end, step }) => {
            format!("{} from {start} to {end}", every(*step, "year"))
        }
        Group::Part(_) => String::new(),
    };
    (!is_any(expression, Field::Year))
        .then(|| and(&groups(expression.field(Field::Year)).iter().map(words).collect::<Vec<_>>()))
}

const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

pub(super) fn length(length: Duration) -> String {
    let names = ["day", "hour", "minute", "second", "millisecond"];
    let words = |(unit, count): (usize, u128)| {
        let plural = if count == 1 { "" } else { "s" };
        format!("{count} {}{plural}", names[unit])
    };
    units(length).into_iter().map(words).collect::<Vec<_>>().join(" ")
}

fn every(step: u16, unit: &str) -> String {
    if step == 1 { format!("every {unit}") } else { format!("every {step} {unit}s") }
}

fn days_long(days: u16) -> String {
    if days == 1 { "1 day".to_owned() } else { format!("{days} days") }
}

pub(super) fn ordinal(number: u16) -> String {
    let ending = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

fn and(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

fn strings(numbers: &[u16]) -> Vec<String> {
    numbers.iter().map(u16::to_string).collect()
}

fn capitalized(text: &str) -> String {
    text.get(..1).map(|first| first.to_ascii_uppercase() + &text[1..]).unwrap_or_default()
}
