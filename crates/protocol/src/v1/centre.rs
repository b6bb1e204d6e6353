//! The centre itself: `/v1/overview`, `/v1/statistics`, `/v1/nodes`, `/v1/about`.

use serde::{Deserialize, Serialize};

use super::{AlertCounts, Instant, JobView, RunView};

/// What is going on, in what the caller may see.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Overview {
    /// The centre's now.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub now: Instant,
    /// Jobs in all,
    pub jobs: u64,
    /// and those whose schedule fires.
    pub jobs_enabled: u64,
    /// Runs of today in the centre's zone.
    pub today: RunCounts,
    /// Alerts of the last 24 hours.
    pub alerts: AlertCounts,
    /// Executors that can be reached,
    pub executors_alive: u64,
    /// and that cannot.
    pub executors_suspect: u64,
    /// Runs that are open, newest first, a handful.
    pub running: Vec<RunView>,
    /// The last run of each job that failed lately, newest first, a handful.
    pub failing: Vec<RunView>,
    /// What fires next, a handful.
    pub upcoming: Vec<JobView>,
}

/// Runs by what came of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunCounts {
    /// Not over yet.
    pub running: u64,
    /// Over, with success.
    pub succeeded: u64,
    /// Over, without.
    pub failed: u64,
}

/// Runs over time: `GET /v1/statistics?from=&until=&step_ms=`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Statistics {
    /// How long a bucket is.
    pub step_ms: u64,
    /// Buckets in order; those without runs are left out.
    pub buckets: Vec<StatisticsBucket>,
    /// Whether all runs of the time are counted.
    pub complete: bool,
    /// Where not all are, there are too many to count for one answer: buckets from here on are exact, and those before
    /// are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub counted_from: Option<Instant>,
}

/// The runs of some time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StatisticsBucket {
    /// Where it begins.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub at: Instant,
    /// The runs.
    pub runs: RunCounts,
    /// How late they were sent, where this node knows: the half was not later than this,
    pub lateness_p50_ms: Option<f64>,
    /// and 99 of 100 not later than this.
    pub lateness_p99_ms: Option<f64>,
}

/// Fires to come, of all jobs together: `GET /v1/calendar?from=&until=&step_ms=`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Calendar {
    /// How long a bucket is.
    pub step_ms: u64,
    /// Buckets in order, also those without fires.
    pub buckets: Vec<CalendarBucket>,
    /// Whether the fires of all jobs are counted. Otherwise there are too many jobs for one answer, and the numbers are
    /// those of the newest.
    pub complete: bool,
    /// How many jobs are counted.
    pub jobs: u64,
}

/// Fires to come in some time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CalendarBucket {
    /// Where it begins.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub at: Instant,
    /// How many fires.
    pub fires: u64,
}

/// A node of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NodeView {
    /// The process's name.
    pub name: String,
    /// Which life of it.
    pub epoch: i64,
    /// Its lease ends then, unless it renews it.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub lease_until: Instant,
    /// Whether it lives.
    pub alive: bool,
    /// Whether it is the one that answers.
    pub this: bool,
}

/// What this is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct About {
    /// The version.
    pub version: String,
    /// The node that answers.
    pub node: String,
    /// What remembers.
    pub database: Database,
    /// The centre's zone.
    pub zone: String,
    /// When this node was started.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub started_at: Instant,
    /// Whether jobs may be scripts here.
    pub scripts: bool,
    /// How far its clock is from the database's, in milliseconds, where that is known.
    pub clock_offset_ms: Option<f64>,
}

/// An option of the node that answers, by the name under which it is set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SettingView {
    /// What it is called.
    pub option: String,
    /// What it is, as it could be written; absent if nothing is set, or what is set is a secret.
    pub value: Option<String>,
    /// Whether something is set that nobody is shown.
    pub hidden: bool,
}

/// What remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Database {
    /// A file.
    Sqlite,
    /// MySQL or MariaDB.
    Mysql,
    /// PostgreSQL.
    Postgres,
}
