//! Files with the days of a work calendar, right and wrong ones.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should fail")]

use tickwright_cron::{CalendarFormat, ImportedDays};

fn parse(format: CalendarFormat, text: &str) -> Result<ImportedDays, String> {
    format.parse(text, "2026-11-18".parse().unwrap()).map_err(|error| error.to_string())
}

/// One line per day: `2026-10-01 off 国庆节`.
fn listed(imported: &ImportedDays) -> Vec<String> {
    let kind = |is_work| if is_work { "work" } else { "off" };
    imported
        .days
        .iter()
        .map(|(day, entry)| format!("{day} {} {}", kind(entry.is_work), entry.name()))
        .collect()
}

fn events(bodies: &[&str]) -> String {
    let events: String = bodies.iter().map(|body| format!("BEGIN:VEVENT\n{body}\nEND:VEVENT\n")).collect();
    format!("BEGIN:VCALENDAR\nVERSION:2.0\n{events}END:VCALENDAR\n")
}

#[test]
fn ical_events_are_whole_days_with_an_exclusive_end() {
    let check = |bodies: &[&str], days: &[&str]| {
        assert_eq!(listed(&parse(CalendarFormat::ICal, &events(bodies)).unwrap()), days);
    };
    check(
        &["DTSTART;VALUE=DATE:20261001\nDTEND;VALUE=DATE:20261003\nSUMMARY:国庆节"],
        &["2026-10-01 off 国庆节", "2026-10-02 off 国庆节"],
    );
    check(&["DTSTART;VALUE=DATE:20261001\nSUMMARY:国庆节"], &["2026-10-01 off 国庆节"]);
    check(&["DTSTART:20261001T000000\nDURATION:P2D\nSUMMARY:x"], &["2026-10-01 off x", "2026-10-02 off x"]);
    check(
        &[
            "DTSTART;VALUE=DATE:20261010\nSUMMARY:国庆节（班）",
            "DTSTART;VALUE=DATE:20261001\nSUMMARY:国庆节（休）",
        ],
        &["2026-10-01 off 国庆节（休）", "2026-10-10 work 国庆节（班）"],
    );
    check(
        &["DTSTART;VALUE=DATE:20261010\nSUMMARY:Make-up day\nCATEGORIES:Foo,work"],
        &["2026-10-10 work Make-up day"],
    );
    check(
        &["DTSTART;VALUE=DATE:20261010\nSUMMARY:补班\nX-APPLE-SPECIAL-DAY:ALTERNATE-WORKDAY"],
        &["2026-10-10 work 补班"],
    );
    // Folded lines, escapes, parameters with a colon, alarms, cancelled events.
    check(
        &["dtstart;value=date:20261001\r\nSUMMARY;X=\"a:b\":Nat\r\n ional\\, day"],
        &["2026-10-01 off National, day"],
    );
    check(
        &["DTSTART;VALUE=DATE:20261001\nBEGIN:VALARM\nSUMMARY:班\nDURATION:x\nEND:VALARM\nSUMMARY:y"],
        &["2026-10-01 off y"],
    );
    check(&["DTSTART;VALUE=DATE:20261001\nSTATUS:CANCELLED"], &[]);
    // Overlapping events of the same kind.
    check(
        &["DTSTART;VALUE=DATE:20251006\nSUMMARY:国庆节", "DTSTART;VALUE=DATE:20251006\nSUMMARY:中秋节"],
        &["2025-10-06 off 国庆节 / 中秋节"],
    );
}

#[test]
fn a_feed_that_marks_days_off_may_list_festivals_without_one() {
    let text = events(&[
        "DTSTART;VALUE=DATE:20261001\nSUMMARY:国庆节（休）",
        "DTSTART;VALUE=DATE:20261010\nSUMMARY:国庆节（班）",
        "DTSTART;VALUE=DATE:20261008\nSUMMARY:寒露",
    ]);
    let imported = parse(CalendarFormat::ICal, &text).unwrap();
    assert_eq!(listed(&imported), ["2026-10-01 off 国庆节（休）", "2026-10-10 work 国庆节（班）"]);
    assert_eq!(imported.ignored, 1);
    assert_eq!(imported.last_listed.unwrap().to_string(), "2026-10-10");
}

