//! Runs: `/v1/runs`.

use serde::{Deserialize, Serialize};

use super::Instant;

/// A run: one execution of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunView {
    /// Id of the run; never changes.
    pub id: i64,
    /// Id of the job.
    pub job: i64,
    /// Key of the job, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_key: Option<String>,
    /// Name of the job; absent once the job is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_name: Option<String>,
    /// Time zone of the job, as an IANA name, if it has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_zone: Option<String>,
    /// Name of the app that the job belonged to when the run was created.
    pub app: String,
    /// State of the run.
    pub state: RunState,
    /// Whether cancellation was requested and the executor has not ended the run yet. Absent once the run is
    /// finished.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancel_requested: bool,
    /// Why the run exists; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// The time the schedule asked for. For a manual trigger it is the time of the request.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime, required))]
    pub scheduled_at: Option<Instant>,
    /// Time when the end of the run was recorded.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime, required))]
    pub ended_at: Option<Instant>,
    /// Duration in milliseconds: from when the run was sent to its executor to its end. Without a trace of the dispatch
    /// it counts from the scheduled time; `null` if the run was never sent.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub took_ms: Option<i64>,
    /// Address of the executor that the run was sent to.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub address: Option<String>,
    /// Node that claimed or dispatched the run; absent if unknown.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub node: Option<String>,
    /// Handler that was called.
    pub handler: String,
    /// Parameter passed to the handler.
    pub param: String,
    /// Index of the shard, from 0.
    pub shard_index: u32,
    /// Number of shards.
    pub shard_total: u32,
    /// Attempt number, 1 for the first; absent if unknown.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub attempt: Option<u32>,
    /// Message about the dispatch.
    pub dispatch_message: String,
    /// Message about the result.
    pub result_message: String,
    /// XXL-JOB's result code: 0 none yet, 200 success, 502 timeout, any other value failure.
    pub result_code: i64,
    /// Trace of the run, in order. Only in the response for a single run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<TraceStep>,
}

/// Request to cancel a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Kill {
    /// Close the run even if its executor refuses or cannot be reached. A result that it reports later is
    /// discarded.
    #[serde(default)]
    pub force: bool,
}

/// State of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Open; any node may claim it when it is due.
    Waiting,
    /// Claimed by one node, which dispatches it when it is due.
    Claimed,
    /// Being cancelled.
    Cancelling,
    /// Sent or possibly sent, without a response.
    Unknown,
    /// Accepted by an executor.
    Running,
    /// Finished: the handler succeeded.
    Succeeded,
    /// Finished: the handler failed, or no executor accepted the run.
    Failed,
    /// Finished: the run exceeded its timeout.
    TimedOut,
    /// Finished: the executor died or does not know the run.
    Lost,
    /// Finished: the run was cancelled.
    Cancelled,
}

/// Why a run exists, tagged by `kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Origin {
    /// The schedule of the job fired.
    Schedule,
    /// A catch-up run for scheduled times that passed while no node could fire.
    Misfire,
    /// A user or program triggered it.
    Manual,
    /// A run of a parent job succeeded.
    Child {
        /// Id of that run.
        of: i64,
    },
    /// A step of a workflow run opened.
    Step {
        /// Id of the workflow run.
        of: i64,
    },
    /// A workflow run that has ended was resumed.
    Resume {
        /// Id of that run.
        of: i64,
    },
    /// A backfill opened it for a scheduled time of the past.
    Backfill {
        /// Id of the backfill.
        of: i64,
    },
    /// An earlier attempt of the same fire failed.
    Retry {
        /// Id of that run.
        of: i64,
    },
}

/// A step in the trace of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TraceStep {
    /// Time of the step; absent if it was not stored.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime, required))]
    pub at: Option<Instant>,
    /// Kind of step.
    pub kind: TraceStepKind,
    /// Details: a node, an address, a routing strategy or a message.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

/// Kind of step in the trace of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum TraceStepKind {
    /// The scheduled time.
    Scheduled,
    /// A node claimed the run.
    Claimed,
    /// An executor was selected.
    Routed,
    /// The request was sent.
    Sent,
    /// The executor accepted the run.
    Accepted,
    /// The executor, or every executor tried, rejected the run.
    Refused,
    /// It is unknown whether the request arrived.
    InDoubt,
    /// Another node took the run over.
    TakenOver,
    /// The result arrived, or the run was ended without one.
    Ended,
    /// The end of the run was recorded.
    Recorded,
    /// A retry was created.
    Retried,
}

/// Lines of a run's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LogPage {
    /// Number of the first line, from 1.
    pub from: u64,
    /// Text of the lines.
    pub text: String,
    /// Line number to request next.
    pub next: u64,
    /// Whether the log is complete.
    pub end: bool,
    /// Why there is no text: the executor cannot be asked and the log was not stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<super::Problem>,
}

/// Request to delete finished runs of an app.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Clear {
    /// Name of the app.
    pub app: String,
    /// Restricts it to one job: its key, or its id as `id:42`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// Only runs with a scheduled time before this are deleted.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub before: Instant,
}

/// Result of a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Cleared {
    /// Number of deleted runs.
    pub deleted: u64,
    /// Whether there are more runs to delete: repeat the request.
    pub more: bool,
}

/// Scheduled times of a job that were not dispatched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Miss {
    /// Id of the history entry.
    pub id: i64,
    /// Id of the job.
    pub job: i64,
    /// First of the scheduled times.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub first: Instant,
    /// Last of the scheduled times.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub last: Instant,
    /// Number of scheduled times.
    pub count: u64,
    /// Why they were not dispatched.
    pub reason: MissReason,
    /// Id of the catch-up run for them, if there is one.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub into: Option<i64>,
    /// Time of this decision.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub at: Instant,
}

/// Why a scheduled time was not dispatched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum MissReason {
    /// Missed; skipped by the misfire policy.
    Skipped,
    /// Missed; covered by one catch-up run.
    Coalesced,
    /// Blocked by another active run of the job.
    Blocked,
    /// The job was stopped, changed or deleted meanwhile.
    Cancelled,
}
