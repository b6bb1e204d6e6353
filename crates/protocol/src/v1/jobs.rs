//! Jobs: `/v1/jobs`.

use serde::{Deserialize, Serialize};

use super::{Instant, Schedule};

/// What people write about a job. `PUT /v1/jobs/{key}` makes the job be so; what is left out has its default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct JobBody {
    /// The app whose executors run it, by name.
    pub app: String,
    /// For people.
    pub name: String,
    /// When it fires.
    pub schedule: Schedule,
    /// The handler to call. Left out where there is a script.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub handler: String,
    /// Parameter for the handler or script, at most 16 000 characters.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[cfg_attr(feature = "openapi", schema(max_length = 16_000))]
    pub param: String,
    /// The script that the executor runs instead of a handler. Needs a right of its own. In an edit, one that is left out
    /// stays as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<ScriptBody>,
    /// Whether its schedule fires. In an edit, left out means: as it was; for a new job, no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Its schedule fires only from here on,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub valid_from: Option<Instant>,
    /// and up to here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub valid_until: Option<Instant>,
    /// Each fire is sent up to this much after its instant.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub jitter_ms: u64,
    /// What to do with fires that could not be sent in time.
    #[serde(default)]
    pub misfire: Misfire,
    /// Whether its runs may overlap, across all executors.
    #[serde(default)]
    pub overlap: Overlap,
    /// What to do when a run fails.
    #[serde(default)]
    pub retry: Retry,
    /// What to do when nobody knows whether a request arrived.
    #[serde(default)]
    pub delivery: Delivery,
    /// A run that takes longer is stopped and counts as timed out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// How an executor is chosen: `FIRST`, `LAST`, `ROUND`, `RANDOM`, `CONSISTENT_HASH`, `LEAST_FREQUENTLY_USED`,
    /// `LEAST_RECENTLY_USED`, `FAILOVER`, `BUSYOVER`, `SHARDING_BROADCAST`.
    #[serde(default = "first")]
    pub route: String,
    /// What an executor does with a second run while one is going on there: `SERIAL_EXECUTION`, `DISCARD_LATER`,
    /// `COVER_EARLY`.
    #[serde(default = "serial")]
    pub block: String,
    /// Jobs that run when this one succeeds, by key, or by number where they have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<String>,
    /// How often they do when it runs in shards.
    #[serde(default)]
    pub children_mode: ChildrenMode,
    /// Whether a failed run raises an alert,
    #[serde(default)]
    pub alert: bool,
    /// and who is told by mail.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alert_to: Vec<String>,
    /// Who answers for it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub author: String,
    /// Words to find it by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

impl JobBody {
    /// A job with the defaults, and with neither handler nor script yet.
    pub fn new(app: impl Into<String>, name: impl Into<String>, schedule: Schedule) -> JobBody {
        JobBody {
            app: app.into(),
            name: name.into(),
            schedule,
            handler: String::new(),
            param: String::new(),
            script: None,
            enabled: None,
            valid_from: None,
            valid_until: None,
            jitter_ms: 0,
            misfire: Misfire::default(),
            overlap: Overlap::default(),
            retry: Retry::default(),
            delivery: Delivery::default(),
            timeout_ms: None,
            route: first(),
            block: serial(),
            children: Vec::new(),
            children_mode: ChildrenMode::default(),
            alert: false,
            alert_to: Vec::new(),
            author: String::new(),
            tags: Vec::new(),
        }
    }
}

/// A job as it stands. Its `ETag` is its revision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobView {
    /// Its number, for ever.
    pub id: i64,
    /// The key by which programs name it; jobs made elsewhere may have none and are named by their number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// What people wrote.
    #[serde(flatten)]
    pub body: JobBody,
    /// Its schedule in English words,
    pub schedule_english: String,
    /// and in Chinese ones.
    pub schedule_chinese: String,
    /// The next instant of its schedule, if there is one.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub next_fire_at: Option<Instant>,
    /// The last instant it fired for.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub last_fire_at: Option<Instant>,
    /// When it was created,
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub created_at: Option<Instant>,
    /// and last changed.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub updated_at: Option<Instant>,
    /// Counts the edits.
    pub revision: i64,
    /// Why its schedule cannot be used, if it cannot: such a job never fires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// A program declares this job at its start, and somebody has changed it here since: these fields are not what the
    /// program says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overridden: Vec<String>,
    /// What the caller may do with it.
    pub rights: Vec<super::Right>,
}

/// What to do with fires that could not be sent in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Misfire {
    /// Send none; each is recorded as skipped.
    #[default]
    Skip,
    /// Send one for all of them.
    FireOnce,
    /// Send each of the last while, oldest first.
    FireAll {
        /// How far back.
        window_ms: u64,
        /// How many at most.
        max: u32,
    },
}

/// What happens to a fire while another run of its job is going on anywhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// It is sent all the same.
    #[default]
    Allow,
    /// It is recorded as blocked.
    Skip,
    /// It waits for the other to end.
    Wait,
    /// The other is ended, and it takes its place.
    Replace,
}

