//! Processes that die between any two statements.

use std::future::Future;

use engine::policy::{Backoff, Overlap, Retry};
use engine::{
    CancelAnswer, Change, Claim, Control, Ending, HistoryEntry, Job, JobSpec, Move, NewJob, Run, RunRecord,
    RunState, Slots, Store as _, StoreError, To, Verdict,
};

use super::bench::{Bench, HOUR, SECOND, Simple, failed, ok, shards};
use super::{Fresh, InjectedFault};

/// All visible state of the jobs.
#[derive(Debug, PartialEq)]
struct Seen {
    jobs: Vec<Job>,
    records: Vec<RunRecord>,
    open: Vec<Run>,
    history: Vec<HistoryEntry>,
    alerts: usize,
}

async fn look(bench: &Bench) -> Seen {
    let jobs = bench.store.jobs(None, 1_000).await.unwrap();
    let (mut records, mut open, mut history) = (Vec::new(), Vec::new(), Vec::new());
    for job in &jobs {
        records.extend(bench.records(job.id).await);
        open.extend(bench.open_of(job.id).await);
        history.extend(bench.store.history(job.id, None, 1_000).await.unwrap());
    }
    // A lease of zero length takes nothing away.
    let alerts = bench.store.take_alerts(bench.now, std::time::Duration::ZERO, 1_000).await.unwrap().len();
    Seen { jobs, records, open, history, alerts }
}

/// Cuts the connection after each statement of `work` in turn and checks that nothing has changed. Without a cut it
/// succeeds.
pub(super) async fn cut_everywhere<T, F>(bench: &Bench, work: impl Fn() -> F) -> T
where
    F: Future<Output = Result<T, StoreError>>,
{
    let before = look(bench).await;
    for statements in 0..100 {
        bench.faults.strike(InjectedFault::CutAfter(statements));
        let result = work().await;
        if !bench.faults.calm() {
            assert!(statements > 2, "it has more statements than {statements}");
            return result.unwrap_or_else(|error| panic!("uncut, it must work: {error}"));
        }
        match result {
            Err(StoreError::Unavailable(_)) => {}
            Err(other) => panic!("cut after {statements} statements it says {other}"),
            Ok(_) => panic!("cut after {statements} statements it says it was done"),
        }
        assert_eq!(look(bench).await, before, "cut after {statements} statements");
    }
    panic!("it never ended");
}

/// Claims the runs that are still missing. A server may notice the lost connection late, and until then the rows
/// stay locked.
async fn claim_rest<F>(claim: &mut Claim, runs: usize, work: impl Fn() -> F)
where
    F: Future<Output = Result<Claim, StoreError>>,
{
    let deadline = std::time::Instant::now() + SECOND * 30;
    while claim.orders.len() < runs {
        assert!(std::time::Instant::now() < deadline, "the locks of a cut connection stay");
        let more = work().await.unwrap();
        claim.orders.extend(more.orders);
        claim.replaced.extend(more.replaced);
        tokio::task::yield_now().await;
    }
}

pub async fn a_claim_cut_anywhere_leaves_all_or_nothing(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    for (route, overlap) in
        [(1, Overlap::Allow), (3, Overlap::Allow), (1, Overlap::Replace), (1, Overlap::Skip)]
    {
        bench.start(&JobSpec { route: shards(route), overlap, ..bench.hourly() }).await;
    }
    let at = bench.now + HOUR;
    for order in bench.claim_at(at).await.orders {
        bench.accept(&order.run).await;
    }
    let at = at + HOUR;
    let (other, planner) = (bench.another("second").await, Simple { now: at });
    let work = || other.store.claim_due(&other.node, at, Slots::ALL, 10, &planner);
    let mut claim = cut_everywhere(&bench, work).await;
    claim_rest(&mut claim, 5, work).await;
    assert_eq!((claim.orders.len(), claim.replaced.len()), (5, 1));
}

