//! Job rules that all APIs share.
//!
//! Every API that manages jobs (`/v1`, XXL-JOB's web API, `/api/addJob` of the newest protocol version and so on)
//! uses this module, so permissions are checked in one place. A job that the caller may not see gives the same
//! error as one that does not exist.

mod batch;
mod calendars;
mod children;
mod declared;
mod form;
mod interval;
mod xxl;

use std::sync::Arc;
use std::time::Duration;

use cron::{Schedule, Timestamp, Zone};
use engine::policy::Route;
use engine::{
    AppId, Change, Control, Engine, Job, JobId, JobSpec, NewJob, RunId, Script, Store as _, StoreError,
    Trigger,
};
use protocol::v1::{Event, ProblemCode};
use store::{Database, Rights};

use crate::centre::ServerState;
use crate::dispatch::SCRIPTS_OFF;
use crate::executors::{Candidates, Directory};
use crate::request_error::RequestError;
use crate::telemetry::Hints;
use crate::users::Principal;
pub use batch::{Family, was_overtaken};
pub use calendars::{ends_soon, replan_loop};
pub use form::{preview, source};

/// Parts of a node that the job rules use.
#[derive(Clone)]
pub struct JobRules {
    /// Database with the jobs.
    pub database: Arc<Database>,
    /// Engine that schedules them.
    pub engine: Engine,
    /// Registry of executors.
    pub directory: Arc<Directory>,
    /// Time zone of jobs without one.
    pub zone: Zone,
    hints: Arc<Hints>,
    /// Whether script jobs are allowed.
    scripts: bool,
    /// The shortest interval at which jobs may fire.
    min_interval: Duration,
}

impl JobRules {
    /// Job rules of a node.
    pub fn of(node: &ServerState) -> JobRules {
        JobRules {
            database: node.database.clone(),
            engine: node.engine.clone(),
            directory: node.directory.clone(),
            zone: node.zone.clone(),
            hints: node.hints.clone(),
            scripts: node.scripts,
            min_interval: node.min_interval,
        }
    }

    /// Job operations with the rights of a caller.
    pub fn by<'a>(&'a self, who: &'a Principal) -> Jobs<'a> {
        Jobs { rules: self, who }
    }
}

/// Job operations with the rights of one caller.
pub struct Jobs<'a> {
    rules: &'a JobRules,
    /// Caller and its rights.
    who: &'a Principal,
}

