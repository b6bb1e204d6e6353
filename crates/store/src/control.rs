//! Changes of jobs by users and programs, effective at the database's current time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use engine::{
    AppId, CancelAnswer, Control, Controlled, Disposition, Job, JobId, JobSpec, NewJob, NextFire, Origin,
    Planner, Run, RunEvent, RunId, RunState, Script, StoreError, To, Trigger, Trouble, Unsent,
};
use timer::Timestamp;

use crate::adopt::claim_of;
use crate::claim::asked_to_cancel;
use crate::database::Tables;
use crate::jobs::{self, STOPPED, Stored};
use crate::records::{apps, job_tags, scripts};
use crate::runs::{
    self, CANCELLING, CLAIMED, Entry, IS_SCHEDULED, Opening, REOPEN, RUNNING, UNKNOWN, WAITING,
};
use crate::schema::check_text;
use crate::session::{Columns, Lock, Session, SessionError, Value};
use crate::withdraw::{self, Scope};
use crate::{addresses, alerts, declare, moves};

// ── Jobs ────────────────────────────────────────────────────────────────────────────────────────────────────────

pub async fn create_job(s: &mut dyn Session, tables: &Tables, spec: &JobSpec) -> Result<JobId, SessionError> {
    jobs::check(tables, spec)?;
    check_key(s, spec, None).await?;
    check_app(s, spec.app).await?;
    let now = s.now().await?;
    let id = jobs::insert(s, tables, &[spec], now).await?[0];
    jobs::insert_own(s, tables, &[(&jobs::new(id, spec.clone()), None)]).await?;
    Ok(id)
}

pub async fn add_job(
    s: &mut dyn Session,
    tables: &Tables,
    new: &NewJob,
    planner: &dyn Planner,
) -> Result<JobId, SessionError> {
    let id = create_job(s, tables, &new.spec).await?;
    job_tags::set_job_tags(s, tables, id, &new.tags).await?;
    if new.spec.script.is_some() {
        // Its first version, which later ones are compared with.
        scripts::keep_version(s, id).await?;
    }
    if new.enabled {
        let at = s.now().await?;
        start(s, tables, jobs::new(id, new.spec.clone()), at, planner).await?;
    }
    Ok(id)
}

#[cfg(feature = "conformance")]
pub async fn add_started_jobs(
    s: &mut dyn Session,
    tables: &Tables,
    spec: &JobSpec,
    count: usize,
    next: Timestamp,
) -> Result<Vec<JobId>, SessionError> {
    let now = s.now().await?;
    let ids = jobs::insert(s, tables, &vec![spec; count], now).await?;
    let new = |id: &JobId| Job { enabled: true, next_fire_at: Some(next), ..jobs::new(*id, spec.clone()) };
    let jobs: Vec<Job> = ids.iter().map(new).collect();
    jobs::insert_own(s, tables, &jobs.iter().map(|job| (job, Some(next))).collect::<Vec<_>>()).await?;
    let set =
        Columns { table: "xxl_job_info", keys: &["id"], columns: &["trigger_status", "trigger_next_time"] };
    s.update(set, ids.iter().map(|id| vec![id.0.into(), jobs::STARTED.into(), next.into()]).collect())
        .await?;
    Ok(ids)
}

/// Rejects an app that does not exist. The app cannot be deleted until the transaction ends.
async fn check_app(s: &mut dyn Session, app: AppId) -> Result<(), SessionError> {
    match apps::lock(s, app).await? {
        true => Ok(()),
        false => {
            Err(StoreError::Invalid(format!("app {} does not exist; choose another app for the job", app.0))
                .into())
        }
    }
}

/// Rejects a key that another job has.
async fn check_key(s: &mut dyn Session, spec: &JobSpec, own: Option<JobId>) -> Result<(), SessionError> {
    let Some(key) = &spec.key else {
        return Ok(());
    };
    let rows =
        s.query("SELECT job_id FROM tw_job WHERE job_key = ?", &[key.as_str().into()], Lock::None).await?;
    let holder = rows.into_iter().next().map(|row| row.read().int()).transpose()?.map(JobId);
    match holder {
        Some(holder) if Some(holder) != own => {
            Err(StoreError::Conflict(format!("job {holder} already has the key `{key}`; keys are unique"))
                .into())
        }
        _ => Ok(()),
    }
}

