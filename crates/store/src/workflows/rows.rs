//! Rows of workflow runs and their steps.

use std::collections::{BTreeMap, BTreeSet};

use engine::{JobId, Origin, RunId, StoreError, WorkflowId};
use timer::Timestamp;
use workflow::definition::Phase;
use workflow::join::Tally;
use workflow::{RunOutcome, RunRow, StepNo, StepRow, StepState, Stop};

use crate::session::{Lock, Session, SessionError, Value};
use crate::table::{Cell, table};

/// A workflow run.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkflowRun {
    /// Id of the run.
    pub id: RunId,
    /// Job of the run.
    pub job: JobId,
    /// Definition that it keeps, whatever is saved meanwhile.
    pub workflow: WorkflowId,
    /// Scheduled time.
    pub scheduled_at: Timestamp,
    /// Attempt number, from 1.
    pub attempt: u32,
    /// Number of workflow runs and parents that it is part of.
    pub depth: u32,
    /// Day of the scheduled time in the zone of the job.
    pub day: String,
    /// Inputs, as a JSON object.
    pub inputs: String,
    /// Progress.
    pub progress: RunRow,
    /// Time when it was opened.
    pub begun_at: Timestamp,
    /// Time when its timeout is exceeded: of the run, or of the phase `finally`.
    pub deadline: Option<Timestamp>,
    /// Its end, if it has ended.
    pub end: Option<RunEnd>,
}

/// End of a workflow run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunEnd {
    /// Time of the end.
    pub at: Timestamp,
    /// Outcome.
    pub outcome: RunOutcome,
    /// Output as JSON, or a summary.
    pub message: String,
}

/// A step of a workflow run.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Id of the workflow run.
    pub run: RunId,
    /// Number, state and counters.
    pub row: StepRow,
    /// First run of the step, if it runs a job.
    pub fire: Option<RunId>,
    /// Job of that run.
    pub job: Option<JobId>,
    /// Time when it ends by itself: the end of a wait, or a timeout.
    pub due_at: Option<Timestamp>,
    /// Time when it opened.
    pub opened_at: Option<Timestamp>,
    /// Time when it ended.
    pub ended_at: Option<Timestamp>,
    /// Question of an approval, or reason of a failure.
    pub message: Option<String>,
}

impl Step {
    /// A step of a run that begins.
    pub fn new(run: RunId, row: StepRow) -> Step {
        let (fire, job, due_at, opened_at, ended_at, message) = (None, None, None, None, None, None);
        Step { run, row, fire, job, due_at, opened_at, ended_at, message }
    }

    /// Origin of the runs of this step.
    pub fn origin(&self) -> Origin {
        Origin::Step { of: self.run, step: self.row.step.0 }
    }
}

table! {
    /// Row of `tw_workflow_run`.
    struct WorkflowRunRow in "tw_workflow_run" of run: &WorkflowRun {
        run_id: RunId = run.id,
        job_id: JobId = run.job,
        workflow_id: WorkflowId = run.workflow,
        scheduled_ms: Timestamp = run.scheduled_at,
        attempt: u32 = i64::from(run.attempt),
        depth: u32 = i64::from(run.depth),
        day: String = run.day.as_str(),
        inputs: String = run.inputs.as_str(),
        phase: Phase = run.progress.phase,
        open: u32 = i64::from(run.progress.open),
        active: u32 = i64::from(run.progress.active),
        failed: u32 = i64::from(run.progress.failed),
        finally_failed: u32 = i64::from(run.progress.finally_failed),
        stop: Stop = run.progress.stop,
        paused: bool = run.progress.paused,
        begun_ms: Timestamp = run.begun_at,
        deadline_ms: Option<Timestamp> = run.deadline,
        ended_ms: Option<Timestamp> = run.end.as_ref().map(|end| end.at),
        outcome: Option<RunOutcome> = run.end.as_ref().map(|end| end.outcome),
        message: Option<String> = run.end.as_ref().map(|end| end.message.as_str()),
    }
    update PROGRESS by run_id {
        phase, open, active, failed, finally_failed, stop, paused, deadline_ms, ended_ms, outcome, message,
    }
}

