//! Jobs declared by programs and changed by users.

use std::time::Duration;

use engine::Store as _;
use executor::{Context, Declaration, Job};
use serde_json::{Value, json};
use store::{AuditFilter, Page};
use tickwright_server::DeclaredJobs;
use tickwright_server::outbound::Secret;

use crate::kit::{Bench, until};

const KEY: &str = "/v1/jobs/tickwright-sample%2Fsync-orders";

/// The handler of a program, in one of its versions.
fn sync(declaration: Declaration) -> Job {
    Job::new("sync-orders", |ctx: Context| async move { format!("synced {}", ctx.param()) })
        .declare(declaration)
}

impl Bench {
    /// Returns the server's answer to a declaration with this token in the name of this app.
    async fn declares(&self, app: &str, token: &str, jobs: &Value) -> Value {
        let body = json!({ "address": "http://127.0.0.1:9/", "handlers": ["a"], "jobs": jobs }).to_string();
        let request = format!(
            "POST /api/declare HTTP/1.1\r\nHost: x\r\nXxl-Job-Access-Token: {token}\r\nXxl-Job-Appname: {app}\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        let (code, answer) = self.raw(request.as_bytes()).await;
        assert_eq!(code, 200, "{answer}");
        serde_json::from_str(&answer).unwrap()
    }

    /// Returns the audited declarations of jobs.
    async fn declared(&self) -> Vec<(String, String)> {
        let filter = AuditFilter { action: Some("job.declare".into()), ..AuditFilter::default() };
        let page = self.database.audit_page(&filter, Page::first(100)).await.unwrap();
        page.rows.into_iter().map(|record| (record.entry.principal, record.entry.result)).collect()
    }
}

fn job(handler: &str, changes: &[(&str, Value)]) -> Value {
    let mut job = json!({ "handler": handler, "schedule": { "kind": "cron", "expression": "0 0 2 * * ?" } });
    for (field, value) in changes {
        job[*field] = value.clone();
    }
    job
}

#[tokio::test]
async fn a_program_declares_its_job_and_what_people_change_stays() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    let every_five = Declaration::cron("0 0/5 * * * ?").zone("Asia/Shanghai").param("all");
    let program = bench.executor(vec![sync(every_five)]).await;
    let view = until("the job is there", async || {
        let reply = admin.send("GET", KEY, &Value::Null).await;
        (reply.status == 200).then(|| serde_json::from_str::<Value>(&reply.body).unwrap())
    })
    .await;
    assert_eq!((&view["name"], &view["enabled"]), (&json!("sync-orders"), &json!(true)));
    assert_eq!(view["schedule"]["zone"], "Asia/Shanghai");
    assert!(view.get("overridden").is_none(), "{view}");
    let apps = admin.done("GET", "/v1/apps", &Value::Null).await;
    assert_eq!(apps[0]["executors"][0]["handlers"], json!(["sync-orders"]), "before it ever ran: {apps}");

    // A user changes it to run at night.
    let edited = json!({
        "app": bench.app, "name": view["name"], "handler": "sync-orders", "param": "all", "alert": true,
        "schedule": { "kind": "cron", "expression": "0 0 2 * * ?", "zone": "Asia/Shanghai" }
    });
    let view = admin.done("PUT", KEY, &edited).await;
    assert_eq!(view["overridden"], json!(["schedule"]));
    program.stop(Duration::from_secs(5)).await;

    // The next version of the program declares other values.
    let every_seven = Declaration::cron("0 0/7 * * * ?").zone("Asia/Shanghai").param("new").retries(2);
    let program = bench.executor(vec![sync(every_seven.clone())]).await;
    let view = until("the next version has spoken", async || {
        let view = admin.done("GET", KEY, &Value::Null).await;
        (view["param"] == "new").then_some(view)
    })
    .await;
    assert_eq!(view["schedule"]["expression"], "0 0 2 * * ?", "what somebody has changed stays");
    assert_eq!((&view["retry"]["count"], &view["alert"]), (&json!(2), &json!(true)));
    assert_eq!(view["overridden"], json!(["schedule"]));
    let id = view["id"].as_i64().unwrap();
    let runs = bench.run(engine::JobId(id), None).await;
    assert_eq!(runs[0].message.as_deref(), Some("synced new"));

    // A job that a user stops stays stopped; and restarting the same program is not audited again.
    admin.done("POST", &format!("{KEY}/stop"), &Value::Null).await;
    let said = bench.declared().await;
    assert_eq!(said, vec![("token of app 1".to_owned(), "done".to_owned()); 2]);
    program.stop(Duration::from_secs(5)).await;
    let program = bench.executor(vec![sync(every_seven), Job::new("late", |_: Context| async {})]).await;
    until("the program has spoken again", async || {
        let apps = admin.done("GET", "/v1/apps", &Value::Null).await;
        let handlers = apps[0]["executors"][0]["handlers"].as_array().map(Vec::len);
        (handlers == Some(2)).then_some(())
    })
    .await;
    let after = admin.done("GET", KEY, &Value::Null).await;
    assert_eq!((&after["enabled"], &after["revision"]), (&json!(false), &view["revision"]));
    assert_eq!(after["overridden"], json!(["schedule", "enabled"]));
    assert_eq!(bench.declared().await, said);
    let changes = admin.done("GET", &format!("{KEY}/changes"), &Value::Null).await;
    let declared =
        changes["items"].as_array().unwrap().iter().find(|change| change["action"] == "job.declare");
    assert_eq!(declared.unwrap()["after"]["param"], "new", "{changes}");
    program.stop(Duration::from_secs(5)).await;
    bench.stop().await;
}

