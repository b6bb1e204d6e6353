//! Workflow runs: every step once, in order, whatever is cut or told twice.

use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

use cron::Schedule;
use engine::policy::{Backoff, Overlap, Retry};
use engine::{
    Advance, Change, Control, JobId, JobSpec, Moved, NewJob, Order, Origin, Outcome, Retention, Run, RunId,
    RunState, Store as _, StoreError, Trigger, Verdict, WorkflowEvent, WorkflowId,
};
use serde_json::json;
use timer::Timestamp;
use workflow::definition::{Action, Branch, Need, OnError, Param, Phase, Step, Workflow};
use workflow::{RunOutcome, StepState};

use super::Fresh;
use super::bench::{Bench, HOUR, SECOND, Simple, failed, lost, ok};
use super::crashes::cut_everywhere;
use crate::database::transaction;
use crate::session::{Session, SessionError};
use crate::workflows::prune::prune;
use crate::{Decision, JobFilter, RunFilter, WorkflowGrid};

/// A workflow on a bench, with one job that all its steps run.
pub(super) struct Flow {
    pub(super) bench: Bench,
    pub(super) workflow: JobId,
    pub(super) run: RunId,
}

pub(super) fn job_step(name: &str, needs: &[&str], job: JobId) -> Step {
    Step::new(name, needs, Action::Job { job: job.0, param: Param::Own })
}

impl Flow {
    /// Opens a run of a workflow with the steps that `steps` makes of a job.
    pub(super) async fn open(fresh: Fresh, define: impl FnOnce(JobId) -> Workflow) -> Flow {
        let bench = Bench::new(fresh).await;
        let job = bench.create(|_| {}).await;
        let definition = define(job);
        Flow::open_on(bench, definition, None).await.unwrap()
    }

    pub(super) async fn open_on(
        bench: Bench,
        definition: Workflow,
        param: Option<&str>,
    ) -> Result<Flow, StoreError> {
        let id = bench.store.add_workflow(&definition, "ada").await.unwrap();
        let workflow = bench.create(|spec| spec.workflow = Some(id)).await;
        Flow::begin(bench, workflow, param).await
    }

    /// Triggers a workflow, and opens its run.
    pub(super) async fn begin(
        bench: Bench,
        workflow: JobId,
        param: Option<&str>,
    ) -> Result<Flow, StoreError> {
        let trigger =
            Trigger { key: 1, at: Some(bench.now), param: param.map(str::to_owned), address: None, by: None };
        let run = bench.store.trigger(workflow, &trigger).await.unwrap();
        let orders = bench.claim_waiting_at(bench.now).await.orders;
        assert_eq!(orders.iter().map(|order| order.run.id).collect::<Vec<_>>(), [run]);
        let moved = bench.store.open_workflow(bench.now, &orders[0].run, &orders[0].job).await?;
        assert_eq!(moved, Moved::Done(orders[0].run.version + 1));
        Ok(Flow { bench, workflow, run })
    }

    pub(super) async fn advance(&self) -> Advance {
        self.advance_at(self.bench.now).await
    }

    /// Applies all events.
    pub(super) async fn advance_at(&self, now: Timestamp) -> Advance {
        let mut all = Advance::default();
        loop {
            let planner = Simple { now };
            let step = self.bench.store.advance_workflows(&self.bench.node, now, 10, &planner).await.unwrap();
            all.orders.extend(step.orders);
            all.cancelled.extend(step.cancelled);
            all.ended.extend(step.ended);
            all.waiting |= step.waiting;
            if !step.more {
                return all;
            }
        }
    }

    /// Names of the steps that these runs belong to.
    pub(super) async fn names(&self, orders: &[Order]) -> Vec<String> {
        let found = self.bench.store.workflow_run(self.run).await.unwrap().unwrap();
        let name = |order: &Order| match order.run.origin {
            Origin::Step { of, step } if of == self.run => found.definition.steps[step as usize].name.clone(),
            other => panic!("{other:?} is no step of run {}", self.run),
        };
        orders.iter().map(name).collect()
    }

    pub(super) async fn states(&self) -> BTreeMap<String, StepState> {
        let found = self.bench.store.workflow_run(self.run).await.unwrap().unwrap();
        let state = |step: &crate::Step| {
            (found.definition.steps[step.row.step.0 as usize].name.clone(), step.row.state)
        };
        found.steps.iter().map(state).collect()
    }