pub async fn control(
    s: &mut dyn Session,
    tables: &Tables,
    id: JobId,
    control: &Control,
    max: usize,
    planner: &dyn Planner,
) -> Result<Controlled, SessionError> {
    let stored = lock_job(s, tables, id, planner).await?;
    let at = s.now().await?;
    let job = stored.job;
    let more = match control {
        Control::Start => {
            start(s, tables, job, at, planner).await?;
            false
        }
        Control::Stop => stop(s, tables, &job, at, max, planner).await?,
        Control::Edit { spec, revision } => {
            edit(s, tables, job, at, spec, *revision, planner).await?;
            false
        }
        Control::Put { spec, revision, enabled, tags } => {
            let more = put(s, tables, job, at, (spec, *revision, *enabled), max, planner).await?;
            job_tags::set_job_tags(s, tables, id, tags).await?;
            more
        }
        Control::Delete => {
            settle(s, tables, &job, at, Unclaimed::Cancelled, planner).await?;
            s.delete("tw_job", "job_id", &[id.0]).await?;
            s.delete("tw_job_tag", "job_id", &[id.0]).await?;
            declare::forget(s, id).await?;
            s.delete("xxl_job_info", "id", &[id.0]).await?;
            s.delete("xxl_job_logglue", "job_id", &[id.0]).await?;
            withdraw::begin(s, tables, id, Scope::All, at, max).await?
        }
    };
    Ok(Controlled { at, cancelling: cancelling(s, id).await?, more })
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
        jobs::insert_own(s, tables, &[(&stored.job, claim_of(&stored.job, planner))]).await?;
    }
    Ok(stored)
}

pub async fn start(
    s: &mut dyn Session,
    tables: &Tables,
    mut job: Job,
    at: Timestamp,
    planner: &dyn Planner,
) -> Result<(), SessionError> {
    if let Some(problem) = &job.problem {
        return Err(StoreError::Invalid(format!("job {} cannot be started: {problem}", job.id)).into());
    }
    if job.enabled {
        return Ok(());
    }
    withdraw::finish(s, tables, job.id).await?;
    check_settled(s, job.id, Timestamp::from_millis(0), at).await?;
    job.enabled = true;
    let after = first_free(s, tables, job.id, at).await?;
    match planner.next_after(&job, after) {
        NextFire::Never => {
            let reason = format!("job {} cannot be started: its schedule has no future fires", job.id);
            Err(StoreError::Invalid(reason).into())
        }
        next => jobs::set_next(s, job.id, next).await,
    }
}

/// Stops the job. Returns whether runs are left to withdraw.
async fn stop(
    s: &mut dyn Session,
    tables: &Tables,
    job: &Job,
    at: Timestamp,
    max: usize,
    planner: &dyn Planner,
) -> Result<bool, SessionError> {
    settle(s, tables, job, at, Unclaimed::Cancelled, planner).await?;
    Taken::read(s, tables, job, at).await?.remember(s, job.id, at).await?;
    jobs::set_next(s, job.id, NextFire::Never).await?;
    withdraw::begin(s, tables, job.id, Scope::Scheduled, at, max).await
}

/// Edits a job that is also started or stopped. Returns whether runs are left to withdraw.
async fn put(
    s: &mut dyn Session,
    tables: &Tables,
    mut job: Job,
    at: Timestamp,
    (spec, revision, enabled): (&JobSpec, Option<i64>, Option<bool>),
    max: usize,
    planner: &dyn Planner,
) -> Result<bool, SessionError> {
    check_revision(&job, revision)?;
    let mut more = false;
    if enabled == Some(false) && job.enabled {
        more = stop(s, tables, &job, at, max, planner).await?;
        (job.enabled, job.next_fire_at) = (false, None);
    }
    let starts = enabled == Some(true) && !job.enabled;
    if let Some(script) = new_script(&job.spec, spec) {
        scripts::save_script(s, tables, job.id, script.language, &script.source, "").await?;
    }
    // The caller does not set the time of a script's change.
    job.spec.script.clone_from(&spec.script);
    if *spec != job.spec {
        edit(s, tables, job.clone(), at, spec, None, planner).await?;
        job = Job { spec: spec.clone(), problem: None, ..job };
    }
    if starts {
        start(s, tables, job, at, planner).await?;
    }
    Ok(more)
}

/// The script of a definition if it differs from the job's. A definition without a script leaves the job's
/// unchanged.
fn new_script<'a>(before: &JobSpec, spec: &'a JobSpec) -> Option<&'a Script> {
    let is_new = |script: &&Script| {
        let own = before.script.as_ref();
        own.is_none_or(|own| (own.language, &own.source) != (script.language, &script.source))
    };
    spec.script.as_ref().filter(is_new)
}

