//! Workflows: saved, run, looked at, paused, decided, cancelled and resumed.

use executor::{Context, Job};
use serde_json::{Value, json};
use store::{Registry as _, Rights};

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
    let taken: Vec<&Value> = steps["steps"].as_array().unwrap().iter().map(|step| &step["taken"]).collect();
    let expected = [json!([]), json!([]), json!([true, false]), json!([true, true]), json!([false, true])];
    assert_eq!(taken, expected.iter().collect::<Vec<_>>());
    assert!(steps["begun_at"].is_string() && steps["ended_at"].is_string(), "{steps}");
    let few = step(&admin, run, "few").await;
    let runs = few["runs"].as_array().unwrap();
    assert_eq!((runs.len(), &runs[0]["id"], &runs[0]["state"]), (1, &few["run"], &json!("succeeded")));
    assert_eq!(runs[0]["param"], r#"{"in":"north","rows":7}"#);

    // A run keeps its definition, whatever is saved since.
    let other = json!({ "steps": [{ "name": "alone", "job": "load" }] });
    let changed = admin.send("PUT", "/v1/jobs/daily", &workflow(&bench, other)).await;
    assert_eq!(changed.status, 200, "{changed:?}");
    assert_eq!(admin.get(&format!("/v1/runs/{run}/workflow")).await, made.json()["workflow"]);
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
async fn a_step_may_have_a_handler_of_its_own() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    let _executor = bench.executor(vec![extract(), load()]).await;
    let definition = json!({
        "steps": [
            { "name": "orders", "handler": "extract", "with": { "rows": 5 }, "retry": { "count": 2 } },
            { "name": "report", "needs": ["orders"], "handler": "load", "route": "round_robin",
              "param": "${{ steps.orders.output.rows }}" }
        ],
        "on_error": "stop"
    });
    let made = admin.send("PUT", "/v1/jobs/daily", &workflow(&bench, definition.clone())).await;
    assert_eq!(made.status, 201, "{made:?}");
    let shown = made.json()["workflow"].clone();
    assert_eq!(
        (&shown["steps"][1], &shown["steps"][0]["handler"]),
        (&definition["steps"][1], &json!("extract"))
    );
    assert_eq!(shown["steps"][0]["retry"]["count"], 2);
    let again = admin.send("PUT", "/v1/jobs/daily", &workflow(&bench, shown)).await;
    assert_eq!((again.status, &again.json()["revision"]), (200, &made.json()["revision"]), "nothing is new");

    let run = trigger(&admin, "daily", json!({})).await;
    ended(&admin, run, "succeeded").await;
    let report = step(&admin, run, "report").await;
    assert_eq!(report["output"], json!({ "message": "5" }));
    let listed = admin.get("/v1/jobs").await;
    assert_eq!(listed["items"].as_array().unwrap().len(), 1, "only the workflow is listed: {listed}");

    let job = admin.get(&format!("/v1/runs/{}", report["run"])).await["job"].clone();
    let deleted = admin.send("DELETE", &format!("/v1/jobs/id:{job}"), &Value::Null).await;
    assert_eq!(deleted.status, 409, "its workflow needs it: {deleted:?}");
    let evelyn = bench.person("evelyn", Rights::VIEW.with(Rights::EDIT)).await;
    let script = json!({ "steps": [
        { "name": "shell", "script": { "language": "shell", "source": "echo 1" } }
    ] });
    let refused = evelyn.send("PUT", "/v1/jobs/mine", &workflow(&bench, script)).await;
    assert_eq!(refused.status, 403, "she may not write scripts: {refused:?}");
    let wrong = json!({ "steps": [{ "name": "a", "handler": " " }] });
    let refused = admin.send("PUT", "/v1/jobs/wrong", &workflow(&bench, wrong)).await;
    assert_eq!(refused.status, 422, "{refused:?}");
    bench.stop().await;
}

#[tokio::test]
async fn a_workflow_that_runs_itself_is_refused() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    put_jobs(&bench, &admin, &["load"]).await;
    let calls = |name: &str| workflow(&bench, json!({ "steps": [{ "name": "a", "workflow": name }] }));
    let plain = workflow(&bench, json!({ "steps": [{ "name": "a", "job": "load" }] }));
    admin.send("PUT", "/v1/jobs/first", &plain).await;
    for (key, called) in [("second", "first"), ("third", "second")] {
        assert_eq!(admin.send("PUT", &format!("/v1/jobs/{key}"), &calls(called)).await.status, 201);
    }
    for called in ["first", "third"] {
        let refused = admin.send("PUT", "/v1/jobs/first", &calls(called)).await;
        let field = refused.json()["fields"][0]["field"].clone();
        assert_eq!(
            (refused.status, field),
            (422, json!("workflow.steps.a.workflow")),
            "{called}: {refused:?}"
        );
    }
    bench.stop().await;
}