#[tokio::test]
async fn executors_that_declare_at_once_have_one_job() {
    let bench = Bench::start().await;
    let many = (0..8).map(|_| {
        let jobs = json!([job("nightly", &[]), job("hourly", &[("retries", 1.into())])]);
        let bench = &bench;
        async move { bench.declares(&bench.app, &bench.token, &jobs).await }
    });
    let answers = futures_util::future::join_all(many).await;
    let created = answers.iter().filter(|answer| answer["data"][0]["outcome"] == "created").count();
    assert_eq!(created, 1, "{answers:?}");
    assert!(answers.iter().all(|answer| answer["code"] == 200), "{answers:?}");
    assert_eq!(bench.database.jobs(None, 10).await.unwrap().len(), 2);
    bench.stop().await;
}

#[tokio::test]
async fn only_a_token_of_the_apps_own_declares_its_jobs_unless_the_centre_says_otherwise() {
    let shared = "the one for everybody";
    let jobs = json!([job("nightly", &[])]);
    for (whose, own, every) in [
        (DeclaredJobs::None, "refused", "refused"),
        (DeclaredJobs::OwnToken, "created", "refused"),
        (DeclaredJobs::All, "created", "unchanged"),
    ] {
        let bench = Bench::start_with(|settings| {
            settings.declared_jobs = whose;
            settings.token = Some(Secret::new(shared));
        })
        .await;
        let answer = bench.declares(&bench.app, &bench.token, &jobs).await;
        assert_eq!(answer["data"][0]["outcome"], own, "{whose:?}: {answer}");
        let answer = bench.declares(&bench.app, shared, &jobs).await;
        assert_eq!(answer["data"][0]["outcome"], every, "{whose:?}: {answer}");
        let unknown = "the app `another-app` does not exist; add it with: tickwright app add another-app";
        let wrong = "The access token is wrong.";
        for (token, app, expected) in [
            ("wrong", bench.app.as_str(), wrong),
            ("wrong", "another-app", wrong),
            (&bench.token, "another-app", unknown),
        ] {
            let answer = bench.declares(app, token, &jobs).await;
            assert_eq!(answer["msg"], expected, "{whose:?}");
        }
        let why = |answer: Value| answer["data"][0]["why"].as_str().unwrap_or_default().to_owned();
        match whose {
            DeclaredJobs::None => {
                let why = why(bench.declares(&bench.app, &bench.token, &jobs).await);
                assert!(why.contains("--declared-jobs own-token"), "{why}");
                assert!(bench.database.jobs(None, 10).await.unwrap().is_empty());
            }
            DeclaredJobs::OwnToken => {
                let why = why(bench.declares(&bench.app, shared, &jobs).await);
                assert!(why.contains("`tickwright app token tickwright-sample`"), "{why}");
            }
            DeclaredJobs::All => {
                let why = why(bench.declares("nobodys-app", shared, &jobs).await);
                assert!(why.contains("tickwright app add nobodys-app"), "{why}");
            }
        }
        bench.stop().await;
    }
}

#[tokio::test]
async fn what_cannot_be_right_is_refused_by_itself_and_says_why() {
    let bench = Bench::start().await;
    let schedule = |schedule: Value| [("schedule", schedule)];
    let rows = [
        (schedule(json!({ "kind": "cron", "expression": "0 0 25 * * ?" })), "schedule.expression: "),
        (schedule(json!({ "kind": "cron", "expression": "0 0 2 * * ?", "zone": "Mars" })), "schedule.zone: "),
        (schedule(json!({ "kind": "cron", "expression": "0 0 2 1 1 ? 2020" })), "no future fires"),
        (schedule(json!({ "kind": "none" })), "cannot be started"),
        (schedule(json!({ "kind": "fixed_rate", "every_ms": 0 })), "schedule.every_ms: "),
        ([("route", "NEAREST".into())], "route: "),
        ([("timeout_ms", 0.into())], "timeout_ms: "),
        ([("retries", 1_001.into())], "retry.count: "),
    ];
    let mut jobs: Vec<Value> = rows.iter().map(|(changes, _)| job("wrong", changes)).collect();
    jobs.push(job("right", &[]));
    let answer = bench.declares(&bench.app, &bench.token, &jobs.into()).await;
    for ((_, expected), settled) in rows.iter().zip(answer["data"].as_array().unwrap()) {
        assert_eq!(settled["outcome"], "refused");
        assert!(settled["why"].as_str().unwrap().contains(expected), "{expected}: {settled}");
    }
    assert_eq!(answer["data"][rows.len()]["outcome"], "created", "{answer}");
    assert_eq!(bench.database.jobs(None, 10).await.unwrap().len(), 1);

    let many: Vec<Value> = (0..51).map(|n| job(&format!("job-{n}"), &[])).collect();
    let answer = bench.declares(&bench.app, &bench.token, &many.into()).await;
    assert_eq!(answer["code"], 500, "{answer}");
    for wrong in [json!([job("x", &[("retrys", 1.into())])]), json!({}), json!([1]), json!("x")] {
        let answer = bench.declares(&bench.app, &bench.token, &wrong).await;
        assert_eq!(answer["code"], 500, "{wrong}: {answer}");
    }
    let answer = bench.post("/api/declare", Some(&bench.token), "{}").await;
    assert!(answer.contains("appname is empty"), "{answer}");
    bench.stop().await;
}
