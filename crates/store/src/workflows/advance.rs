//! Applies events to workflow runs: steps end, the steps that need them open, and their runs are claimed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::policy::{Target, Word as _};
use engine::{
    Advance, AppId, Assignment, Job, JobId, Node, Order, Origin, Outcome, Planner, Run, RunId, RunState,
    Shard, StoreError, WorkflowEvent,
};
use serde_json::Value as Json;
use timer::Timestamp;
use workflow::definition::{Action, Phase};
use workflow::expression::{Scope, StepValue};
use workflow::join::Tally;
use workflow::{
    Changes, Graph, Opening, Progress, RunOutcome, StepEnd, StepNo, StepRow, StepState, Stop, Wants,
};

use super::dependencies::{self, Dependency, Look};
use super::rows::{self, RunEnd, Step, WorkflowRun};
use super::{CHECK, CHECK_EVERY, Event, EventRow, Kind, facts, graph, insert_events};
use crate::claim::asked_to_cancel;
use crate::database::{BrokenRule, Tables};
use crate::jobs::{self, Stored};
use crate::nodes;
use crate::runs::{self, Closing};
use crate::session::{Lock, Session, SessionError, Value};

pub async fn advance(
    s: &mut dyn Session,
    tables: &Tables,
    node: &Node,
    now: Timestamp,
    max: usize,
    planner: &dyn Planner,
) -> Result<Advance, SessionError> {
    let (ids, more) = runs_with_events(s, max).await?;
    if ids.is_empty() {
        return Ok(Advance::default());
    }
    nodes::check_alive(s, node, now).await?;
    // A run that another node works on is left to it.
    let found = rows::select_runs(s, &ids, Lock::Skip).await?;
    let (mut events, is_full) = events_of(s, &ids).await?;
    let mut work = Work { more: more || is_full, ..Work::default() };
    let known: BTreeSet<RunId> = found.iter().map(|run| run.id).collect();
    work.forget_unknown(s, &mut events, &known).await?;
    let mut ready = Vec::new();
    for run in found {
        if let Some(events) = events.remove(&run.id) {
            ready.extend(work.prepare(s, tables, now, run, events).await?);
        }
    }
    let graphs: Vec<Arc<Graph>> = ready.iter().map(|ready| Arc::clone(&ready.graph)).collect();
    let group = ready
        .into_iter()
        .zip(&graphs)
        .map(|(ready, graph)| Member::new(graph, ready, now, tables.broken_rule));
    apply(s, tables, group.collect(), planner, &mut work).await?;
    work.write(s, tables, node, now, planner).await
}

/// Applies the events of several runs. Their rows are read together: a database server is asked as often for a hundred
/// runs as for one.
async fn apply(
    s: &mut dyn Session,
    tables: &Tables,
    mut group: Vec<Member<'_>>,
    planner: &dyn Planner,
    work: &mut Work,
) -> Result<(), SessionError> {
    let steps = |member: &Member<'_>| -> BTreeSet<StepNo> {
        let ends = member.events.iter().filter(|event| event.kind.is_end());
        ends.filter_map(|event| event.step).collect()
    };
    read(s, &mut group, steps).await?;
    for member in &mut group {
        for event in std::mem::take(&mut member.events) {
            let Member { advancing, progress, .. } = &mut *member;
            work.started |= advancing.take(s, tables, planner, progress, event).await?;
        }
    }
    complete(s, &mut group).await?;
    for Member { advancing, progress, .. } in group {
        advancing.write(s, tables, progress.finish(), work).await?;
    }
    Ok(())
}

