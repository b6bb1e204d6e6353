//! Steps that depend on runs of other jobs: the newest run decides, and no end is missed.

use std::time::Duration;

use cron::Schedule;
use engine::{Control, Ending, JobId, Origin, Outcome, RunId, Store as _, Trigger, WorkflowEvent};
use serde_json::json;
use workflow::StepState;
use workflow::definition::{Action, DependsNeed, IfFailed, IfMissing, Step, Workflow};

use super::Fresh;
use super::bench::{Bench, HOUR, SECOND, Simple, failed, ok};
use super::crashes::cut_everywhere;
use super::workflows::{Flow, all, job_step};

const PATIENT: (IfMissing, IfFailed) = (IfMissing::Wait, IfFailed::Wait);
const STRICT: (IfMissing, IfFailed) = (IfMissing::Fail, IfFailed::Fail);

fn depends(job: JobId, dates: &str, rules: (IfMissing, IfFailed), timeout: Option<Duration>) -> Action {
    let (if_missing, on_failed) = rules;
    let (dates, need) = (dates.parse().unwrap(), DependsNeed::All);
    Action::Depends { job: job.0, dates, need, if_missing, on_failed, timeout }
}

/// A step that depends on another job, and a step after it.
fn definition(action: Action, job: JobId) -> Workflow {
    let steps = vec![Step::new("source", &[], action), job_step("go", &["source"], job)];
    Workflow { steps, ..Workflow::default() }
}

/// A run of a workflow that depends on a job which only users trigger.
async fn waiting(fresh: Fresh, rules: (IfMissing, IfFailed), timeout: Option<Duration>) -> (Flow, JobId) {
    let bench = Bench::new(fresh).await;
    let (source, job) = (bench.create(|_| {}).await, bench.create(|_| {}).await);
    let definition = definition(depends(source, "same", rules, timeout), job);
    (Flow::open_on(bench, definition, None).await.unwrap(), source)
}

impl Flow {
    /// A run of the job, which has ended like this.
    async fn ran(&self, job: JobId, key: i64, outcome: Outcome) -> RunId {
        let run = self.bench.trigger(job, key).await;
        self.bench.claim_waiting_at(self.bench.now).await;
        self.bench.end(run, outcome).await;
        run
    }

    async fn message(&self) -> String {
        let found = self.bench.store.workflow_run(self.run).await.unwrap().unwrap();
        found.steps[0].message.clone().unwrap_or_default()
    }

    async fn state(&self) -> StepState {
        self.states().await["source"]
    }
}

pub async fn a_step_waits_for_the_newest_run_of_the_date(fresh: Fresh) {
    let (flow, source) = waiting(fresh, PATIENT, None).await;
    assert!(flow.advance().await.orders.is_empty());
    assert_eq!(flow.state().await, StepState::Waiting);
    assert!(flow.message().await.contains("has no run yet"), "{}", flow.message().await);
    // Another job does not wake it.
    let other = flow.bench.create(|_| {}).await;
    flow.ran(other, 1, ok()).await;
    assert!(!flow.bench.store.agenda(false).await.unwrap().has_workflow_events);

    flow.ran(source, 1, failed()).await;
    assert!(flow.advance().await.orders.is_empty());
    assert!(flow.message().await.contains("has failed"), "{}", flow.message().await);
    let run = flow.bench.trigger(source, 2).await;
    flow.bench.claim_waiting_at(flow.bench.now).await;
    flow.bench.store.tell_workflow(flow.run, WorkflowEvent::Check).await.unwrap();
    flow.advance().await;
    assert!(flow.message().await.contains("has not ended"), "{}", flow.message().await);
    flow.bench.end(run, ok()).await;
    let orders = flow.advance().await.orders;
    assert_eq!(flow.names(&orders).await, ["go"]);
    assert_eq!(flow.state().await, StepState::Succeeded);
    let output = flow.bench.store.step_output(flow.run, workflow::StepNo(0)).await.unwrap();
    assert_eq!(output, Some(json!({ "runs": [run.0] })));
    // It has ended, so it looks no more.
    flow.ran(source, 3, failed()).await;
    assert!(!flow.bench.store.agenda(false).await.unwrap().has_workflow_events);
}

pub async fn a_run_that_ended_before_counts_unless_a_newer_one_failed(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let (source, job) = (bench.create(|_| {}).await, bench.create(|_| {}).await);
    let action = depends(source, "same", STRICT, None);
    let first = Flow::open_on(bench.clone(), definition(action.clone(), job), None).await.unwrap();
    first.advance().await;
    assert_eq!(first.state().await, StepState::Failed);
    assert!(first.message().await.contains("has no run"), "{}", first.message().await);

    first.ran(source, 1, ok()).await;
    let second = Flow::open_on(bench.clone(), definition(action.clone(), job), None).await.unwrap();
    assert_eq!(second.advance().await.orders.len(), 1);
    assert_eq!(second.state().await, StepState::Succeeded);

    second.ran(source, 2, failed()).await;
    let third = Flow::open_on(bench, definition(action, job), None).await.unwrap();
    third.advance().await;
    assert_eq!(third.state().await, StepState::Failed);
    assert!(third.message().await.contains("has failed"), "{}", third.message().await);
}

