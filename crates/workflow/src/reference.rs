//! A slow evaluator that looks at the whole graph after every end. Tests compare [`Progress`](crate::Progress) with it; it
//! shares the definition and the expressions with it, but none of its rules.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use words::{StepState, Word as _};

use crate::definition::{Action, Branch, Join, OnError, Phase, Step, Workflow};
use crate::expression::{Expression, Scope, StepValue, on_large_stack};
use crate::progress::{RunOutcome, Stop};

/// A workflow run, as the documentation describes it.
#[derive(Clone, Debug)]
pub struct Reference {
    workflow: Workflow,
    /// State of each step, by name.
    pub states: BTreeMap<String, StepState>,
    outputs: BTreeMap<String, Value>,
    inputs: BTreeMap<String, Value>,
    phase: Phase,
    stop: Stop,
    paused: bool,
    /// Whether a failure failed the main phase, and whether one failed the last phase.
    has_failed: (bool, bool),
    /// Outcome of the run, once it has ended.
    pub outcome: Option<RunOutcome>,
}

impl Reference {
    /// Begins a run.
    pub fn begin(workflow: Workflow, inputs: BTreeMap<String, Value>) -> Reference {
        let mut run = Reference::unbegun(workflow, inputs);
        run.settle();
        run
    }

    fn unbegun(workflow: Workflow, inputs: BTreeMap<String, Value>) -> Reference {
        let states = workflow.steps.iter().map(|step| (step.name.clone(), StepState::Blocked)).collect();
        Reference {
            workflow,
            states,
            outputs: BTreeMap::new(),
            inputs,
            phase: Phase::Main,
            stop: Stop::No,
            paused: false,
            has_failed: (false, false),
            outcome: None,
        }
    }

    /// Begins a run in which these steps have succeeded, with these outputs.
    pub fn resume(workflow: Workflow, kept: BTreeMap<String, Value>) -> Reference {
        let mut run = Reference::unbegun(workflow, BTreeMap::new());
        run.states.extend(kept.keys().map(|name| (name.clone(), StepState::Succeeded)));
        run.outputs = kept;
        run.settle();
        run
    }

    /// Ends active steps at once: with an output if they succeeded.
    pub fn end(&mut self, ends: &[(String, Option<Value>)]) {
        for (name, output) in ends {
            if !self.states[name].is_active() {
                continue;
            }
            if let Some(output) = output {
                self.outputs.insert(name.clone(), output.clone());
            }
            self.set(name, if output.is_some() { StepState::Succeeded } else { StepState::Failed });
        }
        self.settle();
    }

    /// Cancels or times out the run: what is active ends as cancelled.
    pub fn stop(&mut self, stop: Stop) {
        self.stop = self.stop.max(stop);
        self.settle();
    }

    /// Ends active steps as cancelled.
    pub fn cancelled(&mut self, names: &[String]) {
        for name in names {
            if self.states[name].is_active() {
                self.set(name, StepState::Cancelled);
            }
        }
        self.settle();
    }

    /// Pauses the run, or goes on.
    pub fn pause(&mut self, paused: bool) {
        self.paused = paused;
        self.settle();
    }

    fn set(&mut self, name: &str, state: StepState) {
        self.states.insert(name.to_owned(), state);
        let step = self.find(name);
        let needs_it = |other: &&Step| other.needs.iter().any(|need| need.step == name);
        let mut successors = self.workflow.steps.iter().filter(needs_it);
        let is_caught = successors.any(|other| matches!(other.join, Join::AnyFailed | Join::AllEnded));
        if state == StepState::Failed && !step.allow_failure && !is_caught {
            match step.phase {
                Phase::Main => {
                    self.has_failed.0 = true;
                    if self.workflow.on_error != OnError::Continue {
                        self.stop = self.stop.max(Stop::Failed);
                    }
                }
                Phase::OnFailure => {}
                Phase::Finally => self.has_failed.1 = true,
            }
        }
    }

    fn find(&self, name: &str) -> &Step {
        self.workflow.steps.iter().find(|step| step.name == name).expect("the definition was checked")
    }

    /// Applies the rules until nothing changes.
    fn settle(&mut self) {
        loop {
            let before = (self.states.clone(), self.phase, self.outcome);
            self.settle_unopened();
            self.open_one_level();
            self.end_phase();
            if (self.states.clone(), self.phase, self.outcome) == before {
                return;
            }
        }
    }

