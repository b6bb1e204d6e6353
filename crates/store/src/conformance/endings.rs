//! Results of runs, and their retries and children.

use std::time::Duration;

use cron::Schedule;
use engine::policy::{Backoff, Overlap, Retry};
use engine::{
    CancelAnswer, ChildrenMode, Control, Disposition, Ender, Ending, FollowUps, Job, JobSpec, Move, Moved,
    Origin, Outcome, Run, RunId, RunState, Shard, Store as _, To, Trouble, TroubleKind, Verdict,
};

use super::Fresh;
use super::bench::{AT_SEND, Bench, HOUR, SECOND, Simple, failed, lost, ok, shards};
use crate::RunFilter;

pub async fn the_first_ending_wins(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let job = bench.start(&bench.hourly()).await;
    let run = bench.run(job).await;
    let endings =
        [ok(), failed(), ok()].map(|outcome| Ending { run: run.id, outcome, version: None, address: None });
    let verdicts = bench.store.complete(bench.now, &endings, &Simple { now: bench.now }).await.unwrap();
    assert_eq!(verdicts, [Verdict::Applied, Verdict::Duplicate, Verdict::Duplicate]);
    assert_eq!(bench.end(run.id, failed()).await, Verdict::Duplicate);
    assert_eq!(bench.end(run.id, lost()).await, Verdict::Duplicate);
    assert_eq!(bench.end(RunId(1 << 40), ok()).await, Verdict::Missing);
    assert_eq!(bench.open(run.id).await, None);
    let record = &bench.records(job).await[0];
    assert_eq!((record.state, record.message.as_deref()), (RunState::Succeeded, Some("done")));
    assert_eq!(bench.store.complete(bench.now, &[], &Simple { now: bench.now }).await.unwrap(), []);
}

pub async fn a_run_keeps_its_address_whatever_is_written_first(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let job = bench.start(&bench.hourly()).await;
    let check_at = bench.now + HOUR;
    let running = |address: &str| To::Running { address: Some(address.into()), check_at, doubt_since: None };
    let unknown = |address: &str| To::Unknown { address: Some(address.into()), check_at, doubt_since: None };
    let at_send = bench.start(&JobSpec { route: AT_SEND.into(), ..bench.hourly() }).await;
    // Each result was stored before the node recorded the address of the run.
    for (job, to) in [
        (at_send, running("http://b:1/")),
        (at_send, unknown("http://b:1/")),
        (job, running("http://b:1/")),
        (job, unknown("http://b:1/")),
    ] {
        let run = bench.trigger(job, 1 + bench.records(job).await.len() as i64).await;
        let claimed = bench.claim_waiting_at(bench.now).await.orders.remove(0).run;
        assert_eq!((claimed.id, claimed.address.is_none()), (run, job == at_send));
        assert_eq!(bench.end(run, ok()).await, Verdict::Applied);
        let late = Move { run, version: claimed.version, to, trouble: None };
        assert_eq!(bench.store.move_runs(&[late]).await.unwrap(), [Moved::Stale]);
        let record = bench.records(job).await.pop().unwrap();
        assert_eq!((record.state, record.address.as_deref()), (RunState::Succeeded, Some("http://b:1/")));
    }
    // A request without an answer, for a job with at-most-once delivery.
    bench.trigger(at_send, 99).await;
    let run = bench.claim_waiting_at(bench.now).await.orders.remove(0).run;
    let sent = |outcome| Ending {
        run: run.id,
        outcome,
        version: Some(run.version),
        address: Some("http://b:1/".into()),
    };
    let endings = [sent(Outcome::Ambiguous("no answer".into()))];
    bench.store.complete(bench.now, &endings, &Simple { now: bench.now }).await.unwrap();
    assert_eq!(bench.records(at_send).await.pop().unwrap().address.as_deref(), Some("http://b:1/"));
}

