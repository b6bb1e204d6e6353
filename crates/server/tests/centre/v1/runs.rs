//! Runs, their logs, their ends and their counts.

use engine::JobId;
use protocol::v1::Instant;
use serde_json::{Value, json};

use super::client::{Client, body};
use crate::kit::{Bench, echo, until};

/// A finished run of the echo handler.
async fn run(bench: &Bench, client: &Client<'_>) -> Value {
    client.done("PUT", "/v1/jobs/one", &body(&bench.app, "One")).await;
    let run = client.post("/v1/jobs/one/trigger", &json!({ "param": "hello" })).await["run"].clone();
    bench.over(JobId(1)).await;
    run
}

#[tokio::test]
async fn a_run_is_shown_with_its_log_and_what_happened_to_it() {
    let bench = Bench::start().await;
    let executor = bench.executor(vec![echo()]).await;
    let admin = bench.admin().await;
    let run = run(&bench, &admin).await;
    let view = admin.get(&format!("/v1/runs/{run}")).await;
    assert_eq!((view["state"].as_str(), view["job_key"].as_str()), (Some("succeeded"), Some("one")));
    assert_eq!((view["param"].as_str(), view["result_code"].as_i64()), (Some("hello"), Some(200)));
    assert_eq!(
        (view["app"].as_str(), view["address"].as_str()),
        (Some(bench.app.as_str()), Some(executor.address()))
    );
    let kinds: Vec<&str> =
        view["timeline"].as_array().unwrap().iter().map(|step| step["kind"].as_str().unwrap()).collect();
    let expected = ["scheduled", "routed", "sent", "accepted", "ended", "recorded"];
    assert_eq!(kinds.iter().filter(|kind| **kind != "claimed").copied().collect::<Vec<_>>(), expected);
    assert!(
        view["timeline"]
            .as_array()
            .unwrap()
            .iter()
            .any(|step| step["kind"] == "accepted" && step["at"].is_string())
    );
    assert_eq!((view["origin"]["kind"].as_str(), view["attempt"].as_u64()), (Some("manual"), Some(1)));
    let at = |kind: &str| {
        let step = view["timeline"].as_array().unwrap().iter().find(|step| step["kind"] == kind);
        step.unwrap()["at"].as_str().unwrap().parse::<Instant>().unwrap().millis()
    };
    assert_eq!(view["took_ms"], at("recorded") - at("sent"), "the wait before is no part of it");
    let app = admin.get(&format!("/v1/apps/{}", bench.app)).await;
    assert_eq!(app["executors"][0]["handlers"], json!(["echo"]));
    let path = format!("/v1/runs/{run}/log");
    let page = until("the log is there", async || {
        let page = admin.get(&path).await;
        page["text"].as_str().is_some_and(|text| text.contains("given hello")).then_some(page)
    })
    .await;
    assert_eq!(page["from"], 1);
    let next = admin.get(&format!("{path}?from={}", page["next"])).await;
    assert_eq!((next["text"].as_str(), next["end"].as_bool()), (Some(""), Some(true)));
    assert_eq!(admin.refused("GET", &format!("{path}?from=0"), &Value::Null).await, "invalid_fields");
    assert_eq!(
        admin.refused("GET", &format!("{path}?address=http://evil/"), &Value::Null).await,
        "malformed_request"
    );
    let file = admin.send("GET", &format!("{path}/download"), &Value::Null).await;
    assert!(
        file.body.contains("given hello") && file.header("content-type")[0].starts_with("text/plain"),
        "{file:?}"
    );
    for strange in ["..%2F..%2Fetc%2Fpasswd", "1e3", "-1", "9223372036854775808", "x"] {
        assert_eq!(admin.refused("GET", &format!("/v1/runs/{strange}/log"), &Value::Null).await, "not_found");
    }
    bench.stop().await;
}

#[tokio::test]
async fn what_happened_to_a_run_outlives_the_node_that_sent_it() {
    let bench = Bench::start_with(|settings| settings.database.push_str("?shared=true")).await;
    let _executor = bench.executor(vec![echo()]).await;
    let run = run(&bench, &bench.admin().await).await;
    let before = bench.admin().await.get(&format!("/v1/runs/{run}")).await;
    let bench = bench.replace("second").await;
    let admin = bench.admin().await;
    let after = admin.get(&format!("/v1/runs/{run}")).await;
    assert_eq!(after, before, "all of it, to the millisecond");
    let steps = after["timeline"].as_array().unwrap();
    for kind in ["scheduled", "claimed", "sent", "accepted", "ended", "recorded"] {
        let step = steps.iter().find(|step| step["kind"] == kind);
        assert!(step.is_some_and(|step| step["at"].is_string()), "{kind}: {after}");
    }
    let claimed = steps.iter().find(|step| step["kind"] == "claimed").unwrap();
    assert_eq!((claimed["detail"].as_str(), after["node"].as_str()), (Some("centre"), Some("centre")));
    assert_eq!((after["origin"]["kind"].as_str(), after["attempt"].as_u64()), (Some("manual"), Some(1)));
    let listed = admin.get("/v1/runs").await;
    assert_eq!(listed["items"][0]["origin"]["kind"], "manual");
    bench.stop().await;
}

