//! Converts workflows to and from API types.

use std::collections::BTreeMap;
use std::time::Duration;

use engine::{AppId, JobId};
use protocol::v1::{
    ApprovalBody, Delivery, DependsBody, FieldProblem, HttpBody, JobBody, JoinRule, Named, Need, NeedBranch,
    Retry, Route, Schedule, ScriptBody, StepBody, WorkflowBody, WorkflowInput,
};
use store::JobRow;
use workflow::definition::{self, Action, Branch, FINALLY_TIMEOUT, Join, Param, Workflow};
use workflow::{Graph, Problem};

use super::authorise::BY_NUMBER;
use super::job_body::YEAR_MS;

/// A job that a step names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepJob {
    /// Id of the job.
    pub id: JobId,
    /// Whether the job is a workflow.
    pub is_workflow: bool,
}

/// Jobs that the steps of a workflow run.
#[derive(Clone, Debug, Default)]
pub struct StepJobs {
    /// Jobs that steps name, as far as the caller may use them.
    pub named: BTreeMap<String, StepJob>,
    /// Jobs of steps with a handler or script of their own, by the names of the steps.
    pub own: BTreeMap<String, JobId>,
}

/// Names of all jobs that the steps of a workflow name.
pub fn job_names(body: &WorkflowBody) -> impl Iterator<Item = &String> {
    body.steps.iter().flat_map(|step| step.job.iter().chain(&step.workflow).chain(awaited(step)))
}

/// Name of the job that a step depends on.
fn awaited(step: &StepBody) -> Option<&String> {
    step.depends.as_ref().map(|depends| &depends.on)
}

/// The job of a step with a handler or script of its own. It never changes: another definition is another job.
pub struct OwnJob {
    /// Definition of the job.
    pub body: JobBody,
    /// Digest of the definition.
    pub digest: String,
}

/// Jobs of steps with a handler or script of their own, by the names of the steps; `app` is that of the workflow.
pub fn own_jobs(body: &WorkflowBody, app: &str) -> BTreeMap<String, OwnJob> {
    let own = |step: &StepBody| {
        let body = own_job(step, app)?;
        let digest = crate::executors::fingerprint(&serde_json::to_string(&body).unwrap_or_default());
        Some((step.name.clone(), OwnJob { body, digest }))
    };
    body.steps.iter().filter_map(own).collect()
}

/// The name is part of the job, so steps of different names have different ones: an executor that runs one run per job
/// at a time runs these steps at the same time.
fn own_job(step: &StepBody, app: &str) -> Option<JobBody> {
    let handler = match step {
        StepBody { handler: Some(handler), .. } => handler.as_str(),
        StepBody { script: Some(_), .. } => "",
        StepBody { http: Some(_), .. } => HTTP,
        StepBody { command: Some(_), .. } => COMMAND,
        _ => return None,
    };
    let app = step.app.as_deref().unwrap_or(app);
    Some(JobBody {
        handler: handler.to_owned(),
        script: step.script.clone(),
        retry: step.retry.unwrap_or_default(),
        delivery: step.delivery.unwrap_or_default(),
        route: step.route.unwrap_or_default().into(),
        ..JobBody::new(app, &step.name, Schedule::None)
    })
}

/// Handlers of agents for requests and programs.
const HTTP: &str = "http";
const COMMAND: &str = "command";

// ── From API types ──────────────────────────────────────────────────────────────────────────────────────────────

/// Converts and checks a workflow.
pub fn definition(body: &WorkflowBody, jobs: &StepJobs) -> Result<Workflow, Vec<FieldProblem>> {
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
    problems.extend(too_long(body, YEAR_MS));
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
        retry_from: body.retry_from,
        timeout: body.timeout_ms.map(Duration::from_millis),
        finally_timeout: body.finally_timeout_ms.map_or(FINALLY_TIMEOUT, Duration::from_millis),
        output: body.output.clone(),
        business_days: body.business_days,
    };
    let problem =
        |Problem { path, message }| FieldProblem { field: format!("workflow.{path}"), detail: message };
    match Graph::new(definition) {
        Ok(graph) => Ok(graph.definition().clone()),
        Err(problems) => Err(problems.into_iter().map(problem).collect()),
    }
}

