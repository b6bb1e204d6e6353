//! Another app with very frequent jobs, deleted while thousands of their runs are open.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::json;

use super::attacker::Attacker;
use crate::serve::WebServer;

/// Creates the app and its jobs, lets them fire for `length`, and deletes them; returns the duration of the slowest
/// deletion.
pub async fn create_and_delete(attacker: Attacker, length: Duration) -> Result<Duration> {
    // The executor accepts every run and reports no result, so all of them stay open.
    let executor = WebServer::start(Some(r#"{"code":200,"msg":null}"#)).await?;
    let app = json!({ "title": "Busy", "addressing": { "kind": "manual", "addresses": [executor.url()] } });
    attacker.put(&format!("/v1/apps/{APP}"), &app).await?;
    for number in 0..JOBS {
        let job = json!({
            "app": APP, "name": "Busy", "handler": "busy", "enabled": true, "overlap": "allow",
            "schedule": { "kind": "fixed_rate", "every_ms": EVERY_MS }
        });
        attacker.put(&format!("/v1/jobs/busy-{number}"), &job).await?;
    }
    tokio::time::sleep(length).await;
    let mut slowest = Duration::ZERO;
    for number in 0..JOBS {
        let started = Instant::now();
        let path = format!("/v1/jobs/busy-{number}");
        let (status, text) = attacker.ask("DELETE", &path, "").await?;
        ensure!((200..300).contains(&status), "DELETE {path}: {status} {text}");
        slowest = slowest.max(started.elapsed());
    }
    Ok(slowest)
}

const APP: &str = "busy";

/// Together they fire 2,000 times per second.
const JOBS: usize = 20;

/// The shortest interval that is allowed by default.
const EVERY_MS: u64 = 10;
