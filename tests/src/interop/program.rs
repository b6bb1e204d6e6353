//! A program of `tests/interop` as a process.

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::process::{Child, Command};

use super::{Client, patiently};
use crate::process::{Output, signal};

/// A running program. Dropping it kills it.
pub struct Program {
    process: Child,
    output: Output,
}

impl Program {
    /// Starts the program of a client in its own folder, with settings in the environment.
    pub fn start(client: &str, folder: &Path, settings: &[(&str, String)]) -> Result<Program> {
        std::fs::create_dir_all(folder)?;
        let mut process = launcher(client)?
            .current_dir(folder)
            .envs(settings.iter().map(|(name, value)| (name, value)))
            // Some clients read proxy settings from the environment, and no proxy leads here.
            .env("NO_PROXY", "127.0.0.1")
            .env("no_proxy", "127.0.0.1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("could not start the program of {client}"))?;
        let output = Output::default();
        output.follow(client, process.stdout.take().context("its output was asked for")?);
        output.follow(client, process.stderr.take().context("its output was asked for")?);
        Ok(Program { process, output })
    }

    /// Its output so far.
    pub fn said(&self) -> String {
        self.output.text()
    }

    /// Waits until its output contains a text this many times.
    pub async fn says(&self, text: &str, times: usize) -> Result<()> {
        let found = async || (self.said().matches(text).count() >= times).then_some(());
        patiently(&format!("it has said `{text}` {times} times"), found).await
    }

    /// Sends SIGSTOP: the process is suspended until [`Program::resume`].
    pub async fn pause(&self) -> Result<()> {
        self.signal("STOP").await
    }

    /// Sends SIGCONT.
    pub async fn resume(&self) -> Result<()> {
        self.signal("CONT").await
    }

    /// Kills it with kill -9.
    pub async fn kill(&mut self) -> Result<()> {
        self.process.kill().await.context("could not kill it")
    }

    /// Sends SIGTERM and waits for the end.
    pub async fn stop(&mut self) -> Result<ExitStatus> {
        self.signal("TERM").await?;
        self.ended().await
    }

    async fn signal(&self, name: &str) -> Result<()> {
        signal(self.process.id().context("it has ended already")?, name).await
    }

    /// Waits until it ends.
    pub async fn ended(&mut self) -> Result<ExitStatus> {
        let ended = tokio::time::timeout(END_MAX, self.process.wait()).await;
        Ok(ended.with_context(|| format!("it does not end; it said:\n{}", self.said()))??)
    }
}

/// The command that starts the program of a client. Ours is in the test binary, as a test that does nothing on its
/// own.
fn launcher(client: &str) -> Result<Command> {
    if client == Client::OWN.name {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["--exact", "the_executor_of_our_own", "--nocapture"]);
        return Ok(command);
    }
    let start = installed()?.join(client).join("start");
    ensure!(start.is_file(), "{} is not there; run: make interop", start.display());
    Ok(Command::new(start))
}

/// Folder where `scripts/interop` has installed the clients.
fn installed() -> Result<PathBuf> {
    let folder =
        std::env::var_os("TICKWRIGHT_INTEROP").context("the clients are not installed; run: make interop")?;
    Ok(folder.into())
}

/// The slowest client takes 10 s to stop gracefully.
const END_MAX: Duration = Duration::from_secs(180);
