//! One fault in a cluster, and its effect on fires.

mod fault;
mod harm;

use std::fmt;
use std::time::Duration;

use anyhow::Result;

use crate::database::Database;
use crate::process::{
    Centre, Check, Cluster, DatabaseServer, Disk, Nodes, Phases, Template, Timing, Workload,
};
pub use fault::Fault;

/// A cluster and its fault.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// The fault.
    pub fault: Fault,
    /// Number of nodes.
    pub nodes: usize,
    /// Number of jobs that fire every second.
    pub jobs: u64,
    /// Time from the first fire to the last.
    pub length: Duration,
}

/// Result of a scenario.
pub struct ScenarioResult {
    /// The fault.
    pub fault: Fault,
    /// Result of comparing the journals with the schedules.
    pub check: Check,
    /// Lateness of requests.
    pub timing: Timing,
    /// Time from when the database was available again to the first request; `None` if it was never unavailable.
    pub resumed_after: Option<Duration>,
}

impl ScenarioResult {
    /// Result of a scenario that cannot run on this machine.
    fn skipped(fault: Fault) -> ScenarioResult {
        ScenarioResult { fault, check: Check::default(), timing: Timing::default(), resumed_after: None }
    }

    /// Whether every guarantee was kept. Runs not accepted by a misbehaving executor must be on record; all others
    /// are accepted once.
    pub fn is_kept(&self) -> bool {
        if self.fault == Fault::Executors { self.check.is_safe() } else { self.check.is_clean() }
    }
}

impl fmt::Display for ScenarioResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ScenarioResult { fault, check, timing, resumed_after } = self;
        write!(
            f,
            "{:<16} due {:>6} sent {:>6} lost {} doubled {} silent {} skipped {}, worst {:>7.0} ms",
            format!("{fault:?}"),
            check.due,
            check.sent,
            check.lost(),
            check.doubled,
            check.silent,
            check.skipped,
            timing.max
        )?;
        match resumed_after {
            Some(after) => write!(f, ", resumed {} ms after the database", after.as_millis()),
            None => Ok(()),
        }
    }
}

impl Scenario {
    /// Runs the scenario to its end.
    pub async fn run(&self, database: &Database) -> Result<ScenarioResult> {
        // The killed server must belong to this test alone.
        let mut server = match self.fault.is_the_server_s() {
            true => DatabaseServer::like(database).await?,
            false => None,
        };
        let database = server.as_ref().map_or(database, |server| &server.database).clone();
        let nodes = Nodes { centres: self.nodes, executors: 2, lead: LEAD, length: self.length };
        let standby = match (self.fault, &server) {
            (Fault::Failover, Some(server)) => Some(server.standby().await?),
            _ => None,
        };
        let mut workload = Workload::each_second(self.jobs, Phases::Spread);
        workload.templates =
            vec![Template::every(), Template::skipping(), Template::broadcast(), Template::every()];
        if self.fault == Fault::Executors {
            // Each shard of a broadcast belongs to one executor, even to one that accepts nothing.
            workload.templates = vec![Template::every(), Template::skipping()];
        }
        let disk = match self.fault {
            Fault::FullDisk => match Disk::small().await? {
                Some(disk) => Some(disk),
                None => return Ok(ScenarioResult::skipped(self.fault)),
            },
            _ => None,
        };
        let home = async || match &disk {
            Some(disk) => Ok(disk.home()),
            None => database.create().await,
        };
        let (mut cluster, mut centres) = Cluster::start_in_time(home, nodes, &workload, standby).await?;
        let resumed_after = self.harm(&mut cluster, &mut centres, server.as_mut(), disk.as_ref()).await?;
        cluster.settle(SETTLE).await?;
        let check = match database {
            // Only one process may open the file.
            Database::Sqlite => {
                stop_all(&mut centres).await?;
                cluster.check().await?
            }
            _ => cluster.check().await?,
        };
        let timing = Timing::of(&cluster.journal, 0..i64::MAX);
        if !check.is_safe() || check.lost() > 0 {
            for centre in centres.iter().flatten() {
                let said = centre.said();
                let last: Vec<&str> = said.lines().rev().take(TOLD_MAX).collect();
                eprintln!("a node said last:\n{}", last.into_iter().rev().collect::<Vec<_>>().join("\n"));
            }
        }
        stop_all(&mut centres).await?;
        cluster.remove().await?;
        if let Some(server) = server {
            server.stop().await?;
        }
        if let Some(disk) = disk {
            disk.remove().await?;
        }
        Ok(ScenarioResult { fault: self.fault, check, timing, resumed_after })
    }
}

async fn stop_all(centres: &mut [Option<Centre>]) -> Result<()> {
    for centre in centres.iter_mut().filter_map(Option::take) {
        centre.stop().await?;
    }
    Ok(())
}

/// Time to start the nodes and to register the executors.
const LEAD: Duration = Duration::from_secs(6);

/// Longest time for outstanding runs after the last fire: unclear runs are queried, backlogs sent.
const SETTLE: Duration = Duration::from_secs(40);

/// Log lines of a node shown when a guarantee was broken.
const TOLD_MAX: usize = 40;
