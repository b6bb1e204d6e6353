//! Files with the days of a work calendar: iCal, CSV, and the JSON form of Chinese holiday feeds.

mod csv;
mod ical;
mod json;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::day::Day;
use crate::error::Error;
use crate::local::LAST_DAY;
use crate::time_of_day::shortened;
use crate::work_calendar::{DayEntry, WorkCalendar};

/// Format of a file with the days of a work calendar.
///
/// ```
/// use tickwright_cron::{CalendarFormat, WorkCalendar};
///
/// let text = "date,kind,name\n2026-10-01,off,国庆节\n2026-10-10,work,国庆节\n";
/// let imported = CalendarFormat::Csv.parse(text, "2026-01-01".parse()?)?;
/// let mut calendar = WorkCalendar::default();
/// calendar.extend(&imported);
/// assert_eq!(CalendarFormat::Csv.print(&calendar), text);
///
/// let error = CalendarFormat::Csv.parse("2026-10-01,holiday", "2026-01-01".parse()?).unwrap_err();
/// assert_eq!(error.to_string(), "line 1: `holiday` is not a kind of day; write `2026-10-01,off,Name` or `2026-10-01,work,Name`");
/// # Ok::<(), tickwright_cron::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CalendarFormat {
    /// The iCalendar format (RFC 5545): whole-day events.
    ///
    /// An event is a workday if its categories contain `WORK` or its summary contains 班, else a day off. If some
    /// summaries are marked with 休, the feed marks its days off: events without a mark, such as festivals without a
    /// day off, are then ignored and counted in [`ImportedDays::ignored`].
    ///
    /// Events that repeat yearly are expanded for ten years from the current one. Other repetitions are rejected.
    ICal,
    /// Lines of `date,work|off,name`; the first line may be a header.
    Csv,
    /// `{"days": [{"name": "国庆节", "date": "2026-10-01", "isOffDay": true}]}`; other fields are ignored.
    Json,
}

/// The days of an imported file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportedDays {
    /// Entries by day. Entries of one day have the same kind; their names are joined.
    pub days: BTreeMap<Day, DayEntry>,
    /// The last day that the file lists itself, not by a repetition. The year of it is usually the last known one.
    pub last_listed: Option<Day>,
    /// Number of events that are neither workdays nor days off.
    pub ignored: usize,
}

impl CalendarFormat {
    /// Parses a file of at most 10 MB and 20 000 days. `today` decides which years of a yearly event are included.
    pub fn parse(self, text: &str, today: Day) -> Result<ImportedDays, Error> {
        if text.len() > BYTES_MAX {
            let problem = format!("the file has {} bytes; at most {BYTES_MAX} are allowed", text.len());
            return Err(Error::Import { line: None, problem });
        }
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        match self {
            CalendarFormat::ICal => ical::parse(text, today),
            CalendarFormat::Csv => csv::parse(text),
            CalendarFormat::Json => json::parse(text),
        }
    }

    /// Prints the entries of a calendar so that [`CalendarFormat::parse`] returns the same ones.
    pub fn print(self, calendar: &WorkCalendar) -> String {
        match self {
            CalendarFormat::ICal => ical::print(calendar),
            CalendarFormat::Csv => csv::print(calendar),
            CalendarFormat::Json => json::print(calendar),
        }
    }

    /// Detects the format from the first characters of a file.
    pub fn detect(text: &str) -> CalendarFormat {
        let text = text.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
        if text.starts_with(['{', '[']) {
            CalendarFormat::Json
        } else if text.get(..15).is_some_and(|begin| begin.eq_ignore_ascii_case("BEGIN:VCALENDAR")) {
            CalendarFormat::ICal
        } else {
            CalendarFormat::Csv
        }
    }
}

impl WorkCalendar {
    /// Adds imported entries; they replace those of the same days.
    pub fn extend(&mut self, imported: &ImportedDays) {
        for (day, entry) in &imported.days {
            self.set(*day, entry.clone());
        }
    }
}

/// A feed of one country has some 30 kB.
const BYTES_MAX: usize = 10 * 1_024 * 1_024;

/// More than fifty years in which every day has an entry.
const DAYS_MAX: usize = 20_000;

impl ImportedDays {
    /// Adds an entry found on a line; an error if it contradicts another or is out of range.
    fn add(&mut self, line: Option<usize>, day: Day, entry: DayEntry) -> Result<(), Error> {
        if !(0..=LAST_DAY).contains(&day.epoch_day()) {
            return Err(wrong(
                line,
                format!("{day} is out of range; days are from 1970-01-01 to 2199-12-31"),
            ));
        }
        let count = self.days.len();
        match self.days.get_mut(&day) {
            Some(known) if known.is_work != entry.is_work => {
                let problem = format!("{day} is both a workday and a day off; remove one of the two entries");
                return Err(wrong(line, problem));
            }
            Some(known) => known.join(&entry),
            None if count == DAYS_MAX => {
                return Err(wrong(
                    line,
                    format!("the file has more than {DAYS_MAX} days; import fewer years"),
                ));
            }
            None => drop(self.days.insert(day, entry)),
        }
        Ok(())
    }

    /// Notes that the file itself lists the day.
    fn list(&mut self, day: Day) {
        self.last_listed = self.last_listed.max(Some(day));
    }
}

fn wrong(line: Option<usize>, problem: impl Into<String>) -> Error {
    Error::Import { line, problem: problem.into() }
}

/// Parses a date, with the line in the error.
fn date(line: Option<usize>, text: &str) -> Result<Day, Error> {
    let shape = text.len() == 10
        && text.bytes().enumerate().all(|(i, byte)| match i {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    let day = if shape { text.parse().ok() } else { None };
    day.ok_or_else(|| {
        wrong(line, format!("`{}` is not a date; write for example `2026-10-01`", shortened(text)))
    })
}

impl fmt::Display for CalendarFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CalendarFormat::ICal => "ical",
            CalendarFormat::Csv => "csv",
            CalendarFormat::Json => "json",
        })
    }
}

impl FromStr for CalendarFormat {
    type Err = Error;

    fn from_str(text: &str) -> Result<CalendarFormat, Error> {
        match text {
            "ical" => Ok(CalendarFormat::ICal),
            "csv" => Ok(CalendarFormat::Csv),
            "json" => Ok(CalendarFormat::Json),
            _ => Err(Error::Word { text: shortened(text), words: "ical, csv, json" }),
        }
    }
}
