//! Random workflows with random ends, compared with the reference after every end.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};
use tickwright_workflow::definition::{Action, Branch, Join, Need, OnError, Param, Phase, Step, Workflow};
use tickwright_workflow::expression::Scope;
use tickwright_workflow::reference::{self, Reference};
use tickwright_workflow::resume::{Past, resume};
use tickwright_workflow::{Changes, Graph, Progress, RunRow, StepEnd, StepNo, StepRow, StepState, Stop};

/// A run with its rows, as a store keeps them.
struct Rows<'g> {
    graph: &'g Graph,
    run: RunRow,
    steps: BTreeMap<StepNo, StepRow>,
    outputs: BTreeMap<StepNo, Value>,
    outcome: Option<tickwright_workflow::RunOutcome>,
    /// How often each step opened.
    opened: BTreeMap<StepNo, u32>,
    /// Rows read by the last transaction.
    read: usize,
}

impl<'g> Rows<'g> {
    fn new(graph: &'g Graph) -> Rows<'g> {
        Rows {
            graph,
            run: RunRow::new(graph),
            steps: graph.steps().map(|step| (step, StepRow::new(graph, step))).collect(),
            outputs: BTreeMap::new(),
            outcome: None,
            opened: BTreeMap::new(),
            read: 0,
        }
    }

    /// One transaction.
    fn apply(&mut self, change: impl FnOnce(&mut Progress<'_>, &BTreeMap<StepNo, StepRow>)) -> Changes {
        let mut progress = Progress::new(self.graph, self.run.clone(), Scope::default());
        change(&mut progress, &self.steps);
        self.read = 0;
        loop {
            let wants = progress.wants();
            if wants.is_empty() {
                break;
            }
            self.read += wants.rows.len();
            let rows = wants.rows.iter().map(|step| self.steps[step].clone()).collect();
            let output = |step: &StepNo| (*step, self.outputs.get(step).cloned().unwrap_or(json!({})));
            progress.give(rows, wants.outputs.iter().map(output).collect());
        }
        let changes = progress.finish();
        self.run = changes.run.clone();
        for row in &changes.steps {
            let before = self.steps.insert(row.step, row.clone()).expect("every step has a row");
            assert!(before.state == row.state || before.state.may_become(row.state), "{before:?} → {row:?}");
        }
        for (step, _) in &changes.opened {
            *self.opened.entry(*step).or_default() += 1;
        }
        for (phase, state) in &changes.closed {
            for (step, row) in &mut self.steps {
                if self.graph.step(*step).phase == *phase && !row.state.is_over() {
                    assert!(!row.state.is_active(), "{row:?} was active when its phase was closed");
                    row.state = *state;
                }
            }
        }
        self.outcome = self.outcome.or(changes.outcome);
        changes
    }

    fn active(&self) -> Vec<StepNo> {
        self.steps.values().filter(|row| row.state.is_active()).map(|row| row.step).collect()
    }

    fn end(&mut self, ends: &[(StepNo, StepEnd)]) -> Changes {
        for (step, end) in ends {
            if let (StepEnd::Succeeded(output), true) = (end, self.steps[step].state.is_active()) {
                self.outputs.insert(*step, output.clone());
            }
        }
        self.apply(|progress, rows| {
            for (step, end) in ends {
                progress.end(rows[step].clone(), end.clone());
            }
        })
    }
}

/// What a user or an executor does next; numbers select among what is possible.
#[derive(Clone, Debug)]
enum Event {
    End { which: Vec<(u8, u8)>, twice: bool },
    Pause(bool),
    Stop(u8),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        20 => (prop::collection::vec((any::<u8>(), any::<u8>()), 1..4), any::<bool>())
            .prop_map(|(which, twice)| Event::End { which, twice }),
        2 => any::<bool>().prop_map(Event::Pause),
        1 => any::<u8>().prop_map(Event::Stop),
    ]
}

fn join() -> impl Strategy<Value = Join> {
    prop_oneof![
        5 => Just(Join::Joined),
        1 => Just(Join::AllSucceeded),
        1 => Just(Join::AllEnded),
        1 => Just(Join::AnySucceeded),
        1 => Just(Join::AnyFailed),
        1 => (1_u32..4).prop_map(Join::AtLeast),
    ]
}

type Random = (Vec<(u8, u8)>, Join, u8, bool, u8);

fn workflow() -> impl Strategy<Value = Workflow> {
    let step = (
        prop::collection::vec((any::<u8>(), any::<u8>()), 0..4),
        join(),
        any::<u8>(),
        any::<bool>(),
        any::<u8>(),
    );
    let on_error = prop_oneof![Just(OnError::Stop), Just(OnError::Continue), Just(OnError::Cancel)];
    (prop::collection::vec(step, 1..14), 0_usize..3, 0_usize..3, on_error)
        .prop_map(|(steps, on_failure, finally, on_error)| build(&steps, on_failure, finally, on_error))
}

fn build(random: &[Random], on_failure: usize, finally: usize, on_error: OnError) -> Workflow {
    let mut steps: Vec<Step> = Vec::new();
    for (number, (needs, join, condition, allow_failure, kind)) in random.iter().enumerate() {
        let phase = match random.len() - number {
            left if left <= finally && number > 0 => Phase::Finally,
            left if left <= finally + on_failure && number > 0 => Phase::OnFailure,
            _ => Phase::Main,
        };
        let earlier: Vec<String> =
            steps.iter().filter(|step| step.phase == phase).map(|step| step.name.clone()).collect();
        let mut own: Vec<Need> = Vec::new();
        for (which, branch) in needs {
            let Some(name) = earlier.get(usize::from(*which) % earlier.len().max(1)) else { continue };
            if own.iter().any(|need| need.step == *name) {
                continue;
            }
            let branch = match branch % 5 {
                0 => Branch::If(format!("steps.{name}.output.v > {}", branch % 3)),
                1 => Branch::If(format!("steps.{name}.output.v == 1 || steps.{name}.state == 'failed'")),
                _ => Branch::Always,
            };
            own.push(Need { step: name.clone(), branch });
        }
        // A condition has no value if the step failed and that is allowed. If another need of the step fails in the same
        // transaction, either may come first; so only a single need has such a condition.
        if own.len() > 1 {
            for need in &mut own {
                if let Branch::If(condition) = &mut need.branch {
                    *condition = format!("default(steps.{}.output.v, 1) > 0", need.step);
                }
            }
        }
        let join = match *join {
            Join::AtLeast(count) if own.is_empty() || count as usize > own.len() => Join::Joined,
            join => join,
        };
        let condition = match (own.first(), condition % 4) {
            (Some(need), 0) => Some(format!("default(steps.{}.output.v, 2) != 0", need.step)),
            _ => None,
        };
        let action = match kind % 5 {
            0 => Action::Wait { duration: Duration::from_secs(1) },
            _ => Action::Job { job: 1, param: Param::Own },
        };
        let name = format!("s{number}");
        let allow_failure = *allow_failure && number % 3 == 0;
        steps.push(Step {
            phase,
            needs: own,
            join,
            condition,
            allow_failure,
            ..Step::new(name, &[], action)
        });
    }
    // An `else` beside a condition of the same step.
    let has_if = |steps: &[Step], from: &str| {
        steps
            .iter()
            .flat_map(|step| &step.needs)
            .any(|need| need.step == from && matches!(need.branch, Branch::If(_)))
    };
    for number in 0..steps.len() {
        for need in 0..steps[number].needs.len() {
            let from = steps[number].needs[need].step.clone();
            if steps[number].needs[need].branch == Branch::Always && number % 2 == 0 && has_if(&steps, &from)
            {
                steps[number].needs[need].branch = Branch::Else;
            }
        }
    }
    Workflow { steps, on_error, ..Workflow::default() }
}

fn check(rows: &Rows<'_>, reference: &Reference) {
    for (step, row) in &rows.steps {
        let name = &rows.graph.step(*step).name;
        assert_eq!(row.state, reference.states[name], "{name}\n{:?}\n{:?}", rows.run, reference.states);
    }
    assert_eq!(rows.outcome, reference.outcome);
    let phase = |row: &&StepRow| rows.graph.step(row.step).phase == rows.run.phase;
    let count = |of: &dyn Fn(StepState) -> bool| {
        rows.steps.values().filter(phase).filter(|row| of(row.state)).count()
    };
    assert_eq!(rows.run.active as usize, count(&|state| state.is_active()), "active");
    assert_eq!(rows.run.open as usize, count(&|state| !state.is_over()), "open");
    assert!(rows.opened.values().all(|times| *times == 1), "opened twice: {:?}", rows.opened);
    // It ends when nothing goes on any more.
    assert!(rows.outcome.is_some() || rows.run.active > 0 || rows.run.paused, "stuck: {:?}", rows.run);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn progress_agrees_with_the_reference(workflow in workflow(), events in prop::collection::vec(event(), 1..40)) {
        let graph = Graph::new(workflow.clone()).expect("the generator makes valid workflows");
        let mut rows = Rows::new(&graph);
        let mut reference = Reference::begin(workflow, BTreeMap::new());
        rows.apply(|progress, _| progress.begin());
        check(&rows, &reference);
        run_to_end(&mut rows, &mut reference, events);
    }

    #[test]
    fn a_resumed_run_keeps_what_the_reference_keeps_and_goes_on_from_there(
        workflow in workflow(),
        events in prop::collection::vec(event(), 1..40),
        again in prop::collection::vec(any::<u8>(), 0..3),
        changed in prop::collection::vec(any::<u8>(), 0..2),
        ends in prop::collection::vec(event(), 1..40),
    ) {
        let graph = Graph::new(workflow.clone()).expect("the generator makes valid workflows");
        let mut rows = Rows::new(&graph);
        let mut reference = Reference::begin(workflow.clone(), BTreeMap::new());
        rows.apply(|progress, _| progress.begin());
        run_to_end(&mut rows, &mut reference, events);

        let mut after = workflow.clone();
        for which in changed {
            let count = after.steps.len();
            after.steps[usize::from(which) % count].timeout = Some(Duration::from_secs(9));
        }
        let again: BTreeSet<StepNo> =
            again.iter().map(|which| StepNo(u32::from(*which) % after.steps.len() as u32)).collect();
        let changed = Graph::new(after.clone()).expect("a timeout is valid");
        let states: BTreeMap<StepNo, StepState> =
            rows.steps.iter().map(|(step, row)| (*step, row.state)).collect();
        let found = resume(Past { graph: &graph, states: &states }, &changed, &again);

        let name = |step: &StepNo| changed.step(*step).name.clone();
        let expected =
            reference::kept(&workflow, &reference.states, &after, &again.iter().map(name).collect());
        prop_assert_eq!(found.kept.keys().map(name).collect::<BTreeSet<_>>(), expected);

        let mut next = Rows::new(&changed);
        for (step, past) in &found.kept {
            prop_assert!(!found.repeated.contains(step));
            next.steps.get_mut(step).expect("every step has a row").state = StepState::Succeeded;
            next.outputs.insert(*step, rows.outputs[past].clone());
        }
        let outputs = next.outputs.iter().map(|(step, output)| (name(step), output.clone())).collect();
        let mut reference = Reference::resume(after, outputs);
        next.apply(|progress, rows| {
            let kept = rows.values().filter(|row| row.state == StepState::Succeeded);
            progress.resume(kept.cloned().collect());
        });
        check(&next, &reference);
        run_to_end(&mut next, &mut reference, ends);
        for step in found.kept.keys() {
            prop_assert!(!next.opened.contains_key(step), "{} was kept and opened", name(step));
        }
    }
}

/// Applies events, then ends everything that is active, until the run has ended.
fn run_to_end(rows: &mut Rows<'_>, reference: &mut Reference, events: Vec<Event>) {
    let last = (0..rows.graph.len() + 1).flat_map(|_| {
        [Event::Pause(false), Event::End { which: vec![(0, 1), (0, 0), (1, 2)], twice: false }]
    });
    for event in events.into_iter().chain(last) {
        if rows.outcome.is_some() {
            break;
        }
        step(rows, reference, &event);
        check(rows, reference);
    }
    assert!(rows.outcome.is_some(), "it does not end: {:?}", reference.states);
}

fn step(rows: &mut Rows<'_>, reference: &mut Reference, event: &Event) {
    let active = rows.active();
    match event {
        Event::End { which, twice } => {
            let mut ends: BTreeMap<StepNo, u8> = BTreeMap::new();
            for (step, how) in which {
                if let Some(step) = active.get(usize::from(*step) % active.len().max(1)) {
                    ends.insert(*step, *how);
                }
            }
            let output = |how: u8| (how % 4).checked_sub(1).map(|v| json!({ "v": v }));
            let of_rows: Vec<(StepNo, StepEnd)> = ends
                .iter()
                .map(|(step, how)| (*step, output(*how).map_or(StepEnd::Failed, StepEnd::Succeeded)))
                .collect();
            let names: Vec<(String, Option<Value>)> =
                ends.iter().map(|(step, how)| (rows.graph.step(*step).name.clone(), output(*how))).collect();
            let changes = rows.end(&of_rows);
            reference.end(&names);
            if *twice {
                let again = rows.end(&of_rows);
                assert!(
                    again.opened.is_empty() && again.steps.is_empty(),
                    "a second report changed {again:?}"
                );
            }
            cancel_active(rows, reference, &changes);
        }
        Event::Pause(true) => {
            rows.apply(|progress, _| progress.pause());
            reference.pause(true);
        }
        Event::Pause(false) => {
            rows.apply(|progress, rows| {
                progress.unpause(rows.values().filter(|row| row.state == StepState::Held).cloned().collect());
            });
            reference.pause(false);
        }
        Event::Stop(how) => {
            let stop = [Stop::TimedOut, Stop::Cancelled, Stop::CancelledNow][usize::from(*how) % 3];
            let changes = rows.apply(|progress, _| progress.stop(stop));
            reference.stop(stop);
            cancel_active(rows, reference, &changes);
        }
    }
}

/// Executors end what they are asked to cancel.
fn cancel_active(rows: &mut Rows<'_>, reference: &mut Reference, changes: &Changes) {
    if changes.cancel_active {
        check(rows, reference);
        let active = rows.active();
        let names: Vec<String> = active.iter().map(|step| rows.graph.step(*step).name.clone()).collect();
        rows.end(&active.into_iter().map(|step| (step, StepEnd::Cancelled)).collect::<Vec<_>>());
        reference.cancelled(&names);
    }
}

/// An end reads the rows of its successors, not the graph.
#[test]
fn an_end_costs_as_much_as_its_successors() {
    let mut steps = vec![Step::new("first", &[], Action::Job { job: 1, param: Param::Own })];
    for number in 0..2_000 {
        let before = if number == 0 { "first".to_owned() } else { format!("s{}", number - 1) };
        steps.push(Step::new(format!("s{number}"), &[&before], Action::Job { job: 1, param: Param::Own }));
    }
    let graph = Graph::new(Workflow { steps, ..Workflow::default() }).unwrap();
    let mut rows = Rows::new(&graph);
    rows.apply(|progress, _| progress.begin());
    for _ in 0..100 {
        let active = rows.active();
        assert_eq!(active.len(), 1);
        rows.end(&[(active[0], StepEnd::Succeeded(json!({})))]);
        assert_eq!(rows.read, 1);
    }
    let active = rows.active();
    rows.end(&[(active[0], StepEnd::Failed)]);
    // The rest of the chain is unreached.
    assert_eq!(rows.outcome, Some(tickwright_workflow::RunOutcome::Failed));
}
