//! Resumed workflow runs: what succeeded is kept and the rest runs again, exactly once, whatever is cut or asked twice.

use std::collections::BTreeMap;
use std::time::Duration;

use engine::policy::{Backoff, Retry};
use engine::{Control, JobId, Moved, Order, Origin, Outcome, RunId, RunState, Store as _, StoreError};
use serde_json::json;
use workflow::definition::{Action, Param, Phase, RetryFrom, Step, Workflow};
use workflow::{RunOutcome, StepState};

use super::Fresh;
use super::bench::{Bench, failed, ok};
use super::crashes::cut_everywhere;
use super::workflows::{Flow, diamond, job_step};
use crate::{Decision, Resume, Resumed};

/// A run of a workflow that has ended.
async fn ended(fresh: Fresh, define: impl FnOnce(JobId) -> Workflow, failing: &[&str]) -> Flow {
    let flow = Flow::open(fresh, define).await;
    run_to_end(&flow, failing).await;
    flow
}

/// Ends all steps: those in `failing` fail, the others return their names.
async fn run_to_end(flow: &Flow, failing: &[&str]) -> Vec<String> {
    let mut ran = Vec::new();
    let mut advance = flow.advance().await;
    loop {
        let names = flow.names(&advance.orders).await;
        let mut next = engine::Advance::default();
        for (order, name) in advance.orders.iter().zip(&names) {
            let output = Outcome::Succeeded(json!({ "from": name }).to_string());
            let outcome = if failing.contains(&name.as_str()) { failed() } else { output };
            let more = flow.end(&order.run, outcome).await;
            next.orders.extend(more.orders);
            next.ended.extend(more.ended);
        }
        ran.extend(names);
        if advance.orders.is_empty() {
            let [(run, outcome)] = &advance.ended[..] else { panic!("{advance:?}") };
            assert_eq!(*run, flow.run);
            flow.bench.end(flow.run, outcome.clone()).await;
            return ran;
        }
        advance = next;
    }
}

/// A request. The first keys are those of triggers.
fn asked(key: i64) -> Resume {
    Resume { key: 100 + key, user: "ada".into(), ..Resume::default() }
}

impl Flow {
    async fn resume(&self, asked: &Resume) -> Result<Resumed, StoreError> {
        self.bench.store.resume_workflow(self.run, asked).await
    }

    /// Claims and opens the run that is waiting.
    async fn next(&self) -> Flow {
        let order = self.claim().await;
        let moved = self.bench.store.open_workflow(self.bench.now, &order.run, &order.job).await.unwrap();
        assert_eq!(moved, Moved::Done(order.run.version + 1));
        Flow { bench: self.bench.clone(), workflow: self.workflow, run: order.run.id }
    }

    async fn claim(&self) -> Order {
        let now = self.bench.store.agenda(false).await.unwrap().now;
        let mut orders = self.bench.claim_waiting_at(now).await.orders;
        assert_eq!(orders.len(), 1, "{orders:?}");
        orders.remove(0)
    }
}

fn conflict(result: Result<Resumed, StoreError>, why: &str) {
    match result {
        Err(StoreError::Conflict(message)) if message.contains(why) => {}
        other => panic!("{other:?}, expected a conflict: {why}"),
    }
}

fn with_finally(job: JobId) -> Workflow {
    let mut definition = diamond(job);
    definition.steps.push(Step { phase: Phase::Finally, ..job_step("tidy", &[], job) });
    definition
}

