//! Definitions of workflows: saved with their jobs, and shown with them.

use std::collections::{BTreeMap, BTreeSet};

use engine::{AppId, Job, JobId, JobSpec, StoreError, WorkflowId};
use protocol::v1::{FieldProblem, JobBody, ProblemCode, WorkflowBody};
use store::{Database, JobRow, Rights};
use workflow::definition::{Action, IfMissing, Step, Workflow};
use workflow::{PROBLEMS_MAX, STEPS_MAX};

use super::authorise::{BY_NUMBER, READ_MAX, admit_app, find_jobs};
use super::call::Call;
use super::jobs::{EDIT, belongings, reading};
use super::workflow_body::{self, Names, OwnJob, Showing, StepJob, StepJobs};
use crate::request_error::RequestError;

// ── Saving ──────────────────────────────────────────────────────────────────────────────────────────────────────

/// Checks and stores the workflow of a body, if it has one; `job` is the job as it is, if it exists.
///
/// A step needs the right to operate the job that it runs, and one with a handler or script of its own the rights to add
/// such a job; unless the step of that name did the same before, with the same parameter.
pub async fn save(
    call: &Call,
    body: &JobBody,
    job: Option<&Job>,
) -> Result<Option<WorkflowId>, RequestError> {
    let Some(steps) = &body.workflow else {
        return Ok(None);
    };
    if steps.steps.len() > STEPS_MAX {
        let why = format!("must have at most {STEPS_MAX} steps; there are {}", steps.steps.len());
        return Err(RequestError::field("workflow.steps", why));
    }
    let before = match job.and_then(|job| job.spec.workflow) {
        Some(id) => call.state.database.workflow(id).await?.map(|row| row.definition),
        None => None,
    };
    let before = before.unwrap_or_default();
    let found = find_jobs(call, workflow_body::job_names(steps).map(String::as_str)).await?;
    let own = workflow_body::own_jobs(steps, &body.app);
    let known = known_step_jobs(&call.state.database, &own).await?;
    let mut jobs = StepJobs { named: shown_to(call, &found, &before), own: BTreeMap::new() };
    jobs.own = ids_of(&own, &known);
    let definition = workflow_body::definition(steps, &jobs).map_err(RequestError::fields)?;

    let may_operate = |job: &&Job| call.who.principal.may(Rights::OPERATE, job.spec.app);
    let operated = found.values().filter(may_operate).map(|job| job.id).collect();
    let changed = changed_steps(&definition, &before);
    check_rights(&changed, &own, &operated)?;
    check_circle(&call.state.database, job.map(|job| job.id), &definition).await?;
    let specs = own_specs(call, &own, &changed).await?;
    let new: Vec<_> = specs.into_iter().filter(|(digest, _)| !known.contains_key(digest)).collect();
    let database = &call.state.database;
    let definition = if new.is_empty() {
        definition
    } else {
        let mut known = known;
        for new in new.chunks(ADDED_AT_ONCE) {
            known.extend(database.add_step_jobs(new).await?);
        }
        jobs.own = ids_of(&own, &known);
        workflow_body::definition(steps, &jobs).map_err(RequestError::fields)?
    };
    let own: Vec<JobId> = jobs.own.values().copied().collect();
    Ok(Some(database.add_workflow_of(&definition, &own, &call.who.principal.name).await?))
}

/// Jobs of steps that exist already, by their digests.
async fn known_step_jobs(
    database: &Database,
    own: &BTreeMap<String, OwnJob>,
) -> Result<BTreeMap<String, JobId>, StoreError> {
    let digests: Vec<&str> = own.values().map(|job| job.digest.as_str()).collect();
    let mut known = BTreeMap::new();
    for digests in digests.chunks(READ_MAX) {
        known.extend(database.step_jobs(digests).await?);
    }
    Ok(known)
}

/// Ids of the jobs of steps by the names of the steps. One that does not exist yet has the id 0.
fn ids_of(own: &BTreeMap<String, OwnJob>, known: &BTreeMap<String, JobId>) -> BTreeMap<String, JobId> {
    let id = |job: &OwnJob| known.get(&job.digest).copied().unwrap_or(JobId(0));
    own.iter().map(|(step, job)| (step.clone(), id(job))).collect()
}

/// Named jobs that are shown to the caller. A job of the earlier definition that he may not view was shown by its id.
fn shown_to(call: &Call, found: &BTreeMap<String, Job>, before: &Workflow) -> BTreeMap<String, StepJob> {
    let known: BTreeSet<JobId> = workflow_body::job_ids(before).collect();
    let is_shown = |name: &str, job: &Job| {
        let is_kept = known.contains(&job.id) && name.starts_with(BY_NUMBER);
        is_kept || call.who.principal.may(Rights::VIEW, job.spec.app)
    };
    let shown = found.iter().filter(|(name, job)| is_shown(name, job));
    shown
        .map(|(name, job)| (name.clone(), StepJob { id: job.id, is_workflow: job.spec.workflow.is_some() }))
        .collect()
}