fn check_revision(job: &Job, revision: Option<i64>) -> Result<(), SessionError> {
    match revision {
        Some(revision) if revision != job.revision => Err(StoreError::Conflict(format!(
            "job {} has revision {}, not {revision}; read it again",
            job.id, job.revision
        ))
        .into()),
        _ => Ok(()),
    }
}

pub async fn edit(
    s: &mut dyn Session,
    tables: &Tables,
    job: Job,
    at: Timestamp,
    spec: &JobSpec,
    revision: Option<i64>,
    planner: &dyn Planner,
) -> Result<u64, SessionError> {
    check_revision(&job, revision)?;
    jobs::check(tables, spec)?;
    check_key(s, spec, Some(job.id)).await?;
    if spec.app != job.spec.app {
        check_app(s, spec.app).await?;
    }
    let taken = Taken::read(s, tables, &job, at).await?;
    cancel_after(s, tables, &[job.id], at).await?;
    let asked = cancelling(s, job.id).await?;
    settle(s, tables, &job, at, Unclaimed::Sent, planner).await?;

    let edited = Job { spec: spec.clone(), revision: job.revision + 1, problem: None, ..job.clone() };
    jobs::update(s, tables, job.id, spec, at).await?;
    jobs::update_own(s, tables, &edited).await?;
    // A job that waits for the end of a run keeps waiting.
    if job.enabled && (job.next_fire_at.is_some() || !jobs::has_scheduled_run(s, job.id).await?) {
        let after = taken.fire_around(s, tables, &edited, at).await?;
        jobs::set_next(s, job.id, planner.next_after(&edited, after)).await?;
    }
    Ok(asked)
}

// ── Beside Java admins ──────────────────────────────────────────────────────────────────────────────────────────

/// Scheduled times of a job that a Java admin may have taken ahead. It takes fires up to [`JAVA_READ_AHEAD`] before
/// their time and sends them whatever happens to the job, so they must not fire again when the job's next time is
/// set. The last fire that was taken, by a Java admin or by us, is in `trigger_last_time`.
#[derive(Default)]
struct Taken {
    by_java: BTreeSet<Timestamp>,
}

impl Taken {
    /// The times after `at`, by the definition in force until now.
    async fn read(
        s: &mut dyn Session,
        tables: &Tables,
        job: &Job,
        at: Timestamp,
    ) -> Result<Taken, SessionError> {
        let last = match tables.beside_java && job.enabled {
            true => last_taken(s, job.id).await?.min(at + JAVA_READ_AHEAD),
            false => at,
        };
        if last <= at {
            return Ok(Taken::default());
        }
        let ours = open_between(s, job.id, at, last).await?;
        let by_java = times_between(&job.spec, at, last).filter(|time| !ours.contains(time));
        Ok(Taken { by_java: by_java.collect() })
    }

    fn last(&self) -> Option<Timestamp> {
        self.by_java.last().copied()
    }

    /// Opens the fires of the changed job that come before the last one taken, except those that are taken. Returns
    /// the time after which its schedule continues. A fire whose earlier run is still being taken back is opened
    /// when its node has answered.
    async fn fire_around(
        &self,
        s: &mut dyn Session,
        tables: &Tables,
        changed: &Job,
        at: Timestamp,
    ) -> Result<Timestamp, SessionError> {
        let Some(last) = self.last() else { return Ok(at) };
        let open = open_between(s, changed.id, at, last).await?;
        let free = |time: &Timestamp| !self.by_java.contains(time) && !open.contains(time);
        let times = times_between(&changed.spec, at, last).filter(free);
        let run = |time| runs::waiting(changed.id, Origin::Schedule, time, time);
        runs::open(s, tables, times.map(|time| Opening { run: run(time), job: changed }).collect()).await?;
        reopen_released(s, changed.id, at, last).await?;
        Ok(last)
    }

    /// Leaves in `trigger_last_time`, for the next start of the job, the last time that a Java admin has taken.
    async fn remember(&self, s: &mut dyn Session, job: JobId, at: Timestamp) -> Result<(), SessionError> {
        let sql = "UPDATE xxl_job_info SET trigger_last_time = ? WHERE id = ? AND trigger_last_time > ?";
        s.execute(sql, &[self.last().unwrap_or(at).into(), job.0.into(), at.into()]).await?;
        Ok(())
    }
}

