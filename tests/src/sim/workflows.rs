//! Workflow runs under all faults: random graphs, compared with an evaluator that shares no rule with the engine.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use cron::Schedule;
use engine::policy::{Backoff, Retry};
use engine::{
    AppId, Bugs, Control, JobId, JobSpec, Origin, Outcome, RunId, Sabotage, Store as _, StoreError, Trigger,
};
use serde_json::json;
use store::{BrokenRule, Database, Decision, Resume, WorkflowRunSteps};
use timer::Timestamp;
use workflow::definition::{
    Action, Dates, DependsNeed, IfFailed, IfMissing, Join, Need, OnError, Param, Phase, Step, Workflow,
};
use workflow::reference::{self, Reference};
use workflow::{Graph, RunOutcome, StepNo, StepState};

use super::clock::{Ms, START};
use super::dice::Dice;
use super::evidence::{Evidence, Violation};
use super::plan::{Mode, Plan, handlers, routes};
use super::world::World;
use super::{Cluster, Stopped, all_runs, in_virtual_time, nemesis, settle};

/// Deliberate bugs, with the rules that the store ignores for them.
pub(super) const BROKEN_RULES: [(Sabotage, BrokenRule); 9] = [
    (Sabotage::KeepFailedSteps, BrokenRule::FailedSteps),
    (Sabotage::OpenAtFirstEnd, BrokenRule::OpenNeeds),
    (Sabotage::CountEndsTwice, BrokenRule::CountedEnds),
    (Sabotage::StopAtSkips, BrokenRule::Skips),
    (Sabotage::ReadLatestDefinition, BrokenRule::OwnDefinition),
    (Sabotage::LeaveUnreached, BrokenRule::Unreached),
    (Sabotage::DecideTwice, BrokenRule::FirstDecision),
    (Sabotage::TakeAnySuccess, BrokenRule::NewestRuns),
    (Sabotage::LookBeforeRegistering, BrokenRule::RegisteredFirst),
];

/// Result of the simulation.
#[derive(Debug, Default)]
pub struct WorkflowRuns {
    /// Number of workflow runs.
    pub runs: usize,
    /// Number of those that resume or retry another one.
    pub resumed: usize,
    /// Number of decisions about steps.
    pub decided: usize,
    /// Number of steps that succeeded by a run of another workflow.
    pub depended: usize,
    /// Number of requests of steps that executors accepted.
    pub steps: usize,
    /// Violations.
    pub broken: Vec<String>,
}

/// Runs the simulation. The seed decides the workflows and the faults.
pub fn workflow_runs(seed: u64, bugs: Bugs) -> WorkflowRuns {
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
            faults_until: START + dice.number(31_000, 45_000),
            ..Plan::new(seed)
        };
        let world = Arc::new(World::new(plan, false));
        let cluster = Cluster::new(&world, bugs).await;
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
        let mut client =
            Client { world: &world, cluster: &cluster, dice, key: RUNS, resumed: BTreeMap::new() };
        for key in 0..RUNS {
            world.sleep(client.dice.millis(100, 2_500)).await;
            let trigger = Trigger { key, at: None, param: None, address: None, by: None };
            let job = client.dice.pick(&workflows);
            cluster.database.trigger(job, &trigger).await.expect("the store itself never fails");
            client.interfere(&workflows).await;
        }
        loop {
            let next = world.now() + client.dice.number(500, 3_000);
            if next >= world.plan.faults_until {
                break;
            }
            world.sleep_until(next).await;
            client.interfere(&workflows).await;
        }
        world.sleep_until(world.plan.faults_until).await;
        let resumed = client.resumed;
        world.clear_up();
        settle(&world, &*cluster.store, &cluster.executors, &workflows).await;
        judge(&world, &cluster.database, &workflows, &resumed).await
    })
}

/// Number of workflow runs of one seed that are triggered.
const RUNS: i64 = 12;

/// Somebody who resumes runs and edits workflows.
struct Client<'a> {
    world: &'a World,
    cluster: &'a Cluster,
    dice: Dice,
    /// Last used idempotency key.
    key: i64,
    /// Runs that were opened, with the steps that were to run again.
    resumed: BTreeMap<RunId, BTreeSet<String>>,
}

