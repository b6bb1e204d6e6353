//! Decides about each change of a batch, without writing anything.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use engine::{
    AppId, CalendarId, Change, Control, Job, JobId, JobSpec, NewJob, NextFire, Planner, Script, StoreError,
};
use timer::Timestamp;

use super::taken::{self, JAVA_READ_AHEAD};
use super::{Add, Decision, Edit};
use crate::adopt::claim_of;
use crate::calendars;
use crate::database::Tables;
use crate::jobs::{self, Stored};
use crate::records::{apps, job_tags, scripts};
use crate::runs::{CANCELLING, IS_SCHEDULED};
use crate::session::{Lock, Session, SessionError, Value};
use crate::withdraw::Scope;
use crate::workflows::versions;

/// Rows that decide about a batch. The jobs and apps are locked.
pub struct Facts {
    /// The database's current time.
    pub at: Timestamp,
    jobs: BTreeMap<i64, Stored>,
    /// Jobs that have one of the wanted keys.
    holders: BTreeMap<String, JobId>,
    /// Keys that earlier changes of the batch take.
    promised: BTreeSet<String>,
    apps: BTreeSet<AppId>,
    /// Revisions of the work calendars that the definitions name, which are locked.
    calendars: BTreeMap<CalendarId, i64>,
    /// The last fire of each job that a Java admin, or we, took ahead.
    last_taken: BTreeMap<i64, Timestamp>,
    /// Scheduled times of runs that nodes still have to release after earlier changes.
    unsettled: BTreeMap<i64, BTreeSet<Timestamp>>,
}

impl Facts {
    /// Locks and reads. A job that XXL-JOB created gets a row of ours.
    pub async fn read(
        s: &mut dyn Session,
        tables: &Tables,
        changes: &[Change],
        planner: &dyn Planner,
    ) -> Result<Facts, SessionError> {
        let ids = changes.iter().filter_map(|change| match change {
            Change::Control(job, _) => Some(job.0),
            Change::Add(_) => None,
        });
        let ids: Vec<i64> = ids.collect::<BTreeSet<_>>().into_iter().collect();
        jobs::lock(s, &ids, Lock::Wait).await?;
        let jobs = jobs::load(s, tables, &ids).await?;
        let foreign = jobs.values().filter(|stored| stored.shadow.is_none());
        let foreign: Vec<_> = foreign.map(|stored| (stored, claim_of(&stored.job, planner))).collect();
        if !foreign.is_empty() {
            jobs::insert_adopted(s, tables, &foreign).await?;
        }
        let wanted: Vec<&JobSpec> = changes.iter().filter_map(definition).collect();
        let starts = changes.iter().filter_map(|change| match change {
            Change::Control(job, Control::Start | Control::Put { enabled: Some(true), .. }) => Some(job.0),
            _ => None,
        });
        let last_taken = match tables.sees_taken {
            true => taken::last_taken(s, &starts.collect::<Vec<_>>()).await?,
            false => BTreeMap::new(),
        };
        // An app that a job already has is not checked again.
        let moves = |change: &Change| -> Option<AppId> {
            let app = definition(change)?.app;
            let before = match change {
                Change::Control(job, _) => jobs.get(&job.0).map(|stored| stored.job.spec.app),
                Change::Add(_) => None,
            };
            (before != Some(app)).then_some(app)
        };
        let apps = changes.iter().filter_map(moves).collect();
        let unsettled = unsettled(s, &ids).await?;
        Ok(Facts { unsettled, ..Facts::new(s, jobs, &wanted, apps, last_taken).await? })
    }

    /// For new jobs only.
    pub async fn of_new(s: &mut dyn Session, wanted: &[&JobSpec]) -> Result<Facts, SessionError> {
        let apps = wanted.iter().map(|spec| spec.app).collect();
        Facts::new(s, BTreeMap::new(), wanted, apps, BTreeMap::new()).await
    }

    async fn new(
        s: &mut dyn Session,
        jobs: BTreeMap<i64, Stored>,
        wanted: &[&JobSpec],
        apps: BTreeSet<AppId>,
        last_taken: BTreeMap<i64, Timestamp>,
    ) -> Result<Facts, SessionError> {
        let holders = holders(s, wanted).await?;
        let apps = apps::lock(s, &apps).await?;
        let calendar = |spec: &&JobSpec| spec.workdays.as_ref().map(|workdays| workdays.calendar);
        let calendars = calendars::lock(s, wanted.iter().filter_map(calendar).collect()).await?;
        let at = s.now().await?;
        let (promised, unsettled) = (BTreeSet::new(), BTreeMap::new());
        Ok(Facts { at, jobs, holders, promised, apps, calendars, last_taken, unsettled })
    }

