//! Lines of `date,work|off,name`.

use std::fmt::Write as _;

use super::{ImportedDays, date, wrong};
use crate::error::Error;
use crate::time_of_day::shortened;
use crate::work_calendar::{DayEntry, WorkCalendar};

pub(super) fn parse(text: &str) -> Result<ImportedDays, Error> {
    let mut imported = ImportedDays::default();
    let mut is_first = true;
    for (number, row) in (1..).zip(text.lines()) {
        let row = row.trim();
        if row.is_empty() || row.starts_with('#') {
            continue;
        }
        let line = Some(number);
        let mut fields = row.splitn(3, ',').map(str::trim);
        let (day, kind) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
        if std::mem::take(&mut is_first) && day.eq_ignore_ascii_case("date") {
            continue;
        }
        let name = unquoted(line, fields.next().unwrap_or_default())?;
        let day = date(line, day)?;
        let entry = match kind {
            "work" => DayEntry::work(&name),
            "off" => DayEntry::off(&name),
            _ => {
                let kind = shortened(kind);
                let problem =
                    format!("`{kind}` is not a kind of day; write `{day},off,Name` or `{day},work,Name`");
                return Err(wrong(line, problem));
            }
        };
        imported.add(line, day, entry)?;
        imported.list(day);
    }
    Ok(imported)
}

/// A name without its quotes, if it has any.
fn unquoted(line: Option<usize>, name: &str) -> Result<String, Error> {
    let Some(rest) = name.strip_prefix('"') else { return Ok(name.to_owned()) };
    match rest.strip_suffix('"') {
        Some(inner) if !inner.replace("\"\"", "").contains('"') => Ok(inner.replace("\"\"", "\"")),
        _ => Err(wrong(
            line,
            format!("`{}` has an open quote; write `\"a \"\"quoted\"\" name\"`", shortened(name)),
        )),
    }
}

pub(super) fn print(calendar: &WorkCalendar) -> String {
    let mut text = "date,kind,name\n".to_owned();
    for (day, entry) in calendar.entries() {
        let kind = if entry.is_work { "work" } else { "off" };
        let name = match entry.name().contains([',', '"']) {
            true => format!("\"{}\"", entry.name().replace('"', "\"\"")),
            false => entry.name().to_owned(),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{day},{kind},{name}");
    }
    text
}