pub async fn every_outcome_is_in_the_log(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let job = bench.start(&bench.hourly()).await;
    let text = || "why".to_owned();
    let table = [
        (Outcome::Succeeded(text()), RunState::Succeeded, None),
        (Outcome::Failed(text()), RunState::Failed, None),
        (Outcome::TimedOut(text()), RunState::TimedOut, None),
        (Outcome::Refused(text()), RunState::Failed, None),
        (Outcome::Ambiguous(text()), RunState::Failed, Some(Disposition::Lost)),
        (Outcome::Lost(text()), RunState::Failed, Some(Disposition::Lost)),
        (Outcome::Cancelled(text()), RunState::Cancelled, Some(Disposition::Cancelled)),
        (
            Outcome::Dropped(Disposition::MisfireSkipped, text()),
            RunState::Cancelled,
            Some(Disposition::MisfireSkipped),
        ),
    ];
    let mut expected = Vec::new();
    for (outcome, state, disposition) in table {
        let run = bench.run(job).await;
        assert_eq!(bench.end(run.id, outcome).await, Verdict::Applied);
        let record = bench.records(job).await.pop().unwrap();
        assert_eq!((record.id, record.state, record.message.as_deref()), (run.id, state, Some("why")));
        assert_eq!(record.address, run.address);
        expected.extend(disposition.map(|disposition| (disposition, Some(run.id), run.scheduled_at)));
    }
    let entries = bench.store.history(job, None, 100).await.unwrap();
    let entries = entries.iter().map(|e| (e.unsent.disposition, e.run, e.unsent.first)).collect::<Vec<_>>();
    assert_eq!(entries, expected);

    // A rejected run has no handler result; and a report may arrive before our own record of the dispatch.
    let claimed = bench.fire(job).await.remove(0).run;
    assert_eq!(bench.end(claimed.id, ok()).await, Verdict::Applied);
    let waiting = bench.trigger(job, 1).await;
    assert_eq!(
        bench.end(waiting, ok()).await,
        Verdict::Applied,
        "the report came while it waits to be sent again"
    );
}

pub async fn a_fire_that_is_skipped_while_it_is_claimed_is_no_failure(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let store = &bench.store;
    let job = bench.start(&JobSpec { alert: true, ..bench.hourly() }).await;
    let skip = Outcome::Dropped(Disposition::MisfireSkipped, "too late".into());
    let claimed = bench.fire(job).await.remove(0).run;
    assert_eq!(bench.end(claimed.id, skip.clone()).await, Verdict::Applied);
    // Released after a request that certainly did not arrive: an executor may have its id.
    let again = bench.fire(job).await.remove(0).run;
    let to = To::Unknown { address: None, check_at: bench.now, doubt_since: None };
    store.move_runs(&[Move { run: again.id, version: again.version, to, trouble: None }]).await.unwrap();
    assert_eq!(bench.end(again.id, skip.clone()).await, Verdict::Applied);
    let by_hand = bench.trigger(job, 1).await;
    let blocked = Outcome::Dropped(Disposition::Blocked, "another run".into());
    assert_eq!(bench.end(by_hand, blocked).await, Verdict::Applied);

    assert_eq!(store.run(claimed.id).await, Ok(None), "only the history has it");
    assert_eq!(store.run(again.id).await.unwrap().unwrap().state, RunState::Cancelled);
    let skipped = Disposition::MisfireSkipped;
    assert_eq!(bench.dispositions(job).await, [skipped, skipped, Disposition::Blocked]);
    assert_eq!(bench.listed_as_failed().await, 1, "only the run that a user waits for");
    let tally = store.run_tally(&RunFilter::default(), 10).await.unwrap();
    assert_eq!((tally.running, tally.succeeded, tally.failed), (0, 0, 1));
    let alerts = store.take_alerts(bench.now + HOUR, SECOND, 10).await.unwrap();
    let about: Vec<_> = alerts.iter().map(|alert| alert.run).collect();
    assert_eq!(about, [None], "the alert names no run that is gone, and the others join it");
}

