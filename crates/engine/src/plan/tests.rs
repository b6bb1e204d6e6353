//! Tests of the planner as a table: a job, the time, and the planned fires.

use std::time::Duration;

use cron::{Schedule, Timestamp};

use super::*;
use crate::job::WorkflowId;
use crate::policy::Route;
use crate::run::{RunId, RunState};
use crate::testing::{each_second, job, ms, run};

/// All runs are on one executor, and a broadcast is on three.
struct Three;

impl Router for Three {
    fn targets(&self, job: &Job, _: Timestamp) -> Vec<Target> {
        let count = if job.spec.route == Route::Broadcast { 3 } else { 1 };
        (0..count).map(|index| Target::Address(format!("http://10.0.0.{index}/"))).collect()
    }

    fn shards(&self, job: &Job) -> usize {
        if job.spec.route == Route::Broadcast { 3 } else { 1 }
    }
}

fn plan(job: &Job, now: i64) -> Plan {
    Tick::new(ms(now), &Three, Bugs::default()).plan(job)
}

/// Sent times, unsent ranges (disposition, first, last, count), and the next scheduled time.
type Summary = (Vec<i64>, Vec<(Disposition, i64, i64, u64)>, Option<i64>);

fn summary(plan: &Plan) -> Summary {
    let next = match plan.next {
        NextFire::At { fire_at, .. } => Some(fire_at.as_millis()),
        NextFire::AfterRun | NextFire::Never => None,
    };
    (
        plan.fires.iter().map(|fire| fire.scheduled_at.as_millis()).collect(),
        plan.unsent
            .iter()
            .map(|unsent| {
                (unsent.disposition, unsent.first.as_millis(), unsent.last.as_millis(), unsent.count)
            })
            .collect(),
        next,
    )
}

#[test]
fn every_instant_within_the_look_ahead_is_claimed_in_order() {
    let check = |next, now, sent: &[i64], after| {
        assert_eq!(summary(&plan(&each_second(next), now)), (sent.to_vec(), vec![], Some(after)));
    };
    check(10_000, 8_500, &[10_000], 11_000);
    check(10_000, 8_499, &[], 10_000);
    check(10_000, 9_900, &[10_000, 11_000], 12_000);
    // Slightly late: nothing is skipped, each scheduled time is sent.
    check(10_000, 15_000, &[10_000, 11_000, 12_000, 13_000, 14_000, 15_000, 16_000], 17_000);
}

#[test]
fn a_plan_has_no_more_rows_than_asked_for_and_the_next_one_goes_on() {
    let check = |route: Route, rows, sent: &[i64], after| {
        let mut job = each_second(10_000);
        job.spec.route = route.into();
        let plan = Tick::new(ms(15_000), &Three, Bugs::default()).plan_at_most(&job, rows);
        assert_eq!(summary(&plan), (sent.to_vec(), vec![], Some(after)), "{route} {rows}");
    };
    check(Route::First, 2, &[10_000, 11_000], 12_000);
    check(Route::First, 0, &[10_000], 11_000);
    check(Route::Broadcast, 7, &[10_000, 11_000], 12_000);
}

#[test]
fn a_workflow_has_one_run_whatever_its_route() {
    let mut job = each_second(10_000);
    (job.spec.route, job.spec.workflow) = (Route::Broadcast.into(), Some(WorkflowId(1)));
    let plan = Tick::new(ms(15_000), &Three, Bugs::default()).plan_at_most(&job, 2);
    let targets: Vec<_> = plan.fires.iter().map(|fire| fire.targets.clone()).collect();
    assert_eq!(targets, vec![vec![Target::AtSend]; 2]);
}

#[test]
fn steps_beyond_the_quota_of_the_app_are_blocked() {
    let (quota, job) = (Quota::new(Some(2)), each_second(10_000));
    let tick = Tick::new(ms(15_000), &Three, Bugs::default());
    assert_eq!(tick.blocks(&job, 100), None, "no quota");
    let tick = tick.within(&quota);
    assert_eq!(tick.blocks(&job, 1), None);
    assert!(tick.blocks(&job, 2).unwrap().contains("2 open runs"));
}

