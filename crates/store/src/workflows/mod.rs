//! Workflow runs. A run is a row of `tw_workflow_run`, a row of `tw_step` per step, and a queue of events.
//!
//! Whatever happens to a workflow run is first an event: its beginning, the end of a step, an order of a user. An event
//! is stored without a lock, in the transaction that it belongs to: the end of a step in the one that closes the step's
//! run, whichever that is. [`advance`](advance::advance) applies the events of a run, and deletes them, under the lock of
//! the run. So a step ends once, and no transaction waits for a workflow run while it holds anything else.

pub mod advance;
mod dependencies;
mod graphs;
pub mod prune;
pub mod resume;
mod rows;
pub mod step_jobs;
pub mod versions;

use std::collections::{BTreeMap, BTreeSet};

use cron::Zone;
use engine::{Job, Moved, Origin, Outcome, Run, RunId, RunState, StoreError, WorkflowEvent};
use serde_json::Value as Json;
use timer::Timestamp;
use workflow::data::output_of;
use workflow::{StepNo, date};

use crate::database::{BrokenRule, Tables};
use crate::runs::{self, Closing, FireEnd};
use crate::session::{Columns, Lock, Session, SessionError, Value};
use crate::table::{Cell, table};
use crate::wall::Wall;

pub use graphs::{
    Graphs, WorkflowRow, graph, hex_digest, insert_definition, select_definition, select_definitions,
};
pub use rows::{RunEnd, Step, WorkflowRun, outputs, select_runs, select_steps};

// ── Opening ─────────────────────────────────────────────────────────────────────────────────────────────────────

pub async fn open(
    s: &mut dyn Session,
    tables: &Tables,
    now: Timestamp,
    run: &Run,
    job: &Job,
) -> Result<Moved, SessionError> {
    let may_resume = run.attempt > 1 || matches!(run.origin, Origin::Resume { .. });
    let resuming = if may_resume { resume::find(s, run.id).await? } else { None };
    let Some(id) = resuming.as_ref().map(|found| found.workflow).or(job.spec.workflow) else {
        return Err(StoreError::Invalid(format!("job {} has no workflow", job.id)).into());
    };
    let graph = graph(s, tables, id).await?;
    let mut open = match runs::lock(s, &[run.id.0]).await?.remove(&run.id.0) {
        Some(open) if open.version != run.version => return Ok(Moved::Stale),
        Some(open) if open.state == RunState::Cancelling => return Ok(Moved::Cancelling),
        Some(open) if open.state == RunState::Claimed => open,
        _ => return Ok(Moved::Stale),
    };
    if open.depth > DEPTH_MAX {
        let message = format!("workflows are nested more than {DEPTH_MAX} levels deep, probably in a circle");
        return Err(StoreError::Invalid(message).into());
    }
    let (day, _, _) = Wall::new(zone_of(job, tables)).day(open.scheduled_at);
    let definition = graph.definition();
    let mut opened = WorkflowRun {
        id: open.id,
        job: job.id,
        workflow: id,
        scheduled_at: open.scheduled_at,
        attempt: resuming.as_ref().map_or(open.attempt, |found| found.attempt),
        depth: open.depth,
        day,
        inputs: String::new(),
        progress: workflow::RunRow::new(&graph),
        begun_at: now,
        deadline: definition.timeout.map(|timeout| now + timeout),
        end: None,
    };
    let param = open.param.as_deref().unwrap_or(&job.spec.param);
    let given = inputs_of(resuming.as_ref().map_or(param, |found| &found.inputs))?;
    let facts = facts(&opened, definition.business_days);
    let inputs = graph.inputs(&given, &facts).map_err(StoreError::Invalid)?;
    opened.inputs = Json::Object(inputs.into_iter().collect()).to_string();

    rows::insert_run(s, &opened).await?;
    let kept = if resuming.is_some() { resume::kept_steps(s, open.id).await? } else { BTreeSet::new() };
    let row = |step| Step::new(open.id, workflow::StepRow::new(&graph, step));
    let others = graph.steps().filter(|step| !kept.contains(step));
    rows::insert_steps(s, &others.map(row).collect::<Vec<_>>()).await?;
    let kind = if kept.is_empty() { Kind::Begin } else { Kind::Resume };
    insert_events(s, now, vec![Event { run: open.id, kind, step: None, body: None }]).await?;

    open.state = RunState::Running;
    open.version += 1;
    // No node has it: events let any node go on.
    open.node = None;
    open.address = None;
    open.check_at = opened.deadline.unwrap_or(now + CHECK_EVERY).min(now + CHECK_EVERY);
    let version = open.version;
    runs::save(s, &[open]).await?;
    Ok(Moved::Done(version))
}

