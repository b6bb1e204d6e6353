//! Which steps of an ended run a new run keeps, and which run again.

use std::collections::{BTreeMap, BTreeSet};

use words::StepState;

use crate::definition::Phase;
use crate::graph::{Graph, StepNo};

/// A run that has ended.
#[derive(Clone, Copy)]
pub struct Past<'a> {
    /// Definition of the run.
    pub graph: &'a Graph,
    /// State of each step.
    pub states: &'a BTreeMap<StepNo, StepState>,
}

/// What a run that resumes another one does with its steps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resumption {
    /// Steps that begin as succeeded, each with its number in the run before.
    pub kept: BTreeMap<StepNo, StepNo>,
    /// Steps of the main phase that run again, because of themselves or because of a step that they need. A step that
    /// is in neither set was skipped, and is evaluated again with the same values.
    pub repeated: BTreeSet<StepNo>,
}

/// Decides which steps a new run with the definition `graph` keeps. A step is kept if it succeeded with the same
/// definition, is not in `again`, and needs nothing that runs again. Steps of the later phases are never kept.
pub fn resume(before: Past<'_>, graph: &Graph, again: &BTreeSet<StepNo>) -> Resumption {
    let past = |step: StepNo| {
        let number = before.graph.find(&graph.step(step).name)?;
        (before.graph.step(number) == graph.step(step)).then_some(number)
    };
    let state = |step: StepNo| past(step).and_then(|number| before.states.get(&number)).copied();
    let main = || graph.steps().filter(|step| graph.step(*step).phase == Phase::Main);

    let is_settled = |step: StepNo| {
        !again.contains(&step) && matches!(state(step), Some(StepState::Succeeded | StepState::Skipped))
    };
    let mut found: Vec<StepNo> = main().filter(|step| !is_settled(*step)).collect();
    let mut repeated: BTreeSet<StepNo> = found.iter().copied().collect();
    while let Some(step) = found.pop() {
        found.extend(graph.node(step).successors.iter().filter(|next| repeated.insert(**next)));
    }
    let is_kept = |step: &StepNo| !repeated.contains(step) && state(*step) == Some(StepState::Succeeded);
    let kept = main().filter(is_kept).filter_map(|step| Some((step, past(step)?))).collect();
    Resumption { kept, repeated }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::{Action, Param, Step, Workflow};

    fn step(name: &str, needs: &[&str]) -> Step {
        Step::new(name, needs, Action::Job { job: 1, param: Param::Own })
    }

    fn diamond() -> Workflow {
        let steps = vec![
            step("load", &[]),
            step("left", &["load"]),
            step("right", &["load"]),
            step("report", &["left", "right"]),
            Step { phase: Phase::Finally, ..step("tidy", &[]) },
        ];
        Workflow { steps, ..Workflow::default() }
    }

    fn check(states: [StepState; 5], after: Workflow, again: &[&str], kept: &[&str], repeated: &[&str]) {
        let (before, after) = (Graph::new(diamond()).unwrap(), Graph::new(after).unwrap());
        let states = before.steps().zip(states).collect();
        let again = again.iter().map(|name| after.find(name).unwrap()).collect();
        let found = resume(Past { graph: &before, states: &states }, &after, &again);
        let names = |steps: Vec<StepNo>| -> Vec<String> {
            steps.into_iter().map(|step| after.step(step).name.clone()).collect()
        };
        assert_eq!(names(found.kept.keys().copied().collect()), kept);
        assert_eq!(names(found.repeated.into_iter().collect()), repeated);
        for (step, past) in found.kept {
            assert_eq!(after.step(step), before.step(past));
        }
    }

    #[test]
    fn what_succeeded_is_kept_unless_something_before_it_runs_again() {
        use StepState::{Failed, Skipped, Succeeded, Unreached};
        let failed = [Succeeded, Failed, Succeeded, Unreached, Succeeded];
        check(failed, diamond(), &[], &["load", "right"], &["left", "report"]);
        check(failed, diamond(), &["right"], &["load"], &["left", "right", "report"]);
        check(failed, diamond(), &["load"], &[], &["load", "left", "right", "report"]);
        let done = [Succeeded, Skipped, Succeeded, Succeeded, Failed];
        check(done, diamond(), &[], &["load", "right", "report"], &[]);
        check(done, diamond(), &["left"], &["load", "right"], &["left", "report"]);
    }

    #[test]
    fn a_step_that_was_changed_or_added_runs_again() {
        use StepState::{Failed, Succeeded, Unreached};
        let states = [Succeeded, Succeeded, Succeeded, Failed, Unreached];
        let mut changed = diamond();
        changed.steps[1].timeout = Some(std::time::Duration::from_secs(1));
        check(states, changed, &[], &["load", "right"], &["left", "report"]);
        let mut moved = diamond();
        moved.steps.insert(0, step("first", &[]));
        check(states, moved.clone(), &[], &["load", "left", "right"], &["first", "report"]);
        moved.steps[3] = step("right", &["load", "first"]);
        check(states, moved, &[], &["load", "left"], &["first", "right", "report"]);
    }
}
