//! Backfills: each scheduled time once, never more at once than allowed, whatever is cut, told twice or asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::time::Duration;

use engine::policy::{Backoff, Overlap, Retry};
use engine::{
    Backfill, BackfillChange, BackfillId, BackfillOrder, BackfillSettings, BackfillState, Control, Existing,
    Filled, InstantState, JobId, NewBackfill, OnFailure, Order, Origin, Outcome, Retention, RunId, RunState,
    Store as _, StoreError, TimeRange, Trigger, Verdict,
};
use timer::Timestamp;

use super::Fresh;
use super::bench::{Bench, HOUR, SECOND, failed, lost, ok, shards};
use super::crashes::cut_everywhere;
use crate::{BackfillFilter, Page};

/// A job on a bench, and a backfill of it.
struct Fill {
    bench: Bench,
    job: JobId,
    id: BackfillId,
}

/// Whole hours before now, oldest first.
fn hours(bench: &Bench, count: u32) -> Vec<Timestamp> {
    let hour = HOUR.as_millis() as i64;
    let last = Timestamp::from_millis(bench.now.as_millis() / hour * hour);
    (0..count).rev().map(|ago| last - HOUR * ago).collect()
}

fn new(bench: &Bench, count: u32, change: impl FnOnce(&mut BackfillSettings)) -> NewBackfill {
    let times = hours(bench, count);
    let mut settings = BackfillSettings {
        range: TimeRange { from: times[0], until: bench.now },
        order: BackfillOrder::Oldest,
        parallel: 2,
        existing: Existing::Skip,
        on_failure: OnFailure::Continue,
        param: None,
        by: "ada".into(),
    };
    change(&mut settings);
    NewBackfill { key: 1, settings, times }
}

impl Fill {
    async fn start(fresh: Fresh, count: u32, change: impl FnOnce(&mut BackfillSettings)) -> Fill {
        let bench = Bench::new(fresh).await;
        let job = bench.create(|_| {}).await;
        Fill::start_on(bench, job, count, change).await
    }

    async fn start_on(
        bench: Bench,
        job: JobId,
        count: u32,
        change: impl FnOnce(&mut BackfillSettings),
    ) -> Fill {
        let id = bench.store.start_backfill(job, &new(&bench, count, change)).await.unwrap();
        Fill { bench, job, id }
    }

    /// Applies all events, and claims the runs that opened, in the order of their ids.
    async fn advance(&self) -> Vec<Order> {
        while self.bench.store.advance_backfills(self.bench.now, 10).await.unwrap().more {}
        let mut orders = self.bench.claim_waiting_at(self.bench.now).await.orders;
        orders.sort_by_key(|order| order.run.id);
        orders
    }

    async fn end(&self, run: RunId, outcome: Outcome) -> Vec<Order> {
        assert_eq!(self.bench.end(run, outcome).await, Verdict::Applied);
        self.advance().await
    }

    async fn change(&self, change: BackfillChange) -> Backfill {
        self.bench.store.change_backfill(self.id, change).await.unwrap()
    }

    async fn now(&self) -> Backfill {
        self.bench.store.backfill(self.id).await.unwrap().unwrap()
    }

    /// States of the scheduled times, oldest first. They agree with the counts.
    async fn states(&self) -> Vec<InstantState> {
        let times = self.bench.store.backfill_times(self.id, None, Page::first(1_000)).await.unwrap().rows;
        let states: Vec<InstantState> = times.iter().map(|time| time.state).collect();
        let counts = self.now().await.counts;
        let count = |state| states.iter().filter(|found| **found == state).count() as u32;
        use InstantState::*;
        assert_eq!(
            [Pending, Open, Succeeded, Failed, Skipped, Cancelled].map(count),
            [
                counts.pending(),
                counts.open,
                counts.succeeded,
                counts.failed,
                counts.skipped,
                counts.cancelled
            ]
        );
        states
    }
}

fn times(orders: &[Order]) -> Vec<Timestamp> {
    orders.iter().map(|order| order.run.scheduled_at).collect()
}

