//! Replicated databases whose servers are killed, paused and restarted while jobs fire, and what that does to the fires.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::database::Home;
use crate::process::{
    Centre, Check, Cluster, Members, Nodes, Phases, Replicated, Template, Timing, Workload, until,
};

/// What happens to the servers and the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Story {
    /// The server that accepts writes is killed with kill -9, and joins again later.
    KillWriter,
    /// A centre is killed with kill -9 and restarted.
    KillCentre,
    /// One server cannot be reached by the others for a while.
    Split,
    /// One server after the other is restarted, and one centre between each two of them.
    RollingRestart,
    /// The primary stops replicating and dies: the new primary lacks its last commits.
    LoseCommits,
}

impl Story {
    /// All stories.
    pub const ALL: [Story; 5] =
        [Story::KillWriter, Story::KillCentre, Story::Split, Story::RollingRestart, Story::LoseCommits];

    /// Whether the story applies. Commits are lost only if no commit waits for a standby.
    pub fn fits(self, kind: Replicated, is_synchronous: bool) -> bool {
        match self {
            Story::LoseCommits => kind == Replicated::Patroni && !is_synchronous,
            _ => kind == Replicated::Galera || is_synchronous,
        }
    }
}

/// Size of a story.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Number of jobs that fire every second.
    pub jobs: u64,
    /// Time from the first fire to the last.
    pub length: Duration,
}

/// Effect of a story on the fires.
pub struct Told {
    /// The story.
    pub story: Story,
    /// Result of comparing the journals with the schedules.
    pub check: Check,
    /// Lateness of requests.
    pub timing: Timing,
    /// Runs that executors received, and that the database has lost.
    pub lost_runs: usize,
    /// Those of them that no alert names.
    pub unnamed: usize,
}

impl Told {
    /// Whether every guarantee was kept. If commits are lost, fires may be lost or duplicated, but not without an alert.
    pub fn is_kept(&self) -> bool {
        match self.story {
            Story::LoseCommits => self.unnamed == 0 && self.lost_runs > 0,
            _ => self.check.is_clean(),
        }
    }
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Told { story, check, timing, lost_runs, unnamed } = self;
        write!(
            f,
            "{:<15} due {:>6} sent {:>6} lost {} doubled {} silent {}, latest {:>6.0} ms",
            format!("{story:?}"),
            check.due,
            check.sent,
            check.lost(),
            check.doubled,
            check.silent,
            timing.max
        )?;
        match story {
            Story::LoseCommits => {
                write!(f, ", {lost_runs} runs lost by the database, {unnamed} not named in an alert")
            }
            _ => Ok(()),
        }
    }
}

/// Lets a story happen to three centres.
pub async fn tell(story: Story, members: &mut Members, size: Size) -> Result<Told> {
    let nodes = Nodes { centres: 3, executors: 2, lead: LEAD, length: size.length };
    let mut workload = Workload::each_second(size.jobs, Phases::Spread);
    workload.templates = vec![Template::every(), Template::broadcast()];
    let database = members.database().await?;
    members.number_one_by_one(true).await?;
    let mut cluster = Cluster::build_in(database.create().await?, nodes, workload).await?;
    members.number_one_by_one(false).await?;
    cluster.hosts = Some(members.hosts()?);
    let mut centres = cluster.start_all().await?;
    cluster.at(BEGIN).await;
    happen(story, members, &cluster, &mut centres, size.length).await?;
    cluster.use_server(members.address(members.writer().await?)?)?;
    cluster.settle(SETTLE).await?;
    let (lost_runs, unnamed) = match story {
        Story::LoseCommits => lost(members, &cluster).await?,
        _ => (0, 0),
    };
    let check = cluster.check().await?;
    let timing = Timing::of(&cluster.journal, 0..i64::MAX);
    let told = Told { story, check, timing, lost_runs, unnamed };
    if !told.is_kept() {
        for centre in centres.iter().flatten() {
            let said = centre.said();
            let last: Vec<&str> = said.lines().rev().take(SAID_MAX).collect();
            eprintln!("a node said last:\n{}", last.into_iter().rev().collect::<Vec<_>>().join("\n"));
        }
    }
    for centre in centres.into_iter().flatten() {
        centre.stop().await?;
    }
    cluster.remove().await?;
    Ok(told)
}

async fn happen(
    story: Story,
    members: &mut Members,
    cluster: &Cluster,
    centres: &mut [Option<Centre>],
    length: Duration,
) -> Result<()> {
    match story {
        Story::KillWriter => {
            let writer = members.writer().await?;
            members.kill(writer).await?;
            cluster.at(length / 2).await;
            members.start_again(writer).await
        }
        Story::KillCentre => {
            for (node, centre) in centres.iter_mut().enumerate() {
                centre.take().context("it runs")?.kill().await?;
                *centre = Some(cluster.start(node).await?);
            }
            Ok(())
        }
        Story::Split => {
            let writer = members.writer().await?;
            members.pause(writer).await?;
            tokio::time::sleep(length / 3).await;
            members.resume(writer).await
        }
        Story::RollingRestart => {
            for (index, centre) in centres.iter_mut().enumerate().take(members.count()) {
                members.kill(index).await?;
                members.start_again(index).await?;
                centre.take().context("it runs")?.stop().await?;
                *centre = Some(cluster.start(index).await?);
            }
            Ok(())
        }
        Story::LoseCommits => {
            let writer = members.writer().await?;
            members.stop_replication(writer).await?;
            tokio::time::sleep(UNREPLICATED).await;
            members.kill(writer).await?;
            until("a standby is promoted", SETTLE, async || {
                members.writer().await.ok().filter(|index| *index != writer).map(drop)
            })
            .await?;
            members.start_again(writer).await
        }
    }
}

/// Number of runs that executors received without a row in the database, and of those that no alert names.
async fn lost(members: &Members, cluster: &Cluster) -> Result<(usize, usize)> {
    let name = match cluster.home() {
        Home::Postgres { name, .. } => name.clone(),
        _ => String::new(),
    };
    let numbers =
        |texts: Vec<String>| texts.iter().filter_map(|text| text.parse().ok()).collect::<BTreeSet<i64>>();
    let known = numbers(members.texts(&name, "SELECT CAST(id AS text) FROM xxl_job_log").await?);
    let alerts = members.texts(&name, "SELECT message FROM tw_alert WHERE kind = 'history_lost'").await?;
    let words = alerts.iter().flat_map(|alert| alert.split(|letter: char| !letter.is_ascii_digit()));
    let named: BTreeSet<i64> = words.filter_map(|word| word.parse().ok()).collect();
    let sent: BTreeSet<i64> = cluster.journal.entries().iter().map(|entry| entry.run).collect();
    let lost: Vec<i64> = sent.difference(&known).copied().collect();
    let unnamed = lost.iter().filter(|run| !named.contains(run)).count();
    Ok((lost.len(), unnamed))
}

/// Time to start the nodes and to register the executors.
const LEAD: Duration = Duration::from_secs(8);

/// The story begins when everything works.
const BEGIN: Duration = Duration::from_secs(2);

/// Time for which commits are not replicated.
const UNREPLICATED: Duration = Duration::from_secs(2);

/// Longest time for outstanding runs after the last fire.
const SETTLE: Duration = Duration::from_secs(60);

/// Log lines of a node shown when a guarantee was broken.
const SAID_MAX: usize = 40;