pub async fn a_resumed_run_keeps_what_succeeded_and_runs_the_rest(fresh: Fresh) {
    let flow = ended(
        fresh,
        |job| {
            let mut definition = with_finally(job);
            let text = "${{ steps.left.output.from }} and ${{ steps.right.output.from }} in attempt ${{ run.attempt }}";
            definition.steps[3].action = Action::Job { job: job.0, param: Param::Text(text.into()) };
            definition
        },
        &["left"],
    )
    .await;
    let preview = flow.bench.store.preview_resume(flow.run, &asked(7)).await.unwrap();
    let resumed = flow.resume(&asked(7)).await.unwrap();
    assert_eq!(resumed.kept, ["load", "right"]);
    assert_eq!(resumed.to_run, ["left", "report", "tidy"]);
    assert_eq!(preview, Resumed { run: None, ..resumed.clone() }, "the preview said so, and changed nothing");
    assert_eq!(flow.resume(&asked(7)).await.unwrap(), resumed, "the same key");
    let new = resumed.run.unwrap();
    conflict(flow.resume(&asked(8)).await, &format!("resumed by run {new} already"));
    let before = flow.bench.store.workflow_run(flow.run).await.unwrap().unwrap();
    assert_eq!((before.resumed_of, before.resumed_by), (None, Some(new)));

    let next = flow.next().await;
    assert_eq!(next.run, new);
    conflict(next.resume(&asked(9)).await, "has not ended yet");
    let left = next.advance().await.orders;
    assert_eq!(next.names(&left).await, ["left"]);
    let report = next.end(&left[0].run, Outcome::Succeeded(r#"{"from": "again"}"#.into())).await.orders;
    assert_eq!(report[0].run.param.as_deref(), Some("again and right in attempt 2"));
    let tidy = next.end(&report[0].run, ok()).await.orders;
    let last = next.end(&tidy[0].run, ok()).await;
    next.complete(&last, RunState::Succeeded).await;

    let found = next.bench.store.workflow_run(new).await.unwrap().unwrap();
    assert_eq!(
        (found.run.attempt, found.resumed_of, found.run.scheduled_at),
        (2, Some(flow.run), before.run.scheduled_at)
    );
    let names: Vec<&str> =
        found.kept.iter().map(|step| found.definition.steps[step.0 as usize].name.as_str()).collect();
    assert_eq!(names, ["load", "right"]);
    for step in &found.kept {
        let at = step.0 as usize;
        assert_eq!(
            (found.steps[at].fire, found.steps[at].ended_at),
            (before.steps[at].fire, before.steps[at].ended_at)
        );
    }
    conflict(next.resume(&asked(10)).await, "nothing to run again");
    let again = Resume { again: vec!["right".into()], ..asked(11) };
    assert_eq!(next.resume(&again).await.unwrap().kept, ["load", "left"]);
    assert_eq!(run_to_end(&next.next().await, &[]).await, ["right", "report", "tidy"]);
}

pub async fn a_failed_step_can_be_set_and_an_approval_is_kept(fresh: Fresh) {
    let flow = Flow::open(fresh, |job| {
        let ask =
            Action::Approval { ask: "go on?".into(), approvers: vec![], by_starter: true, timeout: None };
        let mut definition = diamond(job);
        definition.steps[0] = Step::new("load", &[], ask);
        definition
    })
    .await;
    assert!(flow.advance().await.orders.is_empty());
    let decision = Decision { approved: true, user: "bob".into(), remark: "fine".into() };
    flow.bench.store.decide_step(flow.run, "load", &decision).await.unwrap();
    run_to_end(&flow, &["left"]).await;

    let set = |step: &str, key| Resume {
        set: BTreeMap::from([(step.to_owned(), json!({ "from": "hand" }))]),
        ..asked(key)
    };
    conflict(flow.resume(&set("right", 1)).await, "`right` of run");
    let both = Resume { again: vec!["load".into()], ..set("left", 2) };
    assert!(
        matches!(flow.resume(&both).await, Err(StoreError::Invalid(why)) if why.contains("cannot be set"))
    );
    let resumed = flow.resume(&set("left", 3)).await.unwrap();
    assert_eq!((resumed.kept.len(), &resumed.to_run[..]), (3, &["report".to_owned()][..]));
    let next = flow.next().await;
    assert_eq!(run_to_end(&next, &[]).await, ["report"]);
    let found = next.bench.store.workflow_run(next.run).await.unwrap().unwrap();
    assert_eq!(found.run.end.unwrap().outcome, RunOutcome::Succeeded);
    assert_eq!(found.decisions.into_values().collect::<Vec<_>>(), [decision]);
    assert_eq!(found.steps[1].message.as_deref(), Some("its output was set by ada"));
    let output = next.bench.store.step_output(next.run, found.steps[1].row.step).await.unwrap();
    assert_eq!(output, Some(json!({ "from": "hand" })));
}

pub async fn what_cannot_be_resumed_says_why(fresh: Fresh) {
    let flow = ended(fresh, diamond, &["report"]).await;
    let unknown = Resume { again: vec!["gone".into()], ..asked(1) };
    assert!(matches!(flow.resume(&unknown).await, Err(StoreError::Invalid(why)) if why.contains("`gone`")));
    let (bench, store) = (&flow.bench, &flow.bench.store);
    conflict(store.resume_workflow(RunId(99_999), &asked(2)).await, "no workflow run");
    conflict(flow.resume(&Resume { key: 1, ..asked(2) }).await, "the key of the request");

    // A run that was cancelled before it began has no steps: the run before can be resumed again.
    let first = flow.resume(&asked(3)).await.unwrap().run.unwrap();
    assert_eq!(bench.open(first).await.unwrap().origin, Origin::Resume { of: flow.run });
    bench.end(first, Outcome::Cancelled("not yet".into())).await;
    conflict(store.resume_workflow(first, &asked(4)).await, "no workflow run");
    let second = flow.resume(&asked(5)).await.unwrap().run.unwrap();
    assert_ne!(first, second);
    assert_eq!(run_to_end(&flow.next().await, &["report"]).await, ["report"]);

    bench.control(flow.workflow, Control::Delete).await;
    let gone = store.resume_workflow(second, &asked(6)).await;
    assert!(matches!(gone, Err(StoreError::NoSuchJob(_))), "{gone:?}");
}

pub async fn a_step_that_was_changed_meanwhile_runs_again(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let job = bench.create(|_| {}).await;
    let flow = Flow::open_on(bench, diamond(job), None).await.unwrap();
    run_to_end(&flow, &["report"]).await;
    let mut changed = diamond(job);
    changed.steps[1].timeout = Some(Duration::from_secs(60));
    changed.steps.insert(0, job_step("first", &[], job));
    let store = &flow.bench.store;
    let latest = store.add_workflow(&changed, "ada").await.unwrap();
    let spec = store.job(flow.workflow).await.unwrap().unwrap().spec;
    let spec = Box::new(engine::JobSpec { workflow: Some(latest), ..spec });
    flow.bench.control(flow.workflow, Control::Edit { spec, revision: None }).await;

    let same = store.preview_resume(flow.run, &asked(1)).await.unwrap();
    assert_eq!(
        (same.kept, same.to_run),
        (vec!["load".into(), "left".into(), "right".into()], vec!["report".into()])
    );
    let resumed = flow.resume(&Resume { latest: true, ..asked(2) }).await.unwrap();
    assert_eq!(resumed.kept, ["load", "right"]);
    let next = flow.next().await;
    let mut ran = run_to_end(&next, &[]).await;
    ran.sort_unstable();
    assert_eq!(ran, ["first", "left", "report"]);
    let found = store.workflow_run(next.run).await.unwrap().unwrap();
    assert_eq!((found.run.workflow, found.run.end.unwrap().outcome), (latest, RunOutcome::Succeeded));
    let right = found.steps[3].row.step;
    assert_eq!(store.step_output(next.run, right).await.unwrap(), Some(json!({ "from": "right" })));
}

pub async fn a_retry_goes_on_at_the_failed_step_or_from_the_start(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let job = bench.create(|_| {}).await;
    for (retry_from, expected) in [(RetryFrom::Failed, "left"), (RetryFrom::Start, "load")] {
        let definition = Workflow { retry_from, ..diamond(job) };
        let id = bench.store.add_workflow(&definition, "ada").await.unwrap();
        let retry = Retry { count: 1, backoff: Backoff::Fixed { delay: Duration::ZERO } };
        let workflow = bench
            .create(|spec| {
                spec.workflow = Some(id);
                spec.retry = retry;
            })
            .await;
        let flow = Flow::begin(bench.clone(), workflow, None).await.unwrap();
        let load = flow.advance().await.orders;
        let middle = flow.end(&load[0].run, ok()).await.orders;
        flow.end(&middle[1].run, ok()).await;
        let (run, outcome) = flow.end(&middle[0].run, failed()).await.ended.remove(0);
        let ending = [engine::Ending { run, outcome, version: None, address: None }];
        let simple = super::bench::Simple { now: bench.now };
        cut_everywhere(&bench, || bench.store.complete(bench.now, &ending, &simple)).await;
        conflict(flow.resume(&asked(1)).await, "already");
        let next = flow.next().await;
        let open = bench.open(next.run).await.unwrap();
        assert_eq!((open.attempt, open.retry_of), (2, Some(flow.run)));
        let first = next.advance().await.orders;
        assert_eq!(next.names(&first).await, [expected]);
        let found = bench.store.workflow_run(next.run).await.unwrap().unwrap();
        assert_eq!((found.resumed_of, found.run.attempt), (Some(flow.run), 2));
        for order in first {
            flow.bench.end(order.run.id, failed()).await;
        }
        let last = next.advance().await;
        next.complete(&last, RunState::Failed).await;
        assert!(bench.open_of(workflow).await.is_empty(), "it has no retry left");
    }
}

pub async fn a_resumption_cut_anywhere_is_whole_or_none(fresh: Fresh) {
    let flow = ended(fresh, diamond, &["left"]).await;
    let (bench, store) = (&flow.bench, &flow.bench.store);
    let asked = asked(1);
    let resumed = cut_everywhere(bench, || flow.resume(&asked)).await;
    assert_eq!(flow.resume(&asked).await.unwrap(), resumed);
    let order = flow.claim().await;
    assert_eq!(Some(order.run.id), resumed.run);
    let opened = cut_everywhere(bench, || store.open_workflow(bench.now, &order.run, &order.job)).await;
    assert_eq!(opened, Moved::Done(order.run.version + 1));
    let next = Flow { bench: bench.clone(), workflow: flow.workflow, run: order.run.id };
    let planner = super::bench::Simple { now: bench.now };
    let advance = || store.advance_workflows(&bench.node, bench.now, 10, &planner);
    let left = super::workflows::all(cut_everywhere(bench, advance).await, 1, advance).await.orders;
    assert_eq!(next.names(&left).await, ["left"]);
    bench.end(left[0].run.id, ok()).await;
    assert_eq!(run_to_end(&next, &[]).await, ["report"]);
    assert!(next.states().await.values().all(|state| *state == StepState::Succeeded));
}

pub async fn of_resumptions_at_once_one_counts(fresh: Fresh) {
    let flow = ended(fresh, diamond, &["left"]).await;
    let asked: Vec<Resume> = (1..=4).map(asked).collect();
    let results = futures_util::future::join_all(asked.iter().map(|asked| flow.resume(asked))).await;
    let opened: Vec<RunId> =
        results.iter().filter_map(|result| result.as_ref().ok().and_then(|resumed| resumed.run)).collect();
    assert_eq!(opened.len(), 1, "{results:?}");
    for result in results.into_iter().filter(Result::is_err) {
        conflict(result, "already");
    }
    assert_eq!(flow.bench.open_of(flow.workflow).await.len(), 1);
}
