//! Adopts changes that other programs made to jobs in the database: updates our rows to match.

use std::collections::BTreeMap;

use cron::Schedule;
use engine::{Adopted, Job, JobId, JobRange, NextFire, Planner, Trouble};
use timer::Timestamp;

use crate::alerts;
use crate::changes::{self, taken};
use crate::database::Tables;
use crate::jobs::{self, STOPPED, Stored};
use crate::session::{Columns, Lock, Session, SessionError, Value};
use crate::withdraw::{self, Scope};

pub async fn jobs_to_adopt(s: &mut dyn Session, tables: &Tables) -> Result<u64, SessionError> {
    let sql = format!(
        "SELECT COUNT(*) FROM xxl_job_info j LEFT JOIN tw_job t ON t.job_id = j.id WHERE {}",
        differs(tables)
    );
    let rows = s.query(&sql, &[], Lock::None).await?;
    let count = rows.into_iter().next().map(|row| row.read().int()).transpose()?.unwrap_or(0);
    Ok(count.unsigned_abs())
}

pub async fn jobs_after(s: &mut dyn Session, after: JobId, count: usize) -> Result<JobRange, SessionError> {
    let sql = "SELECT id FROM xxl_job_info WHERE id > ? ORDER BY id LIMIT 1 OFFSET ?";
    let rows = s.query(sql, &[after.0.into(), limit(count.saturating_sub(1))], Lock::None).await?;
    let until = rows.into_iter().next().map(|row| row.read().int()).transpose()?;
    Ok(JobRange { after, until: until.map(JobId) })
}

pub async fn has_changed_jobs(
    s: &mut dyn Session,
    tables: &Tables,
    range: JobRange,
) -> Result<bool, SessionError> {
    let ((of_theirs, mut params), (of_ours, more)) = (within("j.id", range), within("job_id", range));
    params.extend(more);
    let sql = format!(
        "SELECT 1 FROM xxl_job_info j LEFT JOIN tw_job t ON t.job_id = j.id WHERE {of_theirs} AND ({}) \
         UNION ALL SELECT 1 FROM tw_job WHERE {of_ours} AND {IS_DELETED} LIMIT 1",
        differs(tables)
    );
    Ok(!s.query(&sql, &params, Lock::None).await?.is_empty())
}

pub async fn forget_deleted(s: &mut dyn Session, range: JobRange, max: usize) -> Result<usize, SessionError> {
    let (within, mut params) = within("job_id", range);
    let sql = format!("SELECT job_id FROM tw_job WHERE {within} AND {IS_DELETED} ORDER BY job_id LIMIT ?");
    params.push(limit(max));
    let rows = s.query(&sql, &params, Lock::None).await?;
    let ids = rows.into_iter().map(|row| row.read().int()).collect::<Result<Vec<_>, _>>()?;
    if !ids.is_empty() {
        s.delete("tw_job", "job_id", &ids).await?;
        withdraw::begin_later(s, &ids, Scope::All).await?;
    }
    Ok(ids.len())
}

/// Condition on `tw_job` for jobs that others deleted.
const IS_DELETED: &str = "NOT EXISTS (SELECT 1 FROM xxl_job_info d WHERE d.id = job_id)";

pub async fn adopt(
    s: &mut dyn Session,
    tables: &Tables,
    range: JobRange,
    max: usize,
    planner: &dyn Planner,
) -> Result<Adopted, SessionError> {
    let (new, changed) = differing_jobs(s, tables, range, max).await?;
    let is_last = new.len() + changed.len() < max;
    let next = if is_last { None } else { new.last().max(changed.last()).copied().map(JobId) };
    let mut adopted = add_own_rows(s, tables, &new, planner).await?;
    adopted.extend(align_own_rows(s, tables, &changed, planner).await?);
    let unreadable = report_unreadable(s, tables, &adopted).await?;
    Ok(Adopted { changed: adopted.len(), unreadable, next })
}

/// Raises alerts for started jobs whose schedules cannot be read. Returns the number of such jobs.
async fn report_unreadable(
    s: &mut dyn Session,
    tables: &Tables,
    jobs: &[Job],
) -> Result<usize, SessionError> {
    let unreadable: Vec<&Job> = jobs.iter().filter(|job| job.enabled && job.problem.is_some()).collect();
    if !unreadable.is_empty() {
        let now = s.now().await?;
        let about = unreadable.iter().filter_map(|job| Some((job.id, None, Trouble::of_schedule(job)?)));
        alerts::raise(s, tables, now, about.collect()).await?;
    }
    Ok(unreadable.len())
}

