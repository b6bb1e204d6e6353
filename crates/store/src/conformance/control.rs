//! Changes of jobs by users and programs.

use std::time::Duration;

use cron::{Cron, Dialect, DstRule, Schedule, Timetable, Zone};
use engine::policy::{Backoff, Block, Delivery, Misfire, Overlap, Retry, Route};
use engine::{
    Assignment, CancelAnswer, ChildrenMode, Control, Disposition, Job, JobId, JobSpec, Move, Moved, NewJob,
    NextFire, Outcome, Plan, Planner, Run, RunState, Script, ScriptLanguage, Slots, Store as _, StoreError,
    To, Trigger, Verdict,
};
use timer::Timestamp;

use super::Fresh;
use super::bench::{Bench, HOUR, SECOND, Simple, failed, ok};
use crate::{ClearPosition, Clearing, Keep, Page, RunFilter, RunStatus};

fn schedules(bench: &Bench) -> Vec<Schedule> {
    let shanghai = Zone::parse("Asia/Shanghai").unwrap();
    let quartz = Cron::parse("0 0/5 9-17 ? * MON-FRI").unwrap();
    // Longer than XXL-JOB's column.
    let minutes: Vec<String> = (0..59).map(|minute| minute.to_string()).collect();
    let long = Cron::parse(&format!("0 {} * * * ?", minutes.join(","))).unwrap();
    let rules =
        ["daily 09:00-17:30 every 30m on Mon-Fri", "cron 0 0 12 ? * SAT", "workday -1 of month at 18:00"];
    let tokyo = Zone::parse("Asia/Tokyo").unwrap();
    vec![
        Schedule::cron(quartz.clone(), shanghai.clone(), DstRule::NATURAL),
        Schedule::cron(quartz, Zone::utc(), DstRule::QUARTZ),
        Schedule::cron(long, shanghai.clone(), DstRule::QUARTZ),
        Schedule::cron(Cron::parse_in(Dialect::Unix, "*/5 * * * *").unwrap(), shanghai, DstRule::NATURAL),
        Schedule::Timetable(Timetable::parse(&rules, &tokyo, DstRule::NATURAL).unwrap()),
        Schedule::fixed_rate(bench.now, SECOND * 30).unwrap(),
        Schedule::fixed_rate(bench.now, Duration::from_millis(250)).unwrap(),
        Schedule::fixed_delay(Duration::from_millis(1_500)).unwrap(),
        Schedule::once(bench.now + HOUR),
        Schedule::Never,
    ]
}

pub async fn a_job_comes_back_as_it_was_written(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let plain = JobSpec::new(bench.app, "plain", Schedule::Never, "demo");
    let id = bench.store.create_job(&plain).await.unwrap();
    let found = bench.store.job(id).await.unwrap().unwrap();
    assert_eq!(found.spec, plain);
    assert_eq!((found.enabled, found.next_fire_at, found.problem), (false, None, None));

    let full = JobSpec {
        key: Some("nightly/报表".into()),
        valid_from: Some(bench.now),
        valid_until: Some(bench.now + HOUR * 1_000),
        jitter: Duration::from_millis(1_234),
        misfire: Misfire::FireAll { window: HOUR, max: 7 },
        overlap: Overlap::Replace,
        retry: Retry { count: 3, backoff: Backoff::Exponential { first: SECOND, max: HOUR } },
        delivery: Delivery::AtLeastOnce,
        timeout: Some(Duration::from_millis(2_500)),
        handler: "demo".into(),
        param: "{\"a\": 1}\n'quoted' \\ 🦀".into(),
        route: Route::RoundRobin.into(),
        block: Block::CoverEarly.into(),
        children: vec![id, JobId(987_654)],
        children_mode: ChildrenMode::Each,
        alert: true,
        alert_to: "night@example.com,day@example.com".into(),
        author: "张三".into(),
        ..plain
    };
    let created = bench.store.create_job(&full).await.unwrap();
    assert_eq!(bench.store.job(created).await.unwrap().unwrap().spec, full);
    assert_eq!(bench.store.job_by_key("nightly/报表").await.unwrap().unwrap().id, created);

    for schedule in schedules(&bench) {
        let spec = JobSpec { schedule, ..full.clone() };
        bench.control(created, Control::Edit { spec: Box::new(spec.clone()), revision: None }).await;
        let found = bench.store.job(created).await.unwrap().unwrap();
        assert_eq!((found.spec, found.problem), (spec, None));
    }
    for misfire in [Misfire::Skip, Misfire::FireOnce] {
        let spec =
            JobSpec { misfire, overlap: Overlap::Wait, delivery: Delivery::AtMostOnce, ..full.clone() };
        bench.control(created, Control::Edit { spec: Box::new(spec.clone()), revision: None }).await;
        assert_eq!(bench.store.job(created).await.unwrap().unwrap().spec, spec);
    }
}

