//! Audit entries of requests to XXL-JOB's APIs: the rejected requests, the objects, the cleared logs.

use engine::{AppId, JobId, Store as _};
use serde_json::{Value, json};
use store::{Addresses, AppSpec, AuditEntry, AuditFilter, NewToken, Page, Registry as _, Rights};
use tickwright_server::executors::fingerprint;

use crate::kit::{Bench, echo};
use crate::script::{NEW, OLD, job_form};
use crate::v1::client::PASSWORD;

/// Entries for an action, oldest first.
async fn entries(bench: &Bench, action: &str) -> Vec<AuditEntry> {
    let filter = AuditFilter { action: Some(action.into()), ..AuditFilter::default() };
    let found = bench.database.audit_page(&filter, Page::first(200)).await.unwrap();
    found.rows.into_iter().rev().map(|record| record.entry).collect()
}

async fn last(bench: &Bench, action: &str) -> AuditEntry {
    entries(bench, action).await.pop().unwrap_or_else(|| panic!("{action} is not recorded"))
}

async fn other_app(bench: &Bench) -> AppId {
    let spec = AppSpec { name: "other".into(), title: "Other".into(), addresses: Addresses::Registered };
    bench.database.create_app(&spec).await.unwrap()
}

#[tokio::test]
async fn a_refused_deletion_is_answered_and_recorded_as_refused() {
    let bench = Bench::start().await;
    let other = other_app(&bench).await;
    let foreign = bench.job("foreign", |spec| spec.app = other).await;
    bench.person("member", Rights::MEMBER).await;
    let missing = "471147114711";
    let check = |why: &str, entry: &AuditEntry| {
        assert_eq!((entry.object.as_str(), entry.result.as_str()), (&*format!("job:{foreign}"), why));
        assert_eq!((&entry.before, &entry.after), (&None, &None), "nothing was changed");
    };
    for login in [OLD, NEW] {
        let script = bench.script(login, "member", PASSWORD).await;
        let path = script.path("/jobinfo/remove", "/jobinfo/delete");
        let id = foreign.to_string();
        let why = script.refused(&path, &[(script.id_field(), &id)]).await;
        check(&why, &last(&bench, &path).await);
        let none = script.refused(&path, &[(script.id_field(), missing)]).await;
        assert_eq!(why.replace(&id, missing), none, "a foreign job looks like a missing one");
    }
    let remove = async |id: &str| {
        let answer = bench.post("/api/removeJob", Some(&bench.token), &json!({ "id": id }).to_string()).await;
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(answer["code"], 500, "{answer}");
        answer["msg"].as_str().unwrap().to_owned()
    };
    let why = remove(&foreign.to_string()).await;
    check(&why, &last(&bench, "/api/removeJob").await);
    assert_eq!(why.replace(&foreign.to_string(), missing), remove(missing).await);
    let history = bench.admin().await.get(&format!("/v1/jobs/id:{foreign}/changes")).await;
    assert_eq!(history["items"], json!([]), "the job's history has only what was done");
    assert!(bench.database.job(foreign).await.unwrap().is_some());
    bench.stop().await;
}

#[tokio::test]
async fn a_deletion_is_recorded_with_the_job_however_the_request_spells_its_id() {
    let bench = Bench::start().await;
    let script = bench.admin_script(OLD).await;
    for (path, spelled) in [
        ("/jobinfo/remove", "ids=#"),
        ("/jobinfo/remove", "id=&ids[]=#"),
        ("/jobinfo/remove", "id=&ids=#"),
        ("/jobinfo/remove", "id=0#"),
        ("/jobinfo/delete", "ids[]=%2B#"),
    ] {
        let job = bench.job("echo", |_| {}).await;
        let target = format!("{path}?{}", spelled.replace('#', &job.to_string()));
        script.done(&target, &[]).await;
        assert!(bench.database.job(job).await.unwrap().is_none(), "{target}");
        let entry = last(&bench, path).await;
        assert_eq!((entry.object, entry.result), (format!("job:{job}"), "done".into()), "{target}");
        assert!(entry.before.is_some_and(|before| before.contains("echo")), "{target}");
    }
    let job = bench.job("echo", |_| {}).await;
    for id in [json!(format!("0{job}")), json!(format!(" {job} "))] {
        bench.post("/api/startJob", Some(&bench.token), &json!({ "id": id }).to_string()).await;
        assert_eq!(last(&bench, "/api/startJob").await.object, format!("job:{job}"));
    }
    script.refused("/jobinfo/remove?ids=1&ids=2", &[]).await;
    assert_eq!(
        last(&bench, "/jobinfo/remove").await.object,
        "job:1,2",
        "a refused request names what it said"
    );
    bench.stop().await;
}

#[tokio::test]
async fn a_new_job_is_recorded_under_its_own_id_only() {
    let bench = Bench::start().await;
    let other = other_app(&bench).await;
    let foreign = bench.job("foreign", |spec| spec.app = other).await.to_string();
    let script = bench.admin_script(OLD).await;
    let added = script.done("/jobinfo/add", &job_form(&[("id", &foreign)])).await;
    let entry = last(&bench, "/jobinfo/add").await;
    assert_eq!((entry.object, entry.before), (format!("job:{}", added.as_str().unwrap()), None));
    script.refused("/jobinfo/add", &job_form(&[("id", &foreign), ("scheduleConf", "x")])).await;
    assert_eq!(last(&bench, "/jobinfo/add").await.object, "");

    let mut job = json!({ "id": foreign, "name": "api" });
    for (name, text) in job_form(&[]) {
        job[name] = text.into();
    }
    bench.post("/api/addJob", Some(&bench.token), &job.to_string()).await;
    let entry = last(&bench, "/api/addJob").await;
    assert!(entry.result == "done" && entry.object != format!("job:{foreign}"), "{entry:?}");
    assert_eq!(entry.before, None);
    bench.stop().await;
}

