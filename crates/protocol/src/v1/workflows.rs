//! Workflows: jobs that consist of steps, and the steps of their runs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    Delivery, DependsNeed, IfFailed, IfMissing, InputType, Instant, OnError, Phase, Retry, RetryFrom, Route,
    RunState, RunView, ScriptBody, StepState,
};

/// Steps that each run of a job consists of, instead of a handler or script. A run gets its inputs as its parameter: a
/// JSON object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct WorkflowBody {
    /// Inputs of a run, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<String, WorkflowInput>,
    /// Steps, at most 10 000. Empty in lists of jobs.
    pub steps: Vec<StepBody>,
    /// What happens to the other steps when a step fails.
    #[serde(default)]
    pub on_error: OnError,
    /// Where a retry of a failed run begins. The number of retries is that of the job.
    #[serde(default, skip_serializing_if = "is_default")]
    pub retry_from: RetryFrom,
    /// Timeout of a run in milliseconds. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Timeout of the phase `finally` in milliseconds. Default: 600 000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finally_timeout_ms: Option<u64>,
    /// Output of a run: any JSON value, in which `${{ … }}` are expressions. Default: none.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub output: Value,
    /// Days from the date of a run to its business date, for example -1. Default: 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub business_days: i32,
    /// Description of the change, for the list of versions. Responses have it there only.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub remark: String,
}

fn is_zero(days: &i32) -> bool {
    *days == 0
}

/// A version of the workflow of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WorkflowVersion {
    /// Number of the version, from 1. The greatest one is the current version.
    pub version: u32,
    /// User who saved it.
    pub by: String,
    /// Description of the change.
    pub remark: String,
    /// Time when it was saved.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub saved_at: Instant,
    /// The newest earlier version with the same definition, for example the one that was restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_as: Option<u32>,
    /// The definition. Absent in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<WorkflowBody>,
    /// The definition as YAML. Absent in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// Request to restore a version of a workflow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct RestoreVersion {
    /// Description of the change.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub remark: String,
}

/// An input of a workflow run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct WorkflowInput {
    /// Type of its values.
    #[serde(rename = "type")]
    pub kind: InputType,
    /// Value of a run that sets none. Without it, each run must set a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// The only allowed values. Default: all values of the type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub one_of: Vec<Value>,
}

/// A step of a workflow. It has exactly one of `job`, `handler`, `script`, `http`, `command`, `workflow`,
/// `depends`, `approval` and `wait_ms`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct StepBody {
    /// Name, unique in the workflow: lower-case letters, digits and `_`.
    pub name: String,
    /// Phase that it belongs to.
    #[serde(default, skip_serializing_if = "is_default")]
    pub phase: Phase,
    /// Steps that have to end before it opens. Without any, it opens when its phase begins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<Need>,
    /// Which ends of its needs open it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub when: JoinRule,
    /// Number of connections that open it, instead of `when`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<u32>,
    /// Condition, an expression: a step whose condition is false is skipped.
    #[serde(default, rename = "if", skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// Key of the job that it runs; `id:` and the number of a job without a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// Handler that it calls, without a job of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handler: Option<String>,
    /// Script that it runs, without a job of its own. Requires the right `script`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<ScriptBody>,
    /// Request that an agent of its app sends, without a job of its own. Requires an agent that may call the URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<HttpBody>,
    /// Program that an agent of its app starts, and its arguments; `${{ … }}` are expressions. Requires an agent that may
    /// start the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// App whose executors run its handler, script, request or program. Default: the app of the workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app: Option<String>,
    /// Retry policy of its handler, script, request or program. Default: no retries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// Delivery policy of its handler, script, request or program. Default: that of a new job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<Delivery>,
    /// Routing strategy of its handler, script, request or program. Default: that of a new job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<Route>,
    /// Key of the workflow that it runs. It ends with that run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    /// Parameter of the run instead of the job's: a text, in which `${{ … }}` are expressions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub param: Option<String>,
    /// Parameter of the run as a JSON object, or the inputs of the workflow. `${{ … }}` are expressions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with: Option<Value>,
    /// Asks people, and waits for their decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalBody>,
    /// Waits until runs of another job or workflow have succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depends: Option<DependsBody>,
    /// Waits for this many milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
    /// Whether a failure counts as a success for the steps that need it, and for the run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_failure: bool,
    /// Timeout in milliseconds, retries included. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Connection to a step that has to end first: its name, or an object with a condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum Need {
    /// Name of a step. The connection is always taken.
    Step(String),
    /// A connection with a condition.
    Branch(NeedBranch),
}