/// Maximum number of workflow runs within each other.
const DEPTH_MAX: u32 = 16;

/// Interval of checks of a workflow run without a time limit.
const CHECK_EVERY: std::time::Duration = std::time::Duration::from_secs(600);

/// Zone in which the day of a run is counted.
fn zone_of<'a>(job: &'a Job, tables: &'a Tables) -> &'a Zone {
    job.spec.schedule.zone().unwrap_or(&tables.zone)
}

/// Inputs of a run, from its parameter.
fn inputs_of(param: &str) -> Result<BTreeMap<String, Json>, StoreError> {
    if param.trim().is_empty() {
        return Ok(BTreeMap::new());
    }
    let invalid = |error| {
        StoreError::Invalid(format!(
            "the parameter of a workflow run must be a JSON object with its inputs: {error}"
        ))
    };
    serde_json::from_str(param).map_err(invalid)
}

/// What expressions see as `run`.
fn facts(run: &WorkflowRun, business_days: i32) -> BTreeMap<String, Json> {
    let business_date = match date::parse(&run.day) {
        Ok(day) => date::shifted(day, business_days).to_string(),
        Err(_) => run.day.clone(),
    };
    let state = match run.progress.stop {
        workflow::Stop::No if run.progress.failed == 0 => "running",
        workflow::Stop::No | workflow::Stop::Failed => "failed",
        workflow::Stop::TimedOut => "timed_out",
        workflow::Stop::Cancelled | workflow::Stop::CancelledNow => "cancelled",
    };
    let facts = [
        ("id", Json::from(run.id.0)),
        ("date", run.day.clone().into()),
        ("business_date", business_date.into()),
        ("scheduled_at", run.scheduled_at.to_string().into()),
        ("attempt", run.attempt.into()),
        ("started_at", run.begun_at.to_string().into()),
        ("state", state.into()),
        ("failed", run.progress.failed.into()),
    ];
    facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

// ── Events ──────────────────────────────────────────────────────────────────────────────────────────────────────

/// Something that happened to a workflow run.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Id of the workflow run.
    pub run: RunId,
    /// What happened.
    pub kind: Kind,
    /// The step that it happened to, if it did to one.
    pub step: Option<StepNo>,
    /// Output of the step as JSON, or the reason of its failure.
    pub body: Option<String>,
}

/// Kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The run was opened.
    Begin,
    /// A step succeeded.
    Succeeded,
    /// A step failed.
    Failed,
    /// A step was cancelled.
    Cancelled,
    /// The run was opened, with steps that it keeps of another one.
    Resume,
    /// A step that depends on runs of another job is to look at them.
    Look,
    /// An event of the engine or of a user.
    Told(WorkflowEvent),
}

impl Kind {
    /// Whether it is the end of a step.
    fn is_end(self) -> bool {
        matches!(self, Kind::Succeeded | Kind::Failed | Kind::Cancelled)
    }
}

impl Cell for Kind {
    const WANTED: &'static str = "the kind of an event";

    fn of(value: Value) -> Result<Self, Value> {
        let number = i64::of(value)?;
        KINDS.iter().find(|(_, known)| *known == number).map(|(kind, _)| *kind).ok_or(Value::Int(number))
    }
}

impl From<Kind> for Value {
    fn from(kind: Kind) -> Self {
        let number = KINDS.iter().find(|(known, _)| *known == kind).map(|(_, number)| *number);
        Value::Int(number.expect("all kinds are listed"))
    }
}

/// Numbers in the rows.
const KINDS: [(Kind, i64); 11] = [
    (Kind::Begin, 0),
    (Kind::Succeeded, 1),
    (Kind::Failed, 2),
    (Kind::Cancelled, 3),
    (Kind::Told(WorkflowEvent::Check), 4),
    (Kind::Told(WorkflowEvent::Pause), 5),
    (Kind::Told(WorkflowEvent::Continue), 6),
    (Kind::Told(WorkflowEvent::Cancel), 7),
    (Kind::Told(WorkflowEvent::CancelNow), 8),
    (Kind::Resume, 9),
    (Kind::Look, 10),
];

table! {
    /// Row of `tw_workflow_event`.
    struct EventRow in "tw_workflow_event" of event: (&Event, Timestamp) {
        run_id: RunId = event.0.run,
        kind: Kind = event.0.kind,
        step: Option<StepNo> = event.0.step,
        body: Option<String> = event.0.body.as_deref(),
    }
    not inserted { id: i64 }
    not read { at_ms = event.1 }
}

