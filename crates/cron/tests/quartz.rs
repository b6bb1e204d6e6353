//! The Quartz dialect by example: fires, rejected expressions, ignored text.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should fail")]

use tickwright_cron::{Cron, Dialect, DstRule, Error, Timestamp, Zone};

/// Sunday, 2026-06-21 10:00:00.500 in Shanghai.
const NOW: &str = "2026-06-21T10:00:00.5+08:00";

#[test]
fn fires_follow_the_documentation() {
    check("0 0 0 * * ?", &["06-22 00:00:00", "06-23 00:00:00"]);
    check("0/7 * * * * ?", &["06-21 10:00:07", "06-21 10:00:14", "06-21 10:00:21"]);
    check("0 0/15 9-17 ? * MON-FRI", &["06-22 09:00:00", "06-22 09:15:00"]);
    check("0 0 12 1/5 * ?", &["06-21 12:00:00", "06-26 12:00:00", "07-01 12:00:00", "07-06 12:00:00"]);
    check("0 15 10 L * ?", &["06-30 10:15:00", "07-31 10:15:00", "08-31 10:15:00", "09-30 10:15:00"]);
    check("0 15 10 L-2 * ?", &["06-28 10:15:00", "07-29 10:15:00"]);
    check("0 15 10 LW * ?", &["06-30 10:15:00", "07-31 10:15:00", "08-31 10:15:00", "09-30 10:15:00"]);
    check("0 15 10 L-3W * ?", &["06-26 10:15:00", "07-28 10:15:00", "08-28 10:15:00", "09-28 10:15:00"]);
    check("0 15 10 15W * ?", &["07-15 10:15:00", "08-14 10:15:00", "09-15 10:15:00"]);
    check("0 15 10 1W * ?", &["07-01 10:15:00", "08-03 10:15:00", "09-01 10:15:00"]);
    check("0 15 10 31W * ?", &["07-31 10:15:00", "08-31 10:15:00", "10-30 10:15:00", "12-31 10:15:00"]);
    check("0 15 10 1,L * ?", &["06-30 10:15:00", "07-01 10:15:00", "07-31 10:15:00"]);
    check("0 15 10 1,15W * ?", &["07-01 10:15:00", "07-15 10:15:00", "08-01 10:15:00", "08-14 10:15:00"]);
    for last_friday in ["0 15 10 ? * 6L", "0 15 10 ? * FRIL", "0 15 10 ? * fril"] {
        check(last_friday, &["06-26 10:15:00", "07-31 10:15:00", "08-28 10:15:00"]);
    }
    check("0 15 10 ? * L", &["06-27 10:15:00", "07-04 10:15:00"]);
    check("0 15 10 ? * 6#3", &["07-17 10:15:00", "08-21 10:15:00"]);
    check("0 15 10 ? * FRI#3", &["07-17 10:15:00", "08-21 10:15:00"]);
    check("0 15 10 ? * 2#5", &["06-29 10:15:00", "08-31 10:15:00", "11-30 10:15:00", "2027-03-29 10:15:00"]);
    check(
        "0 0 22-2 * * ?",
        &[
            "06-21 22:00:00",
            "06-21 23:00:00",
            "06-22 00:00:00",
            "06-22 01:00:00",
            "06-22 02:00:00",
            "06-22 22:00:00",
        ],
    );
    check("0 0 0 ? NOV-FEB *", &["11-01 00:00:00", "11-02 00:00:00"]);
    check("0 0 0 ? * FRI-MON", &["06-22 00:00:00", "06-26 00:00:00", "06-27 00:00:00", "06-28 00:00:00"]);
    check("0 0 0 31 * ?", &["07-31 00:00:00", "08-31 00:00:00", "10-31 00:00:00"]);
    check("0 0 0 25-5 * ?", &["06-25 00:00:00", "06-26 00:00:00", "06-27 00:00:00"]);
    check("0 0 0 29 2 ?", &["2028-02-29 00:00:00", "2032-02-29 00:00:00"]);
    check("0 0 0 1 1 ? 2020", &[]);
    // Quartz stops a hundred years from now; we stop at the end of 2199.
    check("0 0 0 1 1 ? 2199", &["2199-01-01 00:00:00"]);
    check("0 0 0 1 1 ? 2025-2030/2", &["2027-01-01 00:00:00", "2029-01-01 00:00:00"]);
    check("30-10/10 * * * * ?", &["06-21 10:00:10", "06-21 10:00:30", "06-21 10:00:40", "06-21 10:00:50"]);
    check("0 0 0 ? * */2", &["06-23 00:00:00", "06-25 00:00:00", "06-27 00:00:00", "06-28 00:00:00"]);
    check("0 0 0 L-30 * ?", &["07-01 00:00:00", "08-01 00:00:00", "10-01 00:00:00"]);
}