/// Timeouts and waits of more than `max` milliseconds.
fn too_long(body: &WorkflowBody, max: u64) -> Vec<FieldProblem> {
    let of_run = [("timeout_ms", body.timeout_ms), ("finally_timeout_ms", body.finally_timeout_ms)];
    let of_run = of_run.into_iter().map(|(field, length)| (format!("workflow.{field}"), length));
    let of_steps = body.steps.iter().flat_map(|step| {
        let asked = step.approval.as_ref().and_then(|approval| approval.timeout_ms);
        let depends = step.depends.as_ref().and_then(|depends| depends.timeout_ms);
        let http = step.http.as_ref().and_then(|http| http.timeout_ms);
        let lengths = [
            ("timeout_ms", step.timeout_ms),
            ("wait_ms", step.wait_ms),
            ("approval.timeout_ms", asked),
            ("depends.timeout_ms", depends),
            ("http.timeout_ms", http),
        ];
        lengths.map(|(field, length)| (format!("workflow.steps.{}.{field}", step.name), length))
    });
    let too_long = of_run.chain(of_steps).filter(|(_, length)| length.is_some_and(|length| length > max));
    let problem = |(field, _)| FieldProblem { field, detail: format!("must be at most {max} ms") };
    too_long.map(problem).take(workflow::PROBLEMS_MAX).collect()
}

/// Problems of a workflow, as if all jobs existed that its steps name.
pub fn problems(body: &WorkflowBody) -> Vec<FieldProblem> {
    let job = |is_workflow| StepJob { id: JobId(1), is_workflow };
    let jobs = body.steps.iter().filter_map(|step| Some((step.job.clone()?, job(false))));
    let workflows = body.steps.iter().filter_map(|step| Some((step.workflow.clone()?, job(true))));
    let own = body.steps.iter().map(|step| (step.name.clone(), JobId(1)));
    let mut named: BTreeMap<_, _> = jobs.chain(workflows).collect();
    for depends in body.steps.iter().filter_map(|step| step.depends.as_ref()) {
        named.entry(depends.on.clone()).or_insert(job(true));
    }
    definition(body, &StepJobs { named, own: own.collect() }).err().unwrap_or_default()
}

