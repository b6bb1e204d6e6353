//! Changes of jobs by users and programs, effective at the database's current time.

use std::collections::{BTreeMap, BTreeSet};

#[cfg(feature = "conformance")]
use engine::JobSpec;
use engine::{
    CancelAnswer, Job, JobId, NextFire, Origin, Planner, Run, RunEvent, RunId, RunState, StoreError, To,
    Trigger,
};
use timer::Timestamp;

use crate::adopt::claim_of;
use crate::database::Tables;
use crate::jobs::{self, STOPPED, Stored};
use crate::runs::{self, CANCELLING, IS_SCHEDULED, Opening, REOPEN, RUNNING, UNKNOWN};
use crate::schema::check_text;
use crate::session::{Columns, Lock, Row, Session, SessionError, Value};
use crate::{addresses, moves, withdraw, workflows};

// ── Jobs ────────────────────────────────────────────────────────────────────────────────────────────────────────

#[cfg(feature = "conformance")]
pub async fn add_started_jobs(
    s: &mut dyn Session,
    tables: &Tables,
    spec: &JobSpec,
    count: usize,
    next: Timestamp,
) -> Result<Vec<JobId>, SessionError> {
    let now = s.now().await?;
    let first = NextFire::At { fire_at: next, claim_at: next };
    let ids = jobs::insert(s, tables, &vec![(spec, first, ""); count], now).await?;
    let new = |id: &JobId| Job { enabled: true, next_fire_at: Some(next), ..jobs::new(*id, spec.clone()) };
    let jobs: Vec<Job> = ids.iter().map(new).collect();
    jobs::insert_own(s, tables, &jobs.iter().map(|job| (job, Some(next))).collect::<Vec<_>>()).await?;
    Ok(ids)
}

/// Loads the job with our row locked. A job that XXL-JOB created gets such a row.
pub async fn lock_job(
    s: &mut dyn Session,
    tables: &Tables,
    id: JobId,
    planner: &dyn Planner,
) -> Result<Stored, SessionError> {
    jobs::lock(s, &[id.0], Lock::Wait).await?;
    let stored = jobs::load_one(s, tables, id).await?.ok_or(StoreError::NoSuchJob(id))?;
    if stored.shadow.is_none() {
        jobs::insert_adopted(s, tables, &[(&stored, claim_of(&stored.job, planner))]).await?;
    }
    Ok(stored)
}

/// Marks one run that an executor has, or may have, as to be cancelled. Its version stays, so that the node that
/// watches it can continue.
pub async fn request_cancel(s: &mut dyn Session, run: RunId) -> Result<bool, SessionError> {
    let tail = format!("WHERE run_id = ? AND state IN ({UNKNOWN}, {RUNNING})");
    if runs::select(s, &tail, &[run.0.into()], Lock::Wait).await?.is_empty() {
        return Ok(false);
    }
    let sql = "UPDATE tw_run SET recalled = ? WHERE run_id = ? AND recalled < ?";
    s.execute(sql, &[runs::CANCEL.into(), run.0.into(), runs::CANCEL.into()]).await?;
    Ok(true)
}

/// Those of the jobs that have runs which their nodes are asked to cancel, with the number of these runs.
pub async fn cancelling(s: &mut dyn Session, jobs: &[i64]) -> Result<Vec<(JobId, u64)>, SessionError> {
    if jobs.is_empty() {
        return Ok(Vec::new());
    }
    let sql = format!(
        "SELECT job_id, COUNT(*) FROM tw_run WHERE job_id IN ? AND state = {CANCELLING} GROUP BY job_id"
    );
    let rows = s.query(&sql, &[Value::Ids(jobs.to_vec())], Lock::None).await?;
    let count = |row: Row| {
        let mut row = row.read();
        Ok((JobId(row.int()?), row.int()?.unsigned_abs()))
    };
    rows.into_iter().map(count).collect()
}

// ── Answers ─────────────────────────────────────────────────────────────────────────────────────────────────────

