//! Results of runs that are not open: duplicates, results of runs given up as `Lost`, of runs that a Java admin
//! started, or unknown runs.

use std::collections::{BTreeMap, BTreeSet};

use engine::{Disposition, Ender, Ending, JobId, Origin, Outcome, Run, RunId, RunState, Shard, Verdict};
use timer::Timestamp;

use super::{Opened, child_of, parent_for_children, retry_of};
use crate::database::Tables;
use crate::runs::{self, ALARM_PENDING, Closing, FireEnd, HistoryRow, LogRow, NO_ALARM, codes};
use crate::session::{Columns, Lock, Row, Session, SessionError, Value};
use crate::{alerts, backfills, jobs, workflows};

/// Handles the results that have the verdict `Missing` so far.
pub async fn complete(
    s: &mut dyn Session,
    tables: &Tables,
    now: Timestamp,
    endings: &[Ending],
    ender: &dyn Ender,
    verdicts: &mut [Verdict],
) -> Result<(), SessionError> {
    let missing = endings.iter().zip(&*verdicts).filter(|(_, verdict)| **verdict == Verdict::Missing);
    let mut ids: Vec<i64> = missing.map(|(ending, _)| ending.run.0).collect();
    if ids.is_empty() {
        return Ok(());
    }
    ids.sort_unstable();
    ids.dedup();
    let mut lost = lost_runs(s, &ids).await?;
    let logs = log_rows(s, tables, &ids).await?;
    let mut open_for_java = open_java_runs(s, &ids).await?;
    for (ending, verdict) in endings.iter().zip(verdicts) {
        if *verdict != Verdict::Missing {
            continue;
        }
        let Some(log) = logs.get(&ending.run.0) else {
            continue;
        };
        *verdict = match lost.remove(&ending.run.0) {
            _ if !ending.outcome.is_reported() => Verdict::Duplicate,
            Some(lost) => {
                supersede(s, tables, now, ending, &lost, log, ender).await?;
                Verdict::Late
            }
            None if open_for_java.remove(&ending.run.0) => {
                end_java_run(s, tables, now, ending, log, ender).await?;
                Verdict::Applied
            }
            None => Verdict::Duplicate,
        };
    }
    Ok(())
}

/// A lost run without a late result yet.
struct Lost {
    entry: i64,
    scheduled_at: Timestamp,
    fire: RunId,
    was_retried: bool,
}

/// Locked, so that only the first late result counts.
async fn lost_runs(s: &mut dyn Session, ids: &[i64]) -> Result<BTreeMap<i64, Lost>, SessionError> {
    let tail = "WHERE run_id IN ? AND disposition = ? AND superseded <> ? ORDER BY id";
    let params = [Value::Ids(ids.to_vec()), Disposition::Lost.into(), runs::SUPERSEDED.into()];
    let rows = runs::select_history(s, tail, &params, Lock::Wait).await?;
    let lost = |row: HistoryRow| {
        let run = row.run_id?;
        let was_retried = row.superseded == runs::RETRIED;
        let fire = row.fire_id.unwrap_or(run);
        Some((run.0, Lost { entry: row.id, scheduled_at: row.first_ms, fire, was_retried }))
    };
    Ok(rows.into_iter().filter_map(lost).collect())
}

/// Data of a finished run in its log row.
struct Logged {
    job: JobId,
    address: Option<String>,
    param: Option<String>,
    shard: Shard,
    retries_left: i64,
    started_at: Timestamp,
}

async fn log_rows(
    s: &mut dyn Session,
    tables: &Tables,
    ids: &[i64],
) -> Result<BTreeMap<i64, Logged>, SessionError> {
    let sql = format!("SELECT {} FROM xxl_job_log WHERE id IN ?", LogRow::LIST);
    let rows = s.query(&sql, &[Value::Ids(ids.to_vec())], Lock::None).await?;
    let read = |row: Row| -> Result<(i64, Logged), SessionError> {
        let log = LogRow::read(&mut row.read())?;
        let logged = Logged {
            job: log.job_id,
            address: log.executor_address,
            param: log.executor_param,
            shard: shard_of(log.executor_sharding_param.as_deref().unwrap_or_default()),
            retries_left: log.executor_fail_retry_count,
            started_at: log.trigger_time.and_then(|text| tables.wall.instant(&text)).unwrap_or_default(),
        };
        Ok((log.id.0, logged))
    };
    rows.into_iter().map(read).collect()
}