type Wrong = (&'static str, String);

fn step_of(body: &StepBody, jobs: &StepJobs) -> Result<definition::Step, Wrong> {
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

fn action_of(body: &StepBody, jobs: &StepJobs) -> Result<Action, Wrong> {
    let find = |field: &'static str, name: &String, wants_workflow: bool| {
        let shown: String = name.chars().take(60).collect();
        match jobs.named.get(name) {
            None => Err((field, format!("the job `{shown}` does not exist"))),
            Some(job) if job.is_workflow == wants_workflow => Ok(job.id.0),
            Some(_) if wants_workflow => Err((field, format!("`{shown}` is no workflow; name it as `job`"))),
            Some(_) => Err((field, format!("`{shown}` is a workflow; name it as `workflow`"))),
        }
    };
    let kinds = [
        body.job.is_some(),
        body.handler.is_some(),
        body.script.is_some(),
        body.http.is_some(),
        body.command.is_some(),
        body.workflow.is_some(),
        body.depends.is_some(),
        body.approval.is_some(),
        body.wait_ms.is_some(),
    ];
    if kinds.into_iter().filter(|is_set| *is_set).count() != 1 {
        let why = "must have exactly one of `job`, `handler`, `script`, `http`, `command`, `workflow`, `depends`, \
                   `approval` and `wait_ms`";
        return Err(("", why.into()));
    }
    let takes_param =
        body.job.is_some() || body.handler.is_some() || body.script.is_some() || body.workflow.is_some();
    if !takes_param && (body.param.is_some() || body.with.is_some()) {
        return Err((".with", "only a step with a job, handler, script or workflow has a parameter".into()));
    }
    let own = || jobs.own.get(&body.name).map_or(0, |job| job.0);
    let action = match body {
        StepBody { job: Some(job), .. } => {
            Action::Job { job: find(".job", job, false)?, param: param_of(body)? }
        }
        StepBody { handler: Some(_), .. } | StepBody { script: Some(_), .. } => {
            Action::Job { job: own(), param: param_of(body)? }
        }
        StepBody { http: Some(http), .. } => {
            Action::Job { job: own(), param: Param::With(http_param(http)?) }
        }
        StepBody { command: Some(words), .. } if words.is_empty() => {
            return Err((".command", "must begin with a program".into()));
        }
        StepBody { command: Some(words), .. } => {
            Action::Job { job: own(), param: Param::With(words.clone().into()) }
        }
        StepBody { workflow: Some(_), param: Some(_), .. } => {
            return Err((".param", "a workflow gets its inputs with `with`".into()));
        }
        StepBody { workflow: Some(name), .. } => {
            let inputs = match &body.with {
                None => BTreeMap::new(),
                Some(serde_json::Value::Object(fields)) => fields.clone().into_iter().collect(),
                Some(_) => return Err((".with", "must be an object with the inputs".into())),
            };
            Action::Workflow { job: find(".workflow", name, true)?, inputs }
        }
        StepBody { depends: Some(depends), .. } => depends_on(depends, jobs)?,
        StepBody { approval: Some(asked), .. } => {
            let ApprovalBody { ask, approvers, by_starter, timeout_ms } = asked.clone();
            let timeout = timeout_ms.map(Duration::from_millis);
            Action::Approval { ask, approvers, by_starter: by_starter.unwrap_or(true), timeout }
        }
        _ => Action::Wait { duration: Duration::from_millis(body.wait_ms.unwrap_or_default()) },
    };
    let has_own_job = own_job(body, "").is_some();
    let policies = [
        (".app", body.app.is_some()),
        (".retry", body.retry.is_some()),
        (".delivery", body.delivery.is_some()),
        (".route", body.route.is_some()),
    ];
    match policies.into_iter().find(|(_, is_set)| *is_set && !has_own_job) {
        Some((field, _)) => {
            Err((field, "only a step with a handler, script, request or program has it".into()))
        }
        None => Ok(action),
    }
}

fn depends_on(depends: &DependsBody, jobs: &StepJobs) -> Result<Action, Wrong> {
    let DependsBody { on, date, need, if_missing, on_failed, timeout_ms } = depends;
    let shown: String = on.chars().take(60).collect();
    let job =
        jobs.named.get(on).ok_or_else(|| (".depends.on", format!("the job `{shown}` does not exist")))?;
    let dates: definition::Dates = date.parse().map_err(|problem: String| (".depends.date", problem))?;
    let timeout = timeout_ms.map(Duration::from_millis);
    let (need, if_missing, on_failed) = (*need, *if_missing, *on_failed);
    Ok(Action::Depends { job: job.id.0, dates, need, if_missing, on_failed, timeout })
}

/// Parameter of the handler `http`.
fn http_param(http: &HttpBody) -> Result<serde_json::Value, Wrong> {
    if http.url.trim().is_empty() {
        return Err((".http.url", "is missing".into()));
    }
    let mut param = serde_json::Map::from_iter([
        ("url".to_owned(), http.url.clone().into()),
        // The agent returns status and body instead of a text.
        ("output".to_owned(), true.into()),
    ]);
    param.extend(http.method.clone().map(|method| ("method".to_owned(), method.into())));
    if !http.headers.is_empty() {
        let headers = http.headers.iter().map(|(name, value)| (name.clone(), value.clone().into()));
        param.insert("headers".to_owned(), serde_json::Value::Object(headers.collect()));
    }
    if !http.body.is_null() {
        param.insert("body".to_owned(), http.body.clone());
    }
    param.extend(http.timeout_ms.map(|timeout| ("timeout".to_owned(), timeout.into())));
    Ok(param.into())
}

/// Inverse of [`http_param`]; none if the parameter was written by hand.
fn http_of(param: &Param) -> Option<HttpBody> {
    let Param::With(serde_json::Value::Object(fields)) = param else { return None };
    if fields.get("output") != Some(&serde_json::Value::Bool(true)) {
        return None;
    }
    let mut fields = fields.clone();
    fields.remove("output");
    if let Some(timeout) = fields.remove("timeout") {
        fields.insert("timeout_ms".to_owned(), timeout);
    }
    serde_json::from_value(fields.into()).ok()
}

/// Program and arguments of a step; none if the parameter was written by hand.
fn command_of(param: &Param) -> Option<Vec<String>> {
    match param {
        Param::With(words @ serde_json::Value::Array(_)) => serde_json::from_value(words.clone()).ok(),
        _ => None,
    }
}

fn param_of(body: &StepBody) -> Result<Param, Wrong> {
    match (&body.param, &body.with) {
        (None, None) => Ok(Param::Own),
        (Some(text), None) => Ok(Param::Text(text.clone())),
        (None, Some(with)) => Ok(Param::With(with.clone())),
        (Some(_), Some(_)) => Err((".with", "must not be set together with `param`".into())),
    }
}

// ── To API types ────────────────────────────────────────────────────────────────────────────────────────────────

/// Ids of all jobs that the steps of a workflow run.
pub fn job_ids(definition: &Workflow) -> impl Iterator<Item = JobId> {
    definition.steps.iter().filter_map(|step| job_of(&step.action))
}

/// Id of the job that a step runs or depends on, if there is one.
pub fn job_of(action: &Action) -> Option<JobId> {
    match action {
        Action::Job { job, .. } | Action::Workflow { job, .. } | Action::Depends { job, .. } => {
            Some(JobId(*job))
        }
        Action::Approval { .. } | Action::Wait { .. } => None,
    }
}

/// Jobs of the steps of a workflow that are shown. The others are named by their ids.
#[derive(Default)]
pub struct Names {
    /// Keys of jobs.
    pub keys: BTreeMap<JobId, String>,
    /// Jobs of steps with a handler or script of their own.
    pub own: BTreeMap<JobId, JobRow>,
}

/// Context for showing a workflow.
pub struct Showing<'a> {
    /// Jobs of its steps.
    pub names: &'a Names,
    /// Names of apps.
    pub apps: &'a BTreeMap<AppId, String>,
    /// App of the workflow.
    pub app: AppId,
}

