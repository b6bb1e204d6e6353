//! Compares the search with a slow and simple reference: it checks every second one by one, and has an expression
//! parser of its own.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should fail")]

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use proptest::prelude::*;
use proptest::sample::select;
use tickwright_cron::{Cron, Dialect, DstRule, Timestamp, Zone};

/// Number of seconds the reference checks, around the given time.
const WALK: i64 = 86_400;

proptest! {
    // Each case checks 86 400 seconds.
    #![proptest_config(cases(160))]

    /// Times of day, over all zones and rules, on days when the clocks change and on others.
    #[test]
    fn fires_within_a_day_are_those_found_by_walking(
        seconds in times(60), minutes in times(60), hours in times(24),
        zone in select(&ZONES[..]), dst in select(&RULES[..]), nearness in -WALK..WALK, change in 0usize..40,
    ) {
        let cron = Cron::parse(&format!("{seconds} {minutes} {hours} * * ?")).unwrap();
        let (second_set, minute_set, hour_set) =
            (spread(&seconds, 0, 59), spread(&minutes, 0, 59), spread(&hours, 0, 23));
        let every_hour = (0..24).all(|hour| hour_set.contains(&hour));
        let (gap, fold) = match dst {
            "natural" if every_hour => ("skip", "both"),
            "natural" => ("next", "first"),
            "quartz" => ("skip", "second"),
            rule => rule.split_once('-').unwrap(),
        };
        let tz = TimeZone::get(zone).unwrap();
        let fits = |at: DateTime| {
            second_set.contains(&(at.second() as u32))
                && minute_set.contains(&(at.minute() as u32))
                && hour_set.contains(&(at.hour() as u32))
        };
        let start = a_change(&tz, change) + nearness;

        let expected: Vec<i64> = walk(&tz, start, start + WALK, gap, fold, fits);
        let (zone, rule): (Zone, DstRule) = (zone.parse().unwrap(), dst.parse().unwrap());
        let at = |second: i64| Timestamp::from_millis(second * 1_000);
        let found: Vec<i64> = cron
            .iter_from(at(start), &zone, rule)
            .map(|fire| fire.as_millis() / 1_000)
            .take_while(|fire| *fire <= start + WALK)
            .collect();
        prop_assert_eq!(&found, &expected);

        let mut backwards = Vec::new();
        let mut before = at(start + WALK + 1);
        while let Some(fire) = cron.previous_before(before, &zone, rule).filter(|fire| *fire > at(start)) {
            backwards.push(fire.as_millis() / 1_000);
            before = fire;
        }
        backwards.reverse();
        prop_assert_eq!(&backwards, &expected);
    }
}

proptest! {
    #![proptest_config(cases(250))]

    /// Days, in UTC, over eight years.
    #[test]
    fn days_are_those_found_by_walking((day, weekday) in quartz_days(), month in months(), start in 0i64..60_000) {
        let expr = format!("0 0 0 {day} {month} {weekday}");
        let month_set = spread(&month, 1, 12);
        let fits = |date: jiff::civil::Date| {
            month_set.contains(&(date.month() as u32))
                && (day == "?" || day.split(',').any(|part| fits_day(part, date)))
                && (weekday == "?" || weekday.split(',').any(|part| fits_weekday(part, date)))
        };
        prop_assert!(same_days(Dialect::Quartz, &expr, start, fits)?);
    }

    /// Unix days: either field is enough if both are restricted.
    #[test]
    fn unix_days_are_those_found_by_walking(day in times_from(1, 31), weekday in times_from(0, 6), start in 0i64..60_000) {
        let expr = format!("0 0 {day} * {weekday}");
        let (day_set, weekday_set) = (spread(&day, 1, 31), spread(&weekday, 0, 6));
        let fits = |date: jiff::civil::Date| {
            let by_day = day_set.contains(&(date.day() as u32));
            let by_weekday = weekday_set.contains(&(date.weekday().to_sunday_zero_offset() as u32));
            if day.starts_with('*') || weekday.starts_with('*') { by_day && by_weekday } else { by_day || by_weekday }
        };
        prop_assert!(same_days(Dialect::Unix, &expr, start, fits)?);
    }

    /// Printed expressions can be parsed again and have the same meaning.
    #[test]
    fn expressions_survive_printing((day, weekday) in quartz_days(), month in months(), hour in times(24)) {
        if let Ok(cron) = Cron::parse(&format!("0 0 {hour} {day} {month} {weekday}")) {
            prop_assert_eq!(&cron.to_string().parse::<Cron>().unwrap(), &cron);
            let (lenient, warnings) = Cron::parse_lenient(&cron.to_string()).unwrap();
            prop_assert_eq!(lenient, cron);
            prop_assert!(warnings.is_empty());
        }
    }

    /// No text causes a panic or a fire that is not in the future.
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,40}", t in any::<i64>()) {
        for dialect in [Dialect::Quartz, Dialect::Unix] {
            if let Ok(cron) = Cron::parse_in(dialect, &text) {
                let t = Timestamp::from_millis(t);
                prop_assert!(cron.next_after(t, &Zone::utc(), DstRule::NATURAL).is_none_or(|next| next > t));
            }
        }
    }
}

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

