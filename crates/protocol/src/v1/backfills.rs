//! Backfills: `/v1/backfills`.

use serde::{Deserialize, Serialize};
use words::{BackfillOrder, BackfillState, Existing, InstantState, OnFailure};

use super::Instant;

/// Request for a backfill: runs of a job for scheduled times of the past. Either `from` and `to`, or `dates`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct BackfillBody {
    /// Start of the range, inclusive: a time, for example `2026-06-21T08:00:00Z`, or a date in the job's time zone, for
    /// example `2026-06-21`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// End of the range, inclusive: a time, or a date, which stands for the whole day up to now. Not in the future.
    /// Default: now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Dates in the job's time zone, instead of a range. Each stands for the scheduled times of its day; for a job without a
    /// schedule, for the beginning of the day.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dates: Vec<String>,
    /// Order in which runs are opened.
    #[serde(default)]
    pub order: BackfillOrder,
    /// Maximum number of scheduled times with open runs, from 1 to 100. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel: Option<u32>,
    /// Rule for scheduled times that already have runs.
    #[serde(default)]
    pub existing: Existing,
    /// What happens after a run failed for good.
    #[serde(default)]
    pub on_failure: OnFailure,
    /// Parameter of the runs instead of the job's. For a workflow, its inputs as a JSON object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub param: Option<String>,
    /// Start nothing; return the scheduled times and what would happen to each.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

/// Result of a request for a backfill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BackfillStarted {
    /// The backfill; absent for a dry run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backfill: Option<BackfillView>,
    /// The plan; only for a dry run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<BackfillPlan>,
}

/// Plan of a backfill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BackfillPlan {
    /// Number of scheduled times in the range.
    pub total: u32,
    /// Number of those that would run now.
    pub run: u32,
    /// Number of those that would be left out.
    pub skip: u32,
    /// Number of those with an open run, which would decide.
    pub wait: u32,
    /// Scheduled times in the order of the backfill: the first 100 and the last 100.
    pub times: Vec<PlannedTime>,
}

/// A scheduled time in the plan of a backfill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PlannedTime {
    /// The scheduled time.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub scheduled_at: Instant,
    /// What would happen to it now.
    pub action: PlannedAction,
    /// Run that is the reason, if it would be left out or would wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because_of: Option<i64>,
}

/// What would happen to a scheduled time of a backfill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum PlannedAction {
    /// A run is opened.
    Run,
    /// It is left out, because a run succeeded.
    Skip,
    /// It waits for the end of an open run.
    Wait,
}

/// A backfill with its progress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BackfillView {
    /// Id of the backfill.
    pub id: i64,
    /// Id of the job.
    pub job: i64,
    /// Key of the job, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_key: Option<String>,
    /// Name of the job.
    pub job_name: String,
    /// State of the backfill.
    pub state: BackfillState,
    /// Start of the range, inclusive.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub from: Instant,
    /// End of the range, exclusive.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub until: Instant,
    /// Order in which runs are opened.
    pub order: BackfillOrder,
    /// Maximum number of scheduled times with open runs.
    pub parallel: u32,
    /// Rule for scheduled times that already had runs.
    pub existing: Existing,
    /// What happens after a run failed for good.
    pub on_failure: OnFailure,
    /// Parameter of the runs instead of the job's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub param: Option<String>,
    /// User who started it.
    pub by: String,
    /// Time when it was started.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub started_at: Instant,
    /// Time when its last run ended; absent while it is not finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub ended_at: Option<Instant>,
    /// Number of scheduled times; the sum of the following counts.
    pub total: u32,
    /// Number of scheduled times whose runs are not opened yet.
    pub pending: u32,
    /// Number of scheduled times with open runs.
    pub open: u32,
    /// Number of scheduled times that succeeded.
    pub succeeded: u32,
    /// Number of scheduled times that failed.
    pub failed: u32,
    /// Number of scheduled times that were left out.
    pub skipped: u32,
    /// Number of scheduled times that were cancelled.
    pub cancelled: u32,
}

/// A scheduled time of a backfill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BackfillTime {
    /// The scheduled time.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub scheduled_at: Instant,
    /// Its state.
    pub state: InstantState,
    /// Its run: the open one, the one that ended it, or the one that is the reason why it was left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<i64>,
    /// Time when it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub ended_at: Option<Instant>,
    /// Reason of a failure, or why it was left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Request to cancel a backfill.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct CancelBackfill {
    /// Also cancel its open runs. Without it they may end.
    #[serde(default)]
    pub kill: bool,
}
