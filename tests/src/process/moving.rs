//! Thousands of jobs arrive at a running centre: imported, started, stopped and deleted with one command each, while
//! other jobs fire.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use super::centre::{Centre, binary};
use super::checker::Check;
use super::cluster::{Cluster, Nodes};
use super::journal::{Entry, Journal, micros_now};
use super::workload::{Phases, Workload};
use crate::database::Database;
use crate::serve::Folder;

/// Times of the commands, and the ledger of the fires.
#[derive(Debug)]
pub struct MoveIn {
    /// `import` of new jobs.
    pub import: Duration,
    /// `import` of the same file again.
    pub import_again: Duration,
    /// `job start` of all of them.
    pub start: Duration,
    /// `job stop` of all of them, while they fire.
    pub stop: Duration,
    /// `job rm` of all of them.
    pub delete: Duration,
    /// Fires of the new jobs before the stop.
    pub fired: usize,
    /// Fires of the new jobs that arrived after the stop was acknowledged.
    pub after_stop: usize,
    /// Fires of the other jobs.
    pub check: Check,
    /// Lateness of the latest of them.
    pub latest: Duration,
}

/// Imports, starts, stops and deletes this many jobs, which fire every five seconds.
pub async fn move_in(database: &Database, jobs: usize) -> Result<MoveIn> {
    let length = STEADY + Duration::from_millis(2 * jobs as u64);
    let nodes = Nodes { centres: 1, executors: 2, lead: LEAD, length };
    let workload = Workload::each_second(OTHERS, Phases::Spread);
    let cluster = Cluster::build(database, nodes, workload).await?;
    let centres = cluster.start_all().await?;
    let centre = centres.first().and_then(Option::as_ref).context("one node was started")?;
    let user = User::sign_in(centre).await?;
    cluster.at(Duration::from_secs(1)).await;

    let file = user.folder.path().join("jobs.yaml");
    std::fs::write(&file, yaml(jobs))?;
    let import = ["import", file.to_str().context("a path of letters")?];
    let imported = user.run(&import).await?;
    let import_again = user.run(&import).await?;
    let start = user.run(&["job", "start", "--tag", TAG, "--yes"]).await?;
    tokio::time::sleep(FIRING).await;
    let fired = moved_entries(&cluster).len();
    let stop = user.run(&["job", "stop", "--tag", TAG, "--yes"]).await?;
    let stopped_us = micros_now();
    tokio::time::sleep(QUIET).await;
    let is_late = |entry: &&Entry| entry.arrived_us > stopped_us + TOLERANCE.as_micros() as i64;
    let after_stop = moved_entries(&cluster).iter().filter(is_late).count();
    let delete = user.run(&["job", "rm", "--tag", TAG, "--yes"]).await?;

    // Other jobs go on to their end.
    cluster.at(length).await;
    tokio::time::sleep(QUIET).await;
    for centre in centres.into_iter().flatten() {
        centre.stop().await?;
    }
    let own = others(&cluster);
    let mut check = Check::of(&cluster.workload, cluster.executors.len(), &own);
    let store = cluster.store().await?;
    check.explain(&cluster.workload, &own, &store).await?;
    drop(store);
    let latest = own.entries().iter().map(Entry::lateness_us).max().unwrap_or_default();
    let latest = Duration::from_micros(u64::try_from(latest).unwrap_or(0));
    cluster.remove().await?;
    Ok(MoveIn { import: imported, import_again, start, stop, delete, fired, after_stop, check, latest })
}

/// Jobs that fire all the time, each once per second.
const OTHERS: u64 = 100;

const TAG: &str = "moved";
const LEAD: Duration = Duration::from_secs(8);

/// How long the other jobs fire at least.
const STEADY: Duration = Duration::from_secs(20);

/// Interval of the new jobs.
const EVERY: Duration = Duration::from_secs(5);

/// How long the new jobs fire before they are stopped: each at least once.
const FIRING: Duration = Duration::from_secs(7);

/// More than the time that a request needs to arrive, and than the look-ahead of a claim.
const QUIET: Duration = Duration::from_secs(3);

/// A request that left before the acknowledgement may arrive this much later.
const TOLERANCE: Duration = Duration::from_millis(100);

fn moved_entries(cluster: &Cluster) -> Vec<Entry> {
    let others = cluster.workload.jobs as i64;
    cluster.journal.entries().into_iter().filter(|entry| entry.job > others).collect()
}

/// The journal of the jobs that were there before.
fn others(cluster: &Cluster) -> Journal {
    let own = Journal::default();
    let (mut runs, last) = (HashSet::new(), cluster.workload.jobs as i64);
    for entry in cluster.journal.entries().into_iter().filter(|entry| entry.job <= last) {
        runs.insert(entry.run);
        own.take(entry);
    }
    own.acknowledge(cluster.journal.acknowledged().into_iter().filter(|run| runs.contains(run)));
    own
}

/// A file for `tickwright import`.
fn yaml(jobs: usize) -> String {
    let mut text = String::from("jobs:\n");
    for number in 0..jobs {
        writeln!(
            text,
            "  moved/{number:06}:\n    app: journal\n    name: Moved {number}\n    handler: journal\n    \
             schedule: {{kind: fixed_rate, every_ms: {}}}\n    route: round_robin\n    tags: [{TAG}]\n    \
             param: '{{\"source\":\"shop\",\"target\":\"warehouse\",\"limit\":{number}}}'",
            EVERY.as_millis()
        )
        .expect("a string can be written to");
    }
    text
}

/// An administrator at the command line.
struct User {
    folder: Folder,
    url: String,
}

impl User {
    async fn sign_in(centre: &Centre) -> Result<User> {
        let user = User { folder: Folder::new("user")?, url: format!("http://{}", centre.address()) };
        let password = centre.first_password().context("a new database has a first administrator")?;
        let mut login = user.command(&["login", &user.url, "--user", "admin"])?;
        let mut login = login.stdin(Stdio::piped()).spawn()?;
        let mut input = login.stdin.take().context("it reads a password")?;
        input.write_all(format!("{password}\n").as_bytes()).await?;
        drop(input);
        ensure!(login.wait().await?.success(), "the administrator could not sign in");
        Ok(user)
    }

    /// Runs a command; returns how long it took.
    async fn run(&self, words: &[&str]) -> Result<Duration> {
        let started = Instant::now();
        let done = self.command(words)?.stdin(Stdio::null()).stderr(Stdio::piped()).output().await?;
        let took = started.elapsed();
        ensure!(done.status.success(), "{words:?} failed: {}", String::from_utf8_lossy(&done.stderr));
        Ok(took)
    }

    fn command(&self, words: &[&str]) -> Result<Command> {
        let mut command = Command::new(binary()?);
        command.args(words).env("XDG_CONFIG_HOME", self.folder.path());
        command.env("TICKWRIGHT_URL", &self.url).stdout(Stdio::null());
        Ok(command)
    }
}
