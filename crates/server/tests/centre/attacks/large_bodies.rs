//! Large bodies sent slowly, to block those of other clients.

use serde_json::{Value, json};
use store::Rights;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::kit::Bench;
use crate::v1::client::body;

/// Begins a chunked request and does not finish it.
async fn hold(bench: &Bench, path: &str, headers: &str, sent: usize) -> TcpStream {
    let mut stream = TcpStream::connect(bench.address).await.unwrap();
    let head =
        format!("POST {path} HTTP/1.1\r\nHost: localhost\r\n{headers}Transfer-Encoding: chunked\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let chunk = format!("{sent:x}\r\n{}\r\n", " ".repeat(sent));
    // A server that rejects the request may close before all is sent.
    let _ = stream.write_all(chunk.as_bytes()).await;
    stream
}

/// A job definition of more than 64 KiB.
fn large(app: &str) -> Value {
    let mut job = body(app, "Large");
    job["author"] = json!("a".repeat(50));
    job["param"] = json!("p".repeat(10_000));
    job["script"] = json!({ "language": "shell", "source": "#".repeat(100_000) });
    job
}

#[tokio::test]
async fn strangers_keep_nobody_from_sending_large_bodies() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    let mut held = Vec::new();
    for path in ["/api/callback", "/api/registry", "/v1/jobs", "/jobinfo/add"] {
        for sent in [10, 10, 70_000, 10] {
            held.push(hold(&bench, path, "", sent).await);
        }
    }
    let callback = json!([{ "logId": 1, "handleCode": 200, "handleMsg": "x".repeat(100_000) }]);
    let answer = bench.post("/api/callback", Some(&bench.token), &callback.to_string()).await;
    assert!(answer.contains(r#""code":200"#), "{answer}");
    admin.done("PUT", "/v1/jobs/large", &large(&bench.app)).await;
    // Requests of unauthenticated callers do nothing, so their large bodies are not even read.
    let answer = bench.post("/api/callback", Some("a wrong token"), &callback.to_string()).await;
    assert!(answer.contains("The access token is wrong."), "{answer}");
    drop(held);
    bench.stop().await;
}

#[tokio::test]
async fn no_user_and_no_app_keeps_others_from_sending_large_bodies() {
    let bench = Bench::start().await;
    let anna = bench.person("anna", Rights::ALL).await;
    let berta = bench.person("berta", Rights::ALL).await;
    let admin = bench.admin().await;
    let mut held = Vec::new();
    for _ in 0..10 {
        held.push(
            hold(&bench, "/v1/jobs", &format!("{}Content-Type: application/json\r\n", anna.headers), 70_000)
                .await,
        );
        let token = format!("XXL-JOB-ACCESS-TOKEN: {}\r\n", bench.token);
        held.push(hold(&bench, "/api/callback", &token, 70_000).await);
    }
    berta.done("PUT", "/v1/jobs/large", &large(&bench.app)).await;
    admin.done("PUT", "/v1/jobs/large", &large(&bench.app)).await;
    admin.add_app("other-app", "Other").await;
    let token =
        admin.post("/v1/apps/other-app/tokens", &Value::Null).await["token"].as_str().unwrap().to_owned();
    let callback = json!([{ "logId": 1, "handleCode": 200, "handleMsg": "x".repeat(100_000) }]);
    let answer = bench.post("/api/callback", Some(&token), &callback.to_string()).await;
    assert!(answer.contains(r#""code":200"#), "{answer}");
    drop(held);
    bench.stop().await;
}
