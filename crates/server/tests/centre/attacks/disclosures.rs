//! Answers about the caller's own jobs must not disclose those of other apps.

use engine::Store as _;
use serde_json::{Value, json};
use store::Rights;

use crate::kit::Bench;
use crate::script::{OLD, job_form};
use crate::v1::client::body;

/// A second app that only administrators can see.
async fn secret_app(bench: &Bench) -> String {
    let admin = bench.admin().await;
    admin.add_app("secret-app", "Secret").await;
    "secret-app".into()
}

/// No answer names children in other apps; and they stay when the job is edited by a user that cannot see them.
#[tokio::test]
async fn foreign_children_are_neither_named_nor_lost() {
    let bench = Bench::start().await;
    let secret = secret_app(&bench).await;
    let admin = bench.admin().await;
    let anna = bench.person("anna", Rights::MEMBER).await;
    let script = bench.script(OLD, "anna", crate::v1::client::PASSWORD).await;
    let hidden =
        admin.done("PUT", "/v1/jobs/payroll-key", &body(&secret, "Payroll")).await["id"].as_i64().unwrap();
    let numbered = admin.post("/v1/jobs", &body(&secret, "Numbered")).await["id"].as_i64().unwrap();
    admin.done("PUT", "/v1/jobs/own-child", &body(&bench.app, "Own")).await;
    let mut parent = body(&bench.app, "Parent");
    parent["children"] = json!(["payroll-key", numbered.to_string(), "own-child"]);
    let id = admin.done("PUT", "/v1/jobs/parent", &parent).await["id"].as_i64().unwrap().to_string();
    let seen = anna.get("/v1/jobs/parent").await;
    assert_eq!(seen["children"], json!(["own-child"]));
    let listed = anna.get("/v1/jobs?text=Parent").await;
    assert_eq!(listed["items"][0]["children"], json!(["own-child"]));
    let changes = anna.get("/v1/jobs/parent/changes").await;
    assert_eq!(changes["items"][0]["after"]["children"], json!(["own-child"]), "{changes}");
    let own = bench.database.job_by_key("own-child").await.unwrap().unwrap().id.to_string();
    let (rows, _) = script.page("/jobinfo/pageList", &[("jobDesc", "Parent")]).await;
    assert_eq!(rows[0]["childJobId"], own.as_str());
    let children = async || bench.database.job_by_key("parent").await.unwrap().unwrap().spec.children;
    let ids = |ids: &[i64]| ids.iter().map(|id| engine::JobId(*id)).collect::<Vec<_>>();
    let own_id: i64 = own.parse().unwrap();
    // The client writes the definition back as it read it, with another author.
    let mut edited = body(&bench.app, "Parent");
    edited["children"] = seen["children"].clone();
    edited["author"] = json!("anna");
    let reply = anna.done("PUT", "/v1/jobs/parent", &edited).await;
    assert_eq!(reply["children"], json!(["own-child"]));
    assert_eq!(children().await, ids(&[own_id, hidden, numbered]));
    edited["children"] = json!([]);
    anna.done("PUT", "/v1/jobs/parent", &edited).await;
    assert_eq!(children().await, ids(&[hidden, numbered]));
    script.done("/jobinfo/update", &job_form(&[("id", &id), ("childJobId", &own)])).await;
    assert_eq!(children().await, ids(&[own_id, hidden, numbered]));
    let text = anna.get("/v1/jobs/parent/changes").await.to_string();
    assert!(!text.contains("payroll-key") && !text.contains(&format!("\"{numbered}\"")), "{text}");
    // A user can remove them only if it sees them, and add them only if it may run them.
    edited["children"] = json!(["payroll-key"]);
    assert_eq!(anna.refused("PUT", "/v1/jobs/parent", &edited).await, "invalid_fields");
    edited["children"] = json!([]);
    admin.done("PUT", "/v1/jobs/parent", &edited).await;
    assert!(children().await.is_empty());
    bench.stop().await;
}