/// Connection with a condition: exactly one of `if` and `else`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NeedBranch {
    /// Name of the step.
    pub step: String,
    /// The connection is taken if this expression is true.
    #[serde(default, rename = "if", skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// The connection is taken if none of the conditions at the step's other connections is true.
    #[serde(default, rename = "else", skip_serializing_if = "std::ops::Not::not")]
    pub otherwise: bool,
}

/// Which ends of its needs open a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum JoinRule {
    /// All have ended, none has failed, and at least one connection is taken.
    #[default]
    Joined,
    /// All have succeeded, and all connections are taken.
    AllSucceeded,
    /// All have ended, however.
    AllEnded,
    /// The first connection is taken.
    AnySucceeded,
    /// The first one has failed.
    AnyFailed,
}

/// Runs of another job or workflow that a step waits for. The newest run of each scheduled time decides, whatever started
/// it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct DependsBody {
    /// Key of the job or workflow; `id:` and the number of a job without a key.
    pub on: String,
    /// Its scheduled times: `same` for those of the date of the run, `previous` for the last one before the run, or days
    /// before the date of the run, for example `-1d` or `-7d..-1d`. For a job without scheduled times of its own, each day
    /// needs a run. Default: `same`.
    #[serde(default = "same", skip_serializing_if = "is_same")]
    pub date: String,
    /// How many of the scheduled times must have succeeded.
    #[serde(default, skip_serializing_if = "is_default")]
    pub need: DependsNeed,
    /// What happens while a scheduled time has no run.
    #[serde(default, skip_serializing_if = "is_default")]
    pub if_missing: IfMissing,
    /// What happens when the newest run has failed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub on_failed: IfFailed,
    /// Time in milliseconds after which the step fails. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

fn same() -> String {
    "same".to_owned()
}

fn is_same(date: &String) -> bool {
    date == "same"
}

/// Request of a step. In all texts, `${{ … }}` are expressions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct HttpBody {
    /// URL, for example `https://hooks.example.com/board`.
    pub url: String,
    /// Method. Default: `POST`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Headers by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Body: a text, or any other JSON value, which is sent as JSON.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub body: Value,
    /// Time for the response in milliseconds. Default: 3 000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// Question to people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ApprovalBody {
    /// The question: a text, in which `${{ … }}` are expressions.
    pub ask: String,
    /// Names of the users who may decide. Default: all with the right to operate the workflow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvers: Vec<String>,
    /// Whether the user who started or resumed the run may decide. Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_starter: Option<bool>,
    /// Time in milliseconds after which it is refused. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// A workflow run with its steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WorkflowRunView {
    /// Id of the run.
    pub run: i64,
    /// Date of the run: the day of its scheduled time in the zone of the job.
    pub date: String,
    /// Attempt number, from 1. Retries and resumptions count.
    pub attempt: u32,
    /// Id of the run that it resumes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed_of: Option<i64>,
    /// Id of the run that resumes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed_by: Option<i64>,
    /// Inputs of the run.
    pub inputs: Value,
    /// Current phase.
    pub phase: Phase,
    /// Whether no steps open until the run is continued.
    pub paused: bool,
    /// Time when it began.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub begun_at: Instant,
    /// Time when it ended.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime, required))]
    pub ended_at: Option<Instant>,
    /// Steps in the order of the definition.
    pub steps: Vec<StepView>,
}

