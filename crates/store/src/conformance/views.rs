//! Lists for users: jobs, runs, reports, scripts and logs.

use cron::{Cron, DstRule, Schedule, Zone};
use engine::{
    AppId, Control, JobId, JobSpec, Retention, RunId, RunState, ScriptLanguage, Store as _, StoreError,
};
use timer::Timestamp;

use super::Fresh;
use super::bench::{Bench, HOUR, SECOND, Simple, failed, ok};
use crate::{
    ClearPosition, Clearing, JobFilter, JobKey, JobName, JobOrder, Keep, Page, RunFilter, RunLog, RunRow,
    RunStatus, SCRIPT_VERSIONS, Total,
};

fn run_ids(rows: &[RunRow]) -> Vec<RunId> {
    rows.iter().map(|row| row.id).collect()
}

pub async fn jobs_are_found_by_what_people_remember(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let store = &bench.store;
    let other = store.ensure_app("other").await.unwrap();
    let mut ids = Vec::new();
    for (app, name, handler) in [
        (bench.app, "Nightly 月结", "settle"),
        (bench.app, "hourly 100% report", "report_a"),
        (other, "Hourly backup", "backup"),
    ] {
        let spec = JobSpec::new(app, name, Schedule::fixed_rate(bench.now + HOUR, HOUR).unwrap(), handler);
        ids.push(store.create_job(&JobSpec { author: format!("Ada {handler}"), ..spec }).await.unwrap());
    }
    bench.control(ids[2], Control::Start).await;
    let found = async |filter: JobFilter| -> Vec<usize> {
        let page = store.job_page(&filter, Page::first(10)).await.unwrap();
        page.rows.iter().map(|row| ids.iter().position(|id| *id == row.job.id).unwrap()).collect()
    };
    let all = JobFilter::default();
    assert_eq!(found(all.clone()).await, [2, 1, 0], "the newest first");
    assert_eq!(found(JobFilter { apps: Some(vec![other]), ..all.clone() }).await, [2]);
    assert_eq!(found(JobFilter { apps: Some(vec![]), ..all.clone() }).await, [0; 0]);
    assert_eq!(found(JobFilter { enabled: Some(true), ..all.clone() }).await, [2]);
    assert_eq!(found(JobFilter { enabled: Some(false), ..all.clone() }).await, [1, 0]);
    assert_eq!(found(JobFilter { description: "HOURLY".into(), ..all.clone() }).await, [2, 1]);
    assert_eq!(found(JobFilter { description: "月".into(), ..all.clone() }).await, [0]);
    assert_eq!(
        found(JobFilter { description: "0%".into(), ..all.clone() }).await,
        [1],
        "signs mean themselves"
    );
    assert_eq!(found(JobFilter { handler: "report_".into(), ..all.clone() }).await, [1]);
    assert_eq!(found(JobFilter { author: "ada b".into(), ..all.clone() }).await, [2]);
    assert_eq!(found(JobFilter { text: "settle".into(), ..all.clone() }).await, [0]);
    assert_eq!(found(JobFilter { text: "' OR 1=1 --\0".into(), ..all.clone() }).await, [0; 0]);

    let page = store.job_page(&all, Page::Offset { offset: 1, limit: 1 }).await.unwrap();
    assert_eq!(page.rows.len(), 1);
    assert_eq!(page.rows[0].job, store.job(ids[1]).await.unwrap().unwrap());
    assert_eq!((page.total, page.next), (Some(Total { count: 3, exact: true }), None));
    let page = store.job_page(&all, Page::first(2)).await.unwrap();
    assert_eq!((page.total, page.next), (None, Some(ids[1].0)));
    let page = store.job_page(&all, Page::After { after: page.next, limit: 2 }).await.unwrap();
    assert_eq!((page.rows.len(), page.next), (1, None));
    let row = &page.rows[0];
    assert_eq!((row.kind.as_str(), row.last_fire_at), ("BEAN", None));
    assert!(row.created_at.is_some_and(|at| at + HOUR > bench.now) && row.updated_at == row.created_at);
}

