//! Texts that would have an effect if they were interpreted. They come back byte for byte; that pages show them as
//! text is tested in a browser.

use executor::{Context, Job};
use serde_json::{Value, json};

use crate::kit::{Bench, until};
use crate::script::{NEW, OLD, job_form};
use crate::v1::client::body;

/// Known attacks on HTML, template engines, terminals and databases.
const CORPUS: [&str; 15] = [
    "<script>alert(1)</script>",
    "<svg onbegin=alert(1)>",
    "<details open ontoggle=alert(1)>",
    "</textarea><script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "javascript:alert(1)//",
    "${7*7}",
    "#{7*7} *{7*7} @{7*7}",
    "{{7*7}} {{constructor.constructor('alert(1)')()}}",
    "<#assign x=7*7>${x}<%= 7*7 %>",
    "&lt;b&gt; &amp; &#60;",
    "\u{1b}[31mred\u{1b}[0m \u{1b}]8;;http://evil\u{7}",
    "\u{202e}gpj.exe \u{feff}\u{200b}",
    "';DROP TABLE xxl_job_info;-- \\' \" `",
    "日本語 𝒳 ＜script＞",
];

/// X16 (CVE-2020-23814, CVE-2023-26120, CVE-2026-94426, CVE-2026-106706 and others), X22 (CVE-2024-3366): every text
/// that users write.
#[tokio::test]
async fn what_people_write_comes_back_byte_for_byte() {
    let bench = Bench::start().await;
    let (admin, scripts) =
        (bench.admin().await, [bench.admin_script(OLD).await, bench.admin_script(NEW).await]);
    for (number, text) in CORPUS.into_iter().enumerate() {
        let mut job = body(&bench.app, text);
        for field in ["handler", "param", "author"] {
            job[field] = json!(text);
        }
        job["tags"] = json!([text]);
        let reply = admin.send("PUT", &format!("/v1/jobs/corpus-{number}"), &job).await;
        assert_eq!(reply.header("content-type"), ["application/json"], "{reply:?}");
        assert_eq!(reply.header("x-content-type-options"), ["nosniff"]);
        let view = admin.get(&format!("/v1/jobs/corpus-{number}")).await;
        for field in ["name", "handler", "param", "author"] {
            assert_eq!(view[field], text, "{field}");
        }
        assert_eq!(view["tags"], json!([text]));
        let script = json!({ "language": "shell", "source": text, "remark": text });
        admin.done("PUT", &format!("/v1/jobs/corpus-{number}/script"), &script).await;
        let versions = admin.get(&format!("/v1/jobs/corpus-{number}/script")).await;
        assert_eq!((&versions[0]["source"], &versions[0]["remark"]), (&json!(text), &json!(text)));
        let app = admin.send("PUT", &format!("/v1/apps/corpus-{number}"), &json!({ "title": text })).await;
        assert_eq!(app.json()["title"], text);
        admin.done("POST", "/v1/keys", &json!({ "name": text, "rights": ["view"] })).await;
        let keys = admin.get("/v1/keys").await;
        assert!(keys.as_array().unwrap().iter().any(|key| key["name"] == text), "{text}");
        for script in &scripts {
            let form =
                [("jobDesc", text), ("author", text), ("executorParam", text), ("executorHandler", text)];
            script.done(&script.path("/jobinfo/add", "/jobinfo/insert"), &job_form(&form)).await;
            let (rows, _) = script.page("/jobinfo/pageList", &[("jobDesc", text)]).await;
            for (field, text) in form {
                assert_eq!(rows[0][field], text, "{field}");
            }
        }
    }
    let noted = admin.get("/v1/audit?action=job.put&limit=200").await.to_string();
    assert!(noted.contains("${7*7}") && noted.contains("{{7*7}}"), "nothing was computed: {noted}");
    bench.stop().await;
}

/// X15 (CVE-2023-48088), X16 through executors: their texts about runs, in results, logs and registrations.
#[tokio::test]
async fn what_executors_say_comes_back_byte_for_byte() {
    let bench = Bench::start().await;
    let say = Job::new("say", |ctx: Context| async move {
        ctx.log(ctx.param());
        ctx.param().to_owned()
    });
    let _executor = bench.executor(vec![say]).await;
    let job = bench.job("say", |_| {}).await;
    let (admin, script) = (bench.admin().await, bench.admin_script(NEW).await);
    for text in CORPUS {
        bench.engine.trigger(job, fastrand::i64(1..), Some(text.into())).await.unwrap();
        let run = until("it has said so", async || {
            let page = admin.get("/v1/runs?state=succeeded&limit=200").await;
            page["items"].as_array().unwrap().iter().find(|run| run["param"] == text).cloned()
        })
        .await;
        assert_eq!(run["result_message"], text);
        let id = run["id"].to_string();
        let log = admin.get(&format!("/v1/runs/{id}/log")).await;
        assert!(log["text"].as_str().unwrap().contains(text), "{log}");
        let download = admin.send("GET", &format!("/v1/runs/{id}/log/download"), &Value::Null).await;
        assert!(download.body.contains(text), "{download:?}");
        assert!(download.header("content-type")[0].starts_with("text/plain"), "{download:?}");
        assert_eq!(download.header("x-content-type-options"), ["nosniff"]);
        let (rows, _) = script.page("/joblog/pageList", &[("jobId", &job.to_string())]).await;
        assert!(rows.iter().any(|row| row["handleMsg"] == text), "{text}");
        // XXL-JOB's pages insert a log into their HTML as it is, so this API escapes it.
        let log = script.done("/joblog/logDetailCat", &[("logId", &id), ("fromLineNum", "1")]).await;
        let shown = log["logContent"].as_str().unwrap();
        assert!(!shown.contains("<script") && !shown.contains("<svg") && !shown.contains("<img"), "{shown}");
        // A text that is not an address does not get into a list of addresses.
        let registration =
            json!({ "registryGroup": "EXECUTOR", "registryKey": bench.app, "registryValue": text });
        let answer = bench.post("/api/registry", Some(&bench.token), &registration.to_string()).await;
        assert!(answer.contains(r#""code":500"#), "{answer}");
    }
    bench.stop().await;
}
