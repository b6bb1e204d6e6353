//! Many concurrent calls.

use std::collections::BTreeSet;
use std::future::Future;

use engine::policy::Overlap;
use engine::{
    Change, ChildrenMode, Control, JobId, JobSpec, NewJob, Order, RunId, Slots, Store as _, StoreError,
    Trigger, Verdict,
};
use timer::Timestamp;

use super::Fresh;
use super::bench::{Bench, HOUR, LEASE, Simple, failed, ok, shards};

/// Runs the work on all benches at once, and waits for all.
pub(super) async fn at_once<T, F>(benches: Vec<Bench>, work: impl Fn(Bench) -> F) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let tasks: Vec<_> = benches.into_iter().map(|bench| tokio::spawn(work(bench))).collect();
    let mut done = Vec::new();
    for task in tasks {
        done.push(task.await.unwrap());
    }
    done
}

async fn crew(bench: &Bench, size: usize) -> Vec<Bench> {
    let mut crew = Vec::new();
    for number in 0..size {
        crew.push(bench.another(&format!("claimer {number}")).await);
    }
    crew
}

const JOBS: usize = 10_000;

pub async fn claimers_at_once_neither_double_nor_lose_a_fire(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let jobs = bench.start_many(bench.hourly(), JOBS, bench.now + HOUR).await;
    for (round, size) in [(1, 2), (2, 4)] {
        let at = bench.now + HOUR * round;
        let claimed = at_once(crew(&bench, size).await, move |bench| claim_all(bench, at)).await;
        let orders: Vec<Order> = claimed.into_iter().flatten().collect();
        assert_eq!(orders.len(), JOBS, "with {size} claimers");
        let fired: BTreeSet<JobId> = orders.iter().map(|order| order.run.job).collect();
        assert_eq!(fired.len(), JOBS);
        assert!(orders.iter().all(|order| order.run.scheduled_at == at));
        let ids: BTreeSet<RunId> = orders.iter().map(|order| order.run.id).collect();
        assert_eq!(ids.len(), JOBS);
        let first = bench.records(jobs[0]).await;
        assert_eq!(first.len(), round as usize);
    }
}

/// Claims until nothing is left to claim. Rows that others have locked belong to them.
async fn claim_all(bench: Bench, at: Timestamp) -> Vec<Order> {
    let mut orders = Vec::new();
    loop {
        let claim =
            bench.store.claim_due(&bench.node, at, Slots::ALL, 500, &Simple { now: at }).await.unwrap();
        let done = claim.orders.is_empty() && !claim.more;
        orders.extend(claim.orders);
        if done {
            break;
        }
    }
    let owned = bench.store.owned(&bench.node, None, 100_000).await.unwrap().0;
    let mine = |orders: &[Order]| orders.iter().map(|order| order.run.id).collect::<BTreeSet<_>>();
    assert_eq!(mine(&owned), mine(&orders), "what was given is what the rows say");
    orders
}

pub async fn claimers_of_waiting_runs_neither_double_nor_lose_one(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let child = bench.create(|_| {}).await;
    let spec = JobSpec { children: vec![child], ..bench.hourly() };
    const RUNS: usize = 1_000;
    bench.start_many(spec, RUNS, bench.now).await;
    let parents = bench.claim_at(bench.now).await.orders;
    let endings: Vec<_> = parents
        .iter()
        .map(|order| engine::Ending { run: order.run.id, outcome: ok(), version: None, address: None })
        .collect();
    bench.store.complete(bench.now, &endings, &Simple { now: bench.now }).await.unwrap();

    let claimed = at_once(crew(&bench, 4).await, |bench| async move {
        let mut orders = Vec::new();
        loop {
            let (now, planner) = (bench.now, Simple { now: bench.now });
            let claim = bench.store.claim_waiting(&bench.node, now, Slots::ALL, 50, &planner).await.unwrap();
            let done = claim.orders.is_empty() && !claim.more;
            orders.extend(claim.orders.into_iter().map(|order| order.run.id));
            if done {
                return orders;
            }
        }
    })
    .await;
    let all: Vec<RunId> = claimed.into_iter().flatten().collect();
    assert_eq!((all.len(), all.iter().collect::<BTreeSet<_>>().len()), (RUNS, RUNS));
}

pub async fn of_many_endings_at_once_one_counts(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let child = bench.create(|_| {}).await;
    let mut spec = JobSpec { children: vec![child], alert: true, ..bench.hourly() };
    spec.retry = engine::policy::Retry { count: 1, ..spec.retry };
    let job = bench.start(&spec).await;
    const ROUNDS: usize = 20;
    for round in 0..ROUNDS {
        let run = bench.run(job).await;
        let verdicts =
            at_once(vec![bench.clone(); 4], |bench| async move { bench.end(run.id, ok()).await }).await;
        let applied = verdicts.iter().filter(|verdict| **verdict == Verdict::Applied).count();
        assert_eq!(applied, 1, "{verdicts:?}");
        assert_eq!(verdicts.iter().filter(|verdict| **verdict == Verdict::Duplicate).count(), 3);
        assert_eq!(bench.records(child).await.len(), round + 1);
    }
    let run = bench.run(job).await;
    at_once(vec![bench.clone(); 4], |bench| async move { bench.end(run.id, failed()).await }).await;
    assert_eq!(bench.open_of(job).await.len(), 1, "one retry");
}