pub async fn a_script_is_kept_as_it_was_written(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let source = "#!/bin/bash\necho \"$1\" '漢字' \\ 🦀\n";
    for language in [ScriptLanguage::Shell, ScriptLanguage::Python2, ScriptLanguage::Groovy] {
        let script = Script { language, source: source.into(), edited_at: bench.now };
        let spec = JobSpec { script: Some(script.clone()), handler: String::new(), ..bench.hourly() };
        let id = bench.store.create_job(&spec).await.unwrap();
        let edit = JobSpec { script: None, name: "renamed".into(), ..spec };
        bench.control(id, Control::Edit { spec: Box::new(edit), revision: None }).await;
        let found = bench.store.job(id).await.unwrap().unwrap().spec;
        let kept = found.script.expect("an edit of the job leaves its script as it is");
        assert_eq!((found.name.as_str(), kept.language, kept.source), ("renamed", language, script.source));
        assert!(kept.edited_at >= bench.now - SECOND, "it was written at {:?}", kept.edited_at);
    }
}

pub async fn a_started_job_fires_first_after_now(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let spec = JobSpec {
        schedule: Schedule::fixed_rate(Timestamp::from_millis(0), SECOND).unwrap(),
        ..bench.hourly()
    };
    let job = bench.store.create_job(&spec).await.unwrap();
    let done = bench.store.control(job, &Control::Start, 1_000, &Simple { now: bench.now }).await.unwrap();
    assert!(done.at >= bench.now);
    assert_eq!(bench.next_of(job).await, spec.next_after(done.at));
    let found = bench.store.job(job).await.unwrap();
    bench.control(job, Control::Start).await;
    assert_eq!(bench.store.job(job).await.unwrap(), found, "starting again changes nothing");

    bench.control(job, Control::Stop).await;
    let found = bench.store.job(job).await.unwrap().unwrap();
    assert_eq!((found.enabled, found.next_fire_at), (false, None));
    assert!(bench.claim_at(bench.now + HOUR).await.orders.is_empty());
}

pub async fn a_job_without_an_instant_left_cannot_be_started(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let over = JobSpec { schedule: Schedule::once(bench.now - HOUR), ..bench.hourly() };
    for spec in [over, JobSpec { valid_until: Some(bench.now), ..bench.hourly() }] {
        let job = bench.store.create_job(&spec).await.unwrap();
        let refused = bench.store.control(job, &Control::Start, 1_000, &Simple { now: bench.now }).await;
        assert!(matches!(refused, Err(StoreError::Invalid(_))), "{refused:?}");
        assert!(!bench.store.job(job).await.unwrap().unwrap().enabled);
    }
}

pub async fn a_stop_cancels_what_nobody_has_sent(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let mut spec = bench.hourly();
    spec.retry = Retry { count: 1, backoff: Backoff::Fixed { delay: SECOND } };
    let job = bench.start(&spec).await;
    let running = bench.run(job).await;
    let retried = bench.run(job).await;
    bench.end(retried.id, Outcome::Failed("again".into())).await;
    let claimed = bench.fire(job).await.remove(0).run;
    let by_hand = bench.trigger(job, 1).await;

    assert_eq!(bench.control(job, Control::Stop).await, 1);
    assert_eq!(bench.cancelling(job).await, 1);
    let states: Vec<_> = bench.open_of(job).await.iter().map(|run| (run.id, run.state)).collect();
    let expected =
        [(running.id, RunState::Running), (claimed.id, RunState::Cancelling), (by_hand, RunState::Waiting)];
    assert_eq!(states, expected, "the retry is cancelled at once");
    assert_eq!(bench.dispositions(job).await, [Disposition::Cancelled]);

    let to = To::Running { address: None, check_at: claimed.due_at, doubt_since: None };
    let wanted = Move { run: claimed.id, version: claimed.version, to, trouble: None };
    assert_eq!(bench.store.move_runs(&[wanted]).await.unwrap(), [Moved::Cancelling]);
    let asked = bench.store.asked_to_cancel(&bench.node, None, 100).await.unwrap();
    assert_eq!(asked.iter().map(|run| run.id).collect::<Vec<_>>(), [claimed.id]);
    let answer = CancelAnswer { run: claimed.id, version: asked[0].version, sent: None };
    let stale = CancelAnswer { version: claimed.version - 1, ..answer.clone() };
    let planner = Simple { now: bench.now };
    bench.store.answer_cancel(&[stale], &planner).await.unwrap();
    assert_eq!(bench.cancelling(job).await, 1, "an answer about an older version is none");
    bench.store.answer_cancel(&[answer.clone(), answer], &planner).await.unwrap();
    assert_eq!(bench.cancelling(job).await, 0);
    let last = bench.store.history(job, None, 10).await.unwrap().pop().unwrap();
    assert_eq!((last.run, last.unsent.first), (Some(claimed.id), claimed.scheduled_at));
    assert_eq!(bench.end(claimed.id, ok()).await, Verdict::Missing, "a withdrawn fire leaves no run");
    bench.store.answer_cancel(&[], &planner).await.unwrap();
}