pub async fn answer_cancel(
    s: &mut dyn Session,
    tables: &Tables,
    answers: &[CancelAnswer],
    planner: &dyn Planner,
) -> Result<(), SessionError> {
    let now = s.now().await?;
    let mut ids: Vec<i64> = answers.iter().map(|answer| answer.run.0).collect();
    ids.sort_unstable();
    ids.dedup();
    let jobs = lock_jobs_of(s, tables, &ids).await?;
    let mut found = runs::lock(s, &ids).await?;
    let passed_over = passed_over(s, &ids).await?;

    let (mut cancelled, mut moved, mut reopened) = (Vec::new(), Vec::new(), Vec::new());
    let mut too_late = BTreeMap::new();
    for answer in answers {
        if !found.contains_key(&answer.run.0) {
            let address = answer.sent.as_ref().and_then(To::address);
            too_late.extend(address.map(|address| (answer.run, address)));
        }
        let is_current = |run: &Run| run.state == RunState::Cancelling && run.version == answer.version;
        if !found.get(&answer.run.0).is_some_and(is_current) {
            continue;
        }
        let mut run = found.remove(&answer.run.0).expect("it was found just now");
        let job = jobs.get(&run.job.0).map(|stored| &stored.job);
        match &answer.sent {
            None => {
                rearm_unsent(s, job, &run, now, planner).await?;
                let fires_again = |job: &&Job| passed_over.contains(&run.id.0) && fires_again(job, &run);
                reopened.extend(job.filter(fires_again).map(|job| (job, run.clone())));
                cancelled.push(run);
            }
            Some(to) => {
                check_sent(&run, to)?;
                if let Some(job) = job {
                    move_past(s, tables, job, &run, planner.next_after(job, run.scheduled_at)).await?;
                    run.recalled = !stands_for_an_instant(job, &run);
                }
                moves::go(&mut run, to);
                moved.push(run);
            }
        }
    }
    runs::save(s, &moved).await?;
    addresses::keep(s, too_late).await?;
    withdraw::close_withdrawn(s, tables, now, cancelled).await?;
    let again = |run: Run| runs::waiting(run.job, run.origin, run.scheduled_at, run.due_at);
    let openings = reopened.into_iter().map(|(job, run)| Opening { run: again(run), job });
    runs::open(s, tables, openings.collect()).await?;
    Ok(())
}

/// Those of the runs that a change of their job has passed over: see [`reopen_released`].
async fn passed_over(s: &mut dyn Session, runs: &[i64]) -> Result<BTreeSet<i64>, SessionError> {
    if runs.is_empty() {
        return Ok(BTreeSet::new());
    }
    let sql = format!("SELECT run_id FROM tw_run WHERE run_id IN ? AND recalled = {REOPEN}");
    let rows = s.query(&sql, &[Value::Ids(runs.to_vec())], Lock::None).await?;
    rows.into_iter().map(|row| row.read().int()).collect()
}

/// Whether the time of a run that was passed over and released is fired again.
fn fires_again(job: &Job, run: &Run) -> bool {
    let is_first = run.origin == Origin::Schedule && run.attempt == 1 && run.shard.index == 0;
    // The runs of an exclusive job are claimed when they are due, and taken back for a later fire.
    let was_claimed_ahead = is_first && !job.spec.overlap.is_exclusive();
    was_claimed_ahead && stands_for_an_instant(job, run)
}

/// Whether the job's current schedule also fires at the run's scheduled time: then the run counts for it.
fn stands_for_an_instant(job: &Job, run: &Run) -> bool {
    let just_before = Timestamp::from_millis(run.scheduled_at.as_millis() - 1);
    job.enabled && job.spec.next_after(just_before) == Some(run.scheduled_at)
}

fn check_sent(run: &Run, to: &To) -> Result<(), StoreError> {
    let event = match to {
        To::Running { .. } => RunEvent::Accept,
        To::Unknown { .. } => RunEvent::Doubt,
        To::Waiting { .. } | To::Deferred { .. } => RunEvent::Release,
    };
    run.state.after(event).map(|_| ()).map_err(|error| StoreError::Invalid(error.to_string()))
}

async fn lock_jobs_of(
    s: &mut dyn Session,
    tables: &Tables,
    runs: &[i64],
) -> Result<BTreeMap<i64, Stored>, SessionError> {
    if runs.is_empty() {
        return Ok(Default::default());
    }
    let sql = "SELECT DISTINCT job_id FROM tw_run WHERE run_id IN ?";
    let rows = s.query(sql, &[Value::Ids(runs.to_vec())], Lock::None).await?;
    let ids = rows.into_iter().map(|row| row.read().int()).collect::<Result<Vec<_>, _>>()?;
    jobs::lock(s, &ids, Lock::Wait).await?;
    jobs::load(s, tables, &ids).await
}

/// If a job waited for the end of a run that will never be dispatched, its delay counts from now.
async fn rearm_unsent(
    s: &mut dyn Session,
    job: Option<&Job>,
    run: &Run,
    now: Timestamp,
    planner: &dyn Planner,
) -> Result<(), SessionError> {
    if let Some(job) = job
        && job.enabled
        && job.next_fire_at.is_none()
        && run.origin.is_scheduled()
    {
        jobs::set_next(s, job.id, planner.next_after(job, now)).await?;
    }
    Ok(())
}

