//! The scheduling centre asks an executor to run a job, or asks about one.

use serde::{Deserialize, Serialize};

use super::lenient;

/// Body of `/run` (`/trigger` in the newest lineage).
///
/// It is written with exactly these twelve fields, none of them null: some executors reject an extra field, others
/// a missing one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TriggerRequest {
    /// Id of the job; its runs on one executor wait for each other.
    #[serde(deserialize_with = "lenient::integer")]
    pub job_id: i64,
    /// Name of the handler, if the code is a handler.
    #[serde(default, deserialize_with = "lenient::text")]
    pub executor_handler: String,
    /// Parameter of the run.
    #[serde(default, deserialize_with = "lenient::text")]
    pub executor_params: String,
    /// Stored word of a [`Block`](words::Block).
    #[serde(default, deserialize_with = "lenient::text")]
    pub executor_block_strategy: String,
    /// Timeout in seconds; 0 for none.
    #[serde(default, deserialize_with = "lenient::integer_or_default")]
    pub executor_timeout: i32,
    /// Id of the run.
    #[serde(deserialize_with = "lenient::integer")]
    pub log_id: i64,
    /// Time of the trigger, in milliseconds since the epoch; selects the day's folder of its log.
    #[serde(default, deserialize_with = "lenient::integer_or_default")]
    pub log_date_time: i64,
    /// Name of a [`GlueType`](super::GlueType).
    #[serde(default, deserialize_with = "lenient::text")]
    pub glue_type: String,
    /// Source code, if it is sent with the request.
    #[serde(default, deserialize_with = "lenient::text")]
    pub glue_source: String,
    /// Time of the last edit of the source code.
    #[serde(default, deserialize_with = "lenient::integer_or_default")]
    pub glue_updatetime: i64,
    /// Index of the shard, from 0.
    #[serde(default, deserialize_with = "lenient::integer_or_default")]
    pub broadcast_index: i32,
    /// Number of shards; 0 or absent means one.
    #[serde(default, deserialize_with = "lenient::integer_or_default")]
    pub broadcast_total: i32,
}

impl TriggerRequest {
    /// Parses a body.
    pub fn read(body: &[u8]) -> serde_json::Result<TriggerRequest> {
        lenient::object(body)
    }
}

/// Body of `/idleBeat` and `/kill`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobRequest {
    /// Id of the job.
    #[serde(deserialize_with = "lenient::integer")]
    pub job_id: i64,
}

impl JobRequest {
    /// Parses a body.
    pub fn read(body: &[u8]) -> serde_json::Result<JobRequest> {
        lenient::object(body)
    }
}
