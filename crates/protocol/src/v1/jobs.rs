//! Jobs: `/v1/jobs`.

use serde::{Deserialize, Serialize};

use super::{
    Block, ChildrenMode, Delivery, Instant, JobWorkdays, Misfire, Named, Overlap, Retry, Route, Schedule,
    ScriptLanguage, WorkflowBody,
};

/// Definition of a job, as sent to `PUT /v1/jobs/{job}`. An omitted field has its default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct JobBody {
    /// Name of the app whose executors run the job.
    pub app: String,
    /// Display name.
    pub name: String,
    /// Schedule of the job.
    pub schedule: Schedule,
    /// Work calendar that keeps, skips or moves the times of a cron expression or timetable. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workdays: Option<JobWorkdays>,
    /// Handler to call. Omit it for a script job and for a workflow.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub handler: String,
    /// Parameter for the handler or script, at most 16 000 characters.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[cfg_attr(feature = "openapi", schema(max_length = 16_000))]
    pub param: String,
    /// Script that the executor runs instead of a handler. Requires the right `script`. If omitted when editing,
    /// the current script is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<ScriptBody>,
    /// Steps that a run of the job consists of, instead of a handler or script. If omitted when editing, and no handler
    /// or script is given, the current workflow is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<WorkflowBody>,
    /// Whether the schedule is active. If omitted: false for a new job, unchanged for an existing one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// The schedule fires only from this time on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub valid_from: Option<Instant>,
    /// The schedule fires only up to this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub valid_until: Option<Instant>,
    /// Maximum number of fires of the schedule, from 1; then the job is stopped. Manual triggers, retries and skipped
    /// fires do not count. A start after the last one counts anew. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_fires: Option<u64>,
    /// Maximum random delay of each fire after its scheduled time, in milliseconds. Default: 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub jitter_ms: u64,
    /// Misfire policy: how to handle fires that could not be dispatched in time.
    #[serde(default)]
    pub misfire: Misfire,
    /// Overlap policy: whether runs of the job may overlap, across all executors.
    #[serde(default)]
    pub overlap: Overlap,
    /// Retry policy of failed runs.
    #[serde(default)]
    pub retry: Retry,
    /// Delivery policy: how to continue when it is unknown whether an executor received a request.
    #[serde(default)]
    pub delivery: Delivery,
    /// Timeout of a run in milliseconds; a run that takes longer is stopped and ends as `timed_out`. Default: no
    /// timeout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Routing strategy, which selects the executor. A job that another program stored may have a strategy of its
    /// own, which is returned as stored and has to be replaced before the job can run.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Route))]
    pub route: Named<Route>,
    /// Block strategy, for a new run while another run of the job is active on the same executor. A job that another
    /// program stored may have a strategy of its own, which is returned as stored.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Block))]
    pub block: Named<Block>,
    /// Keys of the jobs to run when this one succeeds; ids for jobs without a key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<String>,
    /// How often child jobs run if this job runs in shards.
    #[serde(default)]
    pub children_mode: ChildrenMode,
    /// Whether a failed run raises an alert.
    #[serde(default)]
    pub alert: bool,
    /// Mail addresses that are notified of alerts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alert_to: Vec<String>,
    /// Person responsible for the job.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub author: String,
    /// Tags to search by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

impl JobBody {
    /// Creates a job with defaults and without a handler or script.
    pub fn new(app: impl Into<String>, name: impl Into<String>, schedule: Schedule) -> JobBody {
        JobBody {
            app: app.into(),
            name: name.into(),
            schedule,
            workdays: None,
            handler: String::new(),
            param: String::new(),
            script: None,
            workflow: None,
            enabled: None,
            valid_from: None,
            valid_until: None,
            max_fires: None,
            jitter_ms: 0,
            misfire: Misfire::default(),
            overlap: Overlap::default(),
            retry: Retry::default(),
            delivery: Delivery::default(),
            timeout_ms: None,
            route: Named::default(),
            block: Named::default(),
            children: Vec::new(),
            children_mode: ChildrenMode::default(),
            alert: false,
            alert_to: Vec::new(),
            author: String::new(),
            tags: Vec::new(),
        }
    }
}

/// A job. Its `ETag` is its revision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobView {
    /// Id of the job; never changes.
    pub id: i64,
    /// Key that identifies the job for programs. Jobs created elsewhere may have none and are identified by their
    /// id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Definition of the job.
    #[serde(flatten)]
    pub body: JobBody,
    /// Description of the schedule, in the language of the header `Accept-Language`: English (default) or Chinese.
    pub schedule_text: String,
    /// Number of fires that count for `max_fires`; absent without a maximum. A job that has reached it is stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fires: Option<u64>,
    /// Next scheduled time, if there is one.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime, required))]
    pub next_fire_at: Option<Instant>,
    /// Last scheduled time for which the job fired.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime, required))]
    pub last_fire_at: Option<Instant>,
    /// Creation time.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime, required))]
    pub created_at: Option<Instant>,
    /// Time of the last change.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime, required))]
    pub updated_at: Option<Instant>,
    /// Revision of the definition; incremented by each edit.
    pub revision: i64,
    /// Why the schedule is invalid; absent if it is valid. A job with an invalid schedule never fires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Fields that a user has changed since a program declared this job at its start; they differ from the
    /// declaration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overridden: Vec<String>,
    /// Rights of the caller for this job.
    pub rights: Vec<super::Right>,
}