pub async fn a_stop_withdraws_many_runs_some_at_a_time(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let (store, planner) = (&bench.store, Simple { now: bench.now });
    let job = bench.start(&bench.hourly()).await;
    for _ in 0..7 {
        bench.fire(job).await;
    }
    let running = bench.run(job).await;
    let by_hand = bench.trigger(job, 1).await;
    let cancelling = async || bench.cancelling(job).await;
    let withdraw = async |max| store.withdraw(&[job], max).await.map(|left| !left.is_empty());

    let stopped = store.control(job, &Control::Stop, 3, &planner).await.unwrap();
    assert_eq!((stopped.more, stopped.cancelling), (true, 3));
    let later = stopped.at + HOUR;
    assert_eq!(store.withdrawals(later, 10).await, Ok(vec![job]));
    assert_eq!(store.withdrawals(stopped.at, 10).await, Ok(vec![]), "its own node is at it");
    assert_eq!((withdraw(3).await, cancelling().await), (Ok(true), 6));
    assert_eq!((withdraw(3).await, cancelling().await), (Ok(false), 7));
    assert_eq!(withdraw(3).await, Ok(false));
    assert_eq!(store.withdrawals(later, 10).await, Ok(vec![]));
    assert!(bench.open(running.id).await.unwrap().recalled, "it is not tried again");
    assert!(!bench.open(by_hand).await.unwrap().recalled, "it is not the schedule's");

    let ask = async |after| store.asked_to_cancel(&bench.node, after, 4).await.unwrap();
    let first = ask(None).await;
    let rest = ask(first.last().map(|run| run.id)).await;
    let asked: Vec<_> = first.into_iter().chain(rest).collect();
    assert_eq!(asked.len(), 7);
    let answers: Vec<_> =
        asked.iter().map(|run| CancelAnswer { run: run.id, version: run.version, sent: None }).collect();
    store.answer_cancel(&answers, &planner).await.unwrap();
    assert_eq!(cancelling().await, 0);

    let deleted = store.control(job, &Control::Delete, 1, &planner).await.unwrap();
    assert!(deleted.more);
    while withdraw(1).await.unwrap() {}
    assert_eq!(bench.open(by_hand).await, None);
    assert_eq!(bench.open_of(job).await.len(), 1, "the executor has it");
}

pub async fn no_operation_on_a_job_writes_more_rows_at_once_than_a_step(fresh: Fresh) {
    const STEP: usize = 3;
    let bench = Bench::new(fresh).await;
    let (store, planner) = (&bench.store, Simple { now: bench.now });
    let small = |what: &str| {
        let rows = bench.faults.take_most_rows();
        assert!((1..=STEP as u64).contains(&rows), "{what}: {rows} rows of one table");
    };
    let job = bench.start(&bench.hourly()).await;
    let mut runs = Vec::new();
    for _ in 0..9 {
        runs.push(bench.fire(job).await.remove(0).run);
    }
    for key in 0..7 {
        bench.trigger(job, key).await;
    }
    // An edit waits until few fires are left that are claimed and not due.
    assert_eq!(store.hold_back(&[job], STEP).await, Ok(vec![job]));
    for run in &runs[..6] {
        bench.accept(run).await;
    }
    assert_eq!(store.hold_back(&[job], STEP).await, Ok(vec![]));
    bench.faults.take_most_rows();
    let spec = Box::new(JobSpec { name: "edited".into(), ..bench.hourly() });
    let edited = store.control(job, &Control::Edit { spec, revision: None }, STEP, &planner).await.unwrap();
    assert_eq!(edited.cancelling, 3);
    small("edit");
    for control in [Control::Stop, Control::Delete] {
        assert!(store.control(job, &control, STEP, &planner).await.unwrap().more);
        while !store.withdraw(&[job], STEP).await.unwrap().is_empty() {}
        small(&format!("{control:?}"));
    }
    for run in &runs[..6] {
        bench.end(run.id, failed()).await;
    }
    bench.faults.take_most_rows();
    let clearing = Clearing { apps: None, job: Some(job), keep: Keep::Nothing };
    let (mut position, mut cleared) = (ClearPosition::default(), 0);
    while let more @ 1.. = store.clear_runs(&clearing, &mut position, STEP).await.unwrap() {
        cleared += more;
    }
    assert_eq!(cleared, 6 + 7, "the runs of the executor, and those by hand");
    small("clear");
}

pub async fn fires_are_claimed_when_they_are_due_while_many_are_claimed_ahead(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let job = bench.store.create_job(&bench.hourly()).await.unwrap();
    let ahead = Ahead(Simple { now: bench.now });
    bench.store.control(job, &Control::Start, 1, &ahead).await.unwrap();
    let claim = async |at| {
        let claim = bench.store.claim_due(&bench.node, at, Slots::ALL, 10, &ahead).await.unwrap();
        claim.orders.len()
    };
    assert_eq!((claim(bench.now).await, claim(bench.now + HOUR).await), (1, 1), "an hour ahead");
    assert_eq!(bench.store.hold_back(&[job], 2).await, Ok(vec![]));
    assert_eq!(bench.store.hold_back(&[job], 1).await, Ok(vec![job]));
    assert_eq!(
        (claim(bench.now + HOUR * 2).await, claim(bench.now + HOUR * 3).await),
        (0, 1),
        "when it is due"
    );
}