impl From<EventRow> for (i64, Event) {
    fn from(row: EventRow) -> (i64, Event) {
        (row.id, Event { run: row.run_id, kind: row.kind, step: row.step, body: row.body })
    }
}

async fn insert_events(s: &mut dyn Session, now: Timestamp, events: Vec<Event>) -> Result<(), SessionError> {
    if events.is_empty() {
        return Ok(());
    }
    let (into, row) = EventRow::INSERT;
    s.insert(into, events.iter().map(|event| row((event, now))).collect()).await
}

pub async fn tell(s: &mut dyn Session, run: RunId, event: WorkflowEvent) -> Result<bool, SessionError> {
    let found = rows::select_runs(s, &[run.0], Lock::None).await?;
    // One that has ended is checked until its run is completed.
    let listens = |found: &WorkflowRun| found.end.is_none() || event == WorkflowEvent::Check;
    if !found.first().is_some_and(listens) {
        return Ok(false);
    }
    let now = s.now().await?;
    insert_events(s, now, vec![Event { run, kind: Kind::Told(event), step: None, body: None }]).await?;
    Ok(true)
}

/// Stores the ends of steps whose runs are closed, and lets the steps look that depend on these runs. A step with another
/// attempt, or another shard, has not ended.
pub async fn note_ends(
    s: &mut dyn Session,
    now: Timestamp,
    closings: &[Closing],
    ends: &[FireEnd],
) -> Result<(), SessionError> {
    let ended = closings.iter().zip(ends).filter(|(_, end)| end.over);
    let end_of = |(closing, end): (&Closing, &FireEnd)| end_of_step(&closing.run, &closing.outcome, *end);
    let mut events: Vec<Event> = ended.clone().filter_map(end_of).collect();
    let times: Vec<_> = ended.map(|(closing, _)| (closing.run.job, closing.run.scheduled_at)).collect();
    events.extend(dependencies::events(s, &times).await?);
    insert_events(s, now, events).await
}

/// Stores the end of a step whose run was given up and has succeeded after all: its next attempt was taken back.
pub async fn note_late_end(
    s: &mut dyn Session,
    now: Timestamp,
    run: &Run,
    outcome: &Outcome,
    end: FireEnd,
) -> Result<(), SessionError> {
    if !end.over {
        return Ok(());
    }
    let mut events: Vec<Event> = end_of_step(run, outcome, end).into_iter().collect();
    events.extend(dependencies::events(s, &[(run.job, run.scheduled_at)]).await?);
    insert_events(s, now, events).await
}

fn end_of_step(run: &Run, outcome: &Outcome, end: FireEnd) -> Option<Event> {
    let Origin::Step { of, step } = run.origin else {
        return None;
    };
    let (kind, body) = match outcome {
        Outcome::Succeeded(_) if !end.succeeded => {
            (Kind::Failed, "another shard of the run has failed".to_owned())
        }
        Outcome::Succeeded(message) => match output_of(message) {
            Ok(output) => (Kind::Succeeded, output.to_string()),
            Err(problem) => (Kind::Failed, problem),
        },
        Outcome::Cancelled(reason) => (Kind::Cancelled, runs::message_text(reason)),
        failure => (Kind::Failed, runs::message_text(failure.message())),
    };
    Some(Event { run: of, kind, step: Some(StepNo(step)), body: Some(body) })
}

// ── Starters ────────────────────────────────────────────────────────────────────────────────────────────────────

table! {
    /// Row of `tw_run_starter`.
    struct StarterRow in "tw_run_starter" of started: (RunId, &str, Timestamp) {
        user_name: String = started.1,
    }
    not read { run_id = started.0, at_ms = started.2 }
}

/// Stores the user who started a workflow run.
pub async fn insert_starter(
    s: &mut dyn Session,
    run: RunId,
    user: &str,
    now: Timestamp,
) -> Result<(), SessionError> {
    let (into, row) = StarterRow::INSERT;
    s.insert(into, vec![row((run, user, now))]).await
}

/// The user who started or resumed an open workflow run, or the one that it is part of. A run of a schedule has none.
pub async fn starter(s: &mut dyn Session, run: RunId) -> Result<Option<String>, SessionError> {
    let mut id = run;
    for _ in 0..=DEPTH_MAX {
        let Some(open) = runs::select(s, "WHERE run_id = ?", &[id.into()], Lock::None).await?.pop() else {
            return Ok(None);
        };
        if let Origin::Step { of, .. } = open.origin {
            id = of;
            continue;
        }
        // A retry belongs to the fire of the run before it.
        let sql = format!("SELECT {} FROM tw_run_starter WHERE run_id = ?", StarterRow::LIST);
        let rows = s.query(&sql, &[open.fire.into()], Lock::None).await?;
        return rows
            .into_iter()
            .next()
            .map(|row| Ok(StarterRow::read(&mut row.read())?.user_name))
            .transpose();
    }
    Ok(None)
}

