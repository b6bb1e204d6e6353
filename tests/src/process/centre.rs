//! `tickwright serve` as a separate process: starts, observes, and breaks it.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use super::http::Wire;
use super::output::Output;
use super::until;

/// A running centre. Dropping it kills it.
pub struct Centre {
    process: Child,
    address: SocketAddr,
    output: Output,
    data_dir: PathBuf,
}

impl Centre {
    /// Starts a node that listens at `address`, and waits until it may claim. Nodes of one database share the key
    /// file.
    pub async fn start(
        node: &str,
        address: SocketAddr,
        database_url: &str,
        key_file: &Path,
    ) -> Result<Centre> {
        let centre = Centre::spawn(node, address, database_url, key_file)?;
        match until("the centre is ready", READY_MAX, async || centre.is_ready().await.then_some(())).await {
            Ok(()) => Ok(centre),
            Err(error) => bail!("{error}; it said:\n{}", centre.said()),
        }
    }

    /// Starts a node without waiting.
    pub fn spawn(node: &str, address: SocketAddr, database_url: &str, key_file: &Path) -> Result<Centre> {
        let data_dir = key_file.with_file_name(format!("{node}-data"));
        let mut process = Command::new(binary()?)
            .args([
                "serve",
                "--node",
                node,
                "--listen",
                &address.to_string(),
                "--zone",
                "UTC",
                "--allow-scripts",
                "--key-file",
            ])
            .arg(key_file)
            .arg("--data-dir")
            .arg(&data_dir)
            // Not as an option: a password must not appear in the list of processes.
            .env("TICKWRIGHT_DATABASE_URL", database_url)
            // Only jobs of the test may run.
            .env("TICKWRIGHT_SAMPLE", "false")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("could not start the centre")?;
        let output = Output::default();
        output.follow(node, process.stderr.take().context("its output was asked for")?);
        Ok(Centre { process, address, output, data_dir })
    }

    /// Address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Process id, while it is running.
    pub fn pid(&self) -> Option<u32> {
        self.process.id()
    }

    /// Whether `/readyz` reports that it may claim.
    pub async fn is_ready(&self) -> bool {
        let asked = async {
            let mut wire = Wire::new(TcpStream::connect(self.address).await?);
            wire.get("/readyz").await
        };
        matches!(tokio::time::timeout(ASK_MAX, asked).await, Ok(Ok(answer)) if answer.status() == 200)
    }

    /// Returns the status and the text of `/readyz`.
    pub async fn readiness(&self) -> Result<(u16, String)> {
        let asked = async {
            let mut wire = Wire::new(TcpStream::connect(self.address).await?);
            wire.get("/readyz").await
        };
        let answer = tokio::time::timeout(ASK_MAX, asked).await.context("no answer")??;
        Ok((answer.status(), String::from_utf8_lossy(&answer.body).into_owned()))
    }

    /// Its output so far.
    pub fn said(&self) -> String {
        self.output.text()
    }

    /// The token of the sample app, saved at the first start on a new database.
    pub fn first_token(&self) -> Option<String> {
        self.credential("xxl.job.accessToken")
    }

    /// The administrator's password, saved at the first start on a new database.
    pub fn first_password(&self) -> Option<String> {
        self.credential("password")
    }

    fn credential(&self, name: &str) -> Option<String> {
        let text = fs::read_to_string(self.data_dir.join("initial-credentials.txt")).ok()?;
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('=')).map(str::to_owned)
    }

    /// Kills it with kill -9.
    pub async fn kill(mut self) -> Result<()> {
        self.process.kill().await.context("could not kill the centre")
    }

    /// Sends SIGTERM; returns how long it took to end.
    pub async fn stop(mut self) -> Result<Duration> {
        let started = tokio::time::Instant::now();
        self.signal("TERM").await?;
        let ended = tokio::time::timeout(STOP_MAX, self.process.wait()).await;
        let status = ended.with_context(|| format!("it does not stop; it said:\n{}", self.said()))??;
        ensure!(status.success(), "it ended with {status}; it said:\n{}", self.said());
        Ok(started.elapsed())
    }

    /// Waits until it ends by itself; returns status and output.
    pub async fn ended(mut self) -> Result<(std::process::ExitStatus, String)> {
        let status = tokio::time::timeout(STOP_MAX, self.process.wait()).await.context("it goes on")??;
        // Its last lines may not have been read yet.
        tokio::time::sleep(Duration::from_millis(50)).await;
        Ok((status, self.said()))
    }

    /// Sends SIGSTOP: the process is suspended immediately.
    pub async fn pause(&self) -> Result<()> {
        self.signal("STOP").await
    }

    /// Sends SIGCONT.
    pub async fn resume(&self) -> Result<()> {
        self.signal("CONT").await
    }

    async fn signal(&self, name: &str) -> Result<()> {
        signal(self.pid().context("the centre is gone")?, name).await
    }

    /// CPU time and memory used so far.
    pub fn usage(&self) -> Result<Usage> {
        let pid = self.pid().context("the centre is gone")?;
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        // The name, in brackets, may contain any character.
        let (_, after_name) = stat.rsplit_once(')').context("a stat without a name")?;
        let number = |nth: usize| after_name.split_whitespace().nth(nth).and_then(|n| n.parse::<u64>().ok());
        let ticks = number(11).zip(number(12)).map(|(user, system)| user + system).context("no times")?;
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let mebibytes = |name: &str| -> Result<f64> {
            let kilobytes = status.lines().find_map(|line| line.strip_prefix(name)).context("no memory")?;
            Ok(kilobytes.trim().trim_end_matches(" kB").parse::<f64>()? / 1024.0)
        };
        Ok(Usage {
            cpu: Duration::from_millis(ticks * 10),
            memory_mib: mebibytes("VmRSS:")?,
            peak_memory_mib: mebibytes("VmHWM:")?,
        })
    }
}

/// Resources used by a process.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// CPU time of all threads.
    pub cpu: Duration,
    /// Current memory.
    pub memory_mib: f64,
    /// Peak memory so far.
    pub peak_memory_mib: f64,
}

/// Sends a signal to a process.
pub async fn signal(pid: u32, name: &str) -> Result<()> {
    // The shell has a built-in `kill`, so nothing needs to be installed, and no unsafe code is needed.
    let status = Command::new("sh").args(["-c", &format!("kill -{name} {pid}")]).status().await?;
    ensure!(status.success(), "could not send {name} to process {pid}");
    Ok(())
}

/// Path of the `tickwright` binary built together with this one.
pub fn binary() -> Result<PathBuf> {
    if let Some(given) = std::env::var_os("TICKWRIGHT_BIN") {
        return Ok(given.into());
    }
    let here = std::env::current_exe().context("where this program is")?;
    // Tests are one folder deeper than programs.
    let found =
        here.ancestors().skip(1).take(2).map(|folder| folder.join("tickwright")).find(|path| path.is_file());
    found.with_context(|| {
        let profile = if cfg!(debug_assertions) { "" } else { " --release" };
        format!(
            "there is no `tickwright` beside {}; run: cargo build -p tickwright-cli{profile}",
            here.display()
        )
    })
}

const READY_MAX: Duration = Duration::from_secs(120);
const STOP_MAX: Duration = Duration::from_secs(60);
const ASK_MAX: Duration = Duration::from_secs(10);
