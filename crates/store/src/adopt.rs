//! Adopts changes that other programs made to jobs in the database: updates our rows to match.

use cron::Schedule;
use engine::{Adopted, Job, JobId, Planner};
use timer::Timestamp;

use crate::database::Tables;
use crate::jobs::{self, STOPPED};
use crate::session::{Columns, Lock, Session, SessionError, Value};
use crate::withdraw::{self, Scope};

pub async fn jobs_to_adopt(s: &mut dyn Session) -> Result<u64, SessionError> {
    let sql = format!(
        "SELECT COUNT(*) FROM xxl_job_info j LEFT JOIN tw_job t ON t.job_id = j.id WHERE {}",
        differs()
    );
    let rows = s.query(&sql, &[], Lock::None).await?;
    let count = rows.into_iter().next().map(|row| row.read().int()).transpose()?.unwrap_or(0);
    Ok(count.unsigned_abs())
}

pub async fn adopt(
    s: &mut dyn Session,
    tables: &Tables,
    after: JobId,
    max: usize,
    planner: &dyn Planner,
) -> Result<Adopted, SessionError> {
    // Deleted jobs are looked for once per sweep, at its start.
    let gone = if after == JobId(0) { forget_deleted(s, max).await? } else { 0 };
    if gone >= max {
        return Ok(Adopted { changed: gone, next: Some(after) });
    }
    let (new, changed) = differing_jobs(s, after, max).await?;
    let is_last = new.len() + changed.len() < max;
    let next = if is_last { None } else { new.last().max(changed.last()).copied().map(JobId) };
    let added = add_own_rows(s, tables, &new, planner).await?;
    let aligned = align_own_rows(s, tables, &changed, planner).await?;
    Ok(Adopted { changed: gone + added + aligned, next })
}

/// Deletes our rows of deleted jobs; their open runs end like those of deleted jobs.
async fn forget_deleted(s: &mut dyn Session, max: usize) -> Result<usize, SessionError> {
    let sql = "SELECT job_id FROM tw_job WHERE NOT EXISTS (SELECT 1 FROM xxl_job_info j WHERE j.id = job_id) \
               ORDER BY job_id LIMIT ?";
    let rows = s.query(sql, &[limit(max)], Lock::None).await?;
    let ids = rows.into_iter().map(|row| row.read().int()).collect::<Result<Vec<_>, _>>()?;
    if !ids.is_empty() {
        s.delete("tw_job", "job_id", &ids).await?;
        withdraw::begin_later(s, &ids, Scope::All).await?;
    }
    Ok(ids.len())
}

fn limit(max: usize) -> Value {
    i64::try_from(max).unwrap_or(i64::MAX).into()
}

/// Ids of jobs without a row of ours, and of those whose row differs from XXL-JOB's, lowest first: at most `max` in
/// all.
async fn differing_jobs(
    s: &mut dyn Session,
    after: JobId,
    max: usize,
) -> Result<(Vec<i64>, Vec<i64>), SessionError> {
    let sql = format!(
        "SELECT j.id, t.job_id FROM xxl_job_info j LEFT JOIN tw_job t ON t.job_id = j.id \
         WHERE j.id > ? AND ({}) ORDER BY j.id LIMIT ?",
        differs()
    );
    let (mut new, mut changed) = (Vec::new(), Vec::new());
    for row in s.query(&sql, &[after.0.into(), limit(max)], Lock::None).await? {
        let mut row = row.read();
        let id = row.int()?;
        if row.maybe_int()?.is_none() { new.push(id) } else { changed.push(id) }
    }
    Ok((new, changed))
}

/// Condition for jobs `j` whose row of ours, `t`, is missing or differs.
fn differs() -> String {
    format!(
        "t.job_id IS NULL OR (j.trigger_status <> {STOPPED} AND j.trigger_next_time <> COALESCE(t.next_ms, 0)) \
         OR (j.trigger_status = {STOPPED} AND t.next_ms IS NOT NULL)"
    )
}

/// Adds our rows for jobs that others created. If another node is faster, its rows collide with these.
async fn add_own_rows(
    s: &mut dyn Session,
    tables: &Tables,
    ids: &[i64],
    planner: &dyn Planner,
) -> Result<usize, SessionError> {
    let found = jobs::load(s, tables, ids).await?;
    let new: Vec<&Job> =
        found.values().filter(|stored| stored.shadow.is_none()).map(|stored| &stored.job).collect();
    let rows: Vec<_> = new.iter().map(|job| (*job, claim_of(job, planner))).collect();
    jobs::insert_own(s, tables, &rows).await?;
    // Started in the database without a next time: these begin now.
    let is_idle = |job: &&&Job| job.enabled && job.next_fire_at.is_none() && job.problem.is_none();
    let idle: Vec<&Job> = new.iter().filter(is_idle).copied().collect();
    if !idle.is_empty() {
        let now = s.now().await?;
        for job in idle {
            jobs::set_next(s, job.id, planner.next_after(job, now)).await?;
        }
    }
    Ok(new.len())
}

/// Updates our rows of jobs that others changed. Rows that are locked now are left for the next sweep.
async fn align_own_rows(
    s: &mut dyn Session,
    tables: &Tables,
    ids: &[i64],
    planner: &dyn Planner,
) -> Result<usize, SessionError> {
    let locked = jobs::lock(s, ids, Lock::Skip).await?;
    let found = jobs::load(s, tables, &locked).await?;
    // Another node may have been faster.
    let changed: Vec<Job> =
        found.into_values().filter(|stored| !stored.is_in_line()).map(|stored| stored.job).collect();
    let numbers = |enabled: bool| -> Vec<i64> {
        changed.iter().filter(|job| job.enabled == enabled).map(|job| job.id.0).collect()
    };
    let (started, stopped) = (numbers(true), numbers(false));
    if !stopped.is_empty() {
        withdraw::begin_later(s, &stopped, Scope::Scheduled).await?;
    }
    withdraw::finish_all(s, tables, &started).await?;
    align(s, &changed, planner).await?;
    Ok(changed.len())
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
