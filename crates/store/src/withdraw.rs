//! Withdraws open runs of stopped or deleted jobs, a few per transaction.
//!
//! A job may have tens of thousands of them. In one transaction they would block every other app on SQLite, which
//! has one writer. So the change itself is one short transaction, which also withdraws the first few; a row of
//! `tw_withdrawal` stands for the rest. While it exists, the job is not started again, and a retry of a run that is
//! not withdrawn yet is withdrawn too.

use std::collections::BTreeSet;

use engine::{JobId, Outcome, Run, RunState};
use timer::Timestamp;

use crate::claim::asked_to_cancel;
use crate::database::Tables;
use crate::jobs;
use crate::runs::{self, CANCELLING, Closing, IS_SCHEDULED, NOT_RECALLED};
use crate::session::{Columns, Lock, Session, SessionError, Value};

/// Which runs of a job are withdrawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Scheduled runs, because the job is stopped.
    Scheduled,
    /// All runs, because the job is deleted.
    All,
}

/// Begins, with at most `max` runs, for a job that the caller has locked or deleted. Returns whether more are left.
pub async fn begin(
    s: &mut dyn Session,
    tables: &Tables,
    job: JobId,
    scope: Scope,
    at: Timestamp,
    max: usize,
) -> Result<bool, SessionError> {
    // Replaces an earlier stop that was not finished.
    s.delete("tw_withdrawal", "job_id", &[job.0]).await?;
    let more = step(s, tables, job, scope, at, max).await?;
    if more {
        remember(s, &[job.0], scope, at).await?;
    }
    Ok(more)
}

/// Leaves all runs for later, for jobs that other programs have stopped or deleted in the database. The caller has
/// locked or deleted our rows of the jobs, so no run is claimed meanwhile.
pub async fn begin_later(s: &mut dyn Session, jobs: &[i64], scope: Scope) -> Result<(), SessionError> {
    s.delete("tw_withdrawal", "job_id", jobs).await?;
    let mut open = jobs_in(s, "tw_run", jobs).await?;
    if scope == Scope::All {
        open.extend(jobs_in(s, "tw_trigger", jobs).await?);
    }
    let open: Vec<i64> = open.into_iter().collect();
    remember(s, &open, scope, Timestamp::from_millis(0)).await
}

/// Finishes unfinished withdrawals for jobs that other programs have started again, before they fire.
pub async fn finish_all(s: &mut dyn Session, tables: &Tables, jobs: &[i64]) -> Result<(), SessionError> {
    for job in jobs_in(s, "tw_withdrawal", jobs).await? {
        finish(s, tables, JobId(job)).await?;
    }
    Ok(())
}

/// Jobs that have rows in a table.
async fn jobs_in(s: &mut dyn Session, table: &str, jobs: &[i64]) -> Result<BTreeSet<i64>, SessionError> {
    if jobs.is_empty() {
        return Ok(BTreeSet::new());
    }
    let sql = format!("SELECT DISTINCT job_id FROM {table} WHERE job_id IN ?");
    let rows = s.query(&sql, &[Value::Ids(jobs.to_vec())], Lock::None).await?;
    rows.into_iter().map(|row| row.read().int()).collect()
}

async fn remember(
    s: &mut dyn Session,
    jobs: &[i64],
    scope: Scope,
    at: Timestamp,
) -> Result<(), SessionError> {
    let scheduled_only = i64::from(scope == Scope::Scheduled);
    let into = Columns { table: "tw_withdrawal", keys: &[], columns: &["job_id", "scheduled_only", "at_ms"] };
    let rows = jobs.iter().map(|job| vec![(*job).into(), scheduled_only.into(), at.into()]);
    s.insert(into, rows.collect()).await
}

/// Continues a withdrawal. Returns whether more is left.
pub async fn withdraw(
    s: &mut dyn Session,
    tables: &Tables,
    job: JobId,
    max: usize,
) -> Result<bool, SessionError> {
    // A transaction that opens a retry of the job, or starts it, locks it too.
    jobs::lock(s, &[job.0], Lock::Wait).await?;
    let sql = "SELECT scheduled_only FROM tw_withdrawal WHERE job_id = ?";
    let rows = s.query(sql, &[job.0.into()], Lock::Wait).await?;
    let Some(row) = rows.into_iter().next() else { return Ok(false) };
    let scope = if row.read().int()? != 0 { Scope::Scheduled } else { Scope::All };
    let at = s.now().await?;
    let more = step(s, tables, job, scope, at, max).await?;
    if !more {
        s.delete("tw_withdrawal", "job_id", &[job.0]).await?;
    }
    Ok(more)
}