/// Steps that are new, or have another job or parameter than before.
fn changed_steps<'a>(definition: &'a Workflow, before: &Workflow) -> Vec<&'a Step> {
    let before: BTreeMap<&str, &Action> =
        before.steps.iter().map(|step| (step.name.as_str(), &step.action)).collect();
    let is_kept = |step: &&Step| before.get(step.name.as_str()) == Some(&&step.action);
    definition.steps.iter().filter(|step| !is_kept(step)).collect()
}

/// Checks that the caller may operate the jobs that changed steps run or start.
fn check_rights(
    changed: &[&Step],
    own: &BTreeMap<String, OwnJob>,
    operated: &BTreeSet<JobId>,
) -> Result<(), RequestError> {
    let lacks_right = |step: &&&Step| {
        let only_waits =
            matches!(step.action, Action::Depends { if_missing: IfMissing::Wait | IfMissing::Fail, .. });
        !own.contains_key(&step.name)
            && !only_waits
            && workflow_body::job_of(&step.action).is_some_and(|job| !operated.contains(&job))
    };
    let problem = |step: &&Step| FieldProblem {
        field: match step.action {
            Action::Workflow { .. } => format!("workflow.steps.{}.workflow", step.name),
            Action::Depends { .. } => format!("workflow.steps.{}.depends.on", step.name),
            _ => format!("workflow.steps.{}.job", step.name),
        },
        detail: "requires the right to operate the job that it runs or starts".to_owned(),
    };
    let problems: Vec<_> = changed.iter().filter(lacks_right).take(PROBLEMS_MAX).map(problem).collect();
    if problems.is_empty() { Ok(()) } else { Err(RequestError::fields(problems)) }
}

/// Definitions of the jobs that belong to changed steps, by their digests, if the caller may add them.
async fn own_specs(
    call: &Call,
    own: &BTreeMap<String, OwnJob>,
    changed: &[&Step],
) -> Result<BTreeMap<String, JobSpec>, RequestError> {
    let (mut apps, mut specs) = (BTreeMap::new(), BTreeMap::new());
    for step in changed {
        let Some(OwnJob { body, digest }) = own.get(&step.name) else { continue };
        let app = match apps.get(&body.app) {
            Some(app) => *app,
            None => {
                let app = admit_app(call, &body.app, EDIT).await?.id;
                apps.insert(body.app.clone(), app);
                app
            }
        };
        let spec = reading(call, None).spec(body, app, Vec::new(), None).map_err(|problems| {
            let of_step = |problem| of_step(&step.name, problem);
            RequestError::fields(problems.into_iter().map(of_step).collect())
        })?;
        call.jobs().check_new(&spec, &belongings(body)).await?;
        specs.insert(digest.clone(), spec);
    }
    Ok(specs)
}

/// Jobs of steps that are added in one transaction.
const ADDED_AT_ONCE: usize = 100;

/// Refuses a workflow that runs itself, or waits for a run of its own of the same date, directly or through other workflows.
/// Two that are saved at the same time may escape this; their runs fail when they are nested too deep, or wait until their
/// timeouts.
async fn check_circle(
    database: &Database,
    job: Option<JobId>,
    definition: &Workflow,
) -> Result<(), RequestError> {
    // Jobs that were reached, and the steps of this workflow that lead to them.
    let mut reached: BTreeMap<JobId, String> = BTreeMap::new();
    let mut next: Vec<(JobId, String)> =
        awaited(definition).map(|(job, step)| (job, step.to_owned())).collect();
    while !next.is_empty() {
        next.retain(|(job, step)| reached.insert(*job, step.clone()).is_none());
        if let Some(step) = job.and_then(|job| reached.get(&job)) {
            let first = definition.steps.iter().find(|other| other.name == *step).map(|step| &step.action);
            let (field, why) = match first {
                Some(Action::Depends { .. }) => (
                    "depends",
                    "must not wait for a run of the same date of this workflow, directly or through other workflows",
                ),
                _ => ("workflow", "must not run this workflow again, directly or through other workflows"),
            };
            let field = format!("workflow.steps.{step}.{field}");
            return Err(RequestError::fields(vec![FieldProblem { field, detail: why.to_owned() }]));
        }
        if reached.len() > REACHED_MAX {
            let why =
                format!("must not need more than {REACHED_MAX} other workflows, directly or through others");
            return Err(RequestError::field("workflow.steps", why));
        }
        let ids: Vec<JobId> = next.iter().map(|(job, _)| *job).collect();
        let mut inner = Vec::new();
        for row in database.job_rows(&ids).await? {
            let Some(id) = row.job.spec.workflow else { continue };
            let Some(found) = database.workflow(id).await? else { continue };
            let step = &reached[&row.job.id];
            inner.extend(awaited(&found.definition).map(|(job, _)| (job, step.clone())));
        }
        next = inner;
    }
    Ok(())
}

