//! Form of a workflow in a file: below `workflows:`, with steps by name and durations like `90s`.

use std::collections::BTreeMap;
use std::fmt;

use protocol::v1::{
    ApprovalBody, Delivery, DependsBody, DependsNeed, HttpBody, IfFailed, IfMissing, Instant, JobBody,
    JobWorkdays, JoinRule, Misfire, Need, OnError, Overlap, Phase, Retry, RetryFrom, Route, Schedule,
    ScriptBody, StepBody, WorkflowBody, WorkflowInput,
};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, Visitor};
use serde_json::Value;

use crate::duration;

/// A workflow. Fields that it shares with the API have the same meaning there.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkflowFile {
    app: String,
    name: String,
    #[serde(default = "never")]
    schedule: Schedule,
    #[serde(default)]
    enabled: Option<bool>,
    #[serde(default)]
    valid_from: Option<Instant>,
    #[serde(default)]
    valid_until: Option<Instant>,
    #[serde(default)]
    workdays: Option<JobWorkdays>,
    #[serde(default)]
    max_fires: Option<u64>,
    #[serde(default)]
    misfire: Misfire,
    #[serde(default)]
    overlap: Overlap,
    #[serde(default)]
    retry: Retry,
    #[serde(default)]
    alert: bool,
    #[serde(default)]
    alert_to: Vec<String>,
    #[serde(default)]
    author: String,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    inputs: BTreeMap<String, WorkflowInput>,
    steps: Steps,
    /// Steps of the phase that follows a failure.
    #[serde(default)]
    on_failure: Steps,
    /// Steps of the last phase.
    #[serde(default)]
    finally: Steps,
    #[serde(default)]
    on_error: OnError,
    #[serde(default)]
    retry_from: RetryFrom,
    #[serde(default)]
    timeout: Option<Length>,
    #[serde(default)]
    finally_timeout: Option<Length>,
    #[serde(default)]
    output: Value,
    #[serde(default)]
    business_days: i32,
    #[serde(default)]
    remark: String,
}

fn never() -> Schedule {
    Schedule::None
}

/// Steps by name, in the order of the file.
#[derive(Debug, Default, PartialEq)]
struct Steps(Vec<(String, StepFile)>);

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct StepFile {
    #[serde(default)]
    needs: Vec<Need>,
    #[serde(default)]
    when: JoinRule,
    #[serde(default)]
    at_least: Option<u32>,
    #[serde(default, rename = "if")]
    condition: Option<String>,
    #[serde(default)]
    job: Option<String>,
    #[serde(default)]
    handler: Option<String>,
    #[serde(default)]
    script: Option<ScriptBody>,
    #[serde(default)]
    http: Option<HttpFile>,
    #[serde(default)]
    command: Option<Vec<String>>,
    #[serde(default)]
    app: Option<String>,
    #[serde(default)]
    retry: Option<Retry>,
    #[serde(default)]
    delivery: Option<Delivery>,
    #[serde(default)]
    route: Option<Route>,
    #[serde(default)]
    workflow: Option<String>,
    #[serde(default)]
    param: Option<String>,
    #[serde(default)]
    with: Option<Value>,
    #[serde(default)]
    approval: Option<ApprovalFile>,
    #[serde(default)]
    depends: Option<DependsFile>,
    #[serde(default)]
    wait: Option<Length>,
    #[serde(default)]
    allow_failure: bool,
    #[serde(default)]
    timeout: Option<Length>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct ApprovalFile {
    ask: String,
    #[serde(default)]
    approvers: Vec<String>,
    #[serde(default)]
    by_starter: Option<bool>,
    #[serde(default)]
    timeout: Option<Length>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct DependsFile {
    on: String,
    #[serde(default = "same")]
    date: String,
    #[serde(default)]
    need: DependsNeed,
    #[serde(default)]
    if_missing: IfMissing,
    #[serde(default)]
    on_failed: IfFailed,
    #[serde(default)]
    timeout: Option<Length>,
}

fn same() -> String {
    "same".to_owned()
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct HttpFile {
    url: String,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    body: Value,
    #[serde(default)]
    timeout: Option<Length>,
}

/// A duration like `90s` or `1h30m`, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Length(u64);

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Length, D::Error> {
        let written = String::deserialize(deserializer)?;
        let length = duration::parse(&written).map_err(D::Error::custom)?;
        Ok(Length(u64::try_from(length.as_millis()).unwrap_or(u64::MAX)))
    }
}

impl<'de> Deserialize<'de> for Steps {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Steps, D::Error> {
        struct ByName;

        impl<'de> Visitor<'de> for ByName {
            type Value = Steps;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("steps by name")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Steps, A::Error> {
                let mut steps = Vec::new();
                while let Some(step) = map.next_entry()? {
                    steps.push(step);
                }
                Ok(Steps(steps))
            }
        }

        deserializer.deserialize_map(ByName)
    }
}

impl From<WorkflowFile> for JobBody {
    fn from(file: WorkflowFile) -> JobBody {
        let WorkflowFile { steps, on_failure, finally, .. } = file;
        let phases = [(Phase::Main, steps), (Phase::OnFailure, on_failure), (Phase::Finally, finally)];
        let steps = phases.into_iter().flat_map(|(phase, Steps(steps))| {
            steps.into_iter().map(move |(name, step)| StepBody { name, phase, ..step.into() })
        });
        let workflow = WorkflowBody {
            inputs: file.inputs,
            steps: steps.collect(),
            on_error: file.on_error,
            retry_from: file.retry_from,
            timeout_ms: file.timeout.map(|length| length.0),
            finally_timeout_ms: file.finally_timeout.map(|length| length.0),
            output: file.output,
            business_days: file.business_days,
            remark: file.remark,
        };
        JobBody {
            workflow: Some(workflow),
            enabled: file.enabled,
            valid_from: file.valid_from,
            valid_until: file.valid_until,
            workdays: file.workdays,
            max_fires: file.max_fires,
            misfire: file.misfire,
            overlap: file.overlap,
            retry: file.retry,
            alert: file.alert,
            alert_to: file.alert_to,
            author: file.author,
            tags: file.tags,
            ..JobBody::new(file.app, file.name, file.schedule)
        }
    }
}

impl From<StepFile> for StepBody {
    fn from(file: StepFile) -> StepBody {
        let approval = file.approval.map(|approval| ApprovalBody {
            ask: approval.ask,
            approvers: approval.approvers,
            by_starter: approval.by_starter,
            timeout_ms: approval.timeout.map(|length| length.0),
        });
        let depends = file.depends.map(|depends| DependsBody {
            on: depends.on,
            date: depends.date,
            need: depends.need,
            if_missing: depends.if_missing,
            on_failed: depends.on_failed,
            timeout_ms: depends.timeout.map(|length| length.0),
        });
        let http = file.http.map(|http| HttpBody {
            url: http.url,
            method: http.method,
            headers: http.headers,
            body: http.body,
            timeout_ms: http.timeout.map(|length| length.0),
        });
        StepBody {
            name: String::new(),
            phase: Phase::Main,
            needs: file.needs,
            when: file.when,
            at_least: file.at_least,
            condition: file.condition,
            job: file.job,
            handler: file.handler,
            script: file.script,
            http,
            command: file.command,
            app: file.app,
            retry: file.retry,
            delivery: file.delivery,
            route: file.route,
            workflow: file.workflow,
            param: file.param,
            with: file.with,
            approval,
            depends,
            wait_ms: file.wait.map(|length| length.0),
            allow_failure: file.allow_failure,
            timeout_ms: file.timeout.map(|length| length.0),
        }
    }
}
