//! The newest lineage's calls for programs that manage jobs.

use engine::{JobId, Store as _};
use serde_json::{Value, json};
use store::{Addresses, AppSpec, AuditFilter, AuditRecord, Page};
use tickwright_server::outbound::Secret;

use crate::kit::{Bench, echo};

async fn call(bench: &Bench, token: &str, name: &str, body: &Value) -> Value {
    let answer = bench.post(&format!("/api/{name}"), Some(token), &body.to_string()).await;
    serde_json::from_str(&answer).unwrap()
}

fn job(changes: &[(&str, Value)]) -> Value {
    let mut job = json!({
        "jobGroup": 1, "name": "nightly", "author": "ann", "scheduleType": "CRON", "scheduleConf": "0 0 2 * * ?",
        "misfireStrategy": "DO_NOTHING", "executorRouteStrategy": "FIRST", "executorHandler": "echo",
        "executorBlockStrategy": "SERIAL_EXECUTION", "glueType": "BEAN", "executorTimeout": 5
    });
    for (field, value) in changes {
        job[*field] = value.clone();
    }
    job
}

#[tokio::test]
async fn a_program_manages_the_jobs_of_its_app() {
    let bench = Bench::start().await;
    let _executor = bench.executor(vec![echo()]).await;
    let done = async |name: &str, body: Value| {
        let answer = call(&bench, &bench.token, name, &body).await;
        assert_eq!(answer["code"], 200, "{name}: {answer}");
        answer["data"].clone()
    };
    let id = done("addJob", job(&[])).await;
    let id: i64 = id.as_str().expect("a text").parse().unwrap();
    let stored = async || bench.database.job(JobId(id)).await.unwrap();
    assert!(!stored().await.unwrap().enabled, "it is added stopped");
    done("startJob", json!({ "id": id })).await;
    assert!(stored().await.unwrap().enabled);
    done("updateJob", job(&[("id", id.into()), ("author", "bob".into()), ("jobGroup", 77.into())])).await;
    let spec = stored().await.unwrap().spec;
    assert_eq!((spec.author.as_str(), spec.app.0), ("bob", 1), "the call cannot move a job");
    done("stopJob", json!({ "id": id.to_string() })).await;
    assert!(!stored().await.unwrap().enabled);
    done("triggerJob", json!({ "id": id, "executorParam": "now" })).await;
    assert_eq!(bench.over(JobId(id)).await[0].message.as_deref(), Some("now 0/1"));
    let elsewhere = json!({ "id": id, "executorParam": null, "addressList": "http://127.0.0.1:9/" });
    assert_eq!(call(&bench, &bench.token, "triggerJob", &elsewhere).await["code"], 500);
    done("removeJob", json!({ "id": id })).await;
    assert!(stored().await.is_none());
    let again = call(&bench, &bench.token, "removeJob", &json!({ "id": id })).await;
    assert_eq!(again["code"], 500, "an app's token cannot tell it from a job of another app: {again}");
    let bad = call(&bench, &bench.token, "addJob", &job(&[("scheduleConf", "x".into())])).await;
    assert!(bad["msg"].as_str().unwrap().starts_with("scheduleConf: "), "{bad}");
    bench.stop().await;
}

#[tokio::test]
async fn a_token_manages_its_own_app_only_and_the_global_one_all() {
    let bench =
        Bench::start_with(|settings| settings.token = Some(Secret::new("the one for everybody"))).await;
    let spec = AppSpec { name: "other".into(), title: "Other".into(), addresses: Addresses::Registered };
    let other = bench.database.create_app(&spec).await.unwrap();
    let foreign = bench.job("foreign", |spec| spec.app = other).await;
    for name in ["updateJob", "removeJob", "startJob", "stopJob", "triggerJob"] {
        let answer = call(&bench, &bench.token, name, &job(&[("id", foreign.0.into())])).await;
        let missing = call(&bench, &bench.token, name, &job(&[("id", 4711.into())])).await;
        let text = answer["msg"].as_str().unwrap().replace(&foreign.to_string(), "4711");
        assert_eq!(
            (answer["code"].as_i64(), text.as_str()),
            (Some(500), missing["msg"].as_str().unwrap()),
            "{name}"
        );
    }
    assert!(bench.database.job(foreign).await.unwrap().is_some());
    let all = call(&bench, "the one for everybody", "removeJob", &json!({ "id": 4711 })).await;
    assert_eq!(all["code"], 200, "for a caller who sees all jobs, deleting twice is no error: {all}");
    assert_eq!(
        call(&bench, &bench.token, "addJob", &job(&[("jobGroup", other.0.into())])).await["code"],
        500
    );
    let children = job(&[("childJobId", foreign.to_string().into())]);
    assert_eq!(call(&bench, &bench.token, "addJob", &children).await["code"], 500);
    for token in ["", "default_token", "THE ONE FOR EVERYBODY"] {
        assert_eq!(call(&bench, token, "addJob", &job(&[])).await["code"], 500);
    }
    let added = call(&bench, "the one for everybody", "addJob", &job(&[("jobGroup", other.0.into())])).await;
    assert_eq!(added["code"], 200, "{added}");
    bench.stop().await;
}

#[tokio::test]
async fn what_a_program_changes_is_on_record_as_it_was_and_as_it_is() {
    let bench = Bench::start().await;
    let added = call(&bench, &bench.token, "addJob", &job(&[])).await;
    let id = added["data"].as_str().expect("a text").to_owned();
    let named = |changes: &[(&str, Value)]| job(&[&[("id", id.clone().into())], changes].concat());
    for (name, body) in [
        ("updateJob", named(&[("author", "bob".into())])),
        ("updateJob", named(&[("author", "bob".into()), ("scheduleConf", "never".into())])),
        ("startJob", named(&[])),
        ("removeJob", named(&[])),
    ] {
        call(&bench, &bench.token, name, &body).await;
    }
    let filter = AuditFilter { object: Some(format!("job:{id}")), ..AuditFilter::default() };
    let found = bench.database.audit_page(&filter, Page::first(10)).await.unwrap();
    let author = |text: &Option<String>| {
        let job: Value = serde_json::from_str(text.as_ref()?).unwrap();
        job["author"].as_str().map(str::to_owned)
    };
    let seen: Vec<_> = found
        .rows
        .iter()
        .rev()
        .map(|AuditRecord { entry, .. }| {
            (entry.action.as_str(), entry.result == "done", author(&entry.before), author(&entry.after))
        })
        .collect();
    let (ann, bob) = (Some("ann".to_owned()), Some("bob".to_owned()));
    assert_eq!(
        seen,
        [
            ("/api/addJob", true, None, ann.clone()),
            ("/api/updateJob", true, ann, bob.clone()),
            ("/api/updateJob", false, None, None),
            ("/api/startJob", true, None, None),
            ("/api/removeJob", true, bob, None),
        ]
    );
    bench.stop().await;
}

#[tokio::test]
async fn who_asks_too_often_is_told_to_come_later() {
    let bench = Bench::start().await;
    let asked = (0..400).map(|_| call(&bench, &bench.token, "stopJob", &Value::Null));
    let answers = futures_util::future::join_all(asked).await;
    let late: Vec<_> = answers.iter().filter(|answer| answer["code"] == 502).collect();
    assert!(!late.is_empty() && late.len() < 400, "{}", late.len());
    assert_eq!(late[0]["msg"], "Too many requests, please try again later.");
    bench.stop().await;
}
