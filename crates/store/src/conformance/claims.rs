//! Claiming runs, and changing their state.

use cron::Schedule;
use engine::policy::Target;
use engine::{
    Assignment, Disposition, Fire, Job, Move, Moved, NextFire, Origin, Plan, Planner, Run, RunState, Shard,
    Slots, Store as _, To,
};
use timer::Timestamp;

use super::Fresh;
use super::bench::{Bench, HOUR, SECOND, Simple, ok, shards, unsent};

pub async fn a_claim_moves_the_job_and_opens_its_run(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let job = bench.start(&bench.hourly()).await;
    let at = bench.next_of(job).await.unwrap();
    assert!(at > bench.now);

    let early = bench.claim_at(at - SECOND).await;
    assert!(early.orders.is_empty() && !early.more);
    assert_eq!(early.next_at, Some(at));

    let claim = bench.claim_at(at).await;
    assert_eq!(claim.next_at, Some(at + HOUR));
    let [order] = &claim.orders[..] else { panic!("one run: {:?}", claim.orders) };
    let run = &order.run;
    assert!(run.id.0 > 0 && run.id.0 < 1 << 53);
    assert_eq!((run.fire, run.job, run.origin), (run.id, job, Origin::Schedule));
    assert_eq!((run.scheduled_at, run.due_at, run.check_at), (at, at, at));
    assert_eq!((run.shard, run.attempt, run.depth), (Shard::WHOLE, 1, 0));
    assert_eq!((run.state, run.node.as_ref()), (RunState::Claimed, Some(&bench.node)));
    assert_eq!(run.address.as_deref(), Some("http://10.0.0.0:9999"));
    assert_eq!(order.job.id, job);

    assert_eq!(bench.next_of(job).await, Some(at + HOUR));
    assert_eq!(bench.open(run.id).await.as_ref(), Some(run));
    assert_eq!(bench.store.owned(&bench.node, None, 100_000).await.unwrap().0[0].run, *run);
    let record = &bench.records(job).await[0];
    assert_eq!((record.id, record.state, record.scheduled_at), (run.id, RunState::Claimed, at));
    assert!(bench.claim_at(at).await.orders.is_empty(), "an instant is claimed once");
}

pub async fn a_claim_takes_the_earliest_first_and_says_if_there_are_more(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let mut spec = bench.hourly();
    let mut jobs = Vec::new();
    for minutes in [30, 10, 20] {
        spec.schedule = Schedule::fixed_rate(bench.now + SECOND * 60 * minutes, HOUR).unwrap();
        jobs.push(bench.start(&spec).await);
    }
    let planner = Simple { now: bench.now + HOUR };
    let claim = |max| bench.store.claim_due(&bench.node, planner.now, Slots::ALL, max, &planner);
    let first = claim(2).await.unwrap();
    assert!(first.more);
    assert_eq!(first.orders.iter().map(|order| order.job.id).collect::<Vec<_>>(), [jobs[1], jobs[2]]);
    let second = claim(2).await.unwrap();
    assert!(!second.more);
    assert_eq!(second.orders.iter().map(|order| order.job.id).collect::<Vec<_>>(), [jobs[0]]);
    assert_eq!(second.next_at, Some(bench.now + SECOND * 60 * 70));
}

pub async fn a_node_takes_its_slots_first_and_what_others_leave_lying(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let (one, two) = (bench.start(&bench.hourly()).await, bench.start(&bench.hourly()).await);
    let at = bench.next_of(one).await.unwrap();
    let planner = Simple { now: at };
    let mask = 1 << (one.0 % 64);
    let claim = |mask, others_before| {
        bench.store.claim_due(&bench.node, at, Slots { mask, others_before }, 10, &planner)
    };
    let none = claim(0, at - SECOND).await.unwrap();
    assert!(none.orders.is_empty());
    let ours = claim(mask, at - SECOND).await.unwrap();
    assert_eq!(ours.orders.iter().map(|order| order.job.id).collect::<Vec<_>>(), [one]);
    let theirs = claim(mask, at).await.unwrap();
    assert_eq!(theirs.orders.iter().map(|order| order.job.id).collect::<Vec<_>>(), [two]);

    let (mine, other) = (bench.trigger(one, 1).await, bench.trigger(two, 1).await);
    let claim = |mask, others_before| {
        bench.store.claim_waiting(&bench.node, at, Slots { mask, others_before }, 10, &planner)
    };
    let ours = claim(mask, bench.now - HOUR).await.unwrap();
    assert_eq!(ours.orders.iter().map(|order| order.run.id).collect::<Vec<_>>(), [mine]);
    let theirs = claim(0, bench.now).await.unwrap();
    assert_eq!(theirs.orders.iter().map(|order| order.run.id).collect::<Vec<_>>(), [other]);
}