pub async fn a_requested_cancellation_is_kept_and_makes_a_failure_a_cancellation(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let job = bench.start(&bench.hourly()).await;
    let run = bench.run(job).await;
    assert!(!run.cancel && !run.recalled);
    for _ in 0..2 {
        assert!(bench.store.request_cancel(run.id).await.unwrap(), "asking twice is harmless");
    }
    let marked = bench.open(run.id).await.unwrap();
    assert_eq!((marked.cancel, marked.recalled, marked.version), (true, true, run.version));
    assert!(bench.store.run(run.id).await.unwrap().unwrap().open.unwrap().cancel);
    // It is watched as before, and stopping its job does not undo the request.
    let to = To::Running { address: None, check_at: bench.now + HOUR, doubt_since: None };
    let looked = Move { run: run.id, version: run.version, to, trouble: None };
    assert!(matches!(bench.store.move_runs(&[looked]).await.unwrap()[..], [Moved::Done(_)]));
    bench.control(job, Control::Stop).await;
    assert!(bench.open(run.id).await.unwrap().cancel);
    assert_eq!(bench.end(run.id, failed()).await, Verdict::Applied);
    assert_eq!(bench.records(job).await[0].message.as_deref(), Some("cancelled"));
    assert!(!bench.store.request_cancel(run.id).await.unwrap(), "it is over");

    let waiting = bench.trigger(job, 1).await;
    assert!(!bench.store.request_cancel(waiting).await.unwrap(), "no executor has it");
    assert!(!bench.open(waiting).await.unwrap().cancel);
    assert!(!bench.store.request_cancel(RunId(1 << 40)).await.unwrap());
}

pub async fn an_ending_that_names_an_older_version_changes_nothing(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let job = bench.start(&bench.hourly()).await;
    let run = bench.run(job).await;
    let ending = |version| [Ending { run: run.id, outcome: lost(), version: Some(version), address: None }];
    let planner = Simple { now: bench.now };
    let complete = |version| {
        let (store, now, planner) = (bench.store.clone(), bench.now, &planner);
        let ending = ending(version);
        async move { store.complete(now, &ending, planner).await.unwrap()[0] }
    };
    assert_eq!(complete(run.version - 1).await, Verdict::Stale);
    assert_eq!(bench.open(run.id).await.as_ref(), Some(&run));
    assert_eq!(complete(run.version).await, Verdict::Applied);
}

pub async fn a_failed_run_is_tried_again_and_the_last_failure_raises_an_alert(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let mut spec = bench.hourly();
    spec.retry = Retry { count: 2, backoff: Backoff::Fixed { delay: SECOND } };
    spec.alert = true;
    spec.param = "of the job".into();
    let job = bench.start(&spec).await;
    let first = bench.run(job).await;

    let mut run = first.clone();
    for attempt in 2..=3 {
        let ended_at = run.due_at + SECOND * 10;
        assert_eq!(bench.end_at(ended_at, run.id, failed()).await, Verdict::Applied);
        let [retry] = &bench.open_of(job).await[..] else { panic!("one retry") };
        assert_eq!((retry.attempt, retry.retry_of, retry.fire), (attempt, Some(run.id), first.id));
        assert_eq!((retry.scheduled_at, retry.due_at), (first.scheduled_at, ended_at + SECOND));
        assert_eq!((retry.origin, retry.shard, retry.state), (first.origin, first.shard, RunState::Waiting));
        assert!(bench.store.take_alerts(ended_at, SECOND, 10).await.unwrap().is_empty());
        let claim = bench.claim_waiting_at(retry.due_at).await;
        run = bench.accept(&claim.orders[0].run).await;
    }
    assert_eq!(bench.end(run.id, failed()).await, Verdict::Applied);
    assert!(bench.open_of(job).await.is_empty());
    let alerts = bench.store.take_alerts(bench.now + HOUR, SECOND, 10).await.unwrap();
    assert_eq!(alerts.len(), 1);
    let expected = Trouble::new(TroubleKind::Failed, "no");
    assert_eq!((alerts[0].job, alerts[0].run, &alerts[0].trouble), (job, Some(run.id), &expected));
    assert_eq!(bench.records(job).await.len(), 3, "each attempt has its own row");
}

