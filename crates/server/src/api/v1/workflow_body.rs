//! Converts workflows to and from API types.

use std::collections::BTreeMap;
use std::time::Duration;

use engine::JobId;
use protocol::v1::{
    ApprovalBody, FieldProblem, JoinRule, Need, NeedBranch, StepBody, WorkflowBody, WorkflowInput,
};
use workflow::definition::{self, Action, Branch, FINALLY_TIMEOUT, Join, Param, Workflow};
use workflow::{Graph, Problem};

use super::authorise::BY_NUMBER;

/// A job that a step names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepJob {
    /// Id of the job.
    pub id: JobId,
    /// Whether the job is a workflow.
    pub is_workflow: bool,
}

/// Names of all jobs that the steps of a workflow run.
pub fn job_names(body: &WorkflowBody) -> impl Iterator<Item = &String> {
    body.steps.iter().flat_map(|step| step.job.iter().chain(&step.workflow))
}

// ── From API types ──────────────────────────────────────────────────────────────────────────────────────────────

/// Converts and checks a workflow. `jobs` are those of the jobs that its steps name which the caller may use.
pub fn definition(
    body: &WorkflowBody,
    jobs: &BTreeMap<String, StepJob>,
) -> Result<Workflow, Vec<FieldProblem>> {
    let mut problems = Vec::new();
    let mut steps = Vec::with_capacity(body.steps.len());
    for (position, step) in body.steps.iter().enumerate() {
        match step_of(step, jobs) {
            Ok(step) => steps.push(step),
            Err((field, detail)) => {
                let name =
                    if step.name.is_empty() { format!("[{position}]") } else { format!(".{}", step.name) };
                problems.push(FieldProblem { field: format!("workflow.steps{name}{field}"), detail });
            }
        }
        if problems.len() >= workflow::PROBLEMS_MAX {
            break;
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let input = |(name, input): (&String, &WorkflowInput)| {
        let WorkflowInput { kind, default, one_of } = input.clone();
        (name.clone(), definition::Input { kind, default, one_of })
    };
    let definition = Workflow {
        inputs: body.inputs.iter().map(input).collect(),
        steps,
        on_error: body.on_error,
        timeout: body.timeout_ms.map(Duration::from_millis),
        finally_timeout: body.finally_timeout_ms.map_or(FINALLY_TIMEOUT, Duration::from_millis),
        output: body.output.clone(),
        business_days: body.business_days,
        ..Workflow::default()
    };
    let problem =
        |Problem { path, message }| FieldProblem { field: format!("workflow.{path}"), detail: message };
    match Graph::new(definition) {
        Ok(graph) => Ok(graph.definition().clone()),
        Err(problems) => Err(problems.into_iter().map(problem).collect()),
    }
}

/// Problems of a workflow, as if all jobs existed that its steps name.
pub fn problems(body: &WorkflowBody) -> Vec<FieldProblem> {
    let job = |is_workflow| StepJob { id: JobId(1), is_workflow };
    let jobs = body.steps.iter().filter_map(|step| Some((step.job.clone()?, job(false))));
    let workflows = body.steps.iter().filter_map(|step| Some((step.workflow.clone()?, job(true))));
    definition(body, &jobs.chain(workflows).collect()).err().unwrap_or_default()
}

type Wrong = (&'static str, String);

fn step_of(body: &StepBody, jobs: &BTreeMap<String, StepJob>) -> Result<definition::Step, Wrong> {
    let needs = body.needs.iter().map(need_of).collect::<Result<_, _>>()?;
    let join = match (body.at_least, body.when) {
        (Some(count), JoinRule::Joined) => Join::AtLeast(count),
        (Some(_), _) => return Err((".at_least", "must not be set together with `when`".into())),
        (None, JoinRule::Joined) => Join::Joined,
        (None, JoinRule::AllSucceeded) => Join::AllSucceeded,
        (None, JoinRule::AllEnded) => Join::AllEnded,
        (None, JoinRule::AnySucceeded) => Join::AnySucceeded,
        (None, JoinRule::AnyFailed) => Join::AnyFailed,
    };
    Ok(definition::Step {
        name: body.name.clone(),
        phase: body.phase,
        needs,
        join,
        condition: body.condition.clone(),
        action: action_of(body, jobs)?,
        allow_failure: body.allow_failure,
        timeout: body.timeout_ms.map(Duration::from_millis),
    })
}

fn need_of(need: &Need) -> Result<definition::Need, Wrong> {
    let (step, branch) = match need {
        Need::Step(step) => (step, Branch::Always),
        Need::Branch(NeedBranch { step, condition: Some(condition), otherwise: false }) => {
            (step, Branch::If(condition.clone()))
        }
        Need::Branch(NeedBranch { step, condition: None, otherwise: true }) => (step, Branch::Else),
        Need::Branch(NeedBranch { step, condition: None, otherwise: false }) => (step, Branch::Always),
        Need::Branch(_) => return Err((".needs", "a connection has either `if` or `else`".into())),
    };
    Ok(definition::Need { step: step.clone(), branch })
}

fn action_of(body: &StepBody, jobs: &BTreeMap<String, StepJob>) -> Result<Action, Wrong> {
    let find = |field: &'static str, name: &String, wants_workflow: bool| {
        let shown: String = name.chars().take(60).collect();
        match jobs.get(name) {
            None => Err((field, format!("the job `{shown}` does not exist"))),
            Some(job) if job.is_workflow == wants_workflow => Ok(job.id.0),
            Some(_) if wants_workflow => Err((field, format!("`{shown}` is no workflow; name it as `job`"))),
            Some(_) => Err((field, format!("`{shown}` is a workflow; name it as `workflow`"))),
        }
    };
    let action = match body {
        StepBody { job: Some(job), workflow: None, approval: None, wait_ms: None, .. } => {
            let param = match (&body.param, &body.with) {
                (None, None) => Param::Own,
                (Some(text), None) => Param::Text(text.clone()),
                (None, Some(with)) => Param::With(with.clone()),
                (Some(_), Some(_)) => {
                    return Err((".with", "must not be set together with `param`".into()));
                }
            };
            Action::Job { job: find(".job", job, false)?, param }
        }
        StepBody { job: None, workflow: Some(name), approval: None, wait_ms: None, param: None, .. } => {
            let inputs = match &body.with {
                None => BTreeMap::new(),
                Some(serde_json::Value::Object(fields)) => fields.clone().into_iter().collect(),
                Some(_) => return Err((".with", "must be an object with the inputs".into())),
            };
            Action::Workflow { job: find(".workflow", name, true)?, inputs }
        }
        StepBody { job: None, workflow: None, approval: Some(asked), wait_ms: None, .. } => {
            let ApprovalBody { ask, approvers, timeout_ms } = asked.clone();
            let timeout = timeout_ms.map(Duration::from_millis);
            Action::Approval { ask, approvers, by_starter: true, timeout }
        }
        StepBody { job: None, workflow: None, approval: None, wait_ms: Some(wait), .. } => {
            Action::Wait { duration: Duration::from_millis(*wait) }
        }
        _ => {
            let why = "must have exactly one of `job`, `workflow`, `approval` and `wait_ms`";
            return Err(("", why.into()));
        }
    };
    let takes_param = matches!(action, Action::Job { .. } | Action::Workflow { .. });
    if !takes_param && (body.param.is_some() || body.with.is_some()) {
        return Err((".with", "only a step with a job or workflow has a parameter".into()));
    }
    Ok(action)
}

// ── To API types ────────────────────────────────────────────────────────────────────────────────────────────────

/// Ids of all jobs that the steps of a workflow run.
pub fn job_ids(definition: &Workflow) -> impl Iterator<Item = JobId> {
    definition.steps.iter().filter_map(|step| match step.action {
        Action::Job { job, .. } | Action::Workflow { job, .. } => Some(JobId(job)),
        Action::Approval { .. } | Action::Wait { .. } => None,
    })
}

/// Converts a workflow. Jobs without a key in `keys` are named by their ids.
pub fn body(definition: &Workflow, keys: &BTreeMap<JobId, String>) -> WorkflowBody {
    let input = |(name, input): (&String, &definition::Input)| {
        let definition::Input { kind, default, one_of } = input.clone();
        (name.clone(), WorkflowInput { kind, default, one_of })
    };
    let finally_timeout = definition.finally_timeout;
    WorkflowBody {
        inputs: definition.inputs.iter().map(input).collect(),
        steps: definition.steps.iter().map(|step| step_body(step, keys)).collect(),
        on_error: definition.on_error,
        timeout_ms: definition.timeout.map(millis),
        finally_timeout_ms: (finally_timeout != FINALLY_TIMEOUT).then(|| millis(finally_timeout)),
        output: definition.output.clone(),
        business_days: definition.business_days,
    }
}

fn step_body(step: &definition::Step, keys: &BTreeMap<JobId, String>) -> StepBody {
    let key = |job: i64| keys.get(&JobId(job)).cloned().unwrap_or_else(|| format!("{BY_NUMBER}{job}"));
    let mut body = StepBody {
        name: step.name.clone(),
        phase: step.phase,
        needs: step.needs.iter().map(need_body).collect(),
        condition: step.condition.clone(),
        allow_failure: step.allow_failure,
        timeout_ms: step.timeout.map(millis),
        ..StepBody::default()
    };
    match step.join {
        Join::AtLeast(count) => body.at_least = Some(count),
        Join::Joined => body.when = JoinRule::Joined,
        Join::AllSucceeded => body.when = JoinRule::AllSucceeded,
        Join::AllEnded => body.when = JoinRule::AllEnded,
        Join::AnySucceeded => body.when = JoinRule::AnySucceeded,
        Join::AnyFailed => body.when = JoinRule::AnyFailed,
    }
    match &step.action {
        Action::Job { job, param } => {
            body.job = Some(key(*job));
            match param {
                Param::Own => {}
                Param::Text(text) => body.param = Some(text.clone()),
                Param::With(with) => body.with = Some(with.clone()),
            }
        }
        Action::Workflow { job, inputs } => {
            body.workflow = Some(key(*job));
            let inputs = serde_json::Value::Object(inputs.clone().into_iter().collect());
            body.with = (inputs != serde_json::json!({})).then_some(inputs);
        }
        Action::Approval { ask, approvers, timeout, .. } => {
            let (ask, approvers, timeout_ms) = (ask.clone(), approvers.clone(), timeout.map(millis));
            body.approval = Some(ApprovalBody { ask, approvers, timeout_ms });
        }
        Action::Wait { duration } => body.wait_ms = Some(millis(*duration)),
    }
    body
}

fn need_body(need: &definition::Need) -> Need {
    let step = need.step.clone();
    match &need.branch {
        Branch::Always => Need::Step(step),
        Branch::If(condition) => {
            Need::Branch(NeedBranch { step, condition: Some(condition.clone()), otherwise: false })
        }
        Branch::Else => Need::Branch(NeedBranch { step, condition: None, otherwise: true }),
    }
}

fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn jobs() -> BTreeMap<String, StepJob> {
        let job = |id, is_workflow| StepJob { id: JobId(id), is_workflow };
        [
            ("extract".to_owned(), job(1, false)),
            ("nightly".to_owned(), job(2, true)),
            ("id:3".to_owned(), job(3, false)),
        ]
        .into()
    }

    fn read(body: serde_json::Value) -> Result<Workflow, Vec<FieldProblem>> {
        definition(&serde_json::from_value(body).unwrap(), &jobs())
    }

    #[test]
    fn a_workflow_is_read_back_as_it_was_written() {
        let written = json!({
            "inputs": { "region": { "type": "text", "default": "all", "one_of": ["all", "north"] } },
            "steps": [
                { "name": "orders", "job": "extract", "with": { "region": "${{ inputs.region }}" }, "timeout_ms": 9 },
                { "name": "users", "job": "id:3", "param": "users" },
                { "name": "sign", "needs": ["orders", "users"], "when": "all_succeeded",
                  "approval": { "ask": "go on?", "approvers": ["ada"], "timeout_ms": 5 } },
                { "name": "full", "needs": [{ "step": "sign", "if": "inputs.region == 'all'" }], "workflow": "nightly",
                  "with": { "day": "${{ run.date }}" } },
                { "name": "part", "needs": [{ "step": "sign", "else": true }], "wait_ms": 7, "allow_failure": true },
                { "name": "either", "needs": ["full", "part"], "at_least": 1, "if": "true", "job": "extract" },
                { "name": "tell", "phase": "on_failure", "job": "extract" },
                { "name": "tidy", "phase": "finally", "job": "extract" }
            ],
            "on_error": "continue",
            "timeout_ms": 1_000,
            "finally_timeout_ms": 2_000,
            "output": { "rows": "${{ steps.orders.output.rows }}" },
            "business_days": -1
        });
        let definition = read(written.clone()).unwrap();
        let keys = [(JobId(1), "extract".to_owned()), (JobId(2), "nightly".to_owned())].into();
        assert_eq!(serde_json::to_value(body(&definition, &keys)).unwrap(), written);
        assert_eq!(job_ids(&definition).count(), 6);
    }

    #[test]
    fn each_problem_has_its_place() {
        let check = |step: serde_json::Value, field: &str, detail: &str| {
            let problems = read(json!({ "steps": [step] })).unwrap_err();
            assert_eq!(problems[0].field, field, "{problems:?}");
            assert!(problems[0].detail.contains(detail), "{problems:?}");
        };
        check(json!({ "name": "a" }), "workflow.steps.a", "exactly one of");
        check(json!({ "name": "a", "job": "extract", "wait_ms": 1 }), "workflow.steps.a", "exactly one of");
        check(json!({ "name": "a", "job": "gone" }), "workflow.steps.a.job", "does not exist");
        check(json!({ "name": "a", "job": "nightly" }), "workflow.steps.a.job", "name it as `workflow`");
        check(json!({ "name": "a", "workflow": "extract" }), "workflow.steps.a.workflow", "is no workflow");
        check(json!({ "name": "a", "wait_ms": 1, "param": "x" }), "workflow.steps.a.with", "has a parameter");
        check(
            json!({ "name": "a", "job": "extract", "param": "x", "with": {} }),
            "workflow.steps.a.with",
            "together",
        );
        let circle = read(json!({ "steps": [
            { "name": "a", "needs": ["b"], "job": "extract" },
            { "name": "b", "needs": ["a"], "job": "extract" }
        ] }));
        assert!(circle.unwrap_err()[0].field.starts_with("workflow.steps"));
    }
}
