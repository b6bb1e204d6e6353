//! Start-up time of a centre with many jobs.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tickwright_tests::Figure;
use tickwright_tests::database::Database;
use tickwright_tests::process::{Cluster, Nodes, Phases, Template, Workload, until_each};

use super::figure;

/// Time from the start of the process until it is ready, and until the first fire arrives.
pub async fn cold(database: &Database) -> Result<Vec<Figure>> {
    let nodes = Nodes { centres: 1, executors: 4, lead: LEAD, length: LENGTH };
    let workload = Workload {
        // A hundred jobs per second: one is always just due.
        period: Duration::from_secs(100),
        templates: vec![Template::skipping()],
        ..Workload::each_second(JOBS, Phases::Spread)
    };
    let cluster = Cluster::build(database, nodes, workload).await?;
    // Executors register before the first stop, as with any centre that is restarted.
    let mut centre = cluster.start_all().await?.pop().flatten().context("one centre was started")?;
    cluster.at(Duration::from_secs(1)).await;
    let (mut ready, mut fired) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        centre.stop().await?;
        let before = cluster.journal.len();
        let started = Instant::now();
        centre = cluster.spawn(0)?;
        until_each(LOOK, "it is ready", PATIENCE, async || centre.is_ready().await.then_some(())).await?;
        ready.push(started.elapsed().as_secs_f64() * 1_000.0);
        until_each(LOOK, "it fires", PATIENCE, async || (cluster.journal.len() > before).then_some(()))
            .await?;
        fired.push(started.elapsed().as_secs_f64() * 1_000.0);
    }
    centre.stop().await?;
    cluster.remove().await?;
    let (ready, fired) = (median(ready), median(fired));
    let name = database.name();
    println!("{name:<10} start  {JOBS} jobs: ready after {ready:.0} ms, first fire after {fired:.0} ms");
    Ok(vec![
        figure(name, "start with 10000 jobs, ready", ready, "ms"),
        figure(name, "start with 10000 jobs, first fire", fired, "ms"),
    ])
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

const JOBS: u64 = 10_000;
const STARTS: usize = 5;
const LEAD: Duration = Duration::from_secs(4);
/// Longer than all starts together.
const LENGTH: Duration = Duration::from_secs(600);
const LOOK: Duration = Duration::from_millis(1);
const PATIENCE: Duration = Duration::from_secs(30);