/// Finishes, in the caller's transaction, the withdrawal for a job that is started again.
pub async fn finish(s: &mut dyn Session, tables: &Tables, job: JobId) -> Result<(), SessionError> {
    while withdraw(s, tables, job, FINISH_STEP).await? {}
    Ok(())
}

/// The caller has withdrawn most of them, so hardly any is left.
const FINISH_STEP: usize = 500;

pub async fn withdrawals(
    s: &mut dyn Session,
    before: Timestamp,
    max: usize,
) -> Result<Vec<JobId>, SessionError> {
    let sql = "SELECT job_id FROM tw_withdrawal WHERE at_ms < ? ORDER BY at_ms, job_id LIMIT ?";
    let rows = s.query(sql, &[before.into(), limit(max)], Lock::None).await?;
    rows.into_iter().map(|row| row.read().int().map(JobId)).collect()
}

/// Closes waiting runs, recalls those that a node has claimed, and marks those on an executor so that they are not
/// dispatched again or retried. The earliest first.
async fn step(
    s: &mut dyn Session,
    tables: &Tables,
    job: JobId,
    scope: Scope,
    at: Timestamp,
    max: usize,
) -> Result<bool, SessionError> {
    let kinds = if scope == Scope::Scheduled { format!(" AND {IS_SCHEDULED}") } else { String::new() };
    let tail = format!(
        "WHERE job_id = ? AND recalled = {NOT_RECALLED} AND state <> {CANCELLING}{kinds} ORDER BY scheduled_ms, run_id LIMIT ?"
    );
    let open = runs::select(s, &tail, &[job.0.into(), limit(max)], Lock::Wait).await?;
    let more = open.len() >= max;
    let (waiting, held): (Vec<Run>, Vec<Run>) =
        open.into_iter().partition(|run| run.state == RunState::Waiting);
    let held: Vec<Run> = held.into_iter().map(recalled).collect();
    runs::save(s, &held).await?;
    close_withdrawn(s, tables, at, waiting).await?;
    let more_keys = scope == Scope::All && forget_triggers(s, job, max).await?;
    Ok(more || more_keys)
}

/// The run as its holder is to see it. It keeps its version, because the holder may be storing its result now.
fn recalled(run: Run) -> Run {
    match asked_to_cancel(run.clone()) {
        Some(asked) => asked,
        None => Run { recalled: true, ..run },
    }
}

/// Closes runs that were never dispatched.
pub async fn close_withdrawn(
    s: &mut dyn Session,
    tables: &Tables,
    at: Timestamp,
    runs: Vec<Run>,
) -> Result<(), SessionError> {
    let outcome =
        Outcome::Cancelled("the job was stopped, changed or deleted before the run was sent".into());
    let closings: Vec<Closing> = runs.into_iter().map(|run| Closing::last(run, outcome.clone())).collect();
    runs::close(s, tables, at, &closings).await?;
    Ok(())
}

/// Deletes the keys of manual triggers of a deleted job.
async fn forget_triggers(s: &mut dyn Session, job: JobId, max: usize) -> Result<bool, SessionError> {
    let sql = "SELECT trigger_key FROM tw_trigger WHERE job_id = ? LIMIT ?";
    let rows = s.query(sql, &[job.0.into(), limit(max)], Lock::None).await?;
    let keys = rows.into_iter().map(|row| row.read().int()).collect::<Result<Vec<_>, _>>()?;
    let more = keys.len() >= max;
    if !keys.is_empty() {
        let sql = "DELETE FROM tw_trigger WHERE job_id = ? AND trigger_key IN ?";
        s.execute(sql, &[job.0.into(), Value::Ids(keys)]).await?;
    }
    Ok(more)
}

fn limit(max: usize) -> Value {
    i64::try_from(max).unwrap_or(i64::MAX).into()
}