const ZONES: [&str; 8] = [
    "UTC",
    "America/New_York",
    "Europe/London",
    "Australia/Lord_Howe",
    "Africa/Casablanca",
    "Asia/Shanghai",
    "Pacific/Apia",
    "America/Havana",
];

const RULES: [&str; 7] =
    ["quartz", "natural", "skip-first", "skip-both", "next-first", "next-second", "next-both"];

/// One of the first changes of the clocks after 1986, or the beginning of that year where they never change.
fn a_change(tz: &TimeZone, index: usize) -> i64 {
    let from = jiff::Timestamp::from_second(504_921_600).unwrap();
    tz.following(from).nth(index).map_or(from.as_second(), |change| change.timestamp().as_second())
}

/// The fires in `start < t <= end`: checks for each second the wall-clock time and whether the rule lets it fire.
fn walk(
    tz: &TimeZone,
    start: i64,
    end: i64,
    gap: &str,
    fold: &str,
    fits: impl Fn(DateTime) -> bool,
) -> Vec<i64> {
    let instant = |second: i64| jiff::Timestamp::from_second(second).unwrap();
    let one_second = jiff::SignedDuration::from_secs(1);
    let counts = |second: i64, now: DateTime| match tz.to_ambiguous_timestamp(now).offset() {
        AmbiguousOffset::Fold { before, .. } => {
            fold == "both" || (fold == "first") == (tz.to_offset(instant(second)) == before)
        }
        _ => true,
    };
    // The wall-clock times that the clocks skipped between two seconds.
    let jumped_over = |last: DateTime, now: DateTime| {
        let mut missing = last + one_second;
        while missing < now && !fits(missing) {
            missing += one_second;
        }
        missing < now
    };
    let mut fires = Vec::new();
    let mut last = tz.to_datetime(instant(start));
    for second in start + 1..=end {
        let now = tz.to_datetime(instant(second));
        if (fits(now) && counts(second, now)) || (gap == "next" && jumped_over(last, now)) {
            fires.push(second);
        }
        last = now;
    }
    fires
}

/// Whether an expression fires at midnight UTC on exactly the matching days, or is rejected if none ever matches.
fn same_days(
    dialect: Dialect,
    expr: &str,
    start: i64,
    fits: impl Fn(jiff::civil::Date) -> bool,
) -> Result<bool, TestCaseError> {
    let days = 8 * 366;
    let first = jiff::civil::date(1970, 1, 1).saturating_add(jiff::Span::new().days(start));
    let dates = first.series(jiff::Span::new().days(1)).take(days + 1);
    let expected: Vec<String> =
        dates.skip(1).filter(|date| fits(*date)).map(|date| format!("{date}T00:00:00Z")).collect();
    let Ok(cron) = Cron::parse_in(dialect, expr) else {
        return Ok(expected.is_empty());
    };
    let from = Timestamp::from_millis(start * 86_400_000);
    let to = Timestamp::from_millis((start + days as i64) * 86_400_000);
    let utc = Zone::utc();
    let fires = cron.iter_from(from, &utc, DstRule::QUARTZ).take_while(|fire| *fire <= to);
    let found: Vec<String> = fires.map(|fire| fire.to_string()).collect();
    prop_assert_eq!(&found, &expected, "{}", expr);

    let before = |t: &Timestamp| cron.previous_before(*t, &utc, DstRule::QUARTZ).filter(|fire| *fire > from);
    let just_after = Timestamp::from_millis(to.as_millis() + 1);
    let mut backwards: Vec<String> =
        std::iter::successors(before(&just_after), before).map(|fire| fire.to_string()).collect();
    backwards.reverse();
    prop_assert_eq!(&backwards, &expected, "{} backwards", expr);
    Ok(true)
}

/// The values of a list of `*`, `*/n`, `a`, `a/n`, `a-b`, `a-b/n`, by walking from value to value.
fn spread(list: &str, min: u32, max: u32) -> Vec<u32> {
    let mut values = Vec::new();
    for part in list.split(',') {
        let (range, step) = part.split_once('/').unwrap_or((part, "1"));
        let (start, end) = match range.split_once('-') {
            Some((start, end)) => (start.parse().unwrap(), end.parse().unwrap()),
            None if range == "*" => (min, max),
            None if part.contains('/') => (range.parse().unwrap(), max),
            None => (range.parse().unwrap(), range.parse().unwrap()),
        };
        let (mut value, mut walked) = (start, 0);
        loop {
            if walked % step.parse::<u32>().unwrap() == 0 {
                values.push(value);
            }
            if value == end {
                break;
            }
            value = if value == max { min } else { value + 1 };
            walked += 1;
        }
    }
    values
}

