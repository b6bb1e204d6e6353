//! Schedules of jobs and their previews.

use serde::{Deserialize, Serialize};

use super::{CronDialect, Instant, JobWorkdays};

/// Schedule of a job, tagged by `kind`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Schedule {
    /// Cron expression.
    Cron {
        /// The expression, for example `0 */5 * * * ?`.
        expression: String,
        /// Syntax of the expression.
        #[serde(default)]
        dialect: CronDialect,
        /// Time zone as an IANA name, for example `Europe/Berlin`. Default: the zone of the scheduling centre.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        zone: Option<String>,
        /// How to handle daylight-saving changes: `natural`, `quartz`, or a combination of `skip` or `next` with
        /// `first`, `second` or `both`, for example `skip-first`. Default: `natural` if `zone` is set, otherwise
        /// `quartz`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        dst: Option<String>,
    },
    /// Timetable: fires when one of its rules does. Rules that fire at the same time fire once.
    Timetable {
        /// Rules, 1 to 32: `daily 09:00-17:30 every 30m on Mon-Fri`, `every 2 weeks at 09:00 from 2026-08-31`,
        /// `workday -1 of month at 18:00` (the last day of Monday to Friday) or `cron 0 0 12 ? * SAT`.
        rules: Vec<String>,
        /// Time zone as an IANA name, for example `Europe/Berlin`. Default: the zone of the scheduling centre.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        zone: Option<String>,
        /// How to handle daylight-saving changes, as for `cron`. Default: `natural`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        dst: Option<String>,
    },
    /// Fixed rate: the same interval between all fires.
    FixedRate {
        /// Interval in milliseconds.
        every_ms: u64,
        /// Time of one fire, from which all others are counted. Default: now.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
        anchor: Option<Instant>,
    },
    /// Fixed delay after the end of the last run.
    FixedDelay {
        /// Delay in milliseconds.
        delay_ms: u64,
    },
    /// One fire at a given time.
    Once {
        /// Time of the fire.
        #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
        at: Instant,
    },
    /// No schedule: only manual triggers and parent jobs start it.
    None,
}

/// Request to preview a schedule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct PreviewRequest {
    /// Schedule to preview.
    pub schedule: Schedule,
    /// Work calendar of the job. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workdays: Option<JobWorkdays>,
    /// Preview fires after this time. Default: now.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub after: Option<Instant>,
    /// Number of fires, at most 1000. Default: 10.
    #[serde(default)]
    pub count: Option<usize>,
}

/// Description and next fires of a schedule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Preview {
    /// Description of the schedule, in the language of the header `Accept-Language`: English (default) or Chinese.
    pub schedule_text: String,
    /// Time zone of the schedule, as an IANA name.
    pub zone: String,
    /// Next fires.
    pub fires: Vec<PreviewFire>,
    /// Scheduled times between them that the work calendar skips or moves, at most 200.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excluded: Vec<ExcludedTime>,
}

/// A scheduled time that a work calendar skips or moves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ExcludedTime {
    /// The time in the schedule's zone, without an offset, for example `2026-10-01T09:00:00`.
    pub local: String,
    /// Name of the holiday on that day, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holiday: Option<String>,
    /// Time of the fire instead, if the scheduled time is moved and not skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub moved_to: Option<Instant>,
}

/// An upcoming fire.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PreviewFire {
    /// Time of the fire.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub at: Instant,
    /// The same time in the schedule's zone, for example `2026-06-21T10:00:00+02:00`.
    pub local: String,
    /// Whether the UTC offset changed since the previous fire.
    pub clock_changed: bool,
    /// Name of the holiday or make-up workday in the work calendar, if the day of the fire has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holiday: Option<String>,
    /// Whether the day is after the data of the work calendar, so that it may still become a holiday.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_assumed: bool,
}

fn is_false(value: &bool) -> bool {
    !value
}