/// Reads what the progress of each run needs, level by level, until all are complete.
async fn complete(s: &mut dyn Session, group: &mut [Member<'_>]) -> Result<(), SessionError> {
    loop {
        let wants: Vec<Wants> = group.iter_mut().map(Member::wants).collect();
        if wants.iter().all(Wants::is_empty) {
            return Ok(());
        }
        let wanted = |of: fn(&Wants) -> &BTreeSet<StepNo>| -> rows::Wanted {
            group.iter().zip(&wants).map(|(member, wants)| (member.run(), of(wants).clone())).collect()
        };
        let (steps, outputs) = (wanted(|wants| &wants.rows), wanted(|wants| &wants.outputs));
        read(s, group, |member| steps.get(&member.run()).cloned().unwrap_or_default()).await?;
        let mut stored = rows::outputs_of_runs(s, &outputs).await?;
        for (member, wants) in group.iter_mut().zip(wants) {
            if !wants.is_empty() {
                let known = &member.advancing.steps;
                let rows = wants.rows.iter().filter_map(|step| known.get(step)).map(|step| step.row.clone());
                let rows = rows.map(|row| match member.advancing.broken_rule {
                    Some(BrokenRule::OpenNeeds) => StepRow { tally: Tally { waits: 1, ..row.tally }, ..row },
                    _ => row,
                });
                // A step that wrote none has the output `{}`.
                let mut output = |step| stored.remove(&(member.advancing.run.id, step));
                let outputs = wants
                    .outputs
                    .into_iter()
                    .map(|step| (step, output(step).unwrap_or_else(|| Json::Object(Default::default()))));
                member.progress.give(rows.collect(), outputs.collect());
            }
        }
    }
}

/// Reads those of the steps of each run that are not read yet.
async fn read(
    s: &mut dyn Session,
    group: &mut [Member<'_>],
    steps: impl Fn(&Member<'_>) -> BTreeSet<StepNo>,
) -> Result<(), SessionError> {
    let unknown = |member: &Member<'_>| -> BTreeSet<StepNo> {
        let known = &member.advancing.steps;
        steps(member).into_iter().filter(|step| !known.contains_key(step)).collect()
    };
    let wanted = group.iter().map(|member| (member.run(), unknown(member))).collect();
    let mut found: BTreeMap<RunId, Vec<Step>> = BTreeMap::new();
    for step in rows::steps_of_runs(s, &wanted).await? {
        found.entry(step.run).or_default().push(step);
    }
    for member in group {
        member.advancing.keep(found.remove(&member.run()).unwrap_or_default());
    }
    Ok(())
}

/// Runs with events, those with the oldest first, and whether there are more than `max`.
async fn runs_with_events(s: &mut dyn Session, max: usize) -> Result<(Vec<i64>, bool), SessionError> {
    let sql = "SELECT run_id FROM tw_workflow_event ORDER BY id LIMIT ?";
    let rows = s.query(sql, &[EVENTS_MAX.into()], Lock::None).await?;
    let is_full = rows.len() as i64 == EVENTS_MAX;
    let mut ids = Vec::new();
    for row in rows {
        let id = row.read().int()?;
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    let more = is_full || ids.len() > max;
    ids.truncate(max);
    ids.sort_unstable();
    Ok((ids, more))
}

type Events = BTreeMap<RunId, Vec<(i64, Event)>>;

/// Events of runs in their order, and whether there may be more.
async fn events_of(s: &mut dyn Session, runs: &[i64]) -> Result<(Events, bool), SessionError> {
    let sql =
        format!("SELECT {} FROM tw_workflow_event WHERE run_id IN ? ORDER BY id LIMIT ?", EventRow::LIST);
    let rows = s.query(&sql, &[Value::Ids(runs.to_vec()), EVENTS_MAX.into()], Lock::None).await?;
    let is_full = rows.len() as i64 == EVENTS_MAX;
    let mut events = Events::new();
    for row in rows {
        let (id, event) = EventRow::read(&mut row.read())?.into();
        events.entry(event.run).or_default().push((id, event));
    }
    Ok((events, is_full))
}

/// Maximum number of events that one transaction applies.
const EVENTS_MAX: i64 = 1_000;

/// All that a transaction writes.
#[derive(Default)]
struct Work {
    runs: Vec<WorkflowRun>,
    steps: Vec<Step>,
    outputs: Vec<(RunId, StepNo, String)>,
    /// Steps that run a job: their positions in `steps`, and the runs to open.
    openings: Vec<(usize, Run)>,
    /// Runs to cancel: closed if no node has claimed them.
    closings: Vec<Closing>,
    cancelled: Vec<Run>,
    events: Vec<Event>,
    applied: Vec<i64>,
    checks: Vec<(RunId, Timestamp)>,
    /// Runs with time limits, and their deadlines.
    limited: Vec<(RunId, Option<Timestamp>)>,
    ended: Vec<(RunId, Outcome)>,
    /// Steps that begin to depend on runs of other jobs.
    depending: Vec<Dependency>,
    /// Steps that do not depend on them any more.
    independent: Vec<(RunId, StepNo)>,
    /// Whether runs were opened for steps that depend on them.
    started: bool,
    more: bool,
}

impl Work {
    /// Deletes events of runs that do not exist any more.
    async fn forget_unknown(
        &mut self,
        s: &mut dyn Session,
        events: &mut Events,
        known: &BTreeSet<RunId>,
    ) -> Result<(), SessionError> {
        let unknown: Vec<i64> = events.keys().filter(|run| !known.contains(run)).map(|run| run.0).collect();
        if unknown.is_empty() {
            return Ok(());
        }
        // Those that exist were skipped, because another node works on them.
        let existing = rows::select_runs(s, &unknown, Lock::None).await?;
        let existing: BTreeSet<RunId> = existing.into_iter().map(|run| run.id).collect();
        for run in unknown.into_iter().map(RunId).filter(|run| !existing.contains(run)) {
            self.applied.extend(events.remove(&run).into_iter().flatten().map(|(id, _)| id));
        }
        Ok(())
    }

    /// A run with its definition. `None` if it has ended, or cannot be read.
    async fn prepare(
        &mut self,
        s: &mut dyn Session,
        tables: &Tables,
        now: Timestamp,
        run: WorkflowRun,
        events: Vec<(i64, Event)>,
    ) -> Result<Option<Ready>, SessionError> {
        self.applied.extend(events.iter().map(|(id, _)| *id));
        if let Some(end) = &run.end {
            // Its node died before the run was completed.
            self.ended.push((run.id, outcome_of(end)));
            self.checks.push((run.id, now + COMPLETE_AGAIN));
            return Ok(None);
        }
        let mut definition = run.workflow;
        if tables.broken_rule == Some(BrokenRule::OwnDefinition)
            && let Some(stored) = jobs::load_one(s, tables, run.job).await?
        {
            definition = stored.job.spec.workflow.unwrap_or(definition);
        }
        let graph = match graph(s, tables, definition).await {
            Ok(graph) => graph,
            Err(SessionError::Store(error @ (StoreError::Schema(_) | StoreError::Invalid(_)))) => {
                self.end_unreadable(now, run, &error);
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let inputs = match super::inputs_of(&run.inputs) {
            Ok(inputs) => inputs,
            Err(error) => {
                self.end_unreadable(now, run, &error);
                return Ok(None);
            }
        };
        let events = events.into_iter().map(|(_, event)| event).collect();
        Ok(Some(Ready { graph, run, inputs, events }))
    }

    /// Ends a run that cannot be read, so that it does not stop all others.
    fn end_unreadable(&mut self, now: Timestamp, mut run: WorkflowRun, error: &StoreError) {
        let end = RunEnd { at: now, outcome: RunOutcome::Failed, message: error.to_string() };
        self.ended.push((run.id, outcome_of(&end)));
        self.checks.push((run.id, now + COMPLETE_AGAIN));
        run.end = Some(end);
        self.runs.push(run);
    }

    async fn write(
        mut self,
        s: &mut dyn Session,
        tables: &Tables,
        node: &Node,
        now: Timestamp,
        planner: &dyn Planner,
    ) -> Result<Advance, SessionError> {
        let mut advance = Advance { ended: std::mem::take(&mut self.ended), ..Advance::default() };
        let ids: BTreeSet<i64> = self
            .openings
            .iter()
            .map(|(_, run)| run.job.0)
            .chain(self.cancelled.iter().map(|run| run.job.0))
            .collect();
        let jobs = jobs::load(s, tables, &ids.into_iter().collect::<Vec<_>>()).await?;
        self.open(s, tables, node, &jobs, planner, &mut advance).await?;

        advance.waiting |= self.started;
        rows::save_steps(s, &self.steps).await?;
        dependencies::register(s, &self.depending).await?;
        dependencies::forget(s, &self.independent).await?;
        rows::insert_outputs(s, &self.outputs).await?;
        rows::save_runs(s, &self.runs).await?;
        self.check_limited(s, now).await?;
        self.end_cancelled(s, tables, now, &jobs, &mut advance).await?;
        insert_events(s, now, std::mem::take(&mut self.events)).await?;
        if !self.checks.is_empty() {
            let rows = self.checks.iter().map(|(run, at)| vec![(*run).into(), (*at).into()]);
            s.update(CHECK, rows.collect()).await?;
        }
        if !self.applied.is_empty() {
            s.delete("tw_workflow_event", "id", &self.applied).await?;
        }
        advance.more = self.more;
        Ok(advance)
    }

    /// Opens the runs of steps. A step fails if its job does not exist, or may open no further run.
    async fn open(
        &mut self,
        s: &mut dyn Session,
        tables: &Tables,
        node: &Node,
        jobs: &BTreeMap<i64, Stored>,
        planner: &dyn Planner,
        advance: &mut Advance,
    ) -> Result<(), SessionError> {
        let (mut openings, mut owners) = (Vec::new(), Vec::new());
        let mut counts: BTreeMap<AppId, u64> = BTreeMap::new();
        for (position, run) in std::mem::take(&mut self.openings) {
            let usable = match jobs.get(&run.job.0) {
                None => Err(format!("job {} does not exist", run.job)),
                Some(Stored { job, .. }) => {
                    let before = counts.get(&job.spec.app).copied().unwrap_or_default();
                    planner.blocks(job, before).map_or(Ok(job), Err)
                }
            };
            let job = match usable {
                Ok(job) => job,
                Err(reason) => {
                    let Step { run, ref row, .. } = self.steps[position];
                    let (kind, step, body) = (Kind::Failed, Some(row.step), Some(reason));
                    self.events.push(Event { run, kind, step, body });
                    self.more = true;
                    continue;
                }
            };
            for run in claimed(job, run, node, planner) {
                *counts.entry(job.spec.app).or_default() += 1;
                advance.waiting |= run.state == RunState::Waiting;
                openings.push(runs::Opening { run, job });
                owners.push(position);
            }
        }
        let opened = runs::open(s, tables, openings).await?;
        let shared: BTreeMap<i64, Arc<Job>> =
            jobs.iter().map(|(id, stored)| (*id, Arc::new(stored.job.clone()))).collect();
        for (run, position) in opened.into_iter().zip(owners) {
            let step = &mut self.steps[position];
            step.fire = Some(run.fire);
            step.job = Some(run.job);
            if run.state == RunState::Claimed
                && let Some(job) = shared.get(&run.job.0)
            {
                advance.orders.push(Order { run, job: Arc::clone(job) });
            }
        }
        Ok(())
    }

    /// Sets the time of the next check of runs with time limits.
    async fn check_limited(&mut self, s: &mut dyn Session, now: Timestamp) -> Result<(), SessionError> {
        let limited = std::mem::take(&mut self.limited);
        let mut due = rows::first_due(s, limited.iter().map(|(run, _)| run.0).collect()).await?;
        for (run, deadline) in limited {
            let at = due.remove(&run).into_iter().chain(deadline).chain([now + CHECK_EVERY]).min();
            self.checks.extend(at.map(|at| (run, at)));
        }
        Ok(())
    }

    /// Ends runs of steps that are cancelled, as far as that can be done here.
    async fn end_cancelled(
        &mut self,
        s: &mut dyn Session,
        tables: &Tables,
        now: Timestamp,
        jobs: &BTreeMap<i64, Stored>,
        advance: &mut Advance,
    ) -> Result<(), SessionError> {
        self.more |= !self.closings.is_empty();
        runs::close(s, tables, now, &self.closings).await?;
        let mut saved = Vec::new();
        for run in std::mem::take(&mut self.cancelled) {
            if let Some(asked) = asked_to_cancel(run.clone()) {
                saved.push(asked);
                continue;
            }
            let job = jobs.get(&run.job.0).map(|stored| &stored.job);
            if job.is_some_and(|job| job.spec.workflow.is_some()) {
                let kind = Kind::Told(WorkflowEvent::Cancel);
                self.events.push(Event { run: run.id, kind, step: None, body: None });
                self.more = true;
            } else if let Some(job) = job {
                let job = Arc::new(job.clone());
                advance.cancelled.push(Order { run: run.clone(), job });
            }
            saved.push(Run { recalled: true, cancel: true, ..run });
        }
        runs::save(s, &saved).await
    }
}

/// The runs of a step: one per target, claimed by this node; or one that waits, if it has to.
fn claimed(job: &Job, run: Run, node: &Node, planner: &dyn Planner) -> Vec<Run> {
    let targets = match planner.assign(job, &run) {
        Assignment::Send(targets) if !job.spec.overlap.is_exclusive() => targets,
        _ => return vec![run],
    };
    let nobody = vec![Target::AtSend];
    let targets = if targets.is_empty() { nobody } else { targets };
    let total = u32::try_from(targets.len()).unwrap_or(u32::MAX);
    let shards = (0..total).map(|index| Shard { index, total });
    let claimed = |(target, shard): (Target, Shard)| Run {
        shard,
        state: RunState::Claimed,
        node: Some(node.clone()),
        address: target.address().map(str::to_owned),
        ..run.clone()
    };
    targets.into_iter().zip(shards).map(claimed).collect()
}

/// A workflow run that can be advanced.
struct Ready {
    graph: Arc<Graph>,
    run: WorkflowRun,
    inputs: BTreeMap<String, Json>,
    events: Vec<Event>,
}

/// A workflow run with the events to apply, and its progress so far.
struct Member<'g> {
    advancing: Advancing<'g>,
    progress: Progress<'g>,
    events: Vec<Event>,
    is_complete: bool,
}

impl<'g> Member<'g> {
    fn new(
        graph: &'g Graph,
        Ready { run, inputs, events, .. }: Ready,
        now: Timestamp,
        broken_rule: Option<BrokenRule>,
    ) -> Member<'g> {
        let advancing = Advancing::new(graph, run, inputs, now, broken_rule);
        let progress = Progress::new(graph, advancing.run.progress.clone(), advancing.scope.clone());
        Member { advancing, progress, events, is_complete: false }
    }

    fn run(&self) -> RunId {
        self.advancing.run.id
    }

    /// What its progress needs next; nothing once it is complete.
    fn wants(&mut self) -> Wants {
        if self.is_complete {
            return Wants::default();
        }
        let wants = self.progress.wants();
        self.is_complete = wants.is_empty();
        wants
    }
}

/// One workflow run while events are applied to it.
struct Advancing<'g> {
    graph: &'g Graph,
    run: WorkflowRun,
    now: Timestamp,
    /// Inputs and facts of the run.
    scope: Scope,
    /// Rows that were read.
    steps: BTreeMap<StepNo, Step>,
    /// Outputs of steps that ended now.
    outputs: BTreeMap<StepNo, Json>,
    /// Reasons of failures and cancellations.
    messages: BTreeMap<StepNo, String>,
    /// Steps whose runs are to be cancelled.
    to_cancel: BTreeSet<StepNo>,
    /// What steps wait for.
    notes: BTreeMap<StepNo, String>,
    /// A rule that a deliberate bug ignores.
    broken_rule: Option<BrokenRule>,
}

impl<'g> Advancing<'g> {
    fn new(
        graph: &'g Graph,
        run: WorkflowRun,
        inputs: BTreeMap<String, Json>,
        now: Timestamp,
        broken_rule: Option<BrokenRule>,
    ) -> Advancing<'g> {
        let facts = facts(&run, graph.definition().business_days);
        let scope = Scope { inputs, run: facts, steps: BTreeMap::new() };
        Advancing {
            graph,
            run,
            now,
            scope,
            steps: BTreeMap::new(),
            outputs: BTreeMap::new(),
            messages: BTreeMap::new(),
            to_cancel: BTreeSet::new(),
            notes: BTreeMap::new(),
            broken_rule,
        }
    }

    /// Applies an event. True if runs were opened that wait to be claimed.
    async fn take(
        &mut self,
        s: &mut dyn Session,
        tables: &Tables,
        planner: &dyn Planner,
        progress: &mut Progress<'_>,
        event: Event,
    ) -> Result<bool, SessionError> {
        match event.kind {
            Kind::Begin => progress.begin(),
            Kind::Resume => {
                let kept = vec![StepState::Succeeded.into()];
                let kept = rows::select_steps(s, self.run.id, " AND state = ?", kept).await?;
                progress.resume(self.keep(kept).into_iter().map(|step| step.row).collect());
            }
            Kind::Succeeded | Kind::Failed | Kind::Cancelled => {
                let Some(step) = event.step else { return Ok(false) };
                let body = event.body.unwrap_or_default();
                self.end(progress, step, event.kind, body);
            }
            Kind::Look if event.body.is_some() => self.register_late(s, tables, event.step).await?,
            Kind::Look => return self.look(s, tables, planner, progress, event.step).await,
            Kind::Told(WorkflowEvent::Check) => return self.check(s, tables, planner, progress).await,
            Kind::Told(WorkflowEvent::Pause) => progress.pause(),
            Kind::Told(WorkflowEvent::Continue) => {
                let held = rows::select_steps(s, self.run.id, " AND state = ?", vec![StepState::Held.into()])
                    .await?;
                let held: Vec<Step> = self.keep(held);
                progress.unpause(held.into_iter().map(|step| step.row).collect());
            }
            Kind::Told(WorkflowEvent::Cancel) => progress.stop(Stop::Cancelled),
            Kind::Told(WorkflowEvent::CancelNow) => progress.stop(Stop::CancelledNow),
        }
        Ok(false)
    }

    /// Registers a step after it has looked, for a deliberate bug.
    async fn register_late(
        &self,
        s: &mut dyn Session,
        tables: &Tables,
        step: Option<StepNo>,
    ) -> Result<(), SessionError> {
        let Some(step) = step else { return Ok(()) };
        let action = &self.graph.step(step).action;
        let dependency = dependencies::prepare(s, tables, &self.run, step, action).await?;
        dependencies::register(s, &dependency.into_iter().collect::<Vec<_>>()).await
    }

    /// Lets a step look at the runs that it depends on; without a number, all such steps. True if runs were opened.
    async fn look(
        &mut self,
        s: &mut dyn Session,
        tables: &Tables,
        planner: &dyn Planner,
        progress: &mut Progress<'_>,
        step: Option<StepNo>,
    ) -> Result<bool, SessionError> {
        let waiting = rows::select_steps(s, self.run.id, " AND state = ?", vec![StepState::Waiting.into()]);
        let waiting = waiting.await?;
        let mut has_started = false;
        for row in self.keep(waiting) {
            let number = row.row.step;
            let action = &self.graph.step(number).action;
            let is_meant = step.is_none_or(|step| step == number);
            let has_ended = self.outputs.contains_key(&number) || self.messages.contains_key(&number);
            if !is_meant || has_ended || !matches!(action, Action::Depends { .. }) {
                continue;
            }
            match dependencies::look(s, tables, self.now, &self.run, action, planner).await? {
                Look::Met(output) => self.end(progress, number, Kind::Succeeded, output.to_string()),
                Look::Failed(reason) => self.end(progress, number, Kind::Failed, reason),
                Look::Waits { message, started } => {
                    self.notes.insert(number, message);
                    has_started |= started > 0;
                    if self.broken_rule == Some(BrokenRule::RegisteredFirst) {
                        let body = Some("register".to_owned());
                        let late = Event { run: self.run.id, kind: Kind::Look, step: Some(number), body };
                        insert_events(s, self.now, vec![late]).await?;
                    }
                }
            }
        }
        Ok(has_started)
    }

    fn end(&mut self, progress: &mut Progress<'_>, step: StepNo, kind: Kind, body: String) {
        let Some(row) = self.steps.get(&step).map(|step| step.row.clone()) else { return };
        if !row.state.is_active() || self.outputs.contains_key(&step) || self.messages.contains_key(&step) {
            return;
        }
        let end = match kind {
            Kind::Succeeded => {
                // Written by us, so it can be read.
                let output: Json = serde_json::from_str(&body).unwrap_or_default();
                self.outputs.insert(step, output.clone());
                StepEnd::Succeeded(output)
            }
            Kind::Cancelled => {
                self.messages.insert(step, body);
                StepEnd::Cancelled
            }
            _ => {
                self.messages.insert(step, body);
                StepEnd::Failed
            }
        };
        progress.end(row, end);
    }

    /// Ends what has reached its time limit.
    async fn check(
        &mut self,
        s: &mut dyn Session,
        tables: &Tables,
        planner: &dyn Planner,
        progress: &mut Progress<'_>,
    ) -> Result<bool, SessionError> {
        if self.run.deadline.is_some_and(|deadline| deadline <= self.now) {
            let is_finally = self.run.progress.phase == Phase::Finally;
            progress.stop(if is_finally { Stop::CancelledNow } else { Stop::TimedOut });
            self.run.deadline = None;
        }
        let filter = " AND state IN (?, ?) AND due_ms <= ?";
        let params = vec![StepState::Open.into(), StepState::Waiting.into(), self.now.into()];
        let due = rows::select_steps(s, self.run.id, filter, params).await?;
        for step in self.keep(due) {
            let number = step.row.step;
            match &self.graph.step(number).action {
                Action::Wait { .. } => self.end(progress, number, Kind::Succeeded, "{}".to_owned()),
                Action::Approval { .. } => {
                    self.end(progress, number, Kind::Failed, "nobody has decided in time".to_owned());
                }
                Action::Depends { .. } => {
                    self.end(progress, number, Kind::Failed, self.overdue(&step));
                }
                Action::Job { .. } | Action::Workflow { .. } => {
                    self.to_cancel.insert(number);
                    self.end(progress, number, Kind::Failed, "it has exceeded its timeout".to_owned());
                }
            }
        }
        // Runs of other programs end without an event.
        if self.graph.definition().steps.iter().any(|step| matches!(step.action, Action::Depends { .. })) {
            return self.look(s, tables, planner, progress, None).await;
        }
        Ok(false)
    }

    /// Why a step that depends on runs has waited too long.
    fn overdue(&self, step: &Step) -> String {
        let waited = step.message.as_deref().unwrap_or("the runs on which it depends have not succeeded");
        format!("it has exceeded its timeout: {waited}")
    }

    fn keep(&mut self, steps: Vec<Step>) -> Vec<Step> {
        for step in &steps {
            self.steps.entry(step.row.step).or_insert_with(|| step.clone());
        }
        steps
    }

    async fn write(
        mut self,
        s: &mut dyn Session,
        tables: &Tables,
        mut changes: Changes,
        work: &mut Work,
    ) -> Result<(), SessionError> {
        self.break_rule(&mut changes);
        let phase_before = self.run.progress.phase;
        self.run.progress = changes.run;
        let run = self.run.id;
        for (phase, state) in &changes.closed {
            self.close_phase(s, *phase, *state).await?;
        }
        self.messages.extend(changes.broken);
        let mut positions = BTreeMap::new();
        for row in changes.steps {
            let mut step = self.steps.remove(&row.step).unwrap_or_else(|| Step::new(run, row.clone()));
            if row.state.is_over() && !step.row.state.is_over() {
                step.ended_at = Some(self.now);
                step.due_at = None;
                if matches!(self.graph.step(row.step).action, Action::Depends { .. }) {
                    work.independent.push((run, row.step));
                    step.message = None;
                }
                step.message = self.messages.remove(&row.step).or(step.message);
            }
            step.row = row;
            positions.insert(step.row.step, work.steps.len());
            work.steps.push(step);
        }
        for (number, opening) in changes.opened {
            let Some(position) = positions.get(&number).copied() else { continue };
            if let Opening::Depends { .. } = opening {
                self.depend(s, tables, number, work).await?;
            }
            self.open(position, number, opening, work);
        }
        for (number, note) in std::mem::take(&mut self.notes) {
            let waits = self.steps.remove(&number).filter(|_| !positions.contains_key(&number));
            work.steps.extend(waits.map(|step| Step { message: Some(note), ..step }));
        }
        let outputs = self.outputs.iter().map(|(step, output)| (run, *step, output.to_string()));
        work.outputs.extend(outputs);
        if changes.cancel_active {
            let filter = " AND state IN (?, ?)";
            let active = vec![StepState::Open.into(), StepState::Waiting.into()];
            for step in rows::select_steps(s, run, filter, active).await? {
                let ended_now =
                    positions.get(&step.row.step).is_some_and(|at| work.steps[*at].row.state.is_over());
                match step.row.state {
                    _ if ended_now => {}
                    StepState::Open => {
                        self.to_cancel.insert(step.row.step);
                        self.steps.insert(step.row.step, step);
                    }
                    _ => {
                        let body = Some("its workflow run was stopped".to_owned());
                        let number = Some(step.row.step);
                        work.events.push(Event { run, kind: Kind::Cancelled, step: number, body });
                        work.more = true;
                    }
                }
            }
        }
        self.cancel(s, work).await?;
        if self.run.progress.phase == Phase::Finally && phase_before != Phase::Finally {
            self.run.deadline = Some(self.now + self.graph.definition().finally_timeout);
        }
        match changes.outcome {
            Some(outcome) => self.end_run(s, outcome, work).await?,
            None if self.has_limits() => work.limited.push((self.run.id, self.run.deadline)),
            None => {}
        }
        work.runs.push(self.run);
        Ok(())
    }

    /// Spoils what follows, for a deliberate bug.
    fn break_rule(&self, changes: &mut Changes) {
        match self.broken_rule {
            Some(BrokenRule::CountedEnds) => {
                for row in changes.steps.iter_mut().filter(|row| row.state == StepState::Blocked) {
                    row.tally.waits = row.tally.waits.saturating_sub(1);
                }
            }
            Some(BrokenRule::Unreached) => {
                changes.steps.retain(|row| row.state != StepState::Unreached);
            }
            Some(BrokenRule::Skips) => {
                let skipped = changes.steps.iter().filter(|row| row.state == StepState::Skipped);
                let deaf: BTreeSet<StepNo> =
                    skipped.flat_map(|row| self.graph.node(row.step).successors.iter().copied()).collect();
                changes.steps.retain(|row| !deaf.contains(&row.step));
                changes.opened.retain(|(step, _)| !deaf.contains(step));
            }
            _ => {}
        }
    }

    /// Ends the steps of a phase that have not begun.
    async fn close_phase(
        &self,
        s: &mut dyn Session,
        phase: Phase,
        state: StepState,
    ) -> Result<(), SessionError> {
        let of_phase = self.graph.steps().filter(|step| self.graph.step(*step).phase == phase);
        let numbers: Vec<i64> = of_phase.map(|step| step.0.into()).collect();
        if numbers.is_empty() {
            return Ok(());
        }
        let sql =
            "UPDATE tw_step SET state = ?, ended_ms = ? WHERE run_id = ? AND state IN (?, ?) AND step IN ?";
        let params = [
            state.into(),
            self.now.into(),
            self.run.id.into(),
            StepState::Blocked.into(),
            StepState::Held.into(),
            Value::Ids(numbers),
        ];
        s.execute(sql, &params).await.map(|_| ())
    }

    /// Registers a step that depends on runs of another job. It looks at them in a later transaction, so none can end
    /// unseen in between.
    async fn depend(
        &self,
        s: &mut dyn Session,
        tables: &Tables,
        number: StepNo,
        work: &mut Work,
    ) -> Result<(), SessionError> {
        let action = &self.graph.step(number).action;
        let (kind, body) = match dependencies::prepare(s, tables, &self.run, number, action).await? {
            Ok(dependency) => {
                if self.broken_rule != Some(BrokenRule::RegisteredFirst) {
                    work.depending.push(dependency);
                }
                (Kind::Look, None)
            }
            Err(reason) => (Kind::Failed, Some(reason)),
        };
        work.events.push(Event { run: self.run.id, kind, step: Some(number), body });
        work.more = true;
        Ok(())
    }

    /// Lets a step begin.
    fn open(&self, position: usize, number: StepNo, opening: Opening, work: &mut Work) {
        let step = &mut work.steps[position];
        step.opened_at = Some(self.now);
        step.due_at = self.graph.step(number).timeout.map(|timeout| self.now + timeout);
        let run_of = |job: i64, param: Option<String>| Run {
            param,
            depth: self.run.depth + 1,
            ..runs::waiting(
                JobId(job),
                Origin::Step { of: self.run.id, step: number.0 },
                self.run.scheduled_at,
                self.now,
            )
        };
        match opening {
            Opening::Job { job, param } => work.openings.push((position, run_of(job, param))),
            Opening::Workflow { job, inputs } => {
                let inputs = Json::Object(inputs.into_iter().collect()).to_string();
                work.openings.push((position, run_of(job, Some(inputs))));
            }
            Opening::Approval { ask, timeout } => {
                step.message = Some(runs::message_text(&ask));
                step.due_at = timeout.map(|timeout| self.now + timeout);
            }
            Opening::Wait { duration } => step.due_at = Some(self.now + duration),
            Opening::Depends { timeout, .. } => {
                step.due_at = timeout.map(|timeout| self.now + timeout).or(step.due_at);
            }
        }
    }

    /// Cancels the runs of steps.
    async fn cancel(&mut self, s: &mut dyn Session, work: &mut Work) -> Result<(), SessionError> {
        for number in std::mem::take(&mut self.to_cancel) {
            let job = self.steps.get(&number).and_then(|step| step.job);
            let job = job.or_else(|| {
                work.steps.iter().find(|step| step.run == self.run.id && step.row.step == number)?.job
            });
            let Some(job) = job else { continue };
            let (kind, cause) = Origin::Step { of: self.run.id, step: number.0 }.to_numbers();
            let tail = "WHERE job_id = ? AND scheduled_ms = ? AND kind = ? AND cause = ? ORDER BY run_id";
            let params = [job.into(), self.run.scheduled_at.into(), kind.into(), cause.into()];
            for run in runs::select(s, tail, &params, Lock::Wait).await? {
                match run.state {
                    RunState::Waiting => {
                        let outcome = Outcome::Cancelled("its workflow run was stopped".into());
                        work.closings.push(Closing::last(run, outcome));
                    }
                    RunState::Cancelling => {}
                    _ => work.cancelled.push(run),
                }
            }
        }
        Ok(())
    }

    /// Ends the run.
    async fn end_run(
        &mut self,
        s: &mut dyn Session,
        outcome: RunOutcome,
        work: &mut Work,
    ) -> Result<(), SessionError> {
        let (mut outcome, mut message) = (outcome, String::new());
        if outcome == RunOutcome::Succeeded && !self.graph.definition().output.is_null() {
            match self.output(s).await? {
                Ok(output) => message = output.to_string(),
                Err(problem) => {
                    (outcome, message) = (RunOutcome::Failed, format!("its output has no value: {problem}"))
                }
            }
        }
        if message.is_empty() {
            message = self.summary(outcome, work);
        }
        let end = RunEnd { at: self.now, outcome, message };
        work.ended.push((self.run.id, outcome_of(&end)));
        work.checks.push((self.run.id, self.now + COMPLETE_AGAIN));
        self.run.end = Some(end);
        Ok(())
    }

    async fn output(&mut self, s: &mut dyn Session) -> Result<Result<Json, String>, SessionError> {
        let named = self.graph.output_steps();
        let mut stored = rows::outputs(s, self.run.id, named.iter().copied()).await?;
        stored.append(&mut self.outputs.clone());
        for step in named {
            let value = match stored.remove(step) {
                Some(output) => StepValue { state: StepState::Succeeded.word(), output },
                None => StepValue::default(),
            };
            self.scope.steps.insert(self.graph.step(*step).name.clone(), value);
        }
        Ok(self.graph.output(&self.scope))
    }

    /// The end in words: the first failed step, if one failed.
    fn summary(&self, outcome: RunOutcome, work: &Work) -> String {
        let failed =
            work.steps.iter().find(|step| step.run == self.run.id && step.row.state == StepState::Failed);
        match (outcome, failed) {
            (RunOutcome::Succeeded, _) => String::new(),
            (RunOutcome::TimedOut, _) => "the workflow run has exceeded its timeout".to_owned(),
            (RunOutcome::Cancelled, _) => "the workflow run was cancelled".to_owned(),
            (RunOutcome::Failed, Some(step)) => {
                let name = &self.graph.step(step.row.step).name;
                format!(
                    "step `{name}` failed: {}",
                    step.message.as_deref().unwrap_or("no reason was reported")
                )
            }
            (RunOutcome::Failed, None) => format!("{} steps failed", self.run.progress.failed.max(1)),
        }
    }

    /// Whether the run or one of its steps ends by itself after some time.
    fn has_limits(&self) -> bool {
        let ends_by_itself =
            |action: &Action| !matches!(action, Action::Job { .. } | Action::Workflow { .. });
        self.run.deadline.is_some()
            || self
                .graph
                .definition()
                .steps
                .iter()
                .any(|step| step.timeout.is_some() || ends_by_itself(&step.action))
    }
}

/// Outcome of the run that stands for a workflow run.
fn outcome_of(end: &RunEnd) -> Outcome {
    let message = end.message.clone();
    match end.outcome {
        RunOutcome::Succeeded => Outcome::Succeeded(message),
        RunOutcome::Failed => Outcome::Failed(message),
        RunOutcome::TimedOut => Outcome::TimedOut(message),
        RunOutcome::Cancelled => Outcome::Cancelled(message),
    }
}

/// Time after which another node completes a run that has ended, if the node that ended it does not.
const COMPLETE_AGAIN: std::time::Duration = std::time::Duration::from_secs(1);
