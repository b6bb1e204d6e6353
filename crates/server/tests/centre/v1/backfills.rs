//! Backfills: planned, started, looked at, paused, cancelled and retried.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use executor::{Context, Job};
use serde_json::{Value, json};
use store::Rights;

use super::client::{Client, body};
use crate::kit::{Bench, until};

/// A handler that returns the day it runs for, and fails on the third of a month while told so.
fn daily(fails: &Arc<AtomicBool>) -> Job {
    let fails = fails.clone();
    Job::new("daily", move |ctx: Context| {
        let day = ctx.triggered_at().to_string();
        let fails = fails.load(Ordering::Relaxed) && day.contains("-03T");
        async move { if fails { Err("not the third") } else { Ok(day) } }
    })
}

/// Saves a job that fires at 02:00 in Shanghai.
async fn put_job(bench: &Bench, admin: &Client<'_>, handler: &str) {
    let mut job = body(&bench.app, "Daily");
    job["handler"] = json!(handler);
    job["schedule"] = json!({ "kind": "cron", "expression": "0 0 2 * * ?", "zone": "Asia/Shanghai" });
    let made = admin.send("PUT", "/v1/jobs/daily", &job).await;
    assert_eq!(made.status, 201, "{made:?}");
}

async fn start(admin: &Client<'_>, request: Value) -> Value {
    admin.post("/v1/jobs/daily/backfills", &request).await["backfill"].clone()
}

async fn ended(admin: &Client<'_>, id: &Value) -> Value {
    until(&format!("backfill {id} has ended"), async || {
        let view = admin.get(&format!("/v1/backfills/{id}")).await;
        view["ended_at"].is_string().then_some(view)
    })
    .await
}

#[tokio::test]
async fn a_backfill_runs_the_days_of_a_range_and_repeats_what_failed() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    let fails = Arc::new(AtomicBool::new(true));
    let _executor = bench.executor(vec![daily(&fails)]).await;
    put_job(&bench, &admin, "daily").await;

    let range = json!({ "from": "2026-01-01", "to": "2026-01-05", "parallel": 2 });
    let mut dry = range.clone();
    dry["dry_run"] = json!(true);
    let plan = admin.post("/v1/jobs/daily/backfills", &dry).await["plan"].clone();
    assert_eq!((&plan["total"], &plan["run"], &plan["skip"]), (&json!(5), &json!(5), &json!(0)));
    assert_eq!(plan["times"][0], json!({ "scheduled_at": "2025-12-31T18:00:00.000Z", "action": "run" }));
    assert_eq!(admin.get("/v1/backfills").await["items"], json!([]), "a dry run starts nothing");

    let begun = start(&admin, range.clone()).await;
    assert_eq!(
        (&begun["total"], &begun["job_key"], &begun["existing"]),
        (&json!(5), &json!("daily"), &json!("skip"))
    );
    let id = begun["id"].clone();
    let done = ended(&admin, &id).await;
    let counts = ["succeeded", "failed", "pending"].map(|count| done[count].as_i64().unwrap());
    assert_eq!((counts, &done["state"]), ([4, 1, 0], &json!("finished")), "{done}");
    let failed = admin.get(&format!("/v1/backfills/{id}/times?state=failed")).await["items"].clone();
    assert_eq!(failed[0]["scheduled_at"], "2026-01-03T18:00:00.000Z");
    assert!(failed[0]["message"].as_str().unwrap().contains("not the third"), "{failed}");
    let times = admin.get(&format!("/v1/backfills/{id}/times?limit=2")).await;
    let run = admin.get(&format!("/v1/runs/{}", times["items"][0]["run"])).await;
    assert_eq!(run["origin"], json!({ "kind": "backfill", "of": id }));
    assert_eq!(run["result_message"], "2025-12-31T18:00:00Z", "the scheduled time reaches the handler");
    let rest =
        admin.get(&format!("/v1/backfills/{id}/times?after={}", times["next"].as_str().unwrap())).await;
    assert_eq!(rest["items"].as_array().unwrap().len(), 3);

    fails.store(false, Ordering::Relaxed);
    let retried = admin.post(&format!("/v1/backfills/{id}/retry"), &Value::Null).await;
    assert_eq!(retried["failed"], 0);
    assert_eq!(ended(&admin, &id).await["succeeded"], 5);
    assert_eq!(admin.refused("POST", &format!("/v1/backfills/{id}/retry"), &Value::Null).await, "conflict");

    let plan = admin.post("/v1/jobs/daily/backfills", &dry).await["plan"].clone();
    assert_eq!((&plan["run"], &plan["skip"]), (&json!(0), &json!(5)));
    assert_eq!(plan["times"][0]["because_of"], run["id"]);
    let again = start(&admin, range).await;
    assert_eq!(ended(&admin, &again["id"]).await["skipped"], 5);
    let listed = admin.get("/v1/backfills?job=daily").await["items"].clone();
    assert_eq!(listed.as_array().unwrap().len(), 2);
    assert_eq!(listed[0]["id"], again["id"], "newest first");
    bench.stop().await;
}