#[test]
fn steps_run_to_the_end_of_the_field() {
    check("0 0 0 1 7/6 ?", &["07-01 00:00:00", "2027-07-01 00:00:00"]);
    check("0/59 0 0 * * ?", &["06-22 00:00:00", "06-22 00:00:59"]);
    check("/30 0 0 * * ?", &["06-22 00:00:00", "06-22 00:00:30"]);
    check("5/0 0 0 * * ?", &["06-22 00:00:05", "06-23 00:00:05"]);
    check("*/0 0 11 * * ?", &["06-21 11:00:00", "06-21 11:00:01"]);
    check("0-30/100 0 0 * * ?", &["06-22 00:00:00", "06-23 00:00:00"]);
    check("0 0 0 ? * 2-6/2", &["06-22 00:00:00", "06-24 00:00:00", "06-26 00:00:00", "06-29 00:00:00"]);
    check("0 0 0 1 1 ? */2", &["2028-01-01 00:00:00", "2030-01-01 00:00:00"]);
}

#[test]
fn workdays_stay_in_their_month_and_keep_all_their_hours() {
    // 2027-01-31 is a Sunday, 2026-08-01 a Saturday.
    check("0 0 9 31W 1 ?", &["2027-01-29 09:00:00"]);
    check("0 0 9 1W 8 ?", &["08-03 09:00:00"]);
    check("0 0 9,18 15W 11 ?", &["11-16 09:00:00", "11-16 18:00:00", "2027-11-15 09:00:00"]);
    check("0 0 9 30W 2,6 ?", &["06-30 09:00:00", "2027-06-30 09:00:00"]);
    check("0 0 9 L-30W 2,7 ?", &["07-01 09:00:00", "2027-07-01 09:00:00"]);
    // 15W of February 2026 is Monday the 16th, searched from Sunday the 15th at noon.
    check_from("2026-02-15T12:00:00+08:00", "0 0 9 15W * ?", &["02-16 09:00:00", "03-16 09:00:00"]);
}

#[test]
fn names_are_their_first_three_letters_in_any_case() {
    check("0 0 0 ? * MONDAY", &["06-22 00:00:00", "06-29 00:00:00"]);
    check("0 0 0 ? * mon-FRIDAY", &["06-22 00:00:00", "06-23 00:00:00"]);
    check("0 0 0 1 september ?", &["09-01 00:00:00"]);
    check("0 0 0 1 SEPT,jan ?", &["09-01 00:00:00", "2027-01-01 00:00:00"]);
    check("  0 0\t0  1 9   ?  ", &["09-01 00:00:00"]);
}

#[test]
fn what_means_the_same_is_equal() {
    let same = |a: &str, b: &str| assert_eq!(Cron::parse(a).unwrap(), Cron::parse(b).unwrap());
    same("0 0 0 ? * MON-FRI", "0 0 0 ? * 2,3,4,5,6 *");
    same("0/5 * * * * ?", "*/5 0-59 * 1-31 * ?");
    same("0 0 0 * * ?", "0 0 0 ? * *");
    let unix = Cron::parse_in(Dialect::Unix, "*/5 * * * *").unwrap();
    assert_eq!(Cron::parse("0 */5 * * * ?").unwrap(), unix);
    assert_ne!(Cron::parse("1 */5 * * * ?").unwrap(), unix);
}

#[test]
fn the_printed_form_is_read_back_the_same() {
    let check = |expr: &str, printed: &str| {
        let cron: Cron = expr.parse().unwrap();
        assert_eq!(cron.to_string(), printed);
        assert_eq!(printed.parse::<Cron>().unwrap(), cron);
    };
    check(" 0  0 0 ? * mon-fri ", "0 0 0 ? * MON-FRI");
    check("0 0 0 l-3w * ? 2030", "0 0 0 L-3W * ? 2030");
}