/// Runs that a Java admin started and that have no result yet. Locked, so that only the first result counts. A run of
/// ours without an open row never has such a log row: ours have another `alarm_status` from the start.
async fn open_java_runs(s: &mut dyn Session, ids: &[i64]) -> Result<BTreeSet<i64>, SessionError> {
    let sql = format!(
        "SELECT id FROM xxl_job_log WHERE id IN ? AND handle_code = {} AND handle_time IS NULL \
         AND (trigger_code = {} OR alarm_status = {ALARM_PENDING}) ORDER BY id",
        codes::NONE,
        codes::OK
    );
    let rows = s.query(&sql, &[Value::Ids(ids.to_vec())], Lock::Wait).await?;
    rows.into_iter().map(|row| row.read().int()).collect()
}

fn shard_of(text: &str) -> Shard {
    let parse =
        |(index, total): (&str, &str)| Some(Shard { index: index.parse().ok()?, total: total.parse().ok()? });
    text.split_once('/').and_then(parse).unwrap_or(Shard::WHOLE)
}

/// Stores the real result in the log. If no other attempt replaces the run, its success opens the children; the
/// alert was raised when it was lost.
async fn supersede(
    s: &mut dyn Session,
    tables: &Tables,
    now: Timestamp,
    ending: &Ending,
    lost: &Lost,
    log: &Logged,
    ender: &dyn Ender,
) -> Result<(), SessionError> {
    let sql = "UPDATE tw_history SET superseded = ? WHERE id = ?";
    s.execute(sql, &[runs::SUPERSEDED.into(), lost.entry.into()]).await?;
    write_result(s, tables, now, ending).await?;
    let (origin, depth) = runs::take_lost(s, ending.run).await?.unwrap_or((Origin::Schedule, 0));
    if !matches!(ending.outcome, Outcome::Succeeded(_)) {
        return Ok(());
    }
    let Some(end) = fire_end(s, tables, now, log, lost).await? else {
        return Ok(());
    };
    let Some(stored) = jobs::load_one(s, tables, log.job).await? else {
        return Ok(());
    };
    let run = Run { origin, depth, ..as_it_was(ending.run, lost, log, stored.job.spec.retry.count) };
    workflows::note_late_end(s, now, &run, &ending.outcome, end).await?;
    backfills::note_late_end(s, &run, &ending.outcome, end).await?;
    let follow = ender.follow(&stored.job, &run, &ending.outcome);
    if let Some(next) = follow.rearm.filter(|_| end.over) {
        jobs::rearm(s, log.job, next).await?;
    }
    if let Some(of) = parent_for_children(&stored.job, &run, &ending.outcome, end) {
        let children = follow.children.iter().map(|child| child_of(*child, of, &run, now)).collect();
        let opened = Opened { children, ..Opened::default() };
        opened.write(s, tables, &BTreeMap::new(), now, ender).await?;
    }
    // The loss was already notified; skipped children were not.
    let raised = follow.trouble.map(|trouble| (run.job, Some(run.id), trouble));
    alerts::raise(s, tables, now, raised.into_iter().collect()).await
}