impl Jobs<'_> {
    /// Adds a job to an app that the caller may edit, with its belongings, and starts it if requested.
    pub async fn create(&self, spec: JobSpec, belongings: Belongings<'_>) -> Result<JobId, RequestError> {
        self.check_new(&spec, &belongings).await?;
        let job = self.rules.engine.add(&belongings.new_job(spec)).await?;
        self.rules.hints.announce(Event::Jobs);
        Ok(job)
    }

    /// Checks whether the caller, who may edit jobs of the app, may add this one.
    pub async fn check_new(&self, spec: &JobSpec, belongings: &Belongings<'_>) -> Result<(), RequestError> {
        self.check_new_definition(spec, belongings)?;
        self.check_children(&spec.children, None).await
    }

    /// The part of [`check_new`](Jobs::check_new) that does not depend on other jobs.
    fn check_new_definition(&self, spec: &JobSpec, belongings: &Belongings<'_>) -> Result<(), RequestError> {
        check_param(&spec.param)?;
        if spec.script.is_some() {
            self.check_may_script(spec.app)?;
        }
        self.check_interval(&spec.planned())?;
        if belongings.enabled == Some(true) {
            self.check_may_start(&spec.planned(), spec.app, self.rules.engine.now())?;
        }
        Ok(())
    }

    /// Replaces the definition of a job that the caller may edit, unless it was changed in the meantime. Its
    /// script stays.
    pub async fn edit(&self, job: &Job, spec: JobSpec) -> Result<(), RequestError> {
        self.check_edit(job, &spec, None).await?;
        self.rules.engine.edit(job.id, spec, Some(job.revision)).await?;
        self.rules.hints.announce(Event::Jobs);
        Ok(())
    }

    /// Like `edit`, but also replaces script and belongings, in one transaction. Call
    /// [`check_edit`](Jobs::check_edit) first.
    pub async fn put(
        &self,
        job: &Job,
        spec: JobSpec,
        belongings: Belongings<'_>,
    ) -> Result<(), RequestError> {
        let mut done = self.change(&[belongings.put(job, spec)], true).await;
        done.pop().unwrap_or_else(|| Err(StoreError::NoSuchJob(job.id).into())).map(drop)
    }

    /// Checks whether the caller, who may edit the job, may give it that definition, and start or stop it.
    pub async fn check_edit(
        &self,
        job: &Job,
        spec: &JobSpec,
        enabled: Option<bool>,
    ) -> Result<(), RequestError> {
        self.check_new_values(job, spec, enabled)?;
        match spec.children == job.spec.children {
            true => Ok(()),
            false => self.check_children(&spec.children, Some(job)).await,
        }
    }

    /// The part of [`check_edit`](Jobs::check_edit) that does not depend on other jobs.
    fn check_new_values(&self, job: &Job, spec: &JobSpec, enabled: Option<bool>) -> Result<(), RequestError> {
        if spec.param != job.spec.param {
            check_param(&spec.param)?;
        }
        let moves = spec.app != job.spec.app;
        if spec.script.as_ref().is_some_and(|script| moves || is_new_script(job, script)) {
            self.check_may_script(spec.app)?;
        }
        if spec.schedule != job.spec.schedule {
            self.check_interval(&spec.planned())?;
        }
        self.check_operates(job, spec, enabled.unwrap_or(job.enabled))?;
        let now = self.rules.engine.now();
        match enabled {
            Some(true) if !job.enabled => self.check_may_start(&spec.planned(), spec.app, now),
            enabled if enabled.unwrap_or(true) && job.enabled && !fires_again(&spec.planned(), now) => {
                Err(RequestError::field("schedule", "this schedule has no future fires; stop the job first"))
            }
            _ => Ok(()),
        }
    }

    /// An edit that starts or stops a job needs the right to operate it. That is: enabling or disabling the job,
    /// changing whether its schedule has a future fire, and moving it while it is enabled, which stops it in one
    /// app and starts it in the other.
    fn check_operates(&self, job: &Job, spec: &JobSpec, enabled: bool) -> Result<(), RequestError> {
        let now = self.rules.engine.now();
        let state = |enabled: bool, spec: &JobSpec| (enabled, enabled && fires(spec, now));
        let (before, after) = (state(job.enabled, &job.spec), state(enabled, spec));
        if before == after && (spec.app == job.spec.app || !enabled) {
            return Ok(());
        }
        let stops = job.enabled && !self.who.may(Rights::OPERATE, job.spec.app);
        let starts = enabled && !self.who.may(Rights::OPERATE, spec.app);
        if stops || starts { Err(may_not_operate()) } else { Ok(()) }
    }

    /// Deletes a job that the caller may edit. A job that was deleted in the meantime is no error.
    pub async fn delete(&self, job: &Job) -> Result<(), RequestError> {
        self.check_delete(job)?;
        match self.rules.engine.delete(job.id).await {
            Ok(_) | Err(StoreError::NoSuchJob(_)) => {
                self.rules.hints.announce(Event::Jobs);
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    fn check_delete(&self, job: &Job) -> Result<(), RequestError> {
        match job.enabled && !self.who.may(Rights::OPERATE, job.spec.app) {
            true => Err(may_not_operate()),
            false => Ok(()),
        }
    }

    fn check_stop(&self, job: &Job) -> Result<(), RequestError> {
        if self.who.may(Rights::OPERATE, job.spec.app) { Ok(()) } else { Err(may_not_operate()) }
    }

    /// Starts the schedule of a job.
    pub async fn start(&self, job: &Job) -> Result<(), RequestError> {
        self.check_may_start(&job.spec.planned(), job.spec.app, self.rules.engine.now())?;
        self.rules.engine.start(job.id).await?;
        self.rules.hints.announce(Event::Jobs);
        Ok(())
    }

    /// Stops the schedule of a job.
    pub async fn stop(&self, job: &Job) -> Result<(), RequestError> {
        self.check_stop(job)?;
        self.rules.engine.stop(job.id).await?;
        self.rules.hints.announce(Event::Jobs);
        Ok(())
    }

    /// Triggers a job now, on one of the named executors (broadcast: on each) if there are any; they must belong to
    /// the app. The same key for the same job returns the same run.
    pub async fn trigger(
        &self,
        job: &Job,
        key: i64,
        param: Option<String>,
        named: Vec<String>,
    ) -> Result<RunId, RequestError> {
        check_param(param.as_deref().unwrap_or_default())?;
        let targets = match job.spec.route.known() {
            _ if named.is_empty() => vec![None],
            Some(Route::Broadcast) => named.into_iter().map(Some).collect(),
            route => {
                let among = Candidates::new(named);
                let route = route.unwrap_or(Route::First);
                vec![self.rules.directory.choose(route, job, &among, self.rules.engine.now())]
            }
        };
        self.rules.engine.check_room(job.spec.app).await?;
        let mut first = None;
        for (address, offset) in targets.into_iter().zip(0_i64..) {
            let (key, by) = (key.wrapping_add(offset), Some(self.who.user().to_owned()));
            let trigger = Trigger { key, at: None, param: param.clone(), address, by };
            let run = self.rules.engine.trigger_with(job.id, &trigger).await?;
            first.get_or_insert(run);
        }
        first.ok_or_else(|| RequestError::new(ProblemCode::AppOffline, "no executor is given"))
    }

    /// Replaces the script of a job, and keeps the old one as a version.
    pub async fn save_script(
        &self,
        job: &Job,
        language: engine::ScriptLanguage,
        source: &str,
        remark: &str,
    ) -> Result<(), RequestError> {
        self.check_may_script(job.spec.app)?;
        if source.trim().is_empty() {
            return Err(RequestError::field("source", "must not be empty"));
        }
        let source = form::source(language, source);
        self.rules.database.save_script(job.id, language, &source, remark).await?;
        self.rules.hints.announce(Event::Jobs);
        Ok(())
    }

    /// Scripts run commands on all executors of an app, so they need their own right, and can be disabled for the
    /// whole node.
    fn check_may_script(&self, app: AppId) -> Result<(), RequestError> {
        match self.rules.scripts {
            false => Err(RequestError::field("script", SCRIPTS_OFF)),
            true if !self.who.may(Rights::SCRIPT, app) => Err(no_scripts()),
            true => Ok(()),
        }
    }

    /// Finds a job in which the caller has these rights.
    pub async fn find(&self, id: JobId, rights: Rights) -> Result<Job, RequestError> {
        let job = self.rules.database.job(id).await?;
        let job = job.filter(|job| self.who.may(rights, job.spec.app));
        job.ok_or_else(|| StoreError::NoSuchJob(id).into())
    }

    fn check_interval(&self, schedule: &Schedule) -> Result<(), RequestError> {
        interval::check(schedule, self.rules.min_interval, self.rules.engine.now())
    }

    fn check_may_start(&self, schedule: &Schedule, app: AppId, now: Timestamp) -> Result<(), RequestError> {
        match schedule {
            _ if !self.who.may(Rights::OPERATE, app) => Err(may_not_operate()),
            Schedule::Never => {
                Err(RequestError::field("schedule.kind", "a job without a schedule (NONE) cannot be started"))
            }
            schedule if !fires_again(schedule, now) => {
                Err(RequestError::field("schedule", "this schedule has no future fires"))
            }
            schedule => interval::check(schedule, self.rules.min_interval, now),
        }
    }

    /// Registered addresses of the named executors. Rejects the list unless all belong to the app, because the
    /// app's token is sent to them.
    pub fn live_addresses<'n>(
        &self,
        app: AppId,
        named: impl IntoIterator<Item = &'n str>,
    ) -> Result<Vec<String>, RequestError> {
        let live = self.rules.directory.sightings(app);
        let plain = |address: &str| address.trim().trim_end_matches('/').to_owned();
        let registered = |address: &str| {
            let own = live.iter().find(|seen| plain(&seen.address) == plain(address));
            own.map(|seen| seen.address.clone()).ok_or_else(|| {
                let why = "must be the address of a registered executor of the job's app";
                RequestError::field("address", why)
            })
        };
        named.into_iter().map(registered).collect()
    }
}

/// Rejects a parameter that is too long for one of the databases.
pub fn check_param(param: &str) -> Result<(), RequestError> {
    let length = param.chars().count();
    match length <= PARAM_MAX {
        true => Ok(()),
        false => Err(RequestError::field(
            "param",
            format!("has {length} characters; at most {PARAM_MAX} are allowed"),
        )),
    }
}

/// Maximum length of a parameter in characters: MySQL's column holds 65 535 bytes, and a character takes up to
/// four.
const PARAM_MAX: usize = 16_000;

/// Attributes of a job beside its definition.
#[derive(Default)]
pub struct Belongings<'a> {
    /// Whether its schedule fires. If `None`, an existing job stays as it is and a new one is stopped.
    pub enabled: Option<bool>,
    /// Tags by which users find it.
    pub tags: Vec<String>,
    /// Remark on the script, if the script is new.
    pub remark: &'a str,
}