/// SQL condition for the ids in a range, with its parameters.
fn within(column: &str, range: JobRange) -> (String, Vec<Value>) {
    match range.until {
        Some(until) => {
            (format!("{column} > ? AND {column} <= ?"), vec![range.after.0.into(), until.0.into()])
        }
        None => (format!("{column} > ?"), vec![range.after.0.into()]),
    }
}

fn limit(max: usize) -> Value {
    i64::try_from(max).unwrap_or(i64::MAX).into()
}

/// Ids of jobs without a row of ours, and of those whose row differs from XXL-JOB's, lowest first: at most `max` in
/// all.
async fn differing_jobs(
    s: &mut dyn Session,
    tables: &Tables,
    range: JobRange,
    max: usize,
) -> Result<(Vec<i64>, Vec<i64>), SessionError> {
    let (within, mut params) = within("j.id", range);
    let sql = format!(
        "SELECT j.id, t.job_id FROM xxl_job_info j LEFT JOIN tw_job t ON t.job_id = j.id \
         WHERE {within} AND ({}) ORDER BY j.id LIMIT ?",
        differs(tables)
    );
    params.push(limit(max));
    let (mut new, mut changed) = (Vec::new(), Vec::new());
    for row in s.query(&sql, &params, Lock::None).await? {
        let mut row = row.read();
        let id = row.int()?;
        if row.maybe_int()?.is_none() { new.push(id) } else { changed.push(id) }
    }
    Ok((new, changed))
}

/// Condition for jobs `j` whose row of ours, `t`, is missing or differs.
fn differs(tables: &Tables) -> String {
    format!(
        "t.job_id IS NULL OR (j.trigger_status <> {STOPPED} AND j.trigger_next_time <> COALESCE(t.next_ms, 0)) \
         OR (j.trigger_status = {STOPPED} AND t.next_ms IS NOT NULL) OR t.written IS NULL OR t.written <> {}",
        jobs::written_sql(&tables.schema)
    )
}

/// Adds our rows for jobs that others created. If another node is faster, its rows collide with these.
async fn add_own_rows(
    s: &mut dyn Session,
    tables: &Tables,
    ids: &[i64],
    planner: &dyn Planner,
) -> Result<Vec<Job>, SessionError> {
    let found = jobs::load(s, tables, ids).await?;
    let new: Vec<Stored> = found.into_values().filter(|stored| stored.shadow.is_none()).collect();
    let rows: Vec<_> = new.iter().map(|stored| (&stored.job, claim_of(&stored.job, planner))).collect();
    jobs::insert_own(s, tables, &rows).await?;
    remember(s, new.iter()).await?;
    let new: Vec<Job> = new.into_iter().map(|stored| stored.job).collect();
    // Started in the database without a next time: these begin now.
    let is_idle = |job: &&Job| job.enabled && job.next_fire_at.is_none() && job.problem.is_none();
    let idle: Vec<&Job> = new.iter().filter(is_idle).collect();
    if !idle.is_empty() {
        let now = s.now().await?;
        let nexts: Vec<_> = idle.into_iter().map(|job| (job.id, planner.next_after(job, now))).collect();
        set_nexts(s, nexts).await?;
    }
    Ok(new)
}

/// Updates our rows of jobs that others changed. Rows that are locked now are left for the next sweep.
async fn align_own_rows(
    s: &mut dyn Session,
    tables: &Tables,
    ids: &[i64],
    planner: &dyn Planner,
) -> Result<Vec<Job>, SessionError> {
    let locked = jobs::lock(s, ids, Lock::Skip).await?;
    let found = jobs::load(s, tables, &locked).await?;
    // Another node may have been faster.
    let is_changed = |stored: &Stored| !stored.is_in_line() || stored.seen.as_ref() != Some(&stored.written);
    let changed: Vec<Stored> = found.into_values().filter(is_changed).collect();
    let (reworded, moved): (Vec<&Stored>, Vec<&Stored>) =
        changed.iter().partition(|stored| stored.is_in_line());
    let numbers = |enabled: bool| -> Vec<i64> {
        moved.iter().filter(|stored| stored.job.enabled == enabled).map(|stored| stored.job.id.0).collect()
    };
    let (started, stopped) = (numbers(true), numbers(false));
    if !stopped.is_empty() {
        withdraw::begin_later(s, &stopped, Scope::Scheduled).await?;
    }
    withdraw::finish_all(s, tables, &started).await?;
    let jobs: Vec<Job> = changed.iter().map(|stored| stored.job.clone()).collect();
    align(s, &jobs, planner).await?;
    remember(s, changed.iter()).await?;
    replan(s, tables, reworded, planner).await?;
    Ok(jobs)
}

