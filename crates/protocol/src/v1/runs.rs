//! Runs: `/v1/runs`.

use serde::{Deserialize, Serialize};

use super::Instant;

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunView {
    /// Its number, for ever.
    pub id: i64,
    /// Its job's number,
    pub job: i64,
    /// key
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_key: Option<String>,
    /// and name, while the job is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_name: Option<String>,
    /// The zone whose clocks the job follows, if it has one of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_zone: Option<String>,
    /// The app of its job then, by name.
    pub app: String,
    /// Where it stands.
    pub state: RunState,
    /// Cancellation was requested, and the executor has not ended it. Absent once the run is over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancel_requested: bool,
    /// Why it exists, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// The instant it stands for.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub scheduled_at: Option<Instant>,
    /// When its end was recorded.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub ended_at: Option<Instant>,
    /// From the instant it stands for to its end.
    pub took_ms: Option<i64>,
    /// The executor it was sent to.
    pub address: Option<String>,
    /// The node that has it, or sent it, where that is known.
    pub node: Option<String>,
    /// The handler that was called.
    pub handler: String,
    /// What was given to it.
    pub param: String,
    /// Which part of the fire it is, from 0,
    pub shard_index: u32,
    /// of how many.
    pub shard_total: u32,
    /// 1 for the first try, where that is known.
    pub attempt: Option<u32>,
    /// What there is to say about the sending,
    pub dispatch_message: String,
    /// and about the result.
    pub result_message: String,
    /// XXL-JOB's code for the result: 0 none yet, 200 success, 502 timeout, others failure.
    pub result_code: i64,
    /// What happened to it, in order. Only for a single run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<Moment>,
}

/// Asks to end a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Kill {
    /// Close the run even if its executor refuses or cannot be reached. A result that it reports later is discarded.
    #[serde(default)]
    pub force: bool,
}

/// Where a run is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Any node may take it when it is due.
    Waiting,
    /// One node has it and will send it when it is due.
    Claimed,
    /// It is being recalled.
    Cancelling,
    /// Sent, or perhaps sent, and no answer.
    Unknown,
    /// An executor has it.
    Running,
    /// Over: the handler succeeded.
    Succeeded,
    /// Over: the handler failed, or no executor took it.
    Failed,
    /// Over: it took too long.
    TimedOut,
    /// Over: its executor died or knows nothing of it.
    Lost,
    /// Over: somebody ended it.
    Cancelled,
}

/// Why a run exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Origin {
    /// Its job's schedule reached an instant.
    Schedule,
    /// It makes up for instants that passed while nobody could fire.
    Misfire,
    /// A person or program asked for it.
    Manual,
    /// Another job's run succeeded.
    Child {
        /// That run.
        of: i64,
    },
    /// An attempt of the same fire failed.
    Retry {
        /// That run.
        of: i64,
    },
}

/// Something that happened to a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Moment {
    /// When, if that was written down.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub at: Option<Instant>,
    /// What.
    pub kind: MomentKind,
    /// More about it: a node, an address, a route, a message.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

/// What can happen to a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum MomentKind {
    /// Its instant.
    Scheduled,
    /// A node took it.
    Claimed,
    /// An executor was chosen.
    Routed,
    /// The request left.
    Sent,
    /// The executor took it.
    Accepted,
    /// The executor, or all of them, did not.
    Refused,
    /// Nobody knows whether it arrived.
    InDoubt,
    /// Another node took it over.
    TakenOver,
    /// The result came, or it was decided that none will.
    Ended,
    /// Its end was recorded.
    Recorded,
    /// Another attempt was opened.
    Retried,
}

/// Some lines of a run's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LogPage {
    /// The number of the first line, from 1.
    pub from: u64,
    /// The lines.
    pub text: String,
    /// The number to ask for next.
    pub next: u64,
    /// There will be no more.
    pub end: bool,
    /// Why there is nothing, when the executor cannot be asked and nothing was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<super::Problem>,
}

/// Runs to be deleted: those that are over, of an app, for instants before then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Clear {
    /// The app, by name.
    pub app: String,
    /// Only of this job, by key, or by number after `id:`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// Then.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub before: Instant,
}

/// What was deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Cleared {
    /// So many runs.
    pub deleted: u64,
    /// There are more: ask again.
    pub more: bool,
}

/// Instants of a job that were not sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Miss {
    /// Its number in the history.
    pub id: i64,
    /// The job.
    pub job: i64,
    /// The first of them,
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub first: Instant,
    /// the last,
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub last: Instant,
    /// and how many there were.
    pub count: u64,
    /// Why.
    pub reason: MissReason,
    /// The run that stands for them, if one does.
    pub into: Option<i64>,
    /// When that was decided.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub at: Instant,
}

/// Why an instant was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum MissReason {
    /// It was too late, and the job skips such.
    Skipped,
    /// It was too late, and one run stands for it.
    Coalesced,
    /// Another run of the job was going on.
    Blocked,
    /// Somebody stopped, changed or deleted the job in between.
    Cancelled,
}