    /// Steps of the phase that may still open. A held step is one of them as soon as the run goes on; if the run opens no
    /// more steps, it stays held until its phase ends.
    fn unopened(&self) -> Vec<Step> {
        let is_unopened = |step: &&Step| match self.states[&step.name] {
            StepState::Blocked => step.phase == self.phase,
            StepState::Held => step.phase == self.phase && !self.paused,
            _ => false,
        };
        self.workflow.steps.iter().filter(is_unopened).cloned().collect()
    }

    /// Steps that can never open, or whose conditions have no value.
    fn settle_unopened(&mut self) {
        loop {
            let decided = self.unopened().into_iter().find_map(|step| match self.verdict(&step) {
                Some(state) if state != StepState::Open => Some((step.name, state)),
                _ => None,
            });
            match decided {
                Some((name, state)) => self.set(&name, state),
                None => return,
            }
        }
    }

    fn may_open(&self) -> bool {
        self.stop == Stop::No || (self.phase != Phase::Main && self.stop != Stop::CancelledNow)
    }

    fn open_one_level(&mut self) {
        let ready: Vec<Step> =
            self.unopened().into_iter().filter(|step| self.verdict(step) == Some(StepState::Open)).collect();
        for step in ready {
            if !self.may_open() || self.outcome.is_some() {
                return;
            }
            if self.paused {
                self.states.insert(step.name.clone(), StepState::Held);
                continue;
            }
            let state = match &step.condition {
                Some(condition) => match self.holds(condition) {
                    Ok(true) => opened(&step),
                    Ok(false) => StepState::Skipped,
                    Err(()) => StepState::Failed,
                },
                None => opened(&step),
            };
            self.set(&step.name, state);
        }
    }

    /// What the rule of a blocked step says: `Open`, `Skipped`, `Unreached`, `Failed`, or nothing yet.
    fn verdict(&self, step: &Step) -> Option<StepState> {
        let mut taken = 0;
        let (mut skipped, mut failed, mut open) = (0, 0, 0);
        for need in &step.needs {
            match self.states[&need.step] {
                StepState::Succeeded => match self.is_taken(step, &need.step, &need.branch) {
                    Ok(true) => taken += 1,
                    Ok(false) => skipped += 1,
                    Err(()) => return Some(StepState::Failed),
                },
                StepState::Failed if self.find(&need.step).allow_failure => {
                    match self.is_taken(step, &need.step, &need.branch) {
                        Ok(true) => taken += 1,
                        Ok(false) => skipped += 1,
                        Err(()) => return Some(StepState::Failed),
                    }
                }
                StepState::Skipped => skipped += 1,
                StepState::Failed | StepState::Unreached | StepState::Cancelled => failed += 1,
                _ => open += 1,
            }
        }
        let open_if =
            |yes: bool, otherwise: Option<StepState>| if yes { Some(StepState::Open) } else { otherwise };
        let over = open == 0;
        if step.needs.is_empty() {
            return Some(StepState::Open);
        }
        match step.join {
            Join::Joined | Join::AllSucceeded if failed > 0 => Some(StepState::Unreached),
            Join::Joined if over => open_if(taken > 0, Some(StepState::Skipped)),
            Join::AllSucceeded if over => open_if(skipped == 0, Some(StepState::Skipped)),
            Join::AllEnded => open_if(over, None),
            Join::AnySucceeded if over && failed > 0 => open_if(taken > 0, Some(StepState::Unreached)),
            Join::AnySucceeded => open_if(taken > 0, over.then_some(StepState::Skipped)),
            Join::AnyFailed => open_if(failed > 0, over.then_some(StepState::Skipped)),
            Join::AtLeast(count) => {
                open_if(taken >= count, (taken + open < count).then_some(StepState::Unreached))
            }
            Join::Joined | Join::AllSucceeded => None,
        }
    }

    fn is_taken(&self, step: &Step, from: &str, branch: &Branch) -> Result<bool, ()> {
        match branch {
            Branch::Always => Ok(true),
            Branch::If(condition) => self.holds(condition),
            Branch::Else => {
                let others = self.workflow.steps.iter().filter(|other| other.name != step.name);
                let needs = others.flat_map(|other| other.needs.iter().filter(|need| need.step == from));
                let any = needs.filter_map(|need| match &need.branch {
                    Branch::If(condition) => Some(self.holds(condition) == Ok(true)),
                    _ => None,
                });
                Ok(!any.fold(false, |any, holds| any | holds))
            }
        }
    }