#[test]
fn fires_beyond_the_quota_of_the_app_are_blocked() {
    let quota = Quota::new(Some(2));
    let plan = Tick::new(ms(15_000), &Three, Bugs::default()).within(&quota).plan(&each_second(10_000));
    let blocked = (Disposition::Blocked, 12_000, 16_000, 5);
    assert_eq!(summary(&plan), (vec![10_000, 11_000], vec![blocked], Some(17_000)));
    assert!(plan.unsent[0].reason.contains("2 open runs"), "{}", plan.unsent[0].reason);
}

#[test]
fn what_is_too_late_follows_the_misfire_policy() {
    use Disposition::*;
    let check = |misfire, sent: &[i64], unsent: &[(Disposition, i64, i64, u64)]| {
        let mut job = each_second(10_000);
        job.spec.misfire = misfire;
        // 10 s to 14 s are more than 5 s late, 15 s is not.
        let (late, mut in_time) = (plan(&job, 20_000), vec![]);
        in_time.extend((15..=21).map(|second| second * 1000));
        let expected: Vec<i64> = sent.iter().copied().chain(in_time).collect();
        assert_eq!(summary(&late), (expected, unsent.to_vec(), Some(22_000)), "{misfire:?}");
    };
    check(Misfire::Skip, &[], &[(MisfireSkipped, 10_000, 14_000, 5)]);
    check(Misfire::FireOnce, &[14_000], &[(Coalesced, 10_000, 13_000, 4)]);
    let all = |window, max| Misfire::FireAll { window: Duration::from_secs(window), max };
    check(all(60, 100), &[10_000, 11_000, 12_000, 13_000, 14_000], &[]);
    check(all(60, 2), &[10_000, 11_000], &[(MisfireSkipped, 12_000, 14_000, 3)]);
    check(all(7, 100), &[13_000, 14_000], &[(MisfireSkipped, 10_000, 12_000, 3)]);
}

#[test]
fn one_missed_instant_fires_once_and_coalesces_nothing() {
    let mut job = job(Schedule::once(ms(10_000)), 10_000);
    job.spec.misfire = Misfire::FireOnce;
    let plan = plan(&job, 99_000);
    assert_eq!(summary(&plan), (vec![10_000], vec![], None));
    assert_eq!((plan.fires[0].origin, plan.next), (Origin::Misfire, NextFire::Never));
}

#[test]
fn an_outage_of_months_is_counted_in_bounded_steps_with_one_make_up() {
    let mut job = each_second(0);
    job.spec.misfire = Misfire::FireOnce;
    let now = 120_000 * 1000;
    let (mut coalesced, mut made_up, mut steps) = (0, 0, 0);
    loop {
        let plan = plan(&job, now);
        coalesced += plan.unsent.iter().map(|unsent| unsent.count).sum::<u64>();
        made_up += plan.fires.iter().filter(|fire| fire.origin == Origin::Misfire).count();
        steps += 1;
        let NextFire::At { fire_at, .. } = plan.next else { panic!("it fires for ever") };
        if fire_at > ms(now) {
            break;
        }
        job.next_fire_at = Some(fire_at);
    }
    // Scheduled times 0 … 119 994 s are too late.
    assert_eq!((coalesced, made_up, steps), (119_994, 1, 3));
}

#[test]
fn a_job_with_one_place_is_decided_upon_when_it_is_due() {
    let mut alone = each_second(10_000);
    alone.spec.overlap = Overlap::Skip;
    assert_eq!(summary(&plan(&alone, 9_999)), (vec![], vec![], Some(10_000)));
    assert_eq!(summary(&plan(&alone, 10_000)), (vec![10_000], vec![], Some(11_000)));
}

#[test]
fn runs_of_a_job_with_one_place_do_not_overlap() {
    use Disposition::Blocked;
    let check = |overlap, running: Option<i64>, now, sent: &[(i64, bool)], blocked: &[i64], replace| {
        let mut job = each_second(10_000);
        job.spec.overlap = overlap;
        job.running = running.map(RunId);
        let plan = plan(&job, now);
        let fires: Vec<_> =
            plan.fires.iter().map(|fire| (fire.scheduled_at.as_millis(), fire.waits)).collect();
        let unsent: Vec<_> =
            plan.unsent.iter().map(|unsent| (unsent.disposition, unsent.first.as_millis())).collect();
        assert_eq!(fires, sent, "{overlap:?}");
        assert_eq!(unsent, blocked.iter().map(|at| (Blocked, *at)).collect::<Vec<_>>(), "{overlap:?}");
        assert_eq!(plan.replace, replace, "{overlap:?}");
    };
    check(Overlap::Skip, None, 10_000, &[(10_000, false)], &[], false);
    check(Overlap::Skip, Some(1), 10_000, &[], &[10_000], false);
    check(Overlap::Skip, None, 11_000, &[(10_000, false)], &[11_000], false);
    check(Overlap::Wait, Some(1), 10_000, &[(10_000, true)], &[], false);
    check(Overlap::Wait, None, 11_000, &[(10_000, false), (11_000, true)], &[], false);
    check(Overlap::Replace, Some(1), 10_000, &[(10_000, false)], &[], true);
    check(Overlap::Replace, None, 11_000, &[(11_000, false)], &[10_000], false);
}

