//! Parsing and formatting of durations.

use std::time::Duration;

use anyhow::{Result, bail};

/// Parses a duration of more than zero, for example `30s` or `1h30m`.
pub fn parse(written: &str) -> Result<Duration> {
    let length = cron::parse_duration(written)?;
    if length.is_zero() {
        bail!("`{written}` is zero; it must be at least 1ms");
    }
    Ok(length)
}

/// Formats a duration for people, rounded: `250 ms`, `1.5 s`, `3 min 20 s`, `2 h 5 min`.
pub fn in_words(millis: i64) -> String {
    let seconds = millis / 1_000;
    match millis {
        ..1_000 => format!("{millis} ms"),
        1_000..60_000 => format!("{}.{} s", seconds, millis % 1_000 / 100),
        60_000..3_600_000 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_as_in_macros_but_not_zero() {
        let check = |written: &str, millis: Option<u64>| {
            assert_eq!(parse(written).ok(), millis.map(Duration::from_millis), "{written}");
        };
        check("500ms", Some(500));
        check(" 3s ", Some(3_000));
        check("30d", Some(2_592_000_000));
        check("1h30m", Some(5_400_000));
        for wrong in ["", "3", "s", "3 weeks", "-1s", "0s", "1.5s", "99999999999999999999d"] {
            check(wrong, None);
        }
    }

    #[test]
    fn people_read_the_two_largest_units() {
        let check = |millis, expected: &str| assert_eq!(in_words(millis), expected);
        check(0, "0 ms");
        check(1_549, "1.5 s");
        check(200_000, "3 min 20 s");
        check(7_512_345, "2 h 5 min");
    }
}