    fn holds(&self, condition: &str) -> Result<bool, ()> {
        let value = |(name, state): (&String, &StepState)| {
            let output = self.outputs.get(name).filter(|_| *state == StepState::Succeeded).cloned();
            let output = output.unwrap_or_else(|| Value::Object(serde_json::Map::new()));
            (name.clone(), StepValue { state: state.word(), output })
        };
        let scope = Scope {
            inputs: self.inputs.clone(),
            run: BTreeMap::new(),
            steps: self.states.iter().map(value).collect(),
        };
        let parsed = on_large_stack(|| Expression::parse(condition)).map_err(|_| ())?;
        parsed.map_err(|_| ())?.holds(&scope).map_err(|_| ())
    }

    fn end_phase(&mut self) {
        let phase = self.phase;
        let of_phase = |step: &&Step| step.phase == phase;
        let states: Vec<StepState> =
            self.workflow.steps.iter().filter(of_phase).map(|step| self.states[&step.name]).collect();
        let is_going_on = states.iter().any(|state| state.is_active());
        let is_over = states.iter().all(|state| state.is_over());
        if self.outcome.is_some() || is_going_on || (!is_over && self.may_open()) {
            return;
        }
        self.close(phase, StepState::Cancelled);
        let is_cancelled = self.stop >= Stop::Cancelled;
        let handles = (self.has_failed.0 && !is_cancelled) || self.stop == Stop::TimedOut;
        for next in [Phase::OnFailure, Phase::Finally] {
            let exists = self.workflow.steps.iter().any(|step| step.phase == next);
            if next <= phase || !exists {
                continue;
            }
            let begins = if next == Phase::OnFailure { handles } else { self.stop != Stop::CancelledNow };
            if begins {
                self.phase = next;
                return;
            }
            self.close(next, StepState::Skipped);
        }
        self.outcome = Some(match self.stop {
            Stop::TimedOut => RunOutcome::TimedOut,
            Stop::Cancelled | Stop::CancelledNow => RunOutcome::Cancelled,
            _ if self.has_failed.0 || self.has_failed.1 => RunOutcome::Failed,
            _ => RunOutcome::Succeeded,
        });
    }

    fn close(&mut self, phase: Phase, state: StepState) {
        for step in self.workflow.steps.iter().filter(|step| step.phase == phase) {
            let now = self.states.get_mut(&step.name).expect("every step has a state");
            if !now.is_over() {
                *now = state;
            }
        }
    }
}

/// Names of the steps that a new run of `after` keeps of an ended run of `before`.
pub fn kept(
    before: &Workflow,
    states: &BTreeMap<String, StepState>,
    after: &Workflow,
    again: &BTreeSet<String>,
) -> BTreeSet<String> {
    let is_unchanged =
        |step: &Step| before.steps.iter().any(|old| old == step) && !again.contains(&step.name);
    let state = |step: &Step| states.get(&step.name).copied();
    let stays = |name: &String| {
        let step = after.steps.iter().find(|step| step.name == *name).expect("the definition was checked");
        is_unchanged(step) && matches!(state(step), Some(StepState::Succeeded | StepState::Skipped))
    };
    let has_succeeded = |step: &&Step| {
        step.phase == Phase::Main && is_unchanged(step) && state(step) == Some(StepState::Succeeded)
    };
    let done = after.steps.iter().filter(has_succeeded);
    done.filter(|step| ancestors(after, step).iter().all(stays)).map(|step| step.name.clone()).collect()
}

/// Names of all steps that have to end before a step opens.
fn ancestors(workflow: &Workflow, step: &Step) -> BTreeSet<String> {
    let mut names: BTreeSet<String> = step.needs.iter().map(|need| need.step.clone()).collect();
    loop {
        let known = workflow.steps.iter().filter(|step| names.contains(&step.name));
        let more: Vec<String> = known.flat_map(|step| &step.needs).map(|need| need.step.clone()).collect();
        let count = names.len();
        names.extend(more);
        if names.len() == count {
            return names;
        }
    }
}

fn opened(step: &Step) -> StepState {
    match step.action {
        Action::Approval { .. } | Action::Wait { .. } | Action::Depends { .. } => StepState::Waiting,
        Action::Job { .. } | Action::Workflow { .. } => StepState::Open,
    }
}