/// Claims every fire an hour ahead.
struct Ahead(Simple);

impl Planner for Ahead {
    fn plan(&self, job: &Job) -> Plan {
        let at = job.next_fire_at.expect("only jobs with a next fire are due");
        Plan { next: self.next_after(job, at), ..self.0.plan(job) }
    }

    fn assign(&self, job: &Job, run: &Run) -> Assignment {
        self.0.assign(job, run)
    }

    fn next_after(&self, job: &Job, after: Timestamp) -> NextFire {
        let next = job.spec.next_after(after).expect("an hourly job goes on");
        NextFire::At { fire_at: next, claim_at: self.claim_at(job, next) }
    }

    fn claim_at(&self, _: &Job, fire_at: Timestamp) -> Timestamp {
        fire_at - HOUR
    }
}

pub async fn a_job_is_not_started_again_before_its_stop_is_finished(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let (store, planner) = (&bench.store, Simple { now: bench.now });
    let mut spec = bench.hourly();
    spec.retry = Retry { count: 1, backoff: Backoff::Fixed { delay: SECOND } };
    let job = bench.start(&spec).await;
    let running = [bench.run(job).await, bench.run(job).await, bench.run(job).await];
    assert!(store.control(job, &Control::Stop, 1, &planner).await.unwrap().more);
    // A run that is not withdrawn yet fails: its retry is withdrawn too.
    bench.end(running[2].id, Outcome::Failed("again".into())).await;
    let retry = bench.open_of(job).await.into_iter().find(|run| run.attempt == 2).unwrap();
    bench.control(job, Control::Start).await;
    assert_eq!(bench.open(retry.id).await, None);
    assert!(bench.open(running[1].id).await.unwrap().recalled);
    assert_eq!(store.withdraw(&[job], 1).await, Ok(vec![]));
    // The first two fires already have their runs.
    for _ in 0..2 {
        assert!(bench.fire(job).await.is_empty());
    }
    let fired = bench.fire(job).await.remove(0).run;
    assert_eq!(
        bench.open(fired.id).await.map(|run| (run.state, run.recalled)),
        Some((RunState::Claimed, false))
    );
}

pub async fn a_withdrawn_run_is_no_failure(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let store = &bench.store;
    let mut spec = bench.hourly();
    spec.retry = Retry { count: 1, backoff: Backoff::Fixed { delay: SECOND } };
    let job = bench.start(&spec).await;
    let failed = bench.run(job).await;
    bench.end(failed.id, Outcome::Failed("once".into())).await;
    let claimed = bench.fire(job).await.remove(0).run;
    let by_hand = bench.trigger(job, 1).await;
    bench.control(job, Control::Delete).await;
    let answer = CancelAnswer { run: claimed.id, version: claimed.version, sent: None };
    store.answer_cancel(&[answer], &Simple { now: bench.now }).await.unwrap();

    assert_eq!(store.run(claimed.id).await, Ok(None));
    assert_eq!(store.run(by_hand).await.unwrap().unwrap().state, RunState::Cancelled);
    assert_eq!(
        bench.dispositions(job).await,
        [Disposition::Cancelled; 3],
        "the retry, the manual run, the fire"
    );
    assert_eq!(bench.listed_as_failed().await, 1, "only the run that failed");
    let all = RunFilter::default();
    let tally = store.run_tally(&all, 10).await.unwrap();
    assert_eq!((tally.running, tally.succeeded, tally.failed), (0, 0, 1));
    let going_on = RunFilter { status: Some(RunStatus::Running), ..all };
    assert_eq!(store.run_page(&going_on, Page::first(10)).await.unwrap().rows, []);
    store.refresh_report(failed.scheduled_at).await.unwrap();
    store.refresh_report(bench.now).await.unwrap();
    let days = store.report((bench.now - HOUR, failed.scheduled_at), None).await.unwrap();
    let counts = days.iter().fold((0, 0), |sum, day| (sum.0 + day.running, sum.1 + day.failed));
    assert_eq!(counts, (0, 1));
}

pub async fn open_runs_are_counted_for_each_app(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let other = bench.store.ensure_app("other").await.unwrap();
    for (app, runs) in [(bench.app, 2), (other, 1)] {
        let job = bench.start(&JobSpec { app, ..bench.hourly() }).await;
        for _ in 0..runs {
            bench.run(job).await;
        }
        bench.control(job, Control::Stop).await;
    }
    let mut counted = bench.store.open_by_app(2).await.unwrap();
    counted.sort();
    assert_eq!(counted, [(bench.app, 2), (other, 1)]);
    assert_eq!(bench.store.open_by_app(3).await, Ok(vec![]), "too few to count them apart");
}