    /// Decides about each change.
    pub fn decide<'a>(
        &mut self,
        tables: &Tables,
        changes: &'a [Change],
        planner: &dyn Planner,
    ) -> Vec<Result<Decision<'a>, StoreError>> {
        let mut decided: Vec<Result<Decision<'a>, StoreError>> = Vec::with_capacity(changes.len());
        for change in changes {
            let spec = definition(change);
            let decision = check_children(spec, &decided).and_then(|()| match change {
                Change::Add(new) => self.decide_add(tables, new, planner),
                Change::Control(job, control) => self.decide_control(tables, *job, control, planner),
            });
            if decision.is_ok() {
                self.promised.extend(spec.and_then(|spec| spec.key.clone()));
            }
            decided.push(decision);
        }
        decided
    }

    fn decide_add<'a>(
        &self,
        tables: &Tables,
        new: &'a NewJob,
        planner: &dyn Planner,
    ) -> Result<Decision<'a>, StoreError> {
        self.check_definition(tables, &new.spec, None)?;
        job_tags::check(tables, &new.tags)?;
        match new.spec.workflow {
            Some(_) => versions::check_remark(tables, &new.remark)?,
            None => scripts::check_remark(tables, &new.remark)?,
        }
        let next = match new.enabled {
            true => self.first_fire(&jobs::new(JobId(0), new.spec.clone()), planner)?,
            false => NextFire::Never,
        };
        Ok(Decision::Add(Add { new, next }))
    }

    fn decide_control<'a>(
        &mut self,
        tables: &Tables,
        id: JobId,
        control: &'a Control,
        planner: &dyn Planner,
    ) -> Result<Decision<'a>, StoreError> {
        let stored = self.jobs.get(&id.0).ok_or(StoreError::NoSuchJob(id))?;
        let job = &stored.job;
        self.check_settled(job)?;
        let none = Edit {
            job: job.clone(),
            stop: None,
            script: None,
            spec: None,
            remark: "",
            start: None,
            tags: None,
        };
        let edit = match control {
            Control::Start => Edit { start: self.start(job, planner)?, ..none },
            Control::Stop => Edit { stop: Some(Scope::Scheduled), ..none },
            Control::Delete => Edit { stop: Some(Scope::All), ..none },
            Control::Replan => {
                let spec = stored.is_outdated().then(|| Cow::Owned(job.spec.clone()));
                Edit { spec, ..none }
            }
            Control::Edit { spec, revision } => {
                check_revision(job, *revision)?;
                self.check_definition(tables, spec, Some(job))?;
                Edit { spec: Some(Cow::Borrowed(&**spec)), ..none }
            }
            Control::Put { spec, revision, enabled, tags, remark } => {
                check_revision(job, *revision)?;
                job_tags::check(tables, tags)?;
                let script = new_script(&job.spec, spec);
                if let Some(script) = script {
                    jobs::check_source(tables, &script.source)?;
                    scripts::check_remark(tables, remark)?;
                }
                let script = script.map(|script| (script, remark.as_str()));
                let is_new_workflow = spec.workflow.is_some() && spec.workflow != job.spec.workflow;
                if is_new_workflow {
                    versions::check_remark(tables, remark)?;
                }
                // The caller does not set the time of a script's change.
                let before = JobSpec { script: spec.script.clone(), ..job.spec.clone() };
                let is_changed = **spec != before;
                if is_changed {
                    self.check_definition(tables, spec, Some(job))?;
                }
                let stop = (*enabled == Some(false) && job.enabled).then_some(Scope::Scheduled);
                let problem = job.problem.clone().filter(|_| !is_changed);
                let start = match *enabled == Some(true) {
                    true => self.start(&Job { spec: (**spec).clone(), problem, ..job.clone() }, planner)?,
                    false => None,
                };
                let spec = is_changed.then_some(Cow::Borrowed(&**spec));
                Edit { stop, script, spec, remark, start, tags: Some(tags), ..none }
            }
        };
        // A second change of the same job would be decided about rows that the first replaces.
        self.jobs.remove(&id.0);
        Ok(Decision::Edit(Box::new(edit)))
    }

    /// Rejects a change while a node may still send a due fire that an earlier change asked it to release: only its
    /// answer decides whether that fire is still to be sent.
    fn check_settled(&self, job: &Job) -> Result<(), StoreError> {
        let from = match job.enabled {
            true => job.next_fire_at,
            false => Some(Timestamp::from_millis(0)),
        };
        let Some(from) = from.filter(|from| *from <= self.at) else { return Ok(()) };
        let unsettled = self.unsettled.get(&job.id.0);
        match unsettled.is_some_and(|times| times.range(from..=self.at).next().is_some()) {
            true => Err(StoreError::Unsettled(job.id)),
            false => Ok(()),
        }
    }

    /// The first fire of a job that is started; `None` if it is started already.
    fn start(&self, job: &Job, planner: &dyn Planner) -> Result<Option<NextFire>, StoreError> {
        if let Some(problem) = &job.problem {
            return Err(StoreError::Invalid(format!("job {} cannot be started: {problem}", job.id)));
        }
        if job.enabled { Ok(None) } else { self.first_fire(job, planner).map(Some) }
    }

    fn first_fire(&self, job: &Job, planner: &dyn Planner) -> Result<NextFire, StoreError> {
        // Fires that a Java admin had taken before the job was stopped are still sent.
        let last = self.last_taken.get(&job.id.0).copied().unwrap_or_default();
        let after = last.clamp(self.at, self.at + JAVA_READ_AHEAD);
        // A job that has reached its maximum is counted anew.
        let fires = if job.fires_left() == Some(0) { 0 } else { job.fires };
        match planner.next_after(&Job { enabled: true, fires, ..job.clone() }, after) {
            NextFire::Never => Err(StoreError::Invalid(format!(
                "{} cannot be started: its schedule has no future fires",
                if job.id.0 > 0 { format!("job {}", job.id) } else { format!("the job `{}`", job.spec.name) }
            ))),
            next => Ok(next),
        }
    }

    /// Rejects a definition that cannot be stored, for a new job or in place of the job's.
    pub fn check_definition(
        &self,
        tables: &Tables,
        spec: &JobSpec,
        job: Option<&Job>,
    ) -> Result<(), StoreError> {
        jobs::check(tables, spec)?;
        if let Some(key) = &spec.key {
            let holder = self.holders.get(key).copied();
            if let Some(holder) = holder.filter(|holder| job.is_none_or(|job| job.id != *holder)) {
                let why = format!("job {holder} already has the key `{key}`; keys are unique");
                return Err(StoreError::Conflict(why));
            }
            if self.promised.contains(key) {
                return Err(StoreError::Conflict(format!("the key `{key}` occurs twice; keys are unique")));
            }
        }
        if let Some(workdays) = &spec.workdays
            && self.calendars.get(&workdays.calendar) != Some(&workdays.revision)
        {
            let why = format!("the work calendar `{}` was changed in the meantime; try again", workdays.name);
            return Err(StoreError::Conflict(why));
        }
        match job.is_some_and(|job| job.spec.app == spec.app) || self.apps.contains(&spec.app) {
            true => Ok(()),
            false => Err(StoreError::Invalid(format!(
                "app {} does not exist; choose another app for the job",
                spec.app.0
            ))),
        }
    }
}

