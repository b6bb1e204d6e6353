//! Functions of expressions for days, as texts in the form `2026-11-17`.

use jiff::civil::Date;
use jiff::{Span, ToSpan};

/// Adds days.
pub fn add_days(day: &str, days: i64) -> Result<String, String> {
    let span = Span::new().try_days(days).map_err(|error| error.to_string())?;
    Ok(parse(day)?.checked_add(span).map_err(|error| error.to_string())?.to_string())
}

/// Adds months; the last day of a month stays within the target month.
pub fn add_months(day: &str, months: i64) -> Result<String, String> {
    let span = Span::new().try_months(months).map_err(|error| error.to_string())?;
    Ok(parse(day)?.checked_add(span).map_err(|error| error.to_string())?.to_string())
}

/// Writes a day by a pattern of `yyyy`, `yy`, `MM`, `M`, `dd` and `d`.
pub fn format(day: &str, pattern: &str) -> Result<String, String> {
    let day = parse(day)?;
    let mut text = String::new();
    let mut rest = pattern;
    while let Some(first) = rest.chars().next() {
        let length: usize = rest.chars().take_while(|next| *next == first).map(char::len_utf8).sum();
        let (run, after) = rest.split_at(length);
        rest = after;
        match run {
            "yyyy" => text.push_str(&format!("{:04}", day.year())),
            "yy" => text.push_str(&format!("{:02}", day.year().rem_euclid(100))),
            "MM" => text.push_str(&format!("{:02}", day.month())),
            "M" => text.push_str(&day.month().to_string()),
            "dd" => text.push_str(&format!("{:02}", day.day())),
            "d" => text.push_str(&day.day().to_string()),
            letters if first.is_alphabetic() && first.is_ascii() => {
                return Err(format!("the pattern has `{letters}`; use yyyy, yy, MM, M, dd or d"));
            }
            other => text.push_str(other),
        }
    }
    Ok(text)
}

/// Reads a day.
pub fn parse(day: &str) -> Result<Date, String> {
    let shown: String = day.chars().take(40).collect();
    day.parse().map_err(|_| format!("`{shown}` is not a day in the form 2026-11-17"))
}

/// The day `days` after `day`; the same day at the end of the calendar.
pub fn shifted(day: Date, days: i32) -> Date {
    day.checked_add(days.days()).unwrap_or(day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_added_and_written() {
        assert_eq!(add_days("2024-02-28", 2).as_deref(), Ok("2024-03-01"));
        assert_eq!(add_months("2026-03-31", -1).as_deref(), Ok("2026-02-28"));
        assert_eq!(format("2026-03-05", "yyyy/M/d yy-MM-dd 月").as_deref(), Ok("2026/3/5 26-03-05 月"));
        assert!(format("2026-03-05", "yyyyMMddHH").is_err_and(|error| error.contains("`HH`")));
        assert!(add_days("2026-02-30", 1).is_err_and(|error| error.contains("2026-02-30")));
        assert!(add_days("2026-02-28", i64::MAX).is_err());
        assert_eq!(shifted(parse("2026-01-01").unwrap(), -1).to_string(), "2025-12-31");
    }
}
