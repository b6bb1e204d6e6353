//! Throughput and latency of a complete centre as a separate process: `make bench-centre`.
//!
//! Four executors that answer immediately and report in batches, N jobs that fire every second, and the centre
//! between them, on each database, all on this machine; and in the same run, the limits of the machine without a
//! centre. Figures come from the executors' journals.

mod at_rest;
mod hostile;
mod limits;
mod load;
mod processor;
mod start;

use std::time::Duration;

use anyhow::Result;
use clap::Parser;
use tickwright_tests::Figure;
use tickwright_tests::database::Database;
use tickwright_tests::process::Phases;

use load::{Load, Measured};

/// Measures a scheduling centre.
#[derive(Parser)]
struct Options {
    /// Databases by name: sqlite, mariadb, postgresql (default: all that are available).
    databases: Vec<String>,
    /// Run only one load, with this many jobs.
    #[arg(long)]
    jobs: Option<u64>,
    /// Interval of the jobs of that load, in seconds.
    #[arg(long, default_value_t = 1)]
    every: u64,
    /// Let all jobs of that load fire at the same time.
    #[arg(long)]
    herd: bool,
    /// Duration of that load, in seconds.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Measure only the lateness of fires with and without hostile input.
    #[arg(long)]
    hostile: bool,
    /// Measure only the cost of a centre with nothing to do.
    #[arg(long)]
    at_rest: bool,
}

// One thread: executors should cost as little as possible.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let options = Options::parse();
    let wanted: Vec<String> = options.databases.iter().map(|name| name.to_lowercase()).collect();
    let mut figures = Vec::new();
    if options.jobs.is_none() && !options.hostile && !options.at_rest {
        figures.extend(limits::posts().await?);
    }
    for database in Database::available() {
        if !wanted.is_empty() && !wanted.contains(&database.name().to_lowercase()) {
            continue;
        }
        match options.jobs {
            _ if options.at_rest => figures.extend(at_rest::measure(&database).await?),
            _ if options.hostile => figures.extend(hostile::measure(&database, options.seconds).await?),
            Some(jobs) => {
                let phases = if options.herd { Phases::Together } else { Phases::Spread };
                let period = Duration::from_secs(options.every.max(1));
                let load = Load { jobs, phases, period, seconds: options.seconds };
                figures.extend(show(&database, "load", &load.run(&database).await?));
            }
            None => figures.extend(all(&database).await?),
        }
    }
    for figure in figures {
        println!("{}", figure.json());
    }
    Ok(())
}

/// Runs every case on one database.
async fn all(database: &Database) -> Result<Vec<Figure>> {
    let mut figures = limits::sql(database).await?;
    let spread = |jobs, seconds| Load { jobs, phases: Phases::Spread, period: SECOND, seconds };
    let herd = |jobs, period, seconds| Load { jobs, phases: Phases::Together, period, seconds };
    figures.extend(show(database, "spread", &spread(1_000, 10).run(database).await?));
    figures.extend(show(database, "herd", &herd(1_000, SECOND, 5).run(database).await?));
    figures.extend(show(database, "herd", &herd(10_000, SECOND, 5).run(database).await?));
    figures.extend(show(database, "herd", &herd(10_000, 5 * SECOND, 21).run(database).await?));
    let mut most = 0.0;
    for jobs in STEPS {
        let measured = spread(jobs, 8).run(database).await?;
        figures.extend(show(database, "spread", &measured));
        if !measured.keeps_up() {
            break;
        }
        most = measured.lifecycles_per_second;
    }
    figures.extend(at_rest::measure(database).await?);
    if let Database::Sqlite = database {
        figures.extend(start::cold(database).await?);
    }
    figures.push(figure(database.name(), "most lifecycles without a miss", most, "1/s"));
    Ok(figures)
}

const SECOND: Duration = Duration::from_secs(1);

/// Jobs per second, increased until the centre does not keep up.
const STEPS: [u64; 8] = [2_000, 4_000, 5_000, 6_000, 8_000, 10_000, 12_000, 15_000];

fn show(database: &Database, case: &str, measured: &Measured) -> Vec<Figure> {
    println!("{:<10} {case:<6} {measured}", database.name());
    let case = format!("{case} {} each {} s", measured.jobs, measured.period.as_secs());
    let figure = |what: &str, value, unit| figure(database.name(), &format!("{case} {what}"), value, unit);
    vec![
        figure("lifecycles", measured.lifecycles_per_second, "1/s"),
        figure("lateness p50", measured.timing.p50, "ms"),
        figure("lateness p99", measured.timing.p99, "ms"),
        figure("lateness max", measured.timing.max, "ms"),
        figure("herd gone (p99, median of herds)", measured.herd_p99, "ms"),
        figure("missed", measured.missed as f64, "fires"),
        figure("doubled", measured.doubled as f64, "fires"),
        figure("cpu for 1000 fires", measured.cpu_ms_per_thousand, "ms"),
        figure("processor: centre", measured.shares.centre, "%"),
        figure("processor: executors", measured.shares.executors, "%"),
        figure("processor: others", measured.shares.others, "%"),
        figure("processor: idle", measured.shares.idle, "%"),
        figure("memory idle", measured.memory_idle, "MiB"),
        figure("memory under load", measured.memory_loaded, "MiB"),
    ]
}

/// A figure of a complete centre on a database, or of the machine.
pub fn figure(of: &str, case: &str, value: f64, unit: &'static str) -> Figure {
    Figure::new("centre", of, case, value, unit)
}
