//! Workflows: their definitions, and the steps of their runs.

use std::collections::BTreeMap;

use engine::{RunId, StoreError, WorkflowId};
use workflow::StepNo;
use workflow::definition::Workflow;

use crate::database::{Database, transaction};
use crate::session::{Lock, Session, SessionError};
use crate::workflows;
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
}

impl Database {
    /// Stores a definition, which the caller has checked. One that exists already keeps its id.
    pub async fn add_workflow(&self, definition: &Workflow, author: &str) -> Result<WorkflowId, StoreError> {
        transaction!(self, s => workflows::insert_definition(s, definition, author))
    }

    /// Definition by id.
    pub async fn workflow(&self, id: WorkflowId) -> Result<Option<WorkflowRow>, StoreError> {
        transaction!(self, s => workflows::select_definition(s, id))
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

    /// Stores a decision about a step that asks people. The first one counts: the same again is accepted, another is a
    /// [`StoreError::Conflict`].
    pub async fn decide_step(&self, run: RunId, step: &str, decision: &Decision) -> Result<(), StoreError> {
        transaction!(self, s => workflows::decide(s, &self.tables, run, step, decision))
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
    Ok(Some(WorkflowRunSteps { run: found, definition: row.definition, steps, decisions }))
}
