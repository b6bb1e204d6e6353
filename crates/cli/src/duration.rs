//! Parsing and formatting of durations.

use std::time::Duration;

use anyhow::{Result, bail};

/// Parses a number and a unit: `500ms`, `3s`, `5m`, `12h`, `30d`.
pub fn parse(written: &str) -> Result<Duration> {
    let text = written.trim();
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let millis_per_unit = match unit.trim() {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => 0,
    };
    let millis = number.parse::<u64>().ok().and_then(|number| number.checked_mul(millis_per_unit));
    match millis {
        Some(millis) if millis > 0 => Ok(Duration::from_millis(millis)),
        Some(_) if millis_per_unit > 0 => bail!("`{written}` is no time at all; write more than 0"),
        _ => bail!("`{written}` is not a duration; write a number and a unit: 500ms, 3s, 5m, 12h, 30d"),
    }
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
    fn durations_are_numbers_with_a_unit() {
        let check = |written: &str, millis: Option<u64>| {
            assert_eq!(parse(written).ok(), millis.map(Duration::from_millis), "{written}");
        };
        check("500ms", Some(500));
        check(" 3s ", Some(3_000));
        check("30d", Some(2_592_000_000));
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
