//! The syntax of durations in options, commands and macros: numbers with units, for example `1h30m`.

use std::time::Duration;

use crate::error::Error;

/// Parses a duration: a number with a unit (`ms`, `s`, `m`, `h`, `d`), or several of these in a row. Spaces between
/// them are ignored. Zero is a duration.
///
/// ```
/// use std::time::Duration;
/// use tickwright_cron::parse_duration;
///
/// assert_eq!(parse_duration("500ms")?, Duration::from_millis(500));
/// assert_eq!(parse_duration("1h30m")?, Duration::from_secs(5_400));
/// assert!(parse_duration("90").is_err(), "the unit is missing");
/// # Ok::<(), tickwright_cron::Error>(())
/// ```
pub fn parse_duration(text: &str) -> Result<Duration, Error> {
    let invalid = || Error::Duration { text: text.to_owned() };
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut millis = 0u64;
    while !rest.is_empty() {
        let (count, after) = split(rest, |c| c.is_ascii_digit());
        let (unit, after) = split(after.trim_start(), |c| c.is_ascii_alphabetic());
        let part =
            count.parse::<u64>().ok().zip(scale(unit)).and_then(|(count, scale)| count.checked_mul(scale));
        millis = part.and_then(|part| millis.checked_add(part)).ok_or_else(invalid)?;
        rest = after.trim_start();
    }
    Ok(Duration::from_millis(millis))
}

fn split(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !belongs(c)).unwrap_or(text.len()))
}

/// Returns the number of milliseconds in a unit.
fn scale(unit: &str) -> Option<u64> {
    Some(match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_one_or_more_numbers_with_units() {
        let check = |text: &str, millis: Option<u64>| {
            assert_eq!(parse_duration(text).ok(), millis.map(Duration::from_millis), "{text}");
        };
        check("500ms", Some(500));
        check("5s", Some(5_000));
        check(" 2m ", Some(120_000));
        check("1h30m", Some(5_400_000));
        check("1h 30m", Some(5_400_000));
        check("3 s", Some(3_000));
        check("1d", Some(86_400_000));
        check("30d", Some(2_592_000_000));
        check("0s", Some(0));
        for wrong in ["", " ", "5", "s", "1.5s", "-1s", "5sec", "5 weeks", "1h30", "1h,30m", "5ｓ"] {
            check(wrong, None);
        }
        for too_long in ["99999999999999999999s", "300000000000000d", "213503982334d 24h"] {
            check(too_long, None);
        }
    }
}
