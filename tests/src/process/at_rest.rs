//! A centre with nothing to do: the statements it sends, the commits it writes, and its CPU time.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::centre::Centre;
use super::cluster::{Cluster, Nodes};
use super::workload::{Phases, Workload};
use crate::database::{Database, Home};

/// What a centre did while nothing was due.
#[derive(Clone, Copy, Debug)]
pub struct AtRest {
    /// Statements sent to the database server; none on SQLite.
    pub statements: u64,
    /// Commits in the write-ahead log; only on SQLite.
    pub commits: u64,
    /// Pages in the write-ahead log; only on SQLite.
    pub pages: u64,
    /// CPU time of the centre.
    pub cpu: Duration,
    /// Measured time.
    pub took: Duration,
}

/// A node with jobs that fire every hour, the first time in an hour.
pub struct Resting {
    cluster: Cluster,
    centre: Centre,
}

impl Resting {
    /// Starts a node with this many jobs.
    pub async fn start(database: &Database, jobs: u64) -> Result<Resting> {
        let nodes = Nodes { centres: 1, executors: 0, lead: HOUR, length: HOUR };
        let workload = Workload { period: HOUR, ..Workload::each_second(jobs, Phases::Together) };
        let cluster = Cluster::build(database, nodes, workload).await?;
        let centre = cluster.start(0).await?;
        tokio::time::sleep(SETTLE).await;
        Ok(Resting { cluster, centre })
    }

    /// Observes it for this long.
    pub async fn observe(&self, length: Duration) -> Result<AtRest> {
        let Resting { cluster, centre } = self;
        let wal = match cluster.home() {
            Home::Sqlite(path) => Some(path.with_extension("db-wal")),
            _ => None,
        };
        if wal.is_some() {
            // The log is empty then, and too short to be written back to the file before the end.
            cluster.home().run(&["PRAGMA wal_checkpoint(TRUNCATE)".into()]).await?;
        }
        let statements = || cluster.proxies.iter().map(|proxy| proxy.statements()).sum::<usize>() as u64;
        let (before, usage, started) = (statements(), centre.usage()?, Instant::now());
        tokio::time::sleep(length).await;
        let (statements, took) = (statements() - before, started.elapsed());
        let cpu = centre.usage()?.cpu - usage.cpu;
        let (commits, pages) = wal.as_deref().map(commits_in).transpose()?.unwrap_or_default();
        Ok(AtRest { statements, commits, pages, cpu, took })
    }

    /// Stops the node and removes its database.
    pub async fn stop(self) -> Result<()> {
        self.centre.stop().await?;
        self.cluster.remove().await
    }
}

/// Numbers of commits and of pages in a write-ahead log of SQLite.
fn commits_in(wal: &Path) -> Result<(u64, u64)> {
    let bytes = fs::read(wal).with_context(|| wal.display().to_string())?;
    let number = |at: usize| -> Result<u32> {
        let bytes = bytes.get(at..at + 4).context("the log ends early")?;
        Ok(u32::from_be_bytes(bytes.try_into()?))
    };
    ensure!(!bytes.is_empty(), "the centre wrote nothing, not even its lease");
    let page_size = usize::try_from(number(8)?)?;
    let frames = (HEADER..bytes.len()).step_by(FRAME_HEADER + page_size);
    let (mut commits, mut pages) = (0, 0);
    for frame in frames {
        pages += 1;
        // The last page of a commit has the size of the database.
        commits += u64::from(number(frame + 4)? > 0);
    }
    Ok((commits, pages))
}

const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;

const HOUR: Duration = Duration::from_secs(3_600);

/// Time after the start in which a centre reads everything once.
const SETTLE: Duration = Duration::from_secs(5);
