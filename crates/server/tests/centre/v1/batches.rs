//! Requests about many jobs.

use serde_json::{Value, json};
use store::Rights;

use super::client::body;
use crate::kit::{Bench, until};

fn hourly(app: &str, name: &str) -> Value {
    let mut job = body(app, name);
    job["schedule"] = json!({ "kind": "fixed_rate", "every_ms": 3_600_000 });
    job
}

fn keyed(key: &str, job: Value) -> Value {
    json!({ "key": key, "job": job })
}

fn outcomes(results: &Value) -> Vec<&str> {
    results.as_array().unwrap().iter().map(|result| result["outcome"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn many_jobs_are_put_by_key_and_each_has_its_result() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    let mut parent = hourly(&bench.app, "Parent");
    parent["children"] = json!(["child", "grandchild"]);
    parent["enabled"] = json!(true);
    parent["tags"] = json!(["b", "a"]);
    let mut wrong = hourly(&bench.app, "Wrong");
    wrong["schedule"]["every_ms"] = json!(0);
    let mut child = hourly(&bench.app, "Child");
    child["children"] = json!(["grandchild"]);
    let request = json!({ "jobs": [
        keyed("parent", parent.clone()),
        keyed("child", child.clone()),
        keyed("grandchild", hourly(&bench.app, "Grandchild")),
        keyed("wrong", wrong),
        keyed("nowhere", hourly("no-such-app", "Nowhere")),
        keyed("child", child.clone()),
        keyed("id:7", hourly(&bench.app, "Number")),
    ]});
    let dry = {
        let mut dry = request.clone();
        dry["dry_run"] = json!(true);
        admin.done("PUT", "/v1/jobs", &dry).await
    };
    let expected = ["created", "created", "created", "rejected", "rejected", "rejected", "rejected"];
    assert_eq!(outcomes(&dry), expected);
    assert_eq!(admin.get("/v1/jobs").await["items"], json!([]), "a dry run changes nothing");
    let made = admin.done("PUT", "/v1/jobs", &request).await;
    assert_eq!(outcomes(&made), expected, "{made}");
    assert_eq!(made[3]["problem"]["fields"][0]["field"], "schedule.every_ms");
    assert_eq!(made[4]["problem"]["fields"][0]["field"], "app");
    let view = admin.get("/v1/jobs/parent").await;
    assert_eq!((&view["children"], &view["tags"]), (&json!(["child", "grandchild"]), &json!(["a", "b"])));
    assert_eq!((&view["id"], &view["revision"]), (&made[0]["id"], &made[0]["revision"]));
    assert!(view["next_fire_at"].is_string(), "it is started");

    parent["name"] = json!("Renamed");
    parent["enabled"] = json!(false);
    let again = json!({ "jobs": [keyed("parent", parent), keyed("child", child)] });
    let changed = admin.done("PUT", "/v1/jobs", &again).await;
    assert_eq!(outcomes(&changed), ["replaced", "unchanged"]);
    assert_eq!(changed[0]["fields"], json!(["enabled", "name"]));
    assert_ne!(changed[0]["revision"], made[0]["revision"]);
    assert_eq!(changed[1]["revision"], made[1]["revision"]);
    assert_eq!(outcomes(&admin.done("PUT", "/v1/jobs", &again).await), ["unchanged", "unchanged"]);

    let id = &made[0]["id"];
    let noted = admin.get(&format!("/v1/audit?object=job:{id}")).await;
    let actions: Vec<_> = noted["items"].as_array().unwrap().iter().map(|entry| &entry["action"]).collect();
    assert_eq!(actions, ["job.put", "job.put"], "an unchanged job is not recorded");
    assert!(noted["items"][0]["before"].as_str().unwrap().contains("Parent"));
    assert!(noted["items"][0]["after"].as_str().unwrap().contains("Renamed"));
    let summaries = admin.get("/v1/audit?action=job.batch").await;
    assert_eq!(summaries["items"].as_array().unwrap().len(), 4, "one for each request");
    let first: Value = serde_json::from_str(summaries["items"][2]["after"].as_str().unwrap()).unwrap();
    assert_eq!((&first["created"], &first["rejected"]), (&json!(3), &json!(4)));
    bench.stop().await;
}

#[tokio::test]
async fn all_or_none_of_a_request_are_put_and_revisions_are_kept() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    let put = async |jobs: Value, atomic: bool| {
        admin.done("PUT", "/v1/jobs", &json!({ "jobs": jobs, "atomic": atomic })).await
    };
    let one = keyed("one", hourly(&bench.app, "One"));
    let nameless = keyed("two", hourly(&bench.app, " "));
    let refused = put(json!([one, nameless]), true).await;
    assert_eq!(outcomes(&refused), ["rejected", "rejected"]);
    assert_eq!(refused[0]["problem"]["code"], "conflict");
    assert_eq!(refused[1]["problem"]["code"], "invalid_fields");
    assert_eq!(admin.get("/v1/jobs").await["items"], json!([]));
    let made = put(json!([one, keyed("two", hourly(&bench.app, "Two"))]), true).await;
    assert_eq!(outcomes(&made), ["created", "created"]);

    let with = |field: &str, value: Value| {
        let mut job = keyed("one", hourly(&bench.app, "Other"));
        job[field] = value;
        job
    };
    let code = |results: &Value| results[0]["problem"]["code"].as_str().map(str::to_owned);
    let outdated = Some("outdated".to_owned());
    assert_eq!(code(&put(json!([with("create_only", json!(true))]), false).await), outdated);
    assert_eq!(code(&put(json!([with("revision", json!(77))]), false).await), outdated);
    let mut gone = with("revision", json!(0));
    gone["key"] = json!("gone");
    assert_eq!(code(&put(json!([gone]), false).await), outdated);
    assert_eq!(outcomes(&put(json!([with("revision", json!(0))]), false).await), ["replaced"]);

    let circle = |key: &str, child: &str| {
        let mut job = hourly(&bench.app, key);
        job["children"] = json!([child]);
        keyed(key, job)
    };
    let results = put(json!([circle("one", "two"), circle("two", "one")]), false).await;
    assert_eq!(outcomes(&results), ["replaced", "rejected"], "{results}");
    let results = put(json!([circle("x", "y"), circle("y", "x"), circle("z", "z")]), false).await;
    assert_eq!(outcomes(&results), ["rejected"; 3]);
    let many: Vec<Value> = (0..1_001).map(|n| keyed(&format!("k{n}"), hourly(&bench.app, "x"))).collect();
    assert_eq!(admin.refused("PUT", "/v1/jobs", &json!({ "jobs": many })).await, "invalid_fields");
    bench.stop().await;
}

#[tokio::test]
async fn rights_are_checked_for_each_job_of_a_request() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    admin.done("PUT", "/v1/apps/other", &json!({ "title": "Other" })).await;
    let own = hourly(&bench.app, "Own");
    let foreign = keyed("foreign", hourly("other", "Foreign"));
    let made = json!({ "jobs": [keyed("own", own.clone()), foreign] });
    let made = admin.done("PUT", "/v1/jobs", &made).await;
    let writer = bench.person("writer", Rights::MEMBER).await;
    let viewer = bench.person("viewer", Rights::VIEW).await;
    let mut started = own.clone();
    started["enabled"] = json!(true);
    let mut moved = own.clone();
    moved["app"] = json!("other");
    let mut script = own.clone();
    script["script"] = json!({ "language": "shell", "source": "date" });
    let mut with_child = own.clone();
    with_child["children"] = json!(["foreign"]);
    let codes = |results: &Value| -> Vec<Value> {
        results.as_array().unwrap().iter().map(|result| result["problem"]["code"].clone()).collect()
    };
    let ask = json!({ "jobs": [
        keyed("foreign", own.clone()),
        keyed("own", moved),
        keyed("new", script),
        keyed("family", with_child),
        keyed("fresh", started),
    ]});
    let results = writer.done("PUT", "/v1/jobs", &ask).await;
    let none = Value::Null;
    let expected =
        [json!("not_found"), json!("invalid_fields"), json!("not_allowed"), json!("invalid_fields"), none];
    assert_eq!(codes(&results), expected, "{results}");
    let results = viewer.done("PUT", "/v1/jobs", &json!({ "jobs": [keyed("own", own)] })).await;
    assert_eq!(codes(&results), ["not_allowed"]);
    let tried = admin.get(&format!("/v1/audit?object=job:{}", made[1]["id"])).await;
    assert_eq!(tried["items"][0]["principal"], "writer", "an attempt on a hidden job is recorded");

    // By filter, only jobs that the caller may view exist.
    let stop = json!({ "action": "stop", "filter": {} });
    let stopped = writer.post("/v1/jobs/bulk", &stop).await;
    assert_eq!(stopped.as_array().unwrap().len(), 2, "{stopped}");
    let all = admin.post("/v1/jobs/bulk", &json!({ "action": "delete", "filter": { "app": "other" } })).await;
    assert_eq!(all, json!([{ "job": made[1]["id"] }]));
    let refused = viewer.post("/v1/jobs/bulk", &stop).await;
    assert!(codes(&refused).iter().all(|code| code == "not_allowed"), "{refused}");
    for wrong in [json!({ "action": "stop" }), json!({ "action": "stop", "filter": {}, "jobs": [1] })] {
        assert_eq!(admin.refused("POST", "/v1/jobs/bulk", &wrong).await, "invalid_fields");
    }
    bench.stop().await;
}

