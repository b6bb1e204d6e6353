//! Another app with very frequent jobs, deleted while thousands of their runs are open.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::json;

use super::guest::Guest;
use crate::serve::WebServer;

/// Creates the app and its jobs, lets them fire for `length`, and deletes them; returns the duration of the slowest
/// deletion.
pub async fn come_and_go(guest: Guest, length: Duration) -> Result<Duration> {
    // The executor accepts every run and reports no result, so all of them stay open.
    let executor = WebServer::start(Some(r#"{"code":200,"msg":null}"#)).await?;
    let app = json!({ "title": "Crowd", "addressing": { "kind": "manual", "addresses": [executor.url()] } });
    guest.put(&format!("/v1/apps/{APP}"), &app).await?;
    for number in 0..JOBS {
        let job = json!({
            "app": APP, "name": "Crowd", "handler": "crowd", "enabled": true, "overlap": "allow",
            "schedule": { "kind": "fixed_rate", "every_ms": EVERY_MS }
        });
        guest.put(&format!("/v1/jobs/crowd-{number}"), &job).await?;
    }
    tokio::time::sleep(length).await;
    let mut slowest = Duration::ZERO;
    for number in 0..JOBS {
        let started = Instant::now();
        let path = format!("/v1/jobs/crowd-{number}");
        let (status, text) = guest.ask("DELETE", &path, "").await?;
        ensure!((200..300).contains(&status), "DELETE {path}: {status} {text}");
        slowest = slowest.max(started.elapsed());
    }
    Ok(slowest)
}

const APP: &str = "crowd";

/// Together they fire 2,000 times per second.
const JOBS: usize = 20;

/// The shortest interval that is allowed by default.
const EVERY_MS: u64 = 10;
