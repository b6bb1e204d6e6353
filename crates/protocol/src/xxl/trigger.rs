//! A centre asks an executor to run, or asks about a job.

use serde::{Deserialize, Serialize};

use super::lenient;

/// The body of `/run` (`/trigger` in the newest lineage).
///
/// Written with exactly these twelve fields, none of them null: there are executors that refuse a field too many,
/// others one too few.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TriggerRequest {
    /// The job; its runs on one executor wait for each other.
    #[serde(deserialize_with = "lenient::integer")]
    pub job_id: i64,
    /// The handler's name, where the code is a handler.
    #[serde(default, deserialize_with = "lenient::text")]
    pub executor_handler: String,
    /// The parameter.
    #[serde(default, deserialize_with = "lenient::text")]
    pub executor_params: String,
    /// A word of [`BlockStrategy`](super::BlockStrategy).
    #[serde(default, deserialize_with = "lenient::text")]
    pub executor_block_strategy: String,
    /// Seconds the run may take; 0 for as long as it likes.
    #[serde(default, deserialize_with = "lenient::integer_or_default")]
    pub executor_timeout: i32,
    /// The run.
    #[serde(deserialize_with = "lenient::integer")]
    pub log_id: i64,
    /// When it was triggered, in milliseconds since the epoch; decides the day its log is filed under.
    #[serde(default, deserialize_with = "lenient::integer_or_default")]
    pub log_date_time: i64,
    /// A word of [`GlueType`](super::GlueType).
    #[serde(default, deserialize_with = "lenient::text")]
    pub glue_type: String,
    /// The source, where the code is sent along.
    #[serde(default, deserialize_with = "lenient::text")]
    pub glue_source: String,
    /// When the source was last edited.
    #[serde(default, deserialize_with = "lenient::integer_or_default")]
    pub glue_updatetime: i64,
    /// Which shard this is, from 0.
    #[serde(default, deserialize_with = "lenient::integer_or_default")]
    pub broadcast_index: i32,
    /// How many shards there are; 0, if absent, means one.
    #[serde(default, deserialize_with = "lenient::integer_or_default")]
    pub broadcast_total: i32,
}

impl TriggerRequest {
    /// Reads a body.
    pub fn read(body: &[u8]) -> serde_json::Result<TriggerRequest> {
        lenient::object(body)
    }
}

/// The body of `/idleBeat` and `/kill`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobRequest {
    /// The job asked about.
    #[serde(deserialize_with = "lenient::integer")]
    pub job_id: i64,
}

impl JobRequest {
    /// Reads a body.
    pub fn read(body: &[u8]) -> serde_json::Result<JobRequest> {
        lenient::object(body)
    }
}