// ── Decisions ───────────────────────────────────────────────────────────────────────────────────────────────────

/// Decision about a step that asks people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Whether the step may go on.
    pub approved: bool,
    /// Name of the user.
    pub user: String,
    /// Remark of the user.
    pub remark: String,
}

table! {
    /// Row of `tw_decision`.
    struct DecisionRow in "tw_decision" of decision: (RunId, StepNo, &Decision, Timestamp) {
        step: StepNo = decision.1,
        approved: bool = decision.2.approved,
        user_name: String = decision.2.user.as_str(),
        remark: String = decision.2.remark.as_str(),
    }
    not read { run_id = decision.0, at_ms = decision.3 }
}

/// Stores a decision. The first one counts: the same again is accepted, another is a [`StoreError::Conflict`].
pub async fn decide(
    s: &mut dyn Session,
    tables: &Tables,
    run: RunId,
    step: &str,
    decision: &Decision,
) -> Result<(), SessionError> {
    crate::schema::check_text(&decision.remark)?;
    let conflict = |message: String| SessionError::from(StoreError::Conflict(message));
    let found = rows::select_runs(s, &[run.0], Lock::Wait).await?;
    let Some(found) = found.into_iter().next() else {
        return Err(conflict(format!("run {run} is no workflow run")));
    };
    let graph = graph(s, tables, found.workflow).await?;
    let Some(number) = graph.find(step) else {
        return Err(StoreError::Invalid(format!("the workflow of run {run} has no step `{step}`")).into());
    };
    let earlier = decisions(s, run).await?.remove(&number);
    if tables.broken_rule == Some(BrokenRule::FirstDecision) && earlier.is_some() {
        let sql = "DELETE FROM tw_decision WHERE run_id = ? AND step = ?";
        s.execute(sql, &[run.into(), number.into()]).await?;
    } else if let Some(earlier) = earlier {
        if (earlier.approved, &earlier.user) == (decision.approved, &decision.user) {
            return Ok(());
        }
        let verb = if earlier.approved { "approved" } else { "refused" };
        return Err(conflict(format!("step `{step}` was {verb} by {} already", earlier.user)));
    }
    let rows = rows::steps_by_number(s, run, [number]).await?;
    let waits = rows.first().is_some_and(|row| row.row.state == workflow::StepState::Waiting);
    let asks = matches!(graph.step(number).action, workflow::definition::Action::Approval { .. });
    if !waits || !asks {
        return Err(conflict(format!("step `{step}` of run {run} does not wait for an approval")));
    }
    let now = s.now().await?;
    let (into, row) = DecisionRow::INSERT;
    s.insert(into, vec![row((run, number, decision, now))]).await?;
    let (kind, body) = match decision.approved {
        true => {
            let output =
                serde_json::json!({ "approved": true, "by": decision.user, "remark": decision.remark });
            (Kind::Succeeded, output.to_string())
        }
        false => (Kind::Failed, format!("refused by {}: {}", decision.user, decision.remark)),
    };
    insert_events(s, now, vec![Event { run, kind, step: Some(number), body: Some(body) }]).await
}

/// Decisions about steps of a run.
pub async fn decisions(s: &mut dyn Session, run: RunId) -> Result<BTreeMap<StepNo, Decision>, SessionError> {
    let sql = format!("SELECT {} FROM tw_decision WHERE run_id = ?", DecisionRow::LIST);
    let rows = s.query(&sql, &[run.into()], Lock::None).await?;
    let read = |row: crate::session::Row| -> Result<_, SessionError> {
        let row = DecisionRow::read(&mut row.read())?;
        Ok((row.step, Decision { approved: row.approved, user: row.user_name, remark: row.remark }))
    };
    rows.into_iter().map(read).collect()
}

/// Tables with rows of workflow runs, and their columns with the run's id.
pub const TABLES: [(&str, &str); 8] = [
    ("tw_workflow_run", "run_id"),
    ("tw_step", "run_id"),
    ("tw_step_output", "run_id"),
    ("tw_decision", "run_id"),
    ("tw_workflow_event", "run_id"),
    ("tw_resume", "run_id"),
    ("tw_kept_step", "run_id"),
    ("tw_dependency", "run_id"),
];

/// Columns of the only statement that changes a row of `tw_run` for its workflow run.
const CHECK: Columns<'static> = Columns { table: "tw_run", keys: &["run_id"], columns: &["check_ms"] };