/// A planner with closures from the test.
struct Scripted<P: Fn(&Job) -> Plan, A: Fn(&Run) -> Assignment>(P, A);

impl<P, A> Planner for Scripted<P, A>
where
    P: Fn(&Job) -> Plan + Send + Sync,
    A: Fn(&Run) -> Assignment + Send + Sync,
{
    fn plan(&self, job: &Job) -> Plan {
        self.0(job)
    }

    fn assign(&self, _: &Job, run: &Run) -> Assignment {
        self.1(run)
    }

    fn next_after(&self, _: &Job, _: Timestamp) -> NextFire {
        NextFire::Never
    }

    fn claim_at(&self, _: &Job, fire_at: Timestamp) -> Timestamp {
        fire_at
    }
}

fn send(_: &Run) -> Assignment {
    Assignment::Send(vec![Target::AtSend])
}

pub async fn instants_that_are_not_sent_are_recorded(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let job = bench.start(&bench.hourly()).await;
    let at = bench.next_of(job).await.unwrap();
    let planner = Scripted(
        |_: &Job| {
            let make_up = Fire {
                scheduled_at: at + HOUR * 3,
                due_at: at + HOUR * 3,
                origin: Origin::Misfire,
                targets: vec![Target::AtSend],
                waits: false,
            };
            let mut coalesced = unsent(Disposition::Coalesced, at);
            (coalesced.last, coalesced.count) = (at + HOUR * 2, 3);
            let skipped = unsent(Disposition::MisfireSkipped, at + HOUR * 4);
            let next = NextFire::At { fire_at: at + HOUR * 5, claim_at: at + HOUR * 5 };
            Plan { fires: vec![make_up], unsent: vec![coalesced, skipped], next, replace: false }
        },
        send,
    );
    let claim = bench.store.claim_due(&bench.node, at, Slots::ALL, 10, &planner).await.unwrap();
    let run = &claim.orders[0].run;
    assert_eq!((run.origin, run.address.as_deref()), (Origin::Misfire, None));

    let entries = bench.store.history(job, None, 10).await.unwrap();
    assert_eq!(entries.len(), 2);
    assert_eq!((entries[0].run, entries[0].unsent.count), (Some(run.id), 3));
    assert_eq!((entries[0].unsent.first, entries[0].unsent.last), (at, at + HOUR * 2));
    assert_eq!((entries[1].run, entries[1].unsent.disposition), (None, Disposition::MisfireSkipped));
    assert_eq!(entries[1].at, at);
    assert_eq!(bench.store.history(job, Some(entries[0].id), 10).await.unwrap(), entries[1..]);
}

pub async fn a_job_that_is_over_is_stopped(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let mut spec = bench.hourly();
    spec.schedule = Schedule::once(bench.now + HOUR);
    let job = bench.start(&spec).await;
    let run = bench.run(job).await;
    let found = bench.store.job(job).await.unwrap().unwrap();
    assert_eq!((found.enabled, found.next_fire_at), (false, None));
    assert_eq!(bench.end(run.id, ok()).await, engine::Verdict::Applied);
}

pub async fn a_broadcast_opens_a_run_for_each_target(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let mut spec = bench.hourly();
    spec.route = shards(5);
    let job = bench.start(&spec).await;
    let orders = bench.fire(job).await;
    let shards: Vec<_> = orders.iter().map(|order| order.run.shard).collect();
    assert_eq!(shards, (0..5).map(|index| Shard { index, total: 5 }).collect::<Vec<_>>());
    assert!(orders.iter().all(|order| order.run.fire == orders[0].run.id));
    assert_eq!(orders[3].run.address.as_deref(), Some("http://10.0.0.3:9999"));
}

pub async fn a_waiting_run_is_split_when_it_is_claimed(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let job = bench.create(|spec| spec.route = shards(3)).await;
    let run = bench.trigger(job, 7).await;
    assert_eq!(bench.open(run).await.unwrap().shard, Shard::UNSPLIT);
    let orders = bench.claim_waiting_at(bench.now).await.orders;
    assert_eq!(orders.len(), 3);
    assert_eq!(orders[0].run.id, run);
    for (order, index) in orders.iter().zip(0..) {
        assert_eq!(order.run.shard, Shard { index, total: 3 });
        assert_eq!((order.run.fire, order.run.origin), (run, Origin::Manual { key: 7 }));
        assert_eq!(order.run.address, Some(format!("http://10.0.0.{index}:9999")));
        assert_eq!(bench.open(order.run.id).await.as_ref(), Some(&order.run));
    }
    assert!(bench.claim_waiting_at(bench.now).await.orders.is_empty());
}

