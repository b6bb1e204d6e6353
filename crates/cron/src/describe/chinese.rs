//! Descriptions in Chinese: from the year down to the second.

use std::time::Duration;

use super::{Group, clock_times, groups, is_any, is_list, spelled_out, units};
use crate::field::{Expression, Field, Part};

pub(super) fn cron(expression: &Expression) -> String {
    let mut clauses = Vec::new();
    clauses.extend(years(expression));
    clauses.extend(months(expression));
    let times = clock_times(expression);
    match (days(expression), &times) {
        (Some(days), _) => clauses.push(days),
        (None, Some(_)) => clauses.push("每天".to_owned()),
        (None, None) => {}
    }
    match times {
        Some(times) => {
            let day = clauses.pop().unwrap_or_default();
            clauses.push(format!("{day} {}", times.join("、")));
        }
        None => clauses.extend(time_of_day(expression)),
    }
    clauses.join("，")
}

fn time_of_day(expression: &Expression) -> Vec<String> {
    let mut clauses = Vec::new();
    let on_the_minute = expression.values(Field::Second) == [0];
    if !is_any(expression, Field::Hour) {
        clauses.push(list(groups(expression.field(Field::Hour)).iter().map(hours)));
    } else if is_list(expression, Field::Minute) {
        clauses.push("每小时".to_owned());
    }
    if !is_any(expression, Field::Minute) || on_the_minute {
        clauses.push(clause(expression, Field::Minute, "分钟", "分"));
    } else if is_list(expression, Field::Second) {
        clauses.push("每分钟".to_owned());
    }
    if !on_the_minute {
        clauses.push(clause(expression, Field::Second, "秒", "秒"));
    }
    clauses
}

/// Describes seconds or minutes: `unit` is used for durations, `mark` for positions.
fn clause(expression: &Expression, field: Field, unit: &str, mark: &str) -> String {
    let words = |group: &Group| match group {
        Group::Values(values) => format!("第 {} {mark}", numbers(values)),
        Group::Part(Part::Every { step } | Part::From { start: 0, step }) => every(*step, unit),
        Group::Part(Part::From { start, step }) => format!("从第 {start} {mark}起{}", every(*step, unit)),
        Group::Part(Part::Range { start, end, step }) => {
            format!("第 {start} 至 {end} {mark}{}", every(*step, unit))
        }
        Group::Part(_) => String::new(),
    };
    list(groups(expression.field(field)).iter().map(words))
}

fn hours(group: &Group) -> String {
    match group {
        Group::Values(hours) if hours.len() == 1 => format!("{0:02}:00 至 {0:02}:59", hours[0]),
        Group::Values(hours) => format!("{} 点", numbers(hours)),
        Group::Part(Part::Every { step } | Part::From { start: 0, step }) => every(*step, "小时"),
        Group::Part(Part::From { start, step }) => format!("从 {start:02}:00 起{}", every(*step, "小时")),
        Group::Part(Part::Range { start, end, step: 1 }) => format!("{start:02}:00 至 {end:02}:59"),
        Group::Part(Part::Range { start, end, step }) => {
            format!("{start:02}:00 至 {end:02}:59 {}", every(*step, "小时"))
        }
        Group::Part(_) => String::new(),
    }
}

fn days(expression: &Expression) -> Option<String> {
    let by_date = (!is_any(expression, Field::DayOfMonth)).then(|| month_days(expression));
    let by_weekday = (!is_any(expression, Field::DayOfWeek)).then(|| week_days(expression));
    match (by_date, by_weekday) {
        (Some(date), Some(weekday)) if expression.either_day => Some(format!("{date}或每{weekday}")),
        (Some(date), Some(weekday)) => Some(format!("{date}且为{weekday}")),
        (Some(date), None) if !expression.either_day => Some(date),
        (None, Some(weekday)) if !expression.either_day => Some(match expression.field(Field::DayOfWeek) {
            [Part::LastOf(_) | Part::Nth { .. }] => format!("{}{weekday}", month(expression)),
            _ => format!("每{weekday}"),
        }),
        // Either day field is enough, and one of them matches any day.
        _ => None,
    }
}

