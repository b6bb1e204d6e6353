//! Workflows: jobs that consist of steps, and the steps of their runs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{InputType, Instant, OnError, Phase, StepState};

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
}

fn is_zero(days: &i32) -> bool {
    *days == 0
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

/// A step of a workflow. It has exactly one of `job`, `workflow`, `approval` and `wait_ms`.
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
    /// Inputs of the run.
    pub inputs: Value,
    /// Current phase.
    pub phase: Phase,
    /// Whether no steps open until the run is continued.
    pub paused: bool,
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
    /// State of the step.
    pub state: StepState,
    /// First run of the step, if it runs a job or a workflow.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub run: Option<i64>,
    /// Time when it opened.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime, required))]
    pub opened_at: Option<Instant>,
    /// Time when it ended.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime, required))]
    pub ended_at: Option<Instant>,
    /// Question of an approval, or reason of a failure.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub message: Option<String>,
    /// Decision about an approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<DecisionView>,
    /// Output, if the step has succeeded. Only in the response for a single step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
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