pub async fn a_backfill_runs_each_time_once_in_its_order_and_keeps_its_window(fresh: Fresh) {
    let fill = Fill::start(fresh, 5, |settings| {
        settings.order = BackfillOrder::Newest;
        settings.param = Some("again".into());
    })
    .await;
    let bench = &fill.bench;
    let again = bench.store.start_backfill(fill.job, &new(bench, 3, |_| {})).await.unwrap();
    assert_eq!(again, fill.id, "the same request");
    let newest: Vec<Timestamp> = hours(bench, 5).into_iter().rev().collect();
    let mut orders = fill.advance().await;
    assert_eq!(times(&orders), newest[..2]);
    for order in &orders {
        assert_eq!(order.run.origin, Origin::Backfill { of: fill.id });
        assert_eq!((order.run.param.as_deref(), order.run.due_at), (Some("again"), bench.now));
    }
    assert_eq!(fill.advance().await, [], "nothing has happened since");

    let mut arrived = times(&orders);
    while let Some(order) = orders.pop() {
        let next = fill.end(order.run.id, ok()).await;
        assert_eq!(bench.end(order.run.id, ok()).await, Verdict::Duplicate, "a second report");
        assert_eq!(fill.advance().await, []);
        arrived.extend(times(&next));
        orders.extend(next);
        assert!(orders.len() <= 2);
    }
    assert_eq!(arrived, newest);
    let done = fill.now().await;
    assert_eq!(
        (done.state, done.counts.succeeded, done.ended_at),
        (BackfillState::Finished, 5, Some(bench.now))
    );
    assert_eq!(fill.states().await, [InstantState::Succeeded; 5]);
    let listed = BackfillFilter { apps: Some(vec![bench.app]), job: Some(fill.job) };
    let listed = bench.store.backfills(&listed, Page::first(10)).await.unwrap().rows;
    assert_eq!(listed, [done]);
}

pub async fn times_with_runs_are_left_out_waited_for_or_repeated(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let job = bench.create(|_| {}).await;
    let at = hours(&bench, 4);
    let run = async |key: i64, at: Timestamp, outcomes: &[Option<Outcome>]| {
        for (again, outcome) in (0..).zip(outcomes) {
            let trigger =
                Trigger { key: key * 10 + again, at: Some(at), param: None, address: None, by: None };
            let id = bench.store.trigger(job, &trigger).await.unwrap();
            bench.claim_waiting_at(bench.now).await;
            if let Some(outcome) = outcome {
                assert_eq!(bench.end(id, outcome.clone()).await, Verdict::Applied);
            }
        }
    };
    run(1, at[0], &[Some(ok()), Some(failed())]).await;
    run(2, at[1], &[Some(failed())]).await;
    run(3, at[2], &[None]).await;
    let open = bench.records(job).await.pop().unwrap().id;

    let mut key = 1;
    for (existing, expected, left_out) in [
        (Existing::Skip, vec![at[1], at[3]], 1),
        (Existing::Failed, vec![at[0], at[1], at[3]], 0),
        (Existing::Again, at.clone(), 0),
    ] {
        key += 1;
        let mut request = new(&bench, 4, |settings| {
            (settings.existing, settings.parallel) = (existing, 10);
        });
        request.key = key;
        let id = bench.store.start_backfill(job, &request).await.unwrap();
        let fill = Fill { bench: bench.clone(), job, id };
        let orders = fill.advance().await;
        assert_eq!(times(&orders), expected, "{existing}");
        assert_eq!(fill.now().await.counts.skipped, left_out, "{existing}");
        if existing != Existing::Again {
            assert_eq!(fill.states().await[2], InstantState::Pending, "an open run decides");
        }
        fill.change(BackfillChange::Cancel).await;
        for order in orders {
            bench.end(order.run.id, failed()).await;
        }
        fill.advance().await;
        assert!(fill.now().await.ended_at.is_some(), "{existing}");
    }

    // It looks again, and finds that the open run has succeeded.
    let request = NewBackfill { key: 9, ..new(&bench, 2, |_| {}) };
    let request = NewBackfill { times: vec![at[2]], ..request };
    let fill = Fill { id: bench.store.start_backfill(job, &request).await.unwrap(), bench, job };
    assert_eq!(fill.advance().await, []);
    let bench = &fill.bench;
    assert!(bench.store.agenda(false).await.unwrap().backfill_at.unwrap() > bench.now);
    assert_eq!(bench.end(open, ok()).await, Verdict::Applied);
    assert_eq!(fill.advance().await, [], "not yet");
    let filled = bench.store.advance_backfills(bench.now + SECOND * 10, 10).await.unwrap();
    assert_eq!(filled, Filled::default());
    assert_eq!(fill.now().await.state, BackfillState::Finished);
    let time = bench.store.backfill_times(fill.id, None, Page::first(10)).await.unwrap().rows.remove(0);
    assert_eq!((time.state, time.run), (InstantState::Skipped, Some(open)));
}