#[test]
fn only_so_many_runs_wait_for_a_place() {
    let mut job = each_second(10_000);
    job.spec.overlap = Overlap::Wait;
    job.running = Some(RunId(1));
    job.waiting = Overlap::MAX_WAITING;
    assert_eq!(
        summary(&plan(&job, 10_000)),
        (vec![], vec![(Disposition::Blocked, 10_000, 10_000, 1)], Some(11_000))
    );
}

#[test]
fn a_fixed_delay_waits_for_the_end_of_its_run_or_goes_on_without_one() {
    let mut job = job(Schedule::fixed_delay(Duration::from_secs(3)).unwrap(), 10_000);
    assert_eq!(plan(&job, 9_000).next, NextFire::AfterRun);
    // Missed and skipped: there is no run that could end.
    assert_eq!(summary(&plan(&job, 90_000)).2, Some(93_000));
    job.spec.overlap = Overlap::Skip;
    job.running = Some(RunId(1));
    assert_eq!(summary(&plan(&job, 10_000)).2, Some(13_000));
}

#[test]
fn what_was_due_before_a_schedule_changes_is_still_accounted_for() {
    let tick = Tick::new(ms(99_000), &Three, Bugs::default());
    let settle = |next, at| summary(&tick.settle(&each_second(next), ms(at)));
    assert_eq!(settle(10_000, 9_999), (vec![], vec![], Some(10_000)));
    assert_eq!(settle(10_000, 11_500), (vec![10_000, 11_000], vec![], Some(12_000)));
    let skipped = (Disposition::MisfireSkipped, 10_000, 14_000, 5);
    assert_eq!(settle(10_000, 20_000), ((15..=20).map(|s| s * 1000).collect(), vec![skipped], Some(21_000)));
}

#[test]
fn a_recalled_run_is_not_sent() {
    let tick = Tick::new(ms(10_000), &Three, Bugs::default());
    let recalled = Run { recalled: true, ..waiting_run(9_000) };
    assert!(matches!(tick.assign(&each_second(20_000), &recalled), Assignment::Cancel(_)));
}

#[test]
fn a_run_that_nobody_could_send_in_time_is_dropped_where_the_job_wants_that() {
    let tick = Tick::new(ms(10_000), &Three, Bugs::default());
    let late = Run { origin: Origin::Schedule, ..waiting_run(4_999) };
    let check = |run: &Run, change: &dyn Fn(&mut Job), dropped: Option<Disposition>| {
        let mut job = each_second(20_000);
        change(&mut job);
        let found = match tick.assign(&job, run) {
            Assignment::Drop(disposition, _) => Some(disposition),
            _ => None,
        };
        assert_eq!(found, dropped, "{run:?} of {job:?}");
    };
    let skipped = Some(Disposition::MisfireSkipped);
    let with = |misfire| move |job: &mut Job| job.spec.misfire = misfire;
    check(&late, &with(Misfire::Skip), skipped);
    check(&Run { due_at: ms(5_000), ..late.clone() }, &with(Misfire::Skip), None);
    check(&waiting_run(4_999), &with(Misfire::Skip), None);
    check(&Run { attempt: 2, ..late.clone() }, &with(Misfire::Skip), None);
    check(&Run { origin: Origin::Misfire, ..late.clone() }, &with(Misfire::Skip), None);
    check(&late, &|job| job.spec.overlap = Overlap::Wait, None);
    check(&late, &|job| job.spec.delivery = Delivery::AtLeastOnce, None);
    let all = |secs| Misfire::FireAll { window: Duration::from_secs(secs), max: 9 };
    check(&late, &with(all(60)), None);
    check(&late, &with(all(5)), skipped);
    check(&late, &with(Misfire::FireOnce), None);
    // The job's own next scheduled time is missed as well: its catch-up run covers this one too.
    let missed = |job: &mut Job| {
        (job.spec.misfire, job.next_fire_at) = (Misfire::FireOnce, Some(ms(4_999)));
    };
    check(&late, &missed, Some(Disposition::Coalesced));
}

