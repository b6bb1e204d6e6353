//! Workflows: their definitions, and the steps of their runs.

use std::collections::{BTreeMap, BTreeSet};

use engine::{JobId, JobSpec, RunId, StoreError, WorkflowId};
use workflow::StepNo;
use workflow::definition::Workflow;

use super::run_rows::{self, RunRow};
use crate::database::{Database, Tables, transaction};
use crate::session::{Lock, Session, SessionError, Value};
pub use crate::workflows::resume::{Resume, Resumed};
pub use crate::workflows::versions::{WORKFLOW_VERSIONS, WorkflowVersion};
use crate::workflows::{self, step_jobs, versions};
pub use crate::workflows::{Decision, RunEnd, Step, WorkflowRow, WorkflowRun};

/// A workflow run with its steps.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkflowRunSteps {
    /// The run.
    pub run: WorkflowRun,
    /// Definition that it uses.
    pub definition: Workflow,
    /// Its steps, by number.
    pub steps: Vec<Step>,
    /// Decisions of users about steps.
    pub decisions: BTreeMap<StepNo, Decision>,
    /// The run that it resumes.
    pub resumed_of: Option<RunId>,
    /// Steps that it keeps of that run.
    pub kept: BTreeSet<StepNo>,
    /// The run that resumes it.
    pub resumed_by: Option<RunId>,
}

impl Database {
    /// Stores a definition, which the caller has checked. One that exists already keeps its id.
    pub async fn add_workflow(&self, definition: &Workflow, author: &str) -> Result<WorkflowId, StoreError> {
        self.add_workflow_of(definition, &[], author).await
    }

    /// Like [`add_workflow`](Database::add_workflow), for a definition that names these jobs of steps. If one was deleted
    /// meanwhile, with the last definition that named it, that is a [`StoreError::Conflict`].
    pub async fn add_workflow_of(
        &self,
        definition: &Workflow,
        own: &[JobId],
        author: &str,
    ) -> Result<WorkflowId, StoreError> {
        transaction!(self, s => workflows::insert_definition(s, definition, own, author))
    }

    /// Definition by id.
    pub async fn workflow(&self, id: WorkflowId) -> Result<Option<WorkflowRow>, StoreError> {
        transaction!(self, s => workflows::select_definition(s, id))
    }

    /// Versions of the workflow of a job, whose definition is `current`, the newest first. The first is the current one.
    pub async fn workflow_versions(
        &self,
        job: JobId,
        current: WorkflowId,
    ) -> Result<Vec<WorkflowVersion>, StoreError> {
        transaction!(self, s => versions::select(s, job, current))
    }

    /// Jobs of steps, by the digests of their definitions.
    pub async fn step_jobs(&self, digests: &[&str]) -> Result<BTreeMap<String, JobId>, StoreError> {
        transaction!(self, s => step_jobs::find(s, digests))
    }

    /// Those of the jobs that belong to steps.
    pub async fn only_step_jobs(&self, jobs: &[JobId]) -> Result<BTreeSet<JobId>, StoreError> {
        transaction!(self, s => step_jobs::only(s, jobs))
    }

    /// Adds jobs of steps, which are in no list of jobs, with the digests of their definitions. One that exists already
    /// keeps its id.
    pub async fn add_step_jobs(
        &self,
        new: &[(String, JobSpec)],
    ) -> Result<BTreeMap<String, JobId>, StoreError> {
        transaction!(self, s => step_jobs::add(s, &self.tables, new))
    }

    /// Workflow run with its steps. `None` if the run is none, or was not opened yet.
    pub async fn workflow_run(&self, run: RunId) -> Result<Option<WorkflowRunSteps>, StoreError> {
        transaction!(self, s => workflow_run(s, run))
    }

    /// Output of a step that has succeeded.
    pub async fn step_output(
        &self,
        run: RunId,
        step: StepNo,
    ) -> Result<Option<serde_json::Value>, StoreError> {
        let found: BTreeMap<_, _> = transaction!(self, s => workflows::outputs(s, run, [step]))?;
        Ok(found.into_values().next())
    }

