//! Progress of a workflow run: which steps open, are skipped or can never open after some steps have ended.
//!
//! Pure: the store passes the rows that it reads in its transaction, and writes the rows that come back. An end costs as
//! much as the steps that need it, however large the graph is: [`Progress::wants`] names the rows it needs next.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};
use words::{StepState, Word as _};

use crate::definition::{OnError, Phase};
use crate::expression::{Scope, StepValue};
use crate::graph::{Condition, Graph, Opening, StepNo};
use crate::join::{Arrival, Decision, Tally, decide};

/// Row of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepRow {
    /// Number of the step.
    pub step: StepNo,
    /// State of the step.
    pub state: StepState,
    /// Ends of the steps that it needs.
    pub tally: Tally,
}

impl StepRow {
    /// Row of a step when its run begins.
    pub fn new(graph: &Graph, step: StepNo) -> StepRow {
        StepRow { step, state: StepState::Blocked, tally: Tally::new(graph.node(step).needs.len()) }
    }
}

/// Row of a workflow run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRow {
    /// Current phase.
    pub phase: Phase,
    /// Number of steps of the phase that have not ended.
    pub open: u32,
    /// Number of those that are open or waiting.
    pub active: u32,
    /// Number of failures that no step caught, in the main phase.
    pub failed: u32,
    /// Number of failures in the phase [`Phase::Finally`].
    pub finally_failed: u32,
    /// Whether no more steps of the main phase open, and why.
    pub stop: Stop,
    /// Whether steps are held instead of opened.
    pub paused: bool,
}

impl RunRow {
    /// Row of a run that has not begun.
    pub fn new(graph: &Graph) -> RunRow {
        RunRow {
            phase: Phase::Main,
            open: graph.count(Phase::Main),
            active: 0,
            failed: 0,
            finally_failed: 0,
            stop: Stop::No,
            paused: false,
        }
    }

    /// Whether steps of the current phase may open.
    fn opens(&self) -> bool {
        match self.stop {
            Stop::No => true,
            Stop::CancelledNow => false,
            Stop::Failed | Stop::TimedOut | Stop::Cancelled => self.phase != Phase::Main,
        }
    }

    fn outcome(&self) -> RunOutcome {
        match self.stop {
            Stop::Cancelled | Stop::CancelledNow => RunOutcome::Cancelled,
            Stop::TimedOut => RunOutcome::TimedOut,
            Stop::Failed | Stop::No if self.failed + self.finally_failed > 0 => RunOutcome::Failed,
            Stop::Failed | Stop::No => RunOutcome::Succeeded,
        }
    }
}

/// Why a run opens no more steps of its main phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    /// It does open steps.
    No,
    /// A step failed.
    Failed,
    /// The run exceeded its timeout.
    TimedOut,
    /// The run was cancelled; the phase [`Phase::Finally`] follows.
    Cancelled,
    /// The run was cancelled without any further step.
    CancelledNow,
}

/// Outcome of a workflow run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunOutcome {
    /// No failure, or all were caught or allowed.
    Succeeded,
    /// A step failed.
    Failed,
    /// The run exceeded its timeout.
    TimedOut,
    /// The run was cancelled.
    Cancelled,
}

/// How an active step ended.
#[derive(Clone, Debug, PartialEq)]
pub enum StepEnd {
    /// It succeeded, with its output.
    Succeeded(Value),
    /// It failed.
    Failed,
    /// It was cancelled.
    Cancelled,
}

/// Rows to read before the progress can go on. Empty: it is complete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wants {
    /// Steps whose rows are needed.
    pub rows: BTreeSet<StepNo>,
    /// Steps whose outputs are needed.
    pub outputs: BTreeSet<StepNo>,
}

impl Wants {
    /// Whether nothing is needed.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.outputs.is_empty()
    }
}

/// What follows, to be written in the same transaction.
#[derive(Clone, Debug, PartialEq)]
pub struct Changes {
    /// Row of the run.
    pub run: RunRow,
    /// Changed rows of steps.
    pub steps: Vec<StepRow>,
    /// Steps that opened.
    pub opened: Vec<(StepNo, Opening)>,
    /// Steps that failed here, because an expression has no value; with the reason.
    pub broken: BTreeMap<StepNo, String>,
    /// Phases whose steps that have not begun end, with their state.
    pub closed: Vec<(Phase, StepState)>,
    /// Whether the active steps are to be cancelled.
    pub cancel_active: bool,
    /// Outcome of the run, if it has ended.
    pub outcome: Option<RunOutcome>,
}

