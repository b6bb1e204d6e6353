//! Cancelling a run when its executor does not obey.

use engine::{JobId, RunId, RunState};
use serde_json::{Value, json};

use crate::fake::Fake;
use crate::kit::{Bench, until};
use crate::script::OLD;

/// A run that the executor has, of a job with retries.
async fn running(bench: &Bench) -> (JobId, RunId) {
    let job = bench.job("stubborn", |spec| spec.retry.count = 2).await;
    let run = bench.engine.trigger(job, fastrand::i64(1..), None).await.unwrap();
    until("it runs", async || {
        let run = bench.database.run(run).await.unwrap()?;
        (run.state == RunState::Running).then_some(())
    })
    .await;
    (job, run)
}

async fn view(bench: &Bench, run: RunId) -> Value {
    bench.admin().await.get(&format!("/v1/runs/{run}")).await
}

#[tokio::test]
async fn a_refused_cancellation_leaves_the_run_open_and_its_success_counts() {
    let bench = Bench::start().await;
    let fake = Fake::start(&bench).await;
    fake.answers("/kill", |_| Some(json!({ "code": 500, "msg": "not while it is committing" })));
    let (job, run) = running(&bench).await;
    let script = bench.admin_script(OLD).await;
    let why = script.refused("/joblog/logKill", &[("id", &run.to_string())]).await;
    assert!(
        why.contains("the executor rejected the request: ") && why.contains("not while it is committing"),
        "{why}"
    );
    let reply = bench.admin().await.send("POST", &format!("/v1/runs/{run}/kill"), &Value::Null).await;
    assert_eq!((reply.status, reply.json()["code"].as_str()), (409, Some("executor_refused")), "{reply:?}");
    let open = view(&bench, run).await;
    assert_eq!((open["state"].as_str(), open["cancel_requested"].as_bool()), (Some("running"), Some(true)));

    fake.reports(&bench, run, 200, "done after all").await;
    let runs = bench.over(job).await;
    assert_eq!((runs.len(), runs[0].state), (1, RunState::Succeeded));
    assert_eq!(runs[0].message.as_deref(), Some("done after all"));
    let audit = bench.admin().await.get("/v1/audit?action=run.kill").await;
    let result = audit["items"][0]["result"].as_str().unwrap();
    assert!(result.starts_with("executor_refused: cancellation requested"), "{result}");
    bench.stop().await;
}

#[tokio::test]
async fn a_cancellation_that_the_executor_never_hears_leaves_the_run_open() {
    let bench = Bench::start().await;
    let fake = Fake::start(&bench).await;
    fake.answers("/kill", |_| None);
    let (job, run) = running(&bench).await;
    let reply = bench.admin().await.send("POST", &format!("/v1/runs/{run}/kill"), &Value::Null).await;
    assert_eq!(
        (reply.status, reply.json()["code"].as_str()),
        (502, Some("executor_unreachable")),
        "{reply:?}"
    );
    assert_eq!(view(&bench, run).await["state"], "running");

    // The executor received it, only its answer was lost: its failure is the cancellation, and not retried.
    fake.reports(&bench, run, 500, "scheduling center kill job.").await;
    let runs = bench.over(job).await;
    assert_eq!(runs.len(), 1, "it is not tried again: {runs:?}");
    let text = runs[0].message.as_deref().unwrap();
    assert!(text.starts_with("cancelled on request"), "{text}");
    bench.stop().await;
}

#[tokio::test]
async fn a_run_that_its_executor_does_not_have_any_more_waits_for_its_result() {
    let bench = Bench::start().await;
    let fake = Fake::start(&bench).await;
    fake.answers("/kill", |_| Some(json!({ "code": 200, "msg": "job thread already killed." })));
    let (job, run) = running(&bench).await;
    let script = bench.admin_script(OLD).await;
    let why = script.refused("/joblog/logKill", &[("id", &run.to_string())]).await;
    assert!(why.contains("its result will arrive"), "{why}");
    fake.reports(&bench, run, 200, "it was quicker").await;
    assert_eq!(bench.over(job).await[0].state, RunState::Succeeded);
    bench.stop().await;
}

#[tokio::test]
async fn force_closes_a_run_whatever_its_executor_says() {
    let bench = Bench::start().await;
    let fake = Fake::start(&bench).await;
    fake.answers("/kill", |_| Some(json!({ "code": 500, "msg": "no" })));
    let (job, run) = running(&bench).await;
    let admin = bench.admin().await;
    let path = format!("/v1/runs/{run}/kill");
    assert_eq!(admin.refused("POST", &path, &json!({ "force": false })).await, "executor_refused");
    let reply = admin.send("POST", &path, &json!({ "force": true })).await;
    assert_eq!(reply.status, 202, "{reply:?}");
    let runs = bench.over(job).await;
    assert_eq!((runs.len(), runs[0].message.as_deref()), (1, Some("cancelled by admin")));
    fake.reports(&bench, run, 200, "too late").await;
    assert_eq!(bench.over(job).await[0].message.as_deref(), Some("cancelled by admin"));
    assert_eq!(admin.refused("POST", &path, &json!({ "force": true })).await, "conflict");

    let (job, run) = running(&bench).await;
    let script = bench.admin_script(OLD).await;
    script.done("/joblog/logKill", &[("id", &run.to_string()), ("force", "true")]).await;
    assert_eq!(bench.over(job).await.len(), 1);
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_executor_that_reports_the_end_before_it_answers_ends_the_run_once() {
    let bench = Bench::start().await;
    let fake = Fake::start(&bench).await;
    let (job, run) = running(&bench).await;
    let (ask, mut asked) = tokio::sync::mpsc::unbounded_channel();
    let (tell, told) = std::sync::mpsc::channel::<()>();
    let told = std::sync::Mutex::new(told);
    fake.answers("/kill", move |_| {
        ask.send(()).unwrap();
        // This thread may block: the report is sent by another.
        tokio::task::block_in_place(|| told.lock().unwrap().recv().unwrap());
        Some(json!({ "code": 200 }))
    });
    let reporting = async {
        asked.recv().await.unwrap();
        fake.reports(&bench, run, 500, "scheduling center kill job.").await;
        tell.send(()).unwrap();
    };
    let admin = bench.admin().await;
    let path = format!("/v1/runs/{run}/kill");
    let (reply, ()) = tokio::join!(admin.send("POST", &path, &Value::Null), reporting);
    assert_eq!(reply.status, 202, "{reply:?}");
    let runs = bench.over(job).await;
    assert_eq!(runs.len(), 1, "a killed run is not tried again: {runs:?}");
    assert!(runs[0].message.as_deref().unwrap().starts_with("cancelled on request"));
    bench.stop().await;
}