#[test]
fn yearly_events_are_expanded_for_ten_years() {
    let check = |body: &str, first: &str, last: &str, count: usize| {
        let imported = parse(CalendarFormat::ICal, &events(&[body])).unwrap();
        let days: Vec<String> = imported.days.keys().map(ToString::to_string).collect();
        assert_eq!(
            (days[0].as_str(), days[days.len() - 1].as_str(), days.len()),
            (first, last, count),
            "{body}"
        );
        assert_eq!(imported.last_listed, None, "a repetition is no announcement");
    };
    check("DTSTART;VALUE=DATE:19491001\nRRULE:FREQ=YEARLY", "2026-10-01", "2035-10-01", 10);
    check("DTSTART;VALUE=DATE:20280101\nRRULE:FREQ=YEARLY", "2028-01-01", "2035-01-01", 8);
    check("DTSTART;VALUE=DATE:20200229\nRRULE:FREQ=YEARLY", "2028-02-29", "2032-02-29", 2);
    check("DTSTART;VALUE=DATE:20260101\nRRULE:FREQ=YEARLY;COUNT=3", "2026-01-01", "2028-01-01", 3);
    check(
        "DTSTART;VALUE=DATE:20260101\nRRULE:FREQ=YEARLY;UNTIL=20290101T000000Z",
        "2026-01-01",
        "2029-01-01",
        4,
    );
    check("DTSTART;VALUE=DATE:20260101\nRRULE:FREQ=YEARLY;INTERVAL=4", "2026-01-01", "2034-01-01", 3);
    // Thanksgiving, and Memorial Day.
    check(
        "DTSTART;VALUE=DATE:20201126\nRRULE:FREQ=YEARLY;BYMONTH=11;BYDAY=4TH",
        "2026-11-26",
        "2035-11-22",
        10,
    );
    check(
        "DTSTART;VALUE=DATE:20200525\nRRULE:FREQ=YEARLY;BYMONTH=5;BYDAY=-1MO",
        "2026-05-25",
        "2035-05-28",
        10,
    );
    check(
        "DTSTART;VALUE=DATE:20260101\nDTEND;VALUE=DATE:20260103\nRRULE:FREQ=YEARLY\nEXDATE;VALUE=DATE:20260101",
        "2027-01-01",
        "2035-01-02",
        18,
    );
}

