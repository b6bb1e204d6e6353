//! One fault in the life of a cluster, and what became of its fires.

use std::fmt;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::database::Database;
use crate::process::{
    Centre, Check, DatabaseServer, Mood, Nodes, Phases, Template, Timing, Town, Weather, Workload,
};

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// kill -9 of one node, which comes back later.
    KillOne,
    /// kill -9 of all nodes, which come back at once.
    KillAll,
    /// SIGTERM to one node after the other, each of which comes back.
    RollingRestart,
    /// SIGSTOP of one node, and SIGCONT after its lease has ended.
    Pause,
    /// kill -9 of the database, which comes back.
    KillDatabase,
    /// All connections to the database break, again and again.
    CutDatabase,
    /// Commits that never reach the database.
    CutBeforeCommit,
    /// Commits whose answer never comes.
    CutAfterCommit,
    /// Each packet to and from the database takes a while.
    SlowDatabase,
    /// One node is cut off from the database without a word.
    Partition,
    /// One node hears the database, and is not heard.
    Mute,
    /// One executor behaves badly in every way, one after the other.
    Executors,
}

impl Fault {
    /// All of them.
    pub const ALL: [Fault; 12] = [
        Fault::KillOne,
        Fault::KillAll,
        Fault::RollingRestart,
        Fault::Pause,
        Fault::KillDatabase,
        Fault::CutDatabase,
        Fault::CutBeforeCommit,
        Fault::CutAfterCommit,
        Fault::SlowDatabase,
        Fault::Partition,
        Fault::Mute,
        Fault::Executors,
    ];

    /// Whether it can happen there: a file has no network, and one node.
    pub fn fits(self, database: &Database) -> bool {
        match database {
            Database::Sqlite => {
                matches!(self, Fault::KillAll | Fault::RollingRestart | Fault::Pause | Fault::Executors)
            }
            Database::MySql { .. } | Database::Postgres { .. } => true,
        }
    }

    /// How many nodes it takes.
    pub fn nodes(self, database: &Database) -> usize {
        match (database, self) {
            (Database::Sqlite, _) => 1,
            (_, Fault::KillOne | Fault::Partition) => 3,
            _ => 2,
        }
    }
}

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
        let mut server = match self.fault {
            Fault::KillDatabase => DatabaseServer::like(database).await?,
            _ => None,
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
        let mut town = Town::build(&database, nodes, workload).await?;
        let mut centres = town.start_all().await?;
        let resumed_after = self.harm(&mut town, &mut centres, server.as_mut()).await?;
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
        Ok(Told { fault: self.fault, check, timing, resumed_after })
    }

    /// Breaks things, and mends them.
    async fn harm(
        &self,
        town: &mut Town,
        centres: &mut [Option<Centre>],
        server: Option<&mut DatabaseServer>,
    ) -> Result<Option<Duration>> {
        town.at(BEGIN).await;
        // Somewhere in a second, so that repeated runs meet different moments.
        pause(Duration::from_millis(fastrand::u64(0..500))).await;
        match self.fault {
            Fault::KillOne => {
                take(&mut centres[0])?.kill().await?;
                pause(Duration::from_millis(2_500)).await;
                centres[0] = Some(town.start(0).await?);
            }
            Fault::KillAll => {
                for centre in centres.iter_mut() {
                    take(centre)?.kill().await?;
                }
                for (node, centre) in centres.iter_mut().enumerate() {
                    *centre = Some(town.start(node).await?);
                }
            }
            Fault::RollingRestart => {
                for (node, centre) in centres.iter_mut().enumerate() {
                    take(centre)?.stop().await?;
                    *centre = Some(town.start(node).await?);
                }
            }
            Fault::Pause => {
                let paused = centres[0].as_ref().context("it runs")?;
                paused.pause().await?;
                pause(LONGER_THAN_A_LEASE).await;
                paused.resume().await?;
            }
            Fault::KillDatabase => {
                let server = server.context("a server of our own")?;
                server.kill().await?;
                pause(Duration::from_secs(1)).await;
                server.start_again()?;
                server.until_ready().await?;
                let (before, back) = (town.journal.len(), tokio::time::Instant::now());
                let resumed = async || (town.journal.len() > before).then_some(());
                crate::process::until("something is sent again", SETTLE, resumed).await?;
                return Ok(Some(back.elapsed()));
            }
            Fault::CutDatabase => {
                for _ in 0..4 {
                    town.proxies.iter().for_each(|proxy| proxy.turn(Weather::Cut));
                    pause(Duration::from_millis(150)).await;
                    town.proxies.iter().for_each(|proxy| proxy.turn(Weather::Clear));
                    pause(Duration::from_millis(fastrand::u64(200..700))).await;
                }
            }
            Fault::CutBeforeCommit => self.weather(town, Weather::CutBeforeCommit(20)).await,
            Fault::CutAfterCommit => self.weather(town, Weather::CutAfterCommit(20)).await,
            Fault::SlowDatabase => self.weather(town, Weather::Slow(Duration::from_millis(10))).await,
            Fault::Partition | Fault::Mute => {
                let weather = if self.fault == Fault::Mute { Weather::Mute } else { Weather::BlackHole };
                town.proxies[0].turn(weather);
                pause(LONGER_THAN_A_LEASE).await;
                town.proxies[0].turn(Weather::Clear);
            }
            Fault::Executors => {
                let moods = [
                    Mood::Slow(Duration::from_millis(300)),
                    Mood::Reset,
                    Mood::ResetUnread,
                    Mood::WrongJson,
                    Mood::Huge,
                    Mood::Drip,
                    Mood::Hang,
                ];
                for mood in moods {
                    town.executors[0].feel(mood);
                    pause(Duration::from_millis(400)).await;
                }
                town.executors[0].die();
                town.executors[0].feel(Mood::Well);
                pause(Duration::from_millis(400)).await;
                town.executors[0].come_back().await?;
            }
        }
        Ok(None)
    }

    async fn weather(&self, town: &Town, weather: Weather) {
        town.proxies.iter().for_each(|proxy| proxy.turn(weather));
        pause(self.length / 2).await;
        town.proxies.iter().for_each(|proxy| proxy.turn(Weather::Clear));
    }
}

fn take(centre: &mut Option<Centre>) -> Result<Centre> {
    centre.take().context("it runs")
}

async fn stop_all(centres: &mut [Option<Centre>]) -> Result<()> {
    for centre in centres.iter_mut().filter_map(Option::take) {
        centre.stop().await?;
    }
    Ok(())
}

/// Faults last for a time; that is no waiting for anything.
async fn pause(length: Duration) {
    tokio::time::sleep(length).await;
}

/// To start the nodes.
const LEAD: Duration = Duration::from_secs(4);

/// The fault comes when all is well.
const BEGIN: Duration = Duration::from_millis(1_200);

/// The others have declared a node dead by then.
const LONGER_THAN_A_LEASE: Duration = Duration::from_millis(4_500);

/// The longest that what is owed may take, after the last instant: doubts are asked about, backlogs sent.
const SETTLE: Duration = Duration::from_secs(40);

/// Lines of a node's log shown when a promise was broken.
const TOLD_MAX: usize = 40;
