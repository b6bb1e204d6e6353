//! Compares work calendars with a slow and simple reference that looks at every day by itself, and with the real
//! Chinese calendars of 2024 to 2026.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should fail")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::civil::{Date, date};
use jiff::tz::TimeZone;
use jiff::{Span as JiffSpan, ToSpan};
use proptest::prelude::*;
use proptest::sample::select;
use tickwright_cron::{
    Beyond, CalendarFormat, CalendarInterval, Cron, DailyWindow, Day, DayEntry, DstRule, IntervalUnit,
    NthWorkday, OnDays, Rule, Shift, Span, TimeOfDay, Timestamp, Timetable, Verdict, Weekdays, WorkCalendar,
    Workdays, Zone,
};

// ── China, 2024 to 2026 ─────────────────────────────────────────────────────────────────────────────────────────

/// Holidays and make-up workdays as announced by the General Office of the State Council: name, first and last day
/// off, make-up workdays.
const CHINA: [(&str, &str, &str, &[&str]); 20] = [
    ("元旦", "2024-01-01", "2024-01-01", &[]),
    ("春节", "2024-02-10", "2024-02-17", &["2024-02-04", "2024-02-18"]),
    ("清明节", "2024-04-04", "2024-04-06", &["2024-04-07"]),
    ("劳动节", "2024-05-01", "2024-05-05", &["2024-04-28", "2024-05-11"]),
    ("端午节", "2024-06-10", "2024-06-10", &[]),
    ("中秋节", "2024-09-15", "2024-09-17", &["2024-09-14"]),
    ("国庆节", "2024-10-01", "2024-10-07", &["2024-09-29", "2024-10-12"]),
    ("元旦", "2025-01-01", "2025-01-01", &[]),
    ("春节", "2025-01-28", "2025-02-04", &["2025-01-26", "2025-02-08"]),
    ("清明节", "2025-04-04", "2025-04-06", &[]),
    ("劳动节", "2025-05-01", "2025-05-05", &["2025-04-27"]),
    ("端午节", "2025-05-31", "2025-06-02", &[]),
    ("国庆节、中秋节", "2025-10-01", "2025-10-08", &["2025-09-28", "2025-10-11"]),
    ("元旦", "2026-01-01", "2026-01-03", &["2026-01-04"]),
    ("春节", "2026-02-15", "2026-02-23", &["2026-02-14", "2026-02-28"]),
    ("清明节", "2026-04-04", "2026-04-06", &[]),
    ("劳动节", "2026-05-01", "2026-05-05", &["2026-05-09"]),
    ("端午节", "2026-06-19", "2026-06-21", &[]),
    ("中秋节", "2026-09-25", "2026-09-27", &[]),
    ("国庆节", "2026-10-01", "2026-10-07", &["2026-09-20", "2026-10-10"]),
];

fn china() -> WorkCalendar {
    let mut calendar = WorkCalendar::default();
    for (name, first, last, makeup) in CHINA {
        let (mut day, last) = (first.parse::<Day>().unwrap(), last.parse::<Day>().unwrap());
        while day <= last {
            calendar.set(day, DayEntry::off(name));
            day = day.next();
        }
        for day in makeup {
            calendar.set(day.parse().unwrap(), DayEntry::work(name));
        }
    }
    calendar.known_until = Some("2026-12-31".parse().unwrap());
    calendar
}

/// Whether a day is a workday, straight from the table.
fn is_chinese_workday(day: Date) -> bool {
    let text = day.to_string();
    let is_makeup = CHINA.iter().any(|(_, _, _, makeup)| makeup.contains(&text.as_str()));
    let is_holiday =
        CHINA.iter().any(|(_, first, last, _)| *first <= text.as_str() && text.as_str() <= *last);
    is_makeup || (!is_holiday && day.weekday().to_monday_one_offset() <= 5)
}

#[test]
fn the_table_agrees_with_the_law() {
    // 11 statutory holidays until 2024 and 13 since 2025, and as many weekdays as the year has without them.
    for (year, workdays) in [(2024, 251), (2025, 248), (2026, 248)] {
        let days = date(year, 1, 1).series(1.day()).take_while(|day| day.year() == year);
        assert_eq!(days.filter(|day| is_chinese_workday(*day)).count(), workdays, "{year}");
    }
    for (_, _, _, makeup) in CHINA {
        for day in makeup {
            assert!(
                day.parse::<Date>().unwrap().weekday().to_monday_one_offset() > 5,
                "{day} is on a weekend"
            );
        }
    }
}

