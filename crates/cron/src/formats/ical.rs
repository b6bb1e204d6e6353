//! The iCalendar format (RFC 5545): whole-day events, also repeated yearly.

use std::fmt::Write as _;

use super::{ImportedDays, wrong};
use crate::day::{Day, month_length};
use crate::error::Error;
use crate::local::weekday;
use crate::time_of_day::shortened;
use crate::work_calendar::{DayEntry, WorkCalendar};

pub(super) fn parse(text: &str, today: Day) -> Result<ImportedDays, Error> {
    let events = events(text)?;
    let marks_days_off = events.iter().any(|event| event.mark() == Some(Mark::Off));
    let mut imported = ImportedDays::default();
    for event in &events {
        let is_work = match event.mark() {
            Some(mark) => mark == Mark::Work,
            None if marks_days_off => {
                imported.ignored += 1;
                continue;
            }
            None => false,
        };
        let entry = if is_work { DayEntry::work(&event.summary) } else { DayEntry::off(&event.summary) };
        let (first, length) = event.span()?;
        let firsts = match &event.repeats {
            None => vec![first],
            Some((line, rule)) => Yearly::parse(*line, rule, first)?.occurrences(first, today),
        };
        for start in firsts.into_iter().filter(|start| !event.excluded.contains(start)) {
            let mut day = start;
            for _ in 0..length {
                imported.add(Some(event.line), day, entry.clone())?;
                if event.repeats.is_none() {
                    imported.list(day);
                }
                day = day.next();
            }
        }
    }
    Ok(imported)
}

// ── Events ──────────────────────────────────────────────────────────────────────────────────────────────────────

#[derive(Default)]
struct Event {
    /// Line of its `BEGIN`.
    line: usize,
    summary: String,
    starts: Option<Day>,
    /// The day after its last one.
    ends: Option<Day>,
    /// Length in days, instead of an end.
    duration: Option<i64>,
    category: Option<Mark>,
    is_cancelled: bool,
    repeats: Option<(usize, String)>,
    excluded: Vec<Day>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Work,
    Off,
}

impl Event {
    /// The kind of day that the event is marked with.
    fn mark(&self) -> Option<Mark> {
        // 调休 is said of both; 班 decides.
        let by_summary = || match (self.summary.contains('班'), self.summary.contains('休')) {
            (true, _) => Some(Mark::Work),
            (false, true) => Some(Mark::Off),
            (false, false) => None,
        };
        self.category.or_else(by_summary)
    }

    /// First day and number of days.
    fn span(&self) -> Result<(Day, i64), Error> {
        let wrong = |problem: &str| wrong(Some(self.line), problem);
        let first = self
            .starts
            .ok_or_else(|| wrong("the event has no DTSTART; write `DTSTART;VALUE=DATE:20261001`"))?;
        let length = match (self.ends, self.duration) {
            (Some(ends), _) => ends.epoch_day() - first.epoch_day(),
            (None, Some(days)) => days,
            (None, None) => 1,
        };
        match length {
            1..=EVENT_MAX => Ok((first, length)),
            // Some programs write the first day as the end of an event of one day.
            0 => Ok((first, 1)),
            i64::MIN..0 => Err(wrong("the event ends before it begins; DTEND is the day after the last one")),
            _ => Err(wrong("the event is longer than 366 days")),
        }
    }
}

/// Maximum days of an event.
const EVENT_MAX: i64 = 366;

