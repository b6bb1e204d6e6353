//! Hostile input to every endpoint of a centre at once, while its jobs fire.
//!
//! Requests with wrong format, size, nesting, pace or length go to every path; thousands of connections send
//! nothing or half a request line; an executor responds with 100 MB and endless logs. Other jobs must not be affected.

mod answers;
mod attacker;
mod bodies;
mod busy_app;
mod connections;
mod executor;

use std::fmt;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::task::JoinSet;

use crate::database::Database;
use crate::process::{Centre, Check, Cluster, Nodes, Phases, Timing, Workload};
pub use answers::Answers;
use attacker::Attacker;
use executor::Endless;

/// A centre that runs jobs, with or without a disturbance.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// Number of jobs that fire every second.
    pub jobs: u64,
    /// Time from the first fire to the last.
    pub length: Duration,
    /// The disturbance while jobs fire.
    pub disturbance: Disturbance,
}

/// A disturbance of a centre while jobs fire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disturbance {
    /// No disturbance.
    None,
    /// Hostile input to every endpoint.
    BadInput,
    /// Jobs of another app that fire 2,000 times per second are deleted with all their open runs.
    Deletions,
    /// The same jobs are edited, stopped and cleared, and then deleted.
    Changes,
}

/// Result of a scenario.
pub struct ScenarioResult {
    /// Result of comparing the journals with the schedules.
    pub check: Check,
    /// Lateness of requests since the disturbance began.
    pub timing: Timing,
    /// Peak memory of the centre, in MiB.
    pub peak_memory_mib: f64,
    /// Responses to the attackers.
    pub answers: Answers,
    /// Whether the centre was ready at the end.
    pub was_ready: bool,
    /// Duration of the slowest deletion, if jobs were deleted.
    pub deletion: Option<Duration>,
    /// Panics in the centre's log.
    pub panics: Vec<String>,
}

impl Scenario {
    /// Runs the scenario to its end.
    pub async fn run(&self, database: &Database) -> Result<ScenarioResult> {
        let nodes = Nodes { centres: 1, executors: 2, lead: LEAD, length: self.length };
        let workload = Workload::each_second(self.jobs, Phases::Spread);
        let home = async || database.create().await;
        let (cluster, mut centres) = Cluster::start_in_time(home, nodes, &workload, None).await?;
        let centre = centres[0].take().context("one centre was started")?;
        let (mut attack, mut busy_app) = (None, None);
        match self.disturbance {
            Disturbance::None => {}
            Disturbance::BadInput => attack = Some(Attack::start(&centre, cluster.token()).await?),
            Disturbance::Deletions | Disturbance::Changes => {
                let attacker = sign_in(&centre, cluster.token()).await?;
                let crowded = self.length.saturating_sub(DELETIONS);
                let all = self.disturbance == Disturbance::Changes;
                busy_app = Some(tokio::spawn(busy_app::create_and_delete(attacker, crowded, all)));
            }
        }
        cluster.at(self.length).await;
        let answers = attack.map(Attack::stop).unwrap_or_default();
        let deletion = match busy_app {
            Some(busy_app) => Some(busy_app.await??),
            None => None,
        };
        cluster.settle(SETTLE).await?;
        let was_ready = centre.is_ready().await;
        let peak_memory_mib = centre.usage()?.peak_memory_mib;
        let said = centre.said();
        let panics = said.lines().filter(|line| line.contains("panicked")).map(str::to_owned).collect();
        centre.stop().await?;
        let check = cluster.check().await?;
        let begun = cluster.workload.first.as_millis() + WARM_UP.as_millis() as i64;
        let timing = Timing::of(&cluster.journal, begun..i64::MAX);
        cluster.remove().await?;
        Ok(ScenarioResult { check, timing, peak_memory_mib, answers, was_ready, deletion, panics })
    }
}

impl ScenarioResult {
    /// Fails if the attack had any effect.
    pub fn ensure_unharmed(&self) -> Result<()> {
        ensure!(self.panics.is_empty(), "it panicked: {:?}", self.panics);
        ensure!(self.answers.failures().is_empty(), "it failed: {:?}", self.answers.failures());
        ensure!(self.was_ready, "it is not ready any more");
        ensure!(self.peak_memory_mib <= MEMORY_MAX_MIB, "it held {:.0} MiB", self.peak_memory_mib);
        ensure!(self.check.is_clean(), "{}", self.check);
        Ok(())
    }
}

impl fmt::Display for ScenarioResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ScenarioResult { check, timing, peak_memory_mib, answers, .. } = self;
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

/// All attackers. They stop when it is dropped.
struct Attack {
    attackers: JoinSet<()>,
    answers: Answers,
    _executor: Endless,
}

impl Attack {
    async fn start(centre: &Centre, token: &str) -> Result<Attack> {
        let to = centre.address();
        let attacker = sign_in(centre, token).await?;
        let executor = Endless::start().await?;
        attacker.employ(&executor.url()).await?;
        let answers = Answers::default();
        let mut attackers = JoinSet::new();
        // Large bodies wait long for a slot; small ones must not wait for them.
        for largest in [SMALL, SMALL, usize::MAX] {
            attackers.spawn(bodies::post(to, attacker.clone(), largest, answers.clone()));
        }
        connections::open(to, &attacker.credentials(), &answers, &mut attackers);
        attackers.spawn(attacker::read_logs(to, attacker, answers.clone()));
        Ok(Attack { attackers, answers, _executor: executor })
    }

    /// Ends the attack.
    fn stop(self) -> Answers {
        drop(self.attackers);
        self.answers
    }
}

async fn sign_in(centre: &Centre, token: &str) -> Result<Attacker> {
    let password = centre.first_password().context("the first start saves a password")?;
    Attacker::sign_in(centre.address(), &password, token).await
}

/// Time left for deletions before the last fire.
const DELETIONS: Duration = Duration::from_secs(3);

/// Time to start the centre and the attack.
const LEAD: Duration = Duration::from_secs(6);

/// The first second warms connections and caches.
const WARM_UP: Duration = Duration::from_secs(1);

/// Longest time for outstanding runs after the last fire.
const SETTLE: Duration = Duration::from_secs(40);

/// Memory limit of the centre under any input.
const MEMORY_MAX_MIB: f64 = 256.0;

/// Bodies that do not need a slot for large ones.
const SMALL: usize = 10_000;
