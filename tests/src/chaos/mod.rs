//! One fault in the life of a cluster, and what became of its fires.

mod fault;
mod harm;

use std::fmt;
use std::time::Duration;

use anyhow::Result;

use crate::database::Database;
use crate::process::{Centre, Check, DatabaseServer, Disk, Nodes, Phases, Template, Timing, Town, Workload};
pub use fault::Fault;

/// A cluster, and what happens to it.
#[derive(Clone, Copy, Debug)]
pub struct Story {
    /// What goes wrong.
    pub fault: Fault,
    /// How many nodes there are.
    pub nodes: usize,
    /// How many jobs fire each second.
    pub jobs: u64,
    /// How long they do.
    pub length: Duration,
}

/// How a story ended.
pub struct Told {
    /// What went wrong.
    pub fault: Fault,
    /// What the journals say.
    pub check: Check,
    /// How late requests were.
    pub timing: Timing,
    /// From when the database was back to the first request after it, where it was away.
    pub resumed_after: Option<Duration>,
}

impl Told {
    /// A story that cannot be played here.
    fn skipped(fault: Fault) -> Told {
        Told { fault, check: Check::default(), timing: Timing::default(), resumed_after: None }
    }

    /// Whether every promise was kept. What a bad executor did not take must be on record; all else is taken once.
    pub fn is_kept(&self) -> bool {
        if self.fault == Fault::Executors { self.check.is_safe() } else { self.check.is_clean() }
    }
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Told { fault, check, timing, resumed_after } = self;
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

impl Story {
    /// Plays it, to the end.
    pub async fn play(&self, database: &Database) -> Result<Told> {
        // What is killed must be nobody else's.
        let mut server = match self.fault.is_the_server_s() {
            true => DatabaseServer::like(database).await?,
            false => None,
        };
        let database = server.as_ref().map_or(database, |server| &server.database).clone();
        let nodes = Nodes { centres: self.nodes, executors: 2, lead: LEAD, length: self.length };
        let mut workload = Workload::each_second(self.jobs, Phases::Spread);
        workload.templates =
            vec![Template::every(), Template::skipping(), Template::broadcast(), Template::every()];
        if self.fault == Fault::Executors {
            // Each shard of a broadcast belongs to its executor, also to one that takes nothing.
            workload.templates = vec![Template::every(), Template::skipping()];
        }
        let disk = match self.fault {
            Fault::FullDisk => match Disk::small().await? {
                Some(disk) => Some(disk),
                None => return Ok(Told::skipped(self.fault)),
            },
            _ => None,
        };
        let mut town = match &disk {
            Some(disk) => Town::build_in(disk.home(), nodes, workload).await?,
            None => Town::build(&database, nodes, workload).await?,
        };
        let mut centres = town.start_all().await?;
        let resumed_after = self.harm(&mut town, &mut centres, server.as_mut(), disk.as_ref()).await?;
        town.settle(SETTLE).await?;
        let check = match database {
            // Only one process may have a file open.
            Database::Sqlite => {
                stop_all(&mut centres).await?;
                town.check().await?
            }
            _ => town.check().await?,
        };
        let timing = Timing::of(&town.journal, 0..i64::MAX);
        if !check.is_safe() || check.lost() > 0 {
            for centre in centres.iter().flatten() {
                let said = centre.said();
                let last: Vec<&str> = said.lines().rev().take(TOLD_MAX).collect();
                eprintln!("a node said last:\n{}", last.into_iter().rev().collect::<Vec<_>>().join("\n"));
            }
        }
        stop_all(&mut centres).await?;
        town.remove().await?;
        if let Some(server) = server {
            server.stop().await?;
        }
        if let Some(disk) = disk {
            disk.remove().await?;
        }
        Ok(Told { fault: self.fault, check, timing, resumed_after })
    }
}

async fn stop_all(centres: &mut [Option<Centre>]) -> Result<()> {
    for centre in centres.iter_mut().filter_map(Option::take) {
        centre.stop().await?;
    }
    Ok(())
}

/// To start the nodes.
const LEAD: Duration = Duration::from_secs(4);

/// The longest that what is owed may take, after the last instant: doubts are asked about, backlogs sent.
const SETTLE: Duration = Duration::from_secs(40);

/// Lines of a node's log shown when a promise was broken.
const TOLD_MAX: usize = 40;