impl From<WorkflowRunRow> for WorkflowRun {
    fn from(row: WorkflowRunRow) -> WorkflowRun {
        let end = row.ended_ms.zip(row.outcome);
        WorkflowRun {
            id: row.run_id,
            job: row.job_id,
            workflow: row.workflow_id,
            scheduled_at: row.scheduled_ms,
            attempt: row.attempt,
            depth: row.depth,
            day: row.day,
            inputs: row.inputs,
            progress: RunRow {
                phase: row.phase,
                open: row.open,
                active: row.active,
                failed: row.failed,
                finally_failed: row.finally_failed,
                stop: row.stop,
                paused: row.paused,
            },
            begun_at: row.begun_ms,
            deadline: row.deadline_ms,
            end: end.map(|(at, outcome)| RunEnd { at, outcome, message: row.message.unwrap_or_default() }),
        }
    }
}

/// Reads workflow runs by their ids, in that order.
pub async fn select_runs(
    s: &mut dyn Session,
    ids: &[i64],
    lock: Lock,
) -> Result<Vec<WorkflowRun>, SessionError> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let sql =
        format!("SELECT {} FROM tw_workflow_run WHERE run_id IN ? ORDER BY run_id", WorkflowRunRow::LIST);
    let rows = s.query(&sql, &[Value::Ids(ids.to_vec())], lock).await?;
    rows.into_iter().map(|row| Ok(WorkflowRunRow::read(&mut row.read())?.into())).collect()
}

pub async fn insert_run(s: &mut dyn Session, run: &WorkflowRun) -> Result<(), SessionError> {
    let (into, row) = WorkflowRunRow::INSERT;
    s.insert(into, vec![row(run)]).await
}

pub async fn save_runs(s: &mut dyn Session, runs: &[WorkflowRun]) -> Result<(), SessionError> {
    if runs.is_empty() {
        return Ok(());
    }
    let (set, row) = WorkflowRunRow::PROGRESS;
    s.update(set, runs.iter().map(row).collect()).await
}

table! {
    /// Row of `tw_step`.
    struct StoredStep in "tw_step" of step: &Step {
        run_id: RunId = step.run,
        step: StepNo = step.row.step,
        state: StepState = step.row.state,
        waits: u32 = i64::from(step.row.tally.waits),
        taken: u32 = i64::from(step.row.tally.taken),
        skipped: u32 = i64::from(step.row.tally.skipped),
        failed: u32 = i64::from(step.row.tally.failed),
        fire_id: Option<RunId> = step.fire,
        job_id: Option<JobId> = step.job,
        due_ms: Option<Timestamp> = step.due_at,
        opened_ms: Option<Timestamp> = step.opened_at,
        ended_ms: Option<Timestamp> = step.ended_at,
        message: Option<String> = step.message.as_deref(),
    }
    update CHANGE by run_id, step {
        state, waits, taken, skipped, failed, fire_id, job_id, due_ms, opened_ms, ended_ms, message,
    }
}

impl From<StoredStep> for Step {
    fn from(row: StoredStep) -> Step {
        let tally = Tally { waits: row.waits, taken: row.taken, skipped: row.skipped, failed: row.failed };
        Step {
            run: row.run_id,
            row: StepRow { step: row.step, state: row.state, tally },
            fire: row.fire_id,
            job: row.job_id,
            due_at: row.due_ms,
            opened_at: row.opened_ms,
            ended_at: row.ended_ms,
            message: row.message,
        }
    }
}

/// Reads the steps of a run that match `filter`, ordered by number.
pub async fn select_steps(
    s: &mut dyn Session,
    run: RunId,
    filter: &str,
    mut params: Vec<Value>,
) -> Result<Vec<Step>, SessionError> {
    let sql = format!("SELECT {} FROM tw_step WHERE run_id = ?{filter} ORDER BY step", StoredStep::LIST);
    params.insert(0, run.into());
    let rows = s.query(&sql, &params, Lock::None).await?;
    rows.into_iter().map(|row| Ok(StoredStep::read(&mut row.read())?.into())).collect()
}