/// Converts a workflow.
pub fn body(definition: &Workflow, showing: &Showing<'_>) -> WorkflowBody {
    let input = |(name, input): (&String, &definition::Input)| {
        let definition::Input { kind, default, one_of } = input.clone();
        (name.clone(), WorkflowInput { kind, default, one_of })
    };
    let finally_timeout = definition.finally_timeout;
    WorkflowBody {
        inputs: definition.inputs.iter().map(input).collect(),
        steps: definition.steps.iter().map(|step| step_body(step, showing)).collect(),
        on_error: definition.on_error,
        retry_from: definition.retry_from,
        timeout_ms: definition.timeout.map(millis),
        finally_timeout_ms: (finally_timeout != FINALLY_TIMEOUT).then(|| millis(finally_timeout)),
        output: definition.output.clone(),
        business_days: definition.business_days,
        remark: String::new(),
    }
}

fn step_body(step: &definition::Step, showing: &Showing<'_>) -> StepBody {
    let key = |job: i64| {
        showing.names.keys.get(&JobId(job)).cloned().unwrap_or_else(|| format!("{BY_NUMBER}{job}"))
    };
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
            let own = showing.names.own.get(&JobId(*job));
            match own {
                Some(own) => show_own(&mut body, own, showing),
                None => body.job = Some(key(*job)),
            }
            match param {
                _ if own.is_some() && body.handler.as_deref() == Some(HTTP) && http_of(param).is_some() => {
                    (body.handler, body.http) = (None, http_of(param));
                }
                _ if own.is_some()
                    && body.handler.as_deref() == Some(COMMAND)
                    && command_of(param).is_some() =>
                {
                    (body.handler, body.command) = (None, command_of(param));
                }
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
        Action::Approval { ask, approvers, by_starter, timeout } => {
            let (ask, approvers, timeout_ms) = (ask.clone(), approvers.clone(), timeout.map(millis));
            let by_starter = (!by_starter).then_some(false);
            body.approval = Some(ApprovalBody { ask, approvers, by_starter, timeout_ms });
        }
        Action::Wait { duration } => body.wait_ms = Some(millis(*duration)),
        Action::Depends { job, dates, need, if_missing, on_failed, timeout } => {
            let (on, date, timeout_ms) = (key(*job), dates.to_string(), timeout.map(millis));
            let (need, if_missing, on_failed) = (*need, *if_missing, *on_failed);
            body.depends = Some(DependsBody { on, date, need, if_missing, on_failed, timeout_ms });
        }
    }
    body
}