/// How often, and how long after a failure, a run is tried again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// How many times, beyond the first.
    #[serde(default)]
    pub count: u32,
    /// How long after the end of the one before.
    #[serde(default)]
    pub backoff: Backoff,
}

/// How the wait grows from one retry to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Backoff {
    /// Always the same.
    Fixed {
        /// That wait.
        delay_ms: u64,
    },
    /// Doubles each time.
    Exponential {
        /// Before the first retry.
        first_ms: u64,
        /// Never longer.
        max_ms: u64,
    },
}

impl Default for Backoff {
    fn default() -> Backoff {
        Backoff::Fixed { delay_ms: 0 }
    }
}

/// What to do when a request was, or may have been, sent and no answer came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// Never send again.
    AtMostOnce,
    /// Ask the executor, and send again if it does not know the run.
    #[default]
    Probe,
    /// Send again until somebody takes it.
    AtLeastOnce,
}

/// How often the children of a job in shards run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ChildrenMode {
    /// Once, when every shard has succeeded.
    #[default]
    Once,
    /// Once for each shard that succeeds.
    Each,
}

/// A script to be saved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ScriptBody {
    /// What runs it.
    pub language: ScriptLanguage,
    /// What it says.
    pub source: String,
    /// What is new about it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub remark: String,
}

/// A script as it once was saved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ScriptVersion {
    /// Its number.
    pub id: i64,
    /// What ran it; none for a language that we do not know.
    pub language: Option<ScriptLanguage>,
    /// What it said.
    pub source: String,
    /// What was said about the change.
    pub remark: String,
    /// When it was saved.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub saved_at: Option<Instant>,
}

/// The languages of scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ScriptLanguage {
    /// Bash.
    Shell,
    /// Python 3.
    Python,
    /// Python 2.
    Python2,
    /// PHP.
    Php,
    /// JavaScript in Node.
    Node,
    /// PowerShell.
    #[serde(rename = "powershell")]
    PowerShell,
    /// Java's Groovy, which only executors in Java can run.
    Groovy,
}

/// Asks for a run now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Trigger {
    /// Parameter for this run instead of the job's, at most 16 000 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 16_000))]
    pub param: Option<String>,
    /// On this executor, one of the app's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
}

/// The run that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Triggered {
    /// Its number; where the job runs in shards, that of the first.
    pub run: i64,
}

/// The same for many jobs at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Bulk {
    /// Which jobs, by number; at most 1000.
    pub jobs: Vec<i64>,
    /// What to do with each.
    pub action: BulkAction,
    /// For a move: to which app.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app: Option<String>,
}

/// What can be done with many jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum BulkAction {
    /// Start them.
    Start,
    /// Stop them.
    Stop,
    /// Delete them.
    Delete,
    /// Give them to another app.
    Move,
}

/// What came of it for one of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BulkResult {
    /// Which job.
    pub job: i64,
    /// Why it was not done; absent if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<super::Problem>,
}

/// An edit of a job, from the audit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobChange {
    /// When.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub at: Instant,
    /// Who.
    pub by: String,
    /// What was done: `job.create`, `job.edit`, `job.start`, ….
    pub action: String,
    /// How the job was before,
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    pub before: Option<serde_json::Value>,
    /// and after.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    pub after: Option<serde_json::Value>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn first() -> String {
    "FIRST".into()
}

fn serial() -> String {
    "SERIAL_EXECUTION".into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALLEST: &str =
        r#"{"app":"orders","name":"Sync","schedule":{"kind":"cron","expression":"0 * * * * ?"}}"#;

    #[test]
    fn what_is_left_out_has_its_default_and_what_is_unknown_is_refused() {
        let body: JobBody = serde_json::from_str(SMALLEST).unwrap();
        assert_eq!((body.route.as_str(), body.block.as_str()), ("FIRST", "SERIAL_EXECUTION"));
        assert_eq!((body.misfire, body.delivery, body.enabled), (Misfire::Skip, Delivery::Probe, None));
        assert_eq!(JobBody::new("orders", "Sync", body.schedule.clone()), body);
        let misspelt = SMALLEST.replace("name", "nmae");
        assert!(serde_json::from_str::<JobBody>(&misspelt).unwrap_err().to_string().contains("nmae"));
    }

    #[test]
    fn a_view_is_the_body_and_more_in_one_object() {
        let view = JobView {
            id: 7,
            key: Some("orders/sync".into()),
            body: serde_json::from_str(SMALLEST).unwrap(),
            schedule_english: "every minute".into(),
            schedule_chinese: "每分钟".into(),
            next_fire_at: Some(Instant::from_millis(60_000)),
            last_fire_at: None,
            created_at: None,
            updated_at: None,
            revision: 1,
            problem: None,
            overridden: Vec::new(),
            rights: vec![super::super::Right::View],
        };
        let json = serde_json::to_value(&view).unwrap();
        assert_eq!(json["app"], "orders");
        assert_eq!(serde_json::from_value::<JobView>(json).unwrap(), view);
    }
}
