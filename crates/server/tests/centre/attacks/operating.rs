//! Starting and stopping jobs without the right to operate.

use engine::Store as _;
use serde_json::{Value, json};
use store::{Access, Rights};

use crate::kit::Bench;
use crate::script::{OLD, job_form};
use crate::v1::client::PASSWORD;

fn job(app: &str, name: &str, enabled: bool) -> Value {
    let schedule = json!({ "kind": "cron", "expression": "0 0 2 * * ?" });
    json!({ "app": app, "name": name, "handler": "echo", "schedule": schedule, "enabled": enabled })
}

/// Every request that starts or stops a job, at any endpoint, needs the right to operate in that job's app.
#[tokio::test]
async fn every_way_to_start_or_stop_a_job_needs_the_right() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    admin.add_app("other-app", "Other").await;
    let other = bench.database.app_by_name("other-app").await.unwrap().unwrap().id;
    // May edit both apps, and operate only one of them.
    let grants = [(engine::AppId(1), Rights::VIEW.with(Rights::EDIT)), (other, Rights::MEMBER)].into();
    bench.user("edith", &Access { grants, ..Access::default() }).await;
    let edith = bench.client("edith", PASSWORD).await;
    let script = bench.script(OLD, "edith", PASSWORD).await;
    let app = bench.app.as_str();
    for (key, app, enabled) in [
        ("on", app, true),
        ("off", app, false),
        ("elsewhere-on", "other-app", true),
        ("elsewhere-off", "other-app", false),
    ] {
        admin.done("PUT", &format!("/v1/jobs/{key}"), &job(app, key, enabled)).await;
    }
    let stored = async |key: &str| {
        let job = bench.database.job_by_key(key).await.unwrap().unwrap_or_else(|| panic!("{key} is gone"));
        (job.id.0, job.enabled, job.revision, job.spec.app)
    };
    let ids: Vec<i64> = [stored("on").await.0, stored("off").await.0, stored("elsewhere-on").await.0].into();
    let [on, off, elsewhere] = ids[..] else { panic!("three jobs") };
    let before = [stored("on").await, stored("off").await, stored("elsewhere-on").await];
    let without = |field: &str, value: Value| {
        let mut job = job(app, "on", true);
        job[field] = value;
        job
    };
    let refused = [
        ("stop", edith.send("POST", "/v1/jobs/on/stop", &Value::Null).await),
        ("start", edith.send("POST", "/v1/jobs/off/start", &Value::Null).await),
        ("trigger", edith.send("POST", "/v1/jobs/off/trigger", &Value::Null).await),
        ("disable", edith.send("PUT", "/v1/jobs/on", &job(app, "on", false)).await),
        ("enable", edith.send("PUT", "/v1/jobs/off", &job(app, "off", true)).await),
        ("add enabled", edith.send("PUT", "/v1/jobs/new", &job(app, "new", true)).await),
        ("add enabled", edith.send("POST", "/v1/jobs", &job(app, "new", true)).await),
        (
            "no schedule",
            edith.send("PUT", "/v1/jobs/on", &without("schedule", json!({ "kind": "none" }))).await,
        ),
        (
            "over",
            edith.send("PUT", "/v1/jobs/on", &without("valid_until", json!("2020-01-01T00:00:00Z"))).await,
        ),
        ("move in", edith.send("PUT", "/v1/jobs/elsewhere-on", &job(app, "elsewhere-on", true)).await),
        ("move out", edith.send("PUT", "/v1/jobs/on", &job("other-app", "on", true)).await),
        ("move out and disable", edith.send("PUT", "/v1/jobs/on", &job("other-app", "on", false)).await),
        ("delete", edith.send("DELETE", "/v1/jobs/on", &Value::Null).await),
    ];
    for (what, reply) in refused {
        assert_eq!(
            (reply.status, reply.json()["code"].as_str()),
            (403, Some("not_allowed")),
            "{what}: {reply:?}"
        );
    }
    for (action, jobs, app) in [
        ("start", [off], Value::Null),
        ("stop", [on], Value::Null),
        ("delete", [on], Value::Null),
        ("move", [elsewhere], json!(app)),
        ("move", [on], json!("other-app")),
    ] {
        let results =
            edith.post("/v1/jobs/bulk", &json!({ "action": action, "jobs": jobs, "app": app })).await;
        assert_eq!(results[0]["problem"]["code"], "not_allowed", "{action}: {results}");
    }
    let (on, off, elsewhere) = (on.to_string(), off.to_string(), elsewhere.to_string());
    let (one, two) = ("1".to_owned(), other.0.to_string());
    script.refused("/jobinfo/stop", &[("id", &on)]).await;
    script.refused("/jobinfo/start", &[("id", &off)]).await;
    script.refused("/jobinfo/trigger", &[("id", &off)]).await;
    script.refused("/jobinfo/remove", &[("id", &on)]).await;
    script.refused("/jobinfo/update", &job_form(&[("id", &elsewhere), ("jobGroup", &one)])).await;
    script.refused("/jobinfo/update", &job_form(&[("id", &on), ("jobGroup", &two)])).await;
    script.refused("/jobinfo/update", &job_form(&[("id", &on), ("scheduleType", "NONE")])).await;
    script.refused("/jobinfo/add", &job_form(&[("triggerStatus", "1")])).await;
    assert_eq!([stored("on").await, stored("off").await, stored("elsewhere-on").await], before);
    // The other parts of an edit are allowed.
    edith.done("PUT", "/v1/jobs/on", &without("author", json!("edith"))).await;
    edith.done("PUT", "/v1/jobs/off", &job(app, "off", false)).await;
    edith.done("PUT", "/v1/jobs/elsewhere-off", &job(app, "elsewhere-off", false)).await;
    edith.done("DELETE", "/v1/jobs/off", &Value::Null).await;
    assert!(stored("on").await.1);
    bench.stop().await;
}
