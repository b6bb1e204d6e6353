//! How fast the store is, durable as in production: `make bench-store`.
//!
//! Whole lifecycles (a due job claimed with its rows, the run accepted, the run completed) in batches as the engine
//! makes them, next to the same work done one statement and one job at a time; and what a claim costs as the table of
//! jobs grows. SQLite syncs every commit (`synchronous=FULL`); the servers are those of `scripts/databases`.

mod database;
mod plain;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use engine::policy::Target;
use engine::{
    Assignment, Ender, Ending, Fire, FollowUps, Job, LOOK_AHEAD, Move, NextFire, Node, Order, Origin,
    Outcome, Plan, Planner, Run, Slots, Store, To,
};
use tickwright_tests::Figure;
use tickwright_tests::database::Database;
use timer::Timestamp;

#[tokio::main]
async fn main() -> Result<()> {
    // Databases by name, or all of them.
    let wanted: Vec<String> = std::env::args().skip(1).map(|name| name.to_lowercase()).collect();
    let mut figures = Vec::new();
    for database in Database::available() {
        let name = database.name();
        if !wanted.is_empty() && !wanted.contains(&name.to_lowercase()) {
            continue;
        }
        let (batched, plain) =
            lifecycles(&database).await.with_context(|| format!("lifecycles on {name}"))?;
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

/// Lifecycles per second: in batches, and one by one.
async fn lifecycles(database: &Database) -> Result<(f64, f64)> {
    let home = database::create(database, LIFECYCLE_JOBS, 1).await?;
    let store = home.open().await?;
    let joined = store.join("bench", Duration::from_secs(7 * 86_400)).await?;
    let count = Arc::new(AtomicU64::new(0));
    let stop = Arc::new(AtomicBool::new(false));
    let workers: Vec<_> = (0..database::workers(database))
        .map(|_| tokio::spawn(work(store.clone(), joined.node.clone(), count.clone(), stop.clone())))
        .collect();
    tokio::time::sleep(WARM_UP).await;
    let (before, start) = (count.load(Ordering::Relaxed), Instant::now());
    tokio::time::sleep(MEASURED).await;
    let (after, took) = (count.load(Ordering::Relaxed), start.elapsed());
    stop.store(true, Ordering::Relaxed);
    for worker in workers {
        worker.await??;
    }
    drop(store);
    let batched = (after - before) as f64 / took.as_secs_f64();

    let plain = plain::lifecycles_per_second(&home, database::workers(database), MEASURED / 2).await?;
    home.remove().await?;
    Ok((batched, plain))
}

const LIFECYCLE_JOBS: u64 = 10_000;
const WARM_UP: Duration = Duration::from_secs(1);
const MEASURED: Duration = Duration::from_secs(6);

/// What the engine takes at a time.
const BATCH: usize = 500;

/// Claims, accepts and completes until told to stop. Every job is due again as soon as it has fired.
async fn work(store: Arc<dyn Store>, node: Node, count: Arc<AtomicU64>, stop: Arc<AtomicBool>) -> Result<()> {
    let now = database::FIRST_FIRE + Duration::from_secs(86_400);
    let planner = Advance { step: Duration::from_secs(1) };
    while !stop.load(Ordering::Relaxed) {
        let claim = store.claim_due(&node, now, Slots::ALL, BATCH, &planner).await?;
        let runs = claim.orders;
        let moves: Vec<Move> = runs.iter().map(|order| accepted(order, now)).collect();
        store.move_runs(&moves).await?;
        let endings: Vec<Ending> = runs.iter().map(succeeded).collect();
        store.complete(now, &endings, &NothingFollows).await?;
        count.fetch_add(runs.len() as u64, Ordering::Relaxed);
    }
    Ok(())
}

fn accepted(order: &Order, now: Timestamp) -> Move {
    let to = To::Running { address: None, check_at: now + Duration::from_secs(60), doubt_since: None };
    Move { run: order.run.id, version: order.run.version, to, trouble: None }
}

fn succeeded(order: &Order) -> Ending {
    Ending { run: order.run.id, outcome: Outcome::Succeeded("done".into()), version: None }
}

// ── Claims ──────────────────────────────────────────────────────────────────────────────────────────────────────

/// Microseconds for each claimed job: a thousand neighbours are due, others each time, in a table of so many.
async fn claim_cost(database: &Database, jobs: u64) -> Result<f64> {
    let blocks = (jobs / database::BLOCK).min(ROUNDS as u64);
    let home = database::create(database, jobs, blocks).await?;
    let store = home.open().await?;
    let joined = store.join("bench", Duration::from_secs(7 * 86_400)).await?;
    let planner = Advance { step: database::BLOCK_STEP * u32::try_from(blocks)? };
    let mut rounds = Vec::new();
    for round in 0..ROUNDS {
        let now = database::FIRST_FIRE + database::BLOCK_STEP * round;
        let start = Instant::now();
        let mut runs = Vec::new();
        while runs.len() < database::BLOCK as usize {
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
    Ok(rounds[rounds.len() / 2].as_secs_f64() * 1e6 / database::BLOCK as f64)
}

const ROUNDS: u32 = 15;

// ── What the engine would decide ────────────────────────────────────────────────────────────────────────────────

/// Every fire is sent, and the next is a fixed step later.
struct Advance {
    step: Duration,
}

impl Planner for Advance {
    fn plan(&self, job: &Job) -> Plan {
        let at = job.next_fire_at.expect("only jobs with a next time are due");
        let fire = Fire {
            scheduled_at: at,
            due_at: at,
            origin: Origin::Schedule,
            targets: vec![Target::Address("http://10.0.0.7:9999/".into())],
            waits: false,
        };
        Plan { fires: vec![fire], unsent: Vec::new(), next: self.next_after(job, at), replace: false }
    }

    fn assign(&self, _: &Job, run: &Run) -> Assignment {
        Assignment::Leave(run.due_at)
    }

    fn next_after(&self, job: &Job, after: Timestamp) -> NextFire {
        let fire_at = after + self.step;
        NextFire::At { fire_at, claim_at: self.claim_at(job, fire_at) }
    }

    fn claim_at(&self, _: &Job, fire_at: Timestamp) -> Timestamp {
        fire_at - LOOK_AHEAD
    }
}

struct NothingFollows;

impl Ender for NothingFollows {
    fn follow(&self, _: &Job, _: &Run, _: &Outcome) -> FollowUps {
        FollowUps::default()
    }
}
