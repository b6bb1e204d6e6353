//! Feeds random bytes to the parsers of work calendars, prints what they accept, and searches fires with it.
//!
//! On stable Rust: `cargo install cargo-fuzz`, then in the repository's root
//! `cargo fuzz run -s none work_calendar -- -max_total_time=60`.
//!
//! The first eight bytes are the time to search from; the rest is the file.

#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use tickwright_cron::{
    CalendarFormat, Cron, Day, NthWorkday, OnDays, Rule, Shift, Span, TimeOfDay, Timestamp, WorkCalendar, Workdays, Zone,
};

fuzz_target!(|bytes: &[u8]| {
    let Some((instant, text)) = bytes.split_first_chunk::<8>() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let t = Timestamp::from_millis(i64::from_le_bytes(*instant) % 8_000_000_000_000);
    let today = Day::new(2026, 1, 1).expect("the day exists");

    for format in [CalendarFormat::ICal, CalendarFormat::Csv, CalendarFormat::Json] {
        let Ok(imported) = format.parse(text, today) else { continue };
        let mut calendar = WorkCalendar::default();
        calendar.extend(&imported);
        for other in [CalendarFormat::ICal, CalendarFormat::Csv, CalendarFormat::Json] {
            let printed = other.print(&calendar);
            assert_eq!(CalendarFormat::detect(&printed), other);
            let read = other.parse(&printed, today).expect("prints what it reads");
            assert_eq!(read.days, imported.days, "prints as it reads");
        }
        check(Arc::new(calendar), t);
    }
});

fn check(calendar: Arc<WorkCalendar>, t: Timestamp) {
    let nine: TimeOfDay = "09:00".parse().expect("a time of day");
    let zone = Zone::parse("Europe/Berlin").expect("the zone exists");
    let daily = Rule::cron(Cron::parse("0 0 9 * * ?").expect("an expression"), zone.clone());
    let nth = NthWorkday::new(-1, Span::Month, nine, Arc::clone(&calendar)).expect("the last workday");
    let mut rules = vec![Rule::nth_workday(nth, zone)];
    for shift in [Shift::Skip, Shift::Next, Shift::Previous, Shift::Nearest] {
        rules.push(daily.clone().on(Workdays::new(Arc::clone(&calendar), OnDays::Work, shift)));
    }
    for rule in rules {
        if let Some(next) = rule.next_after(t) {
            assert!(next > t, "strictly after");
            assert!(calendar.is_work(rule.zone().day_at(next)), "on a workday");
            assert!(rule.previous_before(next).is_none_or(|previous| previous <= t));
        }
    }
}