/// Shows the handler or script of a step, and its policies as far as they differ from the defaults.
fn show_own(body: &mut StepBody, own: &JobRow, showing: &Showing<'_>) {
    let spec = &own.job.spec;
    body.handler = (!spec.handler.is_empty()).then(|| spec.handler.clone());
    body.script = spec.script.as_ref().map(|script| ScriptBody {
        language: script.language,
        source: script.source.clone(),
        remark: own.script_remark.clone(),
    });
    if spec.app != showing.app {
        body.app = showing.apps.get(&spec.app).cloned();
    }
    body.retry = (spec.retry != Retry::default()).then_some(spec.retry);
    body.delivery = (spec.delivery != Delivery::default()).then_some(spec.delivery);
    body.route = match spec.route {
        Named::Known(route) if route != Route::default() => Some(route),
        _ => None,
    };
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

    fn jobs() -> StepJobs {
        let job = |id, is_workflow| StepJob { id: JobId(id), is_workflow };
        let named = [
            ("extract".to_owned(), job(1, false)),
            ("nightly".to_owned(), job(2, true)),
            ("id:3".to_owned(), job(3, false)),
        ];
        StepJobs { named: named.into(), own: BTreeMap::new() }
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
                  "approval": { "ask": "go on?", "approvers": ["ada"], "by_starter": false, "timeout_ms": 5 } },
                { "name": "full", "needs": [{ "step": "sign", "if": "inputs.region == 'all'" }], "workflow": "nightly",
                  "with": { "day": "${{ run.date }}" } },
                { "name": "part", "needs": [{ "step": "sign", "else": true }], "wait_ms": 7, "allow_failure": true },
                { "name": "either", "needs": ["full", "part"], "at_least": 1, "if": "true", "job": "extract" },
                { "name": "tell", "phase": "on_failure", "job": "extract" },
                { "name": "tidy", "phase": "finally", "job": "extract" }
            ],
            "on_error": "continue",
            "retry_from": "start",
            "timeout_ms": 1_000,
            "finally_timeout_ms": 2_000,
            "output": { "rows": "${{ steps.orders.output.rows }}" },
            "business_days": -1
        });
        let definition = read(written.clone()).unwrap();
        let keys = [(JobId(1), "extract".to_owned()), (JobId(2), "nightly".to_owned())].into();
        let names = Names { keys, own: BTreeMap::new() };
        let showing = Showing { names: &names, apps: &BTreeMap::new(), app: AppId(1) };
        assert_eq!(serde_json::to_value(body(&definition, &showing)).unwrap(), written);
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
        check(json!({ "name": "a", "job": "extract", "handler": "x" }), "workflow.steps.a", "exactly one of");
        check(
            json!({ "name": "a", "job": "extract", "app": "x" }),
            "workflow.steps.a.app",
            "only a step with a handler",
        );
        check(json!({ "name": "a", "wait_ms": u64::MAX }), "workflow.steps.a.wait_ms", "at most 31622400000");
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
