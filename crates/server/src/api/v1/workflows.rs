//! Workflows: checking definitions, their grids, and `/v1/runs/{run}/steps`.

use engine::{Job, RunId};
use protocol::v1::{
    CheckedWorkflow, Decision, DecisionView, Event, GridRun, ProblemCode, Resume, ResumeVersion, Resumed,
    StepState, StepView, WorkflowBody, WorkflowCheck, WorkflowGrid, WorkflowRunView,
};
use store::{Rights, RunFilter, RunRow, Step, WorkflowRunSteps};
use workflow::definition::{self, Action};

use super::authorise::{Authorised, Nothing};
use super::call::{Call, instant};
use super::reply::Reply;
use super::{runs, workflow_definitions, workflow_text};
use crate::request_error::RequestError;

/// Checks a definition without saving it, and converts it to text.
pub async fn check(call: Call, _: Authorised<Nothing>) -> Result<Reply, RequestError> {
    let (text, body, is_definition) = match call.json()? {
        WorkflowCheck { text: Some(text), workflow: None } => match workflow_text::read(&text) {
            Ok(body) => (text, body, false),
            Err(problem) => {
                let problems = vec![problem];
                return Ok(Reply::json(&CheckedWorkflow { text, workflow: None, problems }));
            }
        },
        WorkflowCheck { text: None, workflow: Some(body) } => (written(&body)?, body, true),
        _ => return Err(RequestError::field("text", "either `text` or `workflow` is required, not both")),
    };
    let problems = workflow_definitions::problems(&call, &body).await?;
    // Only a text has lines to point at; a definition is refused as it would be when it is saved.
    if is_definition && !problems.is_empty() {
        return Err(RequestError::fields(problems));
    }
    let problems = workflow_text::located(&text, problems);
    Ok(Reply::json(&CheckedWorkflow { text, workflow: Some(body), problems }))
}

/// A definition as YAML.
pub fn written(body: &WorkflowBody) -> Result<String, RequestError> {
    let unwritable = |error| RequestError::field("workflow", format!("cannot be written as YAML: {error}"));
    workflow_text::write(body).map_err(unwritable)
}

// ── Runs ────────────────────────────────────────────────────────────────────────────────────────────────────────

/// States of the steps of the last runs of a job.
pub async fn grid(call: Call, job: Authorised<Job>) -> Result<Reply, RequestError> {
    let limit = call.query.number("runs")?.unwrap_or(GRID_RUNS);
    let before = call.query.number("before")?.map(RunId);
    // A run stays in its app when its job is moved to another.
    let filter = RunFilter { apps: call.who.principal.apps(), job: Some(job.id), ..RunFilter::default() };
    let grid = call.state.database.workflow_grid(&filter, before, limit).await?;
    let run = |found: store::GridRun| {
        let store::GridRun { run, state, steps } = found;
        let took = run.end.as_ref().map(|end| end.at.as_millis() - run.begun_at.as_millis());
        GridRun {
            id: run.id.0,
            scheduled_at: instant(run.scheduled_at),
            state: runs::state(state),
            took_ms: took.map(|took| took.max(0)),
            cells: steps.into_iter().map(|state| state.map_or('-', letter)).collect(),
        }
    };
    Ok(Reply::json(&WorkflowGrid {
        steps: grid.steps,
        runs: grid.runs.into_iter().map(run).collect(),
        next: grid.next.map(|run| run.0),
    }))
}

/// Default number of runs in a grid.
const GRID_RUNS: usize = 30;

/// Letter of a state in a grid.
fn letter(state: StepState) -> char {
    match state {
        StepState::Blocked => 'B',
        StepState::Held => 'H',
        StepState::Open => 'O',
        StepState::Waiting => 'W',
        StepState::Succeeded => 'S',
        StepState::Failed => 'F',
        StepState::Skipped => 'K',
        StepState::Unreached => 'U',
        StepState::Cancelled => 'C',
    }
}