#[tokio::test]
async fn a_workflow_has_one_run_whatever_its_route() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    let _executors = (bench.executor(vec![load()]).await, bench.executor(vec![load()]).await);
    put_jobs(&bench, &admin, &["load"]).await;
    let mut job = workflow(&bench, json!({ "steps": [{ "name": "a", "job": "load" }] }));
    job["route"] = json!("broadcast");
    assert_eq!(admin.send("PUT", "/v1/jobs/wide", &job).await.status, 201);
    let run = trigger(&admin, "wide", json!({})).await;
    ended(&admin, run, "succeeded").await;
    let runs = admin.get("/v1/runs?job=wide").await;
    assert_eq!(runs["items"].as_array().unwrap().len(), 1, "{runs}");
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
    let mut renamed = workflow(&bench, json!({ "steps": [load("a", json!([]))] }));
    renamed["name"] = json!("Renamed");
    let saved = evelyn.send("PUT", "/v1/jobs/right", &renamed).await;
    assert_eq!(saved.status, 200, "steps that stay as they are need no further right: {saved:?}");
    renamed["workflow"]["steps"][0]["param"] = json!("all");
    let changed = evelyn.send("PUT", "/v1/jobs/right", &renamed).await.json();
    assert_eq!(changed["fields"][0]["field"], "workflow.steps.a.job", "another parameter does: {changed}");
    let run = trigger(&admin, "right", json!({ "unknown": 1 })).await;
    let view = ended(&admin, run, "failed").await;
    assert!(view["result_message"].as_str().unwrap().contains("no input `unknown`"), "{view}");
    let plain = trigger(&admin, "load", json!({})).await;
    assert_eq!(admin.refused("GET", &format!("/v1/runs/{plain}/steps"), &Value::Null).await, "conflict");
    bench.stop().await;
}

/// A handler that fails with the parameter `fail`.
fn fussy() -> Job {
    Job::new("fussy", |ctx: Context| async move {
        match ctx.param() {
            "fail" => Err("as it was told".to_owned()),
            param => Ok(param.to_owned()),
        }
    })
}

#[tokio::test]
async fn a_run_is_resumed_once_and_keeps_what_succeeded() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    let _executor = bench.executor(vec![load(), fussy()]).await;
    put_jobs(&bench, &admin, &["load", "fussy"]).await;
    let definition = |param: &str| {
        json!({ "steps": [
            { "name": "first", "job": "load", "param": "one" },
            { "name": "second", "needs": ["first"], "job": "fussy", "param": param },
            { "name": "third", "needs": ["second"], "job": "load", "param": "${{ steps.second.output.message }}" },
            { "name": "tidy", "phase": "finally", "job": "load" }
        ] })
    };
    let made = admin.send("PUT", "/v1/jobs/daily", &workflow(&bench, definition("fail"))).await;
    assert_eq!(made.status, 201, "{made:?}");
    let run = trigger(&admin, "daily", json!({})).await;
    ended(&admin, run, "failed").await;
    let resume = format!("/v1/runs/{run}/resume");

    let viewer = bench.person("viola", Rights::VIEW).await;
    assert_eq!(viewer.refused("POST", &resume, &json!({})).await, "not_allowed");
    assert_eq!(admin.refused("POST", &resume, &json!({ "again": ["gone"] })).await, "invalid_fields");
    let dry = admin.send("POST", &resume, &json!({ "dry_run": true })).await;
    let expected = json!({ "kept": ["first"], "to_run": ["second", "third", "tidy"] });
    assert_eq!((dry.status, dry.json()), (200, expected));

    let made = admin.send("PUT", "/v1/jobs/daily", &workflow(&bench, definition("fine"))).await;
    assert_eq!(made.status, 200, "{made:?}");
    let latest = json!({ "version": "latest" });
    let resumed = admin.send("POST", &resume, &latest).await;
    assert_eq!((resumed.status, &resumed.json()["kept"]), (200, &json!(["first"])), "{resumed:?}");
    let next = resumed.json()["run"].as_i64().unwrap();
    assert_eq!(admin.refused("POST", &resume, &latest).await, "conflict");
    let view = ended(&admin, next, "succeeded").await;
    assert_eq!(view["scheduled_at"], admin.get(&format!("/v1/runs/{run}")).await["scheduled_at"]);
    let steps = admin.get(&format!("/v1/runs/{next}/steps")).await;
    assert_eq!((&steps["attempt"], &steps["resumed_of"]), (&json!(2), &json!(run)));
    assert_eq!((&steps["steps"][0]["kept"], &steps["steps"][1]["kept"]), (&json!(true), &Value::Null));
    assert_eq!(steps["steps"][0]["run"], step(&admin, run, "first").await["run"], "it did not run again");
    assert_eq!(step(&admin, next, "third").await["output"], json!({ "message": "fine" }));
    assert_eq!(admin.get(&format!("/v1/runs/{run}/steps")).await["resumed_by"], next);
    let audit = admin.get("/v1/audit?limit=50").await;
    let entries = audit["items"].as_array().unwrap();
    let wanted = format!("\"run\":{next}");
    let is_noted = |entry: &Value| entry["after"].as_str().is_some_and(|after| after.contains(&wanted));
    assert!(entries.iter().any(|entry| entry["action"] == "run.resume" && is_noted(entry)), "{audit}");
    bench.stop().await;
}