pub async fn jobs_are_listed_in_every_order_from_where_a_page_ended(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let store = &bench.store;
    let mut ids = Vec::new();
    for (name, hours) in [("b", 2), ("a", 3), ("c", 1), ("a", 4), ("d", 0)] {
        let spec = JobSpec::new(bench.app, name, Schedule::once(bench.now + HOUR * (hours + 1)), "h");
        let key = Some(format!("key-{}", ids.len()));
        ids.push(store.create_job(&JobSpec { key, ..spec }).await.unwrap());
        if hours > 0 {
            bench.control(ids[ids.len() - 1], Control::Start).await;
        }
    }
    let listed = async |filter: &JobFilter, by: JobKey, down: bool| -> Vec<usize> {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let order = JobOrder { by, down };
            let page = store.job_list(filter, order, after.as_ref(), 2).await.unwrap();
            found.extend(page.rows.iter().map(|row| ids.iter().position(|id| *id == row.job.id).unwrap()));
            match page.next {
                Some(next) => after = Some(next),
                None => return found,
            }
        }
    };
    let all = JobFilter::default();
    for (by, down, expected) in [
        (JobKey::Number, false, [0, 1, 2, 3, 4]),
        (JobKey::Number, true, [4, 3, 2, 1, 0]),
        (JobKey::Name, false, [1, 3, 0, 2, 4]),
        (JobKey::Name, true, [4, 2, 0, 3, 1]),
        (JobKey::NextFire, false, [2, 0, 1, 3, 4]),
        (JobKey::NextFire, true, [3, 1, 0, 2, 4]),
    ] {
        assert_eq!(listed(&all, by, down).await, expected, "{by:?} {down}");
    }
    let keyed = JobFilter { text: "KEY-3".into(), ..all.clone() };
    assert_eq!(listed(&keyed, JobKey::Number, false).await, [3]);
    assert_eq!(store.job_count(&all).await.unwrap(), (5, 4));
    assert_eq!(store.job_count(&JobFilter { apps: Some(vec![]), ..all }).await.unwrap(), (0, 0));
    assert_eq!(store.jobs_by_app().await.unwrap(), [(bench.app, 5)].into());
    let names = store.job_names(&[ids[2], JobId(4_711)]).await.unwrap();
    let name =
        JobName { job: ids[2], app: bench.app, key: Some("key-2".into()), name: "c".into(), zone: None };
    assert_eq!(names, [name]);
    let elsewhere = bench
        .create(|spec| {
            let (cron, zone) =
                (Cron::parse("0 0 9 * * ?").unwrap(), Zone::parse("America/New_York").unwrap());
            spec.schedule = Schedule::cron(cron, zone, DstRule::NATURAL);
        })
        .await;
    let names = store.job_names(&[elsewhere]).await.unwrap();
    assert_eq!(names[0].zone.as_deref(), Some("America/New_York"));
    let rows = store.job_rows(&[ids[4], ids[0]]).await.unwrap();
    assert_eq!(rows.iter().map(|row| row.job.id).collect::<Vec<_>>(), [ids[4], ids[0]]);
}

pub async fn a_job_is_found_by_its_tags_while_it_is_there(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let store = &bench.store;
    let (one, two) = (bench.create(|_| {}).await, bench.create(|_| {}).await);
    let tags = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let tag = async |job, words: &[&str]| {
        let spec = Box::new(store.job(job).await.unwrap().unwrap().spec);
        let remark = String::new();
        let put = Control::Put { spec, revision: None, enabled: None, tags: tags(words), remark };
        store.control(job, &put, 1_000, &Simple { now: bench.now }).await
    };
    tag(one, &["月结", "nightly", "nightly"]).await.unwrap();
    tag(two, &["Nightly"]).await.unwrap();
    let found = async |tag: &str| -> Vec<JobId> {
        let filter = JobFilter { tag: tag.into(), ..JobFilter::default() };
        let page = store.job_page(&filter, Page::first(10)).await.unwrap();
        page.rows.iter().map(|row| row.job.id).collect()
    };
    assert_eq!(found("nightly").await, [one], "letters mean themselves");
    assert_eq!(found("月结").await, [one]);
    assert_eq!(found("night").await, []);
    assert_eq!(store.job_rows(&[one]).await.unwrap()[0].tags, ["nightly", "月结"]);
    let long = tag(one, &["x".repeat(65).as_str()]).await;
    assert!(matches!(long, Err(StoreError::Invalid(_))), "{long:?}");
    tag(two, &[]).await.unwrap();
    assert_eq!(found("Nightly").await, []);
    bench.control(one, Control::Delete).await;
    assert_eq!(found("nightly").await, []);
}