/// Stores the result of a run that a Java admin started, and opens its children, as that admin would. It also retries
/// failed runs of its own; only without any Java admin is that up to us.
async fn end_java_run(
    s: &mut dyn Session,
    tables: &Tables,
    now: Timestamp,
    ending: &Ending,
    log: &Logged,
    ender: &dyn Ender,
) -> Result<(), SessionError> {
    write_result(s, tables, now, ending).await?;
    let failed = !matches!(ending.outcome, Outcome::Succeeded(_));
    if failed {
        runs::list_failed(s, &[ending.run.0]).await?;
    }
    let Some(stored) = jobs::load_one(s, tables, log.job).await? else {
        return Ok(());
    };
    let whole = Lost { entry: 0, scheduled_at: log.started_at, fire: ending.run, was_retried: false };
    let run = as_it_was(ending.run, &whole, log, stored.job.spec.retry.count);
    let mut follow = ender.follow(&stored.job, &run, &ending.outcome);
    if tables.beside_java && failed {
        follow.retry_at = None;
    } else if follow.retry_at.is_some() {
        let sql = "UPDATE xxl_job_log SET alarm_status = ? WHERE id = ?";
        s.execute(sql, &[NO_ALARM.into(), ending.run.into()]).await?;
    }
    let retries = follow.retry_at.map(|due_at| retry_of(&run, due_at));
    let children = follow.children.iter().map(|child| child_of(*child, run.id, &run, now));
    let opened = Opened { retries: retries.into_iter().collect(), children: children.collect() };
    opened.write(s, tables, &BTreeMap::from([(log.job.0, stored)]), now, ender).await?;
    let raised = follow.trouble.map(|trouble| (run.job, Some(run.id), trouble));
    alerts::raise(s, tables, now, raised.into_iter().collect()).await
}

async fn write_result(
    s: &mut dyn Session,
    tables: &Tables,
    now: Timestamp,
    ending: &Ending,
) -> Result<(), SessionError> {
    let code = runs::handle_code(&ending.outcome);
    let message = runs::message_text(ending.outcome.message());
    let row = vec![ending.run.0.into(), tables.wall.time(now), code.into(), message.into()];
    let columns = ["handle_time", "handle_code", "handle_msg"];
    s.update(Columns { table: "xxl_job_log", keys: &["id"], columns: &columns }, vec![row]).await?;
    if code == codes::OK {
        s.delete("tw_failed", "id", &[ending.run.0]).await?;
    }
    Ok(())
}

/// Effect of a late success on the fire. `None` if another attempt is in progress or finished, which decides
/// instead.
async fn fire_end(
    s: &mut dyn Session,
    tables: &Tables,
    now: Timestamp,
    log: &Logged,
    lost: &Lost,
) -> Result<Option<FireEnd>, SessionError> {
    if lost.was_retried {
        let tail = "WHERE job_id = ? AND fire_id = ? AND shard = ? ORDER BY run_id";
        let part = [log.job.0.into(), lost.fire.0.into(), i64::from(log.shard.index).into()];
        let retries = runs::select(s, tail, &part, Lock::Wait).await?;
        if retries.is_empty() || retries.iter().any(|run| run.state != RunState::Waiting) {
            return Ok(None);
        }
        // No node has claimed it, and it is not needed any more.
        let outcome = Outcome::Cancelled("the previous attempt succeeded after all".into());
        let closing = |run| Closing { retried: true, ..Closing::last(run, outcome.clone()) };
        runs::close(s, tables, now, &retries.into_iter().map(closing).collect::<Vec<_>>()).await?;
    }
    if log.shard.total <= 1 {
        return Ok(Some(FireEnd { over: true, succeeded: true }));
    }
    let mut counts = runs::lock_broadcasts(s, vec![lost.fire.0]).await?;
    let Some(count) = counts.get_mut(&lost.fire.0) else {
        return Ok(None);
    };
    match lost.was_retried {
        true => count.open -= 1,
        false => count.failed -= 1,
    }
    let over = count.open == 0;
    let end = FireEnd { over, succeeded: over && count.failed == 0 };
    runs::save_broadcasts(s, counts).await?;
    Ok(Some(end))
}

/// The run as far as its log row describes it.
fn as_it_was(id: RunId, lost: &Lost, log: &Logged, retries: u32) -> Run {
    Run {
        id,
        fire: lost.fire,
        shard: log.shard,
        attempt: 1 + retries.saturating_sub(u32::try_from(log.retries_left).unwrap_or(0)),
        state: RunState::Lost,
        address: log.address.clone(),
        param: log.param.clone(),
        ..runs::waiting(log.job, Origin::Schedule, lost.scheduled_at, lost.scheduled_at)
    }
}