#[test]
fn a_broadcast_has_one_row_for_each_executor() {
    let mut job = each_second(10_000);
    job.spec.route = Route::Broadcast.into();
    assert_eq!(plan(&job, 9_000).fires[0].targets.len(), 3);
}

#[test]
fn jitter_delays_a_fire_by_the_same_time_whenever_it_is_asked() {
    let mut job = each_second(10_000);
    job.spec.jitter = Duration::from_millis(400);
    let dues: Vec<i64> = plan(&job, 14_000)
        .fires
        .iter()
        .map(|fire| fire.due_at.as_millis() - fire.scheduled_at.as_millis())
        .collect();
    assert!(dues.iter().all(|late| (0..=400).contains(late)), "{dues:?}");
    assert!(dues.windows(2).any(|pair| pair[0] != pair[1]), "they differ from fire to fire: {dues:?}");
    assert_eq!(plan(&job, 14_000), plan(&job, 14_000));
}

#[test]
fn nothing_fires_outside_a_jobs_validity() {
    let mut job = each_second(10_000);
    job.spec.valid_until = Some(ms(11_500));
    assert_eq!(summary(&plan(&job, 12_000)), (vec![10_000, 11_000], vec![], None));
    job.spec.valid_from = Some(ms(20_000));
    job.spec.valid_until = None;
    assert_eq!(job.spec.next_after(ms(10_000)), Some(ms(20_000)));
}

#[test]
fn nor_do_fixed_delays() {
    let mut spec = job(Schedule::fixed_delay(Duration::from_secs(7)).unwrap(), 0).spec;
    assert_eq!(spec.next_after_end(ms(10_000)), Some(ms(17_000)));
    spec.valid_until = Some(ms(16_999));
    assert_eq!(spec.next_after_end(ms(10_000)), None);
    spec.valid_until = Some(ms(30_000));
    spec.valid_from = Some(ms(20_000));
    assert_eq!(spec.next_after_end(ms(10_000)), Some(ms(20_000)));
    assert_eq!(spec.next_after_end(ms(15_000)), Some(ms(22_000)));
    assert_eq!(each_second(10_000).spec.next_after_end(ms(10_000)), None);
}

#[test]
fn a_waiting_run_takes_the_place_if_it_is_free() {
    let tick = Tick::new(ms(10_000), &Three, Bugs::default());
    let check = |overlap, running: Option<i64>, due, expected: Assignment| {
        let mut job = each_second(20_000);
        job.spec.overlap = overlap;
        job.running = running.map(RunId);
        assert_eq!(tick.assign(&job, &waiting_run(due)), expected, "{overlap:?}");
    };
    let address = || vec![Target::Address("http://10.0.0.0/".into())];
    check(Overlap::Allow, Some(1), 11_000, Assignment::Send(address()));
    check(Overlap::Wait, None, 10_000, Assignment::Send(address()));
    check(Overlap::Wait, None, 10_001, Assignment::Leave(ms(10_001)));
    check(Overlap::Wait, Some(1), 10_000, Assignment::Leave(ms(11_000)));
    check(Overlap::Skip, Some(1), 10_000, Assignment::Drop(Disposition::Blocked, BLOCKED.into()));
    check(Overlap::Replace, Some(1), 10_000, Assignment::Replace(address()));
    check(Overlap::Skip, Some(42), 10_000, Assignment::Send(address()));
}

/// Version of a run that was opened as claimed and then deferred.
const DEFERRED: i64 = 2;

