//! Workflow runs under all faults: random graphs, compared with an evaluator that shares no rule with the engine.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cron::Schedule;
use engine::policy::{Backoff, Retry};
use engine::{AppId, Bugs, JobId, JobSpec, Origin, Outcome, RunId, Store as _, Trigger};
use serde_json::json;
use store::{Database, WorkflowRunSteps};
use workflow::definition::{Action, Join, Need, OnError, Param, Phase, Step, Workflow};
use workflow::reference::Reference;
use workflow::{Graph, StepState};

use super::clock::{Ms, START};
use super::dice::Dice;
use super::evidence::Evidence;
use super::plan::{Mode, Plan, handlers, routes};
use super::world::World;
use super::{Cluster, all_runs, in_virtual_time, nemesis, settle};

/// Result of the simulation.
#[derive(Debug, Default)]
pub struct WorkflowRuns {
    /// Number of workflow runs.
    pub runs: usize,
    /// Number of requests of steps that executors accepted.
    pub steps: usize,
    /// Violations.
    pub broken: Vec<String>,
}

/// Runs the simulation. The seed decides the workflows and the faults.
pub fn workflow_runs(seed: u64) -> WorkflowRuns {
    fastrand::seed(seed);
    in_virtual_time(async {
        let mut dice = Dice::new(seed, "workflows", 0);
        let plan = Plan {
            mode: Mode::Safety,
            embedded: false,
            registering: None,
            java: false,
            jobs: 0,
            begins: START,
            executors: 3,
            faults_until: START + dice.number(20_000, 40_000),
            ..Plan::new(seed)
        };
        let world = Arc::new(World::new(plan, false));
        let cluster = Cluster::new(&world, Bugs::default()).await;
        let workflows = create(&world, &cluster, &mut dice).await;
        for host in &cluster.hosts {
            tokio::spawn(host.clone().run());
            tokio::spawn(nemesis::break_node(host.clone()));
            tokio::spawn(nemesis::bend_clock(host.clone()));
        }
        tokio::spawn(nemesis::break_database(world.clone()));
        for index in 0..world.plan.executors {
            tokio::spawn(nemesis::break_executor(world.clone(), cluster.executors.clone(), index));
        }
        for key in 0..RUNS {
            world.sleep(dice.millis(100, 2_500)).await;
            let trigger = Trigger { key, at: None, param: None, address: None };
            let job = dice.pick(&workflows);
            cluster.database.trigger(job, &trigger).await.expect("the store itself never fails");
        }
        world.sleep_until(world.plan.faults_until).await;
        world.clear_up();
        settle(&world, &*cluster.store, &cluster.executors, &workflows).await;
        judge(&world, &cluster.database, &workflows).await
    })
}

/// Number of workflow runs of one seed.
const RUNS: i64 = 12;

/// Creates workflows and the jobs of their steps.
async fn create(world: &World, cluster: &Cluster, dice: &mut Dice) -> Vec<JobId> {
    let mut jobs = Vec::new();
    for number in 0..6 {
        let spec = step_job(cluster.app, dice, number);
        let job = cluster.store.create_job(&spec).await.expect("the job is right");
        world.evidence().jobs.insert(job, spec);
        jobs.push(job);
    }
    let mut workflows = Vec::new();
    for number in 0..3 {
        let graph = Graph::new(definition(dice, &jobs)).expect("steps need only steps before them");
        let id = cluster.database.add_workflow(graph.definition(), "sim").await.expect("it is right");
        let mut spec = JobSpec::new(cluster.app, format!("workflow {number}"), Schedule::Never, "");
        spec.workflow = Some(id);
        let job = cluster.store.create_job(&spec).await.expect("the job is right");
        world.evidence().jobs.insert(job, spec);
        workflows.push(job);
    }
    workflows
}

fn step_job(app: AppId, dice: &mut Dice, number: usize) -> JobSpec {
    let handler =
        dice.pick(&[handlers::QUICK, handlers::QUICK, handlers::FLAKY, handlers::FAILS, handlers::LONG]);
    let mut spec = JobSpec::new(app, format!("job {number}"), Schedule::Never, handler);
    spec.route = dice.pick(&[routes::FIRST, routes::HASH, routes::AT_SEND]).into();
    if dice.chance(0.5) {
        let backoff = Backoff::Fixed { delay: dice.millis(0, 1_000) };
        spec.retry = Retry { count: dice.number(1, 2) as u32, backoff };
    }
    spec
}

/// A random graph. What a failure stops depends on the order of ends; here everything goes on that can.
fn definition(dice: &mut Dice, jobs: &[JobId]) -> Workflow {
    let count = dice.number(3, 10) as usize;
    let mut steps: Vec<Step> = Vec::new();
    for number in 0..count {
        let job = dice.pick(jobs);
        let action = match dice.chance(0.1) {
            true => Action::Wait { duration: dice.millis(10, 2_000) },
            false => Action::Job { job: job.0, param: Param::Own },
        };
        let mut step = Step::new(format!("s{number}"), &[], action);
        for before in 0..number {
            if dice.chance(0.35) {
                step.needs.push(Need::on(format!("s{before}")));
            }
        }
        if !step.needs.is_empty() {
            step.join = dice.pick(&[
                Join::Joined,
                Join::Joined,
                Join::AllSucceeded,
                Join::AllEnded,
                Join::AnySucceeded,
                Join::AnyFailed,
            ]);
        }
        step.allow_failure = dice.chance(0.2);
        steps.push(step);
    }
    if dice.chance(0.5) {
        let tidy = Step::new("tidy", &[], Action::Job { job: dice.pick(jobs).0, param: Param::Own });
        steps.push(Step { phase: Phase::Finally, ..tidy });
    }
    Workflow { steps, on_error: OnError::Continue, ..Workflow::default() }
}

