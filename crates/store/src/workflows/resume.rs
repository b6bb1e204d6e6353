//! Resumes workflow runs that have ended: a new run keeps the steps that succeeded, and runs the others again.
//!
//! What the new run keeps is copied in the transaction that opens it, so it needs nothing of the run before any more. A
//! run is resumed at most once, by a user or by a retry; after that the new run can be resumed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::{Origin, Run, RunId, StoreError, WorkflowId};
use serde_json::Value as Json;
use timer::Timestamp;
use workflow::data::{check_inputs, output_of};
use workflow::definition::{Action, Phase, RetryFrom};
use workflow::resume::{Past, Resumption, resume as rule};
use workflow::{Graph, RunOutcome, StepNo, StepRow, StepState};

use super::rows::{self, Step, WorkflowRun};
use super::{TABLES, graph, inputs_of, insert_starter};
use crate::database::{BrokenRule, Tables};
use crate::runs::{self, Opening};
use crate::session::{Lock, Session, SessionError};
use crate::table::table;
use crate::{control, jobs};

/// Request to resume a workflow run that has ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resume {
    /// Idempotency key.
    pub key: i64,
    /// Names of steps that run again although they succeeded.
    pub again: Vec<String>,
    /// Outputs of failed steps, by name: these steps count as succeeded.
    pub set: BTreeMap<String, Json>,
    /// Whether the new run uses the current definition of the workflow, instead of that of the run before.
    pub latest: bool,
    /// Name of the user.
    pub user: String,
}

/// Effect of a [`Resume`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resumed {
    /// The new run; none for a preview.
    pub run: Option<RunId>,
    /// Names of the steps that it keeps, in the order of the definition.
    pub kept: Vec<String>,
    /// Names of all other steps: they run, unless they are skipped.
    pub to_run: Vec<String>,
}

impl Resumed {
    fn new(run: Option<RunId>, graph: &Graph, is_kept: impl Fn(&StepNo) -> bool) -> Resumed {
        let (kept, to_run): (Vec<StepNo>, Vec<StepNo>) = graph.steps().partition(is_kept);
        let names = |steps: Vec<StepNo>| steps.iter().map(|step| graph.step(*step).name.clone()).collect();
        Resumed { run, kept: names(kept), to_run: names(to_run) }
    }
}

/// What a request would do. Writes nothing.
pub async fn preview(
    s: &mut dyn Session,
    tables: &Tables,
    run: RunId,
    asked: &Resume,
) -> Result<Resumed, SessionError> {
    let past = find_past(s, run, Lock::None).await?;
    let (_, plan) = Plan::check(s, tables, &past, asked).await?;
    Ok(Resumed::new(None, &plan.graph, |step| plan.resumption.kept.contains_key(step)))
}

/// Opens the new run. Idempotent: the same key returns the same run.
pub async fn resume(
    s: &mut dyn Session,
    tables: &Tables,
    run: RunId,
    asked: &Resume,
) -> Result<Resumed, SessionError> {
    let past = find_past(s, run, Lock::Wait).await?;
    if let Some(earlier) = control::triggered(s, past.job, asked.key).await? {
        return answer_again(s, tables, run, earlier).await;
    }
    let (stored, plan) = Plan::check(s, tables, &past, asked).await?;
    if let Some(unbegun) = find_next(s, past.id).await? {
        for (table, key) in TABLES {
            s.delete(table, key, &[unbegun.0]).await?;
        }
    }
    let now = s.now().await?;
    let run = Run {
        param: Some(past.inputs.clone()),
        ..runs::waiting(past.job, Origin::Resume { of: past.id }, past.scheduled_at, now)
    };
    let opened = runs::open(s, tables, vec![Opening { run, job: &stored.job }]).await?;
    let run = opened[0].id;
    control::remember_trigger(s, past.job, asked.key, run, now).await?;
    insert_starter(s, run, &asked.user, now).await?;
    plan.write(s, now, run, &past, &asked.user).await?;
    if super::graphs::touch(s, now, &BTreeSet::from([plan.workflow.0])).await? == 0 {
        return Err(conflict("the definition of the run was deleted just now, with the run".to_owned()));
    }
    Ok(Resumed::new(Some(run), &plan.graph, |step| plan.resumption.kept.contains_key(step)))
}