pub async fn an_edit_cancels_the_old_instants_and_plans_the_new_ones(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let job = bench.start(&bench.hourly()).await;
    let claimed = bench.fire(job).await.remove(0).run;
    let spec = JobSpec {
        schedule: Schedule::fixed_rate(bench.now + SECOND * 7_200, HOUR).unwrap(),
        ..bench.hourly()
    };
    assert_eq!(bench.control(job, Control::Edit { spec: Box::new(spec), revision: Some(0) }).await, 1);
    let found = bench.store.job(job).await.unwrap().unwrap();
    assert_eq!((found.enabled, found.revision), (true, 1));
    let next = bench.now + HOUR * 2;
    assert_eq!(found.next_fire_at, Some(next));

    assert!(
        bench.claim_at(next).await.orders.is_empty(),
        "while a run is being cancelled its job is left alone"
    );
    let asked = bench.store.asked_to_cancel(&bench.node, None, 100).await.unwrap();
    let answer = CancelAnswer { run: claimed.id, version: asked[0].version, sent: None };
    bench.store.answer_cancel(&[answer], &Simple { now: bench.now }).await.unwrap();
    assert_eq!(bench.claim_at(next).await.orders[0].run.scheduled_at, next);
}

pub async fn an_edit_of_an_older_revision_is_refused(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let job = bench.create(|_| {}).await;
    let spec = bench.store.job(job).await.unwrap().unwrap().spec;
    let edit = |name: &str, revision| Control::Edit {
        spec: Box::new(JobSpec { name: name.into(), ..spec.clone() }),
        revision: Some(revision),
    };
    let planner = Simple { now: bench.now };
    bench.store.control(job, &edit("one", 0), 1_000, &planner).await.unwrap();
    let refused = bench.store.control(job, &edit("two", 0), 1_000, &planner).await;
    assert!(matches!(refused, Err(StoreError::Conflict(_))), "{refused:?}");
    assert_eq!(bench.store.job(job).await.unwrap().unwrap().spec.name, "one");
    bench.store.control(job, &edit("two", 1), 1_000, &planner).await.unwrap();
    assert_eq!(bench.store.job(job).await.unwrap().unwrap().spec.name, "two");
}

pub async fn a_deleted_job_is_gone_and_its_runs_are_cancelled(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let job = bench.start(&JobSpec { key: Some("k".into()), ..bench.hourly() }).await;
    let claimed = bench.fire(job).await.remove(0).run;
    let by_hand = bench.trigger(job, 1).await;
    assert_eq!(bench.control(job, Control::Delete).await, 1);
    assert_eq!(bench.store.job(job).await, Ok(None));
    assert_eq!(bench.store.job_by_key("k").await, Ok(None));
    assert_eq!(bench.open(by_hand).await, None);
    let asked = bench.store.asked_to_cancel(&bench.node, None, 100).await.unwrap();
    assert_eq!(asked.iter().map(|run| run.id).collect::<Vec<_>>(), [claimed.id]);
    let answer = CancelAnswer { run: claimed.id, version: asked[0].version, sent: None };
    bench.store.answer_cancel(&[answer], &Simple { now: bench.now }).await.unwrap();
    assert_eq!(bench.dispositions(job).await, [Disposition::Cancelled; 2]);
    let records: Vec<_> = bench.records(job).await.iter().map(|record| (record.id, record.state)).collect();
    assert_eq!(records, [(by_hand, RunState::Cancelled)], "somebody may have the id of a manual run");
    bench.start(&JobSpec { key: Some("k".into()), ..bench.hourly() }).await;
}

pub async fn an_answer_that_comes_too_late_moves_the_job_past_the_instant(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let job = bench.start(&bench.hourly()).await;
    let claimed = bench.fire(job).await.remove(0).run;
    let spec = Box::new(JobSpec { param: "new".into(), ..bench.hourly() });
    assert_eq!(bench.control(job, Control::Edit { spec, revision: None }).await, 1);
    assert_eq!(bench.next_of(job).await, Some(claimed.scheduled_at), "it would fire again");

    let asked = bench.store.asked_to_cancel(&bench.node, None, 100).await.unwrap().remove(0);
    let to =
        |check_at| To::Running { address: Some("http://10.0.0.3:1".into()), check_at, doubt_since: None };
    let answer = CancelAnswer { run: asked.id, version: asked.version, sent: Some(to(asked.due_at + HOUR)) };
    bench.store.answer_cancel(&[answer], &Simple { now: bench.now }).await.unwrap();
    assert_eq!(bench.next_of(job).await, Some(claimed.scheduled_at + HOUR));
    let run = bench.open(claimed.id).await.unwrap();
    assert_eq!((run.state, run.check_at), (RunState::Running, asked.due_at + HOUR));
    assert_eq!(bench.cancelling(job).await, 0);
    assert!(bench.claim_at(claimed.scheduled_at).await.orders.is_empty());

    // A run that was never dispatched cannot have been returned.
    let claimed = bench.fire(job).await.remove(0).run;
    bench.control(job, Control::Stop).await;
    let asked = bench.store.asked_to_cancel(&bench.node, None, 100).await.unwrap().remove(0);
    let sent = Some(To::Waiting { due_at: bench.now });
    let answer = CancelAnswer { run: claimed.id, version: asked.version, sent };
    let refused = bench.store.answer_cancel(&[answer], &Simple { now: bench.now }).await;
    assert!(matches!(refused, Err(StoreError::Invalid(_))), "{refused:?}");
}