pub async fn a_failure_leaves_nothing_out_and_failed_times_can_be_retried(fresh: Fresh) {
    let fill = Fill::start(fresh, 3, |settings| settings.parallel = 1).await;
    let first = fill.advance().await;
    let second = fill.end(first[0].run.id, failed()).await;
    let third = fill.end(second[0].run.id, ok()).await;
    assert_eq!(fill.end(third[0].run.id, Outcome::Refused("no executor".into())).await, []);
    use InstantState::{Failed, Succeeded};
    assert_eq!(fill.states().await, [Failed, Succeeded, Failed]);
    assert_eq!(fill.now().await.state, BackfillState::Finished);
    let some = fill.bench.store.backfill_times(fill.id, Some(Failed), Page::first(10)).await.unwrap().rows;
    assert_eq!(some[1].message.as_deref(), Some("no executor"));

    assert_eq!(fill.change(BackfillChange::Retry).await.counts.pending(), 2);
    let first = fill.advance().await;
    assert_eq!(times(&first), [hours(&fill.bench, 3)[0]]);
    let third = fill.end(first[0].run.id, ok()).await;
    assert_eq!(times(&third), [hours(&fill.bench, 3)[2]]);
    fill.end(third[0].run.id, ok()).await;
    assert_eq!((fill.states().await, fill.now().await.state), (vec![Succeeded; 3], BackfillState::Finished));
    let nothing = fill.bench.store.change_backfill(fill.id, BackfillChange::Retry).await;
    assert!(matches!(nothing, Err(StoreError::Conflict(_))), "{nothing:?}");
}

pub async fn a_failure_stops_a_backfill_that_asks_for_it_after_all_retries(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let retry = Retry { count: 1, backoff: Backoff::Fixed { delay: Duration::ZERO } };
    let job = bench.create(|spec| spec.retry = retry).await;
    let fill = Fill::start_on(bench, job, 4, |settings| settings.on_failure = OnFailure::Stop).await;
    let orders = fill.advance().await;
    let retry = fill.end(orders[0].run.id, failed()).await;
    assert_eq!((retry.len(), retry[0].run.attempt), (1, 2), "its place is not free yet");
    assert_eq!(fill.end(retry[0].run.id, failed()).await, []);
    assert_eq!(fill.now().await.state, BackfillState::Paused);
    assert_eq!(fill.end(orders[1].run.id, ok()).await, [], "open ones end");
    fill.change(BackfillChange::Continue).await;
    let rest = fill.advance().await;
    assert_eq!(times(&rest), hours(&fill.bench, 4)[2..]);
}

pub async fn a_paused_backfill_opens_nothing_and_a_cancelled_one_never_again(fresh: Fresh) {
    let fill = Fill::start(fresh, 6, |_| {}).await;
    let orders = fill.advance().await;
    fill.change(BackfillChange::Pause).await;
    assert_eq!(fill.end(orders[0].run.id, ok()).await, []);
    fill.change(BackfillChange::Continue).await;
    let third = fill.advance().await;
    assert_eq!(third.len(), 1);
    fill.change(BackfillChange::Cancel).await;
    assert_eq!(fill.advance().await, []);
    let open = fill.bench.store.backfill_runs(fill.id).await.unwrap();
    assert_eq!(open, [orders[1].run.id, third[0].run.id]);
    assert_eq!(fill.end(orders[1].run.id, ok()).await, []);
    assert_eq!(fill.now().await.ended_at, None, "one still runs");
    fill.end(third[0].run.id, Outcome::Cancelled("by ada".into())).await;
    let done = fill.now().await;
    assert_eq!((done.state, done.counts.succeeded, done.counts.cancelled), (BackfillState::Cancelled, 2, 4));
    assert!(done.ended_at.is_some());
    fill.states().await;
    for change in [BackfillChange::Pause, BackfillChange::Continue, BackfillChange::Retry] {
        let refused = fill.bench.store.change_backfill(fill.id, change).await;
        assert!(matches!(refused, Err(StoreError::Conflict(_))), "{refused:?}");
    }
}