/// Time after which a job that is started or replanned at `at` may fire: fires that a Java admin has taken are still
/// sent.
pub async fn first_free(
    s: &mut dyn Session,
    tables: &Tables,
    job: JobId,
    at: Timestamp,
) -> Result<Timestamp, SessionError> {
    match tables.beside_java {
        true => Ok(last_taken(s, job).await?.clamp(at, at + JAVA_READ_AHEAD)),
        false => Ok(at),
    }
}

async fn last_taken(s: &mut dyn Session, job: JobId) -> Result<Timestamp, SessionError> {
    let sql = "SELECT trigger_last_time FROM xxl_job_info WHERE id = ?";
    let rows = s.query(sql, &[job.0.into()], Lock::Wait).await?;
    Ok(rows.into_iter().next().map(|row| row.read().instant()).transpose()?.unwrap_or_default())
}

/// Lets the times after `after`, up to and including `until`, fire again if their runs are released: the job
/// continues after them.
async fn reopen_released(
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

/// Scheduled times of the job's open runs after `after`, up to and including `until`.
async fn open_between(
    s: &mut dyn Session,
    job: JobId,
    after: Timestamp,
    until: Timestamp,
) -> Result<BTreeSet<Timestamp>, SessionError> {
    open_from(s, job, after + Duration::from_millis(1), until).await
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

/// The times that a definition fires after `after`, up to and including `until`.
fn times_between(spec: &JobSpec, after: Timestamp, until: Timestamp) -> impl Iterator<Item = Timestamp> {
    let times = std::iter::successors(spec.next_after(after), |last| spec.next_after(*last));
    times.take_while(move |time| *time <= until).take(BEFORE_MAX)
}

/// How far ahead a Java admin takes fires.
const JAVA_READ_AHEAD: Duration = Duration::from_secs(5);

// ── Schedules that change ───────────────────────────────────────────────────────────────────────────────────────

/// Handling of due fires that are not claimed when the schedule changes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unclaimed {
    /// They wait to be claimed.
    Sent,
    /// They are recorded as cancelled.
    Cancelled,
}

/// Handles the fires up to `at` that are not claimed, so that none is lost when the job's next time is overwritten.
async fn settle(
    s: &mut dyn Session,
    tables: &Tables,
    job: &Job,
    at: Timestamp,
    unclaimed: Unclaimed,
    planner: &dyn Planner,
) -> Result<(), SessionError> {
    if !job.enabled || job.problem.is_some() {
        return Ok(());
    }
    let Some(from) = job.next_fire_at.filter(|next| *next <= at) else { return Ok(()) };
    check_settled(s, job.id, from, at).await?;
    // Others may have set the next time back.
    let open = open_from(s, job.id, from, at).await?;
    let mut job = job.clone();
    for _ in 0..SETTLE_MAX {
        if job.next_fire_at.is_none_or(|next| next > at) {
            return Ok(());
        }
        let plan = planner.settle(&job, at);
        let (mut entries, mut openings) = (plan.unsent, Vec::new());
        for fire in plan.fires.into_iter().filter(|fire| !open.contains(&fire.scheduled_at)) {
            match unclaimed {
                Unclaimed::Sent => {
                    let run = runs::waiting(job.id, fire.origin, fire.scheduled_at, fire.due_at);
                    openings.push(Opening { run, job: &job });
                }
                Unclaimed::Cancelled => entries.push(Unsent {
                    disposition: Disposition::Cancelled,
                    first: fire.scheduled_at,
                    last: fire.scheduled_at,
                    count: 1,
                    reason: "the job was stopped or deleted before the run was claimed".into(),
                }),
            }
        }
        runs::open(s, tables, openings).await?;
        let told = |unsent: &Unsent| Some((job.id, None, Trouble::of_unsent(&job, unsent)?));
        alerts::raise(s, tables, at, entries.iter().filter_map(told).collect()).await?;
        let entry = |unsent| Entry { job: job.id, unsent, run: None, fire: None, at, superseded: runs::LOST };
        runs::record(s, entries.into_iter().map(entry).collect()).await?;
        job.next_fire_at = match plan.next {
            NextFire::At { fire_at, .. } => Some(fire_at),
            NextFire::AfterRun | NextFire::Never => None,
        };
    }
    Ok(())
}

/// Rejects a change while a node may still send a fire between these times that an earlier change asked it to
/// release: only its answer decides whether that fire is due.
async fn check_settled(
    s: &mut dyn Session,
    job: JobId,
    from: Timestamp,
    until: Timestamp,
) -> Result<(), SessionError> {
    let sql = format!(
        "SELECT COUNT(*) FROM tw_run WHERE job_id = ? AND state = {CANCELLING} AND {IS_SCHEDULED} \
         AND scheduled_ms >= ? AND scheduled_ms <= ?"
    );
    match count(s, &sql, &[job.0.into(), from.into(), until.into()]).await? {
        0 => Ok(()),
        _ => Err(StoreError::Unsettled(job).into()),
    }
}

/// Maximum plans per change: each covers tens of thousands of fires.
const SETTLE_MAX: usize = 1000;

/// Condition on `tw_run` for fires of jobs after a time that no node has dispatched yet.
fn is_ahead() -> String {
    format!(
        "job_id IN ? AND scheduled_ms > ? AND {IS_SCHEDULED} AND attempt = 1 AND state IN ({WAITING}, {CLAIMED})"
    )
}

/// Lets the job be claimed no further ahead of its fires if more than `max` of them are claimed. Those in between are
/// claimed, so none is late.
pub async fn hold_back(s: &mut dyn Session, job: JobId, max: usize) -> Result<bool, SessionError> {
    let now = s.now().await?;
    let sql = format!("SELECT COUNT(*) FROM tw_run WHERE {}", is_ahead());
    let ahead = count(s, &sql, &[Value::Ids(vec![job.0]), now.into()]).await?;
    if ahead <= max as u64 {
        return Ok(false);
    }
    s.execute(
        "UPDATE tw_job SET claim_ms = next_ms WHERE job_id = ? AND claim_ms < next_ms",
        &[job.0.into()],
    )
    .await?;
    Ok(true)
}

/// Cancels the undispatched fires of the old schedule after `at`: at once if no node has claimed them, otherwise by
/// asking the node. They are within the look-ahead of a claim, and [`hold_back`] keeps them few.
pub async fn cancel_after(
    s: &mut dyn Session,
    tables: &Tables,
    jobs: &[JobId],
    at: Timestamp,
) -> Result<(), SessionError> {
    let tail = format!("WHERE {} ORDER BY run_id", is_ahead());
    let jobs = Value::Ids(jobs.iter().map(|job| job.0).collect());
    let open = runs::select(s, &tail, &[jobs, at.into()], Lock::Wait).await?;
    let (waiting, claimed): (Vec<Run>, Vec<Run>) =
        open.into_iter().partition(|run| run.state == RunState::Waiting);
    let asked: Vec<Run> = claimed.into_iter().filter_map(asked_to_cancel).collect();
    runs::save(s, &asked).await?;
    withdraw::close_withdrawn(s, tables, at, waiting).await
}

/// Marks one run that an executor has, or may have, as to be cancelled. Its version stays, so that the node that
/// watches it can continue.
pub async fn request_cancel(s: &mut dyn Session, run: RunId) -> Result<bool, SessionError> {
    let tail = format!("WHERE run_id = ? AND state IN ({UNKNOWN}, {RUNNING})");
    if runs::select(s, &tail, &[run.0.into()], Lock::Wait).await?.is_empty() {
        return Ok(false);
    }
    let sql = "UPDATE tw_run SET recalled = ? WHERE run_id = ?";
    s.execute(sql, &[runs::CANCEL.into(), run.0.into()]).await?;
    Ok(true)
}

pub async fn cancelling(s: &mut dyn Session, job: JobId) -> Result<u64, SessionError> {
    let sql = format!("SELECT COUNT(*) FROM tw_run WHERE job_id = ? AND state = {CANCELLING}");
    count(s, &sql, &[job.0.into()]).await
}

async fn count(s: &mut dyn Session, sql: &str, params: &[Value]) -> Result<u64, SessionError> {
    let rows = s.query(sql, params, Lock::None).await?;
    let count = rows.into_iter().next().map(|row| row.read().int()).transpose()?.unwrap_or(0);
    Ok(count.unsigned_abs())
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
    let sql = "SELECT run_id FROM tw_trigger WHERE job_id = ? AND trigger_key = ?";
    if let Some(row) = s.query(sql, &[job.0.into(), trigger.key.into()], Lock::None).await?.into_iter().next()
    {
        return Ok(RunId(row.read().int()?));
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
    let columns = ["job_id", "trigger_key", "run_id", "at_ms"];
    let row = vec![job.0.into(), trigger.key.into(), run.0.into(), now.into()];
    s.insert(Columns { table: "tw_trigger", keys: &[], columns: &columns }, vec![row]).await?;
    Ok(run)
}
