//! Alerts, as shown to users.

use serde_json::{Value, json};
use store::Rights;

use super::client::body;
use crate::kit::{Bench, until};

/// A job with alerts enabled that no executor accepts.
async fn watched(bench: &Bench, key: &str, app: &str) {
    let mut job = body(app, key);
    job["alert"] = json!(true);
    bench.admin().await.done("PUT", &format!("/v1/jobs/{key}"), &job).await;
}

async fn fail(bench: &Bench, key: &str) -> i64 {
    let admin = bench.admin().await;
    let run = admin.post(&format!("/v1/jobs/{key}/trigger"), &Value::Null).await["run"].as_i64().unwrap();
    until("the run is over", async || {
        let view = admin.get(&format!("/v1/runs/{run}")).await;
        (view["state"] == "failed").then_some(())
    })
    .await;
    run
}

#[tokio::test]
async fn an_alert_that_nobody_is_told_is_seen_by_those_who_may_see_its_app() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    admin.done("PUT", "/v1/apps/other1", &json!({ "title": "Other" })).await;
    watched(&bench, "own", &bench.app).await;
    watched(&bench, "foreign", "other1").await;
    let run = fail(&bench, "own").await;
    fail(&bench, "foreign").await;

    let viewer = bench.person("viewer", Rights::VIEW).await;
    let alert = until("nobody was told", async || {
        let page = viewer.get("/v1/alerts?state=nobody").await;
        page["items"].as_array().unwrap().first().cloned()
    })
    .await;
    assert_eq!((alert["kind"].as_str(), alert["job_key"].as_str()), (Some("not_run"), Some("own")));
    assert_eq!((alert["app"].as_str(), alert["run"].as_i64()), (Some(bench.app.as_str()), Some(run)));
    assert_eq!((alert["count"].as_u64(), alert["deliveries"].as_array().map(Vec::len)), (Some(1), Some(0)));
    assert!(alert["message"].as_str().unwrap().contains("no executor"), "{alert}");

    let seen = async |query: &str| {
        viewer.get(&format!("/v1/alerts{query}")).await["items"].as_array().unwrap().len()
    };
    assert_eq!(seen("").await, 1, "the other app's are not shown");
    assert_eq!((seen("?app=other1").await, seen("?job=foreign").await), (0, 0));
    assert_eq!((seen("?job=own&kind=not_run").await, seen("?kind=lost").await), (1, 0));
    assert_eq!(seen("?until=2020-01-01T00:00:00Z").await, 0);
    assert_eq!(viewer.refused("GET", "/v1/alerts?kind=strange", &Value::Null).await, "invalid_fields");
    assert_eq!(viewer.refused("GET", "/v1/alerts?state=strange", &Value::Null).await, "invalid_fields");
    assert_eq!(viewer.get("/v1/overview").await["alerts"], json!({ "last_day": 1, "undelivered": 0 }));
    assert_eq!(admin.get("/v1/overview").await["alerts"]["last_day"], 2);
    bench.stop().await;
}

#[tokio::test]
async fn what_happens_again_soon_is_one_alert_with_a_count() {
    let bench = Bench::start().await;
    watched(&bench, "own", &bench.app).await;
    let first = fail(&bench, "own").await;
    for _ in 0..4 {
        fail(&bench, "own").await;
    }
    let page = bench.admin().await.get("/v1/alerts").await;
    let [alert] = &page["items"].as_array().unwrap()[..] else { panic!("one alert: {page}") };
    assert_eq!((alert["count"].as_u64(), alert["run"].as_i64()), (Some(5), Some(first)));
    assert!(alert["last_at"].as_str() > alert["at"].as_str(), "{alert}");
    bench.stop().await;
}
