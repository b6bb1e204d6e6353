//! Descriptions of the rules of a timetable.

use super::{Language, chinese, english};
use crate::cron::Cron;
use crate::time_of_day::Weekdays;
use crate::timetable::{
    CalendarInterval, DailyWindow, IntervalUnit, NthWorkday, Rule, Span, Times, Timetable,
};

impl Timetable {
    /// Describes the rules in words, with their zone.
    pub(super) fn describe(&self, language: Language) -> String {
        let zone = |rule: &Rule| match language {
            Language::English => format!(" ({})", rule.zone().name()),
            Language::Chinese => format!("（{}）", rule.zone().name()),
        };
        let separator = match language {
            Language::English => "; ",
            Language::Chinese => "；",
        };
        let [first, others @ ..] = self.rules() else { return String::new() };
        let is_one_zone = others.iter().all(|rule| rule.zone() == first.zone());
        let words = |rule: &Rule| match is_one_zone {
            true => rule.times.describe(language),
            false => rule.times.describe(language) + &zone(rule),
        };
        let rules = self.rules().iter().map(words).collect::<Vec<_>>().join(separator);
        if is_one_zone { rules + &zone(first) } else { rules }
    }
}

impl Times {
    fn describe(&self, language: Language) -> String {
        match (self, language) {
            (Times::Cron(cron), _) => Cron::describe(cron, language),
            (Times::Window(window), Language::English) => english_window(window),
            (Times::Window(window), Language::Chinese) => chinese_window(window),
            (Times::Interval(interval), Language::English) => english_interval(interval),
            (Times::Interval(interval), Language::Chinese) => chinese_interval(interval),
            (Times::NthWorkday(nth), Language::English) => english_workday(nth),
            (Times::NthWorkday(nth), Language::Chinese) => chinese_workday(nth),
        }
    }
}

fn english_window(window: &DailyWindow) -> String {
    let DailyWindow { from, until, weekdays, .. } = window;
    let every = english::length(window.interval());
    match *weekdays {
        Weekdays::ALL => format!("Every {every} from {from} to {until}"),
        weekdays => format!("Every {every} from {from} to {until}, {weekdays}"),
    }
}

fn chinese_window(window: &DailyWindow) -> String {
    let DailyWindow { from, until, weekdays, .. } = window;
    let name = |day: u32| format!("周{}", ["一", "二", "三", "四", "五", "六", "日"][day as usize]);
    let range = |(first, last): (u32, u32)| match first == last {
        true => name(first),
        false => format!("{}至{}", name(first), name(last)),
    };
    let days = match *weekdays {
        Weekdays::ALL => "每天".to_owned(),
        weekdays => weekdays.ranges().into_iter().map(range).collect::<Vec<_>>().join("、"),
    };
    format!("{days} {from} 至 {until}，每隔 {}", chinese::length(window.interval()))
}

fn english_interval(interval: &CalendarInterval) -> String {
    let CalendarInterval { first, at, every, unit } = interval;
    let unit = match unit {
        IntervalUnit::Days => "day",
        IntervalUnit::Weeks => "week",
        IntervalUnit::Months => "month",
        IntervalUnit::Years => "year",
    };
    match every {
        1 => format!("Every {unit} at {at}, from {first} on"),
        _ => format!("Every {every} {unit}s at {at}, from {first} on"),
    }
}

fn chinese_interval(interval: &CalendarInterval) -> String {
    let CalendarInterval { first, at, every, unit } = interval;
    let unit = match unit {
        IntervalUnit::Days => "天",
        IntervalUnit::Weeks => "周",
        IntervalUnit::Months => "个月",
        IntervalUnit::Years => "年",
    };
    format!("从 {first} 起每 {every} {unit}，{at}")
}

fn english_workday(nth: &NthWorkday) -> String {
    let NthWorkday { nth, of, at, .. } = nth;
    let span = match of {
        Span::Week => "week",
        Span::Month => "month",
        Span::Quarter => "quarter",
        Span::Year => "year",
    };
    let which = match nth {
        -1 => "last".to_owned(),
        ..0 => format!("{} last", english::ordinal(count(*nth))),
        _ => english::ordinal(count(*nth)),
    };
    format!("On the {which} workday of each {span} at {at}")
}

fn chinese_workday(nth: &NthWorkday) -> String {
    let NthWorkday { nth, of, at, .. } = nth;
    let span = match of {
        Span::Week => "每周",
        Span::Month => "每月",
        Span::Quarter => "每季度",
        Span::Year => "每年",
    };
    let which = match nth {
        -1 => "最后一个".to_owned(),
        ..0 => format!("倒数第 {} 个", count(*nth)),
        _ => format!("第 {nth} 个"),
    };
    format!("{span}{which}工作日 {at}")
}

/// At most 366.
fn count(nth: i64) -> u16 {
    u16::try_from(nth.unsigned_abs()).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DstRule, Schedule, Zone};

    #[test]
    fn rules_are_described_in_both_languages() {
        let check = |rules: &[&str], english: &str, chinese: &str| {
            let zone = Zone::parse("Asia/Shanghai").unwrap();
            let schedule = Schedule::Timetable(Timetable::parse(rules, &zone, DstRule::NATURAL).unwrap());
            assert_eq!(schedule.describe(Language::English), english);
            assert_eq!(schedule.describe(Language::Chinese), chinese);
        };
        check(
            &["daily 09:00-17:30 every 30m on Mon-Fri", "workday -1 of quarter at 18:00"],
            "Every 30 minutes from 09:00 to 17:30, Mon-Fri; On the last workday of each quarter at 18:00 (Asia/Shanghai)",
            "周一至周五 09:00 至 17:30，每隔 30 分钟；每季度最后一个工作日 18:00（Asia/Shanghai）",
        );
        check(
            &["every 2 weeks at 09:00 from 2026-08-31"],
            "Every 2 weeks at 09:00, from 2026-08-31 on (Asia/Shanghai)",
            "从 2026-08-31 起每 2 周，09:00（Asia/Shanghai）",
        );
        check(
            &["daily 08:00-20:00 every 1h", "workday -2 of month at 09:00", "workday 3 of year at 09:00"],
            "Every 1 hour from 08:00 to 20:00; On the 2nd last workday of each month at 09:00; \
             On the 3rd workday of each year at 09:00 (Asia/Shanghai)",
            "每天 08:00 至 20:00，每隔 1 小时；每月倒数第 2 个工作日 09:00；每年第 3 个工作日 09:00（Asia/Shanghai）",
        );
    }

    #[test]
    fn rules_in_several_zones_each_have_theirs() {
        let rule = |zone: &str| Rule::cron(Cron::parse("0 0 9 * * ?").unwrap(), Zone::parse(zone).unwrap());
        let timetable = Timetable::new(vec![rule("Asia/Tokyo"), rule("Europe/London")]).unwrap();
        let text = timetable.describe(Language::English);
        assert!(text.contains("(Asia/Tokyo); ") && text.ends_with("(Europe/London)"), "{text}");
    }
}
