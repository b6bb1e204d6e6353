//! Withdraws open runs of stopped or deleted jobs, a few per transaction.
//!
//! A job may have tens of thousands of them. In one transaction they would block every other app on SQLite, which
//! has one writer. So the change itself is one short transaction, which also withdraws the first few; a row of
//! `tw_withdrawal` stands for the rest. While it exists, the job is not started again, and a retry of a run that is
//! not withdrawn yet is withdrawn too.

use std::collections::{BTreeMap, BTreeSet};

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

/// Begins, with at most `max` runs, for jobs that the caller has locked or deleted. Returns those with runs left.
pub async fn begin(
    s: &mut dyn Session,
    tables: &Tables,
    jobs: &[i64],
    scope: Scope,
    at: Timestamp,
    max: usize,
) -> Result<Vec<JobId>, SessionError> {
    if jobs.is_empty() {
        return Ok(Vec::new());
    }
    // Replaces earlier stops that were not finished.
    s.delete("tw_withdrawal", "job_id", jobs).await?;
    let left = step(s, tables, jobs, scope, at, max).await?;
    remember(s, &left, scope, at).await?;
    Ok(left.into_iter().map(JobId).collect())
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

/// Finishes, in the caller's transaction, unfinished withdrawals for jobs that are started again, before they fire.
pub async fn finish_all(s: &mut dyn Session, tables: &Tables, jobs: &[i64]) -> Result<(), SessionError> {
    // The caller has withdrawn most of them, so hardly any is left.
    let mut left: Vec<JobId> = jobs_in(s, "tw_withdrawal", jobs).await?.into_iter().map(JobId).collect();
    while !left.is_empty() {
        left = withdraw(s, tables, &left, FINISH_STEP).await?;
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
    if jobs.is_empty() {
        return Ok(());
    }
    let scheduled_only = i64::from(scope == Scope::Scheduled);
    let into = Columns { table: "tw_withdrawal", keys: &[], columns: &["job_id", "scheduled_only", "at_ms"] };
    let rows = jobs.iter().map(|job| vec![(*job).into(), scheduled_only.into(), at.into()]);
    s.insert(into, rows.collect()).await
}

/// Continues withdrawals of these jobs with at most `max` runs. Returns the jobs with runs left.
pub async fn withdraw(
    s: &mut dyn Session,
    tables: &Tables,
    jobs: &[JobId],
    max: usize,
) -> Result<Vec<JobId>, SessionError> {
    let ids: Vec<i64> = jobs.iter().map(|job| job.0).collect();
    let begun: Vec<i64> = jobs_in(s, "tw_withdrawal", &ids).await?.into_iter().collect();
    if begun.is_empty() {
        return Ok(Vec::new());
    }
    let (now, later) = begun.split_at(max.clamp(1, begun.len()));
    // A transaction that opens a retry of a job, or starts it, locks it too.
    jobs::lock(s, now, Lock::Wait).await?;
    let sql = "SELECT job_id, scheduled_only FROM tw_withdrawal WHERE job_id IN ? ORDER BY job_id";
    let (mut scheduled, mut all) = (Vec::new(), Vec::new());
    for row in s.query(sql, &[Value::Ids(now.to_vec())], Lock::Wait).await? {
        let mut row = row.read();
        let job = row.int()?;
        if row.int()? != 0 { scheduled.push(job) } else { all.push(job) }
    }
    let at = s.now().await?;
    let mut left = step(s, tables, &scheduled, Scope::Scheduled, at, max).await?;
    left.extend(step(s, tables, &all, Scope::All, at, max).await?);
    let done: Vec<i64> = scheduled.into_iter().chain(all).filter(|job| !left.contains(job)).collect();
    if !done.is_empty() {
        s.delete("tw_withdrawal", "job_id", &done).await?;
    }
    left.extend(later);
    Ok(left.into_iter().map(JobId).collect())
}

/// Runs per step of [`finish_all`].
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
/// dispatched again or retried: at most `max` runs, the earliest of each job first. Returns the jobs that may have
/// more.
async fn step(
    s: &mut dyn Session,
    tables: &Tables,
    jobs: &[i64],
    scope: Scope,
    at: Timestamp,
    max: usize,
) -> Result<Vec<i64>, SessionError> {
    if jobs.is_empty() {
        return Ok(Vec::new());
    }
    let kinds = if scope == Scope::Scheduled { format!(" AND {IS_SCHEDULED}") } else { String::new() };
    let sql = format!(
        "SELECT run_id, job_id FROM tw_run WHERE job_id IN ? AND recalled = {NOT_RECALLED} AND state <> {CANCELLING}{kinds} \
         ORDER BY job_id, scheduled_ms, run_id LIMIT ?"
    );
    let (mut ids, mut last) = (Vec::new(), None);
    for row in s.query(&sql, &[Value::Ids(jobs.to_vec()), limit(max)], Lock::None).await? {
        let mut row = row.read();
        ids.push(row.int()?);
        last = Some(row.int()?);
    }
    let is_full = ids.len() >= max;
    // In the order of their ids, as every transaction locks runs.
    let open = runs::lock(s, &ids).await?.into_values();
    let open = open.filter(|run| !run.recalled && run.state != RunState::Cancelling);
    let (waiting, held): (Vec<Run>, Vec<Run>) = open.partition(|run| run.state == RunState::Waiting);
    let held: Vec<Run> = held.into_iter().map(recalled).collect();
    runs::save(s, &held).await?;
    close_withdrawn(s, tables, at, waiting).await?;
    let mut left: BTreeSet<i64> = match last.filter(|_| is_full) {
        Some(last) => jobs.iter().copied().filter(|job| *job >= last).collect(),
        None => BTreeSet::new(),
    };
    if scope == Scope::All {
        left.extend(forget_triggers(s, jobs, max).await?);
    }
    Ok(left.into_iter().collect())
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

/// Deletes the keys of manual triggers of deleted jobs, at most `max`. Returns the jobs that may have more.
async fn forget_triggers(s: &mut dyn Session, jobs: &[i64], max: usize) -> Result<Vec<i64>, SessionError> {
    let sql = "SELECT job_id, trigger_key FROM tw_trigger WHERE job_id IN ? ORDER BY job_id LIMIT ?";
    let mut found: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    let rows = s.query(sql, &[Value::Ids(jobs.to_vec()), limit(max)], Lock::None).await?;
    let is_full = rows.len() >= max;
    for row in rows {
        let mut row = row.read();
        found.entry(row.int()?).or_default().push(row.int()?);
    }
    // All keys of every job but the last were found.
    let last = if is_full { found.pop_last() } else { None };
    let whole: Vec<i64> = found.into_keys().collect();
    if !whole.is_empty() {
        s.delete("tw_trigger", "job_id", &whole).await?;
    }
    let Some((last, keys)) = last else { return Ok(Vec::new()) };
    let sql = "DELETE FROM tw_trigger WHERE job_id = ? AND trigger_key IN ?";
    s.execute(sql, &[last.into(), Value::Ids(keys)]).await?;
    Ok(jobs.iter().copied().filter(|job| *job >= last).collect())
}

fn limit(max: usize) -> Value {
    i64::try_from(max).unwrap_or(i64::MAX).into()
}