pub async fn a_report_about_a_run_that_was_to_be_cancelled_moves_the_job_past_it(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let job = bench.start(&bench.hourly()).await;
    let claimed = bench.fire(job).await.remove(0).run;
    let spec = Box::new(JobSpec { param: "new".into(), ..bench.hourly() });
    bench.control(job, Control::Edit { spec, revision: None }).await;
    assert_eq!(bench.end(claimed.id, ok()).await, Verdict::Applied);
    assert_eq!(bench.cancelling(job).await, 0);
    assert_eq!(bench.next_of(job).await, Some(claimed.scheduled_at + HOUR));
    assert!(bench.claim_at(claimed.scheduled_at).await.orders.is_empty());
    assert_eq!(bench.fire(job).await.len(), 1);
}

/// Two fires are claimed when the job is edited, and its node sends the later one all the same.
pub async fn a_fire_before_one_that_was_sent_all_the_same_is_opened_again(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let job = bench.start(&bench.hourly()).await;
    let [first, second] = [bench.fire(job).await.remove(0).run, bench.fire(job).await.remove(0).run];
    let spec = Box::new(JobSpec { param: "new".into(), ..bench.hourly() });
    assert_eq!(bench.control(job, Control::Edit { spec, revision: None }).await, 2);

    let to = To::Running { address: None, check_at: second.due_at + HOUR, doubt_since: None };
    let sent = CancelAnswer { run: second.id, version: second.version, sent: Some(to) };
    let released = CancelAnswer { run: first.id, version: first.version, sent: None };
    for answer in [sent, released] {
        bench.store.answer_cancel(&[answer], &Simple { now: bench.now }).await.unwrap();
    }
    assert_eq!(bench.next_of(job).await, Some(second.scheduled_at + HOUR));
    let claimed = bench.claim_waiting_at(first.due_at).await.orders;
    let times: Vec<Timestamp> = claimed.iter().map(|order| order.run.scheduled_at).collect();
    assert_eq!(times, [first.scheduled_at]);
}

pub async fn a_job_is_not_started_before_its_nodes_have_released_earlier_fires(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let job = bench.start_many(bench.hourly(), 1, bench.now).await[0];
    let claimed = bench.fire(job).await.remove(0).run;
    assert_eq!(bench.control(job, Control::Stop).await, 1);
    let planner = Simple { now: bench.now };
    let refused = bench.store.control(job, &Control::Start, 1_000, &planner).await;
    assert!(matches!(refused, Err(StoreError::Unsettled(_))), "{refused:?}");
    let answer = CancelAnswer { run: claimed.id, version: claimed.version, sent: None };
    bench.store.answer_cancel(&[answer], &planner).await.unwrap();
    assert_eq!(bench.control(job, Control::Start).await, 0);
    assert!(bench.claim_waiting_at(bench.now + HOUR / 2).await.orders.is_empty(), "it was stopped then");
}

pub async fn a_run_that_ends_while_it_is_taken_back_keeps_its_address(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let job = bench.start(&bench.hourly()).await;
    let claimed = bench.fire(job).await.remove(0).run;
    bench.control(job, Control::Stop).await;
    assert_eq!(bench.end(claimed.id, ok()).await, Verdict::Applied);
    let address = Some("http://10.0.0.3:1".to_owned());
    let to = To::Running { address: address.clone(), check_at: claimed.due_at + HOUR, doubt_since: None };
    let answer = CancelAnswer { run: claimed.id, version: claimed.version, sent: Some(to) };
    bench.store.answer_cancel(&[answer], &Simple { now: bench.now }).await.unwrap();
    assert_eq!(bench.records(job).await[0].address, address);
}

pub async fn a_key_names_one_job(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let keyed = |key: &str| JobSpec { key: Some(key.into()), ..bench.hourly() };
    let one = bench.store.create_job(&keyed("one")).await.unwrap();
    let two = bench.store.create_job(&keyed("two")).await.unwrap();
    let refused = bench.store.create_job(&keyed("one")).await;
    assert!(matches!(refused, Err(StoreError::Conflict(_))), "{refused:?}");
    let edit = Control::Edit { spec: Box::new(keyed("one")), revision: None };
    let planner = Simple { now: bench.now };
    let refused = bench.store.control(two, &edit, 1_000, &planner).await;
    assert!(matches!(refused, Err(StoreError::Conflict(_))), "{refused:?}");
    bench.store.control(one, &edit, 1_000, &planner).await.unwrap();
    assert_eq!(bench.store.job_by_key("two").await.unwrap().unwrap().id, two);
    assert_eq!(bench.store.job_by_key("TWO").await.unwrap(), None, "upper and lower case differ");
    assert_eq!(bench.store.job_by_key("no\0key").await.unwrap(), None);
    // Several jobs may have no key.
    bench.create(|_| {}).await;
    bench.create(|_| {}).await;
}