#[tokio::test]
async fn a_retry_of_a_workflow_goes_on_at_the_failed_step() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    let _executor = bench.executor(vec![load(), fussy()]).await;
    put_jobs(&bench, &admin, &["load", "fussy"]).await;
    let mut job = workflow(
        &bench,
        json!({ "steps": [
            { "name": "first", "job": "load" },
            { "name": "second", "needs": ["first"], "job": "fussy",
              "param": "${{ run.attempt == 1 ? 'fail' : 'fine' }}" }
        ] }),
    );
    job["retry"] = json!({ "count": 1, "backoff": { "kind": "fixed", "delay_ms": 0 } });
    let made = admin.send("PUT", "/v1/jobs/stubborn", &job).await;
    assert_eq!(made.status, 201, "{made:?}");
    let run = trigger(&admin, "stubborn", json!({})).await;
    ended(&admin, run, "failed").await;
    let next = until("the run is retried", async || {
        admin.get(&format!("/v1/runs/{run}/steps")).await["resumed_by"].as_i64()
    })
    .await;
    ended(&admin, next, "succeeded").await;
    assert_eq!(step(&admin, next, "first").await["kept"], true);
    bench.stop().await;
}

#[tokio::test]
async fn the_starter_of_a_run_does_not_approve_it_if_the_step_wants_another() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    let omar = bench.person("omar", Rights::VIEW.with(Rights::OPERATE)).await;
    let sign = json!({ "name": "sign", "approval": { "ask": "go on?", "by_starter": false } });
    let made = admin.send("PUT", "/v1/jobs/inner", &workflow(&bench, json!({ "steps": [sign] }))).await;
    assert_eq!((made.status, &made.json()["workflow"]["steps"][0]), (201, &sign), "{made:?}");
    let outer = json!({ "steps": [{ "name": "inner", "workflow": "inner" }] });
    let made = admin.send("PUT", "/v1/jobs/outer", &workflow(&bench, outer)).await;
    assert_eq!(made.status, 201, "{made:?}");

    let asks = async |run: i64, name: &str, state: &str| {
        until(&format!("step {name} is {state}"), async || {
            let found = admin.send("GET", &format!("/v1/runs/{run}/steps/{name}"), &Value::Null).await;
            (found.status == 200 && found.json()["state"] == state).then(|| found.json())
        })
        .await
    };
    let yes = json!({ "approved": true });
    let run = trigger(&omar, "outer", json!({})).await;
    let inner = asks(run, "inner", "open").await["run"].as_i64().unwrap();
    asks(inner, "sign", "waiting").await;
    let decide = format!("/v1/runs/{inner}/steps/sign/decide");
    assert_eq!(omar.refused("POST", &decide, &yes).await, "not_allowed");
    admin.done("POST", &decide, &json!({ "approved": false })).await;
    ended(&admin, run, "failed").await;

    // Who resumes a run starts it; and the approval is not omar's to set.
    let resume = format!("/v1/runs/{inner}/resume");
    assert_eq!(omar.refused("POST", &resume, &json!({ "set": { "sign": {} } })).await, "invalid_fields");
    let resumed = admin.send("POST", &resume, &json!({})).await;
    let next = resumed.json()["run"].as_i64().unwrap();
    asks(next, "sign", "waiting").await;
    let decide = format!("/v1/runs/{next}/steps/sign/decide");
    assert_eq!(admin.refused("POST", &decide, &yes).await, "not_allowed");
    omar.done("POST", &decide, &yes).await;
    ended(&admin, next, "succeeded").await;
    bench.stop().await;
}

