//! Injects faults into real processes, databases and networks for a long time: `make chaos`.
//!
//! One fault after another on one database after another, at random times from a printed seed. The table shows for
//! each fault how many fires were due, sent, lost, duplicated and unexplained, how late the worst was, and how soon
//! fires were sent after a database was available again.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use clap::Parser;
use tickwright_tests::chaos::{Fault, Scenario, ScenarioResult};
use tickwright_tests::database::Database;

/// Injects faults into a cluster repeatedly.
#[derive(Parser)]
struct Options {
    /// Duration in seconds.
    #[arg(long, default_value_t = 600)]
    seconds: u64,
    /// Seed of the times of faults.
    #[arg(long)]
    seed: Option<u64>,
    /// Jobs that fire every second.
    #[arg(long, default_value_t = 128)]
    jobs: u64,
    /// Only this fault, by its name in the table.
    #[arg(long)]
    fault: Option<String>,
    /// Only this database: sqlite, mariadb, postgresql.
    #[arg(long)]
    database: Option<String>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let options = Options::parse();
    let seed = options.seed.unwrap_or_else(|| fastrand::u64(..));
    fastrand::seed(seed);
    println!("seed {seed}");
    let (started, length) = (Instant::now(), Duration::from_secs(options.seconds));
    let is_wanted = |wanted: &Option<String>, name: &str| {
        wanted.as_ref().is_none_or(|wanted| wanted.eq_ignore_ascii_case(name))
    };
    let databases: Vec<Database> =
        Database::available().into_iter().filter(|one| is_wanted(&options.database, one.name())).collect();
    let mut totals = Totals::default();
    'all: loop {
        for fault in Fault::ALL.into_iter().filter(|fault| is_wanted(&options.fault, &format!("{fault:?}"))) {
            for database in databases.iter().filter(|database| fault.fits(database)) {
                let scenario = Scenario {
                    fault,
                    nodes: fault.nodes(database),
                    jobs: options.jobs,
                    length: Duration::from_secs(12),
                };
                let result = scenario.run(database).await?;
                println!("{:<10} {result}", database.name());
                if !result.is_kept() {
                    println!("{}", result.check);
                }
                totals.add(&result);
                if started.elapsed() > length {
                    break 'all;
                }
            }
        }
    }
    println!("{totals:?}");
    ensure!(totals.broken == 0, "{} stories broke a promise; seed {seed}", totals.broken);
    Ok(())
}

/// Sums over all stories.
#[derive(Debug, Default)]
struct Totals {
    stories: usize,
    broken: usize,
    due: usize,
    sent: usize,
    lost: usize,
    doubled: usize,
    silent: usize,
    worst_after_kill_ms: f64,
    worst_resumption_ms: u128,
}

impl Totals {
    fn add(&mut self, result: &ScenarioResult) {
        self.stories += 1;
        self.broken += usize::from(!result.is_kept());
        self.due += result.check.due;
        self.sent += result.check.sent;
        self.doubled += result.check.doubled;
        self.silent += result.check.silent;
        if result.fault != Fault::Executors {
            self.lost += result.check.lost();
        }
        if result.fault == Fault::KillOne {
            self.worst_after_kill_ms = self.worst_after_kill_ms.max(result.timing.max);
        }
        let resumed = result.resumed_after.map_or(0, |after| after.as_millis());
        self.worst_resumption_ms = self.worst_resumption_ms.max(resumed);
    }
}
