//! Changes of many jobs in one transaction: each table is read and written once for all of them, not once per job.
//!
//! First every change is checked against the rows that it concerns, and rejected or decided (`decide`). Then the
//! accepted ones are written. So a rejected change leaves no trace in a transaction that commits the others.
//! Existing jobs are locked first, in the order of their ids, then apps; new rows are inserted in the order of their
//! keys. So two batches wait for each other, but not in a circle.

mod decide;
mod settle;
pub mod taken;

use std::borrow::Cow;
use std::collections::BTreeMap;

use engine::{
    Change, Changes, Job, JobId, JobSpec, NewJob, NextFire, Planner, Run, RunState, Script, StoreError,
};
use timer::Timestamp;

use crate::claim::asked_to_cancel;
use crate::database::Tables;
use crate::jobs;
use crate::records::{job_tags, scripts};
use crate::runs::{self, CLAIMED, IS_SCHEDULED, WAITING};
use crate::session::{Lock, Session, SessionError, Value};
use crate::withdraw::{self, Scope};
use crate::workflows::versions::{self, Replacement};
use crate::{control, declare};

use decide::Facts;
pub use settle::{Unclaimed, settle};
use taken::Taken;

pub async fn change_jobs(
    s: &mut dyn Session,
    tables: &Tables,
    changes: &[Change],
    atomic: bool,
    max: usize,
    planner: &dyn Planner,
) -> Result<Changes, SessionError> {
    let mut facts = Facts::read(s, tables, changes, planner).await?;
    let at = facts.at;
    let decided = facts.decide(tables, changes, planner);
    let mut results: Vec<Result<JobId, StoreError>> = Vec::with_capacity(changes.len());
    let (mut news, mut edits) = (Vec::new(), Vec::new());
    for (index, decision) in decided.into_iter().enumerate() {
        results.push(match decision {
            Ok(Decision::Add(add)) => {
                news.push((index, add));
                Ok(JobId::added_by(index))
            }
            Ok(Decision::Edit(edit)) => {
                let id = edit.job.id;
                edits.push(*edit);
                Ok(id)
            }
            Err(refused) => Err(refused),
        });
    }
    let none = Changes { at, results: Vec::new(), cancelling: Vec::new(), unfinished: Vec::new() };
    if atomic && results.iter().any(Result::is_err) {
        return Ok(Changes { results: undone(results), ..none });
    }
    add(s, tables, at, news, &mut results).await?;
    let ids: Vec<i64> = edits.iter().map(|edit| edit.job.id.0).collect();
    let unfinished = write(s, tables, at, edits, max, planner, &mut results).await?;
    let cancelling = control::cancelling(s, &ids).await?;
    Ok(Changes { results, cancelling, unfinished, ..none })
}

/// Results of a batch that is not written because some of its changes are rejected.
fn undone(results: Vec<Result<JobId, StoreError>>) -> Vec<Result<JobId, StoreError>> {
    let why = || StoreError::Conflict("not changed, because other jobs of the batch were rejected".into());
    results.into_iter().map(|result| result.and_then(|_| Err(why()))).collect()
}

/// A change that is accepted, but not written yet.
enum Decision<'a> {
    Add(Add<'a>),
    Edit(Box<Edit<'a>>),
}

/// A job to add.
struct Add<'a> {
    new: &'a NewJob,
    next: NextFire,
}

impl<'a> Add<'a> {
    /// Its workflow, once it has an id.
    fn workflow(&self, job: JobId) -> Option<Replacement<'a>> {
        Some(Replacement { job, before: None, after: self.new.spec.workflow?, remark: &self.new.remark })
    }
}

/// A change of an existing job.
struct Edit<'a> {
    /// The job before the change.
    job: Job,
    /// Stops the job, or deletes it with [`Scope::All`].
    stop: Option<Scope>,
    /// New script, and the remark on it.
    script: Option<(&'a Script, &'a str)>,
    /// New definition.
    spec: Option<Cow<'a, JobSpec>>,
    /// Remark on its workflow, if that is new.
    remark: &'a str,
    /// First fire of a job that is started.
    start: Option<NextFire>,
    /// New tags.
    tags: Option<&'a [String]>,
}