/// Progress of one run within one transaction.
pub struct Progress<'g> {
    graph: &'g Graph,
    /// Inputs and facts of the run. Steps are added as they are needed.
    scope: Scope,
    rows: BTreeMap<StepNo, StepRow>,
    outputs: BTreeMap<StepNo, Value>,
    changed: BTreeSet<StepNo>,
    /// Steps that have ended, and whose successors do not know yet.
    ended: BTreeSet<StepNo>,
    /// Steps that open if their conditions are true.
    ready: BTreeSet<StepNo>,
    wants: Wants,
    changes: Changes,
}

impl<'g> Progress<'g> {
    /// Continues a run. `scope` has its inputs and facts.
    pub fn new(graph: &'g Graph, run: RunRow, scope: Scope) -> Progress<'g> {
        Progress {
            graph,
            scope,
            rows: BTreeMap::new(),
            outputs: BTreeMap::new(),
            changed: BTreeSet::new(),
            ended: BTreeSet::new(),
            ready: BTreeSet::new(),
            wants: Wants::default(),
            changes: Changes {
                run,
                steps: Vec::new(),
                opened: Vec::new(),
                broken: BTreeMap::new(),
                closed: Vec::new(),
                cancel_active: false,
                outcome: None,
            },
        }
    }

    /// Begins the run: its first steps open.
    pub fn begin(&mut self) {
        self.ready.extend(self.graph.roots(Phase::Main));
    }

    /// Begins a run that keeps steps of another one: they have succeeded, and those that need them follow.
    pub fn resume(&mut self, kept: Vec<StepRow>) {
        self.begin();
        for row in kept {
            let step = row.step;
            self.ready.remove(&step);
            self.ended.insert(step);
            self.changes.run.open = self.changes.run.open.saturating_sub(1);
            self.rows.insert(step, row);
        }
    }

    /// Ends an active step. A step that has ended already stays as it is, so a second report has no effect.
    pub fn end(&mut self, row: StepRow, end: StepEnd) {
        let step = row.step;
        let is_active = row.state.is_active();
        self.rows.entry(step).or_insert(row);
        if !is_active || self.ended.contains(&step) {
            return;
        }
        let state = match end {
            StepEnd::Succeeded(output) => {
                self.outputs.insert(step, output);
                StepState::Succeeded
            }
            StepEnd::Failed => StepState::Failed,
            StepEnd::Cancelled => StepState::Cancelled,
        };
        self.change(step, state);
    }

    /// Stops the run. A later reason does not replace a stronger one.
    pub fn stop(&mut self, stop: Stop) {
        let run = &mut self.changes.run;
        self.changes.cancel_active |= stop > Stop::Failed && stop > run.stop;
        run.stop = run.stop.max(stop);
    }

    /// Holds steps instead of opening them.
    pub fn pause(&mut self) {
        self.changes.run.paused = true;
    }

    /// Opens the steps that were held.
    pub fn unpause(&mut self, held: Vec<StepRow>) {
        self.changes.run.paused = false;
        for row in held.into_iter().filter(|row| row.state == StepState::Held) {
            self.ready.insert(row.step);
            self.rows.insert(row.step, row);
        }
    }

    /// Goes on as far as possible, and returns the rows that it needs to go on further.
    pub fn wants(&mut self) -> Wants {
        loop {
            self.wants = Wants::default();
            let before = (self.ended.len(), self.ready.len(), self.changed.len(), self.changes.run.clone());
            self.propagate();
            // What ended first may stop the run, so it comes before anything opens.
            if self.wants.is_empty() {
                self.open_ready();
            }
            if self.wants.is_empty() && self.ended.is_empty() && self.ready.is_empty() {
                self.next_phase();
            }
            let after = (self.ended.len(), self.ready.len(), self.changed.len(), self.changes.run.clone());
            if !self.wants.is_empty() || before == after {
                return std::mem::take(&mut self.wants);
            }
        }
    }

    /// Passes rows and outputs that [`wants`](Progress::wants) named. A step without output has none here.
    pub fn give(&mut self, rows: Vec<StepRow>, outputs: BTreeMap<StepNo, Value>) {
        for row in rows {
            self.rows.entry(row.step).or_insert(row);
        }
        self.outputs.extend(outputs);
    }

    /// What is to be written, once nothing is wanted any more.
    pub fn finish(mut self) -> Changes {
        self.changes.steps = self.changed.iter().filter_map(|step| self.rows.remove(step)).collect();
        self.changes
    }

    fn change(&mut self, step: StepNo, state: StepState) {
        let Some(row) = self.rows.get_mut(&step) else {
            return;
        };
        debug_assert!(row.state.may_become(state), "{} → {state}", row.state);
        let was_active = row.state.is_active();
        row.state = state;
        self.changed.insert(step);
        let run = &mut self.changes.run;
        run.active = run.active + u32::from(state.is_active()) - u32::from(was_active);
        if !state.is_over() {
            return;
        }
        self.ended.insert(step);
        run.open = run.open.saturating_sub(1);
        if state == StepState::Failed
            && !self.graph.step(step).allow_failure
            && !self.graph.node(step).is_caught
        {
            self.count_failure();
        }
    }

    fn count_failure(&mut self) {
        let run = &mut self.changes.run;
        match run.phase {
            Phase::Main => {
                run.failed += 1;
                match self.graph.definition().on_error {
                    OnError::Continue => {}
                    OnError::Stop => run.stop = run.stop.max(Stop::Failed),
                    OnError::Cancel => {
                        self.changes.cancel_active |= run.stop == Stop::No;
                        run.stop = run.stop.max(Stop::Failed);
                    }
                }
            }
            Phase::OnFailure => {}
            Phase::Finally => run.finally_failed += 1,
        }
    }

    /// Counts ended steps at those that need them, level by level.
    fn propagate(&mut self) {
        let mut goes_on = true;
        while std::mem::take(&mut goes_on) {
            for step in std::mem::take(&mut self.ended) {
                if self.can_propagate(step) {
                    goes_on = true;
                    self.count(step);
                } else {
                    self.ended.insert(step);
                }
            }
        }
    }

    /// Counts an ended step at those that need it.
    fn count(&mut self, step: StepNo) {
        for (successor, arrival) in self.arrivals(step) {
            let decision = match arrival {
                Ok(arrival) => self.arrive(successor, arrival),
                Err(message) => {
                    self.fail(successor, message);
                    None
                }
            };
            match decision {
                Some(Decision::Open) => {
                    self.ready.insert(successor);
                }
                Some(Decision::Skip) => self.change(successor, StepState::Skipped),
                Some(Decision::Unreached) => self.change(successor, StepState::Unreached),
                None => {}
            }
        }
    }

    fn can_propagate(&mut self, step: StepNo) -> bool {
        let node = self.graph.node(step);
        let mut rows: BTreeSet<StepNo> = node.successors.iter().copied().collect();
        let mut outputs = BTreeSet::new();
        if self.counts_as_success(step) {
            for edge in self.edges_from(step) {
                outputs.extend(edge.names.iter().copied());
            }
        }
        rows.extend(&outputs);
        self.has_all(rows, outputs)
    }

    fn edges_from(&self, step: StepNo) -> impl Iterator<Item = &'g crate::graph::Edge> + use<'g> {
        let graph = self.graph;
        let successors = graph.node(step).successors.iter();
        successors.flat_map(move |successor| {
            graph.node(*successor).needs.iter().filter(move |edge| edge.from == step)
        })
    }

    /// Whether all these are known; notes what is missing.
    fn has_all(&mut self, rows: BTreeSet<StepNo>, outputs: BTreeSet<StepNo>) -> bool {
        let rows: Vec<StepNo> = rows.into_iter().filter(|step| !self.rows.contains_key(step)).collect();
        let unknown = |step: &StepNo| !self.outputs.contains_key(step) && !self.has_no_output(*step);
        let outputs: Vec<StepNo> = outputs.into_iter().filter(unknown).collect();
        let has_all = rows.is_empty() && outputs.is_empty();
        self.wants.rows.extend(rows);
        self.wants.outputs.extend(outputs);
        has_all
    }

    fn has_no_output(&self, step: StepNo) -> bool {
        self.rows.get(&step).is_some_and(|row| row.state != StepState::Succeeded)
    }

    fn counts_as_success(&self, step: StepNo) -> bool {
        let allow_failure = self.graph.step(step).allow_failure;
        self.rows.get(&step).is_some_and(|row| row.state.counts_as_success(allow_failure))
    }

    /// Outcomes of the connections from a step that has ended.
    fn arrivals(&mut self, step: StepNo) -> Vec<(StepNo, Result<Arrival, String>)> {
        let graph = self.graph;
        let successors = graph.node(step).successors.iter().copied();
        let edges: Vec<_> = successors
            .filter_map(|successor| {
                let edge = graph.node(successor).needs.iter().find(|edge| edge.from == step)?;
                Some((successor, edge))
            })
            .collect();
        if !self.counts_as_success(step) {
            let is_skipped = self.rows.get(&step).is_some_and(|row| row.state == StepState::Skipped);
            let arrival = if is_skipped { Arrival::Skipped } else { Arrival::Failed };
            return edges.into_iter().map(|(successor, _)| (successor, Ok(arrival))).collect();
        }
        let mut any_if = false;
        let mut arrivals = Vec::with_capacity(edges.len());
        for (successor, edge) in &edges {
            let holds = match &edge.branch {
                Condition::If(condition) => {
                    self.show(&edge.names);
                    condition.holds(&self.scope).map_err(|error| error.to_string())
                }
                Condition::Always | Condition::Else => Ok(true),
            };
            any_if |= matches!(edge.branch, Condition::If(_)) && holds == Ok(true);
            let arrival = holds.map(|holds| if holds { Arrival::Taken } else { Arrival::Skipped });
            arrivals.push((*successor, arrival));
        }
        for ((_, edge), (_, arrival)) in edges.iter().zip(&mut arrivals) {
            if any_if && matches!(edge.branch, Condition::Else) {
                *arrival = Ok(Arrival::Skipped);
            }
        }
        arrivals
    }

    /// Makes steps visible to expressions.
    fn show(&mut self, steps: &[StepNo]) {
        for step in steps {
            let state = self.rows.get(step).map_or(StepState::Blocked, |row| row.state);
            let output = match state {
                StepState::Succeeded => self.outputs.get(step).cloned(),
                _ => None,
            };
            let output = output.unwrap_or_else(|| Value::Object(Map::new()));
            let name = self.graph.step(*step).name.clone();
            self.scope.steps.insert(name, StepValue { state: state.word(), output });
        }
    }

    /// Counts the end of a need. The decision is returned once, while the step is still blocked.
    fn arrive(&mut self, step: StepNo, arrival: Arrival) -> Option<Decision> {
        let row = self.rows.get_mut(&step)?;
        row.tally.count(arrival);
        self.changed.insert(step);
        if row.state != StepState::Blocked {
            return None;
        }
        decide(self.graph.step(step).join, row.tally)
    }

    fn fail(&mut self, step: StepNo, message: String) {
        let can_fail = self.rows.get(&step).is_some_and(|row| !row.state.is_over() && !row.state.is_active());
        if can_fail {
            self.ready.remove(&step);
            self.changes.broken.insert(step, message);
            self.change(step, StepState::Failed);
        }
    }

    fn open_ready(&mut self) {
        if !self.changes.run.opens() {
            // They stay blocked, and end with their phase.
            self.ready.clear();
            return;
        }
        let ready: Vec<StepNo> = self.ready.iter().copied().collect();
        for step in ready {
            let names = &self.graph.node(step).names;
            let values: BTreeSet<StepNo> = names.iter().copied().collect();
            let mut rows = values.clone();
            rows.insert(step);
            if !self.has_all(rows, values) {
                continue;
            }
            self.ready.remove(&step);
            // Another step may have failed here and stopped the run.
            if self.changes.run.opens() {
                self.open(step);
            }
        }
    }

    fn open(&mut self, step: StepNo) {
        let node = self.graph.node(step);
        if self.changes.run.paused {
            if self.rows.get(&step).is_some_and(|row| row.state == StepState::Blocked) {
                self.change(step, StepState::Held);
            }
            return;
        }
        self.show(&node.names);
        let holds = node.condition.as_ref().map_or(Ok(true), |condition| condition.holds(&self.scope));
        let opening = match holds {
            Ok(true) => self.graph.open(step, &self.scope),
            Ok(false) => {
                self.change(step, StepState::Skipped);
                return;
            }
            Err(error) => Err(error.to_string()),
        };
        match opening {
            Ok(opening) => {
                let waits = !matches!(opening, Opening::Job { .. } | Opening::Workflow { .. });
                self.change(step, if waits { StepState::Waiting } else { StepState::Open });
                self.changes.opened.push((step, opening));
            }
            Err(message) => self.fail(step, message),
        }
    }

    /// Ends the phase if nothing of it goes on, and begins the next one.
    fn next_phase(&mut self) {
        let run = &mut self.changes.run;
        if self.changes.outcome.is_some() || run.active > 0 || (run.open > 0 && run.opens()) {
            return;
        }
        if run.open > 0 {
            self.changes.closed.push((run.phase, StepState::Cancelled));
        }
        let follows = |phase: Phase| match phase {
            Phase::Main => true,
            Phase::OnFailure => run.failed > 0 && run.stop < Stop::Cancelled || run.stop == Stop::TimedOut,
            Phase::Finally => run.stop != Stop::CancelledNow,
        };
        let later = [Phase::OnFailure, Phase::Finally].into_iter().filter(|phase| *phase > run.phase);
        for phase in later {
            let count = self.graph.count(phase);
            if count == 0 {
                continue;
            }
            if follows(phase) {
                run.phase = phase;
                run.open = count;
                self.ready.extend(self.graph.roots(phase));
                return;
            }
            self.changes.closed.push((phase, StepState::Skipped));
        }
        run.open = 0;
        self.changes.outcome = Some(run.outcome());
    }
}
