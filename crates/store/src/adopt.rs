//! Adopts changes that other programs made to jobs in the database: updates our rows to match.

use std::collections::BTreeMap;

use cron::Schedule;
use engine::policy::Misfire;
use engine::{Adopted, Job, JobId, JobRange, NextFire, Planner, Trouble};
use timer::Timestamp;

use crate::alerts;
use crate::changes::{self, Unclaimed, settle, taken};
use crate::claim;
use crate::database::Tables;
use crate::jobs::{self, NO_TIME, STARTED, STOPPED, Stored};
use crate::records::counters::{self, ADOPTION};
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

/// Like [`adopt`] and [`forget_deleted`] together, rows of ours without one of XXL-JOB's are found by counting both.
pub async fn has_changed_jobs(
    s: &mut dyn Session,
    tables: &Tables,
    range: JobRange,
) -> Result<bool, SessionError> {
    let (of_theirs, mut params) = within("j.id", range);
    let ((ours, more), (theirs, most)) = (within("job_id", range), within("id", range));
    params.extend(more);
    params.extend(most);
    let sql = format!(
        "SELECT 1 FROM xxl_job_info j LEFT JOIN tw_job t ON t.job_id = j.id WHERE {of_theirs} AND ({}) \
         UNION ALL SELECT 1 FROM (SELECT COUNT(*) AS rows_of FROM tw_job WHERE {ours}) AS ours, \
         (SELECT COUNT(*) AS rows_of FROM xxl_job_info WHERE {theirs}) AS theirs \
         WHERE ours.rows_of > theirs.rows_of LIMIT 1",
        differs(tables)
    );
    Ok(!s.query(&sql, &params, Lock::None).await?.is_empty())
}

/// Expects that the range has been adopted: then rows of ours without one of XXL-JOB's are found by counting both.
/// MariaDB would read all of XXL-JOB's rows to compare one range.
pub async fn forget_deleted(s: &mut dyn Session, range: JobRange, max: usize) -> Result<usize, SessionError> {
    if rows_within(s, "tw_job", "job_id", range).await? <= rows_within(s, "xxl_job_info", "id", range).await?
    {
        return Ok(0);
    }
    counters::raise(s, ADOPTION).await?;
    let (within, mut params) = within("t.job_id", range);
    let sql = format!(
        "SELECT t.job_id FROM tw_job t LEFT JOIN xxl_job_info j ON j.id = t.job_id \
         WHERE {within} AND j.id IS NULL ORDER BY t.job_id LIMIT ?"
    );
    params.push(limit(max));
    let rows = s.query(&sql, &params, Lock::None).await?;
    let ids = rows.into_iter().map(|row| row.read().int()).collect::<Result<Vec<_>, _>>()?;
    if !ids.is_empty() {
        s.delete("tw_job", "job_id", &ids).await?;
        withdraw::begin_later(s, &ids, Scope::All).await?;
    }
    Ok(ids.len())
}

async fn rows_within(
    s: &mut dyn Session,
    table: &str,
    key: &str,
    range: JobRange,
) -> Result<i64, SessionError> {
    let (within, params) = within(key, range);
    let rows = s.query(&format!("SELECT COUNT(*) FROM {table} WHERE {within}"), &params, Lock::None).await?;
    Ok(rows.into_iter().next().map(|row| row.read().int()).transpose()?.unwrap_or(0))
}

