//! Watches the resident memory of a centre over many runs, on each database: `make soak-memory`.
//!
//! Jobs fire every second and executors report each run. After the warm-up, in which caches fill, memory may grow
//! by a few MiB at most, for any number of runs.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use tickwright_tests::Figure;
use tickwright_tests::database::Database;
use tickwright_tests::process::{Centre, Cluster, Nodes, Phases, Workload};

/// Watches the memory of a centre.
#[derive(Parser)]
struct Options {
    /// Databases by name: sqlite, mariadb, postgresql (default: all that are available).
    databases: Vec<String>,
    /// Number of measured runs.
    #[arg(long, default_value_t = 300_000)]
    runs: u64,
    /// Number of runs before that, while caches fill.
    #[arg(long, default_value_t = 100_000)]
    warm_up: u64,
    /// Jobs, each of which fires every second.
    #[arg(long, default_value_t = 800)]
    jobs: u64,
    /// Allowed growth after the warm-up, in MiB.
    #[arg(long, default_value_t = 5.0)]
    growth: f64,
}

// One thread: executors should cost as little as possible.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let options = Options::parse();
    let wanted: Vec<String> = options.databases.iter().map(|name| name.to_lowercase()).collect();
    let mut grown = Vec::new();
    for database in Database::available() {
        let name = database.name();
        if !wanted.is_empty() && !wanted.contains(&name.to_lowercase()) {
            continue;
        }
        let watched = watch(&database, &options).await.with_context(|| format!("memory on {name}"))?;
        let growth = watched.after - watched.before;
        println!(
            "{name:<11} {:>7} runs: {:>6.1} MiB after the warm-up, {:>6.1} MiB in the end, {growth:+.1} MiB",
            watched.runs, watched.before, watched.after
        );
        println!("{}", Figure::new("memory", name, "growth after the warm-up", growth, "MiB").json());
        if growth > options.growth {
            grown.push(name);
        }
    }
    ensure!(grown.is_empty(), "memory grew by more than {} MiB on {}", options.growth, grown.join(", "));
    Ok(())
}

/// Memory of a centre, in MiB, before and after the measured runs.
struct Watched {
    runs: usize,
    before: f64,
    after: f64,
}

async fn watch(database: &Database, options: &Options) -> Result<Watched> {
    let seconds = |runs: u64| Duration::from_secs(runs.div_ceil(options.jobs.max(1)));
    let (warm_up, length) = (seconds(options.warm_up), seconds(options.warm_up + options.runs));
    let nodes = Nodes { centres: 1, executors: 4, lead: LEAD, length };
    let cluster =
        Cluster::build(database, nodes, Workload::each_second(options.jobs, Phases::Spread)).await?;
    let mut centres = cluster.start_all().await?;
    let centre = centres[0].take().context("one centre was started")?;

    cluster.at(warm_up).await;
    let (before, count) = (settled_memory(&centre).await?, cluster.journal.acknowledged_count());
    cluster.settle(SETTLE).await?;
    let after = settled_memory(&centre).await?;
    let runs = cluster.journal.acknowledged_count() - count;
    centre.stop().await?;
    cluster.remove().await?;
    let demanded = usize::try_from(options.runs)? / 10 * 9;
    ensure!(runs >= demanded, "only {runs} of {} runs were completed", options.runs);
    Ok(Watched { runs, before, after })
}

/// The minimum of several samples: between two batches, buffers are released.
async fn settled_memory(centre: &Centre) -> Result<f64> {
    let mut least = f64::INFINITY;
    for _ in 0..LOOKS {
        least = least.min(centre.usage()?.memory_mib);
        tokio::time::sleep(LOOK).await;
    }
    Ok(least)
}

/// Time to start the centre.
const LEAD: Duration = Duration::from_secs(4);

/// How long results may arrive after the last fire.
const SETTLE: Duration = Duration::from_secs(60);

const LOOKS: u32 = 20;
const LOOK: Duration = Duration::from_millis(250);
