//! Definition of a workflow: its steps and their connections.
//!
//! This is the form that is stored with each version. [`Graph::new`](crate::Graph::new) checks it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
pub use words::{DependsNeed, IfFailed, IfMissing, InputType, OnError, Phase, RetryFrom};

pub use crate::dependency::Dates;

/// Definition of a workflow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workflow {
    /// Inputs of a run, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<String, Input>,
    /// Steps of all phases, in the order in which they are shown.
    pub steps: Vec<Step>,
    /// What happens to the other steps when a step fails.
    #[serde(default)]
    pub on_error: OnError,
    /// Where a retry of a failed run begins. The number of retries is that of the job.
    #[serde(default, skip_serializing_if = "is_default")]
    pub retry_from: RetryFrom,
    /// Timeout of a run. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "millis::optional")]
    pub timeout: Option<Duration>,
    /// Timeout of the phase [`Finally`](Phase::Finally).
    #[serde(default = "default_finally_timeout", with = "millis")]
    pub finally_timeout: Duration,
    /// Output of a run: a template.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub output: Value,
    /// Days from the date of a run to its business date, for example -1.
    #[serde(default)]
    pub business_days: i32,
}

/// Without steps.
impl Default for Workflow {
    fn default() -> Self {
        Workflow {
            inputs: BTreeMap::new(),
            steps: Vec::new(),
            on_error: OnError::default(),
            retry_from: RetryFrom::default(),
            timeout: None,
            finally_timeout: FINALLY_TIMEOUT,
            output: Value::Null,
            business_days: 0,
        }
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn default_finally_timeout() -> Duration {
    FINALLY_TIMEOUT
}

/// Default timeout of the phase [`Finally`](Phase::Finally).
pub const FINALLY_TIMEOUT: Duration = Duration::from_secs(600);

/// An input of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Type of its values.
    #[serde(rename = "type")]
    pub kind: InputType,
    /// Value of a run that sets none: a value or a template. Without it, each run must set a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// The only allowed values; none: all values of the type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub one_of: Vec<Value>,
}

/// A step of a workflow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Name, unique in the workflow: lower-case letters, digits and `_`.
    pub name: String,
    /// Phase that it belongs to.
    #[serde(default)]
    pub phase: Phase,
    /// Steps that have to end before it opens. Without any, it opens when its phase begins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<Need>,
    /// Which ends of its needs open it.
    #[serde(default)]
    pub join: Join,
    /// Condition: a step whose condition is false is skipped.
    #[serde(default, rename = "if", skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// What it does.
    pub action: Action,
    /// Whether a failure counts as a success for the steps that need it, and for the run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_failure: bool,
    /// Timeout, retries included. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "millis::optional")]
    pub timeout: Option<Duration>,
}

impl Step {
    /// Creates a step of the main phase that opens after the steps `needs` have succeeded.
    pub fn new(name: impl Into<String>, needs: &[&str], action: Action) -> Step {
        Step {
            name: name.into(),
            phase: Phase::Main,
            needs: needs.iter().map(|step| Need::on(*step)).collect(),
            join: Join::default(),
            condition: None,
            action,
            allow_failure: false,
            timeout: None,
        }
    }
}

/// Connection to a step that has to end first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Need {
    /// Name of the step.
    pub step: String,
    /// When the connection is taken.
    #[serde(default, skip_serializing_if = "Branch::is_always")]
    pub branch: Branch,
}

impl Need {
    /// A connection that is always taken.
    pub fn on(step: impl Into<String>) -> Need {
        Need { step: step.into(), branch: Branch::Always }
    }
}

/// When a connection is taken, once its step has succeeded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Branch {
    /// Always.
    #[default]
    Always,
    /// If the expression is true.
    If(String),
    /// If none of the conditions at the step's other connections is true.
    Else,
}

impl Branch {
    fn is_always(&self) -> bool {
        *self == Branch::Always
    }
}

/// Which ends of its needs open a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Join {
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
    /// This many connections are taken.
    AtLeast(u32),
}

/// What a step does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Action {
    /// Runs a job.
    Job {
        /// Id of the job.
        job: i64,
        /// Parameter of the run.
        #[serde(default, skip_serializing_if = "Param::is_own")]
        param: Param,
    },
    /// Runs another workflow, and ends with it.
    Workflow {
        /// Id of the workflow's job.
        job: i64,
        /// Inputs of its run: a template for each.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        inputs: BTreeMap<String, Value>,
    },
    /// Waits for the decision of a person.
    Approval {
        /// Question: a template.
        ask: String,
        /// Names of the users who may decide; empty: all with the right to operate the workflow.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        approvers: Vec<String>,
        /// Whether the user who started the run may decide.
        #[serde(default = "yes")]
        by_starter: bool,
        /// Time after which it is refused. Default: none.
        #[serde(default, skip_serializing_if = "Option::is_none", with = "millis::optional")]
        timeout: Option<Duration>,
    },
    /// Waits for a duration.
    Wait {
        /// The duration.
        #[serde(with = "millis")]
        duration: Duration,
    },
    /// Waits until runs of another job have succeeded.
    Depends {
        /// Id of the job.
        job: i64,
        /// Its scheduled times.
        dates: Dates,
        /// How many of them must have succeeded.
        #[serde(default, skip_serializing_if = "is_default")]
        need: DependsNeed,
        /// What happens while one has no run.
        #[serde(default, skip_serializing_if = "is_default")]
        if_missing: IfMissing,
        /// What happens when one has failed.
        #[serde(default, skip_serializing_if = "is_default")]
        on_failed: IfFailed,
        /// Time after which the step fails. Default: none.
        #[serde(default, skip_serializing_if = "Option::is_none", with = "millis::optional")]
        timeout: Option<Duration>,
    },
}

fn yes() -> bool {
    true
}

/// Parameter of a step's run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Param {
    /// The job's own parameter.
    #[default]
    Own,
    /// A text: a template.
    Text(String),
    /// A JSON object, each value a template.
    With(Value),
}

impl Param {
    fn is_own(&self) -> bool {
        *self == Param::Own
    }
}

/// Durations as whole milliseconds.
mod millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
        number(*duration).serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_millis)
    }

    fn number(duration: Duration) -> u64 {
        u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
    }

    pub mod optional {
        use super::*;

        pub fn serialize<S: Serializer>(duration: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
            duration.map(number).serialize(to)
        }

        pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
            Ok(Option::<u64>::deserialize(from)?.map(Duration::from_millis))
        }
    }
}
