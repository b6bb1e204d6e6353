//! Scripts run as commands on executors, so the right to write one gives control over them.

use engine::Store as _;
use serde_json::json;
use store::Rights;

use super::evidence::Evidence;
use crate::kit::Bench;
use crate::script::{NEW, OLD, job_form};
use crate::v1::client::{PASSWORD, body};

/// X14 (CVE-2023-48089): writing scripts is a separate right, in every API that accepts one.
#[tokio::test]
async fn who_may_edit_jobs_may_not_write_scripts() {
    let bench = Bench::start().await;
    let job = bench.job("own", |_| {}).await;
    bench.database.save_script(job, engine::ScriptLanguage::Shell, "date", "as it was").await.unwrap();
    let member = bench.person("member", Rights::MEMBER).await;
    bench.person("viewer", Rights::VIEW).await;
    for name in ["member", "viewer"] {
        tried(&bench, name, job).await;
    }
    // A script omitted from an edit is kept, and does not count as written by the editor.
    let mut kept = body(&bench.app, "renamed");
    kept["handler"] = json!("");
    member.done("PUT", &format!("/v1/jobs/id:{job}"), &kept).await;
    let script = bench.database.job(job).await.unwrap().unwrap().spec.script;
    assert_eq!(script.map(|script| script.source).as_deref(), Some("date"));
    bench.stop().await;
}

/// X14, X27: while scripts are disabled, which is the default, not even an administrator can write one.
#[tokio::test]
async fn where_scripts_are_off_not_even_an_administrator_writes_one() {
    let bench = Bench::start_with(|settings| settings.scripts = false).await;
    let job = bench.job("own", |_| {}).await;
    bench.database.save_script(job, engine::ScriptLanguage::Shell, "date", "as it was").await.unwrap();
    let password = bench.admin.password.clone();
    tried_as(&bench, "admin", &password, job).await;
    let answer = bench.post("/api/addJob", Some(&bench.token), &call_with_script()).await;
    assert!(answer.contains(r#""code":500"#) && answer.contains("--allow-scripts"), "{answer}");
    let run = bench.run(job, None).await.remove(0);
    assert!(run.message.unwrap().contains("--allow-scripts"), "one that was there is not sent");
    bench.stop().await;
}

async fn tried(bench: &Bench, name: &str, job: engine::JobId) {
    tried_as(bench, name, PASSWORD, job).await;
}

/// Checks that every way to write a script is rejected.
async fn tried_as(bench: &Bench, name: &str, password: &str, job: engine::JobId) {
    let client = bench.client(name, password).await;
    let scripts = [bench.script(OLD, name, password).await, bench.script(NEW, name, password).await];
    let before = Evidence::before(bench).await;
    let id = job.to_string();
    for script in &scripts {
        let shell = [("glueType", "GLUE_SHELL"), ("glueSource", "id"), ("glueRemark", "harmless")];
        script.refused(&script.path("/jobinfo/add", "/jobinfo/insert"), &job_form(&shell)).await;
        script.refused("/jobcode/save", &[("id", &id), shell[1], shell[2]]).await;
    }
    let source = json!({ "language": "shell", "source": "id", "remark": "harmless" });
    let mut with_script = body(&bench.app, "forged");
    with_script["handler"] = json!("");
    with_script["script"] = source.clone();
    for (method, path, body) in [
        ("POST", "/v1/jobs".to_owned(), &with_script),
        ("PUT", "/v1/jobs/forged".to_owned(), &with_script),
        ("PUT", format!("/v1/jobs/id:{id}"), &with_script),
        ("PUT", format!("/v1/jobs/id:{id}/script"), &source),
    ] {
        let reply = client.send(method, &path, body).await;
        assert!([400, 403, 404, 422].contains(&reply.status), "{name} {method} {path}: {reply:?}");
    }
    before.refused(2 * 2 + 4);
    // An edit by XXL-JOB's form leaves a script unchanged, even if the form contains one.
    for script in &scripts {
        let form = job_form(&[("id", &id), ("glueType", "GLUE_SHELL"), ("glueSource", "id")]);
        script.send("POST", "/jobinfo/update", &form).await;
    }
    let kept = bench.database.job(job).await.unwrap().unwrap().spec.script;
    assert_eq!(kept.map(|script| script.source).as_deref(), Some("date"));
}

fn call_with_script() -> String {
    let mut call = json!({ "jobGroup": 1, "name": "forged" });
    let shell = [("glueType", "GLUE_SHELL"), ("glueSource", "id")];
    for (name, text) in job_form(&shell) {
        call[name] = text.into();
    }
    call.to_string()
}
