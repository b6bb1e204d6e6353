//! Nights when the clocks change, by example.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should fail")]

use tickwright_cron::{Cron, DstRule, Timestamp, Zone};

const NEW_YORK: &str = "America/New_York";

#[test]
fn a_removed_hour_is_skipped_or_made_up_for_once() {
    // 2026-03-08: 02:00 becomes 03:00.
    let from = "2026-03-07T12:00:00-05:00";
    check(NEW_YORK, "quartz", "0 30 2 * * ?", from, &["2026-03-09T02:30:00-04:00"]);
    check(
        NEW_YORK,
        "natural",
        "0 30 2 * * ?",
        from,
        &["2026-03-08T03:00:00-04:00", "2026-03-09T02:30:00-04:00"],
    );
    check(
        NEW_YORK,
        "next-second",
        "0 0/10 2 * * ?",
        from,
        &["2026-03-08T03:00:00-04:00", "2026-03-09T02:00:00-04:00"],
    );
    // An expression that fires at 03:00 anyway does not fire twice.
    check(
        NEW_YORK,
        "natural",
        "0 0 2,3 * * ?",
        from,
        &["2026-03-08T03:00:00-04:00", "2026-03-09T02:00:00-04:00"],
    );

    let from = "2026-03-08T01:00:00-05:00";
    let half_hours = &["2026-03-08T01:30:00-05:00", "2026-03-08T03:00:00-04:00", "2026-03-08T03:30:00-04:00"];
    check(NEW_YORK, "quartz", "0 0/30 * * * ?", from, half_hours);
    check(NEW_YORK, "natural", "0 0/30 * * * ?", from, half_hours);
    // Every hour at :15 loses nothing, because no such time was skipped.
    check(
        NEW_YORK,
        "natural",
        "0 15 * * * ?",
        from,
        &["2026-03-08T01:15:00-05:00", "2026-03-08T03:15:00-04:00"],
    );
}

#[test]
fn a_repeated_hour_counts_once_or_by_elapsed_time() {
    // 2026-11-01: 02:00 becomes 01:00.
    let from = "2026-11-01T00:00:00-04:00";
    let (first, second) = ("2026-11-01T01:30:00-04:00", "2026-11-01T01:30:00-05:00");
    let next_day = "2026-11-02T01:30:00-05:00";
    check(NEW_YORK, "quartz", "0 30 1 * * ?", from, &[second, next_day]);
    check(NEW_YORK, "natural", "0 30 1 * * ?", from, &[first, next_day]);
    check(NEW_YORK, "skip-both", "0 30 1 * * ?", from, &[first, second, next_day]);
    // Searched from between the two.
    let between = "2026-11-01T01:45:00-04:00";
    check(NEW_YORK, "quartz", "0 30 1 * * ?", between, &[second, next_day]);
    check(NEW_YORK, "natural", "0 30 1 * * ?", between, &[next_day]);
    check(NEW_YORK, "quartz", "0 30 1 1 11 ? 2026", between, &[second]);

    check(
        NEW_YORK,
        "quartz",
        "0 0/30 * * * ?",
        from,
        &[
            "2026-11-01T00:30:00-04:00",
            "2026-11-01T01:00:00-05:00",
            "2026-11-01T01:30:00-05:00",
            "2026-11-01T02:00:00-05:00",
        ],
    );
    check(
        NEW_YORK,
        "natural",
        "0 0/30 * * * ?",
        from,
        &[
            "2026-11-01T00:30:00-04:00",
            "2026-11-01T01:00:00-04:00",
            "2026-11-01T01:30:00-04:00",
            "2026-11-01T01:00:00-05:00",
            "2026-11-01T01:30:00-05:00",
            "2026-11-01T02:00:00-05:00",
        ],
    );
    // Does not fire for an hour, even with this expression.
    check(NEW_YORK, "quartz", "* * * * * ?", "2026-11-01T00:59:59-04:00", &["2026-11-01T01:00:00-05:00"]);
}

#[test]
fn london() {
    check("Europe/London", "natural", "0 30 1 * * ?", "2026-03-28T12:00:00Z", &["2026-03-29T02:00:00+01:00"]);
    check("Europe/London", "quartz", "0 30 1 * * ?", "2026-03-28T12:00:00Z", &["2026-03-30T01:30:00+01:00"]);
    check(
        "Europe/London",
        "natural",
        "0 30 1 * * ?",
        "2026-10-25T00:00:00+01:00",
        &["2026-10-25T01:30:00+01:00"],
    );
    check(
        "Europe/London",
        "quartz",
        "0 30 1 * * ?",
        "2026-10-25T00:00:00+01:00",
        &["2026-10-25T01:30:00+00:00"],
    );
}