/// A run of the job was dispatched although its schedule had changed: its scheduled time must not fire again. Moves
/// the job's next fire past it, to `next`; fires of the new schedule before it are opened here, because no claim
/// will. One whose earlier run is still being taken back is opened when its node has answered.
pub async fn move_past(
    s: &mut dyn Session,
    tables: &Tables,
    job: &Job,
    run: &Run,
    next: NextFire,
) -> Result<(), SessionError> {
    let sql =
        format!("SELECT trigger_next_time FROM xxl_job_info WHERE id = ? AND trigger_status <> {STOPPED}");
    let rows = s.query(&sql, &[job.id.0.into()], Lock::Wait).await?;
    let next_fire_at = rows.into_iter().next().map(|row| row.read().instant()).transpose()?;
    let Some(from) =
        next_fire_at.filter(|at| run.origin.is_scheduled() && *at <= run.scheduled_at && at.as_millis() > 0)
    else {
        return Ok(());
    };
    let before = std::iter::successors(Some(from), |at| job.spec.next_after(*at));
    let open = open_from(s, job.id, from, run.scheduled_at).await?;
    let before = before.take_while(|at| *at < run.scheduled_at).take(BEFORE_MAX);
    let openings = before
        .filter(|at| !open.contains(at))
        .map(|at| Opening { run: runs::waiting(job.id, Origin::Schedule, at, at), job });
    runs::open(s, tables, openings.collect()).await?;
    let just_before = Timestamp::from_millis(from.as_millis() - 1);
    reopen_released(s, job.id, just_before, run.scheduled_at).await?;
    jobs::set_next(s, job.id, next).await
}

/// Bound of the fires between a change and a run dispatched nevertheless: they are within the look-ahead and a dead
/// node's lease.
const BEFORE_MAX: usize = 10_000;

/// Lets the times after `after`, up to and including `until`, fire again if their runs are released: the job
/// continues after them.
pub async fn reopen_released(
    s: &mut dyn Session,
    job: JobId,
    after: Timestamp,
    until: Timestamp,
) -> Result<(), SessionError> {
    let sql = format!(
        "UPDATE tw_run SET recalled = {REOPEN} WHERE job_id = ? AND state = {CANCELLING} AND {IS_SCHEDULED} \
         AND scheduled_ms > ? AND scheduled_ms <= ?"
    );
    s.execute(&sql, &[job.0.into(), after.into(), until.into()]).await?;
    Ok(())
}

/// Scheduled times of the job's open runs, from `from` up to and including `until`.
async fn open_from(
    s: &mut dyn Session,
    job: JobId,
    from: Timestamp,
    until: Timestamp,
) -> Result<BTreeSet<Timestamp>, SessionError> {
    let sql = format!(
        "SELECT scheduled_ms FROM tw_run WHERE job_id = ? AND {IS_SCHEDULED} AND scheduled_ms >= ? AND scheduled_ms <= ?"
    );
    let rows = s.query(&sql, &[job.0.into(), from.into(), until.into()], Lock::None).await?;
    rows.into_iter().map(|row| row.read().instant()).collect()
}

// ── Manual triggers ─────────────────────────────────────────────────────────────────────────────────────────────

pub async fn trigger(
    s: &mut dyn Session,
    tables: &Tables,
    job: JobId,
    trigger: &Trigger,
) -> Result<RunId, SessionError> {
    for (column, text) in [("executor_param", &trigger.param), ("executor_address", &trigger.address)] {
        let text = text.as_deref().unwrap_or_default();
        check_text(text)?;
        tables.schema.check_fits("xxl_job_log", column, text)?;
    }
    if let Some(run) = triggered(s, job, trigger.key).await? {
        return Ok(run);
    }
    let stored = jobs::load_one(s, tables, job).await?.ok_or(StoreError::NoSuchJob(job))?;
    let now = s.now().await?;
    let at = trigger.at.unwrap_or(now);
    let run = Run {
        param: trigger.param.clone(),
        address: trigger.address.clone(),
        ..runs::waiting(job, Origin::Manual { key: trigger.key }, at, at)
    };
    let opened = runs::open(s, tables, vec![Opening { run, job: &stored.job }]).await?;
    let run = opened[0].id;
    remember_trigger(s, job, trigger.key, run, now).await?;
    if let Some(user) = trigger.by.as_deref().filter(|_| stored.job.spec.workflow.is_some()) {
        workflows::insert_starter(s, run, user, now).await?;
    }
    Ok(run)
}

/// The run that an earlier request with this key has opened, if there was one.
pub async fn triggered(s: &mut dyn Session, job: JobId, key: i64) -> Result<Option<RunId>, SessionError> {
    let sql = "SELECT run_id FROM tw_trigger WHERE job_id = ? AND trigger_key = ?";
    let rows = s.query(sql, &[job.0.into(), key.into()], Lock::None).await?;
    rows.into_iter().next().map(|row| Ok(RunId(row.read().int()?))).transpose()
}

/// Stores the key of a request with the run that it has opened.
pub async fn remember_trigger(
    s: &mut dyn Session,
    job: JobId,
    key: i64,
    run: RunId,
    now: Timestamp,
) -> Result<(), SessionError> {
    let columns = ["job_id", "trigger_key", "run_id", "at_ms"];
    let row = vec![job.0.into(), key.into(), run.0.into(), now.into()];
    s.insert(Columns { table: "tw_trigger", keys: &[], columns: &columns }, vec![row]).await
}