impl<'a> Edit<'a> {
    /// Its workflow, if the job after the change has another one.
    fn workflow(&self, changed: &Job) -> Option<Replacement<'a>> {
        let before = self.job.spec.workflow;
        let after = changed.spec.workflow.filter(|after| before != Some(*after))?;
        Some(Replacement { job: self.job.id, before, after, remark: self.remark })
    }

    fn id(&self) -> JobId {
        self.job.id
    }

    /// Whether the job fires as before while its definition changes.
    fn goes_on(&self) -> bool {
        self.job.enabled && self.stop.is_none()
    }
}

// ── New jobs ────────────────────────────────────────────────────────────────────────────────────────────────────

/// Adds one job, stopped.
pub async fn create_job(s: &mut dyn Session, tables: &Tables, spec: &JobSpec) -> Result<JobId, SessionError> {
    let facts = Facts::of_new(s, &[spec]).await?;
    facts.check_definition(tables, spec, None)?;
    let row = NewRow { spec: Cow::Borrowed(spec), next: NextFire::Never, remark: "" };
    Ok(insert(s, tables, facts.at, &[row]).await?[0])
}

/// Adds the jobs, children before their parents, and puts their ids into the results.
async fn add(
    s: &mut dyn Session,
    tables: &Tables,
    at: Timestamp,
    mut left: Vec<(usize, Add<'_>)>,
    results: &mut [Result<JobId, StoreError>],
) -> Result<(), SessionError> {
    while !left.is_empty() {
        let (mut ready, waiting): (Vec<_>, Vec<_>) =
            left.into_iter().partition(|(_, add)| !waits(&add.new.spec, results));
        if ready.is_empty() {
            return Err(
                StoreError::Invalid("a child job must come before its parent in a batch".into()).into()
            );
        }
        // Two batches with the same keys must not insert them in different orders.
        ready.sort_by(|(_, one), (_, other)| one.new.spec.key.cmp(&other.new.spec.key));
        let rows: Vec<NewRow<'_>> = ready.iter().map(|(_, add)| NewRow::of(add, results)).collect();
        for row in rows.iter().filter(|row| matches!(row.spec, Cow::Owned(_))) {
            jobs::check(tables, &row.spec)?;
        }
        let ids = insert(s, tables, at, &rows).await?;
        let tags: Vec<(JobId, &[String])> =
            ids.iter().zip(&ready).map(|(id, (_, add))| (*id, &add.new.tags[..])).collect();
        job_tags::insert(s, &tags).await?;
        // Their first versions, which later ones are compared with.
        let with_script = ids.iter().zip(&ready).filter(|(_, (_, add))| add.new.spec.script.is_some());
        scripts::keep_first_versions(s, &with_script.map(|(id, _)| id.0).collect::<Vec<_>>()).await?;
        let workflows = ids.iter().zip(&ready).filter_map(|(id, (_, add))| add.workflow(*id));
        versions::add(s, at, &workflows.collect::<Vec<_>>()).await?;
        for (id, (index, _)) in ids.into_iter().zip(ready) {
            results[index] = Ok(id);
        }
        left = waiting;
    }
    Ok(())
}

/// Whether a child of the definition is a job of the batch that has no id yet.
fn waits(spec: &JobSpec, results: &[Result<JobId, StoreError>]) -> bool {
    let mut added = spec.children.iter().filter_map(|child| child.stands_for());
    added.any(|index| !matches!(results.get(index), Some(Ok(id)) if id.stands_for().is_none()))
}

/// The definition with the ids of children that the batch has added.
fn resolved<'a>(spec: Cow<'a, JobSpec>, results: &[Result<JobId, StoreError>]) -> Cow<'a, JobSpec> {
    if spec.children.iter().all(|child| child.stands_for().is_none()) {
        return spec;
    }
    let mut spec = spec.into_owned();
    for child in &mut spec.children {
        if let Some(Ok(id)) = child.stands_for().and_then(|index| results.get(index)) {
            *child = *id;
        }
    }
    Cow::Owned(spec)
}