pub async fn show(call: Call, run: Authorised<RunRow>) -> Result<Reply, RequestError> {
    let found = find(&call, &run).await?;
    let inputs = serde_json::from_str(&found.run.inputs).unwrap_or_default();
    let steps = views(&found);
    Ok(Reply::json(&WorkflowRunView {
        run: found.run.id.0,
        date: found.run.day.clone(),
        attempt: found.run.attempt,
        resumed_of: found.resumed_of.map(|run| run.0),
        resumed_by: found.resumed_by.map(|run| run.0),
        inputs,
        phase: found.run.progress.phase,
        paused: found.run.progress.paused,
        begun_at: instant(found.run.begun_at),
        ended_at: found.run.end.as_ref().map(|end| instant(end.at)),
        steps,
    }))
}

pub async fn show_step(call: Call, run: Authorised<RunRow>) -> Result<Reply, RequestError> {
    let found = find(&call, &run).await?;
    let name = call.named("step");
    let mut shown = found.steps.iter().zip(views(&found));
    let (step, view) = shown.find(|(_, view)| view.name == name).ok_or_else(no_such_step)?;
    let output = call.state.database.step_output(run.id, step.row.step).await?;
    // This node may have sent a run whose trace is not stored yet.
    let origin = step.origin();
    let is_known = |run| {
        let trace = call.state.traces.of(run).and_then(|trace| trace.sending);
        trace.is_some_and(|sending| sending.origin == origin)
    };
    let mut rows = call.state.database.step_runs(step, &is_known, RUNS_MAX).await?;
    rows.retain(|run| call.who.principal.may(Rights::VIEW, run.app));
    let runs = runs::views(&call, rows).await?;
    Ok(Reply::json(&StepView { output, runs, ..view }))
}

/// Maximum number of runs that are listed with a step.
const RUNS_MAX: usize = 100;

/// The definition that a run uses, whatever was saved since.
pub async fn show_definition(call: Call, run: Authorised<RunRow>) -> Result<Reply, RequestError> {
    let found = find(&call, &run).await?;
    Ok(Reply::json(&workflow_definitions::shown(&call, &found.definition, run.app).await?))
}

fn no_such_step() -> RequestError {
    RequestError::not_found("the workflow of this run has no such step")
}

async fn find(call: &Call, run: &RunRow) -> Result<WorkflowRunSteps, RequestError> {
    let none = || {
        let why = format!("run {} is no workflow run, or has not begun yet", run.id);
        RequestError::new(ProblemCode::Conflict, why)
    };
    call.state.database.workflow_run(run.id).await?.ok_or_else(none)
}

/// Views of all steps, in the order of the definition.
fn views(found: &WorkflowRunSteps) -> Vec<StepView> {
    let rows: Vec<workflow::StepRow> = found.steps.iter().map(|step| step.row.clone()).collect();
    let taken = workflow::taken(&found.definition, &rows);
    let steps = found.definition.steps.iter().zip(&found.steps).zip(taken);
    steps.map(|((definition, step), taken)| step_view(found, definition, step, taken)).collect()
}

fn step_view(
    found: &WorkflowRunSteps,
    definition: &definition::Step,
    step: &Step,
    taken: Vec<Option<bool>>,
) -> StepView {
    let decision = found.decisions.get(&step.row.step).map(|decision| DecisionView {
        approved: decision.approved,
        by: decision.user.clone(),
        remark: decision.remark.clone(),
    });
    StepView {
        name: definition.name.clone(),
        phase: definition.phase,
        needs: definition.needs.iter().map(|need| need.step.clone()).collect(),
        taken,
        state: step.row.state,
        kept: found.kept.contains(&step.row.step),
        run: step.fire.map(|run| run.0),
        opened_at: step.opened_at.map(instant),
        ended_at: step.ended_at.map(instant),
        due_at: step.due_at.filter(|_| !step.row.state.is_over()).map(instant),
        message: step.message.clone(),
        decision,
        output: None,
        runs: Vec::new(),
    }
}