pub async fn what_was_not_sent_is_looked_through_from_the_newest(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let store = &bench.store;
    let job = bench.create(|_| {}).await;
    for key in 1..=3 {
        bench.trigger(job, key).await;
    }
    bench.control(job, Control::Delete).await;
    let page = store.misses(job, Page::first(2)).await.unwrap();
    let rest = store.misses(job, Page::After { after: page.next, limit: 2 }).await.unwrap();
    let runs: Vec<_> = page.rows.iter().chain(&rest.rows).map(|entry| entry.run.unwrap().0).collect();
    assert_eq!((runs.len(), rest.next), (3, None));
    assert!(page.rows[0].id > page.rows[1].id && page.rows[1].id > rest.rows[0].id, "{page:?}");
}

pub async fn runs_are_counted_by_what_came_of_them(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let store = &bench.store;
    let job = bench.start(&bench.hourly()).await;
    let runs = [bench.run(job).await, bench.run(job).await, bench.run(job).await, bench.run(job).await];
    bench.end(runs[0].id, ok()).await;
    bench.end(runs[1].id, failed()).await;
    bench.end(runs[2].id, failed()).await;
    let all = RunFilter::default();
    let tally = store.run_tally(&all, 4).await.unwrap();
    assert_eq!((tally.running, tally.succeeded, tally.failed, tally.is_all), (1, 1, 2, true));
    let some = store.run_tally(&all, 3).await.unwrap();
    assert!(!some.is_all && some.read == 4, "{some:?}");
    let count = async |filter: RunFilter| store.run_tally(&filter, 10).await.unwrap().read;
    let (from, until) = (Some(runs[1].scheduled_at), Some(runs[3].scheduled_at));
    assert_eq!(count(RunFilter { from, until, ..all.clone() }).await, 2);
    assert_eq!(count(RunFilter { until: from, ..all.clone() }).await, 1);
    assert_eq!(count(RunFilter { from: until, job: Some(job), ..all.clone() }).await, 1);
    assert_eq!(count(RunFilter { apps: Some(vec![]), ..all.clone() }).await, 0);
    assert_eq!(count(RunFilter { apps: Some(vec![bench.app]), ..all }).await, 4);
}

pub async fn runs_are_found_by_app_job_status_and_time(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let store = &bench.store;
    let other = store.ensure_app("other").await.unwrap();
    let (mut ids, mut jobs) = (Vec::new(), Vec::new());
    for app in [bench.app, other] {
        let job = bench.start(&JobSpec { app, ..bench.hourly() }).await;
        for _ in 0..3 {
            ids.push(bench.run(job).await);
        }
        bench.control(job, Control::Stop).await;
        jobs.push(job);
    }
    bench.end(ids[0].id, ok()).await;
    bench.end(ids[1].id, failed()).await;
    bench.end(ids[4].id, ok()).await;
    let found = async |filter: &RunFilter| -> Vec<usize> {
        let page = store.run_page(filter, Page::first(10)).await.unwrap();
        assert_eq!(page.next, None);
        let counted = store.run_page(filter, Page::Offset { offset: 0, limit: 10 }).await.unwrap();
        assert_eq!(run_ids(&counted.rows), run_ids(&page.rows));
        assert_eq!(counted.total, Some(Total { count: page.rows.len() as u64, exact: true }));
        page.rows.iter().map(|row| ids.iter().position(|run| run.id == row.id).unwrap()).collect()
    };
    let all = RunFilter::default();
    assert_eq!(found(&all).await, [5, 4, 3, 2, 1, 0], "the newest first");
    assert_eq!(found(&RunFilter { apps: Some(vec![other]), ..all.clone() }).await, [5, 4, 3]);
    assert_eq!(found(&RunFilter { apps: Some(vec![AppId(4_711)]), ..all.clone() }).await, [0; 0]);
    assert_eq!(found(&RunFilter { apps: Some(vec![]), ..all.clone() }).await, [0; 0]);
    assert_eq!(found(&RunFilter { job: Some(jobs[0]), ..all.clone() }).await, [2, 1, 0]);
    let status = |status| RunFilter { status: Some(status), ..RunFilter::default() };
    assert_eq!(found(&status(RunStatus::Succeeded)).await, [4, 0]);
    assert_eq!(found(&status(RunStatus::Failed)).await, [1]);
    assert_eq!(found(&status(RunStatus::Running)).await, [5, 3, 2]);
    let mine = RunFilter { apps: Some(vec![bench.app]), ..status(RunStatus::Running) };
    assert_eq!(found(&mine).await, [2]);

    // Both jobs fire at the same three times.
    let second = ids[1].scheduled_at;
    let during = RunFilter { from: Some(second), until: Some(second + SECOND), ..all.clone() };
    assert_eq!(found(&during).await, [4, 1]);
    assert_eq!(
        found(&RunFilter { from: Some(second), ..all.clone() }).await,
        [5, 2, 4, 1],
        "the latest first"
    );
    assert_eq!(found(&RunFilter { apps: Some(vec![other]), ..during }).await, [4]);
}