    pub(super) async fn end(&self, run: &Run, outcome: Outcome) -> Advance {
        assert_eq!(self.bench.end(run.id, outcome).await, Verdict::Applied);
        self.advance().await
    }

    /// Checks that the run has ended, and completes it.
    pub(super) async fn complete(&self, advance: &Advance, expected: RunState) {
        let [(run, outcome)] = &advance.ended[..] else { panic!("{advance:?}") };
        assert_eq!(*run, self.run);
        assert_eq!(self.bench.end(self.run, outcome.clone()).await, Verdict::Applied);
        assert_eq!(self.bench.records(self.workflow).await.pop().unwrap().state, expected);
        assert_eq!(self.bench.open(self.run).await, None);
    }
}

pub(super) fn diamond(job: JobId) -> Workflow {
    let steps = vec![
        job_step("load", &[], job),
        job_step("left", &["load"], job),
        job_step("right", &["load"], job),
        job_step("report", &["left", "right"], job),
    ];
    Workflow { steps, ..Workflow::default() }
}

pub async fn steps_follow_one_another_and_a_join_waits_for_all(fresh: Fresh) {
    let flow = Flow::open(fresh, diamond).await;
    let open = flow.bench.open(flow.run).await.unwrap();
    assert_eq!((open.state, open.node), (RunState::Running, None));
    let first = flow.advance().await;
    assert_eq!(flow.names(&first.orders).await, ["load"]);
    let load = &first.orders[0].run;
    assert_eq!((load.state, load.node.as_ref()), (RunState::Claimed, Some(&flow.bench.node)));
    assert!(flow.advance().await.orders.is_empty(), "nothing has happened since");

    let second = flow.end(load, ok()).await;
    assert_eq!(flow.names(&second.orders).await, ["left", "right"]);
    assert_eq!(flow.bench.end(load.id, ok()).await, Verdict::Duplicate, "a second report");
    assert!(flow.advance().await.orders.is_empty());
    let (left, right) = (&second.orders[0].run, &second.orders[1].run);
    assert!(flow.end(left, ok()).await.orders.is_empty(), "the join waits");
    let third = flow.end(right, ok()).await;
    assert_eq!(flow.names(&third.orders).await, ["report"]);
    let last = flow.end(&third.orders[0].run, ok()).await;
    flow.complete(&last, RunState::Succeeded).await;
    assert!(flow.states().await.values().all(|state| *state == StepState::Succeeded));
    assert!(!flow.bench.store.tell_workflow(flow.run, WorkflowEvent::Pause).await.unwrap(), "it is over");
}

pub async fn a_grid_has_the_states_of_the_last_runs(fresh: Fresh) {
    let flow = Flow::open(fresh, diamond).await;
    let first = flow.advance().await;
    flow.end(&first.orders[0].run, failed()).await;
    let filter = RunFilter { job: Some(flow.workflow), ..RunFilter::default() };
    let store = &flow.bench.store;
    let grid = store.workflow_grid(&filter, None, 30).await.unwrap();
    assert_eq!(grid.steps, ["load", "left", "right", "report"]);
    let [run] = &grid.runs[..] else { panic!("{grid:?}") };
    use StepState::{Failed, Unreached};
    assert_eq!(run.steps, [Some(Failed), Some(Unreached), Some(Unreached), Some(Unreached)]);
    assert_eq!((run.run.id, run.state, grid.next), (flow.run, RunState::Running, None));
    let older = store.workflow_grid(&filter, Some(flow.run), 30).await.unwrap();
    assert_eq!(older, WorkflowGrid::default());

    let found = store.workflow_run(flow.run).await.unwrap().unwrap();
    let runs = store.step_runs(&found.steps[0], &|_| false, 100).await.unwrap();
    assert_eq!(runs.iter().map(|run| run.id).collect::<Vec<_>>(), [first.orders[0].run.id]);
    assert_eq!(store.step_runs(&found.steps[1], &|_| false, 100).await.unwrap(), [], "it never had a run");

    let workflows = async |workflow| {
        let filter = JobFilter { workflow: Some(workflow), ..JobFilter::default() };
        store.job_ids(&filter, None, 10).await.unwrap()
    };
    assert_eq!(workflows(true).await, [flow.workflow]);
    assert_eq!(workflows(false).await.len(), 1);
}