/// A handler that fails once for each parameter.
fn flaky() -> Job {
    let seen = std::sync::Arc::new(std::sync::Mutex::new(std::collections::BTreeSet::new()));
    Job::new("flaky", move |ctx: Context| {
        let first = seen.lock().unwrap().insert(ctx.param().to_owned());
        async move { if first { Err("not yet") } else { Ok("done") } }
    })
}

#[tokio::test]
async fn a_step_lists_its_attempts() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    let _executor = bench.executor(vec![flaky()]).await;
    let mut job = body(&bench.app, "flaky");
    (job["handler"], job["schedule"]) = (json!("flaky"), json!({ "kind": "none" }));
    job["retry"] = json!({ "count": 2 });
    assert_eq!(admin.send("PUT", "/v1/jobs/flaky", &job).await.status, 201);
    let definition = json!({ "steps": [
        { "name": "one", "job": "flaky", "param": "one" },
        { "name": "two", "job": "flaky", "param": "two" }
    ] });
    assert_eq!(admin.send("PUT", "/v1/jobs/twice", &workflow(&bench, definition)).await.status, 201);
    let run = trigger(&admin, "twice", json!({})).await;
    ended(&admin, run, "succeeded").await;
    for name in ["one", "two"] {
        let view = step(&admin, run, name).await;
        let runs = view["runs"].as_array().unwrap();
        let attempts: Vec<_> =
            runs.iter().map(|run| (&run["attempt"], &run["state"], &run["param"])).collect();
        let param = json!(name);
        let expected = [(&json!(1), &json!("failed"), &param), (&json!(2), &json!("succeeded"), &param)];
        assert_eq!(attempts, expected, "{view}");
    }
    bench.stop().await;
}

#[tokio::test]
async fn a_grid_shows_the_last_runs_step_by_step() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    let _executor = bench.executor(vec![load()]).await;
    put_jobs(&bench, &admin, &["load"]).await;
    let grid = async |query: &str| admin.get(&format!("/v1/jobs/daily/grid{query}")).await;
    let save = async |steps: Value| {
        let saved = admin.send("PUT", "/v1/jobs/daily", &workflow(&bench, json!({ "steps": steps }))).await;
        assert!(saved.status < 300, "{saved:?}");
    };
    save(json!([
        { "name": "old", "job": "load" },
        { "name": "keep", "needs": ["old"], "if": "1 == 2", "job": "load" }
    ]))
    .await;
    assert_eq!(grid("").await, json!({ "steps": [], "runs": [], "next": null }));
    let first = trigger(&admin, "daily", json!({})).await;
    ended(&admin, first, "succeeded").await;
    save(json!([
        { "name": "keep", "job": "load" },
        { "name": "new", "needs": ["keep"], "job": "load", "param": "${{ steps.keep.output.absent }}" },
        { "name": "after", "needs": ["new"], "job": "load" }
    ]))
    .await;
    let second = trigger(&admin, "daily", json!({})).await;
    ended(&admin, second, "failed").await;
    let third = trigger(&admin, "daily", json!({})).await;
    ended(&admin, third, "failed").await;

    let whole = grid("").await;
    assert_eq!((&whole["steps"], &whole["next"]), (&json!(["keep", "new", "after", "old"]), &Value::Null));
    let runs: Vec<_> =
        whole["runs"].as_array().unwrap().iter().map(|run| (&run["id"], &run["cells"])).collect();
    let (failed, skipped) = (json!("SFU-"), json!("K--S"));
    let ids = [json!(third), json!(second), json!(first)];
    assert_eq!(runs, [(&ids[0], &failed), (&ids[1], &failed), (&ids[2], &skipped)]);
    assert_eq!(whole["runs"][2]["state"], "succeeded");
    assert!(whole["runs"][2]["took_ms"].is_i64() && whole["runs"][2]["scheduled_at"].is_string());

    let page = grid("?runs=2").await;
    assert_eq!((page["runs"].as_array().unwrap().len(), &page["next"]), (2, &json!(second)));
    let rest = grid(&format!("?runs=2&before={second}")).await;
    assert_eq!((&rest["steps"], &rest["runs"][0]["id"]), (&json!(["old", "keep"]), &json!(first)));
    assert_eq!(rest["next"], Value::Null);
    for query in ["?runs=0", "?runs=101", "?before=x"] {
        let path = format!("/v1/jobs/daily/grid{query}");
        assert_eq!(admin.refused("GET", &path, &Value::Null).await, "invalid_fields", "{query}");
    }
    let plain = admin.get("/v1/jobs/load/grid").await;
    assert_eq!(plain["runs"], json!([]), "a job without steps has no workflow runs");

    let names = async |query: &str| {
        let page = admin.get(&format!("/v1/jobs?sort=name&{query}")).await;
        let key = |job: &Value| job["key"].as_str().unwrap_or_default().to_owned();
        page["items"].as_array().unwrap().iter().map(key).collect::<Vec<_>>()
    };
    assert_eq!(names("workflow=true").await, ["daily"]);
    assert_eq!(names("workflow=false").await, ["load"]);
    bench.stop().await;
}