    /// Runs of a step, the first one first, at most `max`: its attempts and shards. `is_known` returns whether a run
    /// belongs to the step by a trace that is not stored yet. Of a job with very many runs, later attempts may be missing.
    pub async fn step_runs(
        &self,
        step: &Step,
        is_known: &(dyn Fn(RunId) -> bool + Sync),
        max: usize,
    ) -> Result<Vec<RunRow>, StoreError> {
        transaction!(self, s => step_runs(s, &self.tables, step, is_known, max))
    }

    /// Stores a decision about a step that asks people. The first one counts: the same again is accepted, another is a
    /// [`StoreError::Conflict`].
    pub async fn decide_step(&self, run: RunId, step: &str, decision: &Decision) -> Result<(), StoreError> {
        transaction!(self, s => workflows::decide(s, &self.tables, run, step, decision))
    }

    /// The user who started or resumed an open workflow run, or the one that it is part of. A run of a schedule has none.
    pub async fn run_starter(&self, run: RunId) -> Result<Option<String>, StoreError> {
        transaction!(self, s => workflows::starter(s, run))
    }

    /// Resumes a workflow run that has ended: opens a new run of the same scheduled time, which keeps the steps that
    /// succeeded. Idempotent: the same key returns the same run. A run that has not ended, or was resumed already, is a
    /// [`StoreError::Conflict`].
    pub async fn resume_workflow(&self, run: RunId, resume: &Resume) -> Result<Resumed, StoreError> {
        transaction!(self, s => workflows::resume::resume(s, &self.tables, run, resume))
    }

    /// What [`resume_workflow`](Database::resume_workflow) would do. Writes nothing.
    pub async fn preview_resume(&self, run: RunId, resume: &Resume) -> Result<Resumed, StoreError> {
        transaction!(self, s => workflows::resume::preview(s, &self.tables, run, resume))
    }
}

async fn workflow_run(s: &mut dyn Session, run: RunId) -> Result<Option<WorkflowRunSteps>, SessionError> {
    let found = workflows::select_runs(s, &[run.0], Lock::None).await?;
    let Some(found) = found.into_iter().next() else {
        return Ok(None);
    };
    let Some(row) = workflows::select_definition(s, found.workflow).await? else {
        return Ok(None);
    };
    let steps = workflows::select_steps(s, run, "", Vec::new()).await?;
    let decisions = workflows::decisions(s, run).await?;
    let resumed_of = workflows::resume::find(s, run).await?.map(|found| found.of);
    let kept = match resumed_of {
        Some(_) => workflows::resume::kept_steps(s, run).await?,
        None => BTreeSet::new(),
    };
    let resumed_by = workflows::resume::find_next(s, run).await?;
    let definition = row.definition;
    Ok(Some(WorkflowRunSteps { run: found, definition, steps, decisions, resumed_of, kept, resumed_by }))
}

async fn step_runs(
    s: &mut dyn Session,
    tables: &Tables,
    step: &Step,
    is_known: &(dyn Fn(RunId) -> bool + Sync),
    max: usize,
) -> Result<Vec<RunRow>, SessionError> {
    let (Some(first), Some(job)) = (step.fire, step.job) else {
        return Ok(Vec::new());
    };
    let sql = "SELECT id FROM xxl_job_log WHERE job_id = ? AND id >= ? ORDER BY id LIMIT ?";
    let rows = s.query(sql, &[job.into(), first.into(), RUNS_READ.into()], Lock::None).await?;
    let later = rows.into_iter().map(|row| row.read().int()).collect::<Result<Vec<i64>, _>>()?;
    let mut ids: Vec<i64> = later.iter().copied().filter(|run| is_known(RunId(*run))).collect();
    ids.push(first.0);
    if !later.is_empty() {
        // All runs of a step have its origin: open ones in their row, others in their trace.
        let (kind, cause) = step.origin().to_numbers();
        for table in ["tw_run", "tw_trace"] {
            let sql = format!("SELECT run_id FROM {table} WHERE run_id IN ? AND kind = ? AND cause = ?");
            let params = [Value::Ids(later.clone()), kind.into(), cause.into()];
            for row in s.query(&sql, &params, Lock::None).await? {
                ids.push(row.read().int()?);
            }
        }
    }
    ids.sort_unstable();
    ids.dedup();
    ids.truncate(max);
    Ok(run_rows::load(s, tables, &ids).await?.into_values().collect())
}

/// Runs of a job that are searched for later attempts of a step.
const RUNS_READ: i64 = 1_000;