pub async fn a_rare_run_is_found_far_behind_the_newest(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let store = &bench.store;
    bench.start_many(bench.hourly(), 1_200, bench.now + HOUR).await;
    let first = bench.claim_at(bench.now + HOUR).await;
    bench.claim_at(bench.now + HOUR).await;
    let mut oldest: Vec<RunId> = first.orders.iter().map(|order| order.run.id).collect();
    oldest.sort_unstable();
    bench.end(oldest[0], failed()).await;
    bench.end(oldest[1], ok()).await;
    for (rare, status) in [(oldest[0], RunStatus::Failed), (oldest[1], RunStatus::Succeeded)] {
        let all = RunFilter { status: Some(status), ..RunFilter::default() };
        let of_a_time = RunFilter { from: Some(bench.now), ..all.clone() };
        let of_an_app = RunFilter { apps: Some(vec![bench.app]), ..of_a_time.clone() };
        for filter in [all, of_a_time, of_an_app] {
            let page = store.run_page(&filter, Page::first(10)).await.unwrap();
            assert_eq!((run_ids(&page.rows), page.next), (vec![rare], None), "{filter:?}");
            let rest = Page::After { after: Some(rare.0), limit: 10 };
            let page = store.run_page(&filter, rest).await.unwrap();
            assert_eq!((run_ids(&page.rows), page.next), (vec![], None), "{filter:?}");
        }
    }
}