#[tokio::test]
async fn a_definition_is_checked_without_being_saved() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    put_jobs(&bench, &admin, &["load"]).await;
    let check = async |body: Value| {
        let reply = admin.send("POST", "/v1/workflows/check", &body).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.json()
    };
    let text = "steps:\n  - name: a\n    job: load\n  - name: b\n    needs: [a, c]\n    job: gone\n";
    let wrong = check(json!({ "text": text })).await;
    let places: Vec<_> = wrong["problems"]
        .as_array()
        .unwrap()
        .iter()
        .map(|problem| (problem["path"].as_str().unwrap(), problem["line"].as_u64()))
        .collect();
    assert_eq!(places, [("steps.b.job", Some(6))]);
    assert_eq!(wrong["workflow"]["steps"][1]["needs"], json!(["a", "c"]));
    let unknown = check(json!({ "text": text.replace("gone", "load") })).await;
    let problem = &unknown["problems"][0];
    assert_eq!((&problem["path"], &problem["line"]), (&json!("steps.b.needs[1]"), &json!(5)), "{unknown}");

    let right = check(json!({ "text": text.replace("gone", "load").replace(", c", "") })).await;
    assert_eq!(right["problems"], json!([]));
    let back = check(json!({ "workflow": right["workflow"] })).await;
    assert_eq!(back["workflow"], right["workflow"]);
    assert_eq!(check(json!({ "text": back["text"] })).await["workflow"], right["workflow"]);

    let unreadable = check(json!({ "text": "steps:\n  - nam: a\n" })).await;
    assert_eq!((unreadable.get("workflow"), &unreadable["problems"][0]["line"]), (None, &json!(2)));
    let both = json!({ "text": "steps: []", "workflow": { "steps": [] } });
    for body in [json!({}), both] {
        assert_eq!(admin.refused("POST", "/v1/workflows/check", &body).await, "invalid_fields");
    }
    assert_eq!(admin.get("/v1/jobs").await["total"], 1, "nothing is saved");
    let evelyn = bench.person("evelyn", Rights::VIEW).await;
    let hidden = evelyn.send("POST", "/v1/workflows/check", &json!({ "text": text })).await.json();
    assert_eq!(hidden["problems"][0]["path"], "steps.a.job", "she may not operate that job");
    bench.stop().await;
}