/// A step of a workflow run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StepView {
    /// Name of the step.
    pub name: String,
    /// Phase that it belongs to.
    pub phase: Phase,
    /// Names of the steps that it needs.
    pub needs: Vec<String>,
    /// Whether the connection to each of `needs` was taken, in the same order. `null`: not yet known.
    pub taken: Vec<Option<bool>>,
    /// State of the step.
    pub state: StepState,
    /// Whether it succeeded in a run that this one resumes, and was kept.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kept: bool,
    /// First run of the step, if it runs a job or a workflow.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub run: Option<i64>,
    /// Time when it opened.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime, required))]
    pub opened_at: Option<Instant>,
    /// Time when it ended.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime, required))]
    pub ended_at: Option<Instant>,
    /// Time when it ends by itself: the end of a wait, or a timeout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub due_at: Option<Instant>,
    /// Question of an approval, or reason of a failure.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub message: Option<String>,
    /// Decision about an approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<DecisionView>,
    /// Output, if the step has succeeded. Only in the response for a single step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// Runs of the step: its attempts and shards, the first one first, at most 100. Only in the response for a single
    /// step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<RunView>,
}

/// Decision about a step that asks people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DecisionView {
    /// Whether the step may go on.
    pub approved: bool,
    /// Name of the user who decided.
    pub by: String,
    /// Remark of the user.
    pub remark: String,
}

/// Decision to make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Decision {
    /// Whether the step may go on.
    pub approved: bool,
    /// Remark, at most 1 000 characters.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[cfg_attr(feature = "openapi", schema(max_length = 1_000))]
    pub remark: String,
}

/// Request to resume a workflow run that has ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Resume {
    /// Names of steps that run again although they succeeded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub again: Vec<String>,
    /// Outputs of failed steps, by name: these steps count as succeeded and do not run again.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<String, Value>,
    /// Definition that the new run uses.
    #[serde(default, skip_serializing_if = "is_default")]
    pub version: ResumeVersion,
    /// Whether to return only what would happen.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

/// Definition that a resumed run uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ResumeVersion {
    /// The definition of the run that is resumed.
    #[default]
    Same,
    /// The current definition of the workflow. A step whose definition has changed runs again.
    Latest,
}

/// Steps of a resumed run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Resumed {
    /// Id of the new run; absent with `dry_run`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<i64>,
    /// Names of the steps that are kept: they have succeeded, and do not run again.
    pub kept: Vec<String>,
    /// Names of all other steps: they run, unless their conditions skip them.
    pub to_run: Vec<String>,
}

/// States of the steps of a workflow's last runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WorkflowGrid {
    /// Names of the steps: those of the newest run in the order of its definition, then those that only older runs have.
    pub steps: Vec<String>,
    /// The runs, newest first.
    pub runs: Vec<GridRun>,
    /// Value of `before` for the runs before these, if there are any.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub next: Option<i64>,
}

/// A workflow run in a grid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct GridRun {
    /// Id of the run.
    pub id: i64,
    /// Scheduled time.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub scheduled_at: Instant,
    /// State of the run.
    pub state: RunState,
    /// Duration in milliseconds, if it has ended.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub took_ms: Option<i64>,
    /// State of each of `steps`, one character each: `B` blocked, `H` held, `O` open, `W` waiting, `S` succeeded, `F`
    /// failed, `K` skipped, `U` unreached, `C` cancelled, `-` no such step in this run.
    pub cells: String,
}

/// Definition to check: exactly one of `text` and `workflow`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct WorkflowCheck {
    /// The definition as YAML or JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<WorkflowBody>,
}

/// A checked definition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CheckedWorkflow {
    /// The definition as YAML: that of the request, if it has one.
    pub text: String,
    /// The definition; absent if the text cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<WorkflowBody>,
    /// Problems, at most 100. Without any, the definition can be saved.
    pub problems: Vec<WorkflowProblem>,
}

/// A problem of a definition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WorkflowProblem {
    /// Path of the field, for example `steps.check.needs[0].if`; empty if the text cannot be read.
    pub path: String,
    /// What is wrong, and what to do.
    pub detail: String,
    /// Line in the text, from 1, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// Column in that line, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u64>,
}
