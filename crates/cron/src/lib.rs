//! Computes when a schedule fires next: Quartz and Unix cron, time zones, fixed rates.
//!
//! Pure: it reads no clock and writes nothing. Times are [`Timestamp`]s, whole milliseconds since the epoch; cron
//! fires fall on whole seconds.
//!
//! ```
//! use tickwright_cron::{Cron, DstRule, Language, Schedule, Timestamp, Zone};
//!
//! let cron = Cron::parse("0 30 2 LW * ?")?;
//! assert_eq!(cron.describe(Language::English), "At 02:30, on the last workday of the month");
//!
//! let schedule = Schedule::cron(cron, Zone::parse("Europe/London")?, DstRule::NATURAL);
//! let now = Timestamp::from_millis(1_782_000_000_000);
//! assert_eq!(schedule.next_after(now).unwrap().to_string(), "2026-06-30T01:30:00Z");
//!
//! // Invalid expressions are rejected, with the position and a correct form.
//! let error = Cron::parse("0 30 2 32 * ?").unwrap_err();
//! assert!(error.to_string().starts_with("day-of-month field, character 8: `32` is out of range; write 1-31"));
//! # Ok::<(), tickwright_cron::Error>(())
//! ```
//!
//! # Differences from Quartz
//!
//! The Quartz dialect follows Quartz's documentation. Its classes, and XXL-JOB's copies of them, do not always:
//!
//! * `L`, `L-n` and `LW` work in every month, not only in those of 31 days (XXL-JOB 3.1.0 to 3.3.2).
//! * `1W` on a Saturday is Monday the 3rd; the month is not skipped. A day moved by `W` has all its hours: it keeps
//!   18:00 of `9,18`, and Monday the 16th for the 15th on a Sunday is found from that Sunday too.
//! * `L` and `W` may be in a list of days: `1,L`, `1,15W`.
//! * Text that Quartz silently ignores is rejected: `10X`, `MON-FRI/2`, `5-10W`, `MON#1,FRI`, `MONDAY-FRIDAY` (which
//!   Quartz reads as Monday only). [`Cron::parse_lenient`] accepts them as Quartz does, with a warning for each.
//! * An expression that can never fire (`0 0 0 30 2 ?`) is rejected. One that cannot fire any more
//!   (`0 0 0 1 1 ? 2020`) is not.
//! * Years go from 1970 to 2199, independent of the current year; Quartz looks a hundred years ahead.
//! * Daylight saving behaviour is an option, [`DstRule`]; [`DstRule::QUARTZ`] behaves like Quartz.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod calendar;
mod cron;
mod day;
mod days;
mod describe;
mod dst;
mod duration;
mod error;
mod field;
mod formats;
mod local;
mod pattern;
mod quartz;
mod rule_text;
mod scan;
mod schedule;
mod time_of_day;
mod timestamp;
mod timetable;
mod unix;
mod work_calendar;
mod workdays;
mod zone;

pub use calendar::{Calendar, Holidays};
pub use cron::Cron;
pub use day::Day;
pub use describe::Language;
pub use dst::{DstRule, Fold, Gap};
pub use duration::parse_duration;
pub use error::Error;
pub use field::{Dialect, Field};
pub use formats::{CalendarFormat, ImportedDays};
pub use schedule::Schedule;
pub use time_of_day::{TimeOfDay, Weekdays};
pub use timestamp::Timestamp;
pub use timetable::{
    CalendarInterval, DailyWindow, IntervalUnit, NthWorkday, PreviewedTime, Rule, Span, Timetable,
};
pub use work_calendar::{Beyond, DayEntry, WorkCalendar};
pub use workdays::{OnDays, Shift, Verdict, Workdays};
pub use zone::Zone;