/// Reads the events, without cancelled ones.
fn events(text: &str) -> Result<Vec<Event>, Error> {
    let mut events: Vec<Event> = Vec::new();
    let mut open: Option<Event> = None;
    // Depth of components within an event, such as alarms.
    let mut inner = 0_usize;
    let mut is_calendar = false;
    for (line, content) in unfolded(text) {
        let Some((name, value)) = property(&content) else { continue };
        let name = name.split(';').next().unwrap_or_default().trim().to_ascii_uppercase();
        match (name.as_str(), open.as_mut()) {
            ("BEGIN", None) if value.eq_ignore_ascii_case("VEVENT") => {
                if events.len() == EVENTS_MAX {
                    return Err(wrong(Some(line), format!("the file has more than {EVENTS_MAX} events")));
                }
                open = Some(Event { line, ..Event::default() });
            }
            ("BEGIN", None) => is_calendar |= value.eq_ignore_ascii_case("VCALENDAR"),
            ("BEGIN", Some(_)) => inner += 1,
            ("END", Some(_)) if inner > 0 => inner -= 1,
            ("END", Some(_)) if value.eq_ignore_ascii_case("VEVENT") => {
                events.extend(open.take().filter(|event| !event.is_cancelled));
            }
            (name, Some(event)) if inner == 0 => event.read(line, name, value)?,
            _ => {}
        }
    }
    if let Some(event) = open {
        return Err(wrong(Some(event.line), "the event has no END:VEVENT; the file is incomplete"));
    }
    if !is_calendar {
        return Err(wrong(None, "the file has no BEGIN:VCALENDAR; it is not an iCal file"));
    }
    Ok(events)
}

/// A file of 20 000 days has at most so many.
const EVENTS_MAX: usize = 50_000;

impl Event {
    fn read(&mut self, line: usize, name: &str, value: &str) -> Result<(), Error> {
        match name {
            "SUMMARY" => self.summary = unescaped(value),
            "DTSTART" => self.starts = Some(day(line, value)?),
            "DTEND" => self.ends = Some(day(line, value)?),
            "DURATION" => self.duration = Some(days(line, value)?),
            "STATUS" => self.is_cancelled = value.eq_ignore_ascii_case("CANCELLED"),
            "RRULE" => self.repeats = Some((line, value.to_ascii_uppercase())),
            "EXDATE" => {
                for value in value.split(',') {
                    if self.excluded.len() == EXCLUDED_MAX {
                        return Err(wrong(
                            Some(line),
                            format!("the event has more than {EXCLUDED_MAX} EXDATEs"),
                        ));
                    }
                    self.excluded.push(day(line, value)?);
                }
            }
            "RDATE" | "RECURRENCE-ID" => {
                return Err(wrong(
                    Some(line),
                    format!("{name} is not supported; write one event for each day"),
                ));
            }
            "CATEGORIES" => {
                for word in value.split(',') {
                    match word.trim().to_ascii_uppercase().as_str() {
                        "WORK" => self.category = Some(Mark::Work),
                        "OFF" | "HOLIDAY" => self.category = self.category.or(Some(Mark::Off)),
                        _ => {}
                    }
                }
            }
            "X-APPLE-SPECIAL-DAY" => match value.to_ascii_uppercase().as_str() {
                "ALTERNATE-WORKDAY" => self.category = Some(Mark::Work),
                "WORK-HOLIDAY" => self.category = self.category.or(Some(Mark::Off)),
                _ => {}
            },
            _ => {}
        }
        Ok(())
    }
}

/// An event of one year needs no more.
const EXCLUDED_MAX: usize = 1_000;

/// Logical lines: a line that begins with a blank continues the one before. Each with its number from 1.
fn unfolded(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    for (number, line) in (1..).zip(text.split('\n')) {
        let line = line.strip_suffix('\r').unwrap_or(line);
        match (line.strip_prefix([' ', '\t']), lines.last_mut()) {
            (Some(rest), Some((_, last))) => last.push_str(rest),
            _ => lines.push((number, line.to_owned())),
        }
    }
    lines
}

/// Name with parameters, and value. A colon within quotes belongs to a parameter.
fn property(line: &str) -> Option<(&str, &str)> {
    let mut is_quoted = false;
    let colon = line.find(|c| {
        is_quoted ^= c == '"';
        c == ':' && !is_quoted
    })?;
    Some((&line[..colon], line[colon + 1..].trim()))
}