#[tokio::test]
async fn each_saved_definition_is_a_version_that_can_be_restored() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    put_jobs(&bench, &admin, &["extract", "load"]).await;
    let definition = |job: &str, remark: &str| {
        let steps = json!([{ "name": "only", "job": job }]);
        workflow(&bench, json!({ "steps": steps, "on_error": "stop", "remark": remark }))
    };
    assert_eq!(admin.send("PUT", "/v1/jobs/daily", &definition("extract", "as planned")).await.status, 201);
    let first = admin.get("/v1/jobs/daily").await;
    assert_eq!(first["workflow"].get("remark"), None, "it is in the list of versions");
    admin.done("PUT", "/v1/jobs/daily", &definition("load", "")).await;
    let saved = admin.done("PUT", "/v1/jobs/daily", &definition("load", "the same")).await;
    assert_eq!(admin.get("/v1/jobs/daily/versions").await.as_array().map(Vec::len), Some(2), "{saved}");

    let one = admin.get("/v1/jobs/daily/versions/1").await;
    assert_eq!((&one["workflow"], &one["by"]), (&first["workflow"], &json!("admin")), "{one}");
    let text = one["text"].as_str().unwrap();
    assert!(text.contains("job: extract") && !text.contains("remark"), "{text}");
    for missing in ["0", "3", "x"] {
        let path = format!("/v1/jobs/daily/versions/{missing}");
        assert_eq!(admin.refused("GET", &path, &Value::Null).await, "not_found");
        assert_eq!(admin.refused("POST", &format!("{path}/restore"), &json!({})).await, "not_found");
    }
    assert_eq!(admin.refused("GET", "/v1/jobs/load/versions", &Value::Null).await, "conflict");

    let restore = "/v1/jobs/daily/versions/1/restore";
    let stale = admin.with("if-match: \"0\"").send("POST", restore, &json!({})).await;
    assert_eq!(stale.status, 412, "{stale:?}");
    let long = json!({ "remark": "x".repeat(600) });
    assert_eq!(admin.send("POST", restore, &long).await.status, 422);
    let restored = admin.send("POST", restore, &json!({ "remark": "load is too slow" })).await;
    assert_eq!((restored.status, &restored.json()["workflow"]), (200, &first["workflow"]), "{restored:?}");
    // Again: it is the current definition, so nothing changes.
    assert_eq!(admin.send("POST", restore, &Value::Null).await.status, 200);
    let versions = admin.get("/v1/jobs/daily/versions").await;
    let shown: Vec<_> = versions.as_array().unwrap().iter().collect();
    let expected = [(3, "load is too slow", json!(1)), (2, "", Value::Null), (1, "as planned", Value::Null)];
    assert_eq!(shown.len(), 3, "{versions}");
    for (version, (number, remark, same_as)) in shown.into_iter().zip(expected) {
        let found = (&version["version"], &version["remark"], &version["same_as"], version.get("text"));
        assert_eq!(found, (&json!(number), &json!(remark), &same_as, None));
    }
    let changes = admin.get("/v1/jobs/daily/changes").await;
    assert_eq!(changes["items"][1]["action"], "workflow.restore", "{changes}");

    // What a version runs needs the same rights as if it were written again.
    let viewer = bench.person("viewer", Rights::VIEW).await;
    assert_eq!(viewer.get("/v1/jobs/daily/versions").await.as_array().map(Vec::len), Some(3));
    assert_eq!(viewer.refused("POST", "/v1/jobs/daily/versions/2/restore", &json!({})).await, "not_allowed");
    admin.done("DELETE", "/v1/jobs/load", &Value::Null).await;
    let gone = admin.send("POST", "/v1/jobs/daily/versions/2/restore", &json!({})).await;
    assert_eq!(gone.status, 422, "{gone:?}");
    assert!(gone.body.contains("workflow.steps.only.job"), "{gone:?}");
}