pub async fn children_run_once_when_the_parent_succeeds(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let child = bench.create(|_| {}).await;
    let gone = bench.create(|_| {}).await;
    let mut spec = bench.hourly();
    spec.children = vec![child, gone];
    let job = bench.start(&spec).await;
    bench.control(gone, Control::Delete).await;

    let run = bench.run(job).await;
    bench.end(run.id, failed()).await;
    assert!(bench.open_of(child).await.is_empty());
    let run = bench.run(job).await;
    for _ in 0..3 {
        bench.end(run.id, ok()).await;
    }
    let [opened] = &bench.open_of(child).await[..] else { panic!("one child") };
    assert_eq!((opened.origin, opened.depth), (Origin::Child { of: run.id }, 1));
    assert_eq!((opened.state, opened.shard), (RunState::Waiting, Shard::UNSPLIT));
    assert!(bench.records(gone).await.is_empty());
}

/// Allows this many children of an app in one transaction.
struct Room(Simple, u64);

impl Ender for Room {
    fn follow(&self, job: &Job, run: &Run, outcome: &Outcome) -> FollowUps {
        self.0.follow(job, run, outcome)
    }

    fn blocks(&self, _: &Job, opened: u64) -> Option<String> {
        (opened >= self.1).then(|| "the app is full".into())
    }
}

pub async fn a_child_beyond_the_quota_is_recorded_and_a_retry_is_not_limited(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let first = bench.create(|_| {}).await;
    let second = bench.create(|spec| spec.alert = true).await;
    let mut spec = bench.hourly();
    spec.children = vec![first, second];
    spec.retry = Retry { count: 1, backoff: Backoff::Fixed { delay: SECOND } };
    let job = bench.start(&spec).await;
    let end = async |run: &Run, outcome, room| {
        let ending = Ending { run: run.id, outcome, version: None, address: None };
        bench.store.complete(bench.now, &[ending], &Room(Simple { now: bench.now }, room)).await.unwrap()
    };

    let run = bench.run(job).await;
    assert_eq!(end(&run, ok(), 1).await, [Verdict::Applied]);
    assert_eq!((bench.open_of(first).await.len(), bench.records(second).await.len()), (1, 0));
    let history = bench.store.history(second, None, 10).await.unwrap();
    let [blocked] = &history[..] else { panic!("one entry: {history:?}") };
    assert_eq!(blocked.unsent.disposition, Disposition::Blocked);
    assert_eq!((blocked.unsent.reason.as_str(), blocked.unsent.count), ("the app is full", 1));
    let alerts = bench.store.take_alerts(bench.now + HOUR, SECOND, 10).await.unwrap();
    let told: Vec<_> = alerts.iter().map(|alert| (alert.job, alert.trouble.kind)).collect();
    assert_eq!(told, [(second, TroubleKind::NotRun)]);

    let run = bench.run(job).await;
    assert_eq!(end(&run, failed(), 0).await, [Verdict::Applied]);
    assert_eq!(bench.open_of(job).await.iter().map(|run| run.attempt).collect::<Vec<_>>(), [2]);
}

async fn broadcast(
    bench: &Bench,
    mode: ChildrenMode,
    retries: u32,
) -> (engine::JobId, engine::JobId, Vec<Run>) {
    let child = bench.create(|_| {}).await;
    let mut spec = bench.hourly();
    spec.route = shards(5);
    spec.children = vec![child];
    spec.children_mode = mode;
    spec.retry = Retry { count: retries, backoff: Backoff::Fixed { delay: Duration::ZERO } };
    let job = bench.start(&spec).await;
    let mut shards = Vec::new();
    for order in bench.fire(job).await {
        shards.push(bench.accept(&order.run).await);
    }
    assert_eq!(shards.len(), 5);
    (job, child, shards)
}

