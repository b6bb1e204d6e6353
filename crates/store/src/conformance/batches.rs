//! Changes of many jobs in one transaction.

use cron::Schedule;
use engine::{
    AppId, CancelAnswer, Change, Control, Disposition, JobId, JobSpec, NewJob, RunState, Script,
    ScriptLanguage, Store as _, StoreError,
};

use super::Fresh;
use super::bench::{Bench, HOUR, Simple};

fn add(spec: JobSpec) -> Change {
    Change::Add(Box::new(NewJob::stopped(spec)))
}

fn edit(job: JobId, spec: JobSpec, revision: Option<i64>) -> Change {
    Change::Control(job, Control::Edit { spec: Box::new(spec), revision })
}

pub async fn many_jobs_are_changed_together_each_as_if_alone(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let (store, planner) = (&bench.store, Simple { now: bench.now });
    let mut jobs = Vec::new();
    for _ in 0..5 {
        let job = bench.start(&bench.hourly()).await;
        bench.fire(job).await;
        jobs.push(job);
    }
    let [stopped, deleted, edited, put, untouched] = jobs[..] else { unreachable!() };
    bench.trigger(deleted, 1).await;
    let idle = bench.create(|spec| spec.schedule = bench.hourly().schedule).await;
    let later = Schedule::fixed_rate(bench.now + HOUR * 10, HOUR).unwrap();
    let script = Script { language: ScriptLanguage::Shell, source: "date".into(), edited_at: bench.now };
    let spec = JobSpec { key: Some("new".into()), script: Some(script), ..bench.hourly() };
    let tags = vec!["b".into(), "a".into()];
    let new = NewJob { spec: spec.clone(), enabled: true, tags, remark: "first".into() };
    let changes = [
        Change::Control(stopped, Control::Stop),
        Change::Control(deleted, Control::Delete),
        edit(edited, JobSpec { schedule: later.clone(), ..bench.hourly() }, Some(0)),
        Change::Control(
            put,
            Control::Put {
                spec: Box::new(JobSpec { name: "put".into(), ..bench.hourly() }),
                revision: Some(0),
                enabled: Some(false),
                tags: vec!["t".into()],
                remark: String::new(),
            },
        ),
        Change::Control(idle, Control::Start),
        Change::Add(Box::new(new)),
    ];
    let done = store.change_jobs(&changes, false, 100, &planner).await.unwrap();
    let added = *done.results[5].as_ref().unwrap();
    let expected = [stopped, deleted, edited, put, idle, added].map(Ok);
    assert_eq!((done.results, done.unfinished), (expected.to_vec(), vec![]));
    let mut asked = done.cancelling;
    asked.sort();
    assert_eq!(asked, [(stopped, 1), (deleted, 1), (edited, 1), (put, 1)]);

    let state =
        async |job| store.job(job).await.unwrap().map(|job| (job.enabled, job.next_fire_at, job.revision));
    assert_eq!(state(stopped).await, Some((false, None, 0)));
    assert_eq!(state(deleted).await, None);
    assert_eq!(state(edited).await, Some((true, Some(bench.now + HOUR * 10), 1)));
    assert_eq!(state(put).await, Some((false, None, 1)));
    assert_eq!(state(untouched).await, Some((true, Some(bench.now + HOUR * 2), 0)));
    assert_eq!(state(idle).await, Some((true, Some(bench.now + HOUR), 0)));
    assert_eq!(state(added).await, Some((true, Some(bench.now + HOUR), 0)));
    let found = store.job(added).await.unwrap().unwrap().spec;
    assert_eq!((found.key, found.script.map(|script| script.source)), (spec.key, Some("date".into())));
    let versions = store.script_versions(added).await.unwrap();
    assert_eq!(versions.iter().map(|version| version.remark.as_str()).collect::<Vec<_>>(), ["first"]);
    let rows = store.job_rows(&[added, put]).await.unwrap();
    assert_eq!((&rows[0].tags[..], &rows[1].tags[..]), (&["a".into(), "b".into()][..], &["t".into()][..]));

    let asked = store.asked_to_cancel(&bench.node, None, 100).await.unwrap();
    let answers: Vec<_> =
        asked.iter().map(|run| CancelAnswer { run: run.id, version: run.version, sent: None }).collect();
    store.answer_cancel(&answers, &planner).await.unwrap();
    assert_eq!(store.cancelling(&jobs).await, Ok(vec![]));
    for job in [stopped, edited, put] {
        assert_eq!(bench.dispositions(job).await, [Disposition::Cancelled]);
    }
    assert_eq!(bench.open_of(untouched).await[0].state, RunState::Claimed);
    assert_eq!(bench.open_of(deleted).await, []);
    let again = bench.create(|spec| spec.key = Some("k".into())).await;
    assert_eq!(store.change_jobs(&[], false, 0, &planner).await.unwrap().results, []);
    assert!(again > added);
}

