//! Work calendars: `/v1/work-calendars`.

use serde::{Deserialize, Serialize};

use super::{Beyond, Instant, OnDays, Shift};

/// Work calendar of a job: it keeps, skips or moves the times of a cron expression or timetable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct JobWorkdays {
    /// Name of the work calendar.
    pub calendar: String,
    /// Days on which the job fires.
    #[serde(default)]
    pub on: OnDays,
    /// How to handle scheduled times on other days.
    #[serde(default)]
    pub shift: Shift,
}

/// Definition of a work calendar, as sent to `PUT /v1/work-calendars/{calendar}`. It replaces all days.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct WorkCalendarBody {
    /// Weekdays that are workdays unless `days` has an entry, for example `Mon-Fri` or `Sun-Thu`; `none` for none.
    #[serde(default = "monday_to_friday")]
    pub week: String,
    /// Last day of the published data, for example `2026-12-31`. Default: the data has no end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(format = Date))]
    pub known_until: Option<String>,
    /// Whether jobs fire on days after `known_until`.
    #[serde(default)]
    pub beyond: Beyond,
    /// Holidays and make-up workdays, at most 20 000.
    #[serde(default)]
    pub days: Vec<WorkCalendarDay>,
}

fn monday_to_friday() -> String {
    "Mon-Fri".to_owned()
}

/// A holiday or make-up workday.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct WorkCalendarDay {
    /// The day, for example `2026-10-01`.
    #[cfg_attr(feature = "openapi", schema(format = Date))]
    pub date: String,
    /// Whether it is a workday, such as a make-up Saturday, or a day off.
    pub is_work: bool,
    /// Name of the holiday, at most 100 characters.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
}

/// A work calendar. Its `ETag` is its revision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WorkCalendarView {
    /// Unique name.
    pub name: String,
    /// Definition; without `days` in a list.
    #[serde(flatten)]
    pub body: WorkCalendarBody,
    /// Number of entries in `days`.
    pub day_count: u64,
    /// Number of jobs that use it.
    pub jobs: u64,
    /// Whether the data ends within 30 days, or has ended: import the next year.
    pub ends_soon: bool,
    /// Incremented by each change.
    pub revision: i64,
}

/// Days of a file to import.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct WorkCalendarImport {
    /// Text of the file.
    pub text: String,
    /// Format of the file: `ical`, `csv` (lines of `date,work|off,name`) or `json` (`days` with `date`, `name` and
    /// `isOffDay`, as in feeds of Chinese holidays). Default: detected from its first characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// Whether to delete other entries of the years in the file first. Otherwise entries are only added and replaced.
    #[serde(default)]
    pub replace: bool,
    /// Last day of the published data. Default: the end of the last year that the file lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(format = Date))]
    pub known_until: Option<String>,
    /// Only return what would change.
    #[serde(default)]
    pub dry_run: bool,
}

/// What an import changes, or would change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WorkCalendarImported {
    /// The calendar after the import, without its days.
    pub calendar: WorkCalendarView,
    /// Number of new entries.
    pub added: u64,
    /// Number of entries with another kind or name than before.
    pub replaced: u64,
    /// Number of deleted entries.
    pub removed: u64,
    /// Number of events in the file that are neither holidays nor workdays.
    pub ignored: u64,
    /// Jobs whose future fires change, at most 100.
    pub jobs: Vec<MovedFires>,
}

/// Fires of a job that a change of its work calendar removes and adds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MovedFires {
    /// Id of the job.
    pub job: i64,
    /// Key of the job, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Display name of the job.
    pub name: String,
    /// First fires that no longer take place, at most 20.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<String>))]
    pub removed: Vec<Instant>,
    /// First fires that take place now, at most 20.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<String>))]
    pub added: Vec<Instant>,
}
