//! Errors in schedules written by users, each with a correction.

use std::time::Duration;

use crate::field::{Dialect, Field};
use crate::scan::LENGTH_MAX;

/// Why a schedule was rejected. Every message names the position, the wrong text and a correct form.
///
/// ```
/// use tickwright_cron::Cron;
///
/// let error = Cron::parse("0 60 * * * ?").unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "minute field, character 3: `60` is out of range; \
///      write 0-59 with `* , - /`, for example `0/15`"
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The expression is empty.
    #[error("the expression is empty; to fire every 5 minutes write `{}`", dialect.example())]
    Empty {
        /// The requested dialect.
        dialect: Dialect,
    },

    /// Longer than any sensible expression; it is not parsed.
    #[error(
        "the expression has {length} bytes, more than the {LENGTH_MAX} allowed; shorten its lists to ranges \
         and steps, for example `0-59/2`"
    )]
    TooLong {
        /// Length in bytes.
        length: usize,
    },

    /// Too few or too many fields for the dialect.
    #[error("expected {}, found {found} in `{expr}`; to fire every 5 minutes write `{}`",
            dialect.fields_in_words(), dialect.example())]
    FieldCount {
        /// The requested dialect.
        dialect: Dialect,
        /// The whole expression.
        expr: String,
        /// Number of fields found.
        found: usize,
    },

    /// A field cannot be parsed. [`Cron::parse_lenient`](crate::Cron::parse_lenient) also returns it as a warning,
    /// for text that Quartz would ignore.
    #[error("{field} field, character {position}: `{text}` {problem}; write {}", field.help(*dialect))]
    Field {
        /// The requested dialect.
        dialect: Dialect,
        /// The wrong field.
        field: Field,
        /// The wrong part.
        text: String,
        /// Position of that part in the expression; the first character is 1.
        position: usize,
        /// Description of the problem.
        problem: String,
    },

    /// Quartz requires `?` in exactly one of the two day fields.
    #[error(
        "exactly one of day-of-month and day-of-week must be `?` (no specific value) in `{expr}`; write for \
         example `{suggestion}`"
    )]
    DayFields {
        /// The whole expression.
        expr: String,
        /// The same expression with one `?`.
        suggestion: String,
    },

    /// Well-formed, but no such day exists.
    #[error(
        "`{expr}` can never fire: no day from 1970 to 2199 fits its day, month and year fields; for the end \
         of a month write `L` in day-of-month, for example `0 0 0 L 2 ?`"
    )]
    Impossible {
        /// The whole expression.
        expr: String,
    },

    /// An unknown nickname such as `@something`.
    #[error(
        "unknown nickname `{name}`; write one of @yearly @annually @monthly @weekly @daily @midnight \
         @hourly, or five fields such as `*/5 * * * *`"
    )]
    Nickname {
        /// The nickname as written.
        name: String,
    },

    /// No such time zone.
    #[error("unknown time zone `{name}`; {}write an IANA name such as `Asia/Shanghai`, `Europe/London` or `UTC`",
            suggestion.as_ref().map(|name| format!("did you mean `{name}`? ")).unwrap_or_default())]
    Zone {
        /// The name as written.
        name: String,
        /// A similar name that exists.
        suggestion: Option<String>,
    },

    /// No such daylight saving rule.
    #[error(
        "unknown daylight-saving rule `{text}`; write `quartz`, `natural`, or a gap and a fold word such as \
         `skip-first` (gap: skip, next; fold: first, second, both)"
    )]
    DstRule {
        /// The rule as written.
        text: String,
    },

    /// A fixed rate or delay that is zero, too long or not in whole milliseconds.
    #[error("invalid period {period:?}; use whole milliseconds, at least 1 and at most 100 years")]
    Period {
        /// The requested period.
        period: Duration,
    },

    /// A text that is not a duration.
    #[error("`{text}` is not a duration; write for example `500ms`, `5s`, `2m`, `1h`, `1d` or `1h30m`")]
    Duration {
        /// The duration as written.
        text: String,
    },

    /// A date that does not exist.
    #[error("`{text}` is not a date; use year-month-day, for example `2026-10-01`")]
    Day {
        /// The date as written.
        text: String,
    },

    /// A time that no clock shows.
    #[error("`{text}` is not a time of day; write for example `09:00` or `17:30:05`")]
    TimeOfDay {
        /// The time as written.
        text: String,
    },

    /// A text that is not a set of weekdays.
    #[error("`{text}` is not a set of weekdays; write for example `Mon-Fri` or `Mon,Wed,Sat-Sun`")]
    Weekdays {
        /// The set as written.
        text: String,
    },

    /// A word that is not one of the known ones.
    #[error("unknown word `{text}`; write one of: {words}")]
    Word {
        /// The word as written.
        text: String,
        /// The known words, separated by commas.
        words: &'static str,
    },

    /// A number of a schedule that is out of its range.
    #[error("{name} is {value}; write {allowed}")]
    Number {
        /// Name of the number.
        name: &'static str,
        /// The number as given.
        value: i64,
        /// The numbers that are allowed.
        allowed: &'static str,
    },

    /// A daily window that ends before it begins.
    #[error(
        "the window ends at {until}, before it begins at {from}; for a window across midnight use two schedules"
    )]
    Window {
        /// Begin of the window.
        from: crate::TimeOfDay,
        /// End of the window.
        until: crate::TimeOfDay,
    },

    /// A text that is not a rule of a timetable.
    #[error(
        "`{text}` is not a rule; write for example `daily 09:00-17:30 every 30m on Mon-Fri`, \
         `every 2 weeks at 09:00 from 2026-08-31`, `workday -1 of month at 18:00` or `cron 0 0 12 ? * SAT`"
    )]
    Rule {
        /// The rule as written.
        text: String,
    },

    /// An error in one of the rules of a timetable.
    #[error("rule {number}: {error}")]
    InRule {
        /// Number of the rule, from 1.
        number: usize,
        /// The error.
        error: Box<Error>,
    },

    /// A schedule without rules, or with too many.
    #[error("the schedule has {count} rules; write 1 to 32")]
    Rules {
        /// Number of rules.
        count: usize,
    },

    /// A file of calendar days that cannot be imported.
    #[error("{}{problem}", line.map(|line| format!("line {line}: ")).unwrap_or_default())]
    Import {
        /// Line of the file, from 1; `None` if the problem has no single line.
        line: Option<usize>,
        /// Description of the problem, with a correct form.
        problem: String,
    },
}