pub async fn a_job_that_does_not_exist_cannot_be_controlled(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let nobody = JobId(987_654);
    let planner = Simple { now: bench.now };
    let edit = Control::Edit { spec: Box::new(bench.hourly()), revision: None };
    for control in [Control::Start, Control::Stop, edit, Control::Delete] {
        let refused = bench.store.control(nobody, &control, 1_000, &planner).await.map(|_| ());
        assert_eq!(refused, Err(StoreError::NoSuchJob(nobody)));
    }
    let trigger = Trigger { key: 1, at: Some(bench.now), param: None, address: None, by: None };
    assert_eq!(bench.store.trigger(nobody, &trigger).await, Err(StoreError::NoSuchJob(nobody)));
    assert_eq!(bench.store.job(nobody).await, Ok(None));
    assert_eq!(bench.cancelling(nobody).await, 0);
}

pub async fn a_trigger_asked_for_twice_opens_one_run(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let (job, other) = (bench.create(|_| {}).await, bench.create(|_| {}).await);
    let trigger = Trigger {
        key: -5,
        at: Some(bench.now + HOUR),
        param: Some("by hand".into()),
        address: Some("http://10.0.0.8:1".into()),
        by: None,
    };
    let run = bench.store.trigger(job, &trigger).await.unwrap();
    assert_eq!(bench.store.trigger(job, &Trigger { param: None, ..trigger.clone() }).await, Ok(run));
    assert_ne!(bench.store.trigger(other, &trigger).await, Ok(run));
    assert_ne!(bench.store.trigger(job, &Trigger { key: 6, ..trigger.clone() }).await, Ok(run));

    let found = bench.open(run).await.unwrap();
    assert_eq!(
        (found.param.as_deref(), found.address.as_deref()),
        (Some("by hand"), Some("http://10.0.0.8:1"))
    );
    assert_eq!((Some(found.due_at), Some(found.scheduled_at)), (trigger.at, trigger.at));
    assert!(bench.claim_waiting_at(bench.now).await.orders.is_empty(), "it is not due");
    assert_eq!(bench.claim_waiting_at(found.due_at).await.orders.len(), 3);
    bench.end(run, ok()).await;
    assert_eq!(bench.store.trigger(job, &trigger).await, Ok(run), "also when it is over");
}

pub async fn texts_come_back_as_they_were_or_are_refused(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let spec = |name: &str, param: &str| JobSpec { name: name.into(), param: param.into(), ..bench.hourly() };
    let odd = "🦀 <b>'\"\\%_;-- ?$1 \u{202e}\r\n\t名";
    for (name, param) in [(odd, odd), (&"名".repeat(255), &"p".repeat(60_000)), ("", "")] {
        let job = bench.store.create_job(&spec(name, param)).await.unwrap();
        let found = bench.store.job(job).await.unwrap().unwrap().spec;
        assert_eq!((found.name.as_str(), found.param.as_str()), (name, param));
    }
    for (name, param) in [("a\0b", ""), ("", "a\0b"), (&"x".repeat(256), "")] {
        let refused = bench.store.create_job(&spec(name, param)).await;
        assert!(matches!(refused, Err(StoreError::Invalid(_))), "{refused:?}");
    }
    // Too large for some databases; no panic, and no silent truncation in any.
    let huge = "p".repeat(1_000_000);
    match bench.store.create_job(&spec("huge", &huge)).await {
        Ok(job) => assert_eq!(bench.store.job(job).await.unwrap().unwrap().spec.param, huge),
        Err(refused) => assert!(matches!(refused, StoreError::Invalid(_)), "{refused:?}"),
    }
    let job = bench.start(&bench.hourly()).await;
    let trigger = |param: &str| Trigger {
        key: 1,
        at: Some(bench.now),
        param: Some(param.into()),
        address: None,
        by: None,
    };
    let refused = bench.store.trigger(job, &trigger("a\0b")).await;
    assert!(matches!(refused, Err(StoreError::Invalid(_))), "{refused:?}");
    let run = bench.store.trigger(job, &trigger(odd)).await.unwrap();
    assert_eq!(bench.open(run).await.unwrap().param.as_deref(), Some(odd));

    // A message of an executor is never rejected: it is truncated and marked as such.
    bench.claim_waiting_at(bench.now).await;
    bench.end(run, Outcome::Succeeded("a\0b".into())).await;
    let message = bench.records(job).await.pop().unwrap().message.unwrap();
    assert_eq!(message, "a\u{fffd}b");
    let run = bench.run(job).await;
    bench.end(run.id, Outcome::Failed("名".repeat(100_000))).await;
    let message = bench.records(job).await.pop().unwrap().message.unwrap();
    assert!(message.ends_with("… (cut)") && message.chars().count() < 15_010);
}

