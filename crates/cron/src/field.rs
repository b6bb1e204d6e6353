//! Dialects, fields, and the parts of a field's list.

use std::fmt;

/// A dialect of cron expressions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// Six or seven fields, seconds first, `1` = Sunday, one day field is `?`. Used by XXL-JOB.
    #[default]
    Quartz,
    /// Five fields, minutes first, `0` or `7` = Sunday, or a nickname such as `@daily`. Used by crontab.
    Unix,
}

impl Dialect {
    pub(crate) fn example(self) -> &'static str {
        match self {
            Dialect::Quartz => "0 0/5 * * * ?",
            Dialect::Unix => "*/5 * * * *",
        }
    }

    pub(crate) fn fields_in_words(self) -> &'static str {
        match self {
            Dialect::Quartz => "6 or 7 fields (second minute hour day-of-month month day-of-week [year])",
            Dialect::Unix => "5 fields (minute hour day-of-month month day-of-week)",
        }
    }
}

/// A field of an expression, in Quartz's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Field {
    /// 0 to 59; not in the Unix dialect.
    Second,
    /// 0 to 59.
    Minute,
    /// 0 to 23.
    Hour,
    /// 1 to 31.
    DayOfMonth,
    /// 1 to 12.
    Month,
    /// Sunday to Saturday.
    DayOfWeek,
    /// 1970 to 2199; not in the Unix dialect.
    Year,
}

impl Field {
    pub(crate) const ALL: [Field; 7] = [
        Field::Second,
        Field::Minute,
        Field::Hour,
        Field::DayOfMonth,
        Field::Month,
        Field::DayOfWeek,
        Field::Year,
    ];

    /// The smallest and the largest value. Weekdays are 1 (Sunday) to 7 in both dialects.
    pub(crate) fn bounds(self) -> (u16, u16) {
        match self {
            Field::Second | Field::Minute => (0, 59),
            Field::Hour => (0, 23),
            Field::DayOfMonth => (1, 31),
            Field::Month => (1, 12),
            Field::DayOfWeek => (1, 7),
            Field::Year => (YEAR_MIN, YEAR_MAX),
        }
    }

    /// Full names in order of value, for the fields that have names.
    pub(crate) fn names(self) -> &'static [&'static str] {
        match self {
            Field::Month => &[
                "JANUARY",
                "FEBRUARY",
                "MARCH",
                "APRIL",
                "MAY",
                "JUNE",
                "JULY",
                "AUGUST",
                "SEPTEMBER",
                "OCTOBER",
                "NOVEMBER",
                "DECEMBER",
            ],
            Field::DayOfWeek => {
                &["SUNDAY", "MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY"]
            }
            _ => &[],
        }
    }

    pub(crate) fn help(self, dialect: Dialect) -> &'static str {
        match (self, dialect) {
            (Field::Second | Field::Minute, _) => "0-59 with `* , - /`, for example `0/15`",
            (Field::Hour, _) => "0-23 with `* , - /`, for example `9-17`",
            (Field::DayOfMonth, Dialect::Quartz) => {
                "1-31 with `? * , - /`, or `L` (last day), `L-3`, `LW` (last workday), `15W`, for example `1,15`"
            }
            (Field::DayOfMonth, Dialect::Unix) => "1-31 with `* , - /`, for example `1,15`",
            (Field::Month, _) => "1-12 or JAN-DEC with `* , - /`, for example `JAN-JUN`",
            (Field::DayOfWeek, Dialect::Quartz) => {
                "1-7 (1 = Sunday) or SUN-SAT with `? * , - /`, or `6L` (last Friday), `6#3` (third Friday), \
                 for example `MON-FRI`"
            }
            (Field::DayOfWeek, Dialect::Unix) => {
                "0-7 (0 and 7 = Sunday) or SUN-SAT with `* , - /`, for example `MON-FRI`"
            }
            (Field::Year, _) => "1970-2199 with `* , - /`, for example `2026-2030`",
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Field::Second => "second",
            Field::Minute => "minute",
            Field::Hour => "hour",
            Field::DayOfMonth => "day-of-month",
            Field::Month => "month",
            Field::DayOfWeek => "day-of-week",
            Field::Year => "year",
        })
    }
}

/// The first year of an expression.
pub(crate) const YEAR_MIN: u16 = 1970;
/// The last year of an expression, and the horizon of every search.
pub(crate) const YEAR_MAX: u16 = 2199;

/// One entry of a field's list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// `*`, `*/step`.
    Every { step: u16 },
    /// `5`, `MON`.
    One(u16),
    /// `start/step`: to the field's maximum.
    From { start: u16, step: u16 },
    /// `start-end/step`; wraps around when the end is the smaller.
    Range { start: u16, end: u16, step: u16 },
    /// Day of month: `L`, `L-before`, and with `workday` `LW`, `L-beforeW`.
    Last { before: u16, workday: bool },
    /// Day of month: `15W`, the workday nearest to it within the month.
    Nearest(u16),
    /// Day of week: `6L`, the last Friday of the month.
    LastOf(u16),
    /// Day of week: `6#3`, the third Friday of the month.
    Nth { weekday: u16, nth: u16 },
}

impl Part {
    /// The plain values of this part; none if they depend on the month.
    pub(crate) fn values(self, field: Field) -> impl Iterator<Item = u16> {
        let (min, max) = field.bounds();
        let span = max - min + 1;
        let (start, end, step) = match self {
            Part::Every { step } => (min, max, step),
            Part::One(value) => (value, value, 1),
            Part::From { start, step } => (start, max, step),
            Part::Range { start, end, step } if end < start => (start, end + span, step),
            Part::Range { start, end, step } => (start, end, step),
            Part::Last { .. } | Part::Nearest(_) | Part::LastOf(_) | Part::Nth { .. } => (1, 0, 1),
        };
        (start..=end).step_by(usize::from(step)).map(move |value| min + (value - min) % span)
    }
}

/// A parsed expression, before it becomes bit sets.
#[derive(Debug)]
pub(crate) struct Expression {
    /// Upper case, single blanks, without ignored parts.
    pub(crate) text: String,
    /// By [`Field`]; an empty list is `?`.
    pub(crate) fields: [Vec<Part>; 7],
    /// Unix: with both day fields restricted, one match is enough.
    pub(crate) either_day: bool,
}

impl Expression {
    pub(crate) fn field(&self, field: Field) -> &[Part] {
        &self.fields[field as usize]
    }

    /// All plain values of a field, ascending.
    pub(crate) fn values(&self, field: Field) -> Vec<u16> {
        let mut values: Vec<u16> = self.field(field).iter().flat_map(|part| part.values(field)).collect();
        values.sort_unstable();
        values.dedup();
        values
    }
}