#[test]
fn wrong_files_get_a_line_and_a_correct_form() {
    let check = |format, text: &str, problem: &str| {
        let error = parse(format, text).unwrap_err();
        assert!(error.contains(problem), "{error}");
    };
    let ical = |body: &str, problem: &str| check(CalendarFormat::ICal, &events(&[body]), problem);
    ical("SUMMARY:x", "line 3: the event has no DTSTART");
    ical(
        "DTSTART;VALUE=DATE:20260230",
        "line 4: `20260230` is not a date; write for example `DTSTART;VALUE=DATE:20261001`",
    );
    ical("DTSTART:20261001T093000Z", "line 4: `20261001T093000Z` is not a whole day");
    ical("DTSTART;VALUE=DATE:20261003\nDTEND;VALUE=DATE:20261001", "line 3: the event ends before it begins");
    ical("DTSTART;VALUE=DATE:20200101\nDTEND;VALUE=DATE:20300101", "longer than 366 days");
    ical("DTSTART;VALUE=DATE:20260101\nDURATION:PT5H", "line 5: `PT5H` is not a number of days");
    ical("DTSTART;VALUE=DATE:20260101\nRRULE:FREQ=DAILY", "line 5: RRULE with `FREQ=DAILY` is not supported");
    ical(
        "DTSTART;VALUE=DATE:20260101\nRRULE:FREQ=YEARLY;BYWEEKNO=3",
        "RRULE with `BYWEEKNO=3` is not supported",
    );
    ical(
        "DTSTART;VALUE=DATE:20260101\nRRULE:FREQ=YEARLY;INTERVAL=0",
        "RRULE with `INTERVAL=0` is not supported",
    );
    ical("DTSTART;VALUE=DATE:20260101\nRDATE:20260203", "line 5: RDATE is not supported");
    ical("DTSTART;VALUE=DATE:23000101", "2300-01-01 is out of range");
    check(CalendarFormat::ICal, "BEGIN:VCALENDAR\nBEGIN:VEVENT\n", "line 2: the event has no END:VEVENT");
    check(CalendarFormat::ICal, "<html>", "the file has no BEGIN:VCALENDAR");
    let both =
        events(&["DTSTART;VALUE=DATE:20261001\nSUMMARY:休", "DTSTART;VALUE=DATE:20261001\nSUMMARY:班"]);
    check(CalendarFormat::ICal, &both, "line 7: 2026-10-01 is both a workday and a day off");

    check(
        CalendarFormat::Csv,
        "2026-10-01,off\n2026-10-01,work",
        "line 2: 2026-10-01 is both a workday and a day off",
    );
    check(
        CalendarFormat::Csv,
        "2026-10-1,off",
        "line 1: `2026-10-1` is not a date; write for example `2026-10-01`",
    );
    check(CalendarFormat::Csv, "date,kind\n\n2026-10-01,OFF", "line 3: `OFF` is not a kind of day");
    check(CalendarFormat::Csv, "2026-10-01,off,\"a", "line 1: `\"a` has an open quote");
    check(CalendarFormat::Csv, "+026-10-01,off", "is not a date");

    check(CalendarFormat::Json, "{\"days\": 5}", "the field `days` is missing or not a list");
    check(CalendarFormat::Json, "5", "the file is not a list of days");
    check(
        CalendarFormat::Json,
        "{\n\"days\": [}",
        "line 2: the file is not JSON of a holiday feed: a value is expected",
    );
    check(
        CalendarFormat::Json,
        "{\"days\":[{\"date\":\"2026-10-01\"}]}",
        "entry 1 of `days`: the field `isOffDay` is missing",
    );
    check(CalendarFormat::Json, &"[".repeat(100_000), "the file is not JSON");

    for format in [CalendarFormat::ICal, CalendarFormat::Csv, CalendarFormat::Json] {
        check(
            format,
            &" ".repeat(10 * 1_024 * 1_024 + 1),
            "the file has 10485761 bytes; at most 10485760 are allowed",
        );
    }
    let years = |count: i32| {
        let first = jiff::civil::date(1990, 1, 1);
        let days = first.series(jiff::Span::new().days(1)).take(count as usize);
        days.map(|day| format!("{day},off\n")).collect::<String>()
    };
    assert_eq!(parse(CalendarFormat::Csv, &years(20_000)).unwrap().days.len(), 20_000);
    check(CalendarFormat::Csv, &years(20_001), "line 20001: the file has more than 20000 days");
}

#[test]
fn the_feeds_of_chinese_holidays_are_read() {
    let text = "\u{feff}{\"$schema\": \"x\", \"year\": 2026, \"papers\": [\"x\"], \"days\": [\n\
        {\"name\": \"元旦\", \"date\": \"2026-01-01\", \"isOffDay\": true},\n\
        {\"name\": \"元旦\", \"date\": \"2026-01-04\", \"isOffDay\": false}]}";
    assert_eq!(CalendarFormat::detect(text), CalendarFormat::Json);
    let imported = parse(CalendarFormat::Json, text).unwrap();
    assert_eq!(listed(&imported), ["2026-01-01 off 元旦", "2026-01-04 work 元旦"]);
    let csv = "\u{feff}# China\ndate,kind,name\r\n2026-01-01, off ,\"New \"\"Year\"\", China\"\r\n2026-01-04,work\r\n";
    let imported = parse(CalendarFormat::Csv, csv).unwrap();
    assert_eq!(listed(&imported), ["2026-01-01 off New \"Year\", China", "2026-01-04 work "]);
}