/// Lets retries of workflow runs go on where the runs before have failed, unless their definitions want them to begin
/// anew.
pub async fn retry(
    s: &mut dyn Session,
    tables: &Tables,
    now: Timestamp,
    retries: &[Run],
) -> Result<(), SessionError> {
    for run in retries {
        let Some(of) = run.retry_of else { continue };
        // A run that failed before its first step has no row.
        let Some(past) = rows::select_runs(s, &[of.0], Lock::None).await?.pop() else { continue };
        if past.end.is_none() {
            continue;
        }
        let graph = graph(s, tables, past.workflow).await?;
        let steps = steps_of(s, of).await?;
        let states = states_of(tables, &steps);
        let resumption = match graph.definition().retry_from {
            RetryFrom::Failed => rule(Past { graph: &graph, states: &states }, &graph, &BTreeSet::new()),
            RetryFrom::Start => Resumption::default(),
        };
        let plan = Plan { workflow: past.workflow, graph, resumption, steps, set: BTreeMap::new() };
        plan.write(s, now, run.id, &past, "").await?;
    }
    Ok(())
}

async fn find_past(s: &mut dyn Session, run: RunId, lock: Lock) -> Result<WorkflowRun, SessionError> {
    let found = rows::select_runs(s, &[run.0], lock).await?.pop();
    found.ok_or_else(|| conflict(format!("run {run} is no workflow run, or has not begun yet")))
}

fn conflict(message: String) -> SessionError {
    StoreError::Conflict(message).into()
}

/// The answer to an earlier request with the same key.
async fn answer_again(
    s: &mut dyn Session,
    tables: &Tables,
    of: RunId,
    run: RunId,
) -> Result<Resumed, SessionError> {
    let Some(row) = find(s, run).await?.filter(|row| row.of == of) else {
        return Err(conflict(format!(
            "the key of the request was used for run {run}, which does not resume run {of}"
        )));
    };
    let graph = graph(s, tables, row.workflow).await?;
    let kept = kept_steps(s, run).await?;
    Ok(Resumed::new(Some(run), &graph, |step| kept.contains(step)))
}

async fn steps_of(s: &mut dyn Session, run: RunId) -> Result<BTreeMap<StepNo, Step>, SessionError> {
    let steps = rows::select_steps(s, run, "", Vec::new()).await?;
    Ok(steps.into_iter().map(|step| (step.row.step, step)).collect())
}

fn states_of(tables: &Tables, steps: &BTreeMap<StepNo, Step>) -> BTreeMap<StepNo, StepState> {
    let state = |step: &Step| match (step.row.state, tables.broken_rule) {
        (StepState::Failed, Some(BrokenRule::FailedSteps)) => StepState::Succeeded,
        (state, _) => state,
    };
    steps.iter().map(|(number, step)| (*number, state(step))).collect()
}

/// What a new run keeps of another one.
struct Plan {
    /// Definition of the new run.
    workflow: WorkflowId,
    graph: Arc<Graph>,
    resumption: Resumption,
    /// Steps of the run before.
    steps: BTreeMap<StepNo, Step>,
    /// Outputs that a user has set.
    set: BTreeMap<StepNo, Json>,
}

impl Plan {
    /// Checks a request. Also returns the job.
    async fn check(
        s: &mut dyn Session,
        tables: &Tables,
        past: &WorkflowRun,
        asked: &Resume,
    ) -> Result<(jobs::Stored, Plan), SessionError> {
        let Some(end) = &past.end else {
            return Err(not_over(past.id));
        };
        if !runs::select(s, "WHERE run_id = ?", &[past.id.into()], Lock::None).await?.is_empty() {
            return Err(not_over(past.id));
        }
        check_not_resumed(s, past.id).await?;
        let stored = jobs::load_one(s, tables, past.job).await?;
        let stored = stored.ok_or(StoreError::NoSuchJob(past.job))?;
        let Some(current) = stored.job.spec.workflow else {
            return Err(conflict(format!("job {} is no workflow any more", past.job)));
        };
        let workflow = if asked.latest { current } else { past.workflow };
        let plan = Plan::new(s, tables, past, workflow, asked).await?;
        if end.outcome == RunOutcome::Succeeded && plan.resumption.repeated.is_empty() {
            let why = "has nothing to run again: it has succeeded; name the steps that are to run again";
            return Err(conflict(format!("run {} {why}", past.id)));
        }
        Ok((stored, plan))
    }