pub async fn children_of_a_broadcast_run_once_or_for_each_shard(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let (job, child, shards) = broadcast(&bench, ChildrenMode::Once, 1).await;
    // The first shard needs a second attempt.
    bench.end(shards[0].id, failed()).await;
    for shard in &shards[1..] {
        assert!(bench.open_of(child).await.is_empty());
        bench.end(shard.id, ok()).await;
    }
    assert!(bench.open_of(child).await.is_empty(), "one shard is not over");
    let retry = bench.open_of(job).await.remove(0);
    assert_eq!((retry.shard, retry.fire), (shards[0].shard, shards[0].id));
    bench.claim_waiting_at(bench.now).await;
    bench.end(retry.id, ok()).await;
    let [opened] = &bench.open_of(child).await[..] else { panic!("one child") };
    assert_eq!(opened.origin, Origin::Child { of: shards[0].id });

    let (_, child, shards) = broadcast(&bench, ChildrenMode::Each, 0).await;
    let endings: Vec<Ending> = shards
        .iter()
        .map(|shard| Ending {
            run: shard.id,
            outcome: if shard.shard.index == 2 { failed() } else { ok() },
            version: None,
            address: None,
        })
        .collect();
    bench.store.complete(bench.now, &endings, &Simple { now: bench.now }).await.unwrap();
    let of: Vec<Origin> = bench.open_of(child).await.iter().map(|run| run.origin).collect();
    let expected: Vec<Origin> =
        shards.iter().filter(|s| s.shard.index != 2).map(|s| Origin::Child { of: s.id }).collect();
    assert_eq!(of, expected);
}

pub async fn a_broadcast_with_a_failed_shard_opens_no_children(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let (job, child, shards) = broadcast(&bench, ChildrenMode::Once, 0).await;
    bench.end(shards[0].id, failed()).await;
    for shard in &shards[1..] {
        bench.end(shard.id, ok()).await;
    }
    assert!(bench.open_of(child).await.is_empty());
    assert!(bench.open_of(job).await.is_empty());
}

pub async fn a_lost_run_gives_way_to_one_late_result(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let child = bench.create(|_| {}).await;
    let mut spec = bench.hourly();
    spec.children = vec![child];
    let job = bench.start(&spec).await;
    let run = bench.run(job).await;
    assert_eq!(bench.end(run.id, lost()).await, Verdict::Applied);
    assert_eq!(bench.end(run.id, lost()).await, Verdict::Duplicate, "only a report replaces it");
    assert!(bench.open_of(child).await.is_empty());
    assert_eq!(bench.listed_as_failed().await, 1);
    assert_eq!(bench.end(run.id, ok()).await, Verdict::Late);
    assert_eq!(bench.listed_as_failed().await, 0);
    assert_eq!(bench.end(run.id, failed()).await, Verdict::Duplicate);
    assert_eq!(bench.end(run.id, ok()).await, Verdict::Duplicate);
    assert_eq!(bench.records(job).await[0].state, RunState::Succeeded);
    assert_eq!(bench.open_of(child).await.len(), 1);

    let run = bench.run(job).await;
    bench.end(run.id, lost()).await;
    assert_eq!(bench.end(run.id, Outcome::TimedOut("slow".into())).await, Verdict::Late);
    assert_eq!(bench.records(job).await[1].state, RunState::TimedOut);
    assert_eq!(bench.listed_as_failed().await, 1);
    assert_eq!(bench.open_of(child).await.len(), 1);

    // It was never known whether this one began.
    let run = bench.run(job).await;
    assert_eq!(bench.end(run.id, Outcome::Ambiguous("no answer".into())).await, Verdict::Applied);
    assert_eq!(bench.records(job).await[2].state, RunState::Failed);
    assert_eq!(bench.end(run.id, ok()).await, Verdict::Late);
    assert_eq!(bench.records(job).await[2].state, RunState::Succeeded);
    assert_eq!(bench.open_of(child).await.len(), 2);
}