pub async fn a_job_is_put_with_all_that_belongs_to_it_or_not_at_all(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let planner = Simple { now: bench.now };
    let tags = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let new = NewJob { enabled: true, tags: tags(&["b", "a"]), ..NewJob::stopped(bench.hourly()) };
    let id = bench.store.add_job(&new, &planner).await.unwrap();
    let look = async || bench.store.job_rows(&[id]).await.unwrap().pop().unwrap();
    let row = look().await;
    assert_eq!((row.job.enabled, row.tags, row.job.next_fire_at.is_some()), (true, tags(&["a", "b"]), true));

    let put = async |spec: &JobSpec, revision, enabled, words: &[&str]| {
        let (spec, remark) = (Box::new(spec.clone()), String::new());
        let control = Control::Put { spec, revision, enabled, tags: tags(words), remark };
        bench.store.control(id, &control, 1_000, &planner).await
    };
    let other = JobSpec { name: "other".into(), ..bench.hourly() };
    put(&other, Some(0), Some(false), &["c"]).await.unwrap();
    let row = look().await;
    assert_eq!((row.job.enabled, row.tags, row.job.spec.name.as_str()), (false, tags(&["c"]), "other"));
    let revision = row.job.revision;
    put(&other, Some(revision), None, &["d"]).await.unwrap();
    let row = look().await;
    assert_eq!(
        (row.job.enabled, row.tags, row.job.revision),
        (false, tags(&["d"]), revision),
        "no new definition"
    );

    // A change that fails in one part changes nothing.
    let before = look().await;
    let outdated = put(&bench.hourly(), Some(revision + 7), Some(true), &["e"]).await;
    assert!(matches!(outdated, Err(StoreError::Conflict(_))), "{outdated:?}");
    let over = JobSpec { schedule: Schedule::Never, ..bench.hourly() };
    assert!(matches!(put(&over, None, Some(true), &["e"]).await, Err(StoreError::Invalid(_))));
    assert!(matches!(put(&bench.hourly(), None, Some(true), &["e\0"]).await, Err(StoreError::Invalid(_))));
    assert_eq!(look().await, before);
    let jobs = bench.store.jobs(None, 10).await.unwrap().len();
    let unstartable = NewJob { enabled: true, ..NewJob::stopped(over) };
    assert!(bench.store.add_job(&unstartable, &planner).await.is_err());
    assert_eq!(bench.store.jobs(None, 10).await.unwrap().len(), jobs, "it is not added, stopped");
    put(&bench.hourly(), None, Some(true), &[]).await.unwrap();
    let row = look().await;
    assert_eq!((row.job.enabled, row.tags, row.job.next_fire_at.is_some()), (true, vec![], true));
}

pub async fn a_definition_and_its_script_are_put_together_or_not_at_all(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let (store, planner) = (&bench.store, Simple { now: bench.now });
    let script = |source: &str| {
        Some(Script { language: ScriptLanguage::Shell, source: source.into(), edited_at: bench.now - HOUR })
    };
    let spec =
        |name: &str, source: &str| JobSpec { name: name.into(), script: script(source), ..bench.hourly() };
    let new = NewJob { enabled: true, ..NewJob::stopped(spec("one", "echo 1")) };
    let id = store.add_job(&new, &planner).await.unwrap();
    let look = async || {
        let job = store.job(id).await.unwrap().unwrap();
        let versions = store.script_versions(id).await.unwrap();
        let own = job.spec.script.as_ref().expect("it has a script");
        assert_eq!((&own.source, Some(own.edited_at)), (&versions[0].source, versions[0].saved_at));
        (job, versions)
    };
    let (job, versions) = look().await;
    assert_eq!((versions.len(), versions[0].source.as_str()), (1, "echo 1"));

    let put = async |spec: JobSpec, revision| {
        let remark = format!("{} it", spec.name);
        let put = Control::Put { spec: Box::new(spec), revision, enabled: None, tags: vec![], remark };
        store.control(id, &put, 1_000, &planner).await
    };
    put(spec("two", "echo 2"), Some(job.revision)).await.unwrap();
    let (edited, versions) = look().await;
    assert_eq!((edited.spec.name.as_str(), versions.len()), ("two", 2));
    assert!(edited.revision > job.revision, "who edits it has to read it again");
    put(spec("two", "echo 2"), Some(edited.revision)).await.unwrap();
    assert_eq!(look().await, (edited.clone(), versions.clone()), "nothing is new");

    // A change that fails in one part changes nothing.
    let outdated = put(spec("three", "echo 3"), Some(job.revision)).await;
    assert!(matches!(outdated, Err(StoreError::Conflict(_))), "{outdated:?}");
    for (name, source) in [("three\0", "echo 3"), ("three", "echo 3\0")] {
        assert!(matches!(put(spec(name, source), None).await, Err(StoreError::Invalid(_))), "{name:?}");
        let new = NewJob::stopped(spec(name, source));
        assert!(matches!(store.add_job(&new, &planner).await, Err(StoreError::Invalid(_))), "{name:?}");
    }
    assert_eq!(look().await, (edited, versions));
    assert_eq!(store.jobs(None, 10).await.unwrap().len(), 1);

    // A remark is stored only with a new script.
    put(spec("three", "echo 2"), None).await.unwrap();
    let long = "x".repeat(1_000);
    assert!(matches!(put(spec(&long, "echo 3"), None).await, Err(StoreError::Invalid(_))));
    let remarks: Vec<String> = look().await.1.into_iter().map(|version| version.remark).collect();
    assert_eq!(remarks, ["two it", ""]);
    assert_eq!(store.job_rows(&[id]).await.unwrap()[0].script_remark, "two it");
}