    async fn new(
        s: &mut dyn Session,
        tables: &Tables,
        past: &WorkflowRun,
        workflow: WorkflowId,
        asked: &Resume,
    ) -> Result<Plan, SessionError> {
        let (before, graph) = (graph(s, tables, past.workflow).await?, graph(s, tables, workflow).await?);
        check_inputs(&graph.definition().inputs, &inputs_of(&past.inputs)?).map_err(StoreError::Invalid)?;
        let number = |name: &String| {
            let shown: String = name.chars().take(workflow::NAME_MAX).collect();
            graph.find(name).ok_or_else(|| StoreError::Invalid(format!("there is no step `{shown}`")))
        };
        let again = asked.again.iter().map(number).collect::<Result<BTreeSet<_>, _>>()?;
        let steps = steps_of(s, past.id).await?;
        let mut states = states_of(tables, &steps);
        let mut set = BTreeMap::new();
        for (name, output) in &asked.set {
            let step = number(name)?;
            if matches!(graph.step(step).action, Action::Approval { .. }) {
                let why = format!("step `{name}` cannot be set: only its approvers decide about it");
                return Err(StoreError::Invalid(why).into());
            }
            let old = before.find(name).and_then(|old| states.get_mut(&old));
            match old {
                Some(state) if matches!(state, StepState::Failed | StepState::Cancelled) => {
                    *state = StepState::Succeeded;
                }
                _ => return Err(conflict(format!("step `{name}` of run {} has not failed", past.id))),
            }
            let output = output_of(&output.to_string());
            let output = output.map_err(|why| StoreError::Invalid(format!("step `{name}`: {why}")))?;
            crate::schema::check_text(&output.to_string())?;
            set.insert(step, output);
        }
        let resumption = rule(Past { graph: &before, states: &states }, &graph, &again);
        if let Some(step) = set.keys().find(|step| !resumption.kept.contains_key(step)) {
            let name = &graph.step(*step).name;
            let why = match graph.step(*step).phase {
                Phase::Main => "it has changed, or needs a step that runs again",
                Phase::OnFailure | Phase::Finally => "only steps of the main phase are kept",
            };
            return Err(StoreError::Invalid(format!("step `{name}` cannot be set: {why}")).into());
        }
        Ok(Plan { workflow, graph, resumption, steps, set })
    }

    async fn write(
        &self,
        s: &mut dyn Session,
        now: Timestamp,
        run: RunId,
        past: &WorkflowRun,
        user: &str,
    ) -> Result<(), SessionError> {
        let (into, row) = ResumeRow::INSERT;
        let resumption = NewResume { run, past, workflow: self.workflow, now };
        s.insert(into, vec![row(resumption)]).await?;
        if self.resumption.kept.is_empty() {
            return Ok(());
        }
        let kept = self.resumption.kept.iter();
        let (into, row) = KeptRow::INSERT;
        let of = |(step, old): (&StepNo, &StepNo)| {
            row((run, *step, (!self.set.contains_key(step)).then_some(*old)))
        };
        s.insert(into, kept.clone().map(of).collect()).await?;
        let steps =
            kept.filter_map(|(step, old)| Some(self.kept_step(now, run, *step, self.steps.get(old)?, user)));
        rows::insert_steps(s, &steps.collect::<Vec<_>>()).await?;
        for sql in [COPY_OUTPUTS, COPY_DECISIONS] {
            s.execute(sql, &[past.id.into(), run.into()]).await?;
        }
        let set = self.set.iter().map(|(step, output)| (run, *step, output.to_string()));
        rows::insert_outputs(s, &set.collect::<Vec<_>>()).await
    }

    /// Row of a kept step: as it was, or as a user has set it.
    fn kept_step(&self, now: Timestamp, run: RunId, step: StepNo, old: &Step, user: &str) -> Step {
        let row = StepRow { state: StepState::Succeeded, ..StepRow::new(&self.graph, step) };
        if self.set.contains_key(&step) {
            let message = Some(format!("its output was set by {user}"));
            return Step { ended_at: Some(now), message, ..Step::new(run, row) };
        }
        Step { run, row, due_at: None, ..old.clone() }
    }
}

