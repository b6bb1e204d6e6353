//! Moving in: `make bench-move`.
//!
//! Jobs that a Java admin left in the database are adopted; jobs from a file are imported, started, stopped and
//! deleted, with one command each. Meanwhile other jobs fire. Figures are the times, and the ledger of the fires: lost,
//! without a record, latest.

use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Parser;
use tickwright_tests::Figure;
use tickwright_tests::database::Database;
use tickwright_tests::process::{Cluster, Entry, Nodes, Phases, Workload, micros_now, move_in};

/// Measures how fast many jobs arrive at a scheduling centre.
#[derive(Parser)]
struct Options {
    /// Databases by name: sqlite, mariadb, postgresql (default: all that are available).
    databases: Vec<String>,
    /// Numbers of jobs to adopt.
    #[arg(long, value_delimiter = ',', default_values_t = [1_000, 10_000, 100_000])]
    adopt: Vec<u64>,
    /// Number of jobs to import, start, stop and delete.
    #[arg(long, default_value_t = 10_000)]
    jobs: usize,
}

// One thread: executors should cost as little as possible.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let options = Options::parse();
    let wanted: Vec<String> = options.databases.iter().map(|name| name.to_lowercase()).collect();
    let mut figures = Vec::new();
    println!(
        "{:<10} {:<26} {:>9}  fires of other jobs: lost, without a record, latest",
        "database", "command", "seconds"
    );
    for database in Database::available() {
        if wanted.is_empty() || wanted.contains(&database.name().to_lowercase()) {
            for jobs in &options.adopt {
                figures.extend(adopt(&database, *jobs).await?);
            }
            figures.extend(arrive(&database, options.jobs).await?);
        }
    }
    for figure in figures {
        println!("{}", figure.json());
    }
    Ok(())
}

/// Starts a centre on a database with jobs that it has never seen.
async fn adopt(database: &Database, jobs: u64) -> Result<Vec<Figure>> {
    let name = database.name();
    // Two hundred fires per second, however many jobs there are.
    let period = Duration::from_secs((jobs / 200).max(5));
    let nodes = Nodes { centres: 1, executors: 2, lead: ADOPT_LEAD, length: ADOPT_LENGTH };
    let workload = Workload { period, ..Workload::each_second(jobs, Phases::Spread) };
    let cluster = Cluster::build(database, nodes, workload).await?;
    cluster.forget_own_rows().await?;
    let started = Instant::now();
    let centres = cluster.start_all().await?;
    let took = started.elapsed();
    let ready_us = micros_now();
    cluster.settle(Duration::from_secs(10)).await?;
    for centre in centres.into_iter().flatten() {
        centre.stop().await?;
    }
    let check = cluster.check().await?;
    let since = cluster.journal.entries().into_iter().filter(|entry| entry.scheduled_ms * 1_000 > ready_us);
    let latest = since.map(|entry: Entry| entry.lateness_us()).max().unwrap_or_default() as f64 / 1_000.0;
    let lost = check.lost();
    println!(
        "{name:<10} {:<26} {:>9.2}  {lost}, {}, {latest:.0} ms",
        format!("adopt {jobs}"),
        took.as_secs_f64(),
        check.silent
    );
    cluster.remove().await?;
    let figure = |case: &str, value: f64, unit| {
        Figure::new("move", name, &format!("adopt {jobs} {case}"), value, unit)
    };
    Ok(vec![
        figure("ready", took.as_secs_f64(), "s"),
        figure("lost", lost as f64, "fires"),
        figure("silent", check.silent as f64, "fires"),
        figure("latest", latest, "ms"),
    ])
}

/// Imports, starts, stops and deletes jobs.
async fn arrive(database: &Database, jobs: usize) -> Result<Vec<Figure>> {
    let name = database.name();
    let moved = move_in(database, jobs).await?;
    let (lost, silent) = (moved.check.lost(), moved.check.silent);
    let latest = moved.latest.as_secs_f64() * 1_000.0;
    let mut figures = Vec::new();
    for (case, took) in [
        ("import", moved.import),
        ("import again", moved.import_again),
        ("bulk start", moved.start),
        ("bulk stop", moved.stop),
        ("bulk delete", moved.delete),
    ] {
        let case = format!("{case} {jobs}");
        println!("{name:<10} {case:<26} {:>9.2}", took.as_secs_f64());
        figures.push(Figure::new("move", name, &case, took.as_secs_f64(), "s"));
    }
    println!("{name:<10} {:<26} {:>9}  {lost}, {silent}, {latest:.0} ms", "all commands", "");
    println!("{name:<10} {} fires of the new jobs, {} of them after the stop", moved.fired, moved.after_stop);
    for (case, value, unit) in [
        ("meanwhile lost", lost as f64, "fires"),
        ("meanwhile silent", silent as f64, "fires"),
        ("meanwhile latest", latest, "ms"),
        ("after stop", moved.after_stop as f64, "fires"),
    ] {
        figures.push(Figure::new("move", name, case, value, unit));
    }
    Ok(figures)
}

/// Time to write the jobs, and to start the centre.
const ADOPT_LEAD: Duration = Duration::from_secs(5);

/// How long fires are counted.
const ADOPT_LENGTH: Duration = Duration::from_secs(20);