pub async fn runs_are_turned_page_by_page_in_every_order(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let store = &bench.store;
    let jobs = bench.start_many(bench.hourly(), 20, bench.now + HOUR).await;
    for round in 1..=3 {
        bench.claim_at(bench.now + HOUR * round).await;
    }
    let by_app = RunFilter { apps: Some(vec![bench.app]), ..RunFilter::default() };
    let by_time = RunFilter { from: Some(bench.now), ..RunFilter::default() };
    let by_job = RunFilter { job: Some(jobs[3]), ..RunFilter::default() };
    for (filter, count) in [(RunFilter::default(), 60), (by_app, 60), (by_time, 60), (by_job, 3)] {
        let whole = store.run_page(&filter, Page::first(1_000)).await.unwrap().rows;
        assert_eq!(whole.len(), count, "{filter:?}");
        let mut read = Vec::new();
        let mut after = None;
        loop {
            let page = store.run_page(&filter, Page::After { after, limit: 7 }).await.unwrap();
            assert!(page.rows.len() <= 7);
            read.extend(page.rows);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(run_ids(&read), run_ids(&whole), "{filter:?}");
        let middle = store.run_page(&filter, Page::Offset { offset: 1, limit: 2 }).await.unwrap();
        assert_eq!(run_ids(&middle.rows), run_ids(&whole[1..3]));
    }
}

pub async fn a_run_shows_all_that_is_known_of_it(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let store = &bench.store;
    let job = bench.start(&JobSpec { param: "a=1".into(), ..bench.hourly() }).await;
    let run = bench.run(job).await;
    let row = store.run(run.id).await.unwrap().unwrap();
    assert_eq!((row.job, row.app, row.state), (job, bench.app, RunState::Running));
    assert_eq!((row.handler.as_str(), row.param.as_str(), row.shard.as_deref()), ("demo", "a=1", None));
    assert_eq!((row.address, row.trigger_code, row.result_code), (run.address.clone(), 0, 0));
    let open = row.open.unwrap();
    assert_eq!((open.scheduled_at, open.node, open.attempt), (run.scheduled_at, Some(bench.node.clone()), 1));

    bench.end(run.id, ok()).await;
    let row = store.run(run.id).await.unwrap().unwrap();
    assert_eq!(
        (row.state, row.open, row.trigger_code, row.result_code),
        (RunState::Succeeded, None, 200, 200)
    );
    assert_eq!((row.result_message.as_deref(), row.alarm_status), (Some("done"), 1));
    let cut = |at: Timestamp| Timestamp::from_millis(at.as_millis().div_euclid(1_000) * 1_000);
    assert_eq!((row.triggered_at, row.ended_at), (Some(cut(run.scheduled_at)), Some(cut(bench.now))));
    assert_eq!(store.run(RunId(run.id.0 + 1)).await, Ok(None));
}

pub async fn cleared_runs_are_gone_with_their_logs_and_open_ones_stay(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let store = &bench.store;
    let (job, other) = (bench.start(&bench.hourly()).await, bench.create(|_| {}).await);
    let mut runs = Vec::new();
    for _ in 0..6 {
        runs.push(bench.run(job).await);
    }
    for run in &runs[1..] {
        bench.end(run.id, failed()).await;
    }
    let log = RunLog { text: "line".into(), complete: true };
    assert_eq!(store.keep_run_logs(&[(runs[1].id, log)]).await, Ok(1));
    let left = async || -> Vec<usize> {
        let page = store.run_page(&RunFilter::default(), Page::first(10)).await.unwrap();
        page.rows.iter().map(|row| runs.iter().position(|run| run.id == row.id).unwrap()).collect()
    };
    let clearing = |keep| Clearing { apps: Some(vec![bench.app]), job: Some(job), keep };
    let clear = async |clearing: &Clearing| {
        store.clear_runs(clearing, &mut ClearPosition::default(), 10).await.unwrap()
    };
    let others = Clearing { job: Some(other), ..clearing(Keep::Nothing) };
    assert_eq!(clear(&others).await, 0);
    assert_eq!(clear(&Clearing { apps: Some(vec![]), ..clearing(Keep::Nothing) }).await, 0);
    assert_eq!(clear(&clearing(Keep::Since(runs[2].scheduled_at))).await, 1);
    assert_eq!(left().await, [5, 4, 3, 2, 0], "the first is open");
    assert_eq!(store.kept_run_log(runs[1].id).await, Ok(None));
    assert_eq!(clear(&clearing(Keep::Newest(5))).await, 0);
    let mut position = ClearPosition::default();
    for deleted in [1, 1, 0, 0] {
        assert_eq!(store.clear_runs(&clearing(Keep::Newest(2)), &mut position, 1).await, Ok(deleted));
    }
    assert_eq!(left().await, [5, 4, 0]);
    assert_eq!(bench.listed_as_failed().await, 2);
    assert_eq!(clear(&clearing(Keep::Nothing)).await, 2);
    assert_eq!(left().await, [0]);
    assert_eq!(bench.listed_as_failed().await, 0);
}

pub async fn a_report_counts_the_runs_of_each_day(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let store = &bench.store;
    let day = HOUR * 24;
    let job = bench
        .start(&JobSpec { schedule: Schedule::fixed_rate(bench.now + day, day).unwrap(), ..bench.hourly() })
        .await;
    let (first, second) = (bench.run(job).await, bench.run(job).await);
    let by_hand = bench.trigger(job, 1).await;
    assert!(store.refresh_report(bench.now).await.unwrap());
    assert!(!store.refresh_report(bench.now).await.unwrap(), "nothing has changed");
    assert!(store.refresh_report(first.scheduled_at).await.unwrap());
    bench.end(first.id, ok()).await;
    bench.end(second.id, failed()).await;
    assert!(store.refresh_report(first.scheduled_at).await.unwrap());
    assert!(store.refresh_report(second.scheduled_at).await.unwrap());

    let days = store.report((bench.now, second.scheduled_at), None).await.unwrap();
    let counts: Vec<_> = days.iter().map(|day| (day.running, day.succeeded, day.failed)).collect();
    assert_eq!(counts, [(1, 0, 0), (0, 1, 0), (0, 0, 1)]);
    assert!(
        days.is_sorted_by(|a, b| a.day < b.day) && days.iter().all(|day| day.day.len() == 10),
        "{days:?}"
    );
    let day = (first.scheduled_at, first.scheduled_at);
    assert_eq!(store.report(day, None).await.unwrap(), days[1..2]);
    let of = async |apps: &[AppId]| store.report((bench.now, second.scheduled_at), Some(apps)).await.unwrap();
    assert_eq!(of(&[bench.app]).await, days);
    assert_eq!(of(&[bench.app, AppId(4_711)]).await, days);
    assert!(of(&[AppId(4_711)]).await.is_empty() && of(&[]).await.is_empty());
    assert!(bench.open(by_hand).await.is_some());
}

pub async fn two_nodes_report_a_day_once(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let refresh = || {
        let store = bench.store.clone();
        let now = bench.now;
        tokio::spawn(async move { store.refresh_report(now).await.unwrap() })
    };
    let (a, b, c) = tokio::join!(refresh(), refresh(), refresh());
    let written = [a.unwrap(), b.unwrap(), c.unwrap()];
    assert_eq!(written.iter().filter(|written| **written).count(), 1);
    assert_eq!(bench.store.report((bench.now, bench.now), None).await.unwrap().len(), 1);
}

pub async fn a_script_is_kept_in_its_last_versions(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let store = &bench.store;
    let job = bench.create(|_| {}).await;
    let revision = store.job(job).await.unwrap().unwrap().revision;
    assert!(store.script_versions(job).await.unwrap().is_empty());
    let mut edits = Vec::new();
    for number in 0..SCRIPT_VERSIONS + 3 {
        let source = format!("echo '第 {number}'");
        store.save_script(job, ScriptLanguage::Shell, &source, &format!("change {number}")).await.unwrap();
        let script = store.job(job).await.unwrap().unwrap().spec.script.unwrap();
        assert_eq!((script.language, &script.source), (ScriptLanguage::Shell, &source));
        edits.push(script.edited_at);
    }
    assert!(edits.is_sorted_by(|a, b| a < b), "executors tell versions apart by the second");
    let versions = store.script_versions(job).await.unwrap();
    assert_eq!(versions.len(), SCRIPT_VERSIONS);
    let newest = &versions[0];
    assert_eq!((newest.language, newest.saved_at), (Some(ScriptLanguage::Shell), edits.last().copied()));
    assert_eq!(newest.remark, format!("change {}", SCRIPT_VERSIONS + 2));
    assert_eq!(versions[SCRIPT_VERSIONS - 1].remark, "change 3");
    assert!(store.job(job).await.unwrap().unwrap().revision > revision, "who edits it has to read it again");

    let page = store.job_page(&JobFilter::default(), Page::first(1)).await.unwrap();
    assert_eq!((page.rows[0].kind.as_str(), &page.rows[0].script_remark), ("GLUE_SHELL", &newest.remark));
    let nobody = engine::JobId(4_711);
    let missing = store.save_script(nobody, ScriptLanguage::Shell, "x", "y").await;
    assert_eq!(missing, Err(StoreError::NoSuchJob(nobody)));
    let long = store.save_script(job, ScriptLanguage::Shell, "x", &"r".repeat(129)).await;
    assert!(matches!(long, Err(StoreError::Invalid(_))));
}

pub async fn the_log_of_a_run_is_kept_until_it_is_old(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let store = &bench.store;
    let job = bench.create(|_| {}).await;
    let run = bench.trigger(job, 1).await;
    assert_eq!(store.kept_run_log(run).await, Ok(None));
    let long = RunLog { text: "第一行 'line'\n\\".repeat(10_000), complete: false };
    let keep = async |run, log: &RunLog| store.keep_run_logs(&[(run, log.clone())]).await;
    assert_eq!(keep(run, &long).await, Ok(1));
    assert_eq!(store.kept_run_log(run).await, Ok(Some(long.clone())));
    let short = RunLog { text: String::new(), complete: true };
    assert_eq!(keep(run, &short).await, Ok(1));
    assert_eq!(store.kept_run_log(run).await, Ok(Some(short.clone())), "in place of the other");
    assert_eq!(keep(RunId(run.0 + 1), &short).await, Ok(0), "there is no such run");
    let another = bench.trigger(job, 2).await;
    let both = [(another, long.clone()), (run, short.clone())];
    assert_eq!(store.keep_run_logs(&both).await, Ok(2));
    assert_eq!(store.kept_run_log(another).await, Ok(Some(long)));
    let huge = RunLog { text: "x".repeat(RunLog::MAX + 1), complete: true };
    assert!(matches!(keep(run, &huge).await, Err(StoreError::Invalid(_))));

    let retention = |runs_before| Retention { runs_before, runs_max: None, history_before: bench.now - HOUR };
    store.prune(&retention(bench.now - HOUR), 100).await.unwrap();
    assert_eq!(store.kept_run_log(run).await, Ok(Some(short)));
    assert_eq!(store.prune(&retention(bench.now + HOUR), 100).await, Ok(2), "their runs are open and stay");
    assert_eq!(store.kept_run_log(run).await, Ok(None));
}