pub async fn a_late_result_knows_how_deep_and_why_its_run_was(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let grandchild = bench.create(|_| {}).await;
    let child = bench.create(|spec| spec.children = vec![grandchild]).await;
    let parent = bench.create(|spec| spec.children = vec![child]).await;
    let run = bench.trigger(parent, 1).await;
    bench.claim_waiting_at(bench.now).await;
    bench.end(run, ok()).await;
    let lost_child = bench.claim_waiting_at(bench.now).await.orders.remove(0).run;
    assert_eq!((lost_child.job, lost_child.depth), (child, 1));
    bench.accept(&lost_child).await;
    bench.end(lost_child.id, lost()).await;
    assert_eq!(bench.end(lost_child.id, ok()).await, Verdict::Late);
    assert_eq!(bench.open_of(grandchild).await[0].depth, 2, "the chain is counted on, so that a circle ends");

    // A manual trigger is not the run that a fixed delay waits for.
    let delay = JobSpec { schedule: Schedule::fixed_delay(HOUR).unwrap(), ..bench.hourly() };
    let job = bench.start(&delay).await;
    bench.run(job).await;
    let by_hand = bench.trigger(job, 2).await;
    let orders = bench.claim_waiting_at(bench.now).await.orders;
    let order = orders.iter().find(|order| order.run.id == by_hand).unwrap();
    bench.accept(&order.run).await;
    bench.end(by_hand, lost()).await;
    assert_eq!(bench.end(by_hand, ok()).await, Verdict::Late);
    assert_eq!(bench.next_of(job).await, None, "its scheduled run is still going on");
}

pub async fn a_late_shard_completes_the_broadcast(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let (_, child, shards) = broadcast(&bench, ChildrenMode::Once, 0).await;
    bench.end(shards[3].id, lost()).await;
    bench.end(shards[4].id, lost()).await;
    for shard in &shards[..3] {
        bench.end(shard.id, ok()).await;
    }
    assert_eq!(bench.end(shards[3].id, ok()).await, Verdict::Late);
    assert!(bench.open_of(child).await.is_empty(), "one shard is still lost");
    assert_eq!(bench.end(shards[4].id, ok()).await, Verdict::Late);
    assert_eq!(bench.open_of(child).await.len(), 1);
}

pub async fn a_late_success_takes_back_the_retry(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let child = bench.create(|_| {}).await;
    let mut spec = bench.hourly();
    spec.children = vec![child];
    spec.retry = Retry { count: 5, backoff: Backoff::Fixed { delay: Duration::ZERO } };
    let job = bench.start(&spec).await;

    let run = bench.run(job).await;
    bench.end(run.id, lost()).await;
    assert_eq!(bench.open_of(job).await.len(), 1);
    assert_eq!(bench.end(run.id, ok()).await, Verdict::Late);
    assert!(bench.open_of(job).await.is_empty(), "nobody had begun the retry");
    assert_eq!(bench.open_of(child).await.len(), 1);

    // A retry in progress decides about the children instead.
    let run = bench.run(job).await;
    bench.end(run.id, lost()).await;
    let retry =
        bench.claim_waiting_at(bench.now).await.orders.into_iter().find(|order| order.job.id == job).unwrap();
    assert_eq!(bench.end(run.id, ok()).await, Verdict::Late);
    assert_eq!(bench.records(child).await.len(), 1);
    assert_eq!(bench.end(retry.run.id, ok()).await, Verdict::Applied);
    assert_eq!(bench.records(child).await.len(), 2);
}

