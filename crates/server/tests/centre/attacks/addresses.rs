//! Addresses planted in requests, to make the server call them and send its token.

use engine::{JobId, Store as _};
use serde_json::{Value, json};
use store::Rights;

use super::evidence::{Evidence, Trap};
use crate::kit::{Bench, echo};
use crate::script::{NEW, OLD};
use crate::v1::client::{PASSWORD, problem};

/// X3 (CVE-2022-43183): the run decides where a log is read, never the request.
#[tokio::test]
async fn a_log_is_read_only_where_its_run_went() {
    let bench = Bench::start().await;
    let _executor = bench.executor(vec![echo()]).await;
    let trap = Trap::set().await;
    let job = bench.job("echo", |_| {}).await;
    let run = bench.run(job, Some("mine")).await[0].id.to_string();
    for login in [OLD, NEW] {
        let script = bench.admin_script(login).await;
        let elsewhere = trap.url();
        let named = ["executorAddress", "address", "addressList"].map(|name| (name, elsewhere.as_str()));
        let form: Vec<_> = [("logId", run.as_str()), ("fromLineNum", "1")].into_iter().chain(named).collect();
        for method in ["GET", "POST"] {
            let reply = script.send(method, "/joblog/logDetailCat", &form).await;
            assert!(reply.body.contains("given mine"), "{reply:?}");
        }
        // Nor in JSON, which this API does not read, beside the query, which it reads.
        let body = json!({ "executorAddress": elsewhere, "address": elsewhere, "logId": 1 }).to_string();
        let request = format!(
            "POST /joblog/logDetailCat?logId={run}&fromLineNum=1&address={elsewhere} HTTP/1.1\r\nHost: centre\r\n\
             Cookie: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            script.cookie,
            body.len()
        );
        let reply = bench.exchange(request.as_bytes()).await;
        assert!(reply.body.contains("given mine"), "{reply:?}");
    }
    let admin = bench.admin().await;
    for path in ["log", "log/live", "log/download"] {
        for name in ["executorAddress", "address", "addressList"] {
            let path = format!("/v1/runs/{run}/{path}?{name}={}", trap.url());
            assert_eq!(admin.refused("GET", &path, &Value::Null).await, "malformed_request");
        }
    }
    trap.caught_nobody().await;
    bench.stop().await;
}

/// X4 (CVE-2024-24113): a run is sent only to executors registered for its app, for every caller and API.
#[tokio::test]
async fn a_run_is_sent_to_registered_executors_only() {
    let bench = Bench::start().await;
    let executor = bench.executor(vec![echo()]).await;
    let trap = Trap::set().await;
    let job = bench.job("echo", |_| {}).await;
    let id = job.to_string();
    let mixed = format!("{},{}", executor.address(), trap.url());
    let own = format!("http://{}/", bench.address);
    let addresses =
        [trap.url(), mixed, own, "http://169.254.169.254/".into(), "file:///etc/passwd".into(), "x".into()];
    let operator = bench.person("operator", Rights::VIEW.with(Rights::OPERATE)).await;
    let clients = [operator, bench.admin().await];
    let scripts = [bench.script(OLD, "operator", PASSWORD).await, bench.admin_script(NEW).await];
    let before = Evidence::before(&bench).await;
    for address in &addresses {
        for script in &scripts {
            let form = [("id", id.as_str()), ("executorParam", "p"), ("addressList", address)];
            assert!(script.refused("/jobinfo/trigger", &form).await.starts_with("addressList: "));
        }
        for client in &clients {
            let path = format!("/v1/jobs/id:{id}/trigger");
            let code = client.refused("POST", &path, &json!({ "address": address })).await;
            assert_eq!(code, "invalid_fields", "{address}");
        }
        let call = json!({ "id": job.0, "executorParam": "p", "addressList": address }).to_string();
        let answer = bench.post("/api/triggerJob", Some(&bench.token), &call).await;
        assert!(answer.contains(r#""code":500"#), "{answer}");
    }
    before.refused(addresses.len() * 5);
    assert!(bench.database.runs(JobId(job.0), None, 10).await.unwrap().is_empty());
    trap.caught_nobody().await;
    bench.stop().await;
}

/// X5: addresses entered by users are checked when they are saved. At each call they are checked again, for the IP
/// address that is connected to (`tests/outbound/guard.rs`), so a DNS change in between has no effect.
#[tokio::test]
async fn addresses_that_are_nobody_s_executor_are_not_saved() {
    let bench = Bench::start().await;
    let own = format!("http://{}/", bench.address);
    let before = Evidence::before(&bench).await;
    let mut attempts = 0;
    let (old, new, admin) =
        (bench.admin_script(OLD).await, bench.admin_script(NEW).await, bench.admin().await);
    for address in [
        "http://169.254.169.254/",
        "http://[::ffff:169.254.169.254]/",
        "http://[::ffff:a9fe:a9fe]:80/",
        "http://100.100.100.200/",
        "http://0/",
        "http://0.0.0.0:8080/",
        "http://[::]:8080/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://017700000001/",
        "http://127.1/",
        "file:///etc/passwd",
        "gopher://127.0.0.1:25/",
        "http://u:p@127.0.0.1/",
        "http://127.0.0.1/..;/x",
        "http://127.0.0.1:9/a/../b",
        "http://127.0.0.1:9/?x=1",
        "http://127.0.0.1:9/#x",
        "http://127.0.0.1:99999/",
        "http://224.0.0.1/",
        "http://255.255.255.255/",
        own.as_str(),
    ] {
        for (script, title) in [(&old, "title"), (&new, "name")] {
            let form = [
                ("appname", "forged-app"),
                (title, "Forged"),
                ("addressType", "1"),
                ("addressList", address),
            ];
            let add = script.path("/jobgroup/save", "/jobgroup/insert");
            assert!(script.refused(&add, &form).await.starts_with("addressList: "), "{address}");
            let form: Vec<_> = [("id", "1"), ("appname", bench.app.as_str())]
                .into_iter()
                .chain(form[1..].to_vec())
                .collect();
            assert!(
                script.refused("/jobgroup/update", &form).await.starts_with("addressList: "),
                "{address}"
            );
        }
        for app in ["forged-app", bench.app.as_str()] {
            let body =
                json!({ "title": "Forged", "addressing": { "kind": "manual", "addresses": [address] } });
            let reply = admin.send("PUT", &format!("/v1/apps/{app}"), &body).await;
            assert_eq!(problem(&reply), "invalid_fields", "{address}");
        }
        attempts += 6;
    }
    before.refused(attempts);
    bench.stop().await;
}
