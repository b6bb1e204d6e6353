//! Jobs: create, read, change, start, trigger.

use engine::policy::Named;
use engine::{JobId, Store as _};
use serde_json::{Value, json};
use store::Rights;

use super::client::{body, problem};
use crate::kit::{Bench, echo};
use crate::script::{NEW, OLD, job_form};

#[tokio::test]
async fn a_job_is_put_by_its_key_again_and_again() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    let path = "/v1/jobs/orders%2Fsync";
    let mut job = body(&bench.app, "Sync");
    job["schedule"] = json!({ "kind": "cron", "expression": "0 0 2 * * ?", "zone": "Europe/London" });
    job["tags"] = json!(["nightly", "orders"]);
    job["enabled"] = json!(true);
    let made = admin.send("PUT", path, &job).await;
    assert_eq!(made.status, 201, "{made:?}");
    let view = made.json();
    assert_eq!((view["key"].as_str(), view["enabled"].as_bool()), (Some("orders/sync"), Some(true)));
    assert_eq!(view["tags"], json!(["nightly", "orders"]));
    assert_eq!(
        view["schedule"],
        json!({ "kind": "cron", "expression": "0 0 2 * * ?", "dialect": "quartz", "zone": "Europe/London" })
    );
    assert!(view["schedule_text"].as_str().unwrap().starts_with("At 02:00"), "{view}");
    assert_eq!((made.header("content-language"), made.header("vary")), (vec!["en"], vec!["Accept-Language"]));
    let chinese = admin.with("Accept-Language: zh-CN, en;q=0.5").send("GET", path, &Value::Null).await;
    assert!(chinese.json()["schedule_text"].as_str().unwrap().starts_with("每天"), "{chinese:?}");
    assert_eq!(chinese.header("content-language"), ["zh"]);
    assert!(view["next_fire_at"].is_string());
    assert_eq!(view["rights"], json!(["view", "operate", "edit", "script"]));
    let again = admin.send("PUT", path, &job).await;
    assert_eq!(
        (again.status, again.json()["revision"].clone()),
        (200, view["revision"].clone()),
        "nothing is new"
    );
    job["name"] = json!("Sync all");
    let changed = admin.send("PUT", path, &job).await;
    assert_ne!(changed.header("etag"), made.header("etag"));
    let by_number = admin.get(&format!("/v1/jobs/id:{}", view["id"])).await;
    assert_eq!((by_number["name"].as_str(), by_number["enabled"].as_bool()), (Some("Sync all"), Some(true)));
    assert_eq!(admin.refused("PUT", "/v1/jobs/id:4711", &job).await, "not_found");
    admin.done("DELETE", path, &Value::Null).await;
    assert_eq!(admin.refused("GET", path, &Value::Null).await, "not_found");
    bench.stop().await;
}

#[tokio::test]
async fn the_api_speaks_its_own_words_and_the_database_those_of_xxl_job() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    let mut job = body(&bench.app, "Sync");
    for (field, word, expected) in [
        ("route", "BUSYOVER", "`BUSYOVER` is XXL-JOB's word; write `first_idle`"),
        ("block", "SERIAL_EXECUTION", "`SERIAL_EXECUTION` is XXL-JOB's word; write `serial`"),
        ("route", "nearest", "`nearest` is not a routing strategy; write one of first, last, "),
    ] {
        let mut foreign = job.clone();
        foreign[field] = json!(word);
        let reply = admin.send("PUT", "/v1/jobs/sync", &foreign).await;
        let wrong = &reply.json()["fields"][0];
        assert_eq!((reply.status, wrong["field"].as_str()), (422, Some(field)), "{reply:?}");
        assert!(wrong["detail"].as_str().unwrap().starts_with(expected), "{wrong}");
    }
    (job["route"], job["block"]) = (json!("first_idle"), json!("cover_early"));
    let view = admin.send("PUT", "/v1/jobs/sync", &job).await.json();
    assert_eq!((&view["route"], &view["block"]), (&job["route"], &job["block"]));
    let script = bench.admin_script(OLD).await;
    let (listed, _) = script.page("/jobinfo/pageList", &[("jobGroup", "1"), ("triggerStatus", "-1")]).await;
    assert_eq!(listed[0]["executorRouteStrategy"], "BUSYOVER", "{listed:?}");
    assert_eq!(listed[0]["executorBlockStrategy"], "COVER_EARLY", "{listed:?}");
    bench.stop().await;
}