fn fits_day(part: &str, date: jiff::civil::Date) -> bool {
    let last = date.days_in_month() as i32;
    let day = date.day() as i32;
    let target = |text: &str| match text.strip_prefix('L') {
        Some("") => last,
        Some(before) => last + before.parse::<i32>().unwrap(),
        None => text.parse().unwrap(),
    };
    match part.strip_suffix('W') {
        Some(near) => {
            // The workday of the month with the least distance; two never have the same distance.
            let target = target(near);
            let distance = |other: i32| (other - target).abs();
            let is_workday = |other: i32| {
                date.with().day(other as i8).build().unwrap().weekday().to_monday_one_offset() <= 5
            };
            let nearest = (1..=last).filter(|other| is_workday(*other)).min_by_key(|other| distance(*other));
            (1..=last).contains(&target) && nearest == Some(day)
        }
        None if part.starts_with('L') => day == target(part),
        None => spread(part, 1, 31).contains(&(day as u32)),
    }
}

fn fits_weekday(part: &str, date: jiff::civil::Date) -> bool {
    let weekday = date.weekday().to_sunday_zero_offset() as u32 + 1;
    match (part, part.strip_suffix('L'), part.split_once('#')) {
        ("L", _, _) => weekday == 7,
        (_, Some(last), _) => weekday == last.parse().unwrap() && date.day() > date.days_in_month() - 7,
        (_, _, Some((day, nth))) => {
            weekday == day.parse().unwrap() && (date.day() as u32 - 1) / 7 + 1 == nth.parse().unwrap()
        }
        _ => spread(part, 1, 7).contains(&weekday),
    }
}

/// Values from 0 to below `end`, in every notation.
fn times(end: u32) -> BoxedStrategy<String> {
    let value = move || 0..end;
    let part = prop_oneof![
        3 => Just("*".to_owned()),
        3 => value().prop_map(|a| a.to_string()),
        1 => (1..end).prop_map(|n| format!("*/{n}")),
        1 => (value(), 1..end).prop_map(|(a, n)| format!("{a}/{n}")),
        1 => (value(), value()).prop_map(|(a, b)| format!("{a}-{b}")),
        1 => (value(), value(), 1..end).prop_map(|(a, b, n)| format!("{a}-{b}/{n}")),
    ];
    list(part.boxed(), 3)
}

/// Values from `min` to `max` without wrapping around.
fn times_from(min: u32, max: u32) -> BoxedStrategy<String> {
    let pair = (min..=max, min..=max).prop_map(|(a, b)| (a.min(b), a.max(b)));
    let part = prop_oneof![
        Just("*".to_owned()),
        (min..=max).prop_map(|a| a.to_string()),
        (1..max).prop_map(|n| format!("*/{n}")),
        (pair, 1..max).prop_map(|((a, b), n)| format!("{a}-{b}/{n}")),
    ];
    list(part.boxed(), 3)
}

fn months() -> BoxedStrategy<String> {
    let part = prop_oneof![
        4 => Just("*".to_owned()),
        1 => (1..=12u32).prop_map(|a| a.to_string()),
        1 => (1..=12u32, 1..=12u32).prop_map(|(a, b)| format!("{a}-{b}")),
        1 => (1..=12u32, 1..=12u32).prop_map(|(a, n)| format!("{a}/{n}")),
    ];
    list(part.boxed(), 2)
}

/// The two day fields of Quartz, one of them `?`.
fn quartz_days() -> BoxedStrategy<(String, String)> {
    let day = prop_oneof![
        (1..=31u32).prop_map(|a| a.to_string()),
        (1..=31u32, 1..=31u32).prop_map(|(a, b)| format!("{a}-{b}")),
        (1..=31u32, 1..=31u32).prop_map(|(a, n)| format!("{a}/{n}")),
        (1..=31u32).prop_map(|a| format!("{a}W")),
        (1..=30u32).prop_map(|n| format!("L-{n}")),
        (1..=30u32).prop_map(|n| format!("L-{n}W")),
        select(&["L", "LW"][..]).prop_map(str::to_owned),
    ];
    let weekday = prop_oneof![
        list((1..=7u32).prop_map(|a| a.to_string()).boxed(), 3),
        (1..=7u32, 1..=7u32).prop_map(|(a, b)| format!("{a}-{b}")),
        (1..=7u32, 1..=7u32).prop_map(|(a, n)| format!("{a}/{n}")),
        (1..=7u32).prop_map(|a| format!("{a}L")),
        (1..=7u32, 1..=5u32).prop_map(|(a, n)| format!("{a}#{n}")),
        Just("L".to_owned()),
    ];
    prop_oneof![
        list(day.boxed(), 3).prop_map(|day| (day, "?".to_owned())),
        weekday.prop_map(|weekday| ("?".to_owned(), weekday)),
    ]
    .boxed()
}

fn list(part: BoxedStrategy<String>, most: usize) -> BoxedStrategy<String> {
    prop::collection::vec(part, 1..=most).prop_map(|parts| parts.join(",")).boxed()
}
