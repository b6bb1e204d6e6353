//! What can be wrong with what a person wrote, and how to write it instead.

use std::time::Duration;

use crate::field::{Dialect, Field};
use crate::scan::LENGTH_MAX;

/// Why a schedule was refused. Every message names the place, the offending text and a way to write it.
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
    /// Nothing was written.
    #[error("the expression is empty; to fire every 5 minutes write `{}`", dialect.example())]
    Empty {
        /// The dialect that was asked for.
        dialect: Dialect,
    },

    /// Longer than any sensible expression, so it is not even looked at.
    #[error(
        "the expression has {length} bytes, more than the {LENGTH_MAX} allowed; \
         shorten its lists to ranges and steps, for example `0-59/2`"
    )]
    TooLong {
        /// How long it is, in bytes.
        length: usize,
    },

    /// Too few or too many fields for the dialect.
    #[error("expected {}, found {found} in `{expr}`; to fire every 5 minutes write `{}`",
            dialect.fields_in_words(), dialect.example())]
    FieldCount {
        /// The dialect that was asked for.
        dialect: Dialect,
        /// The whole expression.
        expr: String,
        /// How many fields it has.
        found: usize,
    },

    /// One field cannot be read. From [`Cron::parse_lenient`](crate::Cron::parse_lenient) also a warning:
    /// what Quartz would have read past.
    #[error("{field} field, character {position}: `{text}` {problem}; write {}", field.help(*dialect))]
    Field {
        /// The dialect that was asked for.
        dialect: Dialect,
        /// Which field.
        field: Field,
        /// The part that is wrong.
        text: String,
        /// Where that part begins in the expression; the first character is 1.
        position: usize,
        /// What is wrong with it.
        problem: String,
    },

    /// Quartz wants `?` in exactly one of the two day fields.
    #[error(
        "exactly one of day-of-month and day-of-week must be `?` (\"whatever the other says\") in `{expr}`; \
         write for example `{suggestion}`"
    )]
    DayFields {
        /// The whole expression.
        expr: String,
        /// The same with one `?`.
        suggestion: String,
    },

    /// Well-formed, but no such day exists.
    #[error(
        "`{expr}` can never fire: no day from 1970 to 2199 fits its day, month and year fields; \
         for the end of a month write `L` in day-of-month, for example `0 0 0 L 2 ?`"
    )]
    Impossible {
        /// The whole expression.
        expr: String,
    },

    /// `@something` that no cron knows.
    #[error(
        "unknown nickname `{name}`; write one of @yearly @annually @monthly @weekly @daily @midnight @hourly, \
         or five fields such as `*/5 * * * *`"
    )]
    Nickname {
        /// What was written.
        name: String,
    },

    /// No such time zone.
    #[error("unknown time zone `{name}`; {}write an IANA name such as `Asia/Shanghai`, `Europe/London` or `UTC`",
            suggestion.as_ref().map(|name| format!("did you mean `{name}`? ")).unwrap_or_default())]
    Zone {
        /// What was written.
        name: String,
        /// A name that looks much like it.
        suggestion: Option<String>,
    },

    /// No such rule for the hours daylight saving removes and repeats.
    #[error(
        "unknown daylight-saving rule `{text}`; write `quartz`, `natural`, or a gap and a fold word such as \
         `skip-first` (gap: skip, next; fold: first, second, both)"
    )]
    DstRule {
        /// What was written.
        text: String,
    },

    /// A fixed rate or delay that cannot be counted.
    #[error(
        "a period of {period:?} cannot be kept; write whole milliseconds, at least 1 and at most 100 years"
    )]
    Period {
        /// What was asked for.
        period: Duration,
    },

    /// A date that no calendar has.
    #[error("`{text}` is no date; write year-month-day such as `2026-10-01`")]
    Day {
        /// What was written.
        text: String,
    },
}