pub async fn a_claim_of_waiting_runs_cut_anywhere_leaves_all_or_nothing(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let mut jobs = Vec::new();
    for (route, overlap) in [(3, Overlap::Allow), (1, Overlap::Replace), (1, Overlap::Skip)] {
        let job = bench.create(|spec| (spec.route, spec.overlap) = (shards(route), overlap)).await;
        bench.trigger(job, 1).await;
        jobs.push(job);
    }
    for order in bench.claim_waiting_at(bench.now).await.orders {
        bench.accept(&order.run).await;
    }
    for job in jobs {
        bench.trigger(job, 2).await;
    }
    let (other, now, planner) = (bench.another("second").await, bench.now, Simple { now: bench.now });
    let work = || other.store.claim_waiting(&other.node, now, Slots::ALL, 10, &planner);
    let mut claim = cut_everywhere(&bench, work).await;
    claim_rest(&mut claim, 4, work).await;
    assert_eq!((claim.orders.len(), claim.replaced.len()), (4, 1));
}

pub async fn a_move_cut_anywhere_leaves_all_or_nothing(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let jobs = bench.start_many(bench.hourly(), 3, bench.now + HOUR).await;
    let orders = bench.fire(jobs[0]).await;
    let moves: Vec<Move> = orders
        .iter()
        .map(|order| Move {
            run: order.run.id,
            version: order.run.version,
            to: To::Running { address: None, check_at: bench.now, doubt_since: None },
            trouble: None,
        })
        .collect();
    let moved = cut_everywhere(&bench, || bench.store.move_runs(&moves)).await;
    assert_eq!(moved.len(), 3);
    assert!(bench.open_of(jobs[2]).await.iter().all(|run| run.state == RunState::Running));
}

pub async fn an_ending_cut_anywhere_leaves_all_or_nothing(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let child = bench.create(|_| {}).await;
    let plain = JobSpec { children: vec![child], alert: true, ..bench.hourly() };
    let specs = [
        plain.clone(),
        JobSpec { route: shards(2), ..plain.clone() },
        JobSpec { retry: Retry { count: 1, backoff: Backoff::Fixed { delay: SECOND } }, ..plain.clone() },
        JobSpec { overlap: Overlap::Wait, ..plain.clone() },
        JobSpec { schedule: cron::Schedule::fixed_delay(HOUR).unwrap(), ..plain.clone() },
        plain,
    ];
    let mut endings = Vec::new();
    for (spec, outcome) in specs.iter().zip([ok(), ok(), failed(), ok(), ok(), failed()]) {
        let job = bench.start(spec).await;
        for order in bench.fire(job).await {
            let run = bench.accept(&order.run).await;
            endings.push(Ending {
                run: run.id,
                outcome: outcome.clone(),
                version: Some(run.version),
                address: None,
            });
        }
    }
    let planner = Simple { now: bench.now };
    let complete = || bench.store.complete(bench.now, &endings, &planner);
    let verdicts = cut_everywhere(&bench, complete).await;
    assert!(verdicts.iter().all(|verdict| *verdict == Verdict::Applied), "{verdicts:?}");
    let after = look(&bench).await;
    assert_eq!(after.alerts, 1);
    assert_eq!(bench.open_of(child).await.len(), 4);
    assert!(complete().await.unwrap().iter().all(|verdict| *verdict == Verdict::Duplicate));
    assert_eq!(look(&bench).await, after, "once is enough");
}

pub async fn a_control_cut_anywhere_leaves_all_or_nothing(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let planner = Simple { now: bench.now };
    let edited = Box::new(JobSpec { param: "new".into(), key: Some("new".into()), ..bench.hourly() });
    let controls = [Control::Stop, Control::Edit { spec: edited, revision: Some(0) }, Control::Delete];
    for control in controls {
        let mut spec = bench.hourly();
        spec.retry = Retry { count: 1, backoff: Backoff::Fixed { delay: SECOND } };
        let job = bench.store.create_job(&spec).await.unwrap();
        cut_everywhere(&bench, || bench.store.control(job, &Control::Start, 1_000, &planner)).await;
        bench.fire(job).await;
        let failing = bench.run(job).await;
        bench.end(failing.id, failed()).await;
        let controlled = cut_everywhere(&bench, || bench.store.control(job, &control, 1_000, &planner)).await;
        assert_eq!(controlled.cancelling, 1, "{control:?}");
    }
}

