//! An authenticated attacker.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::answers::Answers;
use crate::process::http::Wire;

/// All kinds of credentials: an attack that fails for lack of one shows little.
#[derive(Clone)]
pub struct Attacker {
    to: SocketAddr,
    session: String,
    token: String,
}

impl Attacker {
    /// Signs in as the first administrator.
    pub async fn sign_in(to: SocketAddr, password: &str, token: &str) -> Result<Attacker> {
        let mut wire = Wire::new(TcpStream::connect(to).await?);
        let body = json!({ "user": "admin", "password": password }).to_string();
        let lines = "Tickwright-Client: test\r\nContent-Type: application/json\r\n";
        let answer = wire.ask("POST", "/v1/session", lines, &body).await?;
        let session = answer.header("tickwright-session").context("no session was opened")?.to_owned();
        Ok(Attacker { to, session, token: token.to_owned() })
    }

    /// Header lines that authenticate with every API.
    pub fn credentials(&self) -> String {
        let Attacker { session, token, .. } = self;
        format!(
            "Authorization: Bearer {session}\r\nCookie: xxl_job_login_token={session}\r\nXXL-JOB-ACCESS-TOKEN: {token}\r\n"
        )
    }

    /// Creates an app for an executor, with jobs that fire every second.
    pub async fn employ(&self, executor: &str) -> Result<()> {
        let app = json!({ "title": "Endless", "addressing": { "kind": "manual", "addresses": [executor] } });
        self.put(&format!("/v1/apps/{APP}"), &app).await?;
        for number in 0..JOBS {
            let job = json!({
                "app": APP, "name": "Endless", "handler": "endless", "enabled": true,
                "schedule": { "kind": "fixed_rate", "every_ms": 1_000 }
            });
            self.put(&format!("/v1/jobs/endless-{number}"), &job).await?;
        }
        Ok(())
    }

    /// Sends a PUT request that must answer 201.
    pub(super) async fn put(&self, path: &str, body: &Value) -> Result<()> {
        let answer = self.ask("PUT", path, &body.to_string()).await?;
        ensure!(answer.0 == 201, "PUT {path}: {answer:?}");
        Ok(())
    }

    /// Sends a request; returns the status and the body of the response.
    pub(super) async fn ask(&self, method: &str, path: &str, body: &str) -> Result<(u16, String)> {
        let mut wire = Wire::new(TcpStream::connect(self.to).await?);
        let lines = format!("{}Content-Type: application/json\r\n", self.credentials());
        let answer = wire.ask(method, path, &lines, body).await?;
        Ok((answer.status(), String::from_utf8_lossy(&answer.body).into_owned()))
    }
}

/// Requests the logs of the endless runs in every way, forever.
pub async fn read_logs(to: SocketAddr, attacker: Attacker, answers: Answers) {
    loop {
        tokio::time::sleep(PAUSE).await;
        let Ok((_, runs)) = attacker.ask("GET", &format!("/v1/runs?app={APP}&limit=5"), "").await else {
            continue;
        };
        let runs: Value = serde_json::from_str(&runs).unwrap_or_default();
        for run in runs["items"].as_array().into_iter().flatten() {
            for path in ["log", "log/download"] {
                let request = format!(
                    "GET /v1/runs/{}/{path} HTTP/1.1\r\nHost: localhost\r\n{}Connection: close\r\n\r\n",
                    run["id"],
                    attacker.credentials()
                );
                answers.send(to, request.as_bytes()).await;
            }
        }
    }
}

const APP: &str = "endless";
const JOBS: usize = 5;

/// Pause between two listings of the runs.
const PAUSE: Duration = Duration::from_millis(200);
