//! The scheduling centre itself: `/v1/overview`, `/v1/statistics`, `/v1/nodes`, `/v1/about`.

use serde::{Deserialize, Serialize};

use super::{AlertCounts, Instant, JobView, RunView};

/// Current state of the apps that the caller may view.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Overview {
    /// Current time of the scheduling centre.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub now: Instant,
    /// Number of jobs.
    pub jobs: u64,
    /// Number of jobs whose schedule is enabled.
    pub jobs_enabled: u64,
    /// Runs of today, in the scheduling centre's time zone.
    pub today: RunCounts,
    /// Alerts of the last 24 hours.
    pub alerts: AlertCounts,
    /// Number of reachable executors.
    pub executors_alive: u64,
    /// Number of unreachable executors.
    pub executors_suspect: u64,
    /// Unfinished runs, newest first, at most 8.
    pub running: Vec<RunView>,
    /// Last failed run of each recently failing job, newest first, at most 8.
    pub failing: Vec<RunView>,
    /// Jobs that fire next, at most 8.
    pub upcoming: Vec<JobView>,
}

/// Number of runs by result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunCounts {
    /// Runs that are not finished.
    pub running: u64,
    /// Runs that succeeded.
    pub succeeded: u64,
    /// Runs that finished without success.
    pub failed: u64,
}

/// Runs over time: `GET /v1/statistics?from=&until=&step_ms=`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Statistics {
    /// Length of a bucket in milliseconds.
    pub step_ms: u64,
    /// Buckets in order of time; buckets without runs are omitted.
    pub buckets: Vec<StatisticsBucket>,
    /// Whether all runs of the requested period are counted.
    pub complete: bool,
    /// If `complete` is false: start of the counted part of the period, because there are too many runs for one
    /// response. Buckets from here on are exact; earlier ones are omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub counted_from: Option<Instant>,
}

/// Runs of one bucket of time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StatisticsBucket {
    /// Start of the bucket.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub at: Instant,
    /// Number of runs by result.
    pub runs: RunCounts,
    /// Median dispatch latency after the scheduled time in milliseconds; absent if this node does not know it.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub lateness_p50_ms: Option<f64>,
    /// 99th percentile of the dispatch latency in milliseconds; absent if this node does not know it.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub lateness_p99_ms: Option<f64>,
}

/// Upcoming fires of all jobs together: `GET /v1/calendar?from=&until=&step_ms=`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Calendar {
    /// Length of a bucket in milliseconds.
    pub step_ms: u64,
    /// Buckets in order of time, including those without fires.
    pub buckets: Vec<CalendarBucket>,
    /// Whether the fires of all jobs are counted. If false, there are too many jobs for one response, and only the
    /// newest jobs are counted.
    pub complete: bool,
    /// Number of jobs counted.
    pub jobs: u64,
}

/// Upcoming fires of one bucket of time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CalendarBucket {
    /// Start of the bucket.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub at: Instant,
    /// Number of fires.
    pub fires: u64,
}

/// A node of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NodeView {
    /// Name of the node.
    pub name: String,
    /// Incarnation of the node: greater after each restart.
    pub epoch: i64,
    /// Time when its lease expires unless renewed.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub lease_until: Instant,
    /// Whether its lease is valid.
    pub alive: bool,
    /// Whether this node answered the request.
    pub this: bool,
}

/// Version and environment of the node that answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct About {
    /// Version of Tickwright.
    pub version: String,
    /// Name of the node that answers.
    pub node: String,
    /// Kind of database.
    pub database: Database,
    /// Time zone of the scheduling centre, as an IANA name.
    pub zone: String,
    /// Start time of this node.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub started_at: Instant,
    /// Whether jobs may be scripts.
    pub scripts: bool,
    /// Difference between the clocks of this node and the database in milliseconds; absent if unknown.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub clock_offset_ms: Option<f64>,
}

/// A configuration option of the node that answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SettingView {
    /// Name of the option.
    pub option: String,
    /// Value, in the syntax of the option; absent if it is not set or is a secret.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub value: Option<String>,
    /// Whether a value is set but hidden because it is a secret.
    pub hidden: bool,
}

/// Kind of database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Database {
    /// SQLite.
    Sqlite,
    /// MySQL or MariaDB.
    Mysql,
    /// PostgreSQL.
    Postgres,
}