/// A date `20261001`; a time is accepted only at midnight.
fn day(line: usize, value: &str) -> Result<Day, Error> {
    let value = value.trim();
    let invalid = || {
        let value = shortened(value);
        wrong(Some(line), format!("`{value}` is not a date; write for example `DTSTART;VALUE=DATE:20261001`"))
    };
    let (date, time) = value.split_once('T').unwrap_or((value, "000000"));
    if date.len() != 8 || !date.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(invalid());
    }
    // In UTC, midnight is another day in most zones.
    if time != "000000" {
        let value = shortened(value);
        let problem = format!(
            "`{value}` is not a whole day; write the date alone, for example `DTSTART;VALUE=DATE:20261001`"
        );
        return Err(wrong(Some(line), problem));
    }
    let number = |text: &str| text.parse::<u16>().map_err(|_| invalid());
    let (year, month, day) = (number(&date[..4])?, number(&date[4..6])?, number(&date[6..])?);
    // Four and two digits fit.
    Day::new(year as i16, month as u8, day as u8).map_err(|_| invalid())
}

/// Whole days of `P1D` or `P2W`.
fn days(line: usize, value: &str) -> Result<i64, Error> {
    let text = value.trim().to_ascii_uppercase();
    let count = |suffix: char| {
        let digits = text.strip_prefix('P')?.strip_suffix(suffix)?;
        digits.parse::<u16>().ok().filter(|_| digits.len() <= 3).map(i64::from)
    };
    count('D').or_else(|| count('W').map(|weeks| weeks * 7)).ok_or_else(|| {
        wrong(Some(line), format!("`{}` is not a number of days; write for example `P3D`", shortened(value)))
    })
}

fn unescaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    let mut letters = value.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some('n' | 'N') | None => text.push(' '),
                Some(other) => text.push(other),
            },
            other => text.push(other),
        }
    }
    text
}

// ── Repetition ──────────────────────────────────────────────────────────────────────────────────────────────────

/// `FREQ=YEARLY` with its limits, on a fixed day or on the nth weekday of a month.
struct Yearly {
    interval: i64,
    count: Option<i64>,
    until: Option<Day>,
    month: u8,
    on: InMonth,
}

enum InMonth {
    Day(u8),
    /// Weekday from Monday, and its number from 1, or from -1 for the last.
    Nth(u32, i64),
}

impl Yearly {
    fn parse(line: usize, rule: &str, first: Day) -> Result<Yearly, Error> {
        let unsupported = |part: &str| {
            let part = shortened(part);
            wrong(
                Some(line),
                format!("RRULE with `{part}` is not supported; write for example `FREQ=YEARLY;COUNT=5`"),
            )
        };
        let mut yearly = Yearly {
            interval: 1,
            count: None,
            until: None,
            month: first.month(),
            on: InMonth::Day(first.day()),
        };
        let mut is_yearly = false;
        for part in rule.split(';').filter(|part| !part.trim().is_empty()) {
            let (name, value) = part.trim().split_once('=').ok_or_else(|| unsupported(part))?;
            let number = |max: i64| match value.parse::<i64>() {
                Ok(number) if (1..=max).contains(&number) => Ok(number),
                _ => Err(unsupported(part)),
            };
            match name {
                "FREQ" if value == "YEARLY" => is_yearly = true,
                "INTERVAL" => yearly.interval = number(1_000)?,
                "COUNT" => yearly.count = Some(number(i64::from(u32::MAX))?),
                "UNTIL" => {
                    // Times count as their day.
                    let date = value.split('T').next().unwrap_or_default();
                    yearly.until = Some(day(line, date)?);
                }
                "BYMONTH" => yearly.month = number(12)? as u8,
                "BYMONTHDAY" => yearly.on = InMonth::Day(number(31)? as u8),
                "BYDAY" => yearly.on = nth_weekday(value).ok_or_else(|| unsupported(part))?,
                "WKST" => {}
                _ => return Err(unsupported(part)),
            }
        }
        if is_yearly { Ok(yearly) } else { Err(unsupported(rule)) }
    }