/// A script to save.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ScriptBody {
    /// Language of the script.
    pub language: ScriptLanguage,
    /// Source code.
    pub source: String,
    /// Description of the change.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub remark: String,
}

/// A saved version of a script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ScriptVersion {
    /// Id of the version.
    pub id: i64,
    /// Language of the script; absent if it is unknown to Tickwright.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub language: Option<ScriptLanguage>,
    /// Source code.
    pub source: String,
    /// Description of the change.
    pub remark: String,
    /// Time when it was saved.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime, required))]
    pub saved_at: Option<Instant>,
}

/// Request for a run now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Trigger {
    /// Parameter for this run instead of the job's, at most 16 000 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 16_000))]
    pub param: Option<String>,
    /// Executor to run on; must be one of the app's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
}

/// The run that was created.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Triggered {
    /// Id of the run; the first one if the job runs in shards.
    pub run: i64,
}

/// Request to create or replace many jobs, by key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct PutJobs {
    /// Jobs to create or replace, at most 1000. A job may be a child of another one of the same request.
    pub jobs: Vec<KeyedJob>,
    /// Whether no job is changed if one of them is rejected. Default: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub atomic: bool,
    /// Whether the request is only checked: the response is the same, but no job is changed. Default: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

/// A job to create or replace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct KeyedJob {
    /// Key of the job, at most 190 characters.
    pub key: String,
    /// Definition of the job.
    pub job: JobBody,
    /// Required revision, as `If-Match`: the job is rejected if it has another one, or does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<i64>,
    /// Whether the job is rejected if it already exists, as `If-None-Match: *`. Default: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub create_only: bool,
}

/// Result for one job of `PUT /v1/jobs`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PutResult {
    /// Key of the job.
    pub key: String,
    /// Result of the request for this job.
    pub outcome: PutOutcome,
    /// Id of the job; absent if it does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<i64>,
    /// Revision of the job afterwards; absent if it does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<i64>,
    /// Names of the fields that changed in an existing job.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
    /// Why the job was rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<super::Problem>,
}

/// Result for one job of `PUT /v1/jobs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum PutOutcome {
    /// The job is new.
    Created,
    /// The definition of the job was replaced.
    Replaced,
    /// The job has this definition already.
    Unchanged,
    /// The job was not changed, for the reason in `problem`.
    Rejected,
}

/// Request for one action on many jobs: a list of them, or all that match a filter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Bulk {
    /// Ids of the jobs. Omit it if there is a `filter`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<Vec<i64>>,
    /// Filter for the jobs, as in `GET /v1/jobs`. Omit it if `jobs` lists them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<JobFilter>,
    /// Action for each of them.
    pub action: BulkAction,
    /// Name of the target app of a `move`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app: Option<String>,
}

/// Filter for jobs: those that match all given fields. An empty filter matches all jobs that the caller may view.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct JobFilter {
    /// Name of an app.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app: Option<String>,
    /// `true`: started jobs only; `false`: stopped jobs only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Text that the name, handler, author or key contains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Tag of the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// `true`: workflows only; `false`: other jobs only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<bool>,
    /// Text that the handler contains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handler: Option<String>,
    /// Text that the author contains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
}

/// Action on many jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum BulkAction {
    /// Start the jobs.
    Start,
    /// Stop the jobs.
    Stop,
    /// Delete the jobs.
    Delete,
    /// Move the jobs to another app.
    Move,
}

/// Result of the action for one job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BulkResult {
    /// Id of the job.
    pub job: i64,
    /// Why the action failed; absent if it succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<super::Problem>,
}

/// A change of a job, from the audit log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobChange {
    /// Time of the change.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub at: Instant,
    /// User or API key that made it.
    pub by: String,
    /// Name of the action, for example `job.create`, `job.put` or `job.start`.
    pub action: String,
    /// Definition of the job before.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>, required))]
    pub before: Option<serde_json::Value>,
    /// Definition of the job afterwards.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>, required))]
    pub after: Option<serde_json::Value>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALLEST: &str =
        r#"{"app":"orders","name":"Sync","schedule":{"kind":"cron","expression":"0 * * * * ?"}}"#;

    #[test]
    fn what_is_left_out_has_its_default_and_what_is_unknown_is_refused() {
        let body: JobBody = serde_json::from_str(SMALLEST).unwrap();
        assert_eq!((body.route.word(), body.block.word()), ("first", "serial"));
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
            schedule_text: "every minute".into(),
            next_fire_at: Some(Instant::from_millis(60_000)),
            last_fire_at: None,
            created_at: None,
            updated_at: None,
            revision: 1,
            fires: None,
            problem: None,
            overridden: Vec::new(),
            rights: vec![super::super::Right::View],
        };
        let json = serde_json::to_value(&view).unwrap();
        assert_eq!(json["app"], "orders");
        assert_eq!(serde_json::from_value::<JobView>(json).unwrap(), view);
    }
}