pub async fn a_step_gets_the_outputs_and_inputs_that_it_names(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let job = bench.create(|_| {}).await;
    let mut check = job_step("check", &["load"], job);
    let text = "rows=${{ steps.load.output.rows }} for ${{ inputs.shop }} on ${{ run.date }}";
    check.action = Action::Job { job: job.0, param: Param::Text(text.into()) };
    let mut report = job_step("report", &[], job);
    report.needs = vec![Need { step: "check".into(), branch: Branch::If("steps.check.output.ok".into()) }];
    let mut apologise = job_step("apologise", &[], job);
    apologise.needs = vec![Need { step: "check".into(), branch: Branch::Else }];
    let input = json!({ "type": "text" });
    let definition = Workflow {
        inputs: BTreeMap::from([("shop".to_owned(), serde_json::from_value(input).unwrap())]),
        steps: vec![job_step("load", &[], job), check, report, apologise],
        output: json!({ "rows": "${{ steps.load.output.rows }}" }),
        ..Workflow::default()
    };
    let missing = Flow::open_on(bench.clone(), definition.clone(), None).await.err().unwrap();
    assert!(missing.to_string().contains("`shop` is missing"), "{missing}");
    let waiting = bench.store.asked_to_cancel(&bench.node, None, 10).await.unwrap();
    assert_eq!(waiting, []);

    let flow = Flow::open_on(bench, definition, Some(r#"{"shop": "north"}"#)).await.unwrap();
    let load = flow.advance().await.orders;
    let check = flow.end(&load[0].run, Outcome::Succeeded(r#"{"rows": 5}"#.into())).await.orders;
    let param = check[0].run.param.clone().unwrap();
    assert!(param.starts_with("rows=5 for north on 20"), "{param}");
    let next = flow.end(&check[0].run, Outcome::Succeeded(r#"{"ok": false}"#.into())).await.orders;
    assert_eq!(flow.names(&next).await, ["apologise"]);
    let last = flow.end(&next[0].run, ok()).await;
    assert_eq!(last.ended[0].1, Outcome::Succeeded(r#"{"rows":5}"#.into()));
    flow.complete(&last, RunState::Succeeded).await;
    assert_eq!(flow.states().await["report"], StepState::Skipped);
}

pub async fn a_failed_step_stops_the_run_and_its_handlers_follow(fresh: Fresh) {
    let flow = Flow::open(fresh, |job| {
        let mut definition = diamond(job);
        definition.steps.push(Step { phase: Phase::OnFailure, ..job_step("tell", &[], job) });
        definition.steps.push(Step { phase: Phase::Finally, ..job_step("clean", &[], job) });
        definition
    })
    .await;
    let load = flow.advance().await.orders;
    let middle = flow.end(&load[0].run, ok()).await.orders;
    assert!(flow.end(&middle[0].run, failed()).await.orders.is_empty(), "the other branch still runs");
    let tell = flow.end(&middle[1].run, ok()).await.orders;
    assert_eq!(flow.names(&tell).await, ["tell"]);
    let clean = flow.end(&tell[0].run, ok()).await.orders;
    assert_eq!(flow.names(&clean).await, ["clean"]);
    let last = flow.end(&clean[0].run, ok()).await;
    flow.complete(&last, RunState::Failed).await;
    let states = flow.states().await;
    assert_eq!((states["left"], states["report"]), (StepState::Failed, StepState::Unreached));
    let message = flow.bench.records(flow.workflow).await.pop().unwrap().message.unwrap();
    assert!(!message.is_empty());
}

pub async fn a_cancelled_workflow_ends_its_steps_wherever_they_are(fresh: Fresh) {
    let flow = Flow::open(fresh, |job| {
        let steps = vec![
            job_step("waits", &[], job),
            job_step("claimed", &[], job),
            job_step("runs", &[], job),
            job_step("later", &["runs"], job),
        ];
        Workflow { steps, ..Workflow::default() }
    })
    .await;
    let orders = flow.advance().await.orders;
    flow.bench.accept(&orders[2].run).await;
    let back = engine::To::Waiting { due_at: flow.bench.now + HOUR };
    let moved =
        engine::Move { run: orders[0].run.id, version: orders[0].run.version, to: back, trouble: None };
    assert_eq!(flow.bench.store.move_runs(&[moved]).await.unwrap(), [Moved::Done(2)]);

    assert!(flow.bench.store.tell_workflow(flow.run, WorkflowEvent::Cancel).await.unwrap());
    let advance = flow.advance().await;
    let to_end: Vec<RunId> = advance.cancelled.iter().map(|order| order.run.id).collect();
    assert_eq!((to_end, advance.ended.len()), (vec![orders[2].run.id], 0));
    assert_eq!(flow.states().await["waits"], StepState::Cancelled);
    let asked = flow.bench.store.asked_to_cancel(&flow.bench.node, None, 10).await.unwrap();
    assert_eq!(asked.iter().map(|run| run.id).collect::<Vec<_>>(), [orders[1].run.id]);
    let answer = engine::CancelAnswer { run: asked[0].id, version: asked[0].version, sent: None };
    flow.bench.store.answer_cancel(&[answer], &Simple { now: flow.bench.now }).await.unwrap();
    assert!(flow.advance().await.ended.is_empty(), "one still runs");
    let last = flow.end(&orders[2].run, failed()).await;
    assert!(matches!(last.ended[0].1, Outcome::Cancelled(_)), "{last:?}");
    let mut states = flow.states().await;
    assert_eq!(states.remove("later"), Some(StepState::Unreached));
    assert!(states.values().all(|state| *state == StepState::Cancelled), "{states:?}");
}

pub async fn a_paused_workflow_opens_nothing_until_it_goes_on(fresh: Fresh) {
    let flow = Flow::open(fresh, diamond).await;
    let load = flow.advance().await.orders;
    assert!(flow.bench.store.tell_workflow(flow.run, WorkflowEvent::Pause).await.unwrap());
    assert!(flow.end(&load[0].run, ok()).await.orders.is_empty());
    assert_eq!(flow.states().await["left"], StepState::Held);
    assert!(flow.bench.store.tell_workflow(flow.run, WorkflowEvent::Continue).await.unwrap());
    let middle = flow.advance().await.orders;
    assert_eq!(flow.names(&middle).await, ["left", "right"]);
}

pub async fn waits_approvals_and_timeouts_end_in_time(fresh: Fresh) {
    let flow = Flow::open(fresh, |job| {
        let approval = |ask: &str, timeout| Action::Approval {
            ask: ask.into(),
            approvers: vec![],
            by_starter: true,
            timeout,
        };
        let mut slow = job_step("slow", &[], job);
        slow.timeout = Some(SECOND * 20);
        slow.allow_failure = true;
        let mut ignored = Step::new("ignored", &[], approval("nobody answers", Some(SECOND * 10)));
        ignored.allow_failure = true;
        let steps = vec![
            Step::new("pause", &[], Action::Wait { duration: SECOND * 5 }),
            ignored,
            slow,
            Step::new("sign", &[], approval("pay the bills?", None)),
        ];
        Workflow { steps, timeout: Some(HOUR), ..Workflow::default() }
    })
    .await;
    let (bench, now) = (&flow.bench, flow.bench.now);
    let slow = flow.advance().await.orders;
    assert_eq!(flow.names(&slow).await, ["slow"]);
    let check = async |at: Duration| {
        let due = bench.open(flow.run).await.unwrap().check_at;
        assert!(due <= now + at, "the next check is at {due}");
        assert!(bench.store.tell_workflow(flow.run, WorkflowEvent::Check).await.unwrap());
        flow.advance_at(now + at).await
    };
    check(SECOND * 5).await;
    assert_eq!(flow.states().await["pause"], StepState::Succeeded);
    check(SECOND * 10).await;
    assert_eq!(flow.states().await["ignored"], StepState::Failed);
    check(SECOND * 20).await;
    assert_eq!(flow.states().await["slow"], StepState::Failed);
    assert_eq!(bench.open(slow[0].run.id).await.unwrap().state, RunState::Cancelling);

    let decide = async |approved, user: &str| {
        let decision = Decision { approved, user: user.into(), remark: "fine".into() };
        bench.store.decide_step(flow.run, "sign", &decision).await
    };
    let wrong = Decision { approved: true, user: "eve".into(), remark: String::new() };
    assert!(matches!(bench.store.decide_step(flow.run, "slow", &wrong).await, Err(StoreError::Conflict(_))));
    assert!(matches!(bench.store.decide_step(flow.run, "none", &wrong).await, Err(StoreError::Invalid(_))));
    decide(true, "ada").await.unwrap();
    decide(true, "ada").await.unwrap();
    let other = decide(false, "bob").await.unwrap_err();
    assert!(other.to_string().contains("approved by ada already"), "{other}");
    let last = flow.advance().await;
    flow.complete(&last, RunState::Succeeded).await;
}

pub async fn a_workflow_that_takes_too_long_is_timed_out(fresh: Fresh) {
    let flow = Flow::open(fresh, |job| Workflow { timeout: Some(SECOND * 30), ..diamond(job) }).await;
    let load = flow.advance().await.orders;
    flow.bench.accept(&load[0].run).await;
    flow.bench.store.tell_workflow(flow.run, WorkflowEvent::Check).await.unwrap();
    assert!(flow.advance_at(flow.bench.now + SECOND * 29).await.cancelled.is_empty());
    flow.bench.store.tell_workflow(flow.run, WorkflowEvent::Check).await.unwrap();
    let advance = flow.advance_at(flow.bench.now + SECOND * 30).await;
    assert_eq!(advance.cancelled.len(), 1);
    let last = flow.end(&load[0].run, failed()).await;
    flow.complete(&last, RunState::TimedOut).await;
}

pub async fn a_step_that_is_a_workflow_ends_with_it(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let job = bench.create(|_| {}).await;
    let inner = Workflow {
        steps: vec![job_step("work", &[], job)],
        output: json!({ "seen": "${{ steps.work.output.rows }}" }),
        ..Workflow::default()
    };
    let inner = bench.store.add_workflow(&inner, "ada").await.unwrap();
    let inner = bench.create(|spec| spec.workflow = Some(inner)).await;
    let mut after = job_step("after", &["inner"], job);
    after.action = Action::Job { job: job.0, param: Param::Text("${{ steps.inner.output.seen }}".into()) };
    let call = Action::Workflow { job: inner.0, inputs: BTreeMap::new() };
    let steps = vec![Step::new("inner", &[], call), after];
    let flow = Flow::open_on(bench, Workflow { steps, ..Workflow::default() }, None).await.unwrap();
    let sub = flow.advance().await.orders.remove(0);
    assert_eq!((sub.run.job, sub.run.depth), (inner, 1));
    flow.bench.store.open_workflow(flow.bench.now, &sub.run, &sub.job).await.unwrap();
    let work = flow.advance().await.orders.remove(0);
    let ended = flow.end(&work.run, Outcome::Succeeded(r#"{"rows": 7}"#.into())).await.ended;
    assert_eq!(ended, [(sub.run.id, Outcome::Succeeded(r#"{"seen":7}"#.into()))]);
    let after = flow.end(&sub.run, ended[0].1.clone()).await.orders;
    assert_eq!(after[0].run.param.as_deref(), Some("7"));
    let last = flow.end(&after[0].run, ok()).await;
    flow.complete(&last, RunState::Succeeded).await;
}

pub async fn a_step_of_a_deleted_job_fails_and_an_exclusive_one_waits(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let one = bench.create(|spec| spec.overlap = Overlap::Wait).await;
    let gone = bench.create(|_| {}).await;
    bench.control(gone, Control::Delete).await;
    let steps = vec![job_step("first", &[], one), job_step("second", &[], one), job_step("gone", &[], gone)];
    let definition = Workflow { steps, on_error: OnError::Continue, ..Workflow::default() };
    let flow = Flow::open_on(bench, definition, None).await.unwrap();
    let advance = flow.advance().await;
    assert!(advance.waiting && advance.orders.is_empty());
    assert_eq!(flow.states().await["gone"], StepState::Failed);
    let first = flow.bench.claim_waiting_at(flow.bench.now).await.orders;
    assert_eq!(flow.names(&first).await, ["first"]);
    assert!(flow.end(&first[0].run, ok()).await.ended.is_empty());
    let second = flow.bench.claim_waiting_at(flow.bench.now).await.orders;
    assert_eq!(flow.names(&second).await, ["second"]);
    let last = flow.end(&second[0].run, ok()).await;
    flow.complete(&last, RunState::Failed).await;
}

pub async fn a_step_that_was_given_up_and_succeeds_late_goes_on(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let retry = Retry { count: 1, backoff: Backoff::Fixed { delay: HOUR } };
    let job = bench.create(|spec| spec.retry = retry).await;
    let flow = Flow::open_on(bench, diamond(job), None).await.unwrap();
    let load = flow.advance().await.orders;
    assert!(flow.end(&load[0].run, lost()).await.orders.is_empty(), "its retry is not due");
    assert_eq!(flow.bench.end(load[0].run.id, ok()).await, Verdict::Late);
    let next = flow.advance().await.orders;
    assert_eq!(flow.names(&next).await, ["left", "right"], "its success takes the retry back");
}

/// Goes on until this many runs have opened or ended. A server may notice a lost connection late, and until then the rows
/// stay locked.
pub(super) async fn all<F>(mut found: Advance, count: usize, work: impl Fn() -> F) -> Advance
where
    F: Future<Output = Result<Advance, StoreError>>,
{
    let deadline = std::time::Instant::now() + SECOND * 30;
    while found.orders.len() + found.ended.len() < count {
        assert!(std::time::Instant::now() < deadline, "the locks of a cut connection stay");
        let more = work().await.unwrap();
        found.orders.extend(more.orders);
        found.ended.extend(more.ended);
        tokio::task::yield_now().await;
    }
    assert_eq!(found.orders.len() + found.ended.len(), count);
    found
}

pub async fn a_workflow_cut_anywhere_goes_on_as_if_nothing_had_happened(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let job = bench.create(|_| {}).await;
    let id = bench.store.add_workflow(&diamond(job), "ada").await.unwrap();
    let workflow = bench.create(|spec| spec.workflow = Some(id)).await;
    let run = bench.trigger(workflow, 1).await;
    let order = bench.claim_waiting_at(bench.now).await.orders.remove(0);
    let (store, now, planner) = (&bench.store, bench.now, Simple { now: bench.now });
    let moved = cut_everywhere(&bench, || store.open_workflow(now, &order.run, &order.job)).await;
    assert_eq!(moved, Moved::Done(order.run.version + 1));
    let again = store.open_workflow(now, &order.run, &order.job).await.unwrap();
    assert_eq!(again, Moved::Stale);

    let advance = || store.advance_workflows(&bench.node, now, 10, &planner);
    let load = all(cut_everywhere(&bench, advance).await, 1, advance).await.orders;
    let ending = [engine::Ending { run: load[0].run.id, outcome: ok(), version: None, address: None }];
    cut_everywhere(&bench, || store.complete(now, &ending, &planner)).await;
    let middle = all(cut_everywhere(&bench, advance).await, 2, advance).await.orders;
    for order in &middle {
        bench.end(order.run.id, ok()).await;
    }
    let report = all(cut_everywhere(&bench, advance).await, 1, advance).await.orders;
    bench.end(report[0].run.id, ok()).await;
    let ended = all(cut_everywhere(&bench, advance).await, 1, advance).await.ended;
    assert_eq!(ended.iter().map(|(run, _)| *run).collect::<Vec<_>>(), [run]);

    // The node died before it completed the run: a check finds that.
    assert!(store.tell_workflow(run, WorkflowEvent::Check).await.unwrap());
    assert_eq!(advance().await.unwrap().ended, ended);
    let found = store.workflow_run(run).await.unwrap().unwrap();
    assert_eq!(found.run.end.unwrap().outcome, RunOutcome::Succeeded);
}

pub async fn a_workflow_keeps_its_definition_and_its_schedule_is_hidden_from_java_admins(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let job = bench.create(|_| {}).await;
    let first = bench.store.add_workflow(&diamond(job), "ada").await.unwrap();
    assert_eq!(bench.store.add_workflow(&diamond(job), "bob").await.unwrap(), first, "an equal one");
    let spec = JobSpec { workflow: Some(first), ..bench.hourly() };
    let workflow = bench.start(&spec).await;
    let stored = bench.store.job(workflow).await.unwrap().unwrap();
    assert_eq!(
        (&stored.spec.schedule, stored.spec.workflow, stored.enabled),
        (&spec.schedule, Some(first), true)
    );
    let order = bench.fire(workflow).await.remove(0);
    bench.store.open_workflow(bench.now, &order.run, &order.job).await.unwrap();

    let changed = Workflow { steps: vec![job_step("only", &[], job)], ..Workflow::default() };
    let second = bench.store.add_workflow(&changed, "ada").await.unwrap();
    assert_ne!(first, second);
    let cron = cron::Cron::parse("0 0 3 * * ?").unwrap();
    let schedule = Schedule::cron(cron, cron::Zone::utc(), cron::DstRule::QUARTZ);
    let spec = Box::new(JobSpec { workflow: Some(second), schedule: schedule.clone(), ..spec });
    bench.control(workflow, Control::Edit { spec, revision: None }).await;
    let edited = bench.store.job(workflow).await.unwrap().unwrap();
    assert_eq!((edited.spec.schedule, edited.spec.workflow), (schedule, Some(second)));
    let found = bench.store.workflow_run(order.run.id).await.unwrap().unwrap();
    assert_eq!((found.run.workflow, found.steps.len()), (first, 4));
}

pub async fn each_saved_definition_is_a_version(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let (store, job) = (&bench.store, bench.create(|_| {}).await);
    let only = |name: &str| Workflow { steps: vec![job_step(name, &[], job)], ..Workflow::default() };
    let first = store.add_workflow(&only("first"), "ada").await.unwrap();
    let spec = JobSpec { workflow: Some(first), ..bench.hourly() };
    let new = NewJob { remark: "as planned".into(), ..NewJob::stopped(spec.clone()) };
    let added = [Change::Add(Box::new(new))];
    let planner = Simple { now: bench.now };
    let made = store.change_jobs(&added, true, 10, &planner).await.unwrap().results.remove(0).unwrap();
    let put = async |workflow, remark: &str| {
        let spec = Box::new(JobSpec { workflow: Some(workflow), ..spec.clone() });
        let (revision, enabled, tags, remark) = (None, None, Vec::new(), remark.to_owned());
        bench.control(made, Control::Put { spec, revision, enabled, tags, remark }).await;
    };
    let second = store.add_workflow(&only("second"), "bob").await.unwrap();
    put(second, "").await;
    // Neither the same definition again nor another property of the job is a version.
    put(second, "nothing new").await;
    bench.control(made, Control::Start).await;
    assert_eq!(store.add_workflow(&only("first"), "eve").await.unwrap(), first);
    put(first, "back").await;
    let versions = store.workflow_versions(made, first).await.unwrap();
    let shown = |version: &crate::WorkflowVersion| {
        (version.version, version.workflow, version.author.clone(), version.remark.clone())
    };
    let expected = [(3, first, "eve", "back"), (2, second, "bob", ""), (1, first, "ada", "as planned")];
    let expected = expected.map(|(n, id, by, remark)| (n, id, by.to_owned(), remark.to_owned()));
    assert_eq!(versions.iter().map(shown).collect::<Vec<_>>(), expected);
    assert!(versions.iter().all(|version| version.at >= bench.now - HOUR), "{versions:?}");

    // A definition that an older node has saved is listed, and kept by the next change.
    transaction!(store, s => forget_version(s, made, 3)).unwrap();
    let unlisted = store.workflow_versions(made, first).await.unwrap();
    assert_eq!(unlisted.iter().map(|version| version.version).collect::<Vec<_>>(), [3, 2, 1]);
    put(second, "again").await;
    let versions = store.workflow_versions(made, second).await.unwrap();
    let numbers: Vec<_> = versions.iter().map(|version| (version.version, version.workflow)).collect();
    assert_eq!(numbers, [(4, second), (3, first), (2, second), (1, first)]);

    for count in 0..crate::WORKFLOW_VERSIONS {
        put(if count % 2 == 0 { first } else { second }, "").await;
    }
    let versions = store.workflow_versions(made, second).await.unwrap();
    let ends = (versions.len(), versions[0].version, versions.last().map(|oldest| oldest.version));
    assert_eq!(ends, (100, 104, Some(5)), "the oldest are forgotten");

    let long = "x".repeat(513);
    let spec = Box::new(JobSpec { workflow: Some(first), ..spec });
    let control = Control::Put { spec, revision: None, enabled: None, tags: vec![], remark: long };
    let refused = [Change::Control(made, control)];
    let refused = store.change_jobs(&refused, false, 10, &planner).await.unwrap().results.remove(0);
    assert!(matches!(refused, Err(StoreError::Invalid(_))), "{refused:?}");
    bench.control(made, Control::Delete).await;
    assert_eq!(store.workflow_versions(made, second).await.unwrap().len(), 1, "only what the caller knows");
}

async fn forget_version(s: &mut dyn Session, job: JobId, version: i64) -> Result<u64, SessionError> {
    let sql = "DELETE FROM tw_workflow_version WHERE job_id = ? AND version = ?";
    s.execute(sql, &[job.into(), version.into()]).await
}

pub async fn definitions_and_jobs_of_steps_are_pruned_once_nothing_needs_them(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let store = bench.store.clone();
    let step_job = async |name: &str| -> JobId {
        let spec = JobSpec { name: name.to_owned(), schedule: Schedule::Never, ..bench.hourly() };
        store.add_step_jobs(&[(name.to_owned(), spec)]).await.unwrap()[name]
    };
    let (first, shared, last) = (step_job("first").await, step_job("shared").await, step_job("last").await);
    let plain = bench.create(|_| {}).await;
    let save = async |jobs: &[JobId]| {
        let step = |(number, job): (usize, &JobId)| job_step(&format!("step_{number}"), &[], *job);
        let steps = jobs.iter().enumerate().map(step).collect();
        let own: Vec<JobId> = jobs.iter().copied().filter(|job| *job != plain).collect();
        store.add_workflow_of(&Workflow { steps, ..Workflow::default() }, &own, "ada").await
    };
    let used = save(&[first, shared, plain]).await.unwrap();
    let unused = save(&[shared, last]).await.unwrap();
    let never = save(&[shared]).await.unwrap();
    let workflow = bench.create(|spec| spec.workflow = Some(used)).await;
    let other = bench.create(|spec| spec.workflow = Some(unused)).await;
    let flow = Flow::begin(bench, workflow, None).await.unwrap();
    let bench = &flow.bench;
    let left = async |definitions: &[WorkflowId], jobs: &[JobId], why: &str| {
        for id in [used, unused, never] {
            assert_eq!(
                store.workflow(id).await.unwrap().is_some(),
                definitions.contains(&id),
                "{why}: {id:?}"
            );
        }
        let found = store.only_step_jobs(&[first, shared, last, plain]).await.unwrap();
        assert_eq!(found, jobs.iter().copied().collect(), "{why}");
        for job in [first, shared, last] {
            assert_eq!(store.job(job).await.unwrap().is_some(), jobs.contains(&job), "{why}");
        }
    };

    // Definitions that an older program has stored are looked through first.
    transaction!(store, s => unregister(s)).unwrap();
    assert_eq!(transaction!(store, s => prune(s, FAR, 10)).unwrap(), 0);
    left(&[used, unused, never], &[first, shared, last], "not looked through").await;
    assert_eq!(transaction!(store, s => prune(s, Timestamp::from_millis(1), 10)).unwrap(), 0, "too young");
    assert_eq!(transaction!(store, s => prune(s, FAR, 0)).unwrap(), 0, "no room");
    assert_eq!(transaction!(store, s => prune(s, FAR, 10)).unwrap(), 1);
    left(&[used, unused], &[first, shared, last], "the others belong to jobs").await;

    bench.control(other, Control::Delete).await;
    assert_eq!(transaction!(store, s => prune(s, FAR, 10)).unwrap(), 1);
    left(&[used], &[first, shared], "one job of a step was shared").await;
    let refused = save(&[last]).await;
    assert!(matches!(refused, Err(StoreError::Conflict(_))), "{refused:?}");

    let now = save(&[plain]).await.unwrap();
    let spec = store.job(workflow).await.unwrap().unwrap().spec;
    let spec = Box::new(JobSpec { workflow: Some(now), ..spec });
    bench.control(workflow, Control::Edit { spec, revision: None }).await;
    assert_eq!(transaction!(store, s => prune(s, FAR, 10)).unwrap(), 0);
    left(&[used], &[first, shared], "it is an earlier version").await;
    transaction!(store, s => forget_version(s, workflow, 1)).unwrap();
    assert_eq!(transaction!(store, s => prune(s, FAR, 10)).unwrap(), 0);
    left(&[used], &[first, shared], "an open run needs it").await;

    for order in flow.advance().await.orders {
        bench.end(order.run.id, failed()).await;
    }
    for (run, outcome) in flow.advance().await.ended {
        bench.end(run, outcome).await;
    }
    assert!(store.open_runs(&[flow.run]).await.unwrap().is_empty());
    assert_eq!(transaction!(store, s => prune(s, FAR, 10)).unwrap(), 0);
    left(&[used], &[first, shared], "a kept run can be resumed").await;

    let all = Retention { runs_before: FAR, runs_max: None, history_before: FAR };
    cut_everywhere(bench, || store.prune(&all, 100)).await;
    while store.prune(&all, 100).await.unwrap() > 0 {}
    left(&[], &[], "nothing needs them").await;
    assert!(store.workflow(now).await.unwrap().is_some(), "the current one");
    assert!(store.job(plain).await.unwrap().is_some(), "an ordinary job");
}

/// A time after all that tests store.
const FAR: Timestamp = Timestamp::from_millis(4_000_000_000_000);

async fn unregister(s: &mut dyn Session) -> Result<u64, SessionError> {
    s.execute("DELETE FROM tw_workflow_step_job", &[]).await
}
