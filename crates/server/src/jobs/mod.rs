//! Jobs as XXL-JOB's tools manage them: its form is checked and becomes a definition for the engine.
//!
//! Both doors for tools come through here, the web API's and the newest lineage's `/api/addJob` and so on, so what is
//! allowed is decided once. A job that somebody may not see is answered like one that does not exist.

mod children;
mod form;
mod rate;

use cron::{Schedule, Timestamp};
use engine::{AppId, Job, JobId, StoreError, Trigger};
use protocol::xxl::JobForm;
use store::Rights;

use crate::centre::Inside;
use crate::dispatch::SCRIPTS_OFF;
use crate::executors::{Candidates, Route};
use crate::people::Principal;
use crate::refusal::Refusal;
pub use form::{misfire_word, preview};
pub use rate::Rate;

/// The jobs that somebody may manage.
pub struct Jobs<'a> {
    /// Where they are.
    pub inside: &'a Inside,
    /// Who manages them.
    pub who: &'a Principal,
}

impl Jobs<'_> {
    /// Adds a job, and starts it if the form says so.
    pub async fn add(&self, form: &JobForm) -> Result<JobId, Refusal> {
        let app = self.app(form, Rights::EDIT).await?.ok_or_else(no_group)?;
        let now = self.inside.engine.now();
        let spec = form::new_spec(form, app, &self.inside.zone, now)?;
        if spec.script.is_some() {
            self.check_may_script(app)?;
        }
        if form.started {
            self.check_may_start(&spec.schedule, app, now)?;
        }
        let children = children::read(form.children.as_deref().unwrap_or_default())?;
        self.check_children(&children, None).await?;
        let spec = engine::JobSpec { children, ..spec };
        let job = self.inside.engine.create(&spec).await?;
        if form.started {
            self.inside.engine.start(job).await?;
        }
        Ok(job)
    }

    /// Changes a job. What XXL-JOB's form cannot say stays as it is.
    pub async fn update(&self, id: JobId, form: &JobForm) -> Result<(), Refusal> {
        let found = self.find(id, Rights::EDIT).await;
        let now = self.inside.engine.now();
        let before = found.as_ref().ok().map(|job| &job.spec);
        let mut spec = form::edited_spec(form, before, &self.inside.zone, now)?;
        if let Some(ids) = &form.children {
            spec.children = children::read(ids)?;
            self.check_children(&spec.children, Some(id)).await?;
        }
        if form.group.is_some() {
            let moved = self.app(form, Rights::EDIT).await?;
            spec.app = moved.ok_or_else(|| Refusal::new("jobGroup: there is no such group of executors"))?;
        }
        let job = found?;
        if spec.script.is_some() && spec.app != job.spec.app {
            self.check_may_script(spec.app)?;
        }
        if job.enabled && !fires_again(&spec.schedule, now) {
            return Err(Refusal::new(
                "scheduleConf: this schedule has no instant after now; stop the job first",
            ));
        }
        self.inside.engine.edit(id, spec, Some(job.revision)).await?;
        Ok(())
    }

    /// Deletes a job. One that is not there is as good as deleted.
    pub async fn remove(&self, id: JobId) -> Result<(), Refusal> {
        let job = self.inside.database.job(id).await?;
        if !job.is_some_and(|job| self.who.may(Rights::EDIT, job.spec.app)) {
            return Ok(());
        }
        match self.inside.engine.delete(id).await {
            Ok(_) | Err(StoreError::NoSuchJob(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Its schedule fires from now on.
    pub async fn start(&self, id: JobId) -> Result<(), Refusal> {
        let job = self.find(id, Rights::OPERATE).await?;
        self.check_may_start(&job.spec.schedule, job.spec.app, self.inside.engine.now())?;
        self.inside.engine.start(id).await?;
        Ok(())
    }

    /// Its schedule fires no more.
    pub async fn stop(&self, id: JobId) -> Result<(), Refusal> {
        self.find(id, Rights::OPERATE).await?;
        self.inside.engine.stop(id).await?;
        Ok(())
    }

    /// Runs it now, with that parameter, on one of the executors named, if some are. They must be the app's own.
    pub async fn trigger(&self, id: JobId, param: &str, addresses: &str) -> Result<(), Refusal> {
        let job = self.find(id, Rights::OPERATE).await?;
        let named = self.live_addresses(job.spec.app, addresses)?;
        let targets = match Route::read(&job.spec.route) {
            _ if named.is_empty() => vec![None],
            Some(Route::Broadcast) => named.into_iter().map(Some).collect(),
            route => {
                let among = Candidates::new(named);
                let route = route.unwrap_or(Route::First);
                vec![self.inside.directory.choose(route, &job, &among, self.inside.engine.now())]
            }
        };
        for address in targets {
            let trigger =
                Trigger { key: fastrand::i64(1..), at: None, param: Some(param.to_owned()), address };
            self.inside.engine.trigger_with(id, &trigger).await?;
        }
        Ok(())
    }

    /// Gives a job that is a script another source, and keeps the old one as a version.
    pub async fn save_script(&self, id: JobId, source: &str, remark: &str) -> Result<(), Refusal> {
        let job = self.find(id, Rights::VIEW).await?;
        self.check_may_script(job.spec.app)?;
        let script =
            job.spec.script.ok_or_else(|| Refusal(format!("job {id} calls a handler and has no script")))?;
        if !(REMARK_MIN..=REMARK_MAX).contains(&remark.chars().count()) {
            return Err(Refusal(format!(
                "glueRemark: say in {REMARK_MIN} to {REMARK_MAX} characters what is new"
            )));
        }
        if source.trim().is_empty() {
            return Err(Refusal::new("glueSource: enter the script"));
        }
        let source = form::source(script.language, source);
        self.inside.database.save_script(id, script.language, &source, remark).await?;
        Ok(())
    }

    /// Scripts are commands on all executors of an app: a right of its own, where they are wanted at all.
    fn check_may_script(&self, app: AppId) -> Result<(), Refusal> {
        match self.inside.scripts {
            false => Err(Refusal(format!("glueType: {SCRIPTS_OFF}"))),
            true if !self.who.may(Rights::SCRIPT, app) => Err(no_scripts()),
            true => Ok(()),
        }
    }

    /// A job that the caller may do that with.
    pub async fn find(&self, id: JobId, rights: Rights) -> Result<Job, Refusal> {
        let job = self.inside.database.job(id).await?;
        let job = job.filter(|job| self.who.may(rights, job.spec.app));
        job.ok_or_else(|| StoreError::NoSuchJob(id).into())
    }

    /// The group that the form names, if the caller may do that there.
    async fn app(&self, form: &JobForm, rights: Rights) -> Result<Option<AppId>, Refusal> {
        let Some(app) = form.group.map(AppId).filter(|app| self.who.may(rights, *app)) else {
            return Ok(None);
        };
        Ok(self.inside.database.app(app).await?.map(|app| app.id))
    }

    fn check_may_start(&self, schedule: &Schedule, app: AppId, now: Timestamp) -> Result<(), Refusal> {
        match schedule {
            _ if !self.who.may(Rights::OPERATE, app) => {
                Err(Refusal::new("you may not start jobs of this group"))
            }
            Schedule::Never => {
                Err(Refusal::new("scheduleType: a job without a schedule (NONE) cannot be started"))
            }
            schedule if !fires_again(schedule, now) => {
                Err(Refusal::new("scheduleConf: this schedule has no instant after now"))
            }
            _ => Ok(()),
        }
    }

    /// The executors that a list names. All of them are registered for the app, or the list is refused: the app's token
    /// goes to whoever is called.
    fn live_addresses(&self, app: AppId, list: &str) -> Result<Vec<String>, Refusal> {
        let live = self.inside.directory.sightings(app);
        let plain = |address: &str| address.trim().trim_end_matches('/').to_owned();
        let named = list.split(',').filter(|address| !address.trim().is_empty());
        named
            .map(|address| {
                let own = live.iter().find(|seen| plain(&seen.address) == plain(address));
                own.map(|seen| seen.address.clone()).ok_or_else(|| {
                    Refusal::new(
                        "addressList: names an address that is not a registered executor of this job's group",
                    )
                })
            })
            .collect()
    }
}

/// Whether a schedule has another instant. A delay after the end of a run always has.
fn fires_again(schedule: &Schedule, now: Timestamp) -> bool {
    matches!(schedule, Schedule::FixedDelay { .. } | Schedule::Never) || schedule.next_after(now).is_some()
}

/// XXL-JOB's bounds for what is said about a change of a script.
const REMARK_MIN: usize = 4;
const REMARK_MAX: usize = 100;

fn no_group() -> Refusal {
    Refusal::new("jobGroup: choose a group of executors that exists")
}

fn no_scripts() -> Refusal {
    Refusal::new("glueType: you may not write scripts for this group; ask an administrator for the right to")
}
