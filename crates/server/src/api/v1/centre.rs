//! `/v1/overview`, `/v1/nodes`, `/v1/settings` and `/v1/about`: state of the cluster.

use std::collections::BTreeSet;

use protocol::v1::{About, AlertCounts, NodeView, Overview, RunCounts};
use store::{AlertFilter, JobFilter, JobKey, JobOrder, Page, RunFilter, RunStatus};

use super::authorise::{Authorised, Nothing, Seen};
use super::call::{Call, instant};
use super::reply::Reply;
use super::statistics::{DAY, add};
use super::{jobs, runs, schedules};
use crate::request_error::RequestError;

/// Overview of jobs, runs, alerts and executors. No query reads more than a few thousand rows, however many there
/// are.
pub async fn overview(call: Call, seen: Authorised<Seen>) -> Result<Reply, RequestError> {
    let (database, apps) = (&call.state.database, &seen.apps);
    let all = JobFilter { apps: apps.clone(), ..JobFilter::default() };
    let (jobs, jobs_enabled) = database.job_count(&all).await?;
    let soon = JobOrder { by: JobKey::NextFire, down: false };
    let started = JobFilter { enabled: Some(true), ..all };
    let upcoming = database.job_list(&started, soon, None, HANDFUL).await?.rows;
    let newest = async |status, most| {
        let filter = RunFilter { apps: apps.clone(), status: Some(status), ..RunFilter::default() };
        Ok::<_, RequestError>(database.run_page(&filter, Page::first(most)).await?.rows)
    };
    let running = newest(RunStatus::Running, HANDFUL).await?;
    // Keeps one run per job, so that a job that fails all the time does not hide the others.
    let mut failing = newest(RunStatus::Failed, FAILED_READ).await?;
    let mut known = BTreeSet::new();
    failing.retain(|run| known.insert(run.job) && known.len() <= HANDFUL);
    let (executors_alive, executors_suspect) = executors(&call, &seen);
    Ok(Reply::json(&Overview {
        now: instant(call.state.engine.now()),
        jobs,
        jobs_enabled,
        today: today(&call, &seen).await?,
        alerts: alerts(&call, &seen).await?,
        executors_alive,
        executors_suspect,
        running: runs::views(&call, running).await?,
        failing: runs::views(&call, failing).await?,
        upcoming: jobs::views(&call, upcoming, false).await?,
    }))
}

/// Rows of each list.
const HANDFUL: usize = 8;

/// Failed runs read to find the latest one of each job: some milliseconds.
const FAILED_READ: usize = 200;

/// Counts the alerts of the last 24 hours.
async fn alerts(call: &Call, seen: &Seen) -> Result<AlertCounts, RequestError> {
    let from = Some(call.state.engine.now() - DAY);
    let filter = AlertFilter { apps: seen.apps.clone(), from, ..AlertFilter::default() };
    let counted = call.state.database.alert_count(&filter).await?;
    Ok(AlertCounts { last_day: counted.all, undelivered: counted.undelivered })
}

/// Counts today's runs: exactly if they are few, otherwise as stored within the last minute.
async fn today(call: &Call, seen: &Seen) -> Result<RunCounts, RequestError> {
    let now = call.state.engine.now();
    let midnight = schedules::local(now, &call.state.zone).start_of_day();
    let midnight =
        midnight.map_or(now, |start| timer::Timestamp::from_millis(start.timestamp().as_millisecond()));
    let filter = RunFilter { apps: seen.apps.clone(), from: Some(midnight), ..RunFilter::default() };
    let tally = call.state.database.run_tally(&filter, COUNTED_MAX).await?;
    let mut counts = RunCounts::default();
    if tally.is_all {
        add(&mut counts, &tally);
        return Ok(counts);
    }
    for day in call.state.database.report((now, now), seen.apps.as_deref()).await? {
        counts.running += day.running;
        counts.succeeded += day.succeeded;
        counts.failed += day.failed;
    }
    Ok(counts)
}

/// Runs counted exactly; takes a few dozen milliseconds.
const COUNTED_MAX: usize = 10_000;

/// Number of reachable and of unreachable executors.
fn executors(call: &Call, seen: &Seen) -> (u64, u64) {
    let directory = &call.state.directory;
    let names = directory.names().into_iter();
    let own = names.filter(|(app, _)| seen.apps.as_ref().is_none_or(|apps| apps.contains(app)));
    let (mut alive, mut suspect) = (0, 0);
    for sighting in own.flat_map(|(app, _)| directory.sightings(app)) {
        *(if sighting.suspect_since.is_some() { &mut suspect } else { &mut alive }) += 1;
    }
    (alive, suspect)
}

pub async fn nodes(call: Call, _: Authorised<Nothing>) -> Result<Reply, RequestError> {
    let (engine, now) = (&call.state.engine, call.state.engine.now());
    let own = engine.status().node;
    let view = |peer: engine::Peer| NodeView {
        alive: peer.lease_until > now,
        this: own.as_ref() == Some(&peer.node),
        lease_until: instant(peer.lease_until),
        name: peer.node.name,
        epoch: peer.node.epoch,
    };
    Ok(Reply::json(&engine.peers().into_iter().map(view).collect::<Vec<_>>()))
}

pub async fn settings(call: Call, _: Authorised<Nothing>) -> Result<Reply, RequestError> {
    Ok(Reply::json(&call.state.settings))
}

pub async fn about(call: Call, _: Authorised<Nothing>) -> Result<Reply, RequestError> {
    let state = &call.state;
    Ok(Reply::json(&About {
        version: env!("CARGO_PKG_VERSION").into(),
        node: state.origin.node.clone(),
        database: state.origin.database,
        zone: state.zone.name().into(),
        started_at: instant(state.origin.started_at),
        scripts: state.scripts,
        clock_offset_ms: state.engine.status().node.map(|_| state.engine.status().skew.millis as f64),
    }))
}