fn not_over(run: RunId) -> SessionError {
    conflict(format!("run {run} has not ended yet; only a run that has ended can be resumed"))
}

/// A run is resumed once. One that was resumed by a run that never began may be resumed again.
async fn check_not_resumed(s: &mut dyn Session, of: RunId) -> Result<(), SessionError> {
    let Some(next) = find_next(s, of).await? else {
        return Ok(());
    };
    let is_open = !runs::select(s, "WHERE run_id = ?", &[next.into()], Lock::None).await?.is_empty();
    if is_open || !rows::select_runs(s, &[next.0], Lock::None).await?.is_empty() {
        return Err(conflict(format!("run {of} was resumed by run {next} already; resume that one")));
    }
    Ok(())
}

// ── Rows ────────────────────────────────────────────────────────────────────────────────────────────────────────

/// A resumption to store.
#[derive(Clone, Copy)]
struct NewResume<'a> {
    run: RunId,
    past: &'a WorkflowRun,
    workflow: WorkflowId,
    now: Timestamp,
}

table! {
    /// Row of `tw_resume`.
    struct ResumeRow in "tw_resume" of new: NewResume<'_> {
        of_run: RunId = new.past.id,
        workflow_id: WorkflowId = new.workflow,
        attempt: u32 = i64::from(new.past.attempt) + 1,
        inputs: String = new.past.inputs.as_str(),
    }
    not read { run_id = new.run, at_ms = new.now }
}

table! {
    /// Row of `tw_kept_step`.
    struct KeptRow in "tw_kept_step" of kept: (RunId, StepNo, Option<StepNo>) {
        step: StepNo = kept.1,
    }
    not read { run_id = kept.0, of_step = kept.2 }
}

/// A run that resumes another one.
pub struct Resuming {
    /// The run that it resumes.
    pub of: RunId,
    /// Definition that it uses.
    pub workflow: WorkflowId,
    /// Attempt number, over all runs of the chain.
    pub attempt: u32,
    /// Inputs, as a JSON object.
    pub inputs: String,
}

/// What a run resumes, if it does.
pub async fn find(s: &mut dyn Session, run: RunId) -> Result<Option<Resuming>, SessionError> {
    let sql = format!("SELECT {} FROM tw_resume WHERE run_id = ?", ResumeRow::LIST);
    let Some(row) = s.query(&sql, &[run.into()], Lock::None).await?.into_iter().next() else {
        return Ok(None);
    };
    let row = ResumeRow::read(&mut row.read())?;
    let (of, workflow, attempt, inputs) = (row.of_run, row.workflow_id, row.attempt, row.inputs);
    Ok(Some(Resuming { of, workflow, attempt, inputs }))
}

/// The run that resumes this one, if one does.
pub async fn find_next(s: &mut dyn Session, of: RunId) -> Result<Option<RunId>, SessionError> {
    let sql = "SELECT run_id FROM tw_resume WHERE of_run = ?";
    let rows = s.query(sql, &[of.into()], Lock::None).await?;
    rows.into_iter().next().map(|row| Ok(RunId(row.read().int()?))).transpose()
}

/// Steps that a run keeps of the one that it resumes.
pub async fn kept_steps(s: &mut dyn Session, run: RunId) -> Result<BTreeSet<StepNo>, SessionError> {
    let sql = format!("SELECT {} FROM tw_kept_step WHERE run_id = ?", KeptRow::LIST);
    let rows = s.query(&sql, &[run.into()], Lock::None).await?;
    rows.into_iter().map(|row| Ok(KeptRow::read(&mut row.read())?.step)).collect()
}

/// Copies what kept steps have, in the database: outputs can be large.
const COPY_OUTPUTS: &str = "INSERT INTO tw_step_output (run_id, step, body) \
     SELECT k.run_id, k.step, o.body FROM tw_kept_step k JOIN tw_step_output o ON o.run_id = ? AND o.step = k.of_step \
     WHERE k.run_id = ?";
const COPY_DECISIONS: &str = "INSERT INTO tw_decision (run_id, step, approved, user_name, remark, at_ms) \
     SELECT k.run_id, k.step, d.approved, d.user_name, d.remark, d.at_ms FROM tw_kept_step k \
     JOIN tw_decision d ON d.run_id = ? AND d.step = k.of_step WHERE k.run_id = ?";
