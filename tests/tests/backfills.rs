//! A backfill of real processes: every scheduled time once and in order, while nodes are killed.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use cron::{Schedule, Timestamp};
use engine::policy::{Backoff, Retry, Route};
use engine::{
    BackfillOrder, BackfillSettings, BackfillState, Existing, JobSpec, NewBackfill, OnFailure, RunState,
    Store as _, TimeRange,
};
use tickwright_tests::database::Database;
use tickwright_tests::process::{Cluster, Entry, Nodes, until};

#[tokio::test]
async fn every_scheduled_time_runs_once_while_nodes_are_killed() {
    for database in Database::available() {
        survive(&database).await.unwrap_or_else(|error| panic!("{}: {error:?}", database.name()));
    }
}

async fn survive(database: &Database) -> Result<()> {
    let centres = if let Database::Sqlite = database { 1 } else { 3 };
    let nodes = Nodes { centres, executors: 2, lead: Duration::ZERO, length: Duration::ZERO };
    let cluster = Cluster::without_jobs(database.create().await?, nodes).await?;
    let mut spec = JobSpec::new(cluster.app, "backfilled", Schedule::Never, "journal");
    spec.route = Route::RoundRobin.into();
    // The first runs may be due before all nodes know the executors.
    spec.retry = Retry { count: 100, backoff: Backoff::Fixed { delay: Duration::from_millis(500) } };
    let times: Vec<Timestamp> =
        (0..TIMES).map(|hour| Timestamp::from_millis(FIRST_MS + hour * HOUR_MS)).collect();
    let settings = BackfillSettings {
        range: TimeRange { from: times[0], until: times[times.len() - 1] + Duration::from_millis(1) },
        order: BackfillOrder::Oldest,
        parallel: PARALLEL,
        existing: Existing::Skip,
        on_failure: OnFailure::Continue,
        param: None,
        by: "a test".to_owned(),
    };
    let (job, id) = {
        let store = cluster.store().await?;
        let job = store.create_job(&spec).await?;
        (job, store.start_backfill(job, &NewBackfill { key: 1, settings, times }).await?)
    };

    let mut centres = cluster.start_all().await?;
    let mut victims = (0..centres.len()).cycle();
    let mut kills = 0;
    while distinct(&cluster.journal.entries()) < TIMES as usize && kills < KILLS_MAX {
        tokio::time::sleep(KILL_EVERY).await;
        let victim = victims.next().context("there are nodes")?;
        centres[victim].take().context("it runs")?.kill().await?;
        centres[victim] = Some(cluster.start(victim).await?);
        kills += 1;
    }
    let all = async || (distinct(&cluster.journal.entries()) >= TIMES as usize).then_some(());
    until("all scheduled times were sent", SETTLE, all).await?;
    // Only one process may open the file of SQLite, so the nodes end before it is read, and go on if they had to do more.
    let mut found = None;
    for _ in 0..LOOKS_MAX {
        for centre in centres.drain(..).flatten() {
            centre.stop().await?;
        }
        found = cluster.store().await?.backfill(id).await?;
        if found.as_ref().is_some_and(|backfill| backfill.ended_at.is_some()) {
            break;
        }
        centres.push(Some(cluster.start(0).await?));
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    for centre in centres.drain(..).flatten() {
        centre.stop().await?;
    }
    let found = found.context("the backfill is there")?;
    ensure!(found.state == BackfillState::Finished, "{kills} kills: {found:?}");
    ensure!(found.counts.succeeded == TIMES as u32, "{kills} kills: {found:?}");
    let runs = cluster.store().await?.runs(job, None, 10_000).await?;
    let succeeded: Vec<i64> =
        runs.iter().filter(|run| run.state == RunState::Succeeded).map(|run| run.id.0).collect();
    ensure!(succeeded.len() == TIMES as usize, "{} runs succeeded", succeeded.len());
    check(&cluster.journal.entries(), &succeeded)?;
    // The first run of each scheduled time; attempts that no executor accepted have later ids.
    let mut first: BTreeMap<Timestamp, i64> = BTreeMap::new();
    for run in &runs {
        first.entry(run.scheduled_at).or_insert(run.id.0);
    }
    ensure!(first.values().is_sorted(), "they were opened in another order: {first:?}");
    ensure!(kills >= KILLS_MIN, "only {kills} nodes were killed meanwhile");
    cluster.remove().await
}

fn distinct(entries: &[Entry]) -> usize {
    entries.iter().map(|entry| entry.scheduled_ms).collect::<std::collections::BTreeSet<_>>().len()
}

/// Each scheduled time arrived once, as a run that succeeded.
fn check(entries: &[Entry], succeeded: &[i64]) -> Result<()> {
    let mut arrived: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    for entry in entries {
        arrived.entry(entry.scheduled_ms).or_default().push(entry.run);
    }
    for (number, (at, runs)) in arrived.iter().enumerate() {
        ensure!(*at == FIRST_MS + number as i64 * HOUR_MS, "no one asked for {at}");
        ensure!(runs.len() == 1, "{at} was sent {} times: {runs:?}", runs.len());
        ensure!(succeeded.contains(&runs[0]), "run {} of {at} has no result", runs[0]);
    }
    Ok(())
}

/// Number of scheduled times.
const TIMES: i64 = 200;

/// Number of those open at once.
const PARALLEL: u32 = 2;

/// 2026-01-01, 00:00 UTC.
const FIRST_MS: i64 = 1_767_225_600_000;

const HOUR_MS: i64 = 3_600_000;

/// Time between two kills.
const KILL_EVERY: Duration = Duration::from_millis(400);

/// Nodes that are killed at least, and at most.
const KILLS_MIN: usize = 2;
const KILLS_MAX: usize = 20;

/// Number of looks until the backfill has ended.
const LOOKS_MAX: usize = 30;

/// Longest time for outstanding runs after the last kill.
const SETTLE: Duration = Duration::from_secs(120);
