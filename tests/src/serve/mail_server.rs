//! An SMTP server: `aiosmtpd` in a separate process.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result};
use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use super::{Certificate, WAIT_MAX, tool};

/// Encryption of connections to the server.
pub enum Security<'a> {
    /// None.
    Plain,
    /// Required after a plain-text greeting.
    StartTls(&'a Certificate),
    /// From the first byte.
    Smtps(&'a Certificate),
}

/// A running SMTP server. Dropping it kills it.
pub struct MailServer {
    _process: Child,
    lines: Lines<BufReader<ChildStdout>>,
    /// Its port on 127.0.0.1.
    pub port: u16,
}

/// A mail as parsed by the server.
#[derive(Debug, Deserialize)]
pub struct Mail {
    /// Sender of the envelope.
    pub from: String,
    /// Recipients of the envelope.
    pub to: Vec<String>,
    /// Whether the connection was encrypted.
    pub encrypted: bool,
    /// Name of the authenticated user.
    pub user: Option<String>,
    /// Name and value of each header.
    pub headers: Vec<(String, String)>,
    /// Text of the body.
    pub text: String,
}

impl Mail {
    /// All values of a header.
    pub fn header(&self, name: &str) -> Vec<&str> {
        let found = self.headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str()).collect()
    }
}

impl MailServer {
    /// Starts a server on a free port; with user and password, it requires them. `None` if `aiosmtpd` is not
    /// installed.
    pub async fn start(security: Security<'_>, user: Option<(&str, &str)>) -> Result<Option<MailServer>> {
        MailServer::start_at(0, security, user).await
    }

    /// The same on a given port.
    pub async fn start_at(
        port: u16,
        security: Security<'_>,
        user: Option<(&str, &str)>,
    ) -> Result<Option<MailServer>> {
        let Some(python) = tool("aiosmtpd", "python") else { return Ok(None) };
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools/aiosmtpd/server.py");
        let mut command = Command::new(python);
        command.arg(script);
        let (mode, certificate) = match security {
            Security::Plain => ("plain", None),
            Security::StartTls(certificate) => ("starttls", Some(certificate)),
            Security::Smtps(certificate) => ("smtps", Some(certificate)),
        };
        command.arg(mode).args(["--port", &port.to_string()]);
        if let Some(Certificate { certificate, key }) = certificate {
            command.arg("--certificate").arg(certificate).arg("--key").arg(key);
        }
        if let Some((user, password)) = user {
            command.args(["--user", user, "--password", password]);
        }
        let mut process = command.stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
        let mut lines = BufReader::new(process.stdout.take().context("its output was asked for")?).lines();
        let first =
            tokio::time::timeout(WAIT_MAX, lines.next_line()).await.context("it does not start")??;
        let port = first.as_deref().and_then(|line| line.strip_prefix("listening ")?.parse().ok());
        let port = port.context("it does not say where it listens")?;
        Ok(Some(MailServer { _process: process, lines, port }))
    }

    /// Waits for the next mail.
    pub async fn next(&mut self) -> Result<Mail> {
        let line =
            tokio::time::timeout(WAIT_MAX, self.lines.next_line()).await.context("no mail comes")??;
        Ok(serde_json::from_str(&line.context("the mail server has ended")?)?)
    }
}
