//! Which connections of a workflow run were taken, as far as its rows show it.
//!
//! The row of a step counts its connections by their outcome. It does not name them, because progress does not depend on
//! that. Most follow from the states of the steps; those with a condition follow from the counts.

use std::collections::{BTreeMap, HashMap};

use crate::definition::{Branch, Step, Workflow};
use crate::progress::StepRow;

/// For each step, whether the connection to each of its needs was taken. `None` while that is open, and if the rows do
/// not show it. `rows` are those of all steps, by number.
pub fn taken(definition: &Workflow, rows: &[StepRow]) -> Vec<Vec<Option<bool>>> {
    let steps = &definition.steps;
    let by_name: HashMap<&str, usize> =
        steps.iter().enumerate().map(|(number, step)| (step.name.as_str(), number)).collect();
    let ends = Ends { steps, rows, by_name };
    let mut connections: Vec<Vec<Option<bool>>> = steps.iter().map(|step| ends.certain(step)).collect();
    if steps.iter().any(|step| step.needs.iter().any(|need| need.branch != Branch::Always)) {
        // A count can settle a branch, and a branch can settle another count.
        ends.settle_by_counts(&mut connections);
        ends.settle_by_branches(&mut connections);
        ends.settle_by_counts(&mut connections);
    }
    connections
}

struct Ends<'a> {
    steps: &'a [Step],
    rows: &'a [StepRow],
    by_name: HashMap<&'a str, usize>,
}