impl Belongings<'_> {
    /// A new job with that definition.
    pub fn new_job(self, spec: JobSpec) -> NewJob {
        let (enabled, remark) = (self.enabled == Some(true), self.remark.to_owned());
        NewJob { spec, enabled, tags: self.tags, remark }
    }

    /// The change of a job to that definition, unless it was changed in the meantime.
    pub fn put(self, job: &Job, spec: JobSpec) -> Change {
        let Belongings { enabled, tags, remark } = self;
        let (spec, revision) = (Box::new(spec), Some(job.revision));
        Change::Control(job.id, Control::Put { spec, revision, enabled, tags, remark: remark.to_owned() })
    }
}

fn is_new_script(job: &Job, script: &Script) -> bool {
    let same = |own: &Script| (own.language, &own.source) == (script.language, &script.source);
    !job.spec.script.as_ref().is_some_and(same)
}

/// Whether a job with this definition fires again while it is enabled.
fn fires(spec: &JobSpec, now: Timestamp) -> bool {
    match spec.schedule {
        Schedule::FixedDelay { .. } => spec.valid_until.is_none_or(|until| until > now),
        _ => spec.next_after(now).is_some(),
    }
}

/// Whether a schedule has another fire. A fixed delay after the end of a run always has.
fn fires_again(schedule: &Schedule, now: Timestamp) -> bool {
    matches!(schedule, Schedule::FixedDelay { .. } | Schedule::Never) || schedule.next_after(now).is_some()
}

fn may_not_operate() -> RequestError {
    RequestError::new(
        ProblemCode::NotAllowed,
        "this starts or stops a job, which requires the right to operate in its app",
    )
}

fn no_scripts() -> RequestError {
    let why = "you may not edit scripts in this app; ask an administrator for the right";
    RequestError::new(ProblemCode::NotAllowed, why).named("script")
}