#[test]
fn what_is_wrong_is_refused_where_it_is_wrong() {
    refuse("", "the expression is empty; to fire every 5 minutes write `0 0/5 * * * ?`");
    refuse(
        "0 0 0 * * *",
        "must be `?` (no specific value) in `0 0 0 * * *`; write for example `0 0 0 * * ?`",
    );
    refuse("0 0 0 * * MON", "write for example `0 0 0 ? * MON`");
    refuse("0 0 0 1 * MON", "write for example `0 0 0 1 * ?`");
    refuse("0 0 0 ? * ?", "write for example `0 0 0 * * ?`");
    refuse("0 0 0 ? * 0", "day-of-week field, character 11: `0` is out of range; write 1-7 (1 = Sunday)");
    refuse("60 * * * * ?", "second field, character 1: `60` is out of range; write 0-59");
    refuse("0 0 24 * * ?", "hour field, character 5: `24` is out of range; write 0-23");
    refuse("0 0 0 32 * ?", "day-of-month field, character 7: `32` is out of range");
    refuse("0 0 0 1 13 ?", "month field, character 9: `13` is out of range");
    refuse("0 */60 * * * ?", "`*/60` steps further than the field is long; the most is 59");
    refuse("0 0 0/24 * * ?", "`0/24` steps further than the field is long; the most is 23");
    refuse(
        "0 0 0 * *",
        "expected 6 or 7 fields (second minute hour day-of-month month day-of-week [year]), found 5",
    );
    refuse("@daily", "found 1 in `@daily`");
    refuse("0 0 0 * * ? 2030 1", "found 8");
    refuse("0 0 0 L-31 * ?", "`L-31` goes back further than any month");
    refuse("0 0 0 1 1 ? 2030-2025", "year field, character 13: `2030-2025` runs backwards");
    refuse("0 0 0 1 1 ? 1969", "`1969` is out of range; write 1970-2199");
    refuse("0 0 0 1 1 ? 2200", "`2200` is out of range");
    refuse("0 0 0 1 MON ?", "month field, character 9: `MON` is not known here; write 1-12 or JAN-DEC");
    refuse("0 0 0 ? * 6#6", "needs a number from 1 to 5 after `#`");
    refuse("0 0 0 ? * 6#", "needs a number from 1 to 5 after `6#`");
    refuse("0 0 0 ? * 6#2,2#1", "has two `#`");
    refuse("0 0 0 ? * 6L,2", "has `L` in a list");
    refuse("0 0 0 ? * SAT,L", "has `L` in a list");
    refuse("0 0 L * * ?", "hour field, character 5: `L` is not known here");
    refuse("0 0 5L * * ?", "`5L` does not exist in this field");
    refuse("0 0 0 5#2 * ?", "`5#2` does not exist in this field");
    refuse("0 0 0 ? * 3W", "`3W` does not exist in this field");
    refuse("? 0 0 ? * 3", "must stand alone, in one of the two day fields");
    refuse("0 0 0 1,? * ?", "must stand alone, in one of the two day fields");
    refuse("0 0 0 LX * ?", "`LX` cannot be read");
    refuse("0 0 5- * * ?", "needs a number after `5-`");
    refuse("0 0 5/ * * ?", "needs a step after `5/`");
    refuse("0 0 5/2X * * ?", "has a step that is not a number");
    refuse("0 0 0 ? * MON-5", "`MON-5` cannot be read");
    refuse("0 0 , * * ?", "has an empty entry");
    refuse("0 é 0 * * ?", "minute field, character 3: `é` cannot be read");
    refuse("é é 60 * * ?", "second field, character 1");
    refuse("0 0 99999999999999999999 * * ?", "`99999999999999999999` is out of range");
}

#[test]
fn what_can_never_fire_is_refused() {
    for expr in [
        "0 0 0 30 2 ?",
        "0 0 0 31 4,6,9,11 ?",
        "0 0 0 29 2 ? 2025,2026,2027,2029,2031,2100",
        "0 0 0 29 2 ? 1971/2",
        "0 0 0 L-29 2 ?",
        "0 0 0 30W 2 ?",
        "0 0 0 ? 2 1#5 2027",
    ] {
        assert!(matches!(Cron::parse(expr), Err(Error::Impossible { .. })), "{expr}");
        assert!(matches!(Cron::parse_lenient(expr), Err(Error::Impossible { .. })), "{expr}");
    }
    assert!(Cron::parse("0 0 0 29 2 ? 2025,2028").is_ok());
    assert!(Cron::parse("0 0 0 L-28 2 ?").is_ok());
}