impl Ends<'_> {
    fn row(&self, name: &str) -> Option<(&Step, &StepRow)> {
        let number = *self.by_name.get(name)?;
        Some((self.steps.get(number)?, self.rows.get(number)?))
    }

    fn is_over(&self, name: &str) -> bool {
        self.row(name).is_some_and(|(_, row)| row.state.is_over())
    }

    /// What the states of the needs alone show.
    fn certain(&self, step: &Step) -> Vec<Option<bool>> {
        let outcome = |need: &crate::definition::Need| {
            let (from, row) = self.row(&need.step)?;
            match row.state {
                state if !state.is_over() => None,
                state if !state.counts_as_success(from.allow_failure) => Some(false),
                _ => (need.branch == Branch::Always).then_some(true),
            }
        };
        step.needs.iter().map(outcome).collect()
    }

    /// All connections of a step that are in doubt were taken, or none was, if its row counts so many.
    fn settle_by_counts(&self, connections: &mut [Vec<Option<bool>>]) {
        for ((step, row), connections) in self.steps.iter().zip(self.rows).zip(connections) {
            let open = step.needs.iter().filter(|need| !self.is_over(&need.step)).count();
            let known = connections.iter().filter(|taken| **taken == Some(true)).count();
            let doubtful = connections.iter().filter(|taken| taken.is_none()).count() - open;
            let counted = (row.tally.taken as usize).checked_sub(known);
            // Ends that are not applied yet are not counted.
            let is_complete = row.tally.waits as usize == open;
            let outcome = match counted {
                Some(0) if is_complete => false,
                Some(count) if is_complete && count == doubtful => true,
                _ => continue,
            };
            for (need, taken) in step.needs.iter().zip(connections) {
                if self.is_over(&need.step) {
                    taken.get_or_insert(outcome);
                }
            }
        }
    }

    /// `else` is taken if none of the conditions at the same step is true.
    fn settle_by_branches(&self, connections: &mut [Vec<Option<bool>>]) {
        let mut branches: BTreeMap<&str, Vec<(usize, usize, bool)>> = BTreeMap::new();
        for (number, step) in self.steps.iter().enumerate() {
            for (position, need) in step.needs.iter().enumerate() {
                if need.branch != Branch::Always && self.is_over(&need.step) {
                    let is_else = need.branch == Branch::Else;
                    branches.entry(&need.step).or_default().push((number, position, is_else));
                }
            }
        }
        for branches in branches.into_values() {
            let conditions: Vec<_> = branches
                .iter()
                .filter(|branch| !branch.2)
                .map(|(step, need, _)| connections[*step][*need])
                .collect();
            let any_true = conditions.contains(&Some(true));
            let all_false = conditions.iter().all(|taken| *taken == Some(false));
            let others: Vec<_> = branches.iter().filter(|branch| branch.2).collect();
            let is_else_taken = others.iter().any(|(step, need, _)| connections[*step][*need] == Some(true));
            for (step, need, is_else) in &branches {
                let taken = &mut connections[*step][*need];
                match is_else {
                    true if any_true || all_false => _ = taken.get_or_insert(all_false),
                    false if is_else_taken => _ = taken.get_or_insert(false),
                    _ => {}
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::{Action, Need};
    use crate::graph::StepNo;
    use crate::join::Tally;
    use words::StepState::{self, *};

    fn step(name: &str, needs: &[(&str, Branch)]) -> Step {
        let needs = needs.iter().map(|(step, branch)| Need { step: (*step).into(), branch: branch.clone() });
        let action = Action::Job { job: 1, param: crate::definition::Param::Own };
        Step { needs: needs.collect(), ..Step::new(name, &[], action) }
    }

    fn check(steps: Vec<Step>, rows: &[(StepState, [u32; 2])], expected: &[&[Option<bool>]]) {
        let row = |(number, (state, [waits, taken])): (usize, &(StepState, [u32; 2]))| StepRow {
            step: StepNo(number as u32),
            state: *state,
            tally: Tally { waits: *waits, taken: *taken, ..Tally::default() },
        };
        let rows: Vec<StepRow> = rows.iter().enumerate().map(row).collect();
        let found = taken(&Workflow { steps, ..Workflow::default() }, &rows);
        assert_eq!(found, expected);
    }

    fn condition() -> Branch {
        Branch::If("true".into())
    }

    #[test]
    fn states_settle_connections_without_a_condition() {
        let steps = || {
            vec![step("a", &[]), step("b", &[]), step("c", &[("a", Branch::Always), ("b", Branch::Always)])]
        };
        let yes = Some(true);
        check(steps(), &[(Succeeded, [0, 0]), (Open, [0, 0]), (Blocked, [1, 1])], &[&[], &[], &[yes, None]]);
        check(
            steps(),
            &[(Succeeded, [0, 0]), (Failed, [0, 0]), (Unreached, [0, 1])],
            &[&[], &[], &[yes, Some(false)]],
        );
        let mut tolerant = steps();
        tolerant[1].allow_failure = true;
        check(
            tolerant,
            &[(Skipped, [0, 0]), (Failed, [0, 0]), (Open, [0, 1])],
            &[&[], &[], &[Some(false), yes]],
        );
    }

    #[test]
    fn counts_settle_conditions() {
        let steps = || {
            vec![
                step("users", &[]),
                step("orders", &[]),
                step("full", &[("users", Branch::Always), ("orders", condition())]),
                step("part", &[("users", Branch::Always), ("orders", Branch::Else)]),
            ]
        };
        let (yes, no) = (Some(true), Some(false));
        let ended = [(Succeeded, [0, 0]), (Succeeded, [0, 0]), (Skipped, [0, 1]), (Open, [0, 2])];
        check(steps(), &ended, &[&[], &[], &[yes, no], &[yes, yes]]);
        // The end of `orders` is not applied yet.
        let early = [(Succeeded, [0, 0]), (Succeeded, [0, 0]), (Blocked, [1, 1]), (Blocked, [1, 1])];
        check(steps(), &early, &[&[], &[], &[yes, None], &[yes, None]]);
    }

    #[test]
    fn a_branch_settles_what_a_count_leaves_open() {
        let steps = vec![
            step("a", &[]),
            step("b", &[]),
            step("one", &[("a", condition())]),
            step("both", &[("a", Branch::Else), ("b", condition())]),
        ];
        let (yes, no) = (Some(true), Some(false));
        // One of the two connections of `both` was taken; that of `one` shows which.
        let rows = [(Succeeded, [0, 0]), (Succeeded, [0, 0]), (Open, [0, 1]), (Open, [0, 1])];
        check(steps, &rows, &[&[], &[], &[yes], &[no, yes]]);
    }
}