#[test]
fn a_run_that_waits_to_be_sent_again_is_a_misfire_counted_from_its_first_time() {
    let check = |version, due: i64, now: i64, expected: Assignment| {
        let doubt_since = (version == DEFERRED).then(|| ms(due - 1_000));
        let waiting = Run { version, due_at: ms(due), doubt_since, ..run(42, RunState::Waiting, 10_000) };
        let tick = Tick::new(ms(now), &Three, Bugs::default());
        assert_eq!(tick.assign(&each_second(20_000), &waiting), expected, "due {due} at {now}");
    };
    let skipped = || Assignment::Drop(Disposition::MisfireSkipped, TOO_LATE.into());
    let sent = || Assignment::Send(vec![Target::Address("http://10.0.0.0/".into())]);
    check(1, 10_000, 15_000, sent());
    check(1, 10_000, 15_001, skipped());
    // Denied by its executor and due again at 13 000, but no node was there to send it.
    check(9, 13_000, 16_000, sent());
    check(9, 13_000, 16_001, skipped());
    check(DEFERRED, 14_000, 16_000, sent());
    check(DEFERRED, 14_000, 16_001, skipped());
}

fn waiting_run(due: i64) -> Run {
    let origin = Origin::Manual { key: 1 };
    Run { shard: Shard::UNSPLIT, origin, ..run(42, RunState::Waiting, due) }
}

#[test]
fn a_deferred_run_is_tried_until_its_job_lets_it_be_late_no_longer() {
    let check = |misfire, delivery, since: i64, now: i64, expected: Option<i64>| {
        let mut job = each_second(20_000);
        (job.spec.misfire, job.spec.delivery) = (misfire, delivery);
        let run = run(1, RunState::Claimed, 10_000);
        assert_eq!(
            deferred_until(&job, &run, ms(since), ms(now)),
            expected.map(ms),
            "{misfire:?} {delivery:?} since {since} at {now}"
        );
    };
    let (skip, once) = (Misfire::Skip, Misfire::FireOnce);
    check(skip, Delivery::Probe, 10_000, 10_000, Some(11_000));
    check(skip, Delivery::Probe, 10_000, 12_000, Some(14_000));
    check(skip, Delivery::Probe, 10_000, 14_000, Some(15_000));
    check(skip, Delivery::Probe, 10_000, 15_000, None);
    check(skip, Delivery::AtLeastOnce, 10_000, 15_000, Some(20_000));
    check(skip, Delivery::AtLeastOnce, 10_000, 900_000, Some(910_000));
    check(once, Delivery::Probe, 10_000, 69_000, Some(70_000));
    check(once, Delivery::Probe, 10_000, 70_000, None);
    let all = Misfire::FireAll { window: Duration::from_secs(8), max: 3 };
    check(all, Delivery::Probe, 10_000, 17_000, Some(18_000));
    check(all, Delivery::Probe, 10_000, 18_000, None);
}

#[test]
fn a_claimed_run_that_was_held_for_too_long_is_a_misfire() {
    let check = |change: &dyn Fn(&mut Job, &mut Run), now: i64, expected: Option<Disposition>| {
        let (mut job, mut run) = (each_second(20_000), run(1, RunState::Claimed, 10_000));
        change(&mut job, &mut run);
        assert_eq!(missed_in_hand(&job, &run, ms(now)), expected, "{:?} at {now}", job.spec.misfire);
    };
    use Disposition::{Coalesced, MisfireSkipped};
    let skip = |_: &mut Job, _: &mut Run| {};
    check(&skip, 15_000, None);
    check(&skip, 15_001, Some(MisfireSkipped));
    let once = |job: &mut Job, _: &mut Run| job.spec.misfire = Misfire::FireOnce;
    // The next scheduled time, one second later, is not missed before 16 001: then it covers this one.
    check(&once, 16_000, None);
    check(&once, 16_001, Some(Coalesced));
    let all = |job: &mut Job, _: &mut Run| {
        job.spec.misfire = Misfire::FireAll { window: Duration::from_secs(8), max: 3 };
    };
    check(&all, 18_000, None);
    check(&all, 18_001, Some(MisfireSkipped));
    check(&|_, run| run.origin = Origin::Misfire, 90_000, None);
    check(&|_, run| run.attempt = 2, 90_000, None);
    check(&|_, run| run.origin = Origin::Manual { key: 1 }, 90_000, None);
    // Deferred or sent again: its new time counts, with a little more than the grace in all.
    let again = |run: &mut Run, due: i64| (run.version, run.due_at) = (3, ms(due));
    check(&|_, run| again(run, 15_000), 15_500, None);
    check(&|_, run| again(run, 15_000), 16_001, Some(MisfireSkipped));
    // It may have been sent before, and must be sent at least once.
    let at_least_once = |job: &mut Job| job.spec.delivery = Delivery::AtLeastOnce;
    check(&|job, _| at_least_once(job), 15_001, Some(MisfireSkipped));
    check(
        &|job, run| {
            at_least_once(job);
            again(run, 15_000);
        },
        90_000,
        None,
    );
    // It waited for the run before it.
    check(
        &|job, run| {
            job.spec.overlap = Overlap::Wait;
            again(run, 80_000);
        },
        80_500,
        None,
    );
}

