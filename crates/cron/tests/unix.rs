//! The Unix dialect, by example.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should fail")]

use tickwright_cron::{Cron, Dialect, DstRule, Language, Timestamp, Zone};

#[test]
fn five_fields_fire_as_crontab_says() {
    check("*/15 * * * *", &["06-21 10:15", "06-21 10:30"]);
    check("30 9 * * 1-5", &["06-22 09:30", "06-23 09:30"]);
    check("0 0 * * 0", &["06-28 00:00", "07-05 00:00"]);
    check("0 0 * * 7", &["06-28 00:00", "07-05 00:00"]);
    check("0 0 * * sun", &["06-28 00:00"]);
    check("0 0 * * 5-7", &["06-26 00:00", "06-27 00:00", "06-28 00:00", "07-03 00:00"]);
    check("0 0 * * FRI-SUN", &["06-26 00:00", "06-27 00:00", "06-28 00:00", "07-03 00:00"]);
    check("0 0 * * 0-7", &["06-22 00:00", "06-23 00:00"]);
    check("0 0 * * 1-7/3", &["06-22 00:00", "06-25 00:00", "06-28 00:00"]);
    check("0 0 * * */2", &["06-23 00:00", "06-25 00:00", "06-27 00:00", "06-28 00:00"]);
    check("0 0 * * 7/2", &["06-28 00:00", "07-05 00:00"]);
    check("0 0 1 jan,July *", &["07-01 00:00", "2027-01-01 00:00"]);
    check("5/20 10 * * *", &["06-21 10:05", "06-21 10:25", "06-21 10:45", "06-22 10:05"]);
    check("0 0 29 2 *", &["2028-02-29 00:00"]);
}

#[test]
fn with_both_days_restricted_either_is_enough() {
    check("0 0 13 * 5", &["06-26 00:00", "07-03 00:00", "07-10 00:00", "07-13 00:00", "07-17 00:00"]);
    // Only a leading star requires both to match, as in Vixie cron.
    check("0 0 */2 * 1", &["06-29 00:00", "07-13 00:00", "07-27 00:00"]);
    check("0 0 30 2 1", &["2027-02-01 00:00"]);
}

#[test]
fn nicknames_are_read_and_printed() {
    check("@yearly", &["2027-01-01 00:00"]);
    check("@annually", &["2027-01-01 00:00"]);
    check("@monthly", &["07-01 00:00"]);
    check("@weekly", &["06-28 00:00"]);
    check("@daily", &["06-22 00:00"]);
    check(" @Midnight ", &["06-22 00:00"]);
    check("@hourly", &["06-21 11:00"]);
    let daily = parse("@Daily").unwrap();
    assert_eq!(daily.to_string(), "@daily");
    assert_eq!(parse(&daily.to_string()), Ok(daily.clone()));
    assert_eq!(daily.describe(Language::English), "At 00:00, every day");
}

#[test]
fn what_crontab_does_not_know_is_refused() {
    let refuse = |expr: &str, says: &str| {
        let error = parse(expr).expect_err(expr).to_string();
        assert!(error.contains(says), "{expr}: {error}");
    };
    refuse("", "to fire every 5 minutes write `*/5 * * * *`");
    refuse("0 0 0 * * ?", "expected 5 fields (minute hour day-of-month month day-of-week), found 6");
    refuse("@reboot", "unknown nickname `@reboot`");
    refuse("60 * * * *", "minute field, character 1: `60` is out of range");
    refuse("* * * * 8", "day-of-week field, character 9: `8` is out of range; write 0-7 (0 and 7 = Sunday)");
    refuse("* * 0 * *", "day-of-month field");
    refuse("* * L * *", "day-of-month field, character 5: `L` is not known here; write 1-31 with `* , - /`");
    refuse("* * ? * *", "`?` cannot be read");
    refuse("* 22-2 * * *", "`22-2` runs backwards; split it in two, such as `22-23,0-2`");
    refuse("* * * * SAT-MON", "runs backwards");
    refuse("*/0 * * * *", "has step 0");
    refuse("*/60 * * * *", "steps further than the field is long");
    refuse("1, * * * *", "cannot be read");
    refuse("1x * * * *", "`X` cannot be read");
    refuse("* * * * MONKEY", "is not known here");
    refuse("0 0 30 2 *", "can never fire");
}

fn parse(expr: &str) -> Result<Cron, tickwright_cron::Error> {
    Cron::parse_in(Dialect::Unix, expr)
}

/// Compares the first fires after 2026-06-21 10:00:00.5 (a Sunday) in UTC; the default year is 2026.
fn check(expr: &str, fires: &[&str]) {
    let cron = parse(expr).unwrap_or_else(|error| panic!("{expr}: {error}"));
    let from = Timestamp::from_millis(1_782_036_000_500);
    let found: Vec<String> = cron
        .iter_from(from, &Zone::utc(), DstRule::QUARTZ)
        .take(fires.len())
        .map(|at| at.to_string().replace('T', " ").replace(":00Z", ""))
        .collect();
    let fires: Vec<String> =
        fires.iter().map(|f| if f.len() == 11 { format!("2026-{f}") } else { (*f).to_owned() }).collect();
    assert_eq!(found, fires, "{expr}");
}
