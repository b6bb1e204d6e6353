//! One load test of one centre: a number of jobs with one period, for a number of seconds.

use std::fmt;
use std::time::Duration;

use anyhow::{Context, Result};
use tickwright_tests::database::Database;
use tickwright_tests::process::{Check, Cluster, Nodes, Phases, Timing, Workload, percentile};

use crate::processor::{Shares, Times};

/// The load on a centre.
pub struct Load {
    pub jobs: u64,
    pub phases: Phases,
    /// All jobs fire at this interval.
    pub period: Duration,
    pub seconds: u64,
}

/// Result of a load test.
pub struct Measured {
    pub jobs: u64,
    pub period: Duration,
    pub lifecycles_per_second: f64,
    pub timing: Timing,
    pub herd_p99: f64,
    pub missed: usize,
    pub doubled: usize,
    pub early: usize,
    pub unacknowledged: usize,
    pub cpu_ms_per_thousand: f64,
    pub shares: Shares,
    pub memory_idle: f64,
    pub memory_loaded: f64,
}

impl Load {
    pub async fn run(&self, database: &Database) -> Result<Measured> {
        let length = Duration::from_secs(self.seconds);
        let nodes = Nodes { centres: 1, executors: 4, lead: LEAD, length };
        let workload = Workload { period: self.period, ..Workload::each_second(self.jobs, self.phases) };
        let cluster = Cluster::build(database, nodes, workload).await?;
        let mut centres = cluster.start_all().await?;
        let centre = centres[0].take().context("one centre was started")?;
        let idle = centre.usage()?;

        // The first second warms connections and caches, as in a centre that has been running.
        cluster.at(WARM_UP).await;
        let (before, before_count) = (centre.usage()?, cluster.journal.acknowledged_count());
        let times = Times::read(&centre)?;
        let mut memory_loaded: f64 = 0.0;
        for second in 2..=self.seconds {
            cluster.at(Duration::from_secs(second)).await;
            memory_loaded = memory_loaded.max(centre.usage()?.memory_mib);
        }
        let shares = times.until(Times::read(&centre)?);
        let (after, after_count) = (centre.usage()?, cluster.journal.acknowledged_count());
        let fires = after_count - before_count;
        cluster.settle(SETTLE).await?;
        let _ = centre.stop().await?;

        let check = Check::of(&cluster.workload, cluster.executors.len(), &cluster.journal);
        let measured = cluster.workload.first.as_millis() + WARM_UP.as_millis() as i64..i64::MAX;
        let took = length - WARM_UP;
        let result = Measured {
            jobs: self.jobs,
            period: self.period,
            lifecycles_per_second: fires as f64 / took.as_secs_f64(),
            timing: Timing::of(&cluster.journal, measured.clone()),
            herd_p99: self.herd_p99(&cluster, measured),
            missed: check.missing.len(),
            doubled: check.doubled,
            early: check.early,
            unacknowledged: check.unacknowledged,
            cpu_ms_per_thousand: (after.cpu - before.cpu).as_secs_f64() * 1e6 / fires.max(1) as f64,
            shares,
            memory_idle: idle.memory_mib,
            memory_loaded,
        };
        for finding in &check.findings {
            println!("  {finding}");
        }
        cluster.remove().await?;
        Ok(result)
    }

    /// For each simultaneous fire of all jobs, the time until 99 % were sent; the median of these.
    fn herd_p99(&self, cluster: &Cluster, measured: std::ops::Range<i64>) -> f64 {
        if self.phases == Phases::Spread {
            return 0.0;
        }
        let instants = cluster.workload.instants(1).filter(|instant| measured.contains(instant));
        let mut gone: Vec<f64> =
            instants.map(|instant| Timing::of(&cluster.journal, instant..instant + 1).p99).collect();
        gone.sort_by(f64::total_cmp);
        percentile(&gone, 50.0)
    }
}

impl Measured {
    /// Whether no fire was missed and the centre was not falling behind.
    pub fn keeps_up(&self) -> bool {
        self.missed == 0
            && self.unacknowledged == 0
            && self.lifecycles_per_second >= self.jobs as f64 / self.period.as_secs_f64() * KEEPS_UP
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:>6} jobs each {} s: {:>6.0} lifecycles/s, late p50 {:>6.1} p99 {:>7.1} max {:>7.1} ms, herd {:>6.1} ms, missed {} doubled {} early {} unreported {}, {:>4.0} ms CPU/1000, {:>5.1} MiB idle {:>5.1} loaded, processor: centre {:.0} executors {:.0} others {:.0} idle {:.0} %",
            self.jobs,
            self.period.as_secs(),
            self.lifecycles_per_second,
            self.timing.p50,
            self.timing.p99,
            self.timing.max,
            self.herd_p99,
            self.missed,
            self.doubled,
            self.early,
            self.unacknowledged,
            self.cpu_ms_per_thousand,
            self.memory_idle,
            self.memory_loaded,
            self.shares.centre,
            self.shares.executors,
            self.shares.others,
            self.shares.idle
        )
    }
}

/// Time to start the centre.
const LEAD: Duration = Duration::from_secs(4);

const WARM_UP: Duration = Duration::from_secs(1);

/// How long results may arrive after the last fire.
const SETTLE: Duration = Duration::from_secs(20);

/// Tolerance, because the last results of a second arrive in the next.
const KEEPS_UP: f64 = 0.97;