/// Applies new schedules to jobs whose next time others have left as it was. A fire that is due by then is still
/// claimed; the next time after it is computed by the claim.
async fn replan(
    s: &mut dyn Session,
    tables: &Tables,
    reworded: Vec<&Stored>,
    planner: &dyn Planner,
) -> Result<(), SessionError> {
    let at = s.now().await?;
    let is_ahead = |stored: &&Stored| {
        stored.is_reworded()
            && stored.job.problem.is_none()
            && stored.job.next_fire_at.is_some_and(|next| next > at)
    };
    let jobs: Vec<&Job> = reworded.into_iter().filter(is_ahead).map(|stored| &stored.job).collect();
    if jobs.is_empty() {
        return Ok(());
    }
    let ids: Vec<i64> = jobs.iter().map(|job| job.id.0).collect();
    changes::cancel_after(s, tables, &ids, at).await?;
    // Fires that a Java admin has taken are still sent.
    let taken = if tables.sees_taken { taken::last_taken(s, &ids).await? } else { BTreeMap::new() };
    let next = |job: &Job| {
        let last = taken.get(&job.id.0).copied().unwrap_or(at);
        planner.next_after(job, last.clamp(at, at + taken::JAVA_READ_AHEAD))
    };
    set_nexts(s, jobs.into_iter().map(|job| (job.id, next(job))).collect()).await
}

/// Sets when started jobs are next to fire and to be claimed.
async fn set_nexts(s: &mut dyn Session, nexts: Vec<(JobId, NextFire)>) -> Result<(), SessionError> {
    let (never, at): (Vec<_>, Vec<_>) = nexts.into_iter().partition(|(_, next)| *next == NextFire::Never);
    for (job, next) in never {
        jobs::set_next(s, job, next).await?;
    }
    let mut times: Vec<Vec<Value>> = Vec::with_capacity(at.len());
    let mut shadows: Vec<Vec<Value>> = Vec::with_capacity(at.len());
    for (job, next) in at {
        let (fire_at, claim_at) = jobs::next_columns(next);
        times.push(vec![job.0.into(), fire_at.map_or(jobs::NO_TIME.into(), Value::from)]);
        shadows.push(vec![job.0.into(), fire_at.into(), claim_at.into()]);
    }
    if !times.is_empty() {
        let set = Columns { table: "xxl_job_info", keys: &["id"], columns: &["trigger_next_time"] };
        s.update(set, times).await?;
        let set = Columns { table: "tw_job", keys: &["job_id"], columns: &["next_ms", "claim_ms"] };
        s.update(set, shadows).await?;
    }
    Ok(())
}

/// Stores in our rows the schedules as they are in XXL-JOB's rows.
async fn remember(s: &mut dyn Session, jobs: impl Iterator<Item = &Stored>) -> Result<(), SessionError> {
    let rows: Vec<Vec<Value>> =
        jobs.map(|stored| vec![stored.job.id.0.into(), stored.written.as_str().into()]).collect();
    if !rows.is_empty() {
        let set = Columns { table: "tw_job", keys: &["job_id"], columns: &["written"] };
        s.update(set, rows).await?;
    }
    Ok(())
}

/// Updates our rows to match XXL-JOB's rows. A fixed rate is aligned to the new time.
pub async fn align(s: &mut dyn Session, jobs: &[Job], planner: &dyn Planner) -> Result<(), SessionError> {
    let times = Columns { table: "tw_job", keys: &["job_id"], columns: &["next_ms", "claim_ms", "problem"] };
    let row = |job: &Job| {
        let problem = job.problem.as_deref().into();
        vec![job.id.0.into(), job.next_fire_at.into(), claim_of(job, planner).into(), problem]
    };
    s.update(times, jobs.iter().map(row).collect()).await?;
    let anchors = Columns { table: "tw_job", keys: &["job_id"], columns: &["anchor_ms"] };
    let moved = jobs.iter().filter_map(|job| Some(vec![job.id.0.into(), new_anchor(job)?.into()]));
    s.update(anchors, moved.collect()).await?;
    Ok(())
}

/// Anchor of a fixed rate whose next time is not one of its own any more.
fn new_anchor(job: &Job) -> Option<Timestamp> {
    let Schedule::FixedRate { anchor, period } = &job.spec.schedule else { return None };
    let next = job.next_fire_at?;
    let since = i128::from(next.as_millis()) - i128::from(anchor.as_millis());
    (since % period.as_millis().cast_signed() != 0).then_some(next)
}

/// When a job is to be claimed, according to XXL-JOB's row. `None` for a job with a problem.
pub fn claim_of(job: &Job, planner: &dyn Planner) -> Option<Timestamp> {
    let next = job.next_fire_at.filter(|_| job.problem.is_none());
    next.map(|at| planner.claim_at(job, at))
}