#[tokio::test]
async fn a_filter_finds_more_jobs_than_a_page() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    for step in 0..3 {
        let job = |n: usize| keyed(&format!("many/{step}/{n}"), hourly(&bench.app, "Many"));
        let jobs: Vec<Value> = (0..500).map(job).collect();
        let made = admin.done("PUT", "/v1/jobs", &json!({ "jobs": jobs })).await;
        assert!(outcomes(&made).iter().all(|outcome| *outcome == "created"));
    }
    let act = async |action: &str, filter: Value| {
        let results = admin.post("/v1/jobs/bulk", &json!({ "action": action, "filter": filter })).await;
        let results = results.as_array().unwrap().clone();
        assert!(results.iter().all(|result| result["problem"].is_null()), "{results:?}");
        results.len()
    };
    assert_eq!(act("start", json!({ "text": "many/" })).await, 1_500);
    assert_eq!(admin.get("/v1/jobs?enabled=true&limit=1").await["total"], 1_500);
    assert_eq!(act("stop", json!({ "text": "many/1/", "enabled": true })).await, 500);
    assert_eq!(act("delete", json!({ "app": bench.app })).await, 1_500);
    assert_eq!(admin.get("/v1/jobs?limit=1").await["total"], 0);
    let summary = admin.get("/v1/audit?action=job.bulk&limit=1").await;
    let summary: Value = serde_json::from_str(summary["items"][0]["after"].as_str().unwrap()).unwrap();
    let (first, last) = summary["jobs"].as_str().unwrap().split_once('-').unwrap();
    let (first, last): (i64, i64) = (first.parse().unwrap(), last.parse().unwrap());
    assert_eq!((last - first, &summary["done"]), (1_499, &json!(1_500)), "one range of ids");
    bench.stop().await;
}

#[tokio::test]
async fn a_change_is_completed_and_recorded_although_the_client_disconnects() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    let job = |n: usize| keyed(&format!("gone/{n}"), hourly(&bench.app, "Gone"));
    let jobs: Vec<Value> = (0..800).map(job).collect();
    admin.done("PUT", "/v1/jobs", &json!({ "jobs": jobs })).await;
    let started = async || admin.get("/v1/jobs?enabled=true&limit=1").await["total"].as_u64().unwrap();
    let client = admin.begin("POST", "/v1/jobs/bulk", &json!({ "action": "start", "filter": {} })).await;
    until("the first jobs are started", async || (started().await > 0).then_some(())).await;
    drop(client);
    let recorded = until("the request is in the audit", async || {
        let summary = admin.get("/v1/audit?action=job.bulk&limit=1").await;
        summary["items"][0]["after"].as_str().map(str::to_owned)
    })
    .await;
    assert!(recorded.contains("\"done\":800"), "{recorded}");
    assert_eq!(started().await, 800);
    bench.stop().await;
}