impl Client<'_> {
    async fn interfere(&mut self, workflows: &[JobId]) {
        let job = self.dice.pick(workflows);
        if self.dice.chance(0.2) {
            self.edit(job).await;
        }
        let runs = all_runs(&*self.cluster.database, job).await;
        if !runs.is_empty() && self.dice.chance(0.6) {
            let run = runs[self.dice.number(0, runs.len() as i64 - 1) as usize].id;
            self.resume(run).await;
        }
        for run in runs.iter().rev().take(4) {
            self.decide(run.id).await;
        }
    }

    /// Decides about steps that wait, sometimes as two users who disagree.
    async fn decide(&mut self, run: RunId) {
        let database = &self.cluster.database;
        let Some(found) = database.workflow_run(run).await.expect("the store itself never fails") else {
            return;
        };
        for (definition, step) in found.definition.steps.iter().zip(&found.steps) {
            let asks = matches!(definition.action, Action::Approval { .. });
            if !asks || step.row.state != StepState::Waiting || self.dice.chance(0.3) {
                continue;
            }
            let approved = self.dice.chance(0.7);
            for (user, approved) in [("ada", approved), ("bob", !approved)] {
                let decision = Decision { approved, user: user.to_owned(), remark: String::new() };
                match database.decide_step(run, &definition.name, &decision).await {
                    Ok(()) | Err(StoreError::Conflict(_)) => {}
                    Err(error) => panic!("run {run}: {error}"),
                }
                if self.dice.chance(0.5) {
                    break;
                }
            }
        }
    }

    /// Asks for any run, also one that has not ended. Sometimes the answer is lost, and the request repeated.
    async fn resume(&mut self, run: RunId) {
        let database = &self.cluster.database;
        let Some(found) = database.workflow_run(run).await.expect("the store itself never fails") else {
            return;
        };
        let names = found.definition.steps.iter().map(|step| step.name.clone());
        let again: BTreeSet<String> = names.filter(|_| self.dice.chance(0.1)).collect();
        self.key += 1;
        let resume = Resume {
            key: self.key,
            again: again.iter().cloned().collect(),
            latest: self.dice.chance(0.3),
            ..Resume::default()
        };
        let answer = database.resume_workflow(run, &resume).await;
        if self.dice.chance(0.3) {
            let repeated = database.resume_workflow(run, &resume).await;
            if answer.is_ok() && repeated != answer {
                self.breach("W8", format!("run {run} was resumed as {answer:?}, then as {repeated:?}"));
            }
        }
        match answer {
            Ok(resumed) => {
                let opened = resumed.run.expect("it was no preview");
                self.resumed.insert(opened, again);
                let open = database.open_runs(&[run]).await.expect("the store itself never fails");
                if !open.is_empty() || found.steps.iter().any(|step| step.row.state.is_active()) {
                    self.breach("W9", format!("run {run} was resumed before its end"));
                }
            }
            Err(StoreError::Conflict(_)) => {}
            Err(error) => panic!("run {run}: {error}"),
        }
    }

    /// Replaces the needs of a step.
    async fn edit(&mut self, job: JobId) {
        let database = &self.cluster.database;
        let stored =
            database.job(job).await.expect("the store itself never fails").expect("it is not deleted");
        let id = stored.spec.workflow.expect("it is a workflow");
        let row = database.workflow(id).await.expect("the store itself never fails");
        let mut definition = row.expect("definitions stay").definition;
        let last = definition.steps.iter().rposition(|step| step.phase == Phase::Main);
        let step = &mut definition.steps[last.expect("there is a main phase")];
        let (without, join) = (step.needs.pop().is_some(), self.dice.pick(&[Join::Joined, Join::AllEnded]));
        step.join = if step.needs.is_empty() { Join::Joined } else { join };
        if !without {
            step.allow_failure ^= true;
        }
        let id = database.add_workflow(&definition, "sim").await.expect("it is right");
        let spec = JobSpec { workflow: Some(id), ..stored.spec };
        self.world.evidence().jobs.insert(job, spec.clone());
        let edit = Control::Edit { spec: Box::new(spec), revision: None };
        database.control(job, &edit, 1_000, &Stopped).await.expect("the job is stopped and right");
    }

    fn breach(&self, promise: &'static str, evidence: String) {
        self.world.note(|| evidence.clone());
        self.world.evidence().broken.push(Violation { promise, evidence });
    }
}

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
        let graph =
            Graph::new(definition(dice, &jobs, &workflows)).expect("steps need only steps before them");
        let id = cluster.database.add_workflow(graph.definition(), "sim").await.expect("it is right");
        let mut spec = JobSpec::new(cluster.app, format!("workflow {number}"), Schedule::Never, "");
        spec.workflow = Some(id);
        if dice.chance(0.3) {
            spec.retry = Retry { count: 1, backoff: Backoff::Fixed { delay: dice.millis(0, 1_000) } };
        }
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

