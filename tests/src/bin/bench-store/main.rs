//! Throughput of the store with production durability: `make bench-store`.
//!
//! Complete lifecycles (a due job claimed with its rows, the run accepted, the run completed) in batches as the
//! engine makes them, compared with the same work one statement and one job at a time; and the cost of a claim as
//! the job table grows. SQLite syncs every commit (`synchronous=FULL`); the servers are those of `scripts/databases`.

mod plain;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use engine::{Ending, Node, Slots, Store};
use tickwright_tests::Figure;
use tickwright_tests::database::Database;
use tickwright_tests::lifecycles::{self, Advance, NothingFollows, succeeded};

#[tokio::main]
async fn main() -> Result<()> {
    // Databases by name; all of them by default.
    let wanted: Vec<String> = std::env::args().skip(1).map(|name| name.to_lowercase()).collect();
    let mut figures = Vec::new();
    for database in Database::available() {
        let name = database.name();
        if !wanted.is_empty() && !wanted.contains(&name.to_lowercase()) {
            continue;
        }
        let (batched, plain) =
            lifecycles_per_second(&database).await.with_context(|| format!("lifecycles on {name}"))?;
        println!(
            "{name:<11} {batched:>8.0} lifecycles/s batched, {plain:>6.0} one by one: {:.1} times",
            batched / plain
        );
        figures.push(Figure::new("store", name, "batched", batched, "lifecycles/s"));
        figures.push(Figure::new("store", name, "one by one", plain, "lifecycles/s"));
        figures.push(Figure::new("store", name, "batched to one by one", batched / plain, "ratio"));

        let mut smallest = None;
        for jobs in [1_000, 10_000, 100_000, 1_000_000] {
            let micros = claim_cost(&database, jobs).await.with_context(|| format!("claims on {name}"))?;
            let ratio = micros / *smallest.get_or_insert(micros);
            println!("{name:<11} {micros:>8.1} µs per claimed job among {jobs:>9} jobs: {ratio:.2} times");
            figures.push(Figure::new("store", name, &format!("claim among {jobs}"), micros, "us/job"));
            figures.push(Figure::new("store", name, &format!("claim among {jobs} to 1000"), ratio, "ratio"));
        }
    }
    for figure in figures {
        println!("{}", figure.json());
    }
    Ok(())
}

// ── Lifecycles ──────────────────────────────────────────────────────────────────────────────────────────────────

/// Lifecycles per second: in batches, and one at a time.
async fn lifecycles_per_second(database: &Database) -> Result<(f64, f64)> {
    let home = lifecycles::create(database, LIFECYCLE_JOBS, 1).await?;
    let store = home.open().await?;
    let joined = store.join("bench", Duration::from_secs(7 * 86_400)).await?;
    let count = Arc::new(AtomicU64::new(0));
    let stop = Arc::new(AtomicBool::new(false));
    let tasks: Vec<_> = (0..workers(database))
        .map(|_| tokio::spawn(work(store.clone(), joined.node.clone(), count.clone(), stop.clone())))
        .collect();
    tokio::time::sleep(WARM_UP).await;
    let (before, start) = (count.load(Ordering::Relaxed), Instant::now());
    tokio::time::sleep(MEASURED).await;
    let (after, took) = (count.load(Ordering::Relaxed), start.elapsed());
    stop.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await??;
    }
    drop(store);
    let batched = (after - before) as f64 / took.as_secs_f64();

    let plain = plain::lifecycles_per_second(&home, workers(database), MEASURED / 2).await?;
    home.remove().await?;
    Ok((batched, plain))
}

/// Number of concurrent batches. SQLite has one writer; a second batch is prepared while it syncs.
fn workers(database: &Database) -> usize {
    match database {
        Database::Sqlite => 2,
        Database::MySql { .. } | Database::Postgres { .. } => 3,
    }
}

const LIFECYCLE_JOBS: u64 = 10_000;
const WARM_UP: Duration = Duration::from_secs(1);
const MEASURED: Duration = Duration::from_secs(6);

/// Batch size of the engine.
const BATCH: usize = 500;

/// Claims, accepts and completes until `stop` is set. Every job is due again as soon as it has fired.
async fn work(store: Arc<dyn Store>, node: Node, count: Arc<AtomicU64>, stop: Arc<AtomicBool>) -> Result<()> {
    let now = lifecycles::FIRST_FIRE + Duration::from_secs(86_400);
    let planner = Advance { step: Duration::from_secs(1) };
    while !stop.load(Ordering::Relaxed) {
        let runs = lifecycles::one_batch(&*store, &node, now, BATCH, &planner).await?;
        count.fetch_add(runs as u64, Ordering::Relaxed);
    }
    Ok(())
}

// ── Claims ──────────────────────────────────────────────────────────────────────────────────────────────────────

/// Microseconds per claimed job in a table of `jobs` jobs; each round claims a different block of a thousand.
async fn claim_cost(database: &Database, jobs: u64) -> Result<f64> {
    let blocks = (jobs / lifecycles::BLOCK).min(ROUNDS as u64);
    let home = lifecycles::create(database, jobs, blocks).await?;
    let store = home.open().await?;
    let joined = store.join("bench", Duration::from_secs(7 * 86_400)).await?;
    let planner = Advance { step: lifecycles::BLOCK_STEP * u32::try_from(blocks)? };
    let mut rounds = Vec::new();
    for round in 0..ROUNDS {
        let now = lifecycles::FIRST_FIRE + lifecycles::BLOCK_STEP * round;
        let start = Instant::now();
        let mut runs = Vec::new();
        while runs.len() < lifecycles::BLOCK as usize {
            let claim = store.claim_due(&joined.node, now, Slots::ALL, BATCH, &planner).await?;
            ensure!(!claim.orders.is_empty(), "only {} jobs were due", runs.len());
            runs.extend(claim.orders);
        }
        rounds.push(start.elapsed());
        for runs in runs.chunks(BATCH) {
            let endings: Vec<Ending> = runs.iter().map(succeeded).collect();
            store.complete(now, &endings, &NothingFollows).await?;
        }
    }
    drop(store);
    home.remove().await?;
    rounds.sort();
    Ok(rounds[rounds.len() / 2].as_secs_f64() * 1e6 / lifecycles::BLOCK as f64)
}

const ROUNDS: u32 = 15;