#[test]
fn a_run_of_a_backfill_waits_for_the_place_and_replaces_nobody() {
    for overlap in [Overlap::Skip, Overlap::Wait, Overlap::Replace] {
        let mut job = each_second(20_000);
        (job.spec.overlap, job.running) = (overlap, Some(RunId(41)));
        let origin = Origin::Backfill { of: crate::backfill::BackfillId(7) };
        let waiting = Run { origin, due_at: ms(900_000), ..waiting_run(10_000) };
        let assigned = |job: &Job| Tick::new(ms(900_000), &Three, Bugs::default()).assign(job, &waiting);
        assert!(matches!(assigned(&job), Assignment::Leave(_)), "{overlap}");
        job.running = None;
        assert!(matches!(assigned(&job), Assignment::Send(_)), "however long ago its time was");
    }
}

/// K3.
#[test]
fn a_job_with_a_maximum_of_fires_stops_at_the_last_one() {
    let check = |fires: u64, now, sent: &[i64], next: Option<i64>| {
        let mut job = each_second(10_000);
        (job.spec.max_fires, job.fires) = (Some(5), fires);
        assert_eq!(summary(&plan(&job, now)), (sent.to_vec(), vec![], next), "{fires} of 5");
    };
    // It is claimed when it is due: a fire that is withdrawn before its time is not counted.
    check(0, 8_500, &[], Some(10_000));
    check(0, 10_000, &[10_000], Some(11_000));
    check(0, 13_000, &[10_000, 11_000, 12_000, 13_000], Some(14_000));
    check(0, 15_000, &[10_000, 11_000, 12_000, 13_000, 14_000], None);
    check(4, 10_000, &[10_000], None);
    check(5, 10_000, &[], None);
    check(9, 10_000, &[], None);

    let mut job = each_second(10_000);
    (job.spec.max_fires, job.fires) = (Some(5), 5);
    let tick = Tick::new(ms(10_000), &Three, Bugs::default());
    assert_eq!(tick.next_after(&job, ms(10_000)), NextFire::Never);
    assert_eq!(tick.settle(&job, ms(10_000)).fires, []);
    job.fires = 3;
    assert_eq!(tick.settle(&job, ms(20_000)).fires.len(), 2);
}

/// K1.
#[test]
fn a_job_whose_calendar_has_ended_waits_for_more_data() {
    use std::sync::Arc;

    use cron::{Beyond, Cron, DstRule, OnDays, Shift, Weekdays, WorkCalendar, Workdays, Zone};

    use crate::job::{CalendarId, JobWorkdays};

    let mut calendar = WorkCalendar::new(Weekdays::ALL);
    calendar.known_until = Some("1970-01-02".parse().unwrap());
    let check = |beyond, expected| {
        let mut calendar = calendar.clone();
        calendar.beyond = beyond;
        let mut job = each_second(0);
        let daily = Cron::parse("0 0 0 * * ?").unwrap();
        job.spec.schedule = Schedule::cron(daily, Zone::utc(), DstRule::NATURAL);
        job.spec.workdays = Some(JobWorkdays {
            calendar: CalendarId(1),
            name: "cn".into(),
            revision: 1,
            rule: Workdays::new(Arc::new(calendar), OnDays::Work, Shift::Skip),
        });
        let tick = Tick::new(ms(0), &Three, Bugs::default());
        let next = |after| match tick.next_after(&job, ms(after)) {
            NextFire::At { fire_at, .. } => Some(fire_at.as_millis()),
            other => {
                assert_eq!(other, NextFire::AfterRun);
                None
            }
        };
        assert_eq!((next(0), next(86_400_000)), expected);
    };
    check(Beyond::Stop, (Some(86_400_000), None));
    check(Beyond::Weekdays, (Some(86_400_000), Some(2 * 86_400_000)));
}
