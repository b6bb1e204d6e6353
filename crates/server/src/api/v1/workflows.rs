//! Workflows: saving definitions, and `/v1/runs/{run}/steps`.

use std::collections::BTreeMap;

use engine::{JobId, StoreError, WorkflowId};
use protocol::v1::{
    Decision, DecisionView, Event, JobBody, ProblemCode, StepView, WorkflowBody, WorkflowRunView,
};
use store::{Database, JobRow, Rights, RunRow, Step, WorkflowRunSteps};
use workflow::definition::Action;

use super::authorise::{Authorised, find_job};
use super::call::{Call, instant};
use super::reply::Reply;
use super::workflow_body::{self, StepJob};
use crate::request_error::RequestError;

// ── Definitions ─────────────────────────────────────────────────────────────────────────────────────────────────

/// Checks and stores the workflow of a body, if it has one. A step needs the right to operate the job that it runs.
pub async fn save(call: &Call, body: &JobBody) -> Result<Option<WorkflowId>, RequestError> {
    let Some(body) = &body.workflow else {
        return Ok(None);
    };
    let mut jobs = BTreeMap::new();
    for name in workflow_body::job_names(body) {
        if jobs.contains_key(name) {
            continue;
        }
        let found = find_job(call, name).await?;
        if let Some(job) = found.filter(|job| call.who.principal.may(Rights::OPERATE, job.spec.app)) {
            let is_workflow = job.spec.workflow.is_some();
            jobs.insert(name.clone(), StepJob { id: job.id, is_workflow });
        }
    }
    let definition = workflow_body::definition(body, &jobs).map_err(RequestError::fields)?;
    let author = &call.who.principal.name;
    Ok(Some(call.state.database.add_workflow(&definition, author).await?))
}

/// Workflows of jobs, by their ids. Without `with_steps` they are empty.
pub async fn bodies(
    database: &Database,
    rows: &[JobRow],
    with_steps: bool,
) -> Result<BTreeMap<WorkflowId, WorkflowBody>, StoreError> {
    let mut bodies = BTreeMap::new();
    for id in rows.iter().filter_map(|row| row.job.spec.workflow) {
        if !with_steps {
            bodies.insert(id, WorkflowBody::default());
        } else if !bodies.contains_key(&id)
            && let Some(row) = database.workflow(id).await?
        {
            let jobs: Vec<JobId> = workflow_body::job_ids(&row.definition).collect();
            let names = database.job_names(&jobs).await?;
            let keys = names.into_iter().filter_map(|name| Some((name.job, name.key?))).collect();
            bodies.insert(id, workflow_body::body(&row.definition, &keys));
        }
    }
    Ok(bodies)
}

// ── Runs ────────────────────────────────────────────────────────────────────────────────────────────────────────

pub async fn show(call: Call, run: Authorised<RunRow>) -> Result<Reply, RequestError> {
    let found = find(&call, &run).await?;
    let inputs = serde_json::from_str(&found.run.inputs).unwrap_or_default();
    let steps = found.steps.iter().map(|step| step_view(&found, step)).collect();
    Ok(Reply::json(&WorkflowRunView {
        run: found.run.id.0,
        date: found.run.day.clone(),
        inputs,
        phase: found.run.progress.phase,
        paused: found.run.progress.paused,
        steps,
    }))
}

pub async fn show_step(call: Call, run: Authorised<RunRow>) -> Result<Reply, RequestError> {
    let found = find(&call, &run).await?;
    let name = call.named("step");
    let is_named = |step: &&Step| definition_of(&found, step).is_some_and(|known| known.name == name);
    let step = found.steps.iter().find(is_named).ok_or_else(no_such_step)?;
    let output = call.state.database.step_output(run.id, step.row.step).await?;
    Ok(Reply::json(&StepView { output, ..step_view(&found, step) }))
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

fn definition_of<'a>(found: &'a WorkflowRunSteps, step: &Step) -> Option<&'a workflow::definition::Step> {
    found.definition.steps.get(usize::try_from(step.row.step.0).ok()?)
}

fn step_view(found: &WorkflowRunSteps, step: &Step) -> StepView {
    let definition = definition_of(found, step);
    let needs = definition.iter().flat_map(|step| &step.needs).map(|need| need.step.clone());
    let decision = found.decisions.get(&step.row.step).map(|decision| DecisionView {
        approved: decision.approved,
        by: decision.user.clone(),
        remark: decision.remark.clone(),
    });
    StepView {
        name: definition.map(|step| step.name.clone()).unwrap_or_default(),
        phase: definition.map(|step| step.phase).unwrap_or_default(),
        needs: needs.collect(),
        state: step.row.state,
        run: step.fire.map(|run| run.0),
        opened_at: step.opened_at.map(instant),
        ended_at: step.ended_at.map(instant),
        message: step.message.clone(),
        decision,
        output: None,
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
    if let Action::Approval { approvers, .. } = &step.action {
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
