//! Jobs, and what may be done with them: the rules that all doors share.
//!
//! Whatever a job is managed by (our own API, XXL-JOB's web API, the newest lineage's `/api/addJob` and so on) comes
//! through here, so what is allowed is decided once. A job that somebody may not see is answered like one that does not
//! exist.

mod children;
mod declared;
mod form;
mod interval;
mod rate;
mod xxl;

use cron::{Schedule, Timestamp};
use engine::{AppId, Job, JobId, JobSpec, NewJob, RunId, Script, StoreError, Trigger};
use protocol::v1::ProblemCode;
use store::Rights;

use crate::centre::Inside;
use crate::dispatch::SCRIPTS_OFF;
use crate::executors::{Candidates, Route};
use crate::fault::Fault;
use crate::people::Principal;
pub use form::{misfire_word, preview, source};
pub use rate::Rates;

/// The jobs that somebody may manage.
pub struct Jobs<'a> {
    /// Where they are.
    pub inside: &'a Inside,
    /// Who manages them.
    pub who: &'a Principal,
}

impl Jobs<'_> {
    /// Adds a job to an app that the caller may edit, with all that belongs to it, and starts it if asked to.
    pub async fn create(&self, spec: JobSpec, belongings: Belongings<'_>) -> Result<JobId, Fault> {
        self.check_new(&spec, &belongings).await?;
        let Belongings { enabled, tags, remark } = belongings;
        let enabled = enabled == Some(true);
        let script = spec.script.clone();
        let job = self.inside.engine.add(&NewJob { spec, enabled, tags }).await?;
        self.inside.hints.jobs();
        self.remark(job, script, remark).await;
        Ok(job)
    }

    /// Whether the caller, who may edit jobs of the app, may add this one.
    pub async fn check_new(&self, spec: &JobSpec, belongings: &Belongings<'_>) -> Result<(), Fault> {
        check_param(&spec.param)?;
        if spec.script.is_some() {
            self.check_may_script(spec.app)?;
        }
        self.check_interval(&spec.schedule)?;
        if belongings.enabled == Some(true) {
            self.check_may_start(&spec.schedule, spec.app, self.inside.engine.now())?;
        }
        self.check_children(&spec.children, None).await
    }

    /// Gives a job that the caller may edit another definition, if nobody else has meanwhile. Its script stays.
    pub async fn edit(&self, job: &Job, spec: JobSpec) -> Result<(), Fault> {
        self.check_edit(job, &spec, None).await?;
        self.inside.engine.edit(job.id, spec, Some(job.revision)).await?;
        self.inside.hints.jobs();
        Ok(())
    }

    /// The same, with all that belongs to the job, its script too, in one go: see [`check_edit`](Jobs::check_edit) first.
    pub async fn put(&self, job: &Job, spec: JobSpec, belongings: Belongings<'_>) -> Result<(), Fault> {
        let Belongings { enabled, tags, remark } = belongings;
        let script = spec.script.clone().filter(|script| is_new_script(job, script));
        self.inside.engine.put(job.id, spec, Some(job.revision), enabled, tags).await?;
        self.inside.hints.jobs();
        self.remark(job.id, script, remark).await;
        Ok(())
    }

    /// Says what is new about a script that was just saved. Without that it is saved all the same.
    async fn remark(&self, job: JobId, script: Option<Script>, remark: &str) {
        let Some(script) = script.filter(|_| !remark.is_empty()) else { return };
        if let Err(error) = self.inside.database.remark_script(job, &script.source, remark).await {
            tracing::warn!(%error, %job, remark, "a script is saved without what was said about it");
        }
    }

    /// Whether the caller, who may edit the job, may give it that definition, and start or stop it with that.
    pub async fn check_edit(&self, job: &Job, spec: &JobSpec, enabled: Option<bool>) -> Result<(), Fault> {
        if spec.param != job.spec.param {
            check_param(&spec.param)?;
        }
        if spec.children != job.spec.children {
            self.check_children(&spec.children, Some(job)).await?;
        }
        let moves = spec.app != job.spec.app;
        if spec.script.as_ref().is_some_and(|script| moves || is_new_script(job, script)) {
            self.check_may_script(spec.app)?;
        }
        if spec.schedule != job.spec.schedule {
            self.check_interval(&spec.schedule)?;
        }
        self.check_operates(job, spec, enabled.unwrap_or(job.enabled))?;
        let now = self.inside.engine.now();
        match enabled {
            Some(true) if !job.enabled => self.check_may_start(&spec.schedule, spec.app, now),
            enabled if enabled.unwrap_or(true) && job.enabled && !fires_again(&spec.schedule, now) => {
                Err(Fault::field("schedule", "this schedule has no instant after now; stop the job first"))
            }
            _ => Ok(()),
        }
    }

    /// An edit that starts or stops a job needs the right to operate, whatever it is called: enabling or disabling it,
    /// giving it a schedule without a future fire or its first one with some, and moving it while it is enabled, which stops it in one app
    /// and starts it in the other.
    fn check_operates(&self, job: &Job, spec: &JobSpec, enabled: bool) -> Result<(), Fault> {
        let now = self.inside.engine.now();
        let state = |enabled: bool, spec: &JobSpec| (enabled, enabled && fires(spec, now));
        let (before, after) = (state(job.enabled, &job.spec), state(enabled, spec));
        if before == after && (spec.app == job.spec.app || !enabled) {
            return Ok(());
        }
        let stops = job.enabled && !self.who.may(Rights::OPERATE, job.spec.app);
        let starts = enabled && !self.who.may(Rights::OPERATE, spec.app);
        if stops || starts { Err(may_not_operate()) } else { Ok(()) }
    }

    /// Deletes a job that the caller may edit. One that is gone meanwhile is as good as deleted.
    pub async fn delete(&self, job: &Job) -> Result<(), Fault> {
        if job.enabled && !self.who.may(Rights::OPERATE, job.spec.app) {
            return Err(may_not_operate());
        }
        match self.inside.engine.delete(job.id).await {
            Ok(_) | Err(StoreError::NoSuchJob(_)) => {
                self.inside.hints.jobs();
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Its schedule fires from now on.
    pub async fn start(&self, job: &Job) -> Result<(), Fault> {
        self.check_may_start(&job.spec.schedule, job.spec.app, self.inside.engine.now())?;
        self.inside.engine.start(job.id).await?;
        self.inside.hints.jobs();
        Ok(())
    }

    /// Its schedule fires no more.
    pub async fn stop(&self, job: &Job) -> Result<(), Fault> {
        if !self.who.may(Rights::OPERATE, job.spec.app) {
            return Err(may_not_operate());
        }
        self.inside.engine.stop(job.id).await?;
        self.inside.hints.jobs();
        Ok(())
    }

    /// Runs it now; on one of the executors named, if some are. They must be the app's own. The same key for the same
    /// job gives the same run again.
    pub async fn trigger(
        &self,
        job: &Job,
        key: i64,
        param: Option<String>,
        named: Vec<String>,
    ) -> Result<RunId, Fault> {
        check_param(param.as_deref().unwrap_or_default())?;
        let targets = match Route::read(&job.spec.route) {
            _ if named.is_empty() => vec![None],
            Some(Route::Broadcast) => named.into_iter().map(Some).collect(),
            route => {
                let among = Candidates::new(named);
                let route = route.unwrap_or(Route::First);
                vec![self.inside.directory.choose(route, job, &among, self.inside.engine.now())]
            }
        };
        self.inside.engine.check_room(job.spec.app).await?;
        let mut first = None;
        for (address, offset) in targets.into_iter().zip(0_i64..) {
            let trigger = Trigger { key: key.wrapping_add(offset), at: None, param: param.clone(), address };
            let run = self.inside.engine.trigger_with(job.id, &trigger).await?;
            first.get_or_insert(run);
        }
        first.ok_or_else(|| Fault::new(ProblemCode::AppOffline, "no executor was named"))
    }

    /// Gives a job another script, and keeps the old one as a version.
    pub async fn save_script(
        &self,
        job: &Job,
        language: engine::Language,
        source: &str,
        remark: &str,
    ) -> Result<(), Fault> {
        self.check_may_script(job.spec.app)?;
        if source.trim().is_empty() {
            return Err(Fault::field("source", "enter the script"));
        }
        let source = form::source(language, source);
        self.inside.database.save_script(job.id, language, &source, remark).await?;
        self.inside.hints.jobs();
        Ok(())
    }

    /// Scripts are commands on all executors of an app: a right of its own, where they are wanted at all.
    fn check_may_script(&self, app: AppId) -> Result<(), Fault> {
        match self.inside.scripts {
            false => Err(Fault::field("script", SCRIPTS_OFF)),
            true if !self.who.may(Rights::SCRIPT, app) => Err(no_scripts()),
            true => Ok(()),
        }
    }

    /// A job that the caller may do that with.
    pub async fn find(&self, id: JobId, rights: Rights) -> Result<Job, Fault> {
        let job = self.inside.database.job(id).await?;
        let job = job.filter(|job| self.who.may(rights, job.spec.app));
        job.ok_or_else(|| StoreError::NoSuchJob(id).into())
    }

    fn check_interval(&self, schedule: &Schedule) -> Result<(), Fault> {
        interval::check(schedule, self.inside.min_interval, self.inside.engine.now())
    }

    fn check_may_start(&self, schedule: &Schedule, app: AppId, now: Timestamp) -> Result<(), Fault> {
        match schedule {
            _ if !self.who.may(Rights::OPERATE, app) => Err(may_not_operate()),
            Schedule::Never => {
                Err(Fault::field("schedule.kind", "a job without a schedule (NONE) cannot be started"))
            }
            schedule if !fires_again(schedule, now) => {
                Err(Fault::field("schedule", "this schedule has no instant after now"))
            }
            schedule => interval::check(schedule, self.inside.min_interval, now),
        }
    }

    /// The executors that are named, as they registered. All of them are the app's, or the list is refused: the app's
    /// token goes to whoever is called.
    pub fn live_addresses<'n>(
        &self,
        app: AppId,
        named: impl IntoIterator<Item = &'n str>,
    ) -> Result<Vec<String>, Fault> {
        let live = self.inside.directory.sightings(app);
        let plain = |address: &str| address.trim().trim_end_matches('/').to_owned();
        let registered = |address: &str| {
            let own = live.iter().find(|seen| plain(&seen.address) == plain(address));
            own.map(|seen| seen.address.clone()).ok_or_else(|| {
                let why = "names an address that is not a registered executor of this job's group";
                Fault::field("address", why)
            })
        };
        named.into_iter().map(registered).collect()
    }
}

/// Refuses a parameter that is too long for one of the databases.
fn check_param(param: &str) -> Result<(), Fault> {
    let length = param.chars().count();
    match length <= PARAM_MAX {
        true => Ok(()),
        false => Err(Fault::field("param", format!("has {length} characters; {PARAM_MAX} are the most"))),
    }
}

/// Characters of a parameter: MySQL's column holds 65 535 bytes, and a character takes up to four.
const PARAM_MAX: usize = 16_000;

/// What belongs to a job beside its definition.
#[derive(Default)]
pub struct Belongings<'a> {
    /// Whether its schedule fires from now on; as before, or stopped, where nothing is said.
    pub enabled: Option<bool>,
    /// The words by which people find it.
    pub tags: Vec<String>,
    /// What is said about its script, if that is new.
    pub remark: &'a str,
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

/// Whether a schedule has another instant. A delay after the end of a run always has.
fn fires_again(schedule: &Schedule, now: Timestamp) -> bool {
    matches!(schedule, Schedule::FixedDelay { .. } | Schedule::Never) || schedule.next_after(now).is_some()
}

fn may_not_operate() -> Fault {
    Fault::new(
        ProblemCode::NotAllowed,
        "this starts or stops a job, which needs the right to operate in its app",
    )
}

fn no_scripts() -> Fault {
    let why = "you may not write scripts for this group; ask an administrator for the right to";
    Fault { field: Some("script"), ..Fault::new(ProblemCode::NotAllowed, why) }
}