#[test]
fn what_quartz_reads_past_is_refused_or_kept_with_a_warning() {
    let check = |expr: &str, kept: &str, warnings: usize, says: &str| {
        let refused = Cron::parse(expr).unwrap_err().to_string();
        assert!(refused.contains(says), "{expr}: {refused}");
        let (cron, given) = Cron::parse_lenient(expr).unwrap();
        assert_eq!(cron.to_string(), kept);
        assert_eq!(cron, Cron::parse(kept).unwrap());
        assert_eq!(given.len(), warnings, "{expr}: {given:?}");
        assert!(given[0].to_string().contains(says), "{expr}: {given:?}");
    };
    check(
        "10X 0 0 * * ?",
        "10 0 0 * * ?",
        1,
        "second field, character 3: `X` after `10` is not read by Quartz",
    );
    check("0 0 0 ? * MON-FRI/2", "0 0 0 ? * MON-FRI", 1, "character 18: `/2` after `MON-FRI` is not read");
    check("0 0 0 ? * MON/2", "0 0 0 ? * MON", 1, "`/2` after `MON` is not read");
    check("0 0 0 5-10W * ?", "0 0 0 5-10 * ?", 1, "`W` after `5-10` is not read");
    check("0 0 0 ? * MON#1,FRI", "0 0 0 ? * 2#1", 1, "has `#` in a list");
    check("0 0 0 ? * FRI,SAT#2", "0 0 0 ? * 6#2", 1, "has `#` in a list");
    check("0 0 0 ? * MONDAY-FRIDAY", "0 0 0 ? * MONDAY", 1, "`-FRIDAY` after `MONDAY` is not read");
    check("0 0 0 ? * MONKEY", "0 0 0 ? * MON", 1, "`KEY` after `MON` is not read");
    check("0 0 0 ? * MON-FRICTION", "0 0 0 ? * MON-FRI", 1, "`CTION` after `MON-FRI` is not read");
    check("0 0 0 ? * FRILX", "0 0 0 ? * FRIL", 1, "`X` after `FRIL` is not read");
    check("*5 0 0 * * ?", "* 0 0 * * ?", 1, "`5` after `*` is not read");
    check("1,,2, 0 0 * * ?", "1,2 0 0 * * ?", 2, "has an empty entry");
    check("10-20/0 0 0 * * ?", "10 0 0 * * ?", 1, "has step 0, which Quartz reads as its first value alone");
    check("0 0 0 * * ? 2030-2999", "0 0 0 * * ? 2030-2199", 1, "ends after the last year there is");
    check("0 0 0 * * ? 2030 EXTRA", "0 0 0 * * ? 2030", 1, "found 8");
}

#[test]
fn what_is_strictly_right_needs_no_warning() {
    let (cron, warnings) = Cron::parse_lenient("0 0 0 ? * MON-FRI").unwrap();
    assert_eq!(cron, Cron::parse("0 0 0 ? * MON-FRI").unwrap());
    assert_eq!(warnings, []);
}

#[test]
fn hostile_expressions_are_read_or_refused_in_no_time() {
    let long = "0,".repeat(100_000) + "0 0 0 * * ?";
    let error = Cron::parse(&long).unwrap_err();
    assert_eq!(error, Error::TooLong { length: long.len() });
    assert!(error.to_string().len() < 300, "does not repeat it all");

    let full_list = (1..=31).map(|day| format!("{day}W,L-{}W,", day - 1)).collect::<String>() + "L";
    let cron = Cron::parse(&format!("0 0 0 {full_list} * ?")).unwrap();
    let fires = cron.iter_from(at(NOW), &Zone::utc(), DstRule::NATURAL).take(1_000).count();
    assert_eq!(fires, 1_000);

    let odd_years: Vec<String> = (1971..2199).step_by(2).map(|year| year.to_string()).collect();
    let never = format!("0 0 0 29 2 ? {}", odd_years.join(","));
    assert!(matches!(Cron::parse(&never), Err(Error::Impossible { .. })));

    // In New York this is always in the hour that does not exist, from 2007 on.
    let gap = Cron::parse("0 30 2 ? 3 1#2").unwrap();
    let new_york = Zone::parse("America/New_York").unwrap();
    assert_eq!(gap.next_after(at(NOW), &new_york, DstRule::QUARTZ), None);
    assert!(gap.next_after(at(NOW), &new_york, DstRule::NATURAL).is_some());
}