/// A job to insert.
struct NewRow<'a> {
    spec: Cow<'a, JobSpec>,
    next: NextFire,
    remark: &'a str,
}

impl<'a> NewRow<'a> {
    fn of(add: &Add<'a>, results: &[Result<JobId, StoreError>]) -> NewRow<'a> {
        let spec = resolved(Cow::Borrowed(&add.new.spec), results);
        // That of a workflow is stored with its version.
        let remark = if spec.workflow.is_some() { "" } else { &add.new.remark };
        NewRow { spec, next: add.next, remark }
    }
}

/// Adds both rows of each job.
async fn insert(
    s: &mut dyn Session,
    tables: &Tables,
    at: Timestamp,
    rows: &[NewRow<'_>],
) -> Result<Vec<JobId>, SessionError> {
    let new: Vec<_> = rows.iter().map(|row| (&*row.spec, row.next, row.remark)).collect();
    let ids = jobs::insert(s, tables, &new, at).await?;
    let job = |(id, row): (&JobId, &NewRow<'_>)| {
        let (next_fire_at, claim_at) = jobs::next_columns(row.next);
        let enabled = !matches!(row.next, NextFire::Never);
        (Job { enabled, next_fire_at, ..jobs::new(*id, row.spec.clone().into_owned()) }, claim_at)
    };
    let own: Vec<(Job, Option<Timestamp>)> = ids.iter().zip(rows).map(job).collect();
    jobs::insert_own(s, tables, &own.iter().map(|(job, claim_at)| (job, *claim_at)).collect::<Vec<_>>())
        .await?;
    Ok(ids)
}

// ── Existing jobs ───────────────────────────────────────────────────────────────────────────────────────────────

/// Writes changes of existing jobs. Returns the jobs with runs left to withdraw.
async fn write(
    s: &mut dyn Session,
    tables: &Tables,
    at: Timestamp,
    mut edits: Vec<Edit<'_>>,
    max: usize,
    planner: &dyn Planner,
    results: &mut [Result<JobId, StoreError>],
) -> Result<Vec<JobId>, SessionError> {
    if edits.is_empty() {
        return Ok(Vec::new());
    }
    for edit in &mut edits {
        edit.spec = edit.spec.take().map(|spec| resolved(spec, results));
    }
    let concerned = edits.iter().filter(|edit| edit.stop.is_some() || edit.spec.is_some());
    let taken = Taken::read(s, tables, &concerned.map(|edit| &edit.job).collect::<Vec<_>>(), at).await?;
    let unfinished = stop(s, tables, at, &edits, &taken, max, planner).await?;
    for edit in &edits {
        if let Some((Script { language, source, .. }, remark)) = edit.script {
            scripts::save_script(s, tables, edit.id(), *language, source, remark).await?;
        }
    }
    redefine(s, tables, at, &edits, &taken, planner).await?;
    let starts: Vec<&Edit<'_>> = edits.iter().filter(|edit| edit.start.is_some()).collect();
    withdraw::finish_all(s, tables, &starts.iter().map(|edit| edit.id().0).collect::<Vec<_>>()).await?;
    let mut nexts = Vec::with_capacity(starts.len());
    for edit in &starts {
        let spec = edit.spec.as_ref().map_or(&edit.job.spec, |spec| spec.as_ref());
        nexts.extend(edit.start.map(|next| (edit.id(), spec, next)));
    }
    jobs::set_next_times(s, tables, &nexts).await?;
    let counted_anew = starts.iter().filter(|edit| edit.job.fires_left() == Some(0));
    jobs::set_fires(s, &counted_anew.map(|edit| (edit.id(), 0)).collect::<Vec<_>>()).await?;
    let tags: Vec<(JobId, &[String])> =
        edits.iter().filter_map(|edit| Some((edit.id(), edit.tags?))).collect();
    job_tags::replace(s, &tags).await?;
    Ok(unfinished)
}

/// Stops and deletes jobs. Returns those with runs left to withdraw.
async fn stop(
    s: &mut dyn Session,
    tables: &Tables,
    at: Timestamp,
    edits: &[Edit<'_>],
    taken: &BTreeMap<i64, Taken>,
    max: usize,
    planner: &dyn Planner,
) -> Result<Vec<JobId>, SessionError> {
    let with = |scope: Scope| -> Vec<i64> {
        edits.iter().filter(|edit| edit.stop == Some(scope)).map(|edit| edit.id().0).collect()
    };
    let (stopped, deleted) = (with(Scope::Scheduled), with(Scope::All));
    let ending = edits.iter().filter(|edit| edit.stop.is_some()).map(|edit| &edit.job);
    settle(s, tables, ending, at, Unclaimed::Cancelled, planner).await?;
    if !stopped.is_empty() {
        jobs::stop(s, &stopped, at).await?;
        taken::remember(s, &stopped, taken).await?;
    }
    if !deleted.is_empty() {
        delete_rows(s, &deleted).await?;
    }
    let mut left = withdraw::begin(s, tables, &stopped, Scope::Scheduled, at, max).await?;
    left.extend(withdraw::begin(s, tables, &deleted, Scope::All, at, max).await?);
    Ok(left)
}

/// Deletes the rows of jobs, but not those of their runs.
pub async fn delete_rows(s: &mut dyn Session, jobs: &[i64]) -> Result<(), SessionError> {
    if jobs.is_empty() {
        return Ok(());
    }
    for (table, key) in [
        ("tw_job", "job_id"),
        ("tw_job_tag", "job_id"),
        ("tw_step_job", "job_id"),
        ("tw_workflow_version", "job_id"),
        (declare::TABLE, "job_id"),
        ("xxl_job_info", "id"),
        ("xxl_job_logglue", "job_id"),
    ] {
        s.delete(table, key, jobs).await?;
    }
    Ok(())
}

/// Replaces definitions. Fires of the old schedule that are due stay, later ones are cancelled.
async fn redefine(
    s: &mut dyn Session,
    tables: &Tables,
    at: Timestamp,
    edits: &[Edit<'_>],
    taken: &BTreeMap<i64, Taken>,
    planner: &dyn Planner,
) -> Result<(), SessionError> {
    let changed = |edit: &Edit<'_>| -> Option<Job> {
        let spec = edit.spec.as_ref()?.clone().into_owned();
        Some(Job { spec, revision: edit.job.revision + 1, problem: None, ..edit.job.clone() })
    };
    let mut edited: Vec<(&Edit<'_>, Job)> =
        edits.iter().filter_map(|edit| Some((edit, changed(edit)?))).collect();
    if edited.is_empty() {
        return Ok(());
    }
    cancel_after(s, tables, &edited.iter().map(|(edit, _)| edit.id().0).collect::<Vec<_>>(), at).await?;
    let going_on = |(edit, _): &&(&Edit<'_>, Job)| edit.goes_on();
    let settled = edited.iter().filter(going_on).map(|(edit, _)| &edit.job);
    let counted = settle(s, tables, settled, at, Unclaimed::Sent, planner).await?;
    for (edit, job) in &mut edited {
        job.fires = counted.get(&edit.id().0).copied().unwrap_or(job.fires);
    }
    let going_on: Vec<&(&Edit<'_>, Job)> = edited.iter().filter(going_on).collect();
    let after: Vec<&Job> = edited.iter().map(|(_, job)| job).collect();
    jobs::update(s, tables, &after, at).await?;
    jobs::update_own(s, tables, &after).await?;
    let workflows = edited.iter().filter_map(|(edit, job)| edit.workflow(job));
    versions::add(s, at, &workflows.collect::<Vec<_>>()).await?;

    // A job that waits for the end of a run keeps waiting.
    let is_idle = |job: &&Job| job.next_fire_at.is_none() && job.spec.workdays.is_none();
    let idle = going_on.iter().map(|(_, job)| job).filter(is_idle).map(|job| job.id.0);
    let waiting = jobs::with_scheduled_runs(s, &idle.collect::<Vec<_>>()).await?;
    let firing = going_on.iter().map(|(_, job)| job).filter(|job| !waiting.contains(&job.id.0));
    let firing: Vec<&Job> = firing.collect();
    if tables.sees_taken && !firing.is_empty() {
        let ids: Vec<i64> = firing.iter().map(|job| job.id.0).collect();
        taken::forget_ahead(s, &ids, at).await?;
        taken::remember(s, &ids, taken).await?;
    }
    let after = taken::fire_around(s, tables, &firing, taken, at).await?;
    let mut nexts = Vec::with_capacity(firing.len());
    for job in &firing {
        let after = after.get(&job.id.0).copied().unwrap_or(at);
        nexts.push((job.id, &job.spec, planner.next_after(job, after)));
    }
    jobs::set_next_times(s, tables, &nexts).await
}

/// Condition on `tw_run` for fires of jobs after a time that no node has dispatched yet.
fn is_ahead() -> String {
    format!(
        "job_id IN ? AND scheduled_ms > ? AND {IS_SCHEDULED} AND attempt = 1 AND state IN ({WAITING}, {CLAIMED})"
    )
}

/// Lets jobs be claimed no further ahead of their fires if more than `max` of them are claimed; returns these jobs.
/// Those in between are claimed, so none is late.
pub async fn hold_back(s: &mut dyn Session, jobs: &[JobId], max: usize) -> Result<Vec<JobId>, SessionError> {
    if jobs.is_empty() {
        return Ok(Vec::new());
    }
    let now = s.now().await?;
    let sql = format!(
        "SELECT job_id FROM tw_run WHERE {} GROUP BY job_id HAVING COUNT(*) > ? ORDER BY job_id",
        is_ahead()
    );
    let ids = Value::Ids(jobs.iter().map(|job| job.0).collect());
    let most = i64::try_from(max).unwrap_or(i64::MAX);
    let rows = s.query(&sql, &[ids, now.into(), most.into()], Lock::None).await?;
    let held = rows.into_iter().map(|row| row.read().int()).collect::<Result<Vec<_>, _>>()?;
    if !held.is_empty() {
        let sql = "UPDATE tw_job SET claim_ms = next_ms WHERE job_id IN ? AND claim_ms < next_ms";
        s.execute(sql, &[Value::Ids(held.clone())]).await?;
    }
    Ok(held.into_iter().map(JobId).collect())
}

/// Cancels the undispatched fires of old schedules after `at`: at once if no node has claimed them, otherwise by
/// asking the node. They are within the look-ahead of a claim, and [`hold_back`] keeps them few for each job.
pub async fn cancel_after(
    s: &mut dyn Session,
    tables: &Tables,
    jobs: &[i64],
    at: Timestamp,
) -> Result<(), SessionError> {
    let tail = format!("WHERE {}", is_ahead());
    let open = runs::lock_matching(s, &tail, &[Value::Ids(jobs.to_vec()), at.into()]).await?;
    let (waiting, claimed): (Vec<Run>, Vec<Run>) =
        open.into_iter().partition(|run| run.state == RunState::Waiting);
    let is_unsent = |run: &Run| run.state == RunState::Claimed;
    let asked: Vec<Run> = claimed.into_iter().filter(is_unsent).filter_map(asked_to_cancel).collect();
    runs::save(s, &asked).await?;
    withdraw::close_withdrawn(s, tables, at, waiting).await
}