    /// Occurrences within ten years from the current one.
    fn occurrences(&self, first: Day, today: Day) -> Vec<Day> {
        let last_year = today.year().saturating_add(EXPANDED_YEARS - 1);
        let mut counted = 0;
        let mut found = Vec::new();
        let mut year = i64::from(first.year());
        while year <= i64::from(last_year) {
            let day = self.in_year(year as i16).filter(|day| *day >= first);
            if let Some(day) = day {
                counted += 1;
                if self.count.is_some_and(|count| counted > count)
                    || self.until.is_some_and(|until| day > until)
                {
                    break;
                }
                if day.year() >= today.year() {
                    found.push(day);
                }
            }
            year += self.interval;
        }
        found
    }

    fn in_year(&self, year: i16) -> Option<Day> {
        let length = month_length(year, self.month);
        let day = match self.on {
            InMonth::Day(day) => day,
            InMonth::Nth(wanted, nth) => {
                let first = Day::new(year, self.month, 1).ok()?.epoch_day();
                let matching: Vec<i64> =
                    (0..i64::from(length)).filter(|day| weekday(first + day) == wanted).collect();
                let index = if nth > 0 { nth - 1 } else { matching.len() as i64 + nth };
                *matching.get(usize::try_from(index).ok()?)? as u8 + 1
            }
        };
        Day::new(year, self.month, day).ok()
    }
}

/// Years of a yearly event that are imported, the current one included.
const EXPANDED_YEARS: i16 = 10;

/// The weekday and number of `4TH` or `-1MO`.
fn nth_weekday(value: &str) -> Option<InMonth> {
    let (nth, name) = value.is_ascii().then(|| value.split_at(value.len().saturating_sub(2)))?;
    let weekday = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"].iter().position(|known| *known == name)?;
    let nth: i64 = nth.parse().ok()?;
    ((-5..=5).contains(&nth) && nth != 0).then_some(InMonth::Nth(weekday as u32, nth))
}

// ── Printing ────────────────────────────────────────────────────────────────────────────────────────────────────

/// One event for each run of days with the same kind and name.
pub(super) fn print(calendar: &WorkCalendar) -> String {
    let mut text = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//Tickwright//Work calendar//EN\r\n".to_owned();
    let mut entries = calendar.entries().peekable();
    while let Some((first, entry)) = entries.next() {
        let mut last = first;
        while let Some((day, _)) = entries
            .next_if(|(day, next)| *day == last.next() && *next == entry && length(first, *day) <= EVENT_MAX)
        {
            last = day;
        }
        let date = |day: Day| format!("{:04}{:02}{:02}", day.year(), day.month(), day.day());
        let (from, to) = (date(first), date(last.next()));
        let (kind, category) = if entry.is_work { ("work", "WORK") } else { ("off", "HOLIDAY") };
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "BEGIN:VEVENT\r\nUID:{from}-{kind}@work-calendar\r\nDTSTAMP:{from}T000000Z\r\n\
             DTSTART;VALUE=DATE:{from}\r\nDTEND;VALUE=DATE:{to}\r\nCATEGORIES:{category}\r\n\
             {}\r\nTRANSP:TRANSPARENT\r\nEND:VEVENT\r\n",
            folded(&format!("SUMMARY:{}", escaped(entry.name()))),
        );
    }
    text + "END:VCALENDAR\r\n"
}

fn length(first: Day, last: Day) -> i64 {
    last.epoch_day() - first.epoch_day() + 1
}

fn escaped(name: &str) -> String {
    name.replace('\\', "\\\\").replace(',', "\\,").replace(';', "\\;")
}

/// Lines of at most 75 bytes, as the standard asks.
fn folded(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut width = 0;
    for letter in line.chars() {
        if width + letter.len_utf8() > 74 {
            text.push_str("\r\n ");
            width = 1;
        }
        text.push(letter);
        width += letter.len_utf8();
    }
    text
}