#[tokio::test]
async fn a_step_waits_for_the_newest_run_of_another_workflow() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    let _executor = bench.executor(vec![load(), fussy()]).await;
    put_jobs(&bench, &admin, &["load", "fussy"]).await;
    let sales = json!({
        "inputs": { "how": { "type": "text", "default": "well" } },
        "steps": [{ "name": "a", "job": "fussy", "param": "${{ inputs.how }}" }],
        "on_error": "stop"
    });
    assert_eq!(admin.send("PUT", "/v1/jobs/sales", &workflow(&bench, sales)).await.status, 201);
    let definition = json!({
        "steps": [
            { "name": "sales", "depends": { "on": "sales", "timeout_ms": 3_600_000 } },
            { "name": "report", "needs": ["sales"], "job": "load", "param": "of run ${{ steps.sales.output.runs[0] }}" }
        ],
        "on_error": "stop"
    });
    let made = admin.send("PUT", "/v1/jobs/board", &workflow(&bench, definition.clone())).await;
    assert_eq!((made.status, &made.json()["workflow"]), (201, &definition), "{made:?}");

    let run = trigger(&admin, "board", json!({})).await;
    let waits = async |why: &str| {
        until(&format!("the step says that the run {why}"), async || {
            let steps = admin.get(&format!("/v1/runs/{run}/steps")).await;
            let message = steps["steps"][0]["message"].as_str().unwrap_or_default();
            (steps["steps"][0]["state"] == "waiting" && message.contains(why)).then_some(())
        })
        .await;
    };
    waits("has no run yet").await;
    let failed = trigger(&admin, "sales", json!({ "how": "fail" })).await;
    ended(&admin, failed, "failed").await;
    waits("has failed").await;
    let newest = trigger(&admin, "sales", json!({})).await;
    ended(&admin, newest, "succeeded").await;
    ended(&admin, run, "succeeded").await;
    assert_eq!(step(&admin, run, "report").await["output"], json!({ "message": format!("of run {newest}") }));

    let circle = json!({ "steps": [{ "name": "a", "depends": { "on": "board" } }] });
    let refused = admin.send("PUT", "/v1/jobs/sales", &workflow(&bench, circle)).await.json();
    assert_eq!(refused["fields"][0]["field"], "workflow.steps.a.depends", "{refused}");
    let earlier = json!({ "steps": [{ "name": "a", "depends": { "on": "board", "date": "previous" } }] });
    assert_eq!(admin.send("PUT", "/v1/jobs/sales", &workflow(&bench, earlier)).await.status, 200);
    let wrong = |depends: Value| workflow(&bench, json!({ "steps": [{ "name": "a", "depends": depends }] }));
    for (depends, field) in [
        (json!({ "on": "gone" }), "workflow.steps.a.depends.on"),
        (json!({ "on": "sales", "date": "yesterday" }), "workflow.steps.a.depends.date"),
    ] {
        let refused = admin.send("PUT", "/v1/jobs/wrong", &wrong(depends)).await.json();
        assert_eq!(refused["fields"][0]["field"], field, "{refused}");
    }
    // Waiting needs the right to view the other job, starting it the right to operate it.
    let evelyn = bench.person("evelyn", Rights::VIEW.with(Rights::EDIT)).await;
    let starts = json!({ "on": "sales", "if_missing": "start" });
    let refused = evelyn.send("PUT", "/v1/jobs/mine", &wrong(starts)).await.json();
    assert_eq!(refused["fields"][0]["field"], "workflow.steps.a.depends.on", "{refused}");
    let saved = evelyn.send("PUT", "/v1/jobs/mine", &wrong(json!({ "on": "sales" }))).await;
    assert_eq!(saved.status, 201, "{saved:?}");
    bench.stop().await;
}

/// A handler that writes its parameter to the log and returns it, with the length of its password.
fn spill() -> Job {
    Job::new("spill", |ctx: Context| async move {
        ctx.log(ctx.param());
        let given: Value = serde_json::from_str(ctx.param()).unwrap_or_default();
        let length = given["password"].as_str().unwrap_or_default().len();
        json!({ "given": given, "length": length }).to_string()
    })
}