pub async fn a_backfill_of_a_job_that_may_not_overlap_opens_one_run_and_blocks_no_fire(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let job = bench.create(|spec| spec.overlap = Overlap::Wait).await;
    let by_hand = bench.trigger(job, 7).await;
    bench.claim_waiting_at(bench.now).await;
    let fill = Fill::start_on(bench, job, 3, |settings| settings.existing = Existing::Again).await;
    assert_eq!(fill.advance().await, [], "it waits for the run that is open");
    let open = fill.bench.store.backfill_runs(fill.id).await.unwrap();
    assert_eq!(open.len(), 1);
    let found = fill.bench.store.job(job).await.unwrap().unwrap();
    assert_eq!((found.running, found.waiting), (Some(by_hand), 0), "no fire waits for a backfill");
    let first = fill.end(by_hand, ok()).await;
    assert_eq!(first.iter().map(|order| order.run.id).collect::<Vec<_>>(), open);
    let second = fill.end(open[0], ok()).await;
    assert_eq!(second.len(), 1);
}

pub async fn a_backfill_of_a_broadcast_ends_with_the_last_shard(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let job = bench.create(|spec| spec.route = shards(2)).await;
    let fill = Fill::start_on(bench, job, 2, |settings| settings.parallel = 1).await;
    let both = fill.advance().await;
    assert_eq!(both.len(), 2);
    assert_eq!(fill.end(both[0].run.id, failed()).await, []);
    let next = fill.end(both[1].run.id, ok()).await;
    assert_eq!(next.len(), 2, "the next scheduled time");
    assert_eq!(fill.states().await, [InstantState::Failed, InstantState::Open]);
}

pub async fn a_backfill_is_cancelled_with_its_job(fresh: Fresh) {
    let fill = Fill::start(fresh, 3, |_| {}).await;
    let orders = fill.advance().await;
    fill.bench.control(fill.job, Control::Stop).await;
    assert_eq!(
        fill.bench.open(orders[0].run.id).await.unwrap().state,
        RunState::Claimed,
        "a stop is no cancellation"
    );
    for order in &orders {
        fill.bench.accept(&order.run).await;
    }
    fill.bench.control(fill.job, Control::Delete).await;
    for order in &orders {
        assert_eq!(fill.end(order.run.id, ok()).await, []);
    }
    let done = fill.now().await;
    assert_eq!((done.state, done.counts.succeeded, done.counts.cancelled), (BackfillState::Cancelled, 2, 1));
    let all = BackfillFilter::default();
    assert_eq!(fill.bench.store.backfills(&all, Page::first(10)).await.unwrap().rows, []);
    let again = NewBackfill { key: 5, ..new(&fill.bench, 1, |_| {}) };
    let gone = fill.bench.store.start_backfill(fill.job, &again).await;
    assert_eq!(gone, Err(StoreError::NoSuchJob(fill.job)));
}

pub async fn a_run_that_was_given_up_and_succeeds_late_counts_once(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let retry = Retry { count: 1, backoff: Backoff::Fixed { delay: HOUR } };
    let job = bench.create(|spec| spec.retry = retry).await;
    let fill = Fill::start_on(bench, job, 3, |settings| settings.parallel = 1).await;
    let first = fill.advance().await;
    assert_eq!(fill.end(first[0].run.id, lost()).await, [], "its retry is not due");
    assert_eq!(fill.bench.end(first[0].run.id, ok()).await, Verdict::Late);
    let second = fill.advance().await;
    assert_eq!(second.len(), 1, "its success takes the retry back");

    // The second attempt is lost too, and reports when the next one is open.
    assert_eq!(fill.end(second[0].run.id, lost()).await, []);
    let retry = fill.bench.claim_waiting_at(fill.bench.now + HOUR).await.orders.remove(0);
    let third = fill.end(retry.run.id, lost()).await;
    assert_eq!(fill.states().await[1], InstantState::Failed);
    assert_eq!(fill.bench.end(retry.run.id, ok()).await, Verdict::Late);
    assert_eq!(fill.advance().await, [], "its place was given already");
    assert_eq!(fill.states().await[1], InstantState::Succeeded);
    fill.end(third[0].run.id, ok()).await;
    let done = fill.now().await;
    assert_eq!((done.state, done.counts.succeeded), (BackfillState::Finished, 3));
}

pub async fn a_backfill_is_refused_if_it_has_too_many_times_or_places(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let job = bench.create(|_| {}).await;
    let refused = async |new: NewBackfill| {
        let result = bench.store.start_backfill(job, &new).await;
        assert!(matches!(result, Err(StoreError::Invalid(_))), "{result:?}");
    };
    refused(NewBackfill { times: vec![], ..new(&bench, 1, |_| {}) }).await;
    refused(NewBackfill { times: vec![bench.now; 10_001], ..new(&bench, 1, |_| {}) }).await;
    refused(new(&bench, 1, |settings| settings.parallel = 0)).await;
    refused(new(&bench, 1, |settings| settings.parallel = 101)).await;
    refused(new(&bench, 1, |settings| settings.param = Some("a\0b".into()))).await;
}