/// The definition that a change contains, if it does.
fn definition(change: &Change) -> Option<&JobSpec> {
    match change {
        Change::Add(new) => Some(&new.spec),
        Change::Control(_, Control::Edit { spec, .. } | Control::Put { spec, .. }) => Some(spec),
        Change::Control(_, Control::Start | Control::Stop | Control::Replan | Control::Delete) => None,
    }
}

/// Rejects a definition with a child that an earlier change was to add, and that is rejected.
fn check_children(
    spec: Option<&JobSpec>,
    decided: &[Result<Decision<'_>, StoreError>],
) -> Result<(), StoreError> {
    let mut added = spec.into_iter().flat_map(|spec| &spec.children).filter_map(|child| child.stands_for());
    match added.all(|index| matches!(decided.get(index), Some(Ok(Decision::Add(_))))) {
        true => Ok(()),
        false => Err(StoreError::Invalid("a child of the job was rejected".into())),
    }
}

fn check_revision(job: &Job, revision: Option<i64>) -> Result<(), StoreError> {
    match revision {
        Some(revision) if revision != job.revision => Err(StoreError::Conflict(format!(
            "job {} has revision {}, not {revision}; read it again",
            job.id, job.revision
        ))),
        _ => Ok(()),
    }
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

/// Scheduled times of runs that nodes are asked to release, by job.
async fn unsettled(
    s: &mut dyn Session,
    jobs: &[i64],
) -> Result<BTreeMap<i64, BTreeSet<Timestamp>>, SessionError> {
    if jobs.is_empty() {
        return Ok(BTreeMap::new());
    }
    let sql = format!(
        "SELECT job_id, scheduled_ms FROM tw_run WHERE job_id IN ? AND state = {CANCELLING} AND {IS_SCHEDULED}"
    );
    let mut found: BTreeMap<i64, BTreeSet<Timestamp>> = BTreeMap::new();
    for row in s.query(&sql, &[Value::Ids(jobs.to_vec())], Lock::None).await? {
        let mut row = row.read();
        found.entry(row.int()?).or_default().insert(row.instant()?);
    }
    Ok(found)
}

/// The jobs that have the keys of these definitions.
async fn holders(s: &mut dyn Session, wanted: &[&JobSpec]) -> Result<BTreeMap<String, JobId>, SessionError> {
    let keys: BTreeSet<String> = wanted.iter().filter_map(|spec| spec.key.clone()).collect();
    if keys.is_empty() {
        return Ok(BTreeMap::new());
    }
    let sql = "SELECT job_key, job_id FROM tw_job WHERE job_key IN ?";
    let rows = s.query(sql, &[Value::Texts(keys.into_iter().collect())], Lock::None).await?;
    let holder = |row: crate::session::Row| {
        let mut row = row.read();
        Ok((row.text()?, JobId(row.int()?)))
    };
    rows.into_iter().map(holder).collect()
}
