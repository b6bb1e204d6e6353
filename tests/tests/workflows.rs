//! Workflow runs of real processes: every step once and in order, while nodes are killed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use cron::Timestamp;
use engine::{JobId, RunState, Store as _};
use tickwright_tests::database::Database;
use tickwright_tests::process::{Cluster, Entry, Flow, Nodes, micros_now, until};

#[tokio::test]
async fn every_step_runs_once_and_in_order_while_nodes_are_killed() {
    for database in Database::available() {
        survive(&database).await.unwrap_or_else(|error| panic!("{}: {error:?}", database.name()));
    }
}

/// A diamond: the positions of the steps that each one needs.
const STEPS: [&[usize]; 4] = [&[], &[0], &[0], &[1, 2]];

async fn survive(database: &Database) -> Result<()> {
    let centres = if let Database::Sqlite = database { 1 } else { 3 };
    let nodes = Nodes { centres, executors: 2, lead: Duration::ZERO, length: Duration::ZERO };
    let cluster = Cluster::without_jobs(database.create().await?, nodes).await?;
    let first = Timestamp::from_millis(micros_now() / 1_000) + LEAD;
    let steps = STEPS.map(|needs| needs.to_vec());
    let flow = Flow::add(&cluster, &steps, STEPS.len(), (first, first + LENGTH), PERIOD).await?;

    let mut centres = cluster.start_all().await?;
    let mut victims = (0..centres.len()).cycle();
    while Timestamp::from_millis(micros_now() / 1_000) < first + LENGTH {
        tokio::time::sleep(KILL_EVERY).await;
        let victim = victims.next().context("there are nodes")?;
        centres[victim].take().context("it runs")?.kill().await?;
        centres[victim] = Some(cluster.start(victim).await?);
    }
    let instants: Vec<i64> =
        (first.as_millis()..=(first + LENGTH).as_millis()).step_by(PERIOD.as_millis() as usize).collect();
    let expected = instants.len() * STEPS.len();
    let all = async || (distinct(&cluster.journal.entries()) >= expected).then_some(());
    let settled = until("all steps were sent", SETTLE, all).await;
    let mut runs = Vec::new();
    // Only one process may open the file of SQLite, so the nodes end before it is read, and go on if they had to do more.
    for _ in 0..LOOKS_MAX {
        for centre in centres.drain(..).flatten() {
            centre.stop().await?;
        }
        runs = cluster.store().await?.runs(flow.workflow, None, 10_000).await?;
        if runs.iter().all(|run| run.state.is_over()) {
            break;
        }
        centres.push(Some(cluster.start(0).await?));
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    check(&cluster.journal.entries(), &flow.jobs, &instants)?;
    settled?;
    let failed = runs.iter().find(|run| run.state != RunState::Succeeded);
    ensure!(failed.is_none(), "a workflow run did not succeed: {failed:?}");
    ensure!(runs.len() == instants.len(), "{} of {} workflow runs", runs.len(), instants.len());
    cluster.remove().await
}

fn distinct(entries: &[Entry]) -> usize {
    entries.iter().map(|entry| (entry.job, entry.scheduled_ms)).collect::<BTreeSet<_>>().len()
}

/// Each step of each run was sent exactly once, and after all that it needs.
fn check(entries: &[Entry], jobs: &[JobId], instants: &[i64]) -> Result<()> {
    let mut arrived: BTreeMap<(i64, i64), Vec<&Entry>> = BTreeMap::new();
    for entry in entries {
        arrived.entry((entry.job, entry.scheduled_ms)).or_default().push(entry);
    }
    for instant in instants {
        for (job, needs) in jobs.iter().zip(STEPS) {
            let found = arrived.remove(&(job.0, *instant)).unwrap_or_default();
            let [entry] = found[..] else {
                bail!("job {job} of the run at {instant} was sent {} times: {found:?}", found.len());
            };
            for need in needs {
                let key = (jobs[*need].0, *instant);
                let before = entries.iter().find(|other| (other.job, other.scheduled_ms) == key);
                let before = before.with_context(|| format!("job {} at {instant} was never sent", key.0))?;
                ensure!(before.arrived_us < entry.arrived_us, "job {job} at {instant} came before {}", key.0);
            }
        }
    }
    ensure!(arrived.is_empty(), "no schedule demands {arrived:?}");
    Ok(())
}

/// Time until the first run.
const LEAD: Duration = Duration::from_secs(8);

/// Time between two runs.
const PERIOD: Duration = Duration::from_millis(100);

/// Time from the first run to the last.
const LENGTH: Duration = Duration::from_secs(12);

/// Time between two kills.
const KILL_EVERY: Duration = Duration::from_secs(3);

/// Number of looks until all workflow runs are over.
const LOOKS_MAX: usize = 30;

/// Longest time for outstanding steps after the last kill.
const SETTLE: Duration = Duration::from_secs(120);