/// Goes on until this many runs have opened. A server may notice a lost connection late, and until then the rows stay
/// locked.
async fn opened<F>(first: Filled, count: usize, work: impl Fn() -> F)
where
    F: Future<Output = Result<Filled, StoreError>>,
{
    let deadline = std::time::Instant::now() + SECOND * 30;
    let mut opened = first.opened;
    while opened < count {
        assert!(std::time::Instant::now() < deadline, "the locks of a cut connection stay");
        opened += work().await.unwrap().opened;
        tokio::task::yield_now().await;
    }
    assert_eq!(opened, count);
}

pub async fn a_backfill_cut_anywhere_goes_on_as_if_nothing_had_happened(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let job = bench.create(|_| {}).await;
    let (store, now, request) = (&bench.store, bench.now, new(&bench, 4, |_| {}));
    let id = cut_everywhere(&bench, || store.start_backfill(job, &request)).await;
    let advance = || store.advance_backfills(now, 10);
    opened(cut_everywhere(&bench, advance).await, 2, advance).await;
    let orders = bench.claim_waiting_at(now).await.orders;
    assert_eq!(orders.len(), 2);
    let planner = super::bench::Simple { now };
    let ending = [engine::Ending { run: orders[0].run.id, outcome: ok(), version: None, address: None }];
    cut_everywhere(&bench, || store.complete(now, &ending, &planner)).await;
    opened(cut_everywhere(&bench, advance).await, 1, advance).await;
    cut_everywhere(&bench, || store.change_backfill(id, BackfillChange::Cancel)).await;
    while advance().await.unwrap().more {}
    let fill = Fill { bench: bench.clone(), job, id };
    use InstantState::{Cancelled, Open, Succeeded};
    assert_eq!(fill.states().await, [Succeeded, Open, Open, Cancelled]);
}

pub async fn nodes_that_advance_at_once_keep_the_window(fresh: Fresh) {
    let fill = Fill::start(fresh, 60, |settings| settings.parallel = 3).await;
    let bench = &fill.bench;
    let mut seen: BTreeMap<Timestamp, RunId> = BTreeMap::new();
    let deadline = std::time::Instant::now() + SECOND * 60;
    while fill.now().await.state == BackfillState::Running {
        assert!(std::time::Instant::now() < deadline, "it never ended");
        let advance = || async {
            for _ in 0..3 {
                bench.store.advance_backfills(bench.now, 10).await.unwrap();
            }
        };
        let end = || async {
            for run in bench.store.backfill_runs(fill.id).await.unwrap() {
                bench.end(run, ok()).await;
            }
        };
        tokio::join!(advance(), end(), advance(), end(), advance());
        let open = bench.store.open_runs(&bench.store.backfill_runs(fill.id).await.unwrap()).await.unwrap();
        assert!(open.len() <= 3, "{} are open", open.len());
        for run in open {
            let before = seen.insert(run.scheduled_at, run.id);
            assert!(before.is_none_or(|before| before == run.id), "{} runs twice", run.scheduled_at);
        }
    }
    assert_eq!(fill.states().await, [InstantState::Succeeded; 60]);
    let records = bench.records(fill.job).await;
    let distinct: BTreeSet<Timestamp> = records.iter().map(|record| record.scheduled_at).collect();
    assert_eq!((records.len(), distinct.len()), (60, 60));
}

pub async fn an_old_backfill_is_pruned_when_it_has_ended(fresh: Fresh) {
    let fill = Fill::start(fresh, 2, |_| {}).await;
    let prune = async || {
        let before = fill.bench.now + HOUR;
        let retention = Retention { runs_before: before, runs_max: None, history_before: before };
        fill.bench.store.prune(&retention, 100).await.unwrap();
        fill.bench.store.backfill(fill.id).await.unwrap()
    };
    assert!(prune().await.is_some());
    for order in fill.advance().await {
        fill.end(order.run.id, ok()).await;
    }
    assert_eq!(prune().await, None);
    let times = fill.bench.store.backfill_times(fill.id, None, Page::first(10)).await.unwrap();
    assert_eq!(times.rows, []);
}