/// Adopts in two steps: a query that locks nothing finds whether there is anything to adopt. Only then does the
/// transaction take its turn among the nodes, and reads what is left: nodes that start at once would otherwise insert
/// the same rows, and all but one of them would have to repeat each batch.
pub async fn adopt(
    s: &mut dyn Session,
    tables: &Tables,
    range: JobRange,
    max: usize,
    planner: &dyn Planner,
) -> Result<Adopted, SessionError> {
    let (new, changed) = differing_jobs(s, tables, range, 1).await?;
    if new.is_empty() && changed.is_empty() {
        return Ok(Adopted::default());
    }
    counters::raise(s, ADOPTION).await?;
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

/// Condition for jobs `j` whose row of ours, `t`, is missing or differs, or that are started without a next time
/// ([`Stored::is_idle`]).
fn differs(tables: &Tables) -> String {
    format!(
        "t.job_id IS NULL OR (j.trigger_status <> {STOPPED} AND j.trigger_next_time <> COALESCE(t.next_ms, 0)) \
         OR (j.trigger_status = {STOPPED} AND t.next_ms IS NOT NULL) OR t.written IS NULL OR t.written <> {} \
         OR (j.trigger_status = {STARTED} AND j.trigger_next_time <= {NO_TIME} AND t.problem IS NULL)",
        jobs::written_sql(&tables.schema)
    )
}

/// Adds our rows for jobs that others created.
async fn add_own_rows(
    s: &mut dyn Session,
    tables: &Tables,
    ids: &[i64],
    planner: &dyn Planner,
) -> Result<Vec<Job>, SessionError> {
    let found = jobs::load(s, tables, ids).await?;
    let mut new: Vec<Stored> = found.into_values().filter(|stored| stored.shadow.is_none()).collect();
    catch_up(s, tables, &mut new, planner).await?;
    let rows: Vec<_> = new.iter().map(|stored| (stored, claim_of(&stored.job, planner))).collect();
    jobs::insert_adopted(s, tables, &rows).await?;
    start_idle(s, tables, &new, planner).await?;
    Ok(new.into_iter().map(|stored| stored.job).collect())
}

/// Handles the missed fires of new jobs by their misfire policies, and moves the jobs to their next times. Otherwise
/// the first claims would have to do so, for all jobs of the database, and fires that are due meanwhile would be late.
async fn catch_up(
    s: &mut dyn Session,
    tables: &Tables,
    jobs: &mut [Stored],
    planner: &dyn Planner,
) -> Result<(), SessionError> {
    let at = s.now().await?;
    let is_missed = |stored: &&mut Stored| {
        stored.job.problem.is_none() && stored.job.next_fire_at.is_some_and(|next| next + Misfire::GRACE < at)
    };
    let missed: Vec<&mut Stored> = jobs.iter_mut().filter(is_missed).collect();
    if missed.is_empty() {
        return Ok(());
    }
    claim::take_turn(s, tables).await?;
    settle(s, tables, missed.iter().map(|stored| &stored.job), at, Unclaimed::Sent, planner).await?;
    let next = |stored: &&mut Stored| planner.next_after(&stored.job, at);
    let nexts: Vec<NextFire> = missed.iter().map(next).collect();
    move_jobs(s, tables, missed.iter().map(|stored| &**stored).zip(nexts.iter().copied())).await?;
    for (stored, next) in missed.into_iter().zip(nexts) {
        stored.job.next_fire_at = jobs::next_columns(next).0;
    }
    Ok(())
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
    // Another transaction may have been faster.
    let is_changed = |stored: &Stored| {
        !stored.is_in_line() || stored.is_idle() || stored.seen.as_ref() != Some(&stored.written)
    };
    let changed: Vec<Stored> = found.into_values().filter(is_changed).collect();
    let is_moved = |stored: &&Stored| !stored.is_in_line() || stored.is_idle();
    let (moved, reworded): (Vec<&Stored>, Vec<&Stored>) = changed.iter().partition(is_moved);
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
    start_idle(s, tables, &changed, planner).await?;
    Ok(jobs)
}

/// Sets the next times of jobs that were started without one, for example with
/// `UPDATE xxl_job_info SET trigger_status = 1`: they begin now. A job with a fixed delay and an open run begins when
/// that has ended.
async fn start_idle(
    s: &mut dyn Session,
    tables: &Tables,
    jobs: &[Stored],
    planner: &dyn Planner,
) -> Result<(), SessionError> {
    let idle: Vec<&Stored> = jobs.iter().filter(|stored| stored.is_idle()).collect();
    if idle.is_empty() {
        return Ok(());
    }
    let is_delayed = |stored: &&&Stored| matches!(stored.job.spec.schedule, Schedule::FixedDelay { .. });
    let delayed: Vec<i64> = idle.iter().filter(is_delayed).map(|stored| stored.job.id.0).collect();
    let running = jobs::with_scheduled_runs(s, &delayed).await?;
    let now = s.now().await?;
    let next = |stored: &Stored| match running.contains(&stored.job.id.0) {
        true => NextFire::AfterRun,
        false => planner.next_after(&stored.job, now),
    };
    set_nexts(s, tables, idle.into_iter().map(|stored| (stored, next(stored))).collect()).await
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
    let ahead: Vec<&Stored> = reworded.into_iter().filter(is_ahead).collect();
    if ahead.is_empty() {
        return Ok(());
    }
    let ids: Vec<i64> = ahead.iter().map(|stored| stored.job.id.0).collect();
    changes::cancel_after(s, tables, &ids, at).await?;
    // Fires that a Java admin has taken are still sent.
    let taken = if tables.sees_taken { taken::last_taken(s, &ids).await? } else { BTreeMap::new() };
    let next = |stored: &Stored| {
        let last = taken.get(&stored.job.id.0).copied().unwrap_or(at);
        planner.next_after(&stored.job, last.clamp(at, at + taken::JAVA_READ_AHEAD))
    };
    set_nexts(s, tables, ahead.into_iter().map(|stored| (stored, next(stored))).collect()).await
}

/// Sets when started jobs are next to fire and to be claimed.
async fn set_nexts(
    s: &mut dyn Session,
    tables: &Tables,
    nexts: Vec<(&Stored, NextFire)>,
) -> Result<(), SessionError> {
    move_jobs(s, tables, nexts.iter().copied()).await?;
    let shadow = |(stored, next): (&Stored, NextFire)| {
        let (fire_at, claim_at) = jobs::next_columns(next);
        vec![stored.job.id.0.into(), fire_at.into(), claim_at.into()]
    };
    let set = Columns { table: "tw_job", keys: &["job_id"], columns: &["next_ms", "claim_ms"] };
    s.update(set, nexts.into_iter().map(shadow).collect()).await?;
    Ok(())
}

/// Moves started jobs to their next times in XXL-JOB's rows, if others have not changed them since they were read: a
/// Java admin may have taken fires, or stopped jobs.
async fn move_jobs(
    s: &mut dyn Session,
    tables: &Tables,
    nexts: impl Iterator<Item = (&Stored, NextFire)>,
) -> Result<(), SessionError> {
    let row = |(stored, next): (&Stored, NextFire)| -> Result<Vec<Value>, SessionError> {
        let status = match next {
            NextFire::Never => STOPPED,
            NextFire::At { .. } | NextFire::AfterRun => jobs::started_status(&stored.job.spec, tables)?,
        };
        let time = jobs::next_columns(next).0.map_or(NO_TIME.into(), Value::from);
        let id = stored.job.id.0.into();
        Ok(vec![id, stored.next_time.into(), stored.status.into(), time, status.into()])
    };
    let rows = nexts.map(row).collect::<Result<Vec<_>, _>>()?;
    let wanted = rows.len() as u64;
    let keys = ["id", "trigger_next_time", "trigger_status"];
    let set =
        Columns { table: "xxl_job_info", keys: &keys, columns: &["trigger_next_time", "trigger_status"] };
    match s.compare_and_set(set, rows).await? {
        moved if moved == wanted => Ok(()),
        moved => {
            Err(SessionError::Collision(format!("{} jobs were changed in the meantime", wanted - moved)))
        }
    }
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