#[tokio::test]
async fn a_secret_reaches_its_executor_and_no_view() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    let _executor = bench.executor(vec![spill()]).await;
    let secrets = format!("/v1/apps/{}/secrets", bench.app);
    let value = "corr\"ect-horse";
    let set = admin.send("PUT", &format!("{secrets}/db"), &json!({ "value": value })).await;
    assert_eq!(set.status, 204, "{set:?}");
    let listed = admin.get(&secrets).await;
    assert_eq!((&listed[0]["name"], listed.to_string().contains("horse")), (&json!("db"), false), "{listed}");
    let definition = json!({ "steps": [
        { "name": "spill", "handler": "spill", "with": { "user": "etl", "password": "${{ secret('db') }}" } }
    ] });
    let made = admin.send("PUT", "/v1/jobs/daily", &workflow(&bench, definition)).await;
    assert_eq!(made.status, 201, "{made:?}");

    let run = trigger(&admin, "daily", json!({})).await;
    ended(&admin, run, "succeeded").await;
    let spilt = step(&admin, run, "spill").await;
    assert_eq!(spilt["output"]["length"], value.len(), "the executor has it: {spilt}");
    assert_eq!(spilt["output"]["given"]["password"], "***");
    assert!(spilt["runs"][0]["param"].as_str().unwrap().contains("${{ secret('db') }}"), "{spilt}");
    let log = admin.get(&format!("/v1/runs/{}/log", spilt["run"])).await;
    let text = log["text"].as_str().unwrap();
    assert!(text.contains("***") && !text.contains("horse"), "{text}");
    let shown = format!("{}{}{}", spilt, admin.get("/v1/audit").await, admin.get("/v1/jobs/daily").await);
    assert!(!shown.contains("horse"), "{shown}");
    let stored = bench.database.secrets().await.unwrap();
    assert!(!stored[0].sealed.contains("horse"));

    let changed = admin.send("PUT", &format!("{secrets}/db"), &json!({ "value": "short" })).await;
    assert_eq!(changed.status, 204, "{changed:?}");
    let run = trigger(&admin, "daily", json!({})).await;
    ended(&admin, run, "succeeded").await;
    assert_eq!(step(&admin, run, "spill").await["output"]["length"], 5);

    admin.done("DELETE", &format!("{secrets}/db"), &Value::Null).await;
    assert_eq!(admin.refused("DELETE", &format!("{secrets}/db"), &Value::Null).await, "not_found");
    let run = trigger(&admin, "daily", json!({})).await;
    let view = ended(&admin, run, "failed").await;
    assert!(view["result_message"].as_str().unwrap().contains("has no secret `db`"), "{view}");

    let viewer = bench.person("viewer", Rights::VIEW).await;
    assert_eq!(
        viewer.refused("PUT", &format!("{secrets}/db"), &json!({ "value": "x" })).await,
        "not_allowed"
    );
    for (name, body) in [("a%20b", json!({ "value": "x" })), ("db", json!({ "value": "" }))] {
        assert_eq!(admin.refused("PUT", &format!("{secrets}/{name}"), &body).await, "invalid_fields");
    }
    let condition = json!({ "steps": [{ "name": "a", "if": "secret('db') == 'x'", "handler": "spill" }] });
    let refused = admin.send("PUT", "/v1/jobs/wrong", &workflow(&bench, condition)).await.json();
    assert_eq!(refused["fields"][0]["field"], "workflow.steps.a.if", "{refused}");
    bench.stop().await;
}

#[tokio::test]
async fn agents_send_requests_and_start_programs_for_steps() {
    use executor::handlers::{Commands, Http};

    let bench = Bench::start().await;
    let admin = bench.admin().await;
    let http = Http::new().allow(&format!("http://{}/", bench.address)).unwrap().jobs();
    let commands = Commands::new().allow("/bin/sh").unwrap().jobs();
    let _executor = bench.executor(http.into_iter().chain(commands).chain([load()]).collect()).await;
    let definition = json!({
        "steps": [
            { "name": "ask", "http": { "url": format!("http://{}/healthz", bench.address), "method": "GET",
              "headers": { "X-Run": "${{ run.id }}" }, "timeout_ms": 20_000 }, "retry": { "count": 1 } },
            { "name": "count", "needs": ["ask"],
              "command": ["sh", "-c", "echo \"{\\\"rows\\\": $1}\" > $TICKWRIGHT_OUTPUT", "sh", "${{ steps.ask.output.status }}"] },
            { "name": "done", "needs": ["count"], "handler": "load", "param": "${{ steps.count.output.rows + 1 }}" }
        ],
        "on_error": "stop"
    });
    let made = admin.send("PUT", "/v1/jobs/daily", &workflow(&bench, definition.clone())).await;
    assert_eq!(made.status, 201, "{made:?}");
    let shown = made.json()["workflow"].clone();
    for (position, kind) in [(0, "http"), (1, "command")] {
        assert_eq!(shown["steps"][position][kind], definition["steps"][position][kind], "{shown}");
        assert!(shown["steps"][position].get("handler").is_none(), "{shown}");
    }
    let again = admin.send("PUT", "/v1/jobs/daily", &workflow(&bench, shown)).await;
    assert_eq!((again.status, &again.json()["revision"]), (200, &made.json()["revision"]), "nothing is new");

    let run = trigger(&admin, "daily", json!({})).await;
    ended(&admin, run, "succeeded").await;
    let asked = step(&admin, run, "ask").await;
    assert_eq!(asked["output"]["status"], 200, "{asked}");
    assert!(!asked["output"]["body"].is_null(), "{asked}");
    assert_eq!(step(&admin, run, "done").await["output"], json!({ "message": "201" }));
    for wrong in [
        json!({ "name": "a", "command": [] }),
        json!({ "name": "a", "http": { "url": " " } }),
        json!({ "name": "a", "http": { "url": "http://x/" }, "param": "x" }),
    ] {
        let body = workflow(&bench, json!({ "steps": [wrong] }));
        assert_eq!(admin.refused("PUT", "/v1/jobs/wrong", &body).await, "invalid_fields");
    }
    bench.stop().await;
}