pub async fn a_batch_cut_anywhere_leaves_all_or_nothing(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let (store, planner) = (&bench.store, Simple { now: bench.now });
    let mut jobs = Vec::new();
    for _ in 0..4 {
        let job = bench.start(&bench.hourly()).await;
        bench.fire(job).await;
        bench.trigger(job, 1).await;
        jobs.push(job);
    }
    let stopped = bench.create(|spec| spec.schedule = bench.hourly().schedule).await;
    let put = Control::Put {
        spec: Box::new(JobSpec { name: "put".into(), ..bench.hourly() }),
        revision: None,
        enabled: Some(false),
        tags: vec!["a".into()],
        remark: String::new(),
    };
    let edit =
        Control::Edit { spec: Box::new(JobSpec { name: "edited".into(), ..bench.hourly() }), revision: None };
    let changes = [
        Change::Add(Box::new(NewJob {
            enabled: true,
            tags: vec!["b".into()],
            ..NewJob::stopped(bench.hourly())
        })),
        Change::Control(jobs[0], Control::Stop),
        Change::Control(jobs[1], Control::Delete),
        Change::Control(jobs[2], edit),
        Change::Control(jobs[3], put),
        Change::Control(stopped, Control::Start),
    ];
    let done = cut_everywhere(&bench, || store.change_jobs(&changes, false, 100, &planner)).await;
    assert!(done.results.iter().all(Result::is_ok), "{done:?}");
    assert_eq!(done.cancelling.len(), 4);
}

pub async fn an_answer_cut_anywhere_leaves_all_or_nothing(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let planner = Simple { now: bench.now };
    let (one, two) = (bench.start(&bench.hourly()).await, bench.start(&bench.hourly()).await);
    assert_eq!(bench.fire(one).await.len(), 2);
    for job in [one, two] {
        let spec = Box::new(JobSpec { param: "new".into(), ..bench.hourly() });
        assert_eq!(bench.control(job, Control::Edit { spec, revision: None }).await, 1);
    }
    let asked = bench.store.asked_to_cancel(&bench.node, None, 100).await.unwrap();
    let sent = To::Unknown { address: None, check_at: bench.now, doubt_since: None };
    let answers: Vec<CancelAnswer> = asked
        .iter()
        .zip([None, Some(sent)])
        .map(|(run, sent)| CancelAnswer { run: run.id, version: run.version, sent })
        .collect();
    cut_everywhere(&bench, || bench.store.answer_cancel(&answers, &planner)).await;
    assert_eq!(bench.store.cancelling(&[one, two]).await, Ok(vec![]));
    assert_eq!(bench.next_of(one).await, Some(asked[0].scheduled_at));
    assert_eq!(bench.next_of(two).await, Some(asked[1].scheduled_at + HOUR));
}

pub async fn a_claim_with_an_unknown_commit_is_found_by_its_owner(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let job = bench.start(&bench.hourly()).await;
    for (fault, done) in [(InjectedFault::CutBeforeCommit, false), (InjectedFault::CutAfterCommit, true)] {
        let at = bench.next_of(job).await.unwrap();
        bench.faults.strike(fault);
        let unknown = bench.store.claim_due(&bench.node, at, Slots::ALL, 10, &Simple { now: at }).await;
        assert!(matches!(unknown, Err(StoreError::CommitUnknown(_))), "{unknown:?}");
        let owned = bench.store.owned(&bench.node, None, 100_000).await.unwrap().0;
        assert_eq!(owned.len(), usize::from(done), "{fault:?}");
        let claim = bench.claim_at(at).await;
        assert_eq!(claim.orders.len(), usize::from(!done), "{fault:?}");
        for order in owned.iter().chain(&claim.orders) {
            assert_eq!(order.run.scheduled_at, at);
            bench.accept(&order.run).await;
        }
    }
    assert_eq!(bench.records(job).await.len(), 2);
}

pub async fn an_ending_with_an_unknown_commit_is_harmless_to_repeat(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let child = bench.create(|_| {}).await;
    let job = bench.start(&JobSpec { children: vec![child], ..bench.hourly() }).await;
    for (fault, verdict) in [
        (InjectedFault::CutBeforeCommit, Verdict::Applied),
        (InjectedFault::CutAfterCommit, Verdict::Duplicate),
    ] {
        let run = bench.run(job).await;
        let ending = [Ending { run: run.id, outcome: ok(), version: None, address: None }];
        bench.faults.strike(fault);
        let unknown = bench.store.complete(bench.now, &ending, &Simple { now: bench.now }).await;
        assert!(matches!(unknown, Err(StoreError::CommitUnknown(_))), "{unknown:?}");
        assert_eq!(bench.end(run.id, ok()).await, verdict);
    }
    assert_eq!(bench.records(child).await.len(), 2);
}
