//! Grid of a workflow: the states of the steps of its last runs.

use std::collections::{BTreeMap, HashMap};

use engine::{RunId, RunState, StoreError, WorkflowId};
use workflow::StepState;

use super::page::Page;
use super::run_rows::{RunFilter, run_page};
use crate::database::{Database, Tables, transaction};
use crate::session::{Lock, Session, SessionError, Value};
use crate::workflows::{self, WorkflowRun};

impl Database {
    /// Returns the grid of the runs that match `filter`, the newest first, `limit` of those before `before`. Large
    /// workflows have fewer runs in it. The number of statements does not depend on the number of runs.
    pub async fn workflow_grid(
        &self,
        filter: &RunFilter,
        before: Option<RunId>,
        limit: usize,
    ) -> Result<WorkflowGrid, StoreError> {
        transaction!(self, s => workflow_grid(s, &self.tables, filter, before, limit))
    }
}

/// States of the steps of a workflow's runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkflowGrid {
    /// Names of the steps: those of the newest run, then those that only older runs have.
    pub steps: Vec<String>,
    /// The runs, the newest first.
    pub runs: Vec<GridRun>,
    /// Run before which the next page begins, if there may be one.
    pub next: Option<RunId>,
}

/// A workflow run in a grid.
#[derive(Clone, Debug, PartialEq)]
pub struct GridRun {
    /// The run.
    pub run: WorkflowRun,
    /// State of the run.
    pub state: RunState,
    /// State of each of the grid's steps; `None` if the run does not have the step.
    pub steps: Vec<Option<StepState>>,
}

/// Maximum number of states that one grid reads.
const CELLS_MAX: i64 = 100_000;

async fn workflow_grid(
    s: &mut dyn Session,
    tables: &Tables,
    filter: &RunFilter,
    before: Option<RunId>,
    limit: usize,
) -> Result<WorkflowGrid, SessionError> {
    let after = before.map(|run| run.0);
    let page = run_page(s, tables, filter, Page::After { after, limit }).await?;
    let mut next = page.next.map(RunId);
    let states: BTreeMap<RunId, RunState> = page.rows.iter().map(|row| (row.id, row.state)).collect();
    let ids: Vec<i64> = states.keys().map(|run| run.0).collect();
    let mut runs = workflows::select_runs(s, &ids, Lock::None).await?;
    runs.reverse();
    if let Some(cut) = too_many(s, &runs).await? {
        runs.truncate(cut);
        next = runs.last().map(|run| run.id);
    }
    let names = step_names(s, &runs).await?;
    let columns = columns(&runs, &names);
    let mut cells = step_states(s, &runs).await?;
    let position: HashMap<&str, usize> =
        columns.iter().enumerate().map(|(position, name)| (name.as_str(), position)).collect();
    let row = |run: WorkflowRun| {
        let mut steps = vec![None; columns.len()];
        let names = names.get(&run.workflow).map(Vec::as_slice).unwrap_or_default();
        for (number, state) in cells.remove(&run.id).unwrap_or_default() {
            let name = usize::try_from(number).ok().and_then(|number| names.get(number));
            if let Some(position) = name.and_then(|name| position.get(name.as_str())) {
                steps[*position] = Some(state);
            }
        }
        let state = states.get(&run.id).copied().unwrap_or(RunState::Unknown);
        GridRun { run, state, steps }
    };
    let runs = runs.into_iter().map(row).collect();
    Ok(WorkflowGrid { steps: columns, runs, next })
}

/// How many of the runs have at most [`CELLS_MAX`] steps together, if not all; at least one.
async fn too_many(s: &mut dyn Session, runs: &[WorkflowRun]) -> Result<Option<usize>, SessionError> {
    let mut counts: BTreeMap<i64, i64> = BTreeMap::new();
    if let Some(ids) = definitions(runs) {
        for row in s.query("SELECT id, steps FROM tw_workflow WHERE id IN ?", &[ids], Lock::None).await? {
            let mut row = row.read();
            counts.insert(row.int()?, row.int()?);
        }
    }
    let mut cells = 0;
    let is_too_far = |run: &WorkflowRun| {
        cells += counts.get(&run.workflow.0).copied().unwrap_or(0);
        cells > CELLS_MAX
    };
    Ok(runs.iter().position(is_too_far).map(|cut| cut.max(1)))
}

/// Ids of the definitions of runs, as a parameter.
fn definitions(runs: &[WorkflowRun]) -> Option<Value> {
    let mut ids: Vec<i64> = runs.iter().map(|run| run.workflow.0).collect();
    ids.sort_unstable();
    ids.dedup();
    (!ids.is_empty()).then_some(Value::Ids(ids))
}

/// Names of the steps of each definition that the runs use.
async fn step_names(
    s: &mut dyn Session,
    runs: &[WorkflowRun],
) -> Result<BTreeMap<WorkflowId, Vec<String>>, SessionError> {
    let Some(ids) = definitions(runs) else {
        return Ok(BTreeMap::new());
    };
    let rows = workflows::select_definitions(s, ids).await?;
    let names = |row: workflows::WorkflowRow| {
        (row.id, row.definition.steps.into_iter().map(|step| step.name).collect())
    };
    Ok(rows.into_iter().map(names).collect())
}

fn columns(runs: &[WorkflowRun], names: &BTreeMap<WorkflowId, Vec<String>>) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    let mut columns = Vec::new();
    let mut read = std::collections::HashSet::new();
    for workflow in runs.iter().map(|run| run.workflow).filter(|workflow| read.insert(*workflow)) {
        let new = names.get(&workflow).into_iter().flatten().filter(|name| seen.insert(name.as_str()));
        columns.extend(new.cloned());
    }
    columns
}

type States = BTreeMap<RunId, Vec<(i64, StepState)>>;

async fn step_states(s: &mut dyn Session, runs: &[WorkflowRun]) -> Result<States, SessionError> {
    let mut states = States::new();
    if runs.is_empty() {
        return Ok(states);
    }
    let ids = Value::Ids(runs.iter().map(|run| run.id.0).collect());
    let sql = "SELECT run_id, step, state FROM tw_step WHERE run_id IN ?";
    for row in s.query(sql, &[ids], Lock::None).await? {
        let mut row = row.read();
        let (run, step) = (RunId(row.int()?), row.int()?);
        states.entry(run).or_default().push((step, row.column("state")?));
    }
    Ok(states)
}
