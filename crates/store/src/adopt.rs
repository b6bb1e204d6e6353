//! Adopts changes that other programs made to jobs in the database: updates our rows to match.

use cron::Schedule;
use engine::{Job, Planner};
use timer::Timestamp;

use crate::database::Tables;
use crate::jobs::{self, STOPPED, Stored};
use crate::session::{Lock, Session, SessionError, Value};
use crate::withdraw::{self, Scope};

pub async fn adopt(
    s: &mut dyn Session,
    tables: &Tables,
    max: usize,
    planner: &dyn Planner,
) -> Result<usize, SessionError> {
    let gone = forget_deleted(s, max).await?;
    let changed = changed_jobs(s, max - gone.min(max)).await?;
    jobs::lock(s, &changed, Lock::Wait).await?;
    let found = jobs::load(s, tables, &changed).await?;
    let mut adopted = gone;
    for stored in found.into_values() {
        // Another node was faster.
        if stored.is_in_line() {
            continue;
        }
        adopt_one(s, tables, stored, planner).await?;
        adopted += 1;
    }
    Ok(adopted)
}

/// Deletes our rows of deleted jobs; their open runs end like those of deleted jobs.
async fn forget_deleted(s: &mut dyn Session, max: usize) -> Result<usize, SessionError> {
    let sql = "SELECT job_id FROM tw_job WHERE NOT EXISTS (SELECT 1 FROM xxl_job_info j WHERE j.id = job_id) \
               ORDER BY job_id LIMIT ?";
    let rows = s.query(sql, &[limit(max)], Lock::None).await?;
    let ids = rows.into_iter().map(|row| row.read().int()).collect::<Result<Vec<_>, _>>()?;
    if !ids.is_empty() {
        withdraw::begin_later(s, &ids, Scope::All).await?;
        s.delete("tw_job", "job_id", &ids).await?;
    }
    Ok(ids.len())
}

fn limit(max: usize) -> Value {
    i64::try_from(max).unwrap_or(i64::MAX).into()
}

async fn changed_jobs(s: &mut dyn Session, max: usize) -> Result<Vec<i64>, SessionError> {
    let sql = format!(
        "SELECT j.id FROM xxl_job_info j LEFT JOIN tw_job t ON t.job_id = j.id WHERE t.job_id IS NULL \
         OR (j.trigger_status <> {STOPPED} AND j.trigger_next_time <> COALESCE(t.next_ms, 0)) \
         OR (j.trigger_status = {STOPPED} AND t.next_ms IS NOT NULL) ORDER BY j.id LIMIT ?"
    );
    let rows = s.query(&sql, &[limit(max)], Lock::None).await?;
    rows.into_iter().map(|row| row.read().int()).collect()
}

async fn adopt_one(
    s: &mut dyn Session,
    tables: &Tables,
    stored: Stored,
    planner: &dyn Planner,
) -> Result<(), SessionError> {
    let job = stored.job;
    if stored.shadow.is_some() {
        if !job.enabled {
            withdraw::begin_later(s, &[job.id.0], Scope::Scheduled).await?;
        }
        return align(s, &job, planner).await;
    }
    jobs::insert_own(s, tables, &[(&job, claim_of(&job, planner))]).await?;
    // Started in the database without a next time: it begins now.
    if job.enabled && job.next_fire_at.is_none() && job.problem.is_none() {
        let now = s.now().await?;
        jobs::set_next(s, job.id, planner.next_after(&job, now)).await?;
    }
    Ok(())
}

/// Updates our row to match XXL-JOB's row. A fixed rate is aligned to the new time.
pub async fn align(s: &mut dyn Session, job: &Job, planner: &dyn Planner) -> Result<(), SessionError> {
    let sql = "UPDATE tw_job SET next_ms = ?, claim_ms = ?, problem = ? WHERE job_id = ?";
    let problem = job.problem.as_deref().into();
    let row = [job.next_fire_at.into(), claim_of(job, planner).into(), problem, job.id.0.into()];
    s.execute(sql, &row).await?;
    if let (Schedule::FixedRate { anchor, period }, Some(next)) = (&job.spec.schedule, job.next_fire_at)
        && (i128::from(next.as_millis()) - i128::from(anchor.as_millis())) % period.as_millis().cast_signed()
            != 0
    {
        s.execute("UPDATE tw_job SET anchor_ms = ? WHERE job_id = ?", &[next.into(), job.id.0.into()])
            .await?;
    }
    Ok(())
}

/// When a job is to be claimed, according to XXL-JOB's row. `None` for a job with a problem.
pub fn claim_of(job: &Job, planner: &dyn Planner) -> Option<Timestamp> {
    let next = job.next_fire_at.filter(|_| job.problem.is_none());
    next.map(|at| planner.claim_at(job, at))
}