async fn judge(world: &World, database: &Database, workflows: &[JobId]) -> WorkflowRuns {
    let mut result = WorkflowRuns::default();
    for job in workflows {
        for record in all_runs(database, *job).await {
            result.runs += 1;
            let found = database.workflow_run(record.id).await.expect("the store itself never fails");
            match found {
                _ if !record.state.is_over() => result.broken.push(format!("run {} never ended", record.id)),
                None => result.broken.push(format!("run {} has no steps: {record:?}", record.id)),
                Some(found) => check(&world.evidence(), &found, &mut result),
            }
        }
    }
    if result.runs != RUNS as usize {
        result.broken.push(format!("{} of {RUNS} workflow runs", result.runs));
    }
    once(&world.evidence(), &mut result);
    let evidence = world.evidence();
    result
        .broken
        .extend(evidence.broken.iter().map(|found| format!("{}: {}", found.promise, found.evidence)));
    result
}

/// The steps of a run ended as the reference says, given how those ended that ran; and none began before what it needs.
fn check(evidence: &Evidence, found: &WorkflowRunSteps, result: &mut WorkflowRuns) {
    let name = |step: &store::Step| found.definition.steps[step.row.step.0 as usize].name.clone();
    let states: BTreeMap<String, StepState> =
        found.steps.iter().map(|step| (name(step), step.row.state)).collect();
    let mut reference = Reference::begin(found.definition.clone(), BTreeMap::new());
    loop {
        let active = reference.states.iter().filter(|(_, state)| state.is_active());
        let ends: Vec<(String, Option<serde_json::Value>)> = active
            .filter_map(|(name, _)| match states[name] {
                StepState::Succeeded => Some((name.clone(), Some(json!({})))),
                StepState::Failed => Some((name.clone(), None)),
                _ => None,
            })
            .collect();
        if ends.is_empty() {
            break;
        }
        reference.end(&ends);
    }
    let run = found.run.id;
    if reference.states != states {
        result.broken.push(format!("run {run} ended with {states:?}, not {:?}", reference.states));
    }
    if found.run.end.as_ref().map(|end| end.outcome) != reference.outcome {
        result.broken.push(format!("run {run} ended with {:?}, not {:?}", found.run.end, reference.outcome));
    }
    for (number, step) in found.definition.steps.iter().enumerate() {
        if let Some(expected) = last_outcome(evidence, run, number)
            && states[&step.name] != expected
        {
            let state = states[&step.name];
            result.broken.push(format!("run {run}: {} is {state}, its last attempt {expected}", step.name));
        }
        let Some(began) = first_arrival(evidence, run, number) else { continue };
        // Other rules open a step before all have ended.
        if !matches!(step.join, Join::Joined | Join::AllSucceeded | Join::AllEnded) {
            continue;
        }
        for need in &step.needs {
            let place = found.definition.steps.iter().position(|other| other.name == need.step);
            let place = place.expect("the definition was checked");
            let ran = first_arrival(evidence, run, place).is_some();
            let ended = last_end_before(evidence, run, place, began);
            if ran && ended.is_none() {
                result.broken.push(format!("run {run}: {} began before {} had ended", step.name, need.step));
            }
        }
    }
}

/// How the last attempt of a step ended. A result that came after it was given up changes nothing.
fn last_outcome(evidence: &Evidence, run: RunId, number: usize) -> Option<StepState> {
    let attempts = evidence.ledger.values().filter(|entry| is_of(entry.facts.origin, run, number));
    let last = attempts.max_by_key(|entry| entry.facts.attempt)?.facts.id;
    let ended = evidence.endings.iter().find(|ended| ended.run == last && !ended.late)?;
    Some(match ended.outcome {
        Outcome::Succeeded(_) => StepState::Succeeded,
        Outcome::Cancelled(_) => StepState::Cancelled,
        _ => StepState::Failed,
    })
}

fn is_of(origin: Origin, run: RunId, number: usize) -> bool {
    origin == Origin::Step { of: run, step: number as u32 }
}

fn first_arrival(evidence: &Evidence, run: RunId, number: usize) -> Option<Ms> {
    let arrived = evidence.received.iter().filter(|received| is_of(received.run.origin, run, number));
    arrived.map(|received| received.at).min()
}

/// When a run of the step was closed, up to a time.
fn last_end_before(evidence: &Evidence, run: RunId, number: usize, by: Ms) -> Option<Ms> {
    let runs = evidence.ledger.values().filter(|entry| is_of(entry.facts.origin, run, number));
    let received = evidence.received.iter().filter(|received| is_of(received.run.origin, run, number));
    let runs: BTreeSet<RunId> =
        runs.map(|entry| entry.facts.id).chain(received.map(|received| received.run.id)).collect();
    let ends = evidence.endings.iter().filter(|ended| runs.contains(&ended.run) && ended.at <= by);
    ends.map(|ended| ended.at).max()
}

/// Each attempt of each step was accepted at most once.
fn once(evidence: &Evidence, result: &mut WorkflowRuns) {
    let mut accepted: BTreeMap<(RunId, u32, u32), Vec<RunId>> = BTreeMap::new();
    for received in evidence.received.iter().filter(|received| received.accepted) {
        if let Origin::Step { of, step } = received.run.origin {
            result.steps += 1;
            accepted.entry((of, step, received.run.attempt)).or_default().push(received.run.id);
        }
    }
    for ((of, step, attempt), runs) in accepted.into_iter().filter(|(_, runs)| runs.len() > 1) {
        result.broken.push(format!("attempt {attempt} of step {step} of run {of} was accepted as {runs:?}"));
    }
}