pub async fn a_waiting_run_can_be_left_or_blocked(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let job = bench.create(|_| {}).await;
    let run = bench.trigger(job, 1).await;
    let until = bench.now + HOUR;
    let plan = |_: &Job| panic!("no job is due");
    let claim = async |answer: Assignment| {
        let planner = Scripted(plan, move |_: &Run| answer.clone());
        bench.store.claim_waiting(&bench.node, bench.now, Slots::ALL, 10, &planner).await.unwrap()
    };
    let left = claim(Assignment::Leave(until)).await;
    assert!(left.orders.is_empty());
    assert!(left.next_at.is_some_and(|at| at > bench.now && at <= until));
    assert_eq!(bench.open(run).await.unwrap().due_at, until);
    assert!(claim(Assignment::Leave(until)).await.orders.is_empty(), "it is not looked at before");

    let other = bench.trigger(job, 2).await;
    assert!(claim(Assignment::Drop(Disposition::Blocked, "a test says so".into())).await.orders.is_empty());
    assert_eq!(bench.open(other).await, None);
    let entry = &bench.store.history(job, None, 10).await.unwrap()[0];
    assert_eq!((entry.run, entry.unsent.disposition), (Some(other), Disposition::Blocked));
    assert_eq!(entry.unsent.reason, "a test says so");
}

pub async fn a_run_moves_only_from_the_version_that_was_seen(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let job = bench.start(&bench.hourly()).await;
    let run = bench.fire(job).await.remove(0).run;
    let to_unknown = |doubt_since| To::Unknown {
        address: Some("http://10.0.0.9:1".into()),
        check_at: run.due_at + SECOND,
        doubt_since,
    };
    let wanted = |version, to| Move { run: run.id, version, to, trouble: None };
    let running = To::Running { address: None, check_at: run.due_at + HOUR, doubt_since: None };
    let moves = [
        wanted(run.version + 1, running.clone()),
        wanted(run.version, to_unknown(Some(run.due_at))),
        wanted(run.version, running.clone()),
        Move { run: engine::RunId(1 << 40), ..wanted(1, running.clone()) },
        wanted(run.version + 1, running.clone()),
    ];
    let moved = bench.store.move_runs(&moves).await.unwrap();
    let version = run.version;
    let expected =
        [Moved::Stale, Moved::Done(version + 1), Moved::Stale, Moved::Stale, Moved::Done(version + 2)];
    assert_eq!(moved, expected);
    let found = bench.open(run.id).await.unwrap();
    assert_eq!((found.state, found.version), (RunState::Running, version + 2));
    assert_eq!((found.check_at, found.doubt_since), (run.due_at + HOUR, None));
    assert_eq!(found.address.as_deref(), Some("http://10.0.0.9:1"));

    let back = wanted(version + 2, To::Waiting { due_at: bench.now });
    assert_eq!(
        bench.store.move_runs(&[back]).await.unwrap(),
        [Moved::Stale],
        "a running run is not released"
    );
    assert!(bench.store.owned(&bench.node, None, 100_000).await.unwrap().0.is_empty());
    assert_eq!(bench.store.move_runs(&[]).await.unwrap(), []);
}

pub async fn a_run_handed_back_is_claimed_by_another_and_the_first_is_refused(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let job = bench.start(&bench.hourly()).await;
    let run = bench.fire(job).await.remove(0).run;
    let other = bench.another("second").await;
    let back =
        Move { run: run.id, version: run.version, to: To::Waiting { due_at: run.due_at }, trouble: None };
    assert_eq!(other.store.move_runs(&[back]).await.unwrap(), [Moved::Done(run.version + 1)]);
    let taken = other.claim_waiting_at(run.due_at).await.orders.remove(0).run;
    assert_eq!((taken.id, taken.scheduled_at, taken.attempt), (run.id, run.scheduled_at, 1));
    assert_eq!(taken.node.as_ref(), Some(&other.node));

    let to = To::Running { address: None, check_at: run.due_at, doubt_since: None };
    let stale = Move { run: run.id, version: run.version, to, trouble: None };
    assert_eq!(bench.store.move_runs(&[stale]).await.unwrap(), [Moved::Stale]);
    assert!(bench.store.owned(&bench.node, None, 100_000).await.unwrap().0.is_empty());
    assert_eq!(other.store.owned(&other.node, None, 100_000).await.unwrap().0[0].run, taken);
}

pub async fn running_runs_are_looked_at_when_their_time_comes(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let job = bench.start(&bench.hourly()).await;
    let run = bench.run(job).await;
    let overdue = async |now| bench.store.overdue(now, 10).await.unwrap();
    assert!(overdue(run.check_at - SECOND).await.is_empty());
    let found = overdue(run.check_at).await;
    assert_eq!((&found[0].run, found[0].job.as_ref().map(|job| job.id)), (&run, Some(job)));
    assert!(bench.store.overdue(run.check_at, 0).await.unwrap().is_empty());
}