pub async fn a_rejected_change_leaves_the_others_unless_all_or_none_are_wanted(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let (store, planner) = (&bench.store, Simple { now: bench.now });
    let keyed = |key: &str| JobSpec { key: Some(key.into()), ..bench.hourly() };
    let job = store.create_job(&keyed("taken")).await.unwrap();
    let twice = bench.create(|_| {}).await;
    let over = bench.create(|spec| spec.schedule = Schedule::once(bench.now - HOUR)).await;
    let nobody = JobId(987_654);
    let changes = [
        add(keyed("free")),
        add(keyed("free")),
        add(keyed("taken")),
        add(JobSpec { app: AppId(987), ..bench.hourly() }),
        add(JobSpec { name: "x".repeat(100_000), ..bench.hourly() }),
        edit(job, JobSpec { app: AppId(987), ..keyed("taken") }, None),
        edit(job, keyed("taken"), Some(7)),
        edit(job, JobSpec { name: "edited".into(), ..keyed("taken") }, Some(0)),
        Change::Control(twice, Control::Stop),
        Change::Control(twice, Control::Delete),
        Change::Control(over, Control::Start),
        Change::Control(nobody, Control::Stop),
        add(JobSpec { children: vec![JobId::added_by(2)], ..bench.hourly() }),
        add(JobSpec { children: vec![JobId::added_by(99)], ..bench.hourly() }),
        Change::Add(Box::new(NewJob { tags: vec!["x".repeat(1_000)], ..NewJob::stopped(bench.hourly()) })),
    ];
    let accepted = [0, 7, 8];
    let before = store.jobs(None, 100).await.unwrap();
    let refused = store.change_jobs(&changes, true, 100, &planner).await.unwrap();
    assert!(refused.results.iter().all(Result::is_err), "{:?}", refused.results);
    assert_eq!(store.jobs(None, 100).await.unwrap(), before, "nothing is written");

    let done = store.change_jobs(&changes, false, 100, &planner).await.unwrap().results;
    for (index, result) in done.iter().enumerate() {
        assert_eq!(result.is_ok(), accepted.contains(&index), "{index}: {result:?}");
    }
    assert!(matches!(&done[2], Err(StoreError::Conflict(why)) if why.contains("taken")), "{:?}", done[2]);
    assert!(matches!(&done[6], Err(StoreError::Conflict(why)) if why.contains("revision")), "{:?}", done[6]);
    assert_eq!(done[11], Err(StoreError::NoSuchJob(nobody)));
    assert_eq!(store.jobs(None, 100).await.unwrap().len(), before.len() + 1);
    assert_eq!(store.job(job).await.unwrap().unwrap().spec.name, "edited");
}

pub async fn a_batch_adds_children_together_with_their_parents(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let planner = Simple { now: bench.now };
    let parent = bench.create(|_| {}).await;
    let with = |children: Vec<JobId>| JobSpec { children, ..bench.hourly() };
    let changes = [
        add(bench.hourly()),
        add(with(vec![JobId::added_by(0), parent])),
        add(with(vec![JobId::added_by(1), JobId::added_by(0)])),
        edit(parent, with(vec![JobId::added_by(2)]), None),
    ];
    let done = bench.store.change_jobs(&changes, true, 100, &planner).await.unwrap().results;
    let ids: Vec<JobId> = done.into_iter().map(Result::unwrap).collect();
    let children = async |job| bench.store.job(job).await.unwrap().unwrap().spec.children;
    assert_eq!(children(ids[1]).await, [ids[0], parent]);
    assert_eq!(children(ids[2]).await, [ids[1], ids[0]]);
    assert_eq!(children(parent).await, [ids[2]]);
}

pub async fn stops_of_many_jobs_withdraw_some_runs_at_a_time(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let (store, planner) = (&bench.store, Simple { now: bench.now });
    let jobs = bench.start_many(bench.hourly(), 10, bench.now + HOUR).await;
    for round in 1..=3 {
        assert_eq!(bench.claim_at(bench.now + HOUR * round).await.orders.len(), 10);
    }
    let stops: Vec<_> = jobs.iter().map(|job| Change::Control(*job, Control::Stop)).collect();
    let stopped = store.change_jobs(&stops, false, 12, &planner).await.unwrap();
    let runs = |asked: &[(JobId, u64)]| asked.iter().map(|(_, runs)| runs).sum::<u64>();
    assert_eq!(runs(&stopped.cancelling), 12);
    let (mut left, mut asked) = (stopped.unfinished, 12);
    assert!(left.len() < 10 && !left.is_empty(), "{left:?}");
    assert_eq!(store.withdrawals(stopped.at + HOUR, 100).await.unwrap(), left);
    while !left.is_empty() {
        left = store.withdraw(&left, 7).await.unwrap();
        let now = runs(&store.cancelling(&jobs).await.unwrap());
        assert!(now > asked || left.is_empty(), "every step withdraws some");
        assert!(now <= asked + 7, "and no more than it may");
        asked = now;
    }
    assert_eq!(asked, 30);
    assert_eq!(store.withdrawals(stopped.at + HOUR, 100).await, Ok(vec![]));
}