pub async fn pause(call: Call, run: Authorised<RunRow>) -> Result<Reply, RequestError> {
    set_paused(&call, &run, true).await
}

pub async fn go_on(call: Call, run: Authorised<RunRow>) -> Result<Reply, RequestError> {
    set_paused(&call, &run, false).await
}

async fn set_paused(call: &Call, run: &RunRow, paused: bool) -> Result<Reply, RequestError> {
    find(call, run).await?;
    if !call.state.engine.pause_workflow(run.id, paused).await? {
        let why = format!("run {} has already finished", run.id);
        return Err(RequestError::new(ProblemCode::Conflict, why));
    }
    call.state.hints.announce(Event::Runs);
    Ok(Reply::accepted().changed(None, Some(serde_json::json!({ "paused": paused }))))
}

/// Resumes a workflow run that has ended. A repeated `Idempotency-Key` returns the same run.
pub async fn resume(call: Call, run: Authorised<RunRow>) -> Result<Reply, RequestError> {
    let Resume { again, set, version, dry_run } = call.json_or_default()?;
    call.jobs().find(run.job, Rights::OPERATE).await?;
    let resume = store::Resume {
        key: super::jobs::request_key(&call, &format!("\0resume {}", run.id)),
        again,
        set,
        latest: version == ResumeVersion::Latest,
        user: call.who.principal.user().to_owned(),
    };
    if !dry_run {
        call.state.engine.check_room(run.app).await?;
    }
    let database = &call.state.database;
    let resumed = match dry_run {
        true => database.preview_resume(run.id, &resume).await?,
        false => database.resume_workflow(run.id, &resume).await?,
    };
    let store::Resumed { run: opened, kept, to_run } = resumed;
    let view = Resumed { run: opened.map(|run| run.0), kept, to_run };
    if opened.is_some() {
        call.state.engine.look_at_workflows();
        call.state.hints.announce(Event::Runs);
    }
    let store::Resume { again, set, latest, .. } = resume;
    let after = serde_json::json!({
        "run": view.run, "again": again, "set": set, "latest": latest, "dry_run": dry_run
    });
    Ok(Reply::json(&view).changed(None, Some(after)))
}

/// Only those may decide whom the step names; if it names nobody, all who may operate the workflow.
pub async fn decide(call: Call, run: Authorised<RunRow>) -> Result<Reply, RequestError> {
    let Decision { approved, remark } = call.json()?;
    if remark.chars().count() > REMARK_MAX {
        return Err(RequestError::field("remark", format!("must have at most {REMARK_MAX} characters")));
    }
    let found = find(&call, &run).await?;
    let name = call.named("step");
    let step = found.definition.steps.iter().find(|step| step.name == name).ok_or_else(no_such_step)?;
    let who = &call.who.principal;
    if let Action::Approval { approvers, by_starter, .. } = &step.action {
        let may = match approvers.is_empty() {
            true => who.may(Rights::OPERATE, run.app),
            false => approvers.contains(&who.name),
        };
        if !may {
            let why = match approvers.is_empty() {
                true => "this requires the right to operate in the app of the workflow".to_owned(),
                false => format!("only these users may decide: {}", approvers.join(", ")),
            };
            return Err(RequestError::new(ProblemCode::NotAllowed, why));
        }
        let starter = if *by_starter { None } else { call.state.database.run_starter(run.id).await? };
        if starter.as_deref() == Some(who.user()) {
            let why = "another user than the one who started the run must decide".to_owned();
            return Err(RequestError::new(ProblemCode::NotAllowed, why));
        }
    }
    let decision = store::Decision { approved, user: who.name.clone(), remark };
    call.state.database.decide_step(run.id, name, &decision).await?;
    call.state.engine.look_at_workflows();
    call.state.hints.announce(Event::Runs);
    let after = serde_json::json!({ "step": name, "approved": approved, "remark": decision.remark });
    Ok(Reply::accepted().changed(None, Some(after)))
}

/// Maximum length of a remark in characters.
const REMARK_MAX: usize = 1_000;