#[tokio::test]
async fn a_backfill_is_paused_continued_and_cancelled_with_its_runs() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    let stuck = Job::new("stuck", |ctx: Context| async move {
        ctx.cancellation().cancelled().await;
        "ended on request".to_owned()
    });
    let _executor = bench.executor(vec![stuck]).await;
    put_job(&bench, &admin, "stuck").await;
    let range = json!({ "dates": ["2026-01-05", "2026-01-01", "2026-01-03"], "order": "newest" });
    let key = admin.with("Idempotency-Key: once");
    let begun = start(&key, range.clone()).await;
    assert_eq!(start(&key, range).await["id"], begun["id"], "the same request");
    let id = &begun["id"];
    let open = until("a run is open", async || {
        let times = admin.get(&format!("/v1/backfills/{id}/times?state=open")).await["items"].clone();
        (!times.as_array().unwrap().is_empty()).then_some(times)
    })
    .await;
    assert_eq!(open[0]["scheduled_at"], "2026-01-04T18:00:00.000Z");
    let run = open[0]["run"].as_i64().unwrap();
    until("it runs", async || {
        (admin.get(&format!("/v1/runs/{run}")).await["state"] == "running").then_some(())
    })
    .await;
    assert_eq!(admin.post(&format!("/v1/backfills/{id}/pause"), &Value::Null).await["state"], "paused");
    assert_eq!(admin.post(&format!("/v1/backfills/{id}/continue"), &Value::Null).await["state"], "running");
    let cancelled = admin.post(&format!("/v1/backfills/{id}/cancel"), &json!({ "kill": true })).await;
    assert_eq!(cancelled["state"], "cancelled");
    let done = ended(&admin, id).await;
    assert_eq!((&done["cancelled"], &done["open"]), (&json!(3), &json!(0)), "{done}");
    assert_eq!(
        admin.refused("POST", &format!("/v1/backfills/{id}/continue"), &Value::Null).await,
        "conflict"
    );
    let audit = admin.get("/v1/audit?action=backfill.cancel").await["items"].clone();
    assert_eq!(audit[0]["object"], format!("backfill:{id}"));
    bench.stop().await;
}

#[tokio::test]
async fn a_range_that_cannot_be_run_is_refused_with_the_reason() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    put_job(&bench, &admin, "daily").await;
    let mut often = body(&bench.app, "Often");
    often["schedule"] = json!({ "kind": "cron", "expression": "* * * * * ?" });
    admin.done("PUT", "/v1/jobs/often", &often).await;
    let check = async |job: &str, request: Value, field: &str, expected: &str| {
        let reply = admin.send("POST", &format!("/v1/jobs/{job}/backfills"), &request).await;
        let problem = reply.json();
        assert_eq!((reply.status, &problem["fields"][0]["field"]), (422, &json!(field)), "{problem}");
        assert!(problem["fields"][0]["detail"].as_str().unwrap().contains(expected), "{problem}");
    };
    check("daily", json!({}), "from", "is required").await;
    check("daily", json!({ "from": "yesterday" }), "from", "neither a date nor a time").await;
    check("daily", json!({ "from": "2026-01-02", "to": "2026-01-01" }), "to", "before `from`").await;
    check("daily", json!({ "from": "2026-01-01", "to": "2099-01-01" }), "to", "in the future").await;
    check("daily", json!({ "dates": ["2099-01-01"] }), "dates", "in the future").await;
    check("daily", json!({ "dates": ["2026-01-01"], "from": "2026-01-01" }), "dates", "combined").await;
    check("daily", json!({ "from": "2026-01-01", "parallel": 0 }), "parallel", "from 1 to 100").await;
    let hour = json!({ "from": "2026-01-01T00:00:00Z", "to": "2026-01-01T01:00:00Z" });
    check("daily", hour, "to", "no scheduled time").await;
    let years = json!({ "from": "2016-01-01", "to": "2026-01-01" });
    check("often", years, "to", "more than 50000 scheduled times, but a backfill has at most 10000").await;
    let viewer = bench.person("viewer", Rights::VIEW).await;
    let request = json!({ "from": "2026-01-01", "to": "2026-01-01" });
    assert_eq!(viewer.refused("POST", "/v1/jobs/daily/backfills", &request).await, "not_allowed");
    bench.stop().await;
}
