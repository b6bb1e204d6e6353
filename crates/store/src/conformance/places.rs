//! Jobs with runs that must not overlap.

use std::time::Duration;

use engine::policy::{Backoff, Overlap, Retry};
use engine::{CancelAnswer, Disposition, JobSpec, Run, RunState, Store as _, Verdict};

use super::Fresh;
use super::bench::{Bench, HOUR, SECOND, Simple, failed, ok, shards};

fn with(bench: &Bench, overlap: Overlap) -> JobSpec {
    JobSpec { overlap, ..bench.hourly() }
}

pub async fn runs_that_may_not_overlap_are_blocked(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let job = bench.start(&with(&bench, Overlap::Skip)).await;
    let run = bench.run(job).await;
    assert_eq!(bench.store.job(job).await.unwrap().unwrap().running, Some(run.id));
    assert!(bench.fire(job).await.is_empty());
    assert_eq!(bench.dispositions(job).await, [Disposition::Blocked]);

    let by_hand = bench.trigger(job, 1).await;
    assert_eq!(bench.store.job(job).await.unwrap().unwrap().waiting, 1);
    assert!(bench.claim_waiting_at(bench.now).await.orders.is_empty());
    assert_eq!(bench.open(by_hand).await, None);
    assert_eq!(bench.dispositions(job).await, [Disposition::Blocked; 2]);

    bench.end(run.id, ok()).await;
    assert_eq!(bench.store.job(job).await.unwrap().unwrap().running, None);
    assert_eq!(bench.fire(job).await.len(), 1);
}

pub async fn runs_wait_for_the_one_place_and_the_oldest_goes_first(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let mut spec = with(&bench, Overlap::Wait);
    spec.retry = Retry { count: 1, backoff: Backoff::Fixed { delay: HOUR * 100 } };
    let job = bench.start(&spec).await;
    let run = bench.run(job).await;
    for _ in 0..3 {
        assert!(bench.fire(job).await.is_empty());
    }
    let waiting: Vec<_> =
        bench.open_of(job).await.into_iter().filter(|run| run.state == RunState::Waiting).collect();
    assert_eq!(waiting.len(), 3);
    assert_eq!(bench.store.job(job).await.unwrap().unwrap().waiting, 3);

    // They are checked, and left for later.
    let now = waiting[2].due_at;
    assert!(bench.claim_waiting_at(now).await.orders.is_empty());
    bench.end_at(now, run.id, failed()).await;
    let retry = bench.open_of(job).await.pop().unwrap();
    assert_eq!((retry.attempt, retry.due_at), (2, now + HOUR * 100), "a retry waits for its own time");

    for expected in &waiting {
        let orders = bench.claim_waiting_at(now).await.orders;
        assert_eq!(orders.iter().map(|order| order.run.id).collect::<Vec<_>>(), [expected.id]);
        assert!(bench.claim_waiting_at(now).await.orders.is_empty());
        bench.end_at(now, expected.id, ok()).await;
    }
    assert!(bench.claim_waiting_at(now).await.orders.is_empty());
}

pub async fn a_later_fire_takes_the_place_of_a_running_one(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let job = bench.start(&with(&bench, Overlap::Replace)).await;
    let running = async || bench.store.job(job).await.unwrap().unwrap().running;
    let first = bench.run(job).await;
    let at = bench.next_of(job).await.unwrap();
    let claim = bench.claim_at(at).await;
    let replaced = Run { recalled: true, cancel: true, replaced: true, ..first.clone() };
    assert_eq!(claim.replaced.iter().map(|order| &order.run).collect::<Vec<_>>(), [&replaced]);
    let second = bench.accept(&claim.orders[0].run).await;
    assert_eq!((bench.open(first.id).await, running().await), (Some(replaced), Some(second.id)));

    let third = bench.trigger(job, 1).await;
    let claim = bench.claim_waiting_at(bench.now).await;
    assert_eq!(
        claim.replaced.iter().map(|order| order.run.id).collect::<Vec<_>>(),
        [first.id, second.id],
        "an executor that has not ended its run is asked once more"
    );
    assert_eq!(claim.orders.iter().map(|order| order.run.id).collect::<Vec<_>>(), [third]);
    assert_eq!(running().await, Some(third));
    assert!(
        !bench.store.request_cancel(third).await.unwrap()
            && bench.store.request_cancel(first.id).await.unwrap()
    );
    assert!(bench.open(first.id).await.unwrap().replaced, "a user's request does not make it the active one");
}

pub async fn a_replaced_run_has_its_real_result(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let job = bench.start(&with(&bench, Overlap::Replace)).await;
    let mut runs = vec![bench.run(job).await];
    for _ in 0..2 {
        let claim = bench.claim_at(bench.next_of(job).await.unwrap()).await;
        assert!(!claim.replaced.is_empty());
        runs.push(bench.accept(&claim.orders[0].run).await);
    }
    assert_eq!(bench.end(runs[0].id, ok()).await, Verdict::Applied, "its executor did not end it");
    assert_eq!(bench.end(runs[1].id, failed()).await, Verdict::Applied);
    let states: Vec<_> = bench.records(job).await.iter().map(|record| record.state).collect();
    assert_eq!(states, [RunState::Succeeded, RunState::Cancelled, RunState::Running]);
    assert_eq!(bench.listed_as_failed().await, 0);
    assert_eq!(bench.open_of(job).await.iter().map(|run| run.id).collect::<Vec<_>>(), [runs[2].id]);
}

pub async fn a_later_fire_waits_for_the_answer_about_an_unsent_one(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let job = bench.start(&with(&bench, Overlap::Replace)).await;
    let first = bench.fire(job).await.remove(0).run;
    let at = bench.next_of(job).await.unwrap();
    let claim = bench.claim_at(at).await;
    assert!(claim.orders.is_empty() && claim.replaced.is_empty());
    assert!(bench.claim_waiting_at(at).await.orders.is_empty(), "the first may have been sent");

    let asked = bench.store.asked_to_cancel(&bench.node, None, 100).await.unwrap();
    assert_eq!(asked.iter().map(|run| run.id).collect::<Vec<_>>(), [first.id]);
    let answer = CancelAnswer { run: first.id, version: asked[0].version, sent: None };
    bench.store.answer_cancel(&[answer], &Simple { now: at }).await.unwrap();
    let orders = bench.claim_waiting_at(at + SECOND * 10).await.orders;
    assert_eq!(orders.len(), 1);
    assert_eq!(orders[0].run.scheduled_at, at);
}

pub async fn an_attempt_of_a_broadcast_is_not_kept_out_by_its_own_fire(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let mut spec = with(&bench, Overlap::Skip);
    spec.route = shards(3);
    spec.retry = Retry { count: 1, backoff: Backoff::Fixed { delay: Duration::ZERO } };
    let job = bench.start(&spec).await;
    let shards = bench.fire(job).await;
    bench.end(shards[1].run.id, failed()).await;
    let retry = bench.claim_waiting_at(bench.now).await.orders;
    assert_eq!(retry.iter().map(|order| order.run.shard).collect::<Vec<_>>(), [shards[1].run.shard]);
    assert!(bench.fire(job).await.is_empty(), "the next fire is kept out");
    for run in bench.open_of(job).await {
        bench.end(run.id, ok()).await;
    }
    assert_eq!(bench.fire(job).await.len(), 3);
}
