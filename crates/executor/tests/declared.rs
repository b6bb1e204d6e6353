//! Declared jobs, with centres that support declarations and centres that do not.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod kit;

use std::sync::Arc;
use std::time::Duration;

use kit::{Centre, TOKEN, builder, call, trigger};
use protocol::xxl::Lineage;
use serde_json::{Value, json};
use tickwright_executor::{Context, Declaration, Error, Executor, Job, Timestamp, job};
use timer::testing::ManualClock;

const SOON: Duration = Duration::from_secs(120);

#[job("marked", cron = "0 0/5 * * * ?", zone = "Asia/Shanghai", name = "Marked", retries = 2)]
async fn marked() -> String {
    "done".to_owned()
}

fn built() -> Job {
    Job::new("built", |_: Context| async { "done" }).declare(Declaration::fixed_rate(Duration::from_secs(5)))
}

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(Timestamp::from_millis(1_794_744_000_000)))
}

/// Waits until the registrar sleeps for this long.
async fn rests(clock: &ManualClock, wait: Duration) {
    while clock.until_next_wake() != Some(wait) {
        tokio::task::yield_now().await;
    }
}

/// Waits until the registrar sleeps for this long, then advances the clock past it.
async fn pass(clock: &ManualClock, wait: Duration) {
    rests(clock, wait).await;
    clock.advance(wait);
}

async fn start(centre: &Centre, clock: &Arc<ManualClock>) -> (Executor, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    // Nothing else may sleep on this clock.
    let builder = builder(centre, directory.path()).log_retention(Duration::ZERO);
    let executor = builder.clock(Arc::clone(clock) as Arc<_>).job(built()).start().await.unwrap();
    (executor, directory)
}

fn ok(settled: Value) -> Value {
    json!({ "code": 200, "msg": "Success", "data": settled })
}

#[tokio::test]
async fn a_centre_is_told_once_and_again_when_it_may_have_forgotten() {
    let centre = Centre::start(Lineage::L33).await;
    let later = json!({ "code": 503, "msg": "not now", "data": null });
    let settled = json!([
        { "handler": "built", "outcome": "created" },
        { "handler": "marked", "outcome": "refused", "why": "no" },
    ]);
    centre.plan_settled([ok(settled.clone()), ok(settled), later]);
    let clock = clock();
    let (executor, _directory) = start(&centre, &clock).await;
    centre.until("it is told", |centre| centre.declared().len() == 1).await;
    let said = &centre.declared()[0];
    assert_eq!(said["address"], executor.address());
    assert_eq!(said["handlers"], json!(["marked", "built"]));
    assert_eq!(
        said["jobs"],
        json!([
            {
                "handler": "marked", "name": "Marked", "retries": 2,
                "schedule": {
                    "kind": "cron", "expression": "0 0/5 * * * ?", "dialect": "quartz", "zone": "Asia/Shanghai"
                },
            },
            { "handler": "built", "schedule": { "kind": "fixed_rate", "every_ms": 5_000 } },
        ])
    );
    // The declaration was not received, so it is sent again soon.
    pass(&clock, Duration::from_secs(1)).await;
    centre.until("it is told again", |centre| centre.declared().len() == 2).await;
    for registered in 3..=4 {
        pass(&clock, Duration::from_secs(30)).await;
        centre.until("a registration", |centre| centre.registered().len() == registered).await;
    }
    assert_eq!(centre.declared().len(), 2, "it knows");
    centre.fall_ill(true);
    pass(&clock, Duration::from_secs(30)).await;
    rests(&clock, Duration::from_secs(1)).await;
    centre.fall_ill(false);
    pass(&clock, Duration::from_secs(1)).await;
    centre.until("it is told after the silence", |centre| centre.declared().len() == 3).await;
    drop(executor);
}

#[tokio::test]
async fn a_centre_that_does_not_listen_is_asked_once_and_served_all_the_same() {
    for lineage in Lineage::ALL {
        let centre = Centre::start(lineage).await;
        let clock = clock();
        let (executor, _directory) = start(&centre, &clock).await;
        for registered in 1..=3 {
            centre.until("a registration", |centre| centre.registered().len() == registered).await;
            pass(&clock, Duration::from_secs(30)).await;
        }
        assert_eq!(centre.declared().len(), 1, "{lineage:?}");
        let answer = call(executor.local_address(), "/run", &trigger(100, "marked", "").to_string()).await;
        assert_eq!(answer["code"], 200);
        assert_eq!(centre.result(100).await, (200, "done".to_owned()));
        drop(executor);
    }
}

#[tokio::test]
async fn an_answer_that_means_nothing_is_as_good_as_none() {
    let centre = Centre::start(Lineage::L33).await;
    for answer in [json!("<html>please sign in</html>"), json!([]), json!({ "code": 200, "data": "yes" })] {
        centre.plan_settled([answer]);
        let clock = clock();
        let (executor, _directory) = start(&centre, &clock).await;
        rests(&clock, Duration::from_secs(30)).await;
        drop(executor);
    }
    assert_eq!(centre.declared().len(), 3);
}

#[tokio::test]
async fn many_jobs_are_told_in_several_calls() {
    let centre = Centre::start(Lineage::L33).await;
    centre.plan_settled([ok(json!([])), ok(json!([])), ok(json!([]))]);
    let directory = tempfile::tempdir().unwrap();
    let jobs = (0..120).map(|n| {
        Job::blocking(format!("job-{n}"), |_| "done")
            .declare(Declaration::fixed_delay(Duration::from_secs(5)))
    });
    let executor = builder(&centre, directory.path()).jobs(jobs).start().await.unwrap();
    centre.until("all are told", |centre| centre.declared().len() == 3).await;
    let counts: Vec<usize> =
        centre.declared().iter().map(|said| said["jobs"].as_array().unwrap().len()).collect();
    assert_eq!(counts, [50, 50, 21]);
    executor.stop(SOON).await;
}

#[tokio::test]
async fn what_cannot_be_right_does_not_start() {
    let wrong = Job::new("wrong", |_: Context| async {}).declare(Declaration::cron("0 0 25 * * ?"));
    let started = Executor::builder("app").token(TOKEN).listen("127.0.0.1:0").job(wrong).start().await;
    let Err(error) = started else { panic!("it started") };
    assert!(matches!(&error, Error::Declaration { handler, .. } if handler == "wrong"), "{error}");
}
