//! Speed of workflows: `make bench-flows`.
//!
//! One centre, executors that respond immediately, everything durable. The time between two steps is that between the
//! arrivals of their requests: it includes the report of the first, two commits and the second request.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;
use cron::Timestamp;
use tickwright_tests::Figure;
use tickwright_tests::database::Database;
use tickwright_tests::process::{Cluster, Entry, Flow, Nodes, micros_now, percentile, until};

/// Measures workflows.
#[derive(Parser)]
struct Options {
    /// Databases by name: sqlite, mariadb, postgresql (default: all that are available).
    databases: Vec<String>,
}

// One thread: executors should cost as little as possible.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let options = Options::parse();
    let wanted: Vec<String> = options.databases.iter().map(|name| name.to_lowercase()).collect();
    let mut figures = Vec::new();
    for database in Database::available() {
        if wanted.is_empty() || wanted.contains(&database.name().to_lowercase()) {
            figures.extend(measure(&database).await?);
        }
    }
    for figure in figures {
        println!("{}", figure.json());
    }
    Ok(())
}

async fn measure(database: &Database) -> Result<Vec<Figure>> {
    let name = database.name();
    let mut figures = Vec::new();
    let mut figure = |case: &str, value: f64, unit: &'static str| {
        println!("{name:<10} {case:<44} {value:>9.1} {unit}");
        figures.push(Figure::new("flows", name, case, value, unit));
    };

    let chain: Vec<Vec<usize>> = (0..5).map(|step| previous(step).collect()).collect();
    let entries = play(database, &chain, Duration::from_millis(25), 400).await?;
    let gaps = gaps(&entries);
    figure("next step at 200 steps/s, p50", percentile(&gaps, 50.0), "ms");
    figure("next step at 200 steps/s, p99", percentile(&gaps, 99.0), "ms");

    let diamond = vec![vec![], vec![0], vec![0], vec![1, 2]];
    let entries = play(database, &diamond, Duration::from_millis(1), 5_000).await?;
    figure("diamonds, 1 000 offered/s", entries.len() as f64 / took(&entries), "steps/s");

    let chain: Vec<Vec<usize>> = (0..1_000).map(|step| previous(step).collect()).collect();
    figure("chain of 1 000 steps", took(&play(database, &chain, ONCE, 1).await?), "s");

    let mut fan = vec![vec![]];
    fan.extend((0..1_000).map(|_| vec![0]));
    fan.push((1..=1_000).collect());
    figure("1 to 1 000 to 1", took(&play(database, &fan, ONCE, 1).await?), "s");

    let grid: Vec<Vec<usize>> = (0..10_000)
        .map(|step: usize| match step.checked_sub(100) {
            None => vec![],
            Some(above) => vec![above, above / 100 * 100 + (above + 1) % 100],
        })
        .collect();
    figure("10 000 steps, 100 x 100", took(&play(database, &grid, ONCE, 1).await?), "s");
    Ok(figures)
}

/// The step before, if there is one.
fn previous(step: usize) -> impl Iterator<Item = usize> {
    step.checked_sub(1).into_iter()
}

/// Runs a workflow this often, and returns the requests of its steps in the order of their arrival.
async fn play(
    database: &Database,
    steps: &[Vec<usize>],
    period: Duration,
    runs: usize,
) -> Result<Vec<Entry>> {
    let nodes = Nodes { centres: 1, executors: 4, lead: Duration::ZERO, length: Duration::ZERO };
    let cluster = Cluster::without_jobs(database.create().await?, nodes).await?;
    let first = Timestamp::from_millis(micros_now() / 1_000) + LEAD;
    let last = first + period * u32::try_from(runs - 1)?;
    Flow::add(&cluster, steps, JOBS, (first, last), period).await?;
    let mut centres = cluster.start_all().await?;
    let centre = centres[0].take().context("one centre was started")?;
    let expected = steps.len() * runs;
    let all = async || (cluster.journal.len() >= expected).then_some(());
    let done = until("all steps have arrived", PATIENCE, all).await;
    done.with_context(|| {
        format!("{} of {expected} steps; it said:\n{}", cluster.journal.len(), centre.said())
    })?;
    centre.stop().await?;
    let mut entries = cluster.journal.entries();
    entries.sort_by_key(|entry| entry.arrived_us);
    cluster.remove().await?;
    Ok(entries)
}

/// Times between two steps of a chain, sorted, in milliseconds.
fn gaps(entries: &[Entry]) -> Vec<f64> {
    let mut runs: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    for entry in entries {
        runs.entry(entry.scheduled_ms).or_default().push(entry.arrived_us);
    }
    let pairs = runs.values().flat_map(|arrived| arrived.windows(2));
    let mut gaps: Vec<f64> = pairs.map(|pair| (pair[1] - pair[0]) as f64 / 1_000.0).collect();
    gaps.sort_by(f64::total_cmp);
    gaps
}

/// Time from the first to the last arrival, in seconds.
fn took(entries: &[Entry]) -> f64 {
    let (first, last) = (entries.first(), entries.last());
    first.zip(last).map_or(0.0, |(first, last)| (last.arrived_us - first.arrived_us) as f64 / 1_000_000.0)
}

/// Number of jobs that steps run in turn.
const JOBS: usize = 8;

/// Time until the first run: to start the centre and register the executors.
const LEAD: Duration = Duration::from_secs(4);

/// Period of a workflow that fires once.
const ONCE: Duration = Duration::from_secs(3_600);

/// Longest time for one case.
const PATIENCE: Duration = Duration::from_secs(300);
