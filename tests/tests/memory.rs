//! Memory does not grow with the number of runs, on any database. `make soak-memory` watches a whole process for
//! longer.
//!
//! A database without an available server is skipped, and a line is printed.

use std::time::Duration;

use anyhow::{Context, Result};
use engine::{Node, Retention, Store};
use tickwright_tests::database::Database;
use tickwright_tests::lifecycles::{self, Advance, FIRST_FIRE};

/// The only test of this binary, so that nothing else allocates in its process.
#[tokio::test(flavor = "current_thread")]
async fn memory_does_not_grow_with_the_number_of_runs() {
    for database in Database::available() {
        let growth = growth(&database).await.unwrap_or_else(|error| panic!("{}: {error:#}", database.name()));
        println!("{:<10} {growth:.0} bytes for each run", database.name());
        assert!(growth <= GROWTH_MAX, "{}: each run keeps {growth:.0} bytes of memory", database.name());
    }
}

/// Bytes of resident memory added by each run once the process is warm.
async fn growth(database: &Database) -> Result<f64> {
    let home = lifecycles::create(database, BATCH as u64, 1).await?;
    let store = home.open().await?;
    let node = store.join("memory", Duration::from_secs(86_400)).await?.node;
    play(&*store, &node, WARM_UP).await?;
    let before = resident()?;
    let runs = play(&*store, &node, RUNS).await?;
    let growth = (resident()? - before) / runs as f64;
    drop(store);
    home.remove().await?;
    Ok(growth)
}

/// Executes at least this many runs from claim to completion, and deletes each batch. The database stays small, so
/// the page cache of SQLite does not grow.
async fn play(store: &dyn Store, node: &Node, at_least: usize) -> Result<usize> {
    let now = FIRST_FIRE + Duration::from_secs(86_400);
    let later = now + Duration::from_secs(86_400);
    let retention = Retention { runs_before: later, runs_max: None, history_before: later };
    let planner = Advance { step: Duration::from_secs(1) };
    let mut runs = 0;
    while runs < at_least {
        let batch = lifecycles::one_batch(store, node, now, BATCH, &planner).await?;
        anyhow::ensure!(batch == BATCH, "only {batch} jobs were due");
        while store.prune(&retention, BATCH).await? == BATCH {}
        runs += batch;
    }
    Ok(runs)
}

/// Resident memory of this process, in bytes.
fn resident() -> Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<f64>()? * 1024.0)
}

/// Runs per transaction, as the engine claims them.
const BATCH: usize = 500;

/// Runs after which caches and connection buffers have reached their size.
const WARM_UP: usize = 10_000;

/// Number of measured runs: enough that a leak exceeds the noise of the allocator.
const RUNS: usize = 40_000;

/// A leak of one list of ids per run was 250 bytes; the noise over [`RUNS`] runs is below 10.
const GROWTH_MAX: f64 = 50.0;