pub async fn shards_that_end_at_once_open_the_children_once(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let child = bench.create(|_| {}).await;
    let spec = JobSpec {
        children: vec![child],
        children_mode: ChildrenMode::Once,
        route: shards(5),
        ..bench.hourly()
    };
    let job = bench.start(&spec).await;
    for round in 1..=10 {
        let shards: Vec<RunId> = bench.fire(job).await.iter().map(|order| order.run.id).collect();
        let pairs: Vec<_> = shards.into_iter().map(|shard| (shard, bench.clone())).collect();
        let tasks: Vec<_> = pairs
            .into_iter()
            .map(|(shard, bench)| tokio::spawn(async move { bench.end(shard, ok()).await }))
            .collect();
        for task in tasks {
            assert_eq!(task.await.unwrap(), Verdict::Applied);
        }
        assert_eq!(bench.records(child).await.len(), round);
    }
}

pub async fn one_place_is_never_held_by_two(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let job = bench.create(|spec| spec.overlap = Overlap::Wait).await;
    for key in 0..30 {
        bench.trigger(job, key).await;
    }
    let crew = crew(&bench, 4).await;
    let mut ended = 0;
    for round in 0..30 {
        let now = bench.now + HOUR * 2 * round;
        let claimed =
            at_once(crew.clone(), move |bench| async move { bench.claim_waiting_at(now).await.orders }).await;
        let orders: Vec<Order> = claimed.into_iter().flatten().collect();
        assert!(orders.len() <= 1, "two at once: {orders:?}");
        for order in orders {
            assert_eq!(bench.end_at(now, order.run.id, ok()).await, Verdict::Applied);
            ended += 1;
        }
    }
    assert_eq!(ended, 30);
}

pub async fn triggers_at_once_open_one_run(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let job = bench.create(|_| {}).await;
    for key in 0..10 {
        let runs = at_once(vec![bench.clone(); 4], move |bench| async move {
            let trigger = Trigger { key, at: Some(bench.now), param: None, address: None, by: None };
            bench.store.trigger(job, &trigger).await.unwrap()
        })
        .await;
        assert!(runs.iter().all(|run| *run == runs[0]), "{runs:?}");
        assert_eq!(bench.records(job).await.len() as i64, key + 1);
    }
}

pub async fn joins_at_once_get_different_epochs(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let joined = at_once(vec![bench.clone(); 4], |bench| async move {
        bench.store.join("same", LEASE).await.unwrap().node.epoch
    })
    .await;
    assert_eq!(joined.iter().collect::<BTreeSet<_>>().len(), 4, "{joined:?}");
    let agenda = bench.store.agenda(false).await.unwrap();
    let alive: Vec<i64> =
        agenda.nodes.iter().filter(|peer| peer.node.name == "same").map(|peer| peer.node.epoch).collect();
    assert_eq!(alive, [*joined.iter().max().unwrap()]);
}

pub async fn batches_at_once_all_succeed_and_a_key_is_one_job(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    const BATCH: usize = 300;
    let jobs = bench.start_many(bench.hourly(), BATCH, bench.now + HOUR).await;
    bench.claim_at(bench.now + HOUR).await;
    let results = at_once(crew(&bench, 4).await, {
        let jobs = jobs.clone();
        move |bench| {
            let jobs = jobs.clone();
            async move {
                let add = |number| {
                    let spec = JobSpec { key: Some(format!("k/{number}")), ..bench.hourly() };
                    Change::Add(Box::new(NewJob {
                        enabled: true,
                        tags: vec!["t".into()],
                        ..NewJob::stopped(spec)
                    }))
                };
                // Listed in another order than locked.
                let stops = jobs.iter().rev().map(|job| Change::Control(*job, Control::Stop));
                let changes: Vec<Change> = (0..BATCH).rev().map(add).chain(stops).collect();
                let planner = Simple { now: bench.now };
                bench.store.change_jobs(&changes, false, 10_000, &planner).await.unwrap().results
            }
        }
    })
    .await;
    let added = results.iter().flat_map(|results| &results[..BATCH]).filter(|result| result.is_ok());
    assert_eq!(added.count(), BATCH, "each key is added by one of them");
    let refused = |result: &Result<JobId, StoreError>| matches!(result, Ok(_) | Err(StoreError::Conflict(_)));
    assert!(results.iter().flatten().all(refused), "{results:?}");
    assert!(results.iter().flat_map(|results| &results[BATCH..]).all(Result::is_ok));
    assert_eq!(bench.store.cancelling(&jobs).await.unwrap().len(), BATCH);
    assert!(
        bench.claim_at(bench.now + HOUR * 2).await.orders.iter().all(|order| !jobs.contains(&order.run.job))
    );
}