#[tokio::test]
async fn a_job_with_the_words_of_a_fork_is_shown_and_keeps_them() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    let job = bench.job("echo", |spec| {
        (spec.route, spec.block) = (Named::Other("NEAREST".into()), Named::Other("TWICE".into()));
        spec.schedule = cron::Schedule::once(bench.engine.now() + std::time::Duration::from_secs(3_600));
    });
    let path = format!("/v1/jobs/id:{}", job.await);
    let view = admin.get(&path).await;
    assert_eq!((view["route"].as_str(), view["block"].as_str()), (Some("NEAREST"), Some("TWICE")), "{view}");
    admin.done("POST", &format!("{path}/start"), &Value::Null).await;
    let view = admin.get(&path).await;
    assert_eq!((view["route"].as_str(), view["enabled"].as_bool()), (Some("NEAREST"), Some(true)), "{view}");
    bench.stop().await;
}

#[tokio::test]
async fn an_edit_of_what_somebody_else_has_changed_is_refused() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    let mut job = body(&bench.app, "One");
    let first = admin.send("PUT", "/v1/jobs/one", &job).await;
    let tag = first.header("etag")[0].to_owned();
    job["name"] = json!("Two");
    let edit = admin.with(&format!("If-Match: {tag}"));
    assert_eq!(edit.send("PUT", "/v1/jobs/one", &job).await.status, 200);
    job["name"] = json!("Three");
    let reply = edit.send("PUT", "/v1/jobs/one", &job).await;
    assert_eq!((reply.status, problem(&reply).as_str()), (412, "outdated"));
    assert_eq!(edit.refused("PUT", "/v1/jobs/another", &job).await, "outdated");
    let only_new = admin.with("If-None-Match: *");
    let number = bench.database.job_by_key("one").await.unwrap().unwrap().id;
    for path in ["/v1/jobs/one".to_owned(), format!("/v1/jobs/id:{number}")] {
        let reply = only_new.send("PUT", &path, &job).await;
        assert_eq!((reply.status, problem(&reply).as_str()), (412, "outdated"), "{path}");
    }
    assert_eq!(only_new.refused("PUT", "/v1/jobs/id:999999", &job).await, "not_found", "numbers are given");
    assert_eq!(admin.get("/v1/jobs/one").await["name"], "Two");
    let changes = admin.get("/v1/jobs/one/changes").await;
    let changes = changes["items"].as_array().unwrap();
    assert_eq!(changes.len(), 2, "what was refused is no change");
    assert_eq!((&changes[0]["before"]["name"], &changes[0]["after"]["name"]), (&json!("One"), &json!("Two")));
    assert_eq!((&changes[1]["before"], &changes[1]["by"]), (&Value::Null, &json!("admin")));
    let script = bench.admin_script(crate::script::OLD).await;
    script.done("/jobinfo/stop", &[("id", "1")]).await;
    let changes = admin.get("/v1/jobs/one/changes?limit=1").await;
    assert_eq!(changes["items"][0]["action"], "/jobinfo/stop", "whatever it was changed through");
    bench.stop().await;
}

#[tokio::test]
async fn wrong_fields_are_all_named_at_once() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    let job = json!({
        "app": bench.app, "name": " ", "schedule": { "kind": "cron", "expression": "0 0 25 * * ?" }, "route": "NEAREST",
    });
    let reply = admin.send("POST", "/v1/jobs", &job).await;
    assert_eq!(problem(&reply), "invalid_fields");
    let json = reply.json();
    let fields: Vec<&str> =
        json["fields"].as_array().unwrap().iter().map(|field| field["field"].as_str().unwrap()).collect();
    assert_eq!(fields, ["schedule.expression", "name", "handler", "route"]);
    for (change, field) in [
        (json!({ "app": "nowhere" }), "app"),
        (json!({ "children": ["nothing"] }), "children"),
        (json!({ "enabled": true }), "schedule.kind"),
    ] {
        let mut job = body(&bench.app, "x");
        job.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let json = admin.send("POST", "/v1/jobs", &job).await.json();
        assert_eq!(json["fields"][0]["field"], field, "{json}");
    }
    bench.stop().await;
}

