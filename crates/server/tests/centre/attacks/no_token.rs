//! `--allow-no-token`: callers without a token may access apps that have none, and no other app.

use std::time::Duration;

use engine::{AppId, JobId, RunId, RunState, Store as _};
use executor::Executor;
use serde_json::{Value, json};

use crate::kit::{Bench, echo, until};
use crate::script::Reply;

const LEGACY: &str = "legacy-app";
const WRONG: &str = "The access token is wrong.";

/// A server that admits callers without a token, as `migrate` configures it for old releases of XXL-JOB. Its sample
/// app has a token, as in every new database.
async fn open_centre() -> Bench {
    Bench::start_with(|settings| settings.allow_no_token = true).await
}

async fn app(bench: &Bench, name: &str) -> AppId {
    bench.admin().await.add_app(name, name).await;
    bench.database.app_by_name(name).await.unwrap().unwrap().id
}

/// Calls the executor API; `headers` are whole lines.
async fn call(bench: &Bench, name: &str, headers: &str, body: &Value) -> Reply {
    let body = body.to_string();
    let request = format!(
        "POST /api/{name} HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    bench.exchange(request.as_bytes()).await
}

/// An executor of an app without a token.
async fn executor(bench: &Bench, app: &str) -> Executor {
    Executor::builder(app)
        .centre(format!("http://{}/xxl-job-admin", bench.address))
        .token("")
        .listen("127.0.0.1:0")
        .directory(bench.folder.join(format!("executor-{app}")))
        .job(echo())
        .start()
        .await
        .unwrap()
}

#[tokio::test]
async fn an_executor_without_a_token_registers_runs_and_reports() {
    let bench = open_centre().await;
    let legacy = app(&bench, LEGACY).await;
    let executor = executor(&bench, LEGACY).await;
    let sees =
        |app: AppId| bench.directory.sightings(app).iter().any(|seen| seen.address == executor.address());
    until("the executor is registered", async || sees(legacy).then_some(())).await;
    let job = bench.job("echo", |spec| spec.app = legacy).await;
    let runs = bench.run(job, Some("hello")).await;
    assert_eq!((runs[0].state, runs[0].message.as_deref()), (RunState::Succeeded, Some("hello 0/1")));
    executor.stop(Duration::from_secs(1)).await;
    bench.stop().await;
}

#[tokio::test]
async fn an_executor_may_register_before_its_app_exists() {
    let bench = open_centre().await;
    let body = json!({ "registryGroup": "EXECUTOR", "registryKey": "later-app", "registryValue": "http://127.0.0.1:9999/" });
    let reply = call(&bench, "registry", "", &body).await;
    assert_eq!(reply.json()["code"], 200, "{reply:?}");
    let later = app(&bench, "later-app").await;
    assert_eq!(bench.directory.sightings(later).len(), 1);
    bench.stop().await;
}

/// A run of a job that an executor has accepted and not reported.
async fn open_run(bench: &Bench, app: AppId, address: &str) -> RunId {
    let job = bench.job("echo", |spec| spec.app = app).await;
    let run = bench.engine.trigger(job, fastrand::i64(1..), None).await.unwrap();
    until("the run is with the executor", async || {
        let row = bench.database.run(run).await.unwrap().unwrap();
        (row.state == RunState::Running && row.address.as_deref() == Some(address)).then_some(())
    })
    .await;
    run
}

/// An executor that accepts every run and never reports.
async fn silent_executor() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/", listener.local_addr().unwrap());
    let answer = async || r#"{"code":200,"msg":null,"data":null}"#;
    let router = axum::Router::new().fallback(answer);
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

#[tokio::test]
async fn a_result_is_judged_by_the_rule_of_the_app_whose_run_it_names() {
    let bench = open_centre().await;
    let legacy = app(&bench, LEGACY).await;
    let address = silent_executor().await;
    for (name, headers) in
        [(bench.app.as_str(), format!("XXL-JOB-ACCESS-TOKEN: {}\r\n", bench.token)), (LEGACY, String::new())]
    {
        let body = json!({ "registryGroup": "EXECUTOR", "registryKey": name, "registryValue": address });
        let reply = call(&bench, "registry", &headers, &body).await;
        assert_eq!(reply.json()["code"], 200, "{reply:?}");
    }
    let protected = open_run(&bench, AppId(1), &address).await;
    let report =
        |run: RunId| json!([{ "logId": run.0, "logDateTim": 1, "handleCode": 200, "handleMsg": "forged" }]);
    let named = format!("XXL-JOB-APPNAME: {LEGACY}\r\n");
    for headers in ["", "XXL-JOB-ACCESS-TOKEN: default_token\r\n", named.as_str()] {
        let reply = call(&bench, "callback", headers, &report(protected)).await;
        assert_eq!(reply.json()["msg"], WRONG, "{headers:?}: {reply:?}");
        let own = open_run(&bench, legacy, &address).await;
        let reply = call(&bench, "callback", headers, &report(own)).await;
        assert_eq!(reply.json()["code"], 200, "{headers:?}: {reply:?}");
        assert_eq!(bench.database.run(own).await.unwrap().unwrap().state, RunState::Succeeded, "{headers:?}");
        // If one result of a call is rejected, the others are stored.
        let own = open_run(&bench, legacy, &address).await;
        let mut both = report(protected);
        both.as_array_mut().unwrap().extend(report(own).as_array().unwrap().clone());
        assert_eq!(call(&bench, "callback", headers, &both).await.json()["msg"], WRONG);
        assert_eq!(bench.database.run(own).await.unwrap().unwrap().state, RunState::Succeeded, "{headers:?}");
    }
    assert_eq!(bench.database.run(protected).await.unwrap().unwrap().state, RunState::Running);
    bench.stop().await;
}

#[tokio::test]
async fn without_a_token_no_app_that_has_one_can_be_reached() {
    let bench = open_centre().await;
    let legacy = app(&bench, LEGACY).await;
    let protected = bench
        .job("echo", |spec| {
            spec.schedule = cron::Schedule::once(bench.engine.now() + Duration::from_secs(3_600))
        })
        .await;
    let named = format!("XXL-JOB-APPNAME: {LEGACY}\r\n");
    let state = async || {
        let job = bench.database.job(protected).await.unwrap().expect("it is still there");
        (job.enabled, job.revision, bench.database.runs(protected, None, 10).await.unwrap().len())
    };
    let before = state().await;
    let form = |group: i64| {
        json!({
            "jobGroup": group, "name": "planted", "author": "eve", "scheduleType": "CRON", "scheduleConf": "0 0 2 * * ?",
            "misfireStrategy": "DO_NOTHING", "executorRouteStrategy": "FIRST", "executorHandler": "echo",
            "executorBlockStrategy": "SERIAL_EXECUTION", "glueType": "GLUE_SHELL", "glueSource": "id", "executorTimeout": 5
        })
    };
    for headers in [named.as_str(), ""] {
        for name in ["startJob", "stopJob", "triggerJob", "updateJob", "removeJob"] {
            let mut body = form(1);
            body["id"] = protected.0.into();
            let reply = call(&bench, name, headers, &body).await;
            assert!(reply.json()["code"] == 500 || name == "removeJob", "{name} {headers:?}: {reply:?}");
            assert_eq!(state().await, before, "{name} {headers:?}");
        }
        let reply = call(&bench, "addJob", headers, &form(1)).await;
        assert_eq!(reply.json()["code"], 500, "{headers:?}: {reply:?}");
        // The caller may manage its own app.
        let reply = call(&bench, "addJob", headers, &form(legacy.0)).await;
        let id: i64 = reply.json()["data"]
            .as_str()
            .unwrap_or_else(|| panic!("{headers:?}: {reply:?}"))
            .parse()
            .unwrap();
        assert_eq!(bench.database.job(JobId(id)).await.unwrap().unwrap().spec.app, legacy);
        // Only a token proves which program declares a job.
        let declaration = json!({ "address": "http://10.1.2.3:9999/", "handlers": ["echo"], "jobs": [
            { "handler": "echo", "schedule": { "kind": "cron", "expression": "0 0 2 * * ?" } }
        ] });
        let reply = call(&bench, "declare", headers, &declaration).await;
        assert!(reply.body.contains("refused") || reply.json()["code"] == 500, "{headers:?}: {reply:?}");
    }
    let planted = json!({ "registryGroup": "EXECUTOR", "registryKey": bench.app, "registryValue": "http://10.1.2.3:9999/" });
    for headers in ["", named.as_str()] {
        assert_eq!(call(&bench, "registry", headers, &planted).await.json()["msg"], WRONG);
        assert_eq!(call(&bench, "registryRemove", headers, &planted).await.json()["msg"], WRONG);
    }
    assert!(bench.directory.sightings(AppId(1)).is_empty());
    bench.stop().await;
}