fn month_days(expression: &Expression) -> String {
    let words = |part: &Part| match *part {
        Part::One(day) => format!("{day} 日"),
        Part::Every { step } => format!("从 1 日起每 {step} 天"),
        Part::From { start, step } => format!("从 {start} 日起每 {step} 天"),
        Part::Range { start, end, step: 1 } => format!("{start} 日至 {end} 日"),
        Part::Range { start, end, step } => format!("{start} 日至 {end} 日每 {step} 天"),
        Part::Last { before: 0, workday: false } => "最后一天".to_owned(),
        Part::Last { before: 0, workday: true } => "最后一个工作日".to_owned(),
        Part::Last { before, workday: false } => format!("倒数第 {} 天", before + 1),
        Part::Last { before, workday: true } => format!("最接近倒数第 {} 天的工作日", before + 1),
        Part::Nearest(day) => format!("最接近 {day} 日的工作日"),
        Part::LastOf(_) | Part::Nth { .. } => String::new(),
    };
    let days = list(expression.field(Field::DayOfMonth).iter().map(words));
    let blank = if days.starts_with(|first: char| first.is_ascii_digit()) { " " } else { "" };
    format!("{}{blank}{days}", month(expression))
}

/// Every month, or the one just named.
fn month(expression: &Expression) -> &'static str {
    if is_any(expression, Field::Month) { "每月" } else { "当月" }
}

fn week_days(expression: &Expression) -> String {
    let parts = spelled_out(expression.field(Field::DayOfWeek), Field::DayOfWeek);
    let words = |part: &Part| match *part {
        Part::One(day) => format!("周{}", WEEKDAYS[usize::from(day) - 1]),
        Part::Range { start, end, .. } => {
            format!("周{}至周{}", WEEKDAYS[usize::from(start) - 1], WEEKDAYS[usize::from(end) - 1])
        }
        Part::LastOf(day) => format!("最后一个周{}", WEEKDAYS[usize::from(day) - 1]),
        Part::Nth { weekday, nth } => format!("第 {nth} 个周{}", WEEKDAYS[usize::from(weekday) - 1]),
        _ => String::new(),
    };
    list(parts.iter().map(words))
}

fn months(expression: &Expression) -> Option<String> {
    let words = |part: &Part| match *part {
        Part::One(month) => format!("{month} 月"),
        Part::Range { start, end, .. } => format!("{start} 月至 {end} 月"),
        _ => String::new(),
    };
    let parts = spelled_out(expression.field(Field::Month), Field::Month);
    let each = if is_any(expression, Field::Year) { "每年 " } else { "" };
    (!is_any(expression, Field::Month)).then(|| format!("{each}{}", list(parts.iter().map(words))))
}

fn years(expression: &Expression) -> Option<String> {
    let words = |group: &Group| match group {
        Group::Values(years) => format!("{} 年", numbers(years)),
        Group::Part(Part::Every { step }) => format!("从 1970 年起每 {step} 年"),
        Group::Part(Part::From { start, step }) => format!("从 {start} 年起每 {step} 年"),
        Group::Part(Part::Range { start, end, step: 1 }) => format!("{start} 年至 {end} 年"),
        Group::Part(Part::Range { start, end, step }) => format!("{start} 年至 {end} 年每 {step} 年"),
        Group::Part(_) => String::new(),
    };
    (!is_any(expression, Field::Year)).then(|| list(groups(expression.field(Field::Year)).iter().map(words)))
}

const WEEKDAYS: [&str; 7] = ["日", "一", "二", "三", "四", "五", "六"];

pub(super) fn length(length: Duration) -> String {
    let names = ["天", "小时", "分钟", "秒", "毫秒"];
    let words = |(unit, count): (usize, u128)| format!("{count} {}", names[unit]);
    units(length).into_iter().map(words).collect::<Vec<_>>().join(" ")
}

fn every(step: u16, unit: &str) -> String {
    if step == 1 { format!("每{unit}") } else { format!("每 {step} {unit}") }
}

fn list(words: impl Iterator<Item = String>) -> String {
    words.collect::<Vec<_>>().join("、")
}

fn numbers(numbers: &[u16]) -> String {
    list(numbers.iter().map(u16::to_string))
}