#[tokio::test]
async fn children_are_named_by_key_and_never_in_a_circle() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    let with = |children: Value| {
        let mut job = body(&bench.app, "x");
        job["children"] = children;
        job
    };
    admin.done("PUT", "/v1/jobs/leaf", &with(json!([]))).await;
    let plain = admin.post("/v1/jobs", &with(json!([]))).await;
    let number = plain["id"].to_string();
    let parent = admin.done("PUT", "/v1/jobs/parent", &with(json!(["leaf", number]))).await;
    assert_eq!(parent["children"], json!(["leaf", number]));
    for circle in [json!(["leaf"]), json!(["parent"]), json!([""]), json!(["-1"]), json!(vec!["leaf"; 101])] {
        assert_eq!(
            admin.refused("PUT", "/v1/jobs/leaf", &with(circle.clone())).await,
            "invalid_fields",
            "{circle}"
        );
    }
    bench.stop().await;
}

#[tokio::test]
async fn jobs_are_listed_in_every_order_page_by_page() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    for (name, minute) in [("b", 20), ("a", 30), ("c", 10), ("a", 40), ("d", 0)] {
        let mut job = body(&bench.app, name);
        if minute > 0 {
            job["schedule"] = json!({ "kind": "once", "at": format!("2096-01-01T00:{minute}:00Z") });
            job["enabled"] = json!(true);
        }
        job["tags"] = if name == "a" { json!(["first"]) } else { json!([]) };
        admin.post("/v1/jobs", &job).await;
    }
    let listed = async |query: &str| -> Vec<u64> {
        let (mut ids, mut after) = (Vec::new(), String::new());
        for _ in 0..5 {
            let page = admin.get(&format!("/v1/jobs?limit=2&{query}{after}")).await;
            ids.extend(page["items"].as_array().unwrap().iter().map(|job| job["id"].as_u64().unwrap()));
            let Some(next) = page["next"].as_str() else { return ids };
            after = format!("&after={next}");
        }
        panic!("{query} does not end: {ids:?}")
    };
    assert_eq!(listed("").await, [5, 4, 3, 2, 1]);
    assert_eq!(listed("sort=id").await, [1, 2, 3, 4, 5]);
    assert_eq!(listed("sort=name").await, [2, 4, 1, 3, 5]);
    assert_eq!(listed("sort=-name").await, [5, 3, 1, 4, 2]);
    assert_eq!(listed("sort=next_fire_at").await, [3, 1, 2, 4, 5]);
    assert_eq!(listed("sort=-next_fire_at").await, [4, 2, 1, 3, 5]);
    assert_eq!(listed("tag=first").await, [4, 2]);
    assert_eq!(listed("enabled=false").await, [5]);
    assert_eq!(listed(&format!("app={}&text=D", bench.app)).await, [5]);
    assert_eq!(admin.refused("GET", "/v1/jobs?sort=age", &Value::Null).await, "invalid_fields");
    bench.stop().await;
}

#[tokio::test]
async fn a_trigger_with_the_same_idempotency_key_is_one_run() {
    let bench = Bench::start().await;
    let _executor = bench.executor(vec![echo()]).await;
    let admin = bench.admin().await;
    admin.done("PUT", "/v1/jobs/one", &body(&bench.app, "One")).await;
    let keyed = admin.with("Idempotency-Key: order-7");
    let reply = keyed.send("POST", "/v1/jobs/one/trigger", &json!({ "param": "hello" })).await;
    assert_eq!(reply.status, 202);
    let run = reply.json()["run"].clone();
    assert_eq!(keyed.post("/v1/jobs/one/trigger", &json!({ "param": "hello" })).await["run"], run);
    assert_ne!(admin.post("/v1/jobs/one/trigger", &Value::Null).await["run"], run);
    let other = bench.person("anna", Rights::MEMBER).await.with("Idempotency-Key: order-7");
    assert_ne!(
        other.post("/v1/jobs/one/trigger", &Value::Null).await["run"],
        run,
        "keys are each caller's own"
    );
    let strange = json!({ "address": "http://127.0.0.1:9/" });
    assert_eq!(admin.refused("POST", "/v1/jobs/one/trigger", &strange).await, "invalid_fields");
    bench.over(JobId(1)).await;
    bench.stop().await;
}