/// Reads steps by their numbers.
pub async fn steps_by_number(
    s: &mut dyn Session,
    run: RunId,
    steps: impl IntoIterator<Item = StepNo>,
) -> Result<Vec<Step>, SessionError> {
    let numbers: Vec<i64> = steps.into_iter().map(|step| step.0.into()).collect();
    if numbers.is_empty() {
        return Ok(Vec::new());
    }
    select_steps(s, run, " AND step IN ?", vec![Value::Ids(numbers)]).await
}

/// Numbers of steps, by their runs.
pub type Wanted = BTreeMap<RunId, BTreeSet<StepNo>>;

/// Reads steps of several runs.
pub async fn steps_of_runs(s: &mut dyn Session, wanted: &Wanted) -> Result<Vec<Step>, SessionError> {
    let mut found: Vec<Step> = Vec::new();
    for part in parts(wanted) {
        let sql = format!("SELECT {} FROM tw_step WHERE run_id IN ? AND step IN ?", StoredStep::LIST);
        for row in s.query(&sql, &part, Lock::None).await? {
            found.push(StoredStep::read(&mut row.read())?.into());
        }
    }
    Ok(found)
}

/// Reads outputs of steps of several runs.
pub async fn outputs_of_runs(
    s: &mut dyn Session,
    wanted: &Wanted,
) -> Result<BTreeMap<(RunId, StepNo), serde_json::Value>, SessionError> {
    let mut found = BTreeMap::new();
    for part in parts(wanted) {
        let sql = format!("SELECT {} FROM tw_step_output WHERE run_id IN ? AND step IN ?", OutputRow::LIST);
        for row in s.query(&sql, &part, Lock::None).await? {
            let row = OutputRow::read(&mut row.read())?;
            found.insert((row.run_id, row.step), row.json()?);
        }
    }
    Ok(found)
}

/// Parameters of few queries for the steps: runs and numbers. A query returns each of its numbers for each of its runs, so
/// runs share one only if they want about the same steps.
fn parts(wanted: &Wanted) -> Vec<[Value; 2]> {
    let wanted: Vec<_> = wanted.iter().filter(|(_, steps)| !steps.is_empty()).collect();
    let all: BTreeSet<i64> =
        wanted.iter().flat_map(|(_, steps)| steps.iter().map(|step| step.0.into())).collect();
    let count: usize = wanted.iter().map(|(_, steps)| steps.len()).sum();
    let part = |runs: Vec<i64>, steps: Vec<i64>| [Value::Ids(runs), Value::Ids(steps)];
    match wanted.len() {
        0 => Vec::new(),
        runs if runs * all.len() <= SURPLUS_MAX * count => {
            vec![part(wanted.iter().map(|(run, _)| run.0).collect(), all.into_iter().collect())]
        }
        _ => {
            let numbers = |steps: &BTreeSet<StepNo>| steps.iter().map(|step| step.0.into()).collect();
            wanted.into_iter().map(|(run, steps)| part(vec![run.0], numbers(steps))).collect()
        }
    }
}

/// How many times as many rows as wanted a shared query may return.
const SURPLUS_MAX: usize = 10;

/// Earliest time at which an active step of each run ends by itself.
pub async fn first_due(
    s: &mut dyn Session,
    runs: Vec<i64>,
) -> Result<BTreeMap<RunId, Timestamp>, SessionError> {
    if runs.is_empty() {
        return Ok(BTreeMap::new());
    }
    let sql = "SELECT run_id, MIN(due_ms) FROM tw_step WHERE run_id IN ? AND state IN (?, ?) AND due_ms IS NOT NULL \
               GROUP BY run_id";
    let params = [Value::Ids(runs), StepState::Open.into(), StepState::Waiting.into()];
    let mut due = BTreeMap::new();
    for row in s.query(sql, &params, Lock::None).await? {
        let mut row = row.read();
        let run = RunId(row.int()?);
        due.extend(row.maybe_instant()?.map(|at| (run, at)));
    }
    Ok(due)
}

pub async fn insert_steps(s: &mut dyn Session, steps: &[Step]) -> Result<(), SessionError> {
    let (into, row) = StoredStep::INSERT;
    s.insert(into, steps.iter().map(row).collect()).await
}

