//! Another app with very frequent jobs, edited, stopped, cleared and deleted while thousands of their runs are open.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::json;

use super::attacker::Attacker;
use crate::serve::WebServer;

/// Creates the app and its jobs, lets them fire for `length`, and deletes them; returns the duration of the slowest
/// deletion. With `all_operations` the jobs are edited, stopped and cleared before.
pub async fn create_and_delete(
    attacker: Attacker,
    length: Duration,
    all_operations: bool,
) -> Result<Duration> {
    // The executor accepts every run and reports no result, so all of them stay open.
    let executor = WebServer::start(Some(r#"{"code":200,"msg":null}"#)).await?;
    let app = json!({ "title": "Busy", "addressing": { "kind": "manual", "addresses": [executor.url()] } });
    attacker.put(&format!("/v1/apps/{APP}"), &app).await?;
    let definition = |name: &str| {
        json!({
            "app": APP, "name": name, "handler": "busy", "enabled": true, "overlap": "allow",
            "schedule": { "kind": "fixed_rate", "every_ms": EVERY_MS }
        })
    };
    let all = || (0..JOBS).map(|number| format!("/v1/jobs/busy-{number}"));
    for job in all() {
        attacker.put(&job, &definition("Busy")).await?;
    }
    tokio::time::sleep(length).await;
    if all_operations {
        for job in all() {
            ask(&attacker, "PUT", &job, &definition("Edited").to_string()).await?;
            ask(&attacker, "POST", &format!("{job}/stop"), "").await?;
        }
        let clearing = json!({ "app": APP, "before": "2100-01-01T00:00:00Z" });
        ask(&attacker, "POST", "/v1/runs/clear", &clearing.to_string()).await?;
    }
    let mut slowest = Duration::ZERO;
    for job in all() {
        let started = Instant::now();
        ask(&attacker, "DELETE", &job, "").await?;
        slowest = slowest.max(started.elapsed());
    }
    Ok(slowest)
}

async fn ask(attacker: &Attacker, method: &str, path: &str, body: &str) -> Result<()> {
    let (status, text) = attacker.ask(method, path, body).await?;
    ensure!((200..300).contains(&status), "{method} {path}: {status} {text}");
    Ok(())
}

const APP: &str = "busy";

/// Together they fire 2,000 times per second.
const JOBS: usize = 20;

/// The shortest interval that is allowed by default.
const EVERY_MS: u64 = 10;