#[tokio::test]
async fn many_jobs_are_started_moved_and_deleted_at_once() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    let mut job = body(&bench.app, "x");
    job["schedule"] = json!({ "kind": "fixed_rate", "every_ms": 3_600_000 });
    let one = admin.post("/v1/jobs", &job).await["id"].clone();
    let two = admin.post("/v1/jobs", &body(&bench.app, "never")).await["id"].clone();
    let bulk = |action: &str| json!({ "jobs": [one, two, 4711], "action": action });
    let results = admin.post("/v1/jobs/bulk", &bulk("start")).await;
    let codes: Vec<&Value> =
        results.as_array().unwrap().iter().map(|result| &result["problem"]["code"]).collect();
    assert_eq!(codes, [&Value::Null, &json!("invalid_fields"), &json!("not_found")]);
    admin.done("PUT", "/v1/apps/orders", &json!({ "title": "Orders" })).await;
    let mut moves = bulk("move");
    moves["app"] = json!("orders");
    admin.post("/v1/jobs/bulk", &moves).await;
    let view = admin.get(&format!("/v1/jobs/id:{one}")).await;
    assert_eq!((view["app"].as_str(), view["enabled"].as_bool()), (Some("orders"), Some(true)));
    admin.post("/v1/jobs/bulk", &bulk("delete")).await;
    assert_eq!(admin.get("/v1/jobs").await["items"], json!([]));
    bench.stop().await;
}

#[tokio::test]
async fn schedules_are_told_in_words_and_instants() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    let schedule = json!({ "kind": "cron", "expression": "0 30 9 ? * MON-FRI", "zone": "Asia/Shanghai" });
    let asked = json!({ "schedule": schedule, "after": "2026-06-19T00:00:00Z", "count": 2 });
    let preview = admin.post("/v1/schedules/preview", &asked).await;
    assert_eq!(preview["zone"], "Asia/Shanghai");
    assert_eq!(preview["fires"][0]["at"], "2026-06-19T01:30:00.000Z");
    assert_eq!(preview["fires"][1]["local"], "2026-06-22T09:30:00+08:00");
    let mut job = body(&bench.app, "x");
    job["schedule"] = schedule;
    job["valid_until"] = json!("2026-06-20T00:00:00Z");
    admin.done("PUT", "/v1/jobs/one", &job).await;
    let fires = admin.get("/v1/jobs/one/fires?after=2026-06-18T00:00:00Z&count=5").await;
    assert_eq!(fires["fires"].as_array().unwrap().len(), 2, "its own bounds count");
    let wrong = json!({ "schedule": { "kind": "cron", "expression": "99 * * * * ?" } });
    assert_eq!(admin.refused("POST", "/v1/schedules/preview", &wrong).await, "invalid_fields");
    bench.stop().await;
}

#[tokio::test]
async fn scripts_need_their_own_right_and_keep_their_versions() {
    let bench = Bench::start().await;
    let writer = bench.person("writer", Rights::ALL).await;
    let editor = bench.person("editor", Rights::MEMBER).await;
    let script = |source: &str| json!({ "language": "shell", "source": source, "remark": "first" });
    let mut job = body(&bench.app, "x");
    job["script"] = script("echo 1\r\n");
    assert_eq!(editor.refused("PUT", "/v1/jobs/one", &job).await, "not_allowed");
    writer.done("PUT", "/v1/jobs/one", &job).await;
    let versions = writer.get("/v1/jobs/one/script").await;
    assert_eq!(
        (versions[0]["source"].as_str(), versions[0]["remark"].as_str()),
        (Some("echo 1\n"), Some("first"))
    );
    assert_eq!(editor.refused("PUT", "/v1/jobs/one/script", &script("echo 2")).await, "not_allowed");
    writer.done("PUT", "/v1/jobs/one/script", &script("echo 2")).await;
    let versions = writer.get("/v1/jobs/one/script").await;
    assert_eq!(versions[0]["source"], "echo 2");
    job.as_object_mut().unwrap().remove("script");
    job["name"] = json!("y");
    let edited = editor.done("PUT", "/v1/jobs/one", &job).await;
    assert_eq!((edited["name"].as_str(), edited["script"]["source"].as_str()), (Some("y"), Some("echo 2")));
    let listed = editor.get("/v1/jobs").await;
    assert_eq!(listed["items"][0]["script"]["source"], "", "lists are without sources");
    bench.stop().await;
}