pub async fn save_steps(s: &mut dyn Session, steps: &[Step]) -> Result<(), SessionError> {
    if steps.is_empty() {
        return Ok(());
    }
    let (set, row) = StoredStep::CHANGE;
    s.update(set, steps.iter().map(row).collect()).await
}

table! {
    /// Row of `tw_step_output`: the output of a step that succeeded, as JSON.
    struct OutputRow in "tw_step_output" of output: &(RunId, StepNo, String) {
        run_id: RunId = output.0,
        step: StepNo = output.1,
        body: String = output.2.as_str(),
    }
}

impl OutputRow {
    fn json(&self) -> Result<serde_json::Value, StoreError> {
        let unreadable = |error| {
            let (step, run) = (self.step.0, self.run_id);
            StoreError::Schema(format!("the output of step {step} of run {run} is no JSON: {error}"))
        };
        serde_json::from_str(&self.body).map_err(unreadable)
    }
}

/// Reads outputs of steps.
pub async fn outputs(
    s: &mut dyn Session,
    run: RunId,
    steps: impl IntoIterator<Item = StepNo>,
) -> Result<BTreeMap<StepNo, serde_json::Value>, SessionError> {
    let wanted = Wanted::from([(run, steps.into_iter().collect())]);
    let found = outputs_of_runs(s, &wanted).await?;
    Ok(found.into_iter().map(|((_, step), output)| (step, output)).collect())
}

pub async fn insert_outputs(
    s: &mut dyn Session,
    outputs: &[(RunId, StepNo, String)],
) -> Result<(), SessionError> {
    if outputs.is_empty() {
        return Ok(());
    }
    let (into, row) = OutputRow::INSERT;
    s.insert(into, outputs.iter().map(row).collect()).await
}

// ── Numbers in rows ─────────────────────────────────────────────────────────────────────────────────────────────

/// Declares the numbers that stand for values in rows.
macro_rules! numbered {
    ($($Type:ty: $wanted:literal { $($value:path = $number:literal),* $(,)? })*) => {$(
        impl Cell for $Type {
            const WANTED: &'static str = $wanted;

            fn of(value: Value) -> Result<Self, Value> {
                match i64::of(value)? {
                    $($number => Ok($value),)*
                    other => Err(Value::Int(other)),
                }
            }
        }

        impl From<$Type> for Value {
            fn from(value: $Type) -> Self {
                Value::Int(match value { $($value => $number),* })
            }
        }
    )*};
}

numbered! {
    Phase: "a phase of a workflow run" {
        Phase::Main = 0,
        Phase::OnFailure = 1,
        Phase::Finally = 2,
    }
    StepState: "the state of a step" {
        StepState::Blocked = 0,
        StepState::Held = 1,
        StepState::Open = 2,
        StepState::Waiting = 3,
        StepState::Succeeded = 10,
        StepState::Failed = 11,
        StepState::Skipped = 12,
        StepState::Unreached = 13,
        StepState::Cancelled = 14,
    }
    Stop: "why a workflow run stops" {
        Stop::No = 0,
        Stop::Failed = 1,
        Stop::TimedOut = 2,
        Stop::Cancelled = 3,
        Stop::CancelledNow = 4,
    }
    RunOutcome: "the outcome of a workflow run" {
        RunOutcome::Succeeded = 0,
        RunOutcome::Failed = 1,
        RunOutcome::TimedOut = 2,
        RunOutcome::Cancelled = 3,
    }
}

impl Cell for StepNo {
    const WANTED: &'static str = "the number of a step";

    fn of(value: Value) -> Result<Self, Value> {
        u32::of(value).map(StepNo)
    }
}

impl From<StepNo> for Value {
    fn from(step: StepNo) -> Self {
        Value::Int(step.0.into())
    }
}

impl Cell for WorkflowId {
    const WANTED: &'static str = "the id of a workflow";

    fn of(value: Value) -> Result<Self, Value> {
        i64::of(value).map(WorkflowId)
    }
}

impl From<WorkflowId> for Value {
    fn from(workflow: WorkflowId) -> Self {
        Value::Int(workflow.0)
    }
}