/// A random graph. What a failure stops depends on the order of ends; here everything goes on that can. Some steps depend
/// on runs of a workflow before this one.
fn definition(dice: &mut Dice, jobs: &[JobId], before: &[JobId]) -> Workflow {
    let count = dice.number(3, 10) as usize;
    let mut steps: Vec<Step> = Vec::new();
    for number in 0..count {
        let job = dice.pick(jobs);
        let action = if dice.chance(0.1) {
            Action::Wait { duration: dice.millis(10, 2_000) }
        } else if !before.is_empty() && dice.chance(0.25) {
            depends(dice, before)
        } else if dice.chance(0.1) {
            approval(dice)
        } else {
            Action::Job { job: job.0, param: Param::Own }
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

fn approval(dice: &mut Dice) -> Action {
    let timeout = Some(dice.millis(5_000, 40_000));
    Action::Approval { ask: "go on?".to_owned(), approvers: Vec::new(), by_starter: true, timeout }
}

/// Workflows here have no schedule, so the newest run of the day decides.
fn depends(dice: &mut Dice, before: &[JobId]) -> Action {
    Action::Depends {
        job: dice.pick(before).0,
        dates: Dates::SAME,
        need: dice.pick(&[DependsNeed::All, DependsNeed::Any]),
        if_missing: dice.pick(&[IfMissing::Wait, IfMissing::Fail]),
        on_failed: dice.pick(&[IfFailed::Wait, IfFailed::Fail]),
        timeout: Some(dice.millis(60_000, 90_000)),
    }
}

async fn judge(
    world: &World,
    database: &Database,
    workflows: &[JobId],
    resumed: &BTreeMap<RunId, BTreeSet<String>>,
) -> WorkflowRuns {
    let mut result = WorkflowRuns::default();
    for job in workflows {
        for record in all_runs(database, *job).await {
            result.runs += 1;
            let found = database.workflow_run(record.id).await.expect("the store itself never fails");
            let Some(found) = found else {
                result.broken.push(format!("run {} has no steps: {record:?}", record.id));
                continue;
            };
            if !record.state.is_over() {
                result.broken.push(format!("run {} never ended", record.id));
                continue;
            }
            let again = resumed.get(&record.id);
            match found.resumed_of {
                Some(of) => {
                    result.resumed += 1;
                    let before = database.workflow_run(of).await.expect("the store itself never fails");
                    let before = before.expect("nothing is pruned");
                    keeps(&world.evidence(), &before, &found, again, &mut result);
                }
                None if again.is_some() => result.broken.push(format!("run {} resumes nothing", record.id)),
                None => {}
            }
            check(&world.evidence(), &found, &mut result);
            depended(database, &found, &mut result).await;
            decided(&found, &mut result);
        }
    }
    if result.runs - result.resumed != RUNS as usize {
        result.broken.push(format!("{} of {RUNS} workflow runs", result.runs - result.resumed));
    }
    once(&world.evidence(), &mut result);
    let evidence = world.evidence();
    result
        .broken
        .extend(evidence.broken.iter().map(|found| format!("{}: {}", found.promise, found.evidence)));
    result
}

/// W13: a step that asks people ended as the stored decision says; without one it has failed by its timeout.
fn decided(found: &WorkflowRunSteps, result: &mut WorkflowRuns) {
    for (definition, step) in found.definition.steps.iter().zip(&found.steps) {
        let asks = matches!(definition.action, Action::Approval { .. });
        if !asks || found.kept.contains(&step.row.step) {
            continue;
        }
        let decision = found.decisions.get(&step.row.step);
        result.decided += usize::from(decision.is_some());
        let fits = match step.row.state {
            StepState::Succeeded => decision.is_some_and(|decision| decision.approved),
            // A decision can come with the timeout.
            StepState::Failed => decision.is_none_or(|decision| !decision.approved) || is_overdue(step),
            _ => true,
        };
        if !fits {
            let (state, run) = (step.row.state, found.run.id);
            result
                .broken
                .push(format!("W13: step {} of run {run} is {state} by {decision:?}", definition.name));
        }
    }
}

fn is_overdue(step: &store::Step) -> bool {
    step.message.as_deref().is_some_and(|message| message.contains("in time"))
}

/// W14: a step that depends on another workflow succeeded by the newest run of it, and soon after that run had ended.
async fn depended(database: &Database, found: &WorkflowRunSteps, result: &mut WorkflowRuns) {
    for (definition, step) in found.definition.steps.iter().zip(&found.steps) {
        let Action::Depends { job, .. } = definition.action else { continue };
        // A kept step looked in another run.
        if found.kept.contains(&step.row.step) {
            continue;
        }
        let Some((opened, ended)) = step.opened_at.zip(step.ended_at) else { continue };
        let place = format!("W14: step {} of run {}", definition.name, found.run.id);
        let others = runs_before(database, JobId(job), ended).await;
        match step.row.state {
            StepState::Succeeded => {
                let output = database.step_output(found.run.id, step.row.step).await;
                let output = output.expect("the store itself never fails").unwrap_or_default();
                let Some(met) = output["runs"][0].as_i64() else {
                    result.broken.push(format!("{place} succeeded by no run: {output}"));
                    continue;
                };
                result.depended += 1;
                let met = database.workflow_run(RunId(met)).await.expect("the store itself never fails");
                let Some(met) = met.filter(|run| run.run.job == JobId(job)) else {
                    result.broken.push(format!("{place} succeeded by a run of another job: {output}"));
                    continue;
                };
                let end = met.run.end.as_ref().filter(|end| end.outcome == RunOutcome::Succeeded);
                let newest = others.iter().map(order_of).max();
                if end.is_none() || newest > Some(order_of(&met)) {
                    let newest = others.iter().max_by_key(|run| order_of(run)).map(|run| run.run.id);
                    result.broken.push(format!("{place} succeeded by run {}, not by {newest:?}", met.run.id));
                }
                let since = end.map_or(opened, |end| end.at.max(opened));
                if ended.duration_since(since) > LATE {
                    result
                        .broken
                        .push(format!("{place} succeeded {:?} too late", ended.duration_since(since)));
                }
            }
            StepState::Failed => {
                // It waited until its timeout: then no run had met it for long before.
                let newest = others.iter().max_by_key(|run| order_of(run));
                let end = newest.and_then(|run| run.run.end.as_ref());
                let end = end.filter(|end| end.outcome == RunOutcome::Succeeded);
                if let Some(end) = end
                    && ended.duration_since(end.at.max(opened)) > LATE
                {
                    result.broken.push(format!("{place} failed although {newest:?} had succeeded"));
                }
            }
            _ => {}
        }
    }
}

/// Time within which a step notices a run, with faults one after the other. Dependencies time out after a minute or more.
const LATE: Duration = Duration::from_secs(45);

/// Runs are ordered by their scheduled times, then by their ids: a resumed run has the time of the run before.
fn order_of(run: &WorkflowRunSteps) -> (Timestamp, RunId) {
    (run.run.scheduled_at, run.run.id)
}

/// Workflow runs of a job that had certainly begun before a time. Clocks of nodes differ by less than a second.
async fn runs_before(database: &Database, job: JobId, by: Timestamp) -> Vec<WorkflowRunSteps> {
    let mut found = Vec::new();
    for record in all_runs(database, job).await {
        let run = database.workflow_run(record.id).await.expect("the store itself never fails");
        found.extend(run.filter(|run| run.run.begun_at + Duration::from_secs(1) < by));
    }
    found
}

fn name_of(found: &WorkflowRunSteps, step: StepNo) -> String {
    found.definition.steps[step.0 as usize].name.clone()
}

fn states_of(found: &WorkflowRunSteps) -> BTreeMap<String, StepState> {
    found.steps.iter().map(|step| (name_of(found, step.row.step), step.row.state)).collect()
}

/// W8: a resumed run keeps what the reference keeps, and sends nothing of it again.
fn keeps(
    evidence: &Evidence,
    before: &WorkflowRunSteps,
    found: &WorkflowRunSteps,
    again: Option<&BTreeSet<String>>,
    result: &mut WorkflowRuns,
) {
    let run = found.run.id;
    let nothing = BTreeSet::new();
    let again = again.unwrap_or(&nothing);
    let expected = reference::kept(&before.definition, &states_of(before), &found.definition, again);
    let kept: BTreeSet<String> = found.kept.iter().map(|step| name_of(found, *step)).collect();
    if kept != expected {
        result
            .broken
            .push(format!("W8: run {run} keeps {kept:?} of run {}, not {expected:?}", before.run.id));
    }
    for step in &found.kept {
        if first_arrival(evidence, run, step.0 as usize).is_some() {
            result.broken.push(format!("W8: run {run} sent {} again", name_of(found, *step)));
        }
    }
}

/// The steps of a run ended as the reference says, given how those ended that ran; and none began before what it needs.
fn check(evidence: &Evidence, found: &WorkflowRunSteps, result: &mut WorkflowRuns) {
    let states = states_of(found);
    let kept: BTreeMap<String, serde_json::Value> =
        found.kept.iter().map(|step| (name_of(found, *step), json!({}))).collect();
    let mut reference = Reference::resume(found.definition.clone(), kept.clone());
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
        let Some(began) = first_arrival(evidence, run, number) else {
            let runs_job = matches!(step.action, Action::Job { .. });
            if runs_job && states[&step.name] == StepState::Succeeded && !kept.contains_key(&step.name) {
                result.broken.push(format!("W8: run {run} never sent {}, which succeeded", step.name));
            }
            continue;
        };
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