/// A job that was moved out of an app does not take its history of that app along.
#[tokio::test]
async fn a_moved_job_keeps_the_history_of_its_former_app_to_itself() {
    let bench = Bench::start().await;
    let secret = secret_app(&bench).await;
    let admin = bench.admin().await;
    let anna = bench.person("anna", Rights::MEMBER).await;
    let script = bench.admin_script(OLD).await;
    let with = |app: &str, param: &str| {
        let mut job = body(app, "Moved");
        job["param"] = json!(param);
        job["script"] = json!({ "language": "shell", "source": format!("echo {param}") });
        job
    };
    for (door, key) in [("put", "by-put"), ("bulk", "by-bulk"), ("web", "by-web")] {
        let path = format!("/v1/jobs/{key}");
        let id = admin.done("PUT", &path, &with(&secret, "classified-1")).await["id"].as_i64().unwrap();
        admin.done("PUT", &path, &with(&secret, "classified-2")).await;
        admin.done("PUT", &path, &with(&secret, "public-1")).await;
        assert_eq!(anna.refused("GET", &format!("{path}/changes"), &Value::Null).await, "not_found");
        match door {
            "put" => drop(admin.done("PUT", &path, &with(&bench.app, "public-1")).await),
            "bulk" => {
                let moved = json!({ "action": "move", "jobs": [id], "app": bench.app });
                admin.post("/v1/jobs/bulk", &moved).await;
            }
            _ => {
                let id_text = id.to_string();
                let form = job_form(&[
                    ("id", id_text.as_str()),
                    ("executorParam", "public-1"),
                    ("jobDesc", "Moved"),
                    ("scheduleType", "NONE"),
                ]);
                script.done("/jobinfo/update", &form).await;
            }
        }
        admin.done("PUT", &path, &with(&bench.app, "public-2")).await;
        let changes = anna.get(&format!("{path}/changes")).await;
        assert!(
            !changes.to_string().contains("classified") && !changes.to_string().contains("secret-app"),
            "{changes}"
        );
        let items = changes["items"].as_array().unwrap();
        assert_eq!(items.len(), 2, "the move and what came after it: {changes}");
        assert_eq!(
            (&items[0]["after"]["param"], &items[1]["before"]),
            (&json!("public-2"), &Value::Null),
            "{changes}"
        );
        let first = anna.get(&format!("{path}/changes?limit=1")).await;
        let next = first["next"].as_str().unwrap_or_else(|| panic!("{first}"));
        let second = anna.get(&format!("{path}/changes?limit=1&after={next}")).await;
        assert_eq!(second["items"].as_array().unwrap().len(), 1);
        if let Some(next) = second["next"].as_str() {
            let third = anna.get(&format!("{path}/changes?limit=1&after={next}")).await;
            assert_eq!(third["items"], json!([]), "{third}");
        }
        let versions = anna.get(&format!("{path}/script")).await;
        assert!(
            !versions.to_string().contains("classified") && versions.to_string().contains("public-2"),
            "{versions}"
        );
        // A user that sees both apps sees everything.
        assert!(admin.get(&format!("{path}/changes")).await.to_string().contains("classified-1"));
        assert!(admin.get(&format!("{path}/script")).await.to_string().contains("classified-1"));
    }
    // The other way round: runs stay with their app, and do not disclose the job's name in the other app.
    admin.done("PUT", "/v1/jobs/leaves", &body(&bench.app, "Harmless")).await;
    let run = admin.post("/v1/jobs/leaves/trigger", &Value::Null).await["run"].as_i64().unwrap();
    let mut renamed = body(&secret, "Payroll of the board");
    renamed["author"] = json!("eve");
    admin.done("PUT", "/v1/jobs/leaves", &renamed).await;
    let seen = anna.get(&format!("/v1/runs/{run}")).await;
    assert_eq!((&seen["job_name"], &seen["job_key"]), (&Value::Null, &Value::Null), "{seen}");
    assert!(!anna.get("/v1/runs").await.to_string().contains("Payroll"));
    bench.stop().await;
}

/// A key used in an app that the caller cannot see gives the same answer as a free one, as long as nothing is added.
#[tokio::test]
async fn an_edit_does_not_tell_whether_a_foreign_key_exists() {
    let bench = Bench::start().await;
    let secret = secret_app(&bench).await;
    bench.admin().await.done("PUT", "/v1/jobs/taken", &body(&secret, "Taken")).await;
    let anna = bench.person("anna", Rights::VIEW.with(Rights::EDIT)).await;
    let mut enabled = body(&bench.app, "Enabled");
    enabled["enabled"] = json!(true);
    enabled["schedule"] = json!({ "kind": "cron", "expression": "0 0 2 * * ?" });
    let mut childless = body(&bench.app, "Childless");
    childless["children"] = json!(["nothing"]);
    let bodies = [
        Value::Null,
        json!({}),
        json!({ "app": bench.app }),
        body(&secret, "In an app that is not seen"),
        body("no-such-app", "In no app"),
        body(&bench.app, ""),
        enabled,
        childless,
    ];
    let plain = |key: &str, text: &str| text.replace(key, "KEY");
    for body in &bodies {
        let [taken, free] = ["taken", "free0"].map(|key| {
            let anna = anna.clone();
            async move {
                let reply = anna.send("PUT", &format!("/v1/jobs/{key}"), body).await;
                (reply.status, plain(key, &reply.body))
            }
        });
        assert_eq!(taken.await, free.await, "{body}");
    }
    let whole = body(&bench.app, "Whole");
    for line in ["If-Match: \"1\"", "If-Match: *"] {
        let (taken, free) = (anna.with(line), anna.with(line));
        let taken = taken.send("PUT", "/v1/jobs/taken", &whole).await;
        let free = free.send("PUT", "/v1/jobs/free0", &whole).await;
        assert_eq!((taken.status, taken.body), (free.status, free.body), "{line}");
    }
    for (method, below) in
        [("GET", ""), ("DELETE", ""), ("POST", "/start"), ("GET", "/changes"), ("PUT", "/script")]
    {
        let body = json!({ "language": "shell", "source": "id" });
        let body = if method == "PUT" { body } else { Value::Null };
        let taken = anna.send(method, &format!("/v1/jobs/taken{below}"), &body).await;
        let free = anna.send(method, &format!("/v1/jobs/free0{below}"), &body).await;
        assert_eq!((taken.status, taken.body), (free.status, free.body), "{method} {below}");
    }
    assert_eq!(bench.database.job_by_key("taken").await.unwrap().unwrap().spec.name, "Taken");
    assert_eq!(anna.refused("PUT", "/v1/jobs/taken", &whole).await, "not_found");
    bench.stop().await;
}
