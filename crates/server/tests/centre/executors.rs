//! Executors register, run, report and leave.

use std::time::Duration;

use engine::policy::{Backoff, Retry, Route};
use engine::{AppId, JobId, RunId, RunState, Store as _};
use executor::{Context, Job};
use store::{Addresses, AppSpec};
use tickwright_server::Settings;

use crate::kit::{Bench, echo, until};

fn registration(address: &str) -> String {
    format!(r#"{{"registryGroup":"EXECUTOR","registryKey":"tickwright-sample","registryValue":"{address}"}}"#)
}

#[tokio::test]
async fn a_run_goes_to_an_executor_and_its_result_comes_back() {
    let bench = Bench::start().await;
    let executor = bench.executor(vec![echo()]).await;
    let job = bench.job("echo", |spec| spec.param = "its own".into()).await;
    let runs = bench.run(job, None).await;
    assert_eq!((runs[0].state, runs[0].message.as_deref()), (RunState::Succeeded, Some("its own 0/1")));
    assert_eq!(runs[0].address.as_deref(), Some(executor.address()));
    let runs = bench.run(job, Some("another")).await;
    assert_eq!(runs[1].message.as_deref(), Some("another 0/1"));
    executor.stop(Duration::from_secs(1)).await;
    assert!(bench.directory.sightings(AppId(1)).is_empty(), "it took itself out");
    bench.stop().await;
}

#[tokio::test]
async fn a_broadcast_gives_every_executor_its_share() {
    let bench = Bench::start().await;
    let (_one, _two, _three) = (
        bench.executor(vec![echo()]).await,
        bench.executor(vec![echo()]).await,
        bench.executor(vec![echo()]).await,
    );
    let job = bench.job("echo", |spec| spec.route = Route::Broadcast.into()).await;
    let mut said: Vec<String> =
        bench.run(job, Some("part")).await.into_iter().filter_map(|run| run.message).collect();
    said.sort();
    assert_eq!(said, ["part 0/3", "part 1/3", "part 2/3"]);
    bench.stop().await;
}

#[tokio::test]
async fn an_executor_that_died_is_passed_over_and_no_run_is_lost_by_it() {
    let bench = Bench::start().await;
    let dead = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://127.0.0.1:{}/", listener.local_addr().unwrap().port())
    };
    let answer = bench.post("/api/registry", Some(&bench.token), &registration(&dead)).await;
    assert!(answer.contains(r#""code":200"#), "{answer}");
    assert!(bench.sees(&dead), "a registration counts before its answer");
    let alive = bench.executor(vec![echo()]).await;
    for route in
        [Route::First, Route::Last, Route::RoundRobin, Route::Random, Route::Failover, Route::FirstIdle]
    {
        let job = bench.job("echo", |spec| {
            spec.route = route.into();
            spec.schedule = cron::Schedule::once(bench.engine.now() + Duration::from_millis(300));
        });
        let job = job.await;
        bench.engine.start(job).await.unwrap();
        let runs = bench.over_somewhere(job).await;
        assert_eq!(
            (runs[0].state, runs[0].address.as_deref()),
            (RunState::Succeeded, Some(alive.address())),
            "{route}"
        );
    }
    let suspects =
        bench.directory.sightings(AppId(1)).into_iter().filter(|seen| seen.suspect_since.is_some());
    assert_eq!(suspects.map(|seen| seen.address).collect::<Vec<_>>(), [dead]);
    bench.stop().await;
}

#[tokio::test]
async fn a_failed_run_is_tried_again_and_a_slow_one_times_out() {
    let bench = Bench::start().await;
    let flaky = Job::new("flaky", |ctx: Context| async move {
        match ctx.attempt() {
            Some(3) => Ok("third time lucky"),
            attempt => Err(format!("attempt {attempt:?}")),
        }
    });
    let slow = Job::new("slow", |_: Context| tokio::time::sleep(Duration::from_secs(60)));
    let _executor = bench.executor(vec![flaky, slow]).await;
    let retry = Retry { count: 2, backoff: Backoff::Fixed { delay: Duration::from_millis(10) } };
    let flaky = bench.job("flaky", |spec| spec.retry = retry).await;
    bench.engine.trigger(flaky, 1, None).await.unwrap();
    let states = until("the third attempt is over", async || {
        let runs = bench.over(flaky).await;
        (runs.len() == 3).then(|| runs.into_iter().map(|run| run.state).collect::<Vec<_>>())
    });
    assert_eq!(states.await, [RunState::Failed, RunState::Failed, RunState::Succeeded]);
    let slow = bench.job("slow", |spec| spec.timeout = Some(Duration::from_secs(1))).await;
    assert_eq!(bench.run(slow, None).await[0].state, RunState::TimedOut);
    bench.stop().await;
}

#[tokio::test]
async fn without_an_executor_a_run_fails_and_says_what_to_do() {
    let bench = Bench::start().await;
    let job = bench.job("echo", |_| {}).await;
    let runs = bench.run(job, None).await;
    assert_eq!(runs[0].state, RunState::Failed);
    let said = runs[0].message.clone().unwrap_or_default();
    assert!(said.contains("no executor of the app `tickwright-sample` is registered; start one"), "{said}");
    bench.stop().await;
}

#[tokio::test]
async fn every_lineage_registers_and_leaves_before_the_answer() {
    let bench = Bench::start().await;
    for path in ["/api", "//api", "/xxl-job-admin/api", "/xxl-job-admin//api"] {
        let here = "http://127.1.2.3:9999/job";
        bench.post(&format!("{path}/registry"), Some(&bench.token), &registration(here)).await;
        assert!(bench.sees(here), "{path}");
        bench.post(&format!("{path}/registryRemove"), Some(&bench.token), &registration(here)).await;
        assert!(!bench.sees(here), "{path}");
    }
    bench.stop().await;
}

#[tokio::test]
async fn an_executor_that_is_never_called_is_refused_when_it_registers() {
    let (near, far, metadata) =
        ("http://127.0.0.1:9999/", "http://10.1.2.3:9999/", "http://169.254.169.254/");
    let bench = Bench::start().await;
    let register = async |bench: &Bench, address: &str| {
        bench.post("/api/registry", Some(&bench.token), &registration(address)).await
    };
    assert!(register(&bench, near).await.contains(r#""code":200"#));
    for refused in [far, metadata] {
        let answer = register(&bench, refused).await;
        assert!(answer.contains(r#""code":500"#) && answer.contains("is not allowed"), "{answer}");
        assert!(!bench.sees(refused), "{refused}");
    }
    let answer = register(&bench, far).await;
    assert!(answer.contains("allow the network with --executor-networks"), "{answer}");
    bench.stop().await;

    let named = |settings: &mut Settings| settings.executor_networks = vec!["10.0.0.0/8".parse().unwrap()];
    let bench = Bench::start_with(named).await;
    assert!(register(&bench, far).await.contains(r#""code":200"#) && bench.sees(far));
    bench.stop().await;
}

#[tokio::test]
async fn an_app_that_does_not_exist_is_named_to_callers_with_a_token_only() {
    let bench = Bench::start().await;
    let spec = AppSpec { name: "other".into(), title: "Other".into(), addresses: Addresses::Registered };
    bench.database.create_app(&spec).await.unwrap();
    until("the node knows the app", async || bench.directory.app_named("other")).await;
    let ask = async |token: &str, app: &str| {
        let body = registration("http://127.1.2.3:9999/").replace("tickwright-sample", app);
        bench.post("/api/registry", Some(token), &body).await
    };
    let (own, wrong) = (bench.token.clone(), "The access token is wrong.");
    let unknown = "the app `no-such-app` does not exist; add it with: tickwright app add no-such-app";
    let answer = ask(&own, "no-such-app").await;
    assert!(answer.contains(r#""code":500"#) && answer.contains(unknown), "{answer}");
    for (token, app) in [(own.as_str(), "other"), ("guess", "no-such-app"), ("guess", "other"), ("", "other")]
    {
        let answer = ask(token, app).await;
        assert!(answer.contains(wrong) && !answer.contains("exist"), "{token} {app}: {answer}");
    }
    bench.stop().await;
}

#[tokio::test]
async fn without_the_right_token_nothing_changes() {
    let bench = Bench::start().await;
    let here = "http://10.1.2.3:9999/";
    let upper = bench.token.to_uppercase();
    for token in [None, Some(""), Some("default_token"), Some(upper.as_str())] {
        for path in ["/api/registry", "/api/registryRemove", "/api/callback", "/api/nothing"] {
            let answer = bench.post(path, token, &registration(here)).await;
            assert!(
                answer.contains(r#""code":500,"msg":"The access token is wrong.""#),
                "{path} {token:?} {answer}"
            );
        }
    }
    assert!(bench.directory.sightings(AppId(1)).is_empty());
    bench.stop().await;
}

#[tokio::test]
async fn results_are_taken_in_every_shape_and_count_once() {
    let bench = Bench::start().await;
    let shapes = [
        r#"[{"logId":ID,"logDateTim":0,"handleCode":200,"handleMsg":"fine"}]"#,
        r#"{"callbackList":[{"logId":"ID","logDateTime":0,"handleCode":200,"handleMsg":"fine"}]}"#,
        r#"[{"logId":ID,"logDateTim":0,"executeResult":{"code":200,"msg":"fine"}},{"logId":"not a number"}]"#,
    ];
    for shape in shapes {
        let (job, run) = waiting(&bench).await;
        let body = shape.replace("ID", &run.to_string());
        for _ in 0..2 {
            let answer = bench.post("/api/callback", Some(&bench.token), &body).await;
            assert!(answer.contains(r#""code":200"#), "{answer}");
        }
        let contradiction =
            format!(r#"[{{"logId":{run},"logDateTim":0,"handleCode":500,"handleMsg":"no"}}]"#);
        bench.post("/api/callback", Some(&bench.token), &contradiction).await;
        let runs = bench.over(job).await;
        assert_eq!(
            (runs[0].state, runs[0].message.as_deref()),
            (RunState::Succeeded, Some("fine")),
            "{shape}"
        );
    }
    let answer =
        bench.post("/api/callback", Some(&bench.token), r#"[{"logId":987654321,"handleCode":200}]"#).await;
    assert!(answer.contains(r#""code":200"#), "a run nobody knows is acknowledged too: {answer}");
    bench.stop().await;
}

#[tokio::test]
async fn failures_keep_the_code_and_the_text_they_came_with() {
    let bench = Bench::start().await;
    for (result, code, message) in [
        (r#""handleCode":409,"handleMsg":"busy""#, 409, "busy"),
        (r#""handleCode":2147483647,"handleMsg":"last""#, 2_147_483_647, "last"),
        // Beyond XXL-JOB's column, and values that mean an open run there.
        (r#""handleCode":2147483648,"handleMsg":"more""#, 500, "code 2147483648: more"),
        (r#""handleCode":0,"handleMsg":"none""#, 500, "code 0: none"),
        (r#""handleCode":-1,"handleMsg":"less""#, 500, "code -1: less"),
        (r#""executeResult":{"code":500,"msg":null,"content":"no disk"}"#, 500, "no disk"),
        (r#""handleCode":1e30"#, 500, "the executor reported an invalid result"),
        (r#""handleMsg":"fine""#, 500, "it has neither handleCode nor executeResult.code"),
    ] {
        let (job, run) = waiting(&bench).await;
        let body = format!(r#"[{{"logId":{run},"logDateTim":0,{result}}}]"#);
        let answer = bench.post("/api/callback", Some(&bench.token), &body).await;
        assert!(answer.contains(r#""code":200"#), "{answer}");
        let runs = bench.over(job).await;
        let row = bench.database.run(RunId(run)).await.unwrap().expect("it is in the log");
        let text = row.result_message.unwrap_or_default();
        assert_eq!((runs[0].state, row.result_code), (RunState::Failed, code), "{body}: {text}");
        assert!(text.contains(message), "{body}: {text}");
    }
    bench.stop().await;
}

/// A run that is open, regardless of the executor's answers.
async fn waiting(bench: &Bench) -> (JobId, i64) {
    let job = bench.job("echo", |_| {}).await;
    let later = engine::Trigger {
        key: 1,
        at: Some(bench.engine.now() + Duration::from_secs(3_600)),
        param: None,
        address: None,
        by: None,
    };
    (job, bench.database.trigger(job, &later).await.unwrap().0)
}

#[tokio::test]
async fn bad_input_gets_a_word_and_changes_nothing() {
    let bench = Bench::start().await;
    let token = Some(bench.token.as_str());
    for body in
        ["{", "null", "[]", "\"text\"", "{\"registryKey\":{}}", "\u{0}", "{\"@type\":\"java.lang.Object\"}"]
    {
        let answer = bench.post("/api/registry", token, body).await;
        assert!(answer.contains(r#""code":500"#), "{body:?} {answer}");
    }
    for value in ["", "ftp://x:1", "http://u:p@h:1/", "http://h/..;/x", "http://2130706433/", "no address"] {
        let answer = bench.post("/api/registry", token, &registration(value)).await;
        assert!(answer.contains(r#""code":500"#), "{value} {answer}");
    }
    let deep = "[".repeat(100_000);
    assert!(bench.post("/api/callback", token, &deep).await.contains(r#""code":500"#));
    let (code, _) =
        bench.raw(b"POST /api/callback HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n").await;
    assert_eq!(code, 413);
    let (code, body) = bench.raw(b"GET /api/registry HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
    assert_eq!((code, body.contains("HttpMethod not support")), (200, true));
    let (code, _) = bench.raw(b"POST /api/callback HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n").await;
    assert_eq!(code, 400);
    assert!(bench.directory.sightings(AppId(1)).is_empty());
    bench.stop().await;
}