#[tokio::test]
async fn apps_and_users_are_named_in_the_record() {
    let bench = Bench::start().await;
    let script = bench.admin_script(NEW).await;
    let object = async |action: &str| last(&bench, action).await.object;
    let app = [("appname", "billing"), ("name", "Billing"), ("addressType", "0")];
    script.done("/jobgroup/insert", &app).await;
    assert_eq!(object("/jobgroup/insert").await, "app:billing");
    let (rows, _) = script.page("/jobgroup/pageList", &[("appname", "billing")]).await;
    let id = rows[0]["id"].to_string();
    script.done("/jobgroup/update", &[&[("id", id.as_str())], &app[..]].concat()).await;
    assert_eq!(object("/jobgroup/update").await, "app:billing");
    script.done("/jobgroup/delete", &[("ids", &id)]).await;
    assert_eq!(object("/jobgroup/delete").await, "app:billing");

    let user = [("username", "carol"), ("password", "correct horse"), ("role", "0"), ("permission", "1")];
    script.done("/user/insert", &user).await;
    assert_eq!(object("/user/insert").await, "user:carol");
    let (rows, _) = script.page("/user/pageList", &[("username", "carol")]).await;
    let id = rows[0]["id"].to_string();
    script.done("/user/delete", &[("id", ""), ("ids[]", &id)]).await;
    assert_eq!(object("/user/delete").await, "user:carol");
    bench.stop().await;
}

#[tokio::test]
async fn clearing_runs_is_recorded_with_which_and_how_many() {
    let bench = Bench::start().await;
    let _executor = bench.executor(vec![echo()]).await;
    let script = bench.admin_script(NEW).await;
    let job = bench.job("echo", |_| {}).await;
    for _ in 0..2 {
        bench.run(job, None).await;
    }
    let cleared = async |form: &[(&str, &str)]| {
        script.done("/joblog/clearLog", form).await;
        let entry = last(&bench, "/joblog/clearLog").await;
        let record: Value = serde_json::from_str(&entry.after.unwrap_or_default()).unwrap_or_default();
        (entry.object, record)
    };
    let id = job.to_string();
    let (object, record) = cleared(&[("jobGroup", "1"), ("jobId", &id), ("type", "5")]).await;
    assert_eq!(object, format!("app:{}", bench.app));
    assert_eq!(record, json!({ "job": job.0, "kept": "newest 1000", "deleted": 0 }));
    let (_, record) = cleared(&[("jobGroup", "1"), ("jobId", &id), ("type", "9")]).await;
    assert_eq!(record, json!({ "job": job.0, "kept": "nothing", "deleted": 2 }));
    let (object, record) = cleared(&[("jobGroup", "0"), ("type", "1")]).await;
    assert_eq!((object.as_str(), &record["deleted"]), ("app:*", &json!(0)));
    assert!(record["kept"].as_str().is_some_and(|kept| kept.starts_with("since ")), "{record}");
    bench.stop().await;
}

/// The caller gets the usual answer, because clients report a failure in place of a result that is rejected.
#[tokio::test]
async fn results_for_runs_of_another_app_are_recorded_within_bounds() {
    let bench = Bench::start().await;
    let other = other_app(&bench).await;
    let token = "a token of the other app, long enough";
    let sealed = bench.settings.key.seal(token);
    let row = NewToken { app: Some(other), digest: fingerprint(token), sealed, expires_at: None };
    bench.database.add_token(&row).await.unwrap();
    let job: JobId = bench.job("echo", |_| {}).await;
    let runs: Vec<i64> =
        [bench.run(job, None).await, bench.run(job, None).await].iter().map(|runs| runs[0].id.0).collect();
    let report = async |runs: &[i64]| {
        let items: Vec<Value> = runs
            .iter()
            .map(|run| json!({ "logId": run, "handleCode": 200, "handleMsg": "forged" }))
            .collect();
        bench.post("/api/callback", Some(token), &Value::from(items).to_string()).await
    };
    let answer = crate::kit::until("the token counts", async || {
        let answer = report(&[4_711_471_147]).await;
        answer.contains(r#""code":200"#).then_some(answer)
    })
    .await;
    let foreign = async || {
        let mut found = entries(&bench, "/api/callback").await;
        found.retain(|entry| entry.principal == format!("token of app {}", other.0));
        found
    };
    assert_eq!(foreign().await, [], "a run that is gone is nobody's");
    assert_eq!(report(&runs).await, answer);
    let found = foreign().await;
    assert_eq!((found.len(), found[0].object.as_str()), (1, &*format!("run:{}", runs[0])));
    assert_eq!(found[0].result, "not stored: this and 1 more runs belong to another app");
    futures_util::future::join_all((0..FLOOD).map(|_| report(&runs[..1]))).await;
    assert!(foreign().await.len() < FLOOD, "a flood does not fill the audit");
    for run in bench.database.runs(job, None, 10).await.unwrap() {
        assert_ne!(run.message.as_deref(), Some("forged"));
    }
    bench.stop().await;
}

/// Number of calls. Beyond a burst of 60, one per second is recorded.
const FLOOD: usize = 190;