#[test]
fn a_daily_job_fires_on_chinese_workdays_day_by_day() {
    let calendar = Arc::new(china());
    let tz = TimeZone::get("Asia/Shanghai").unwrap();
    for (on, wanted) in [(OnDays::Work, true), (OnDays::Off, false)] {
        let rule = daily_at_nine("Asia/Shanghai").on(Workdays::new(Arc::clone(&calendar), on, Shift::Skip));
        let timetable = Timetable::from(rule);
        let start = date(2024, 1, 1).to_zoned(tz.clone()).unwrap().timestamp().as_millisecond() - 1;
        let end = date(2027, 1, 1).to_zoned(tz.clone()).unwrap().timestamp().as_millisecond();
        let found: Vec<i64> = timetable
            .iter_from(Timestamp::from_millis(start))
            .map(Timestamp::as_millis)
            .take_while(|at| *at < end)
            .collect();
        let days = date(2024, 1, 1).series(1.day()).take_while(|day| day.year() < 2027);
        let expected: Vec<i64> = days
            .filter(|day| is_chinese_workday(*day) == wanted)
            .map(|day| day.at(9, 0, 0, 0).to_zoned(tz.clone()).unwrap().timestamp().as_millisecond())
            .collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn spring_festival_moves_times_by_their_rule() {
    let calendar = Arc::new(china());
    let check = |shift, day: &str, verdict: Verdict| {
        let workdays = Workdays::new(Arc::clone(&calendar), OnDays::Work, shift);
        assert_eq!(workdays.verdict(day.parse().unwrap()), verdict, "{day} {shift}");
    };
    let to = |day: &str| Verdict::MovedTo(day.parse().unwrap());
    // Off from 15 to 23 February 2026; Saturdays 14 and 28 are workdays.
    check(Shift::Next, "2026-02-16", to("2026-02-24"));
    check(Shift::Previous, "2026-02-16", to("2026-02-14"));
    check(Shift::Nearest, "2026-02-16", to("2026-02-14"));
    check(Shift::Nearest, "2026-02-18", to("2026-02-14"));
    check(Shift::Nearest, "2026-02-19", to("2026-02-24"));
    check(Shift::Skip, "2026-02-16", Verdict::Skipped);
    check(Shift::Skip, "2026-02-28", Verdict::Fires);
    check(Shift::Previous, "2026-03-01", to("2026-02-28"));
    // Into another year, in both directions.
    check(Shift::Previous, "2026-01-02", to("2025-12-31"));
    check(Shift::Next, "2027-01-02", to("2027-01-04"));
    // Three days off: the middle one is as near to both sides, and goes to the later one.
    check(Shift::Nearest, "2026-04-05", to("2026-04-07"));
}

#[test]
fn the_nth_workday_of_chinese_periods() {
    let calendar = Arc::new(china());
    let check = |nth, of, after: &str, fires: &[&str]| {
        let nth = NthWorkday::new(nth, of, "09:00".parse().unwrap(), Arc::clone(&calendar)).unwrap();
        let timetable = Timetable::from(Rule::nth_workday(nth, Zone::parse("Asia/Shanghai").unwrap()));
        let after = after.parse::<jiff::Timestamp>().unwrap().as_millisecond();
        let found: Vec<String> = timetable
            .iter_from(Timestamp::from_millis(after))
            .take(fires.len())
            .map(|at| at.to_string().replace("T01:00:00Z", ""))
            .collect();
        assert_eq!(found, fires, "{of:?}");
    };
    check(
        1,
        Span::Month,
        "2026-01-01T00:00:00Z",
        &["2026-01-04", "2026-02-02", "2026-03-02", "2026-04-01", "2026-05-06"],
    );
    check(-1, Span::Month, "2026-01-31T00:00:00Z", &["2026-02-28", "2026-03-31", "2026-04-30"]);
    check(1, Span::Quarter, "2026-07-02T00:00:00Z", &["2026-10-08", "2027-01-01"]);
    check(-1, Span::Year, "2024-01-01T00:00:00Z", &["2024-12-31", "2025-12-31", "2026-12-31"]);
    // The week of 16 February 2026 has no workday at all, the next one has five: 24 to 28.
    check(1, Span::Week, "2026-02-10T00:00:00Z", &["2026-02-24", "2026-03-02"]);
    check(6, Span::Week, "2026-02-01T00:00:00Z", &["2026-02-14", "2026-09-20"]);
    // 29 February is the 19th workday of that month in 2024.
    check(19, Span::Month, "2024-02-01T00:00:00Z", &["2024-03-27"]);
    check(18, Span::Month, "2024-02-01T00:00:00Z", &["2024-02-29"]);
}

#[test]
fn a_calendar_that_stops_fires_nothing_it_does_not_know() {
    let mut calendar = china();
    calendar.beyond = Beyond::Stop;
    let calendar = Arc::new(calendar);
    for shift in [Shift::Skip, Shift::Next, Shift::Previous, Shift::Nearest] {
        for on in [OnDays::Work, OnDays::Off, OnDays::Any] {
            let rule = daily_at_nine("UTC").on(Workdays::new(Arc::clone(&calendar), on, shift));
            let after =
                |day: &str| Timestamp::from_millis(day.parse::<jiff::Timestamp>().unwrap().as_millisecond());
            assert_eq!(rule.next_after(after("2026-12-31T10:00:00Z")), None, "{on} {shift}");
            let last = rule.previous_before(after("2150-01-01T00:00:00Z")).unwrap().to_string();
            let expected = if on == OnDays::Off { "2026-12-27T09:00:00Z" } else { "2026-12-31T09:00:00Z" };
            assert_eq!(last, expected, "{on} {shift}");
        }
    }
    let nth = |nth| {
        let nth = NthWorkday::new(nth, Span::Week, "09:00".parse().unwrap(), Arc::clone(&calendar)).unwrap();
        let rule = Rule::nth_workday(nth, Zone::utc());
        let end = Timestamp::from_millis(4_000_000_000_000);
        rule.previous_before(end).unwrap().to_string()
    };
    // The last week is known to its Thursday only, so its last workday is not known.
    assert_eq!(nth(1), "2026-12-28T09:00:00Z");
    assert_eq!(nth(-1), "2026-12-25T09:00:00Z");
}

#[test]
fn a_preview_names_the_holiday() {
    let calendar = Arc::new(china());
    let rule = daily_at_nine("Asia/Shanghai").on(Workdays::new(calendar, OnDays::Work, Shift::Skip));
    let late_in_september = Timestamp::from_millis(1_790_740_800_000); // 2026-09-30T12:00 in Shanghai
    let shown: Vec<String> = rule
        .preview(late_in_september)
        .take(11)
        .map(|time| format!("{} {:?} {}", time.day, time.verdict, time.name.unwrap_or_default()))
        .collect();
    let holiday = (1..=7).map(|day| format!("2026-10-0{day} Skipped 国庆节"));
    let expected: Vec<String> = holiday
        .chain(
            ["2026-10-08 Fires ", "2026-10-09 Fires ", "2026-10-10 Fires 国庆节", "2026-10-11 Skipped "]
                .map(String::from),
        )
        .collect();
    assert_eq!(shown, expected);
    let unknown = rule.preview(Timestamp::from_millis(1_800_000_000_000)).next().unwrap();
    assert!(unknown.is_assumed, "{unknown:?}");
}

#[test]
fn a_moved_time_keeps_its_wall_clock_time_when_the_clocks_change() {
    // Berlin, 29 March 2026, a Sunday: 02:30 does not exist that day, and does on Monday.
    let check = |cron: &str, zone: &str, shift, after: &str, fires: &[&str]| {
        let calendar = Arc::new(WorkCalendar::default());
        let rule = Rule::cron(Cron::parse(cron).unwrap(), Zone::parse(zone).unwrap());
        let timetable = Timetable::from(rule.on(Workdays::new(calendar, OnDays::Work, shift)));
        let after = Timestamp::from_millis(after.parse::<jiff::Timestamp>().unwrap().as_millisecond());
        let found: Vec<String> =
            timetable.iter_from(after).take(fires.len()).map(|at| at.to_string()).collect();
        assert_eq!(found, fires, "{cron} {shift}");
    };
    let sundays = "0 30 2 ? * SUN";
    check(
        sundays,
        "Europe/Berlin",
        Shift::Next,
        "2026-03-27T12:00:00Z",
        &["2026-03-30T00:30:00Z", "2026-04-06T00:30:00Z"],
    );
    check(
        sundays,
        "Europe/Berlin",
        Shift::Previous,
        "2026-03-24T12:00:00Z",
        &["2026-03-27T01:30:00Z", "2026-04-03T00:30:00Z"],
    );
    // Saturday, Sunday and Monday meet on Monday, once.
    check(
        "0 0 9 * * ?",
        "UTC",
        Shift::Next,
        "2026-11-13T10:00:00Z",
        &["2026-11-16T09:00:00Z", "2026-11-17T09:00:00Z"],
    );
    // Times that differ stay apart.
    check(
        "0 0 9 ? * FRI,SAT",
        "UTC",
        Shift::Previous,
        "2026-11-12T10:00:00Z",
        &["2026-11-13T09:00:00Z", "2026-11-20T09:00:00Z"],
    );
    // A leap day on a Saturday, 2048.
    check(
        "0 0 0 29 2 ?",
        "UTC",
        Shift::Next,
        "2045-01-01T00:00:00Z",
        &["2048-03-02T00:00:00Z", "2052-02-29T00:00:00Z"],
    );
}

fn daily_at_nine(zone: &str) -> Rule {
    Rule::cron(Cron::parse("0 0 9 * * ?").unwrap(), Zone::parse(zone).unwrap())
}

// ── Against a reference ─────────────────────────────────────────────────────────────────────────────────────────

const ZONES: [&str; 6] = [
    "UTC",
    "America/New_York",
    "Asia/Shanghai",
    "Australia/Lord_Howe",
    "America/Havana",
    "Africa/Casablanca",
];

/// The days compared: three years around two ends of the year, a leap day and six changes of the clocks.
fn compared() -> impl Iterator<Item = Date> {
    date(2027, 6, 1).series(1.day()).take(1_100)
}

/// How far times may move into or out of the days compared.
const MARGIN: i32 = 400;

#[derive(Debug, Clone)]
struct Model {
    week: u8,
    days: BTreeMap<i32, bool>,
    known_until: Option<i32>,
}

impl Model {
    fn calendar(&self) -> WorkCalendar {
        let mut calendar = WorkCalendar::new(Weekdays::from_bits(self.week));
        for (offset, is_work) in &self.days {
            let entry = if *is_work { DayEntry::work("w") } else { DayEntry::off("o") };
            calendar.set(ours(at_offset(*offset)), entry);
        }
        if let Some(until) = self.known_until {
            calendar.known_until = Some(ours(at_offset(until)));
            calendar.beyond = Beyond::Stop;
        }
        calendar
    }

    fn is_work(&self, day: Date) -> bool {
        let offset = (day - date(2027, 6, 1)).get_days();
        let by_week = self.week >> day.weekday().to_monday_zero_offset() & 1 == 1;
        self.days.get(&offset).copied().unwrap_or(by_week)
    }

    fn is_stopped(&self, day: Date) -> bool {
        self.known_until.is_some_and(|until| day > at_offset(until))
    }

    /// The day that the times of `day` go to: of all fitting days in the right direction, the one at the least distance.
    fn target(&self, day: Date, shift: Shift, fitting: &BTreeSet<Date>) -> Option<Date> {
        if self.is_stopped(day) {
            return None;
        }
        let distance = |other: &Date| (*other - day).get_days();
        fitting
            .iter()
            .filter(|other| distance(other).abs() <= 366)
            .filter(|other| match shift {
                Shift::Skip => distance(other) == 0,
                Shift::Next => distance(other) >= 0,
                Shift::Previous => distance(other) <= 0,
                Shift::Nearest => true,
            })
            .min_by_key(|other| (distance(other).abs(), -distance(other)))
            .copied()
    }
}

fn at_offset(offset: i32) -> Date {
    date(2027, 6, 1).saturating_add(JiffSpan::new().days(offset))
}

fn ours(day: Date) -> Day {
    Day::new(day.year(), day.month() as u8, day.day() as u8).unwrap()
}

fn models() -> impl Strategy<Value = Model> {
    let week = prop_oneof![5 => Just(0b001_1111), 2 => 0..128u8, 1 => Just(0u8)];
    let days = prop::collection::btree_map(-20..1_120i32, any::<bool>(), 0..80);
    // Runs of days off, as at Spring Festival.
    let runs = prop::collection::vec((0..1_080i32, 1..12i32, any::<bool>()), 0..20);
    (week, days, runs, prop::option::of(300..1_000i32)).prop_map(|(week, mut days, runs, known_until)| {
        for (first, length, is_work) in runs {
            days.extend((first..first + length).map(|day| (day, is_work)));
        }
        Model { week, days, known_until }
    })
}

/// The instant of a wall-clock time under the natural rule for certain hours: the first of two, or the end of a gap.
fn resolve(day: Date, second: i64, tz: &TimeZone) -> i64 {
    let local = day.at(0, 0, 0, 0).checked_add(second.seconds()).unwrap();
    let ambiguous = tz.to_ambiguous_timestamp(local);
    match ambiguous.offset() {
        jiff::tz::AmbiguousOffset::Gap { before, .. } => {
            // The clocks change at the first moment that has not the old offset.
            let about = before.to_timestamp(local).unwrap() - jiff::SignedDuration::from_hours(3);
            tz.following(about).next().unwrap().timestamp().as_millisecond()
        }
        _ => ambiguous.earlier().unwrap().as_millisecond(),
    }
}

fn seconds() -> impl Strategy<Value = i64> {
    prop_oneof![Just(0i64), Just(9_000), Just(7_200 + 900), 0..86_400i64]
}

fn time_of_day(second: i64) -> TimeOfDay {
    TimeOfDay::new((second / 3_600) as u8, (second / 60 % 60) as u8, (second % 60) as u8).unwrap()
}

/// Compares all fires within the days compared, forwards and backwards.
fn same(rule: Rule, expected: &BTreeSet<i64>, tz: &TimeZone) -> Result<(), TestCaseError> {
    let start = compared().next().unwrap().to_zoned(tz.clone()).unwrap().timestamp().as_millisecond();
    let end = compared().last().unwrap().to_zoned(tz.clone()).unwrap().timestamp().as_millisecond();
    let expected: Vec<i64> = expected.range(start..end).copied().collect();
    let timetable = Timetable::from(rule);
    let found: Vec<i64> = timetable
        .iter_from(Timestamp::from_millis(start - 1))
        .map(Timestamp::as_millis)
        .take_while(|at| *at < end)
        .collect();
    prop_assert_eq!(&found, &expected);
    let before = |t: &Timestamp| timetable.previous_before(*t).filter(|at| at.as_millis() >= start);
    let mut backwards: Vec<i64> = std::iter::successors(before(&Timestamp::from_millis(end)), before)
        .map(Timestamp::as_millis)
        .collect();
    backwards.reverse();
    prop_assert_eq!(&backwards, &expected, "backwards");
    Ok(())
}

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn fires_on_workdays_are_those_found_day_by_day(
        model in models(), zone in select(&ZONES[..]),
        on in select(&[OnDays::Work, OnDays::Off, OnDays::Any][..]),
        shift in select(&[Shift::Skip, Shift::Next, Shift::Previous, Shift::Nearest][..]),
        times in prop::collection::btree_set(seconds(), 1..3),
        days in prop_oneof![
            Just("* * ?"), Just("1,15 * ?"), Just("29 2 ?"), Just("L * ?"), Just("? * MON"), Just("? * SAT,SUN"),
            Just("31 12 ?"), Just("? * 6#1"),
        ],
    ) {
        let tz = TimeZone::get(zone).unwrap();
        let workdays = Workdays::new(Arc::new(model.calendar()), on, shift);
        let all: Vec<Date> = (-MARGIN * 2..1_100 + MARGIN * 2).map(at_offset).collect();
        let fitting: BTreeSet<Date> = all
            .iter()
            .filter(|day| !model.is_stopped(**day))
            .filter(|day| match on {
                OnDays::Work => model.is_work(**day),
                OnDays::Off => !model.is_work(**day),
                OnDays::Any => true,
            })
            .copied()
            .collect();
        let matches = |day: Date| match days {
            "* * ?" => true,
            "1,15 * ?" => day.day() == 1 || day.day() == 15,
            "29 2 ?" => day.day() == 29 && day.month() == 2,
            "L * ?" => day.day() == day.days_in_month(),
            "? * MON" => day.weekday().to_monday_one_offset() == 1,
            "? * SAT,SUN" => day.weekday().to_monday_one_offset() >= 6,
            "31 12 ?" => day.day() == 31 && day.month() == 12,
            _ => day.weekday().to_monday_one_offset() == 5 && day.day() <= 7,
        };
        let near = &all[MARGIN as usize..all.len() - MARGIN as usize];
        let targets: BTreeSet<Date> =
            near.iter().filter(|day| matches(**day)).filter_map(|day| model.target(*day, shift, &fitting)).collect();
        for second in &times {
            let expected: BTreeSet<i64> = targets.iter().map(|day| resolve(*day, *second, &tz)).collect();
            let expr = format!("{} {} {} {days}", second % 60, second / 60 % 60, second / 3_600);
            let rule = Rule::cron(Cron::parse(&expr).unwrap(), Zone::parse(zone).unwrap()).on(workdays.clone());
            same(rule, &expected, &tz)?;
        }
    }

    #[test]
    fn nth_workdays_are_those_found_by_counting(
        model in models(), zone in select(&ZONES[..]), second in seconds(),
        span in select(&[Span::Week, Span::Month, Span::Quarter, Span::Year][..]),
        nth in prop_oneof![1..8i16, -7..0i16],
    ) {
        let tz = TimeZone::get(zone).unwrap();
        let period = |day: Date| match span {
            Span::Week => { let week = day.iso_week_date(); (week.year(), i16::from(week.week())) }
            Span::Month => (day.year(), i16::from(day.month())),
            Span::Quarter => (day.year(), (i16::from(day.month()) - 1) / 3),
            Span::Year => (day.year(), 0),
        };
        let mut periods: BTreeMap<(i16, i16), Vec<Date>> = BTreeMap::new();
        // Whole years, so that no period is cut.
        for day in date(2026, 1, 1).series(1.day()).take_while(|day| day.year() < 2032) {
            periods.entry(period(day)).or_default().push(day);
        }
        let mut expected = BTreeSet::new();
        for days in periods.into_values() {
            let is_known = !model.is_stopped(*days.last().unwrap());
            let workdays: Vec<Date> = days.into_iter().filter(|day| model.is_work(*day)).collect();
            let found = if nth > 0 {
                workdays.get(nth as usize - 1)
            } else {
                workdays.iter().rev().nth(-nth as usize - 1).filter(|_| is_known)
            };
            expected.extend(found.filter(|day| !model.is_stopped(**day)).map(|day| resolve(*day, second, &tz)));
        }
        let rule = NthWorkday::new(nth, span, time_of_day(second), Arc::new(model.calendar())).unwrap();
        same(Rule::nth_workday(rule, Zone::parse(zone).unwrap()), &expected, &tz)?;
    }

    #[test]
    fn windows_fire_at_the_times_found_by_stepping(
        zone in select(&ZONES[..]), a in 0..86_400i64, b in 0..86_400i64, every in 600..20_000u64, week in 1..128u8,
    ) {
        let tz = TimeZone::get(zone).unwrap();
        let (from, until) = (a.min(b), a.max(b));
        let days = Weekdays::from_bits(week);
        let window =
            DailyWindow::new(time_of_day(from), time_of_day(until), Duration::from_secs(every), days).unwrap();
        let mut expected = BTreeSet::new();
        let is_every_hour = (0..24i64).all(|hour| {
            (0..).map(|k| from + k * every as i64).take_while(|s| *s <= until).any(|second| second / 3_600 == hour)
        });
        // By elapsed time, the reference for single times does not apply.
        prop_assume!(!is_every_hour);
        for day in compared().filter(|day| days.contains(day.weekday().to_monday_zero_offset() as u32)) {
            let times = (0..).map(|k| from + k * every as i64).take_while(|second| *second <= until);
            expected.extend(times.map(|second| resolve(day, second, &tz)));
        }
        same(Rule::window(window, Zone::parse(zone).unwrap()), &expected, &tz)?;
    }

    #[test]
    fn intervals_fire_on_the_days_found_by_adding(
        zone in select(&ZONES[..]), second in seconds(), every in 1..40u32, start in -3_000..1_000i32,
        unit in select(&[IntervalUnit::Days, IntervalUnit::Weeks, IntervalUnit::Months, IntervalUnit::Years][..]),
    ) {
        let tz = TimeZone::get(zone).unwrap();
        let first = at_offset(start);
        let step = |k: i32| {
            let count = k * every as i32;
            match unit {
                IntervalUnit::Days => JiffSpan::new().days(count),
                IntervalUnit::Weeks => JiffSpan::new().weeks(count),
                IntervalUnit::Months => JiffSpan::new().months(count),
                IntervalUnit::Years => JiffSpan::new().years(count),
            }
        };
        let days = (0..).map(|k| first.saturating_add(step(k))).take_while(|day| day.year() < 2032);
        let expected: BTreeSet<i64> = days.map(|day| resolve(day, second, &tz)).collect();
        let interval = CalendarInterval::new(ours(first), time_of_day(second), every, unit).unwrap();
        same(Rule::interval(interval, Zone::parse(zone).unwrap()), &expected, &tz)?;
    }

    #[test]
    fn a_timetable_fires_when_one_of_its_rules_does(a in seconds(), b in seconds(), t in 1_800_000_000_000i64..1_900_000_000_000) {
        let rule = |second: i64| {
            let expr = format!("{} {} {} * * ?", second % 60, second / 60 % 60, second / 3_600);
            Rule::cron(Cron::parse(&expr).unwrap(), Zone::utc())
        };
        let both = Timetable::new(vec![rule(a), rule(b), rule(a)]).unwrap();
        let day = 86_400_000;
        let mut expected: Vec<i64> = (t / day - 1..t / day + 8)
            .flat_map(|epoch_day| [a, b].map(|second| epoch_day * day + second * 1_000))
            .filter(|at| *at > t)
            .collect();
        expected.sort_unstable();
        expected.dedup();
        let found: Vec<i64> = both.iter_from(Timestamp::from_millis(t)).take(6).map(Timestamp::as_millis).collect();
        prop_assert_eq!(&found[..], &expected[..6.min(expected.len())]);
    }

    /// Every format prints what it can read.
    #[test]
    fn calendars_survive_printing(
        days in prop::collection::btree_map(0..20_000i32, (any::<bool>(), "\\PC{0,40}|国庆节（休）|班|a,b;c\\\\\"d"), 0..60),
    ) {
        let mut calendar = WorkCalendar::default();
        for (offset, (is_work, name)) in &days {
            let entry = if *is_work { DayEntry::work(name) } else { DayEntry::off(name) };
            calendar.set(ours(at_offset(*offset - 10_000)), entry);
        }
        for format in [CalendarFormat::ICal, CalendarFormat::Csv, CalendarFormat::Json] {
            let text = format.print(&calendar);
            prop_assert_eq!(CalendarFormat::detect(&text), format);
            let mut read = WorkCalendar::default();
            read.extend(&format.parse(&text, "2026-01-01".parse().unwrap()).unwrap());
            prop_assert_eq!(&read, &calendar, "{}", text);
        }
    }

    /// No text causes a panic, and every accepted text can be printed.
    #[test]
    fn any_file_is_read_or_refused(text in "(BEGIN:VCALENDAR\nBEGIN:VEVENT\n)?(DTSTART[:;]|RRULE:FREQ=YEARLY|[0-9,;:=\\[{\"]|\\PC|\n){0,60}(\nEND:VEVENT)?") {
        for format in [CalendarFormat::ICal, CalendarFormat::Csv, CalendarFormat::Json] {
            let _ = format.parse(&text, "2026-01-01".parse().unwrap());
        }
    }
}

#[test]
fn impossible_searches_end() {
    let calendar = |week| Arc::new(WorkCalendar::new(week));
    let nothing = Workdays::new(calendar(Weekdays::NONE), OnDays::Work, Shift::Next);
    let every_second = Rule::cron(Cron::parse("* * * * * ?").unwrap(), Zone::utc());
    for t in [i64::MIN, 0, 1_800_000_000_000, i64::MAX] {
        let t = Timestamp::from_millis(t);
        assert_eq!(every_second.clone().on(nothing.clone()).next_after(t), None);
        assert_eq!(every_second.clone().on(nothing.clone()).previous_before(t), None);
        let nth =
            NthWorkday::new(7, Span::Week, "09:00".parse().unwrap(), calendar(Weekdays::MONDAY_TO_FRIDAY))
                .unwrap();
        assert_eq!(Rule::nth_workday(nth.clone(), Zone::utc()).next_after(t), None);
        assert_eq!(Rule::nth_workday(nth, Zone::utc()).previous_before(t), None);
        // Saturdays that must be workdays, and are not.
        let saturdays = Rule::cron(Cron::parse("0 0 0 ? * SAT").unwrap(), Zone::utc());
        let workdays = Workdays::new(calendar(Weekdays::MONDAY_TO_FRIDAY), OnDays::Work, Shift::Skip);
        assert_eq!(saturdays.on(workdays).next_after(t), None);
    }
}

#[test]
fn every_hour_within_a_day_follows_elapsed_time() {
    let window =
        DailyWindow::new(time_of_day(0), time_of_day(86_399), Duration::from_secs(1_800), Weekdays::ALL)
            .unwrap();
    let timetable = Timetable::from(Rule::window(window, Zone::parse("Europe/Berlin").unwrap()));
    let at = |text: &str| Timestamp::from_millis(text.parse::<jiff::Timestamp>().unwrap().as_millisecond());
    // 23 hours in March, 25 in October.
    assert_eq!(timetable.count_between(at("2026-03-28T22:59:59Z"), at("2026-03-29T21:59:59Z"), 100), 46);
    assert_eq!(timetable.count_between(at("2026-10-24T21:59:59Z"), at("2026-10-25T22:59:59Z"), 100), 50);
    let quartz = Rule::window(window, Zone::parse("Europe/Berlin").unwrap()).dst(DstRule::QUARTZ);
    assert_eq!(
        Timetable::from(quartz).count_between(at("2026-10-24T21:59:59Z"), at("2026-10-25T22:59:59Z"), 100),
        48
    );
}

#[test]
fn numbers_out_of_range_are_refused() {
    let calendar = Arc::new(WorkCalendar::default());
    let nine: TimeOfDay = "09:00".parse().unwrap();
    for (nth, of, good) in [
        (0, Span::Month, false),
        (31, Span::Month, true),
        (32, Span::Month, false),
        (-7, Span::Week, true),
        (8, Span::Week, false),
        (366, Span::Year, true),
        (i16::MIN, Span::Year, false),
    ] {
        assert_eq!(NthWorkday::new(nth, of, nine, Arc::clone(&calendar)).is_ok(), good, "{nth}");
    }
    for (every, good) in [(0, false), (1, true), (1_000, true), (1_001, false)] {
        assert_eq!(
            CalendarInterval::new(ours(date(2026, 1, 31)), nine, every, IntervalUnit::Weeks).is_ok(),
            good
        );
    }
    for (every, good) in
        [(0, false), (999, false), (1_500, false), (1_000, true), (86_400_000, true), (86_401_000, false)]
    {
        assert_eq!(
            DailyWindow::new(nine, nine, Duration::from_millis(every), Weekdays::ALL).is_ok(),
            good,
            "{every}"
        );
    }
    assert!(DailyWindow::new(nine, nine, Duration::from_secs(1), Weekdays::NONE).is_err());
    assert!(Timetable::new(Vec::new()).is_err());
    assert!(Timetable::new(vec![daily_at_nine("UTC"); 33]).is_err());
}

#[test]
fn the_last_time_of_a_schedule_is_moved_too() {
    let mut calendar = WorkCalendar::new(Weekdays::ALL);
    calendar.set("2026-10-01".parse().unwrap(), DayEntry::off("国庆节"));
    let workdays = Workdays::new(Arc::new(calendar), OnDays::Work, Shift::Next);
    let once = Cron::parse("0 0 9 1 10 ? 2026").unwrap();
    let rule = Rule::cron(once, Zone::utc()).on(workdays);
    let fire = rule.next_after(Timestamp::from_millis(0)).unwrap();
    assert_eq!(fire.to_string(), "2026-10-02T09:00:00Z");
    assert_eq!((rule.next_after(fire), rule.previous_before(fire)), (None, None));
}