#[test]
fn lord_howe_shifts_by_half_an_hour() {
    let zone = "Australia/Lord_Howe";
    // 2026-10-04: 02:00 becomes 02:30.
    let from = "2026-10-04T00:00:00+10:30";
    check(zone, "quartz", "0 15 2 * * ?", from, &["2026-10-05T02:15:00+11:00"]);
    check(zone, "natural", "0 15 2 * * ?", from, &["2026-10-04T02:30:00+11:00", "2026-10-05T02:15:00+11:00"]);
    check(zone, "natural", "0 45 2 * * ?", from, &["2026-10-04T02:45:00+11:00"]);
    // 2026-04-05: 02:00 becomes 01:30.
    let from = "2026-04-05T01:00:00+11:00";
    check(zone, "quartz", "0 45 1 * * ?", from, &["2026-04-05T01:45:00+10:30", "2026-04-06T01:45:00+10:30"]);
    check(zone, "natural", "0 45 1 * * ?", from, &["2026-04-05T01:45:00+11:00", "2026-04-06T01:45:00+10:30"]);
    check(zone, "natural", "0 15 1 * * ?", from, &["2026-04-05T01:15:00+11:00", "2026-04-06T01:15:00+10:30"]);
}

#[test]
fn casablanca_goes_back_for_ramadan() {
    let zone = "Africa/Casablanca";
    // 2026-02-15: 03:00 becomes 02:00; 2026-03-22: 02:00 becomes 03:00.
    check(
        zone,
        "natural",
        "0 30 2 * * ?",
        "2026-02-15T00:00:00+01:00",
        &["2026-02-15T02:30:00+01:00", "2026-02-16T02:30:00+00:00"],
    );
    check(zone, "quartz", "0 30 2 * * ?", "2026-02-15T00:00:00+01:00", &["2026-02-15T02:30:00+00:00"]);
    check(zone, "natural", "0 30 2 * * ?", "2026-03-22T00:00:00+00:00", &["2026-03-22T03:00:00+01:00"]);
    check(zone, "quartz", "0 30 2 * * ?", "2026-03-22T00:00:00+00:00", &["2026-03-23T02:30:00+01:00"]);
}

#[test]
fn shanghai_has_no_summer_time_any_more() {
    let zone = "Asia/Shanghai";
    check(
        zone,
        "natural",
        "0 30 2 * * ?",
        "2026-03-28T12:00:00+08:00",
        &["2026-03-29T02:30:00+08:00", "2026-03-30T02:30:00+08:00"],
    );
    // It had one in 1986: on 4 May 02:00 became 03:00.
    check(zone, "natural", "0 30 2 * * ?", "1986-05-03T12:00:00+08:00", &["1986-05-04T03:00:00+09:00"]);
}

#[test]
fn apia_had_no_30_december_2011() {
    let zone = "Pacific/Apia";
    let from = "2011-12-29T12:00:00-10:00";
    check(zone, "quartz", "0 0 9 * * ?", from, &["2011-12-31T09:00:00+14:00"]);
    check(zone, "natural", "0 0 9 * * ?", from, &["2011-12-31T00:00:00+14:00", "2011-12-31T09:00:00+14:00"]);
    check(zone, "quartz", "0 0 9 30 12 ?", from, &["2012-12-30T09:00:00+14:00"]);
    check(
        zone,
        "natural",
        "0 0 * * * ?",
        "2011-12-29T22:30:00-10:00",
        &["2011-12-29T23:00:00-10:00", "2011-12-31T00:00:00+14:00"],
    );
}

#[test]
fn years_and_leap_days_end_where_the_zone_says() {
    check("UTC", "quartz", "59 59 23 31 12 ?", "2026-06-01T00:00:00Z", &["2026-12-31T23:59:59+00:00"]);
    check("UTC", "quartz", "0 0 0 1 1 ?", "2026-12-31T23:59:59Z", &["2027-01-01T00:00:00+00:00"]);
    check(
        "Pacific/Auckland",
        "natural",
        "0 0 0 1 1 ? 2027",
        "2026-06-01T00:00:00Z",
        &["2027-01-01T00:00:00+13:00"],
    );
    check(NEW_YORK, "natural", "0 0 12 29 2 ?", "2096-03-01T00:00:00Z", &["2104-02-29T12:00:00-05:00"]);
    check(NEW_YORK, "natural", "0 0 0 31 12 ? 2199", "2026-06-01T00:00:00Z", &["2199-12-31T00:00:00-05:00"]);
}

/// Compares the first fires after `from`, and the fire before each of them.
fn check(zone: &str, dst: &str, expr: &str, from: &str, fires: &[&str]) {
    let (cron, zone, dst): (Cron, Zone, DstRule) =
        (expr.parse().unwrap(), zone.parse().unwrap(), dst.parse().unwrap());
    let at = |text: &str| Timestamp::from_millis(text.parse::<jiff::Timestamp>().unwrap().as_millisecond());
    let found: Vec<Timestamp> = cron.iter_from(at(from), &zone, dst).take(fires.len()).collect();
    let expected: Vec<Timestamp> = fires.iter().map(|fire| at(fire)).collect();
    assert_eq!(found, expected, "{expr} in {zone}: {found:?}");
    for pair in found.windows(2) {
        assert_eq!(cron.previous_before(pair[1], &zone, dst), Some(pair[0]), "{expr} in {zone}, backwards");
    }
    assert!(cron.previous_before(found[0], &zone, dst).is_none_or(|before| before <= at(from)));
}
