//! Limits of this machine without a centre: requests per second with the same client and executors, and rows per
//! second in bulk.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use protocol::xxl::TriggerRequest;
use server::outbound::{Address, Callee, Calls, Guard, Options, Outbound};
use sqlx::{AssertSqlSafe, Connection, MySqlConnection, PgConnection, raw_sql};
use tickwright_tests::Figure;
use tickwright_tests::database::{Database, Home};
use tickwright_tests::process::{Journal, JournalExecutor};

use super::figure;

/// Bare run requests to four executors.
pub async fn posts() -> Result<Vec<Figure>> {
    let journal = Journal::default();
    let mut callees = Vec::new();
    let mut executors = Vec::new();
    for _ in 0..4 {
        // It has no centre to report to, and is not asked to.
        let executor = JournalExecutor::start("bench", "", &[], journal.clone()).await?;
        callees.push(Callee { address: Address::parse(&executor.url())?, app: "bench".into(), token: None });
        executors.push(executor);
    }
    // In a separate thread, as a centre is in a separate process.
    let per_second = tokio::task::spawn_blocking(move || -> Result<f64> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async move {
            let guard = Guard { loopback: true, ..Guard::default() };
            let outbound = Outbound::new(Options { guard, ..Options::default() })?;
            let (count, until) = (Arc::new(AtomicU64::new(0)), Instant::now() + MEASURED);
            let callers = (0..CALLERS).map(|place| {
                let (outbound, callee) = (outbound.clone(), callees[place % callees.len()].clone());
                let count = count.clone();
                tokio::spawn(async move {
                    let request = TriggerRequest { job_id: 1, log_id: 1, ..TriggerRequest::default() };
                    while Instant::now() < until {
                        outbound.run(&callee, &request, 0, Duration::from_secs(3)).await;
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                })
            });
            for caller in callers.collect::<Vec<_>>() {
                caller.await?;
            }
            Ok(count.load(Ordering::Relaxed) as f64 / MEASURED.as_secs_f64())
        })
    })
    .await??;
    println!("{:<10} limit  {per_second:>6.0} requests/s with the same client and executors", "machine");
    Ok(vec![figure("machine", "bare requests", per_second, "1/s")])
}

/// Bare rows, 500 per durable transaction.
pub async fn sql(database: &Database) -> Result<Vec<Figure>> {
    let home = database.create().await?;
    let table = "CREATE TABLE bare (id BIGINT PRIMARY KEY, word VARCHAR(200))".to_owned();
    home.run(&[table]).await?;
    let insert = |batch: u64| {
        let rows: Vec<String> =
            (0..ROWS).map(|row| format!("({}, 'a row of some length')", batch * ROWS + row)).collect();
        format!("INSERT INTO bare VALUES {}", rows.join(","))
    };
    let (mut batches, started) = (0, Instant::now());
    match &home {
        Home::Sqlite(path) => {
            let connection = rusqlite::Connection::open(path)?;
            connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")?;
            while started.elapsed() < MEASURED {
                connection.execute_batch(&insert(batches))?;
                batches += 1;
            }
        }
        Home::MySql { url, .. } => {
            let mut connection = MySqlConnection::connect(url).await?;
            while started.elapsed() < MEASURED {
                raw_sql(AssertSqlSafe(insert(batches))).execute(&mut connection).await?;
                batches += 1;
            }
        }
        Home::Postgres { url, .. } => {
            let mut connection = PgConnection::connect(url).await?;
            while started.elapsed() < MEASURED {
                raw_sql(AssertSqlSafe(insert(batches))).execute(&mut connection).await?;
                batches += 1;
            }
        }
    }
    let rows = (batches * ROWS) as f64 / started.elapsed().as_secs_f64();
    home.remove().await?;
    println!("{:<10} limit  {rows:>6.0} bare rows/s, {ROWS} in each durable transaction", database.name());
    Ok(vec![figure(database.name(), "bare rows", rows, "1/s")])
}

const CALLERS: usize = 128;
const ROWS: u64 = 500;
const MEASURED: Duration = Duration::from_secs(3);