/// Jobs whose runs of the same date have to end before a run of this workflow can: its sub-workflows, and those that it
/// depends on. With the steps that need them.
fn awaited(definition: &Workflow) -> impl Iterator<Item = (JobId, &str)> {
    definition.steps.iter().filter_map(|step| match step.action {
        Action::Workflow { job, .. } => Some((JobId(job), step.name.as_str())),
        Action::Depends { job, dates, .. } if dates.includes_same() => Some((JobId(job), step.name.as_str())),
        _ => None,
    })
}

/// Maximum number of workflows that are followed to find a circle.
const REACHED_MAX: usize = 500;

/// Problems of a definition that the caller might save in a new job.
pub async fn problems(call: &Call, body: &WorkflowBody) -> Result<Vec<FieldProblem>, RequestError> {
    let found = find_jobs(call, workflow_body::job_names(body).map(String::as_str)).await?;
    let awaited: BTreeSet<&String> =
        body.steps.iter().filter_map(|step| Some(&step.depends.as_ref()?.on)).collect();
    let may_use = |name: &String, job: &Job| {
        let needed = if awaited.contains(name) { Rights::VIEW } else { Rights::OPERATE };
        call.who.principal.may(needed, job.spec.app)
    };
    let named = found
        .iter()
        .filter(|(name, job)| may_use(name, job))
        .map(|(name, job)| (name.clone(), StepJob { id: job.id, is_workflow: job.spec.workflow.is_some() }));
    let jobs = StepJobs { named: named.collect(), own: BTreeMap::new() };
    let mut problems = workflow_body::definition(body, &jobs).err().unwrap_or_default();
    for (step, OwnJob { body, .. }) in workflow_body::own_jobs(body, "") {
        let wrong = reading(call, None).spec(&body, AppId(0), Vec::new(), None).err().unwrap_or_default();
        problems.extend(wrong.into_iter().map(|problem| of_step(&step, problem)));
    }
    Ok(problems)
}

/// A problem of the job of a step, as one of the step.
fn of_step(step: &str, problem: FieldProblem) -> FieldProblem {
    FieldProblem { field: format!("workflow.steps.{step}.{}", problem.field), ..problem }
}

/// Rejects changes of a job that belongs to a step.
pub async fn check_no_step_job(call: &Call, job: JobId) -> Result<(), RequestError> {
    if call.state.database.only_step_jobs(&[job]).await?.is_empty() {
        return Ok(());
    }
    let why = "this job belongs to a step of a workflow; change the workflow instead";
    Err(RequestError::new(ProblemCode::Conflict, why))
}

// ── Showing ─────────────────────────────────────────────────────────────────────────────────────────────────────

/// Workflows of jobs. Without `with_steps` they are empty. Jobs of steps whose apps are not shown are named by their ids.
pub async fn bodies(
    database: &Database,
    rows: &[JobRow],
    with_steps: bool,
    apps: &BTreeMap<AppId, String>,
    is_shown: &(dyn Fn(AppId) -> bool + Sync),
) -> Result<BTreeMap<JobId, WorkflowBody>, StoreError> {
    let mut bodies = BTreeMap::new();
    for row in rows {
        let Some(id) = row.job.spec.workflow else { continue };
        let body = match with_steps {
            false => WorkflowBody::default(),
            true => match database.workflow(id).await? {
                Some(found) => {
                    let names = names(database, &found.definition, is_shown).await?;
                    let app = row.job.spec.app;
                    workflow_body::body(&found.definition, &Showing { names: &names, apps, app })
                }
                None => continue,
            },
        };
        bodies.insert(row.job.id, body);
    }
    Ok(bodies)
}

/// A definition as the caller may see it; `app` is that of its job.
pub async fn shown(call: &Call, definition: &Workflow, app: AppId) -> Result<WorkflowBody, StoreError> {
    let is_shown = |app| call.who.principal.may(Rights::VIEW, app);
    let apps: BTreeMap<AppId, String> = call.state.directory.names().into_iter().collect();
    let names = names(&call.state.database, definition, &is_shown).await?;
    Ok(workflow_body::body(definition, &Showing { names: &names, apps: &apps, app }))
}

/// What is shown of the jobs that the steps of a workflow run.
async fn names(
    database: &Database,
    definition: &Workflow,
    is_shown: &(dyn Fn(AppId) -> bool + Sync),
) -> Result<Names, StoreError> {
    let ids: BTreeSet<JobId> = workflow_body::job_ids(definition).collect();
    let ids: Vec<JobId> = ids.into_iter().collect();
    let mut names = Names::default();
    for ids in ids.chunks(READ_MAX) {
        let found = database.job_names(ids).await?.into_iter().filter(|name| is_shown(name.app));
        let own = database.only_step_jobs(ids).await?;
        let (own, named): (Vec<_>, Vec<_>) = found.partition(|name| own.contains(&name.job));
        names.keys.extend(named.into_iter().filter_map(|name| Some((name.job, name.key?))));
        let own: Vec<JobId> = own.into_iter().map(|name| name.job).collect();
        let rows = database.job_rows(&own).await?;
        names.own.extend(rows.into_iter().map(|row| (row.job.id, row)));
    }
    Ok(names)
}