#[tokio::test]
async fn a_change_through_xxl_jobs_pages_has_its_before_and_after() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    for login in [OLD, NEW] {
        let script = bench.admin_script(login).await;
        let added = script.done(&script.path("/jobinfo/add", "/jobinfo/insert"), &job_form(&[])).await;
        let id = added.as_str().unwrap();
        let edit = job_form(&[("id", id), ("executorParam", "other")]);
        script.done("/jobinfo/update", &edit).await;
        let changes = admin.get(&format!("/v1/jobs/id:{id}/changes")).await;
        let [edited, added] = &changes["items"].as_array().unwrap()[..] else { panic!("two: {changes}") };
        assert_eq!((&added["before"], &added["after"]["handler"]), (&Value::Null, &json!("echo")));
        assert_eq!(edited["after"]["param"], "other");
        assert_eq!(edited["before"], added["after"]);
        let remove = script.path("/jobinfo/remove", "/jobinfo/delete");
        script.done(&remove, &[(script.id_field(), id)]).await;
        let noted = admin.get(&format!("/v1/audit?object=job:{id}&limit=1")).await;
        let entry = &noted["items"][0];
        assert!(entry["before"].as_str().is_some_and(|job| job.contains("other")), "{entry}");
        assert!(entry["after"].is_null(), "{entry}");
    }
    bench.stop().await;
}

#[tokio::test]
async fn a_put_is_done_with_its_tags_and_its_start_or_not_at_all() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    let mut job = body(&bench.app, "One");
    (job["tags"], job["enabled"]) = (json!(["nightly"]), json!(true));
    assert_eq!(admin.refused("PUT", "/v1/jobs/one", &job).await, "invalid_fields", "it has no schedule");
    assert_eq!(admin.refused("GET", "/v1/jobs/one", &Value::Null).await, "not_found");
    job["schedule"] = json!({ "kind": "cron", "expression": "0 0 3 * * ?" });
    let view = admin.done("PUT", "/v1/jobs/one", &job).await;
    assert_eq!((&view["tags"], &view["enabled"]), (&json!(["nightly"]), &json!(true)));
    let revision = view["revision"].clone();
    let view = admin.done("PUT", "/v1/jobs/one", &job).await;
    assert_eq!(view["revision"], revision, "what is so already changes nothing");
    (job["tags"], job["enabled"], job["name"]) = (json!([]), json!(false), json!("Two"));
    let view = admin.done("PUT", "/v1/jobs/one", &job).await;
    assert_eq!(
        (&view["name"], &view["enabled"], &view["next_fire_at"]),
        (&json!("Two"), &json!(false), &Value::Null)
    );
    assert!(view.get("tags").is_none(), "{view}");
    bench.stop().await;
}

#[tokio::test]
async fn a_put_is_done_with_its_script_or_not_at_all() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    let mut job = body(&bench.app, "One");
    let script =
        |source: &str, remark: &str| json!({ "language": "shell", "source": source, "remark": remark });
    job["script"] = script("echo 1", "first");
    let first = admin.done("PUT", "/v1/jobs/one", &job).await;
    (job["name"], job["script"]) = (json!("Two"), script("echo 2", "second"));
    let second = admin.done("PUT", "/v1/jobs/one", &job).await;
    assert!(second["revision"].as_i64() > first["revision"].as_i64(), "{second}");
    assert_eq!(
        admin.done("PUT", "/v1/jobs/one", &job).await["revision"],
        second["revision"],
        "as it is already"
    );

    let versions = async || {
        let versions = admin.get("/v1/jobs/one/script").await;
        let said = |version: &Value| (version["source"].clone(), version["remark"].clone());
        versions.as_array().unwrap().iter().map(said).collect::<Vec<_>>()
    };
    let kept = [(json!("echo 2"), json!("second")), (json!("echo 1"), json!("first"))];
    assert_eq!(versions().await, kept);
    // The database rejects the name, and the script with it; and the other way round.
    for (name, source) in [("Three\0", "echo 3"), ("Three", "echo 3\0")] {
        (job["name"], job["script"]) = (json!(name), script(source, "third"));
        assert_eq!(admin.refused("PUT", "/v1/jobs/one", &job).await, "invalid_fields");
    }
    (job["name"], job["script"]) = (json!("Three"), script("echo 3", &"r".repeat(129)));
    assert_eq!(admin.refused("PUT", "/v1/jobs/one", &job).await, "invalid_fields");
    assert_eq!(versions().await, kept);
    let view = admin.get("/v1/jobs/one").await;
    assert_eq!((&view["name"], &view["script"]["source"]), (&json!("Two"), &json!("echo 2")));
    bench.stop().await;
}