pub async fn a_step_that_waits_too_long_or_for_a_deleted_job_fails(fresh: Fresh) {
    let (flow, source) = waiting(fresh, PATIENT, Some(SECOND * 5)).await;
    flow.advance().await;
    let bench = &flow.bench;
    assert!(bench.open(flow.run).await.unwrap().check_at <= bench.now + SECOND * 5);
    assert!(bench.store.tell_workflow(flow.run, WorkflowEvent::Check).await.unwrap());
    flow.advance_at(bench.now + SECOND * 5).await;
    assert_eq!(flow.state().await, StepState::Failed);
    assert!(flow.message().await.contains("timeout"), "{}", flow.message().await);

    let job = bench.create(|_| {}).await;
    let definition = definition(depends(source, "same", PATIENT, None), job);
    let other = Flow::open_on(bench.clone(), definition, None).await.unwrap();
    other.advance().await;
    bench.control(source, Control::Delete).await;
    assert!(bench.store.tell_workflow(other.run, WorkflowEvent::Check).await.unwrap());
    other.advance().await;
    assert_eq!(other.state().await, StepState::Failed);
    assert!(other.message().await.contains("does not exist any more"), "{}", other.message().await);
}

pub async fn a_missing_run_of_the_schedule_is_started_once(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let schedule = Schedule::fixed_rate(bench.now - HOUR * 5, HOUR).unwrap();
    let source = bench.create(|spec| spec.schedule = schedule).await;
    let job = bench.create(|_| {}).await;
    let action = depends(source, "previous", (IfMissing::Start, IfFailed::Wait), None);
    let mut steps = vec![Step::new("source", &[], action.clone()), Step::new("again", &[], action)];
    steps.push(job_step("go", &["source", "again"], job));
    let flow = Flow::open_on(bench, Workflow { steps, ..Workflow::default() }, None).await.unwrap();
    let advance = flow.advance().await;
    assert!(advance.waiting, "its run waits to be claimed");
    let orders = flow.bench.claim_waiting_at(flow.bench.now).await.orders;
    let [order] = &orders[..] else { panic!("{orders:?}") };
    assert_eq!((order.run.job, order.run.scheduled_at), (source, flow.bench.now - HOUR));
    assert!(matches!(order.run.origin, Origin::Manual { .. }));
    let last = flow.end(&order.run, ok()).await.orders;
    assert_eq!(flow.names(&last).await, ["go"]);
}

pub async fn days_of_a_schedule_need_each_of_its_times(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let schedule = Schedule::fixed_rate(bench.now - HOUR * 24 * 10, HOUR * 12).unwrap();
    let source = bench.create(|spec| spec.schedule = schedule).await;
    let job = bench.create(|_| {}).await;
    let action = depends(source, "-2d..-1d", PATIENT, None);
    let flow = Flow::open_on(bench, definition(action, job), None).await.unwrap();
    flow.advance().await;
    assert!(flow.message().await.contains("0 of 4"), "{}", flow.message().await);
    let stored = flow.bench.store.job(source).await.unwrap().unwrap();
    let begin = flow.bench.now - HOUR * 24 * 4;
    let times = std::iter::successors(stored.spec.next_after(begin), |last| stored.spec.next_after(*last));
    let times: Vec<_> = times.take_while(|at| *at <= flow.bench.now).collect();
    for (key, at) in (1..).zip(&times) {
        let trigger = Trigger { key, at: Some(*at), param: None, address: None, by: None };
        let run = flow.bench.store.trigger(source, &trigger).await.unwrap();
        flow.bench.claim_waiting_at(flow.bench.now).await;
        flow.bench.end(run, ok()).await;
    }
    let orders = flow.advance().await.orders;
    assert_eq!(flow.names(&orders).await, ["go"]);
}

pub async fn a_dependency_cut_anywhere_misses_no_end(fresh: Fresh) {
    let (flow, source) = waiting(fresh, PATIENT, None).await;
    let (bench, planner) = (&flow.bench, Simple { now: flow.bench.now });
    let advance = || bench.store.advance_workflows(&bench.node, bench.now, 10, &planner);
    // It is registered, then it looks.
    cut_everywhere(bench, advance).await;
    let run = bench.trigger(source, 1).await;
    bench.claim_waiting_at(bench.now).await;
    let looked = cut_everywhere(bench, advance).await;
    assert!(looked.orders.is_empty());
    let ending = [Ending { run, outcome: ok(), version: None, address: None }];
    cut_everywhere(bench, || bench.store.complete(bench.now, &ending, &planner)).await;
    let orders = all(cut_everywhere(bench, advance).await, 1, advance).await.orders;
    assert_eq!(flow.names(&orders).await, ["go"]);
}

pub async fn an_end_at_the_same_moment_as_the_look_is_seen(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let (source, job) = (bench.create(|_| {}).await, bench.create(|_| {}).await);
    for key in 1..=20 {
        let action = depends(source, "same", PATIENT, None);
        let run = bench.trigger(source, 2 * key).await;
        bench.claim_waiting_at(bench.now).await;
        let flow = Flow::open_on(bench.clone(), definition(action, job), None).await.unwrap();
        let (_, orders) = tokio::join!(bench.end(run, ok()), async { flow.advance().await.orders });
        let mut orders = orders;
        orders.extend(flow.advance().await.orders);
        assert_eq!(flow.names(&orders).await, ["go"], "at try {key}");
        bench.end(orders[0].run.id, ok()).await;
        let ended = flow.advance().await.ended;
        for (run, outcome) in ended {
            bench.end(run, outcome).await;
        }
    }
}
