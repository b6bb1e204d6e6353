//! Workflows: saved, run, looked at, paused, decided and cancelled.

use executor::{Context, Job};
use serde_json::{Value, json};
use store::Rights;

use super::client::{Client, body};
use crate::kit::{Bench, until};

/// A handler that returns the number of rows that its parameter asks for.
fn extract() -> Job {
    Job::new("extract", |ctx: Context| async move {
        let asked: Value = serde_json::from_str(ctx.param()).unwrap_or_default();
        json!({ "rows": asked["rows"], "table": asked["table"] }).to_string()
    })
}

/// A handler that returns its parameter.
fn load() -> Job {
    Job::new("load", |ctx: Context| async move { ctx.param().to_owned() })
}

/// A handler that fails until it is asked to end.
fn stuck() -> Job {
    Job::new("stuck", |ctx: Context| async move {
        ctx.cancellation().cancelled().await;
        "ended on request".to_owned()
    })
}

/// Saves jobs that only workflows run, each called like its handler.
async fn put_jobs(bench: &Bench, admin: &Client<'_>, handlers: &[&str]) {
    for handler in handlers {
        let mut job = body(&bench.app, handler);
        (job["handler"], job["schedule"]) = (json!(handler), json!({ "kind": "none" }));
        let made = admin.send("PUT", &format!("/v1/jobs/{handler}"), &job).await;
        assert_eq!(made.status, 201, "{made:?}");
    }
}

fn workflow(bench: &Bench, workflow: Value) -> Value {
    let mut job = body(&bench.app, "Daily sales");
    job.as_object_mut().unwrap().remove("handler");
    (job["workflow"], job["schedule"]) = (workflow, json!({ "kind": "none" }));
    job
}

/// Triggers a workflow with these inputs, and returns its run.
async fn trigger(admin: &Client<'_>, key: &str, inputs: Value) -> i64 {
    let param = json!({ "param": inputs.to_string() });
    let reply = admin.send("POST", &format!("/v1/jobs/{key}/trigger"), &param).await;
    assert_eq!(reply.status, 202, "{reply:?}");
    reply.json()["run"].as_i64().unwrap()
}

/// Waits until the run is in this state.
async fn ended(admin: &Client<'_>, run: i64, state: &str) -> Value {
    until(&format!("run {run} is {state}"), async || {
        let view = admin.get(&format!("/v1/runs/{run}")).await;
        let is_over = view["ended_at"].is_string() || view["state"] == "failed";
        assert!(!is_over || view["state"] == state, "{view}");
        is_over.then_some(view)
    })
    .await
}

async fn step(admin: &Client<'_>, run: i64, name: &str) -> Value {
    admin.get(&format!("/v1/runs/{run}/steps/{name}")).await
}