pub async fn a_fixed_delay_counts_from_the_end_of_the_run(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let mut spec = bench.hourly();
    spec.schedule = Schedule::fixed_delay(HOUR).unwrap();
    spec.retry = Retry { count: 1, backoff: Backoff::Fixed { delay: SECOND } };
    let job = bench.start(&spec).await;
    let run = bench.run(job).await;
    let found: Job = bench.store.job(job).await.unwrap().unwrap();
    assert_eq!((found.enabled, found.next_fire_at), (true, None));

    let ended_at = run.due_at + SECOND * 90;
    bench.end_at(ended_at, run.id, failed()).await;
    assert_eq!(bench.next_of(job).await, None, "a retry follows");
    let retry = bench.claim_waiting_at(ended_at + SECOND).await.orders.remove(0).run;
    bench.end_at(ended_at + HOUR, retry.id, ok()).await;
    assert_eq!(bench.next_of(job).await, Some(ended_at + HOUR * 2));

    let run = bench.run(job).await;
    bench.control(job, Control::Stop).await;
    bench.end_at(run.due_at, run.id, ok()).await;
    let found = bench.store.job(job).await.unwrap().unwrap();
    assert_eq!((found.enabled, found.next_fire_at), (false, None), "a stopped job stays stopped");
}

pub async fn a_fixed_delay_that_is_not_valid_any_more_stops(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let mut spec = bench.hourly();
    spec.schedule = Schedule::fixed_delay(HOUR).unwrap();
    spec.valid_until = Some(bench.now + HOUR + SECOND * 90);
    let job = bench.start(&spec).await;
    let run = bench.run(job).await;
    bench.end_at(run.due_at + SECOND, run.id, ok()).await;
    let found = bench.store.job(job).await.unwrap().unwrap();
    assert_eq!((found.enabled, found.next_fire_at), (false, None));
}

pub async fn a_fixed_delay_goes_on_after_a_run_that_was_never_sent(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let delay = Schedule::fixed_delay(HOUR).unwrap();
    let spec = JobSpec { schedule: delay, ..bench.hourly() };
    let edit = |param: &str| Control::Edit {
        spec: Box::new(JobSpec { param: param.into(), ..spec.clone() }),
        revision: None,
    };

    // Its node leaves while it is asked to cancel the run.
    let job = bench.start(&spec).await;
    let leaver = bench.another("leaver").await;
    leaver.fire(job).await;
    assert_eq!(bench.control(job, edit("one")).await, 1);
    assert_eq!(bench.next_of(job).await, None, "the run may have been sent");
    leaver.store.leave(&leaver.node).await.unwrap();
    assert!(bench.next_of(job).await.is_some_and(|at| at >= bench.now + HOUR));

    // Its node answers in time.
    bench.fire(job).await;
    assert_eq!(bench.control(job, edit("two")).await, 1);
    let asked = bench.store.asked_to_cancel(&bench.node, None, 100).await.unwrap().remove(0);
    let answer = CancelAnswer { run: asked.id, version: asked.version, sent: None };
    bench.store.answer_cancel(&[answer], &Simple { now: bench.now }).await.unwrap();
    assert!(bench.next_of(job).await.is_some_and(|at| at >= bench.now + HOUR));

    bench.control(job, Control::Stop).await;

    // It was lost, and a late success cancels its retry.
    let retried = JobSpec { retry: Retry { count: 1, backoff: Backoff::Fixed { delay: HOUR } }, ..spec };
    let job = bench.start(&retried).await;
    let run = bench.run(job).await;
    bench.end(run.id, lost()).await;
    assert_eq!(bench.next_of(job).await, None);
    assert_eq!(bench.end_at(bench.now + HOUR, run.id, ok()).await, Verdict::Late);
    assert_eq!(bench.next_of(job).await, Some(bench.now + HOUR * 2));
}

