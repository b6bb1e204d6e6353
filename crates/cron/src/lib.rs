//! When does it fire next? Quartz and Unix cron, time zones, fixed rates: the next instant, and nothing else.
//!
//! Pure: no clock is read and nothing is written. Instants are [`Timestamp`]s, whole milliseconds since the
//! epoch; fires of cron fall on whole seconds.
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
//! // What cannot be right is refused, with the place and a way to write it.
//! let error = Cron::parse("0 30 2 32 * ?").unwrap_err();
//! assert!(error.to_string().starts_with("day-of-month field, character 8: `32` is out of range; write 1-31"));
//! # Ok::<(), tickwright_cron::Error>(())
//! ```
//!
//! # Where we differ
//!
//! The Quartz dialect follows Quartz's documentation. Its classes, and XXL-JOB's copies of them, do not always:
//!
//! * `L`, `L-n` and `LW` work in every month, not only in those of 31 days (XXL-JOB 3.1.0 to 3.3.2).
//! * `1W` on a Saturday is Monday the 3rd; the month is not skipped. A day moved by `W` has all its hours: it
//!   keeps 18:00 of `9,18`, and Monday the 16th for the 15th on a Sunday is found from that Sunday too.
//! * `L` and `W` may stand in a list of days: `1,L`, `1,15W`.
//! * What Quartz reads past is refused: `10X`, `MON-FRI/2`, `5-10W`, `MON#1,FRI`, `MONDAY-FRIDAY` (which it takes
//!   for Monday alone). [`Cron::parse_lenient`] takes them as Quartz does, with a warning for each.
//! * What can never fire (`0 0 0 30 2 ?`) is refused. What cannot fire any more (`0 0 0 1 1 ? 2020`) is not.
//! * Years go from 1970 to 2199, whatever the year is now; Quartz looks a hundred years ahead.
//! * What clocks do at night is a choice, [`DstRule`]; [`DstRule::QUARTZ`] does as Quartz does.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod calendar;
mod cron;
mod day;
mod days;
mod describe;
mod dst;
mod error;
mod field;
mod pattern;
mod quartz;
mod scan;
mod schedule;
mod timestamp;
mod unix;
mod zone;

pub use calendar::{Calendar, Holidays};
pub use cron::Cron;
pub use day::Day;
pub use describe::Language;
pub use dst::{DstRule, Fold, Gap};
pub use error::Error;
pub use field::{Dialect, Field};
pub use schedule::Schedule;
pub use timestamp::Timestamp;
pub use zone::Zone;