#[tokio::test]
async fn runs_are_found_counted_repeated_and_cleared() {
    let bench = Bench::start().await;
    let _executor = bench.executor(vec![echo()]).await;
    let admin = bench.admin().await;
    let run = run(&bench, &admin).await;
    let again = admin.send("POST", &format!("/v1/runs/{run}/again"), &Value::Null).await;
    assert_eq!(again.status, 202);
    let second = again.json()["run"].clone();
    bench.over(JobId(1)).await;
    assert_eq!(admin.get(&format!("/v1/runs/{second}")).await["param"], "hello");
    let ids = async |query: &str| -> Vec<Value> {
        let page = admin.get(&format!("/v1/runs{query}")).await;
        page["items"].as_array().unwrap().iter().map(|run| run["id"].clone()).collect()
    };
    assert_eq!(ids("?job=one&state=succeeded").await, [second.clone(), run.clone()]);
    assert_eq!(ids("?state=failed").await, [] as [Value; 0]);
    assert_eq!(ids("?job=nothing").await, [] as [Value; 0]);
    assert_eq!(ids("?app=nowhere").await, [] as [Value; 0]);
    assert_eq!(ids("?limit=1").await, std::slice::from_ref(&second));
    assert_eq!(ids(&format!("?limit=1&after={second}")).await, std::slice::from_ref(&run));
    let statistics = admin.get("/v1/statistics?job=one").await;
    let sum: u64 = statistics["buckets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|b| b["runs"]["succeeded"].as_u64().unwrap())
        .sum();
    assert_eq!((sum, statistics["complete"].as_bool()), (2, Some(true)), "{statistics}");
    assert!(statistics["buckets"][0]["lateness_p99_ms"].is_number(), "{statistics}");
    let overview = admin.get("/v1/overview").await;
    assert_eq!(
        (overview["today"]["succeeded"].as_u64(), overview["executors_alive"].as_u64()),
        (Some(2), Some(1))
    );
    assert_eq!((overview["jobs"].as_u64(), overview["jobs_enabled"].as_u64()), (Some(1), Some(0)));
    let kill = format!("/v1/runs/{run}/kill");
    assert_eq!(admin.refused("POST", &kill, &Value::Null).await, "conflict", "it is over");
    let clear = json!({ "app": bench.app, "before": "2096-01-01T00:00:00Z" });
    assert_eq!(admin.post("/v1/runs/clear", &clear).await, json!({ "deleted": 2, "more": false }));
    assert_eq!(ids("").await, [] as [Value; 0]);
    bench.stop().await;
}

#[tokio::test]
async fn what_was_not_sent_is_told_with_the_reason() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    let mut job = body(&bench.app, "x");
    job["schedule"] = json!({ "kind": "once", "at": "2096-01-01T00:00:00Z" });
    admin.done("PUT", "/v1/jobs/one", &job).await;
    assert_eq!(admin.get("/v1/jobs/one/misses").await["items"], json!([]));
    bench.stop().await;
}

#[tokio::test]
async fn the_calendar_counts_the_fires_to_come() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    for expression in ["0 0 * * * ?", "0 30 * * * ?", "0 30 * * * ?"] {
        let mut job = body(&bench.app, expression);
        job["schedule"] = json!({ "kind": "cron", "expression": expression });
        job["enabled"] = json!(true);
        admin.post("/v1/jobs", &job).await;
    }
    let query = "from=2096-01-01T00:00:00Z&until=2096-01-01T02:00:00Z&step_ms=1800000";
    let calendar = admin.get(&format!("/v1/calendar?{query}")).await;
    let fires: Vec<u64> = calendar["buckets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|bucket| bucket["fires"].as_u64().unwrap())
        .collect();
    assert_eq!(fires, [1, 2, 1, 2]);
    assert_eq!((calendar["complete"].as_bool(), calendar["jobs"].as_u64()), (Some(true), Some(3)));
    let fine = format!("/v1/calendar?{query}").replace("1800000", "1000");
    assert_eq!(admin.refused("GET", &fine, &Value::Null).await, "invalid_fields");
    bench.stop().await;
}
