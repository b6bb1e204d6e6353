//! Parses durations such as `5s`.

use std::time::Duration;

/// Parses `500ms`, `5s`, `2m`, `1h`, `1d` or several of these together, such as `1h30m`.
pub fn parse(text: &str) -> Result<Duration, String> {
    let mut rest = text;
    let mut millis = 0u64;
    while !rest.is_empty() {
        let (count, after) = split(rest, |c| c.is_ascii_digit());
        let (unit, after) = split(after, |c| !c.is_ascii_digit());
        let count: u64 = count.parse().map_err(|_| explain(text))?;
        let scale = scale(unit).ok_or_else(|| explain(text))?;
        let part = count.checked_mul(scale).ok_or_else(|| explain(text))?;
        millis = millis.checked_add(part).ok_or_else(|| explain(text))?;
        rest = after;
    }
    if text.is_empty() { Err(explain(text)) } else { Ok(Duration::from_millis(millis)) }
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

fn explain(text: &str) -> String {
    format!("`{text}` is not a duration; write for example `500ms`, `5s`, `2m`, `1h`, `1d` or `1h30m`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_units() {
        check("500ms", Some(500));
        check("5s", Some(5_000));
        check("2m", Some(120_000));
        check("1h30m", Some(5_400_000));
        check("1d", Some(86_400_000));
        check("0s", Some(0));
        for wrong in
            ["", "5", "s", "5 s", "1.5s", "-1s", "5sec", "1h30", "99999999999999999999s", "300000000000000d"]
        {
            check(wrong, None);
        }
    }

    fn check(text: &str, millis: Option<u64>) {
        assert_eq!(parse(text).ok(), millis.map(Duration::from_millis), "{text}");
    }
}