#[tokio::test]
async fn steps_run_in_order_with_the_outputs_of_those_before() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    let _executor = bench.executor(vec![extract(), load()]).await;
    put_jobs(&bench, &admin, &["extract", "load"]).await;
    let definition = json!({
        "inputs": { "region": { "type": "text", "default": "all" } },
        "steps": [
            { "name": "orders", "job": "extract", "with": { "table": "orders", "rows": 5 } },
            { "name": "users", "job": "extract", "with": { "table": "users", "rows": 2 } },
            { "name": "many", "needs": ["users", { "step": "orders", "if": "steps.orders.output.rows > 100" }],
              "when": "all_succeeded", "job": "load" },
            { "name": "few", "needs": ["users", { "step": "orders", "else": true }], "when": "all_succeeded", "job": "load",
              "with": { "rows": "${{ steps.orders.output.rows + steps.users.output.rows }}", "in": "${{ inputs.region }}" } },
            { "name": "report", "needs": ["many", "few"], "job": "load", "param": "done: ${{ steps.few.output.rows }}" }
        ],
        "output": { "rows": "${{ steps.few.output.rows }}" },
        "on_error": "stop"
    });
    let made = admin.send("PUT", "/v1/jobs/daily", &workflow(&bench, definition.clone())).await;
    assert_eq!((made.status, &made.json()["workflow"]), (201, &definition), "{made:?}");
    let again = admin.send("PUT", "/v1/jobs/daily", &workflow(&bench, definition)).await;
    assert_eq!((again.status, &again.json()["revision"]), (200, &made.json()["revision"]), "nothing is new");

    let run = trigger(&admin, "daily", json!({ "region": "north" })).await;
    let view = ended(&admin, run, "succeeded").await;
    assert_eq!(view["result_message"], r#"{"rows":7}"#);
    let steps = admin.get(&format!("/v1/runs/{run}/steps")).await;
    let states: Vec<(&str, &str)> = steps["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| (step["name"].as_str().unwrap(), step["state"].as_str().unwrap()))
        .collect();
    let expected = [
        ("orders", "succeeded"),
        ("users", "succeeded"),
        ("many", "skipped"),
        ("few", "succeeded"),
        ("report", "succeeded"),
    ];
    assert_eq!(states, expected);
    assert_eq!(steps["inputs"], json!({ "region": "north" }));
    assert_eq!(step(&admin, run, "few").await["output"], json!({ "rows": 7, "in": "north" }));
    let report = step(&admin, run, "report").await;
    let report = admin.get(&format!("/v1/runs/{}", report["run"])).await;
    assert_eq!(
        (&report["param"], &report["origin"]),
        (&json!("done: 7"), &json!({ "kind": "step", "of": run }))
    );
    bench.stop().await;
}

#[tokio::test]
async fn people_decide_pause_and_cancel() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    let _executor = bench.executor(vec![load(), stuck()]).await;
    put_jobs(&bench, &admin, &["load", "stuck"]).await;
    let definition = json!({
        "steps": [
            { "name": "sign", "approval": { "ask": "pay the bills?", "approvers": ["adele"] } },
            { "name": "pay", "needs": ["sign"], "job": "load" },
            { "name": "wait", "needs": ["pay"], "wait_ms": 20 },
            { "name": "hang", "needs": ["wait"], "job": "stuck" },
            { "name": "tidy", "phase": "finally", "job": "load" }
        ]
    });
    let made = admin.send("PUT", "/v1/jobs/bills", &workflow(&bench, definition)).await;
    assert_eq!(made.status, 201, "{made:?}");
    let run = trigger(&admin, "bills", json!({})).await;
    let decide = format!("/v1/runs/{run}/steps/sign/decide");
    until("the step asks", async || {
        let found = admin.send("GET", &format!("/v1/runs/{run}/steps/sign"), &Value::Null).await;
        (found.status == 200 && found.json()["state"] == "waiting").then_some(())
    })
    .await;
    assert_eq!(step(&admin, run, "sign").await["message"], "pay the bills?");
    let yes = json!({ "approved": true, "remark": "fine" });
    assert_eq!(admin.refused("POST", &decide, &yes).await, "not_allowed");
    admin.done("POST", &format!("/v1/runs/{run}/pause"), &Value::Null).await;
    let adele = bench.person("adele", Rights::VIEW).await;
    adele.done("POST", &decide, &yes).await;
    adele.done("POST", &decide, &yes).await;
    until("the next step is held", async || {
        (step(&admin, run, "pay").await["state"] == "held").then_some(())
    })
    .await;
    let no = json!({ "approved": false });
    assert_eq!(adele.refused("POST", &decide, &no).await, "conflict");
    let decision = json!({ "approved": true, "by": "adele", "remark": "fine" });
    assert_eq!(step(&admin, run, "sign").await["decision"], decision);
    admin.done("POST", &format!("/v1/runs/{run}/continue"), &Value::Null).await;
    until("the last step runs", async || (step(&admin, run, "hang").await["state"] == "open").then_some(()))
        .await;
    let hang = step(&admin, run, "hang").await["run"].clone();
    until("its executor has it", async || {
        (admin.get(&format!("/v1/runs/{hang}")).await["state"] == "running").then_some(())
    })
    .await;
    admin.done("POST", &format!("/v1/runs/{run}/kill"), &Value::Null).await;
    ended(&admin, run, "cancelled").await;
    assert_eq!(step(&admin, run, "hang").await["state"], "cancelled");
    assert_eq!(step(&admin, run, "tidy").await["state"], "succeeded");
    assert_eq!(admin.refused("POST", &format!("/v1/runs/{run}/pause"), &Value::Null).await, "conflict");
    bench.stop().await;
}

#[tokio::test]
async fn a_wrong_workflow_is_refused_where_it_is_wrong() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    put_jobs(&bench, &admin, &["load"]).await;
    let refused = async |definition: Value, field: &str| {
        let reply = admin.send("PUT", "/v1/jobs/wrong", &workflow(&bench, definition)).await;
        let problem = reply.json();
        assert_eq!((reply.status, problem["fields"][0]["field"].as_str()), (422, Some(field)), "{problem}");
    };
    let load = |name: &str, needs: Value| json!({ "name": name, "needs": needs, "job": "load" });
    refused(json!({ "steps": [] }), "workflow.steps").await;
    refused(json!({ "steps": [{ "name": "a", "job": "gone" }] }), "workflow.steps.a.job").await;
    refused(json!({ "steps": [load("a", json!(["b"]))] }), "workflow.steps.a.needs[0]").await;
    refused(json!({ "steps": [load("a", json!(["b"])), load("b", json!(["a"]))] }), "workflow.steps.a").await;
    let mut mixed = workflow(&bench, json!({ "steps": [load("a", json!([]))] }));
    mixed["handler"] = json!("load");
    let reply = admin.send("PUT", "/v1/jobs/wrong", &mixed).await.json();
    assert_eq!(reply["fields"][0]["field"], "workflow");

    let made = admin
        .send("PUT", "/v1/jobs/right", &workflow(&bench, json!({ "steps": [load("a", json!([]))] })))
        .await;
    assert_eq!(made.status, 201, "{made:?}");
    let nested = json!({ "steps": [{ "name": "a", "job": "right" }] });
    refused(nested, "workflow.steps.a.job").await;
    let evelyn = bench.person("evelyn", Rights::VIEW.with(Rights::EDIT)).await;
    let hidden = evelyn
        .send("PUT", "/v1/jobs/mine", &workflow(&bench, json!({ "steps": [load("a", json!([]))] })))
        .await;
    assert_eq!(hidden.json()["fields"][0]["field"], "workflow.steps.a.job", "she may not operate that job");
    let run = trigger(&admin, "right", json!({ "unknown": 1 })).await;
    let view = ended(&admin, run, "failed").await;
    assert!(view["result_message"].as_str().unwrap().contains("no input `unknown`"), "{view}");
    let plain = trigger(&admin, "load", json!({})).await;
    assert_eq!(admin.refused("GET", &format!("/v1/runs/{plain}/steps"), &Value::Null).await, "conflict");
    bench.stop().await;
}
