//! Tests the API against its OpenAPI description with `schemathesis`: every response must match the description,
//! requests that violate the description are rejected, and no request causes a server error.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;
use tickwright_tests::serve::{Client, Serve, Served, tool};
use tokio::process::Command;

#[tokio::test]
async fn the_api_is_what_its_description_says() {
    let served = serve().await;
    let client = served.sign_in().await.unwrap();
    check(
        &served,
        &client,
        "schemathesis.toml",
        &[LEAVE_OUT, &["--phases", "coverage,fuzzing", "-n", "5"]].concat(),
    )
    .await;
}

#[tokio::test]
async fn objects_that_exist_are_what_the_description_says() {
    let served = serve().await;
    let client = served.sign_in().await.unwrap();
    let app = json!({ "title": "Second" });
    client.done("PUT", "/v1/apps/second-app", &app).await.unwrap();
    for name in ["first", "second"] {
        let script = json!({ "language": "shell", "source": "exit 1" });
        let job = json!({
            "app": "tickwright-sample", "name": name, "schedule": { "kind": "none" }, "script": script, "alert": true
        });
        client.done("PUT", &format!("/v1/jobs/{name}"), &job).await.unwrap();
        client.done("POST", &format!("/v1/jobs/{name}/trigger"), &json!({})).await.unwrap();
    }
    for name in ["anna", "bobby"] {
        let user = json!({ "password": "correct horse battery staple" });
        client.done("PUT", &format!("/v1/users/{name}"), &user).await.unwrap();
    }
    client
        .get_until("/v1/runs?state=failed", |page| page["items"].as_array().unwrap().len() == 2)
        .await
        .unwrap();
    let some = [
        LEAVE_OUT,
        &["--phases", "coverage,fuzzing", "-n", "5", "--include-path-regex", r"\{|/runs|/alerts"],
    ];
    check(&served, &client, "existing.toml", &some.concat()).await;

    client.get("/v1/about").await.expect("the session lasts");
    // Last, operations that end the session that all others need.
    let ending =
        ["--include-operation-id", "delete_session", "--include-operation-id", "delete_me_sessions_id"];
    check(
        &served,
        &client,
        "schemathesis.toml",
        &[&ending[..], &["--phases", "coverage", "-n", "1"]].concat(),
    )
    .await;
}

#[tokio::test]
async fn event_streams_have_the_media_type_of_the_description() {
    let served = serve().await;
    let client = served.sign_in().await.unwrap();
    let description = client.get("/v1/openapi.json").await.unwrap();
    let content = &description["paths"]["/v1/events"]["get"]["responses"]["200"]["content"];
    let media: Vec<&String> = content.as_object().unwrap().keys().collect();
    let head = head_of(&served, &client, "/v1/events").await.unwrap();
    assert!(head.to_lowercase().contains(&format!("content-type: {}", media[0])), "{media:?}: {head}");
}

/// Streams have no end, and these operations would end the session used by all requests.
const LEAVE_OUT: &[&str] = &[
    "--exclude-path",
    "/v1/events",
    "--exclude-operation-id",
    "delete_session",
    "--exclude-operation-id",
    "delete_me_sessions_id",
];

async fn serve() -> Served {
    Serve::new().unwrap().with("allow-scripts", "true").start().await.unwrap()
}

/// Runs schemathesis; panics with its report if it finds anything.
async fn check(served: &Served, client: &Client, config: &str, options: &[&str]) {
    let Some(schemathesis) = tool("schemathesis", "schemathesis") else { return };
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools/schemathesis").join(config);
    let mut command = Command::new(schemathesis);
    command.arg("--config-file").arg(config).arg("run").arg(format!("{}/v1/openapi.json", served.url));
    command
        .args(["--no-color", "--header", &format!("Authorization: Bearer {}", client.session())])
        .args(options);
    // In a folder for files it leaves behind, and without a proxy, because none leads here.
    command.current_dir(served.path(".")).env("NO_PROXY", "127.0.0.1").env("no_proxy", "127.0.0.1");
    let done = command.stdin(Stdio::null()).kill_on_drop(true).output();
    let done = tokio::time::timeout(CHECK_MAX, done).await.expect("schemathesis comes to an end").unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{said}{}", String::from_utf8_lossy(&done.stderr));
    assert!(said.contains("No issues found") || said.contains("passed"), "{said}");
    assert!(!said.contains("Unresolvable references"), "{said}");
}

/// Reads the head of a response with an endless body.
async fn head_of(served: &Served, client: &Client, path: &str) -> Result<String> {
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
    let mut stream = tokio::net::TcpStream::connect(served.address()).await?;
    let address = served.address();
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {}\r\n\r\n",
        client.session()
    );
    stream.write_all(request.as_bytes()).await?;
    let (mut lines, mut head) = (BufReader::new(stream).lines(), String::new());
    while let Some(line) = lines.next_line().await.context("it closed")?.filter(|line| !line.is_empty()) {
        head += &format!("{line}\n");
    }
    Ok(head)
}

/// About a minute on an idle machine, a multiple of that on a busy one.
const CHECK_MAX: Duration = Duration::from_secs(900);
