//! Bad input to every listener of a centre at once, while its jobs fire.
//!
//! What is wrong in form, size, depth, pace or length is sent to every path there is; thousands of connections say nothing
//! or half a word; an executor answers with 100 MB and logs that never end. The jobs of others must not notice.

mod answers;
mod bodies;
mod connections;
mod crowd;
mod executor;
mod guest;

use std::fmt;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::task::JoinSet;

use crate::database::Database;
use crate::process::{Centre, Check, Nodes, Phases, Timing, Town, Workload};
pub use answers::Answers;
use executor::Endless;
use guest::Guest;

/// A centre at work, attacked or in peace.
#[derive(Clone, Copy, Debug)]
pub struct Story {
    /// How many jobs fire each second.
    pub jobs: u64,
    /// How long they do.
    pub length: Duration,
    /// What else happens meanwhile.
    pub disturbance: Disturbance,
}

/// What a centre meets while jobs fire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disturbance {
    /// Nothing.
    None,
    /// Bad input to every listener.
    BadInput,
    /// Jobs of another app that fire 2 000 times a second are deleted with all their open runs.
    Deletions,
}

/// How a story ended.
pub struct Told {
    /// What the journals say.
    pub check: Check,
    /// How late requests were, from when the attack was under way.
    pub timing: Timing,
    /// The most memory it ever held, in MiB.
    pub peak_memory_mib: f64,
    /// What the attackers were answered.
    pub answers: Answers,
    /// Whether it was ready in the end.
    pub was_ready: bool,
    /// How long the slowest deletion took, if jobs were deleted.
    pub deletion: Option<Duration>,
    /// What it said about failures of its own, if anything.
    pub panics: Vec<String>,
}

impl Story {
    /// Plays it, to the end.
    pub async fn play(&self, database: &Database) -> Result<Told> {
        let nodes = Nodes { centres: 1, executors: 2, lead: LEAD, length: self.length };
        let town = Town::build(database, nodes, Workload::each_second(self.jobs, Phases::Spread)).await?;
        let mut centres = town.start_all().await?;
        let centre = centres[0].take().context("one centre was started")?;
        let (mut siege, mut crowd) = (None, None);
        match self.disturbance {
            Disturbance::None => {}
            Disturbance::BadInput => siege = Some(Siege::lay(&centre, town.token()).await?),
            Disturbance::Deletions => {
                let guest = sign_in(&centre, town.token()).await?;
                let crowded = self.length.saturating_sub(DELETIONS);
                crowd = Some(tokio::spawn(crowd::come_and_go(guest, crowded)));
            }
        }
        town.at(self.length).await;
        let answers = siege.map(Siege::lift).unwrap_or_default();
        let deletion = match crowd {
            Some(crowd) => Some(crowd.await??),
            None => None,
        };
        town.settle(SETTLE).await?;
        let was_ready = centre.is_ready().await;
        let peak_memory_mib = centre.usage()?.peak_memory_mib;
        let said = centre.said();
        let panics = said.lines().filter(|line| line.contains("panicked")).map(str::to_owned).collect();
        centre.stop().await?;
        let check = town.check().await?;
        let begun = town.workload.first.as_millis() + WARM_UP.as_millis() as i64;
        let timing = Timing::of(&town.journal, begun..i64::MAX);
        town.remove().await?;
        Ok(Told { check, timing, peak_memory_mib, answers, was_ready, deletion, panics })
    }
}

impl Told {
    /// Whether nobody noticed.
    pub fn ensure_unharmed(&self) -> Result<()> {
        ensure!(self.panics.is_empty(), "it panicked: {:?}", self.panics);
        ensure!(self.answers.failures().is_empty(), "it failed: {:?}", self.answers.failures());
        ensure!(self.was_ready, "it is not ready any more");
        ensure!(self.peak_memory_mib <= MEMORY_MAX_MIB, "it held {:.0} MiB", self.peak_memory_mib);
        ensure!(self.check.is_clean(), "{}", self.check);
        Ok(())
    }
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Told { check, timing, peak_memory_mib, answers, .. } = self;
        write!(
            f,
            "due {:>5} sent {:>5} lost {} doubled {}, late p50 {:>5.1} p99 {:>6.1} max {:>6.1} ms, at most {peak_memory_mib:>5.1} MiB; {answers}",
            check.due,
            check.sent,
            check.lost(),
            check.doubled,
            timing.p50,
            timing.p99,
            timing.max
        )?;
        match self.deletion {
            Some(slowest) => write!(f, ", slowest deletion {} ms", slowest.as_millis()),
            None => Ok(()),
        }
    }
}

/// Everybody who attacks. They stop when it is dropped.
struct Siege {
    attackers: JoinSet<()>,
    answers: Answers,
    _executor: Endless,
}

impl Siege {
    async fn lay(centre: &Centre, token: &str) -> Result<Siege> {
        let to = centre.address();
        let guest = sign_in(centre, token).await?;
        let executor = Endless::start().await?;
        guest.employ(&executor.url()).await?;
        let answers = Answers::default();
        let mut attackers = JoinSet::new();
        // Large ones wait long for a place, and the small ones not for them.
        for largest in [SMALL, SMALL, usize::MAX] {
            attackers.spawn(bodies::post(to, guest.clone(), largest, answers.clone()));
        }
        connections::open(to, &guest.credentials(), &answers, &mut attackers);
        attackers.spawn(guest::read_logs(to, guest, answers.clone()));
        Ok(Siege { attackers, answers, _executor: executor })
    }

    /// Ends it.
    fn lift(self) -> Answers {
        drop(self.attackers);
        self.answers
    }
}

async fn sign_in(centre: &Centre, token: &str) -> Result<Guest> {
    let password = centre.first_password().context("the first start saves a password")?;
    Guest::sign_in(centre.address(), &password, token).await
}

/// Time left for deletions before the last fire.
const DELETIONS: Duration = Duration::from_secs(3);

/// To start the centre, and the attack.
const LEAD: Duration = Duration::from_secs(6);

/// The first second warms connections and caches.
const WARM_UP: Duration = Duration::from_secs(1);

/// How long what is owed may take after the last instant.
const SETTLE: Duration = Duration::from_secs(40);

/// Whatever is thrown at it.
const MEMORY_MAX_MIB: f64 = 256.0;

/// Bodies that need no place among the large ones.
const SMALL: usize = 10_000;