#[tokio::test]
async fn what_is_done_to_many_is_on_record_for_each() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    admin.done("PUT", "/v1/apps/other1", &json!({ "title": "Other" })).await;
    let id = admin.done("PUT", "/v1/jobs/one", &body(&bench.app, "One")).await["id"].clone();
    for (action, app) in [("move", json!("other1")), ("delete", Value::Null)] {
        let results =
            admin.post("/v1/jobs/bulk", &json!({ "action": action, "jobs": [id], "app": app })).await;
        assert!(results[0].get("problem").is_none_or(Value::is_null), "{results}");
    }
    let noted = admin.get(&format!("/v1/audit?object=job:{id}&limit=2")).await;
    let app = |text: &Value| {
        let job: Value = serde_json::from_str(text.as_str()?).unwrap();
        job["app"].as_str().map(str::to_owned)
    };
    let seen: Vec<_> = noted["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (entry["action"].as_str().unwrap(), app(&entry["before"]), app(&entry["after"])))
        .collect();
    let other = Some("other1".to_owned());
    assert_eq!(seen, [("job.delete", other.clone(), None), ("job.move", Some(bench.app.clone()), other)]);
    bench.stop().await;
}

#[tokio::test]
async fn a_job_that_fires_too_often_is_refused() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    let every = |ms: u64| {
        let mut job = body(&bench.app, "Fast");
        job["schedule"] = json!({ "kind": "fixed_rate", "every_ms": ms });
        job
    };
    let reply = admin.send("PUT", "/v1/jobs/fast", &every(1)).await;
    assert_eq!(problem(&reply), "invalid_fields");
    let text = &reply.body;
    assert!(text.contains("every 1ms") && text.contains("10ms") && text.contains("--min-interval"), "{text}");
    admin.done("PUT", "/v1/jobs/fast", &every(10)).await;
    assert_eq!(admin.refused("PUT", "/v1/jobs/fast", &every(9)).await, "invalid_fields");
    bench.stop().await;
}

#[tokio::test]
async fn a_job_that_fired_too_often_before_the_limit_is_not_started_again() {
    let bench = Bench::start().await;
    let schedule =
        cron::Schedule::fixed_rate(bench.engine.now(), std::time::Duration::from_millis(1)).unwrap();
    let spec = engine::JobSpec::new(engine::AppId(1), "old", schedule, "echo");
    let job = bench.engine.create(&spec).await.unwrap();
    let reply = bench.admin().await.send("POST", &format!("/v1/jobs/id:{job}/start"), &Value::Null).await;
    assert_eq!(problem(&reply), "invalid_fields", "{reply:?}");
    bench.stop().await;
}

#[tokio::test]
async fn an_app_without_room_for_another_run_is_told_so() {
    let bench = Bench::start_with(|settings| settings.max_open_runs = 0).await;
    let admin = bench.admin().await;
    let mut job = body(&bench.app, "Full");
    job["schedule"] = json!({ "kind": "fixed_rate", "every_ms": 100 });
    job["enabled"] = json!(true);
    admin.done("PUT", "/v1/jobs/full", &job).await;
    let reply = admin.send("POST", "/v1/jobs/full/trigger", &json!({})).await;
    assert_eq!(problem(&reply), "conflict");
    let text = &reply.body;
    assert!(text.contains("0 open runs") && text.contains("--max-open-runs"), "{text}");
    let blocked = async || {
        let misses = admin.get("/v1/jobs/full/misses").await;
        misses["items"].as_array()?.first().cloned()
    };
    let miss = loop {
        match blocked().await {
            Some(miss) => break miss,
            None => tokio::time::sleep(std::time::Duration::from_millis(20)).await,
        }
    };
    assert_eq!(miss["reason"], "blocked", "{miss}");
    bench.stop().await;
}