#[test]
fn instants_no_calendar_reaches_are_no_trouble() {
    let cron = Cron::parse("0 0 0 * * ?").unwrap();
    for zone in ["UTC", "America/New_York", "Pacific/Apia"] {
        let zone = Zone::parse(zone).unwrap();
        for dst in [DstRule::QUARTZ, DstRule::NATURAL] {
            let first = cron.next_after(Timestamp::from_millis(i64::MIN), &zone, dst).unwrap();
            assert_eq!(cron.previous_before(first, &zone, dst), None);
            let last = cron.previous_before(Timestamp::from_millis(i64::MAX), &zone, dst).unwrap();
            assert_eq!(cron.next_after(last, &zone, dst), None);
            assert_eq!(cron.next_after(Timestamp::from_millis(i64::MAX), &zone, dst), None);
            assert_eq!(cron.previous_before(Timestamp::from_millis(i64::MIN), &zone, dst), None);
        }
    }
}

#[test]
fn random_strings_never_panic() {
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % below as u64) as usize
    };
    let likely = ["*", "?", "0", "5", "1-5", "0/5", "L", "MON", "1,2"];
    let letters = [
        "0", "1", "5", "12", "59", "2030", "*", "?", "/", "-", ",", "L", "W", "#", "MON", "fri", "JAN", "é",
        "\0", "@",
    ];
    let mut read = 0;
    for _ in 0..40_000 {
        let fields = 4 + random(4);
        let field = |random: &mut dyn FnMut(usize) -> usize| match random(3) {
            0 => (0..1 + random(4)).map(|_| letters[random(letters.len())]).collect::<String>(),
            _ => likely[random(likely.len())].to_owned(),
        };
        let expr = (0..fields).map(|_| field(&mut random)).collect::<Vec<_>>().join(" ");
        for cron in [
            Cron::parse(&expr).ok(),
            Cron::parse_lenient(&expr).ok().map(|(cron, _)| cron),
            Cron::parse_in(Dialect::Unix, &expr).ok(),
        ]
        .into_iter()
        .flatten()
        {
            read += 1;
            let next = cron.next_after(at(NOW), &Zone::utc(), DstRule::NATURAL);
            assert!(next.is_none_or(|next| next > at(NOW)), "{expr}");
        }
    }
    assert!(read > 100, "some of them are expressions: {read}");
}

fn check(expr: &str, fires: &[&str]) {
    check_from(NOW, expr, fires);
}

/// Compares the first fires, as wall-clock time in Shanghai; the default year is 2026.
fn check_from(from: &str, expr: &str, fires: &[&str]) {
    let cron = Cron::parse(expr).unwrap_or_else(|error| panic!("{expr}: {error}"));
    let zone = Zone::parse("Asia/Shanghai").unwrap();
    let count = fires.len().max(1);
    let found: Vec<String> =
        cron.iter_from(at(from), &zone, DstRule::QUARTZ).take(count).map(in_shanghai).collect();
    let fires: Vec<String> =
        fires.iter().map(|f| if f.len() == 14 { format!("2026-{f}") } else { (*f).to_owned() }).collect();
    assert_eq!(found, fires, "{expr}");
}

fn refuse(expr: &str, says: &str) {
    match Cron::parse(expr) {
        Ok(_) => panic!("`{expr}` was accepted"),
        Err(error) => assert!(error.to_string().contains(says), "`{expr}`: {error}"),
    }
}

fn at(text: &str) -> Timestamp {
    Timestamp::from_millis(text.parse::<jiff::Timestamp>().unwrap().as_millisecond())
}

fn in_shanghai(at: Timestamp) -> String {
    let at = jiff::Timestamp::from_millisecond(at.as_millis()).unwrap();
    at.in_tz("Asia/Shanghai").unwrap().strftime("%Y-%m-%d %H:%M:%S").to_string()
}