pub async fn an_ending_of_a_run_whose_job_is_gone_is_recorded(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let mut spec = bench.hourly();
    spec.retry = Retry { count: 5, backoff: Backoff::Fixed { delay: Duration::ZERO } };
    let job = bench.start(&spec).await;
    let run = bench.run(job).await;
    bench.control(job, Control::Delete).await;
    assert!(bench.store.overdue(run.check_at, 10).await.unwrap()[0].job.is_none());
    assert_eq!(bench.end(run.id, failed()).await, Verdict::Applied);
    assert_eq!(bench.records(job).await[0].state, RunState::Failed);
    assert!(bench.open_of(job).await.is_empty(), "there is nothing to try again");
}

pub async fn alerts_are_leased_until_they_are_forgotten(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let mut spec = bench.hourly();
    spec.alert = true;
    // Of three jobs, because alerts of one job would be grouped.
    for _ in 0..3 {
        let job = bench.start(&spec).await;
        let run = bench.run(job).await;
        bench.end(run.id, failed()).await;
        bench.control(job, Control::Stop).await;
    }
    let take = async |now, max| bench.store.take_alerts(now, SECOND * 60, max).await.unwrap();
    let first = take(bench.now, 2).await;
    assert_eq!(first.len(), 2);
    assert!(first[0].run < first[1].run, "oldest first");
    let rest = take(bench.now, 10).await;
    assert_eq!(rest.len(), 1);
    assert!(take(bench.now, 10).await.is_empty());
    bench.store.forget_alerts(&[first[0].id, rest[0].id]).await.unwrap();
    let again = take(bench.now + SECOND * 61, 10).await;
    assert_eq!((again.len(), again[0].id), (1, first[1].id));
    assert_eq!((first[1].tries, again[0].tries), (1, 2));
    // An undelivered alert is due again at the requested time, not when its lease ends.
    bench.store.delay_alert(again[0].id, bench.now + SECOND * 64).await.unwrap();
    assert!(take(bench.now + SECOND * 63, 10).await.is_empty());
    assert_eq!(take(bench.now + SECOND * 64, 10).await.len(), 1);
    bench.store.forget_alerts(&[]).await.unwrap();
}

pub async fn people_are_told_of_what_did_not_run_and_of_what_began_late(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let spec = JobSpec { overlap: Overlap::Skip, ..bench.hourly() };
    let job = bench.start(&JobSpec { alert: true, ..spec.clone() }).await;
    let silent = bench.start(&spec).await;
    let claim = bench.claim_at(bench.next_of(silent).await.unwrap()).await;
    let run = &claim.orders.iter().find(|order| order.run.job == job).unwrap().run;
    let (kind, check_at) = (TroubleKind::Late, bench.now);
    let to = To::Running { address: None, check_at, doubt_since: None };
    let late = Move { run: run.id, version: run.version, to, trouble: Some(Trouble::new(kind, "late")) };
    let twice = [late.clone(), late];
    let moved = bench.store.move_runs(&twice).await.unwrap();
    assert_eq!(moved, [Moved::Done(run.version + 1), Moved::Stale]);
    let taken = bench.store.take_alerts(bench.now + HOUR, SECOND, 10).await.unwrap();
    let [alert] = &taken[..] else { panic!("told once: {taken:?}") };
    assert_eq!((alert.job, alert.run, alert.trouble.kind), (job, Some(run.id), kind));
    bench.store.forget_alerts(&[alert.id]).await.unwrap();

    assert!(bench.claim_at(bench.next_of(silent).await.unwrap()).await.orders.is_empty(), "both are blocked");
    let taken = bench.store.take_alerts(bench.now + HOUR * 3, SECOND, 10).await.unwrap();
    let [alert] = &taken[..] else { panic!("only whoever wants it is told: {taken:?}") };
    assert_eq!((alert.job, alert.run, alert.trouble.kind), (job, None, TroubleKind::NotRun));
    assert_eq!(bench.dispositions(silent).await.len(), 1, "it is on record all the same");
}
