//! Job operations for the compat APIs: XXL-JOB's form is checked and converted to a definition.

use engine::{AppId, JobId, JobSpec};
use protocol::v1::ProblemCode;
use protocol::xxl::JobForm;
use store::Rights;

use super::{Belongings, Jobs, children, form, no_scripts};
use crate::request_error::RequestError;

impl Jobs<'_> {
    /// Adds a job, and starts it if the form requests it.
    pub async fn add_form(&self, form: &JobForm) -> Result<JobId, RequestError> {
        let none = || RequestError::invalid("jobGroup: choose an existing executor group");
        let app = self.group(form).await?.ok_or_else(none)?;
        let spec = form::new_spec(form, app, &self.rules.zone, self.rules.engine.now())?;
        let children = children::read(form.children.as_deref().unwrap_or_default())?;
        let belongings = Belongings { enabled: Some(form.started), ..Belongings::default() };
        self.create(JobSpec { children, ..spec }, belongings).await
    }

    /// Changes a job. Settings that XXL-JOB's form does not have stay unchanged.
    pub async fn update_form(&self, id: JobId, form: &JobForm) -> Result<(), RequestError> {
        let found = self.find(id, Rights::EDIT).await;
        let before = found.as_ref().ok().map(|job| &job.spec);
        let mut spec = form::edited_spec(form, before, &self.rules.zone, self.rules.engine.now())?;
        if let Some(ids) = &form.children {
            spec.children = children::read(ids)?;
            if let Ok(job) = &found {
                spec.children = self.edited_children(job, spec.children).await?;
            }
        }
        if form.group.is_some() {
            let moved = self.group(form).await?;
            spec.app =
                moved.ok_or_else(|| RequestError::invalid("jobGroup: this executor group does not exist"))?;
        }
        self.edit(&found?, spec).await
    }

    /// Deletes a job. As in XXL-JOB, deleting a job that does not exist succeeds, but only for callers who may
    /// edit every app. For others a missing job and a job of a foreign app must look the same, so both are
    /// rejected.
    pub async fn remove(&self, id: JobId) -> Result<(), RequestError> {
        match self.find(id, Rights::EDIT).await {
            Ok(job) => self.delete(&job).await,
            Err(error) if error.code == ProblemCode::NotFound && self.who.is_admin() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Starts a job.
    pub async fn start_by_id(&self, id: JobId) -> Result<(), RequestError> {
        self.start(&self.find(id, Rights::OPERATE).await?).await
    }

    /// Stops a job.
    pub async fn stop_by_id(&self, id: JobId) -> Result<(), RequestError> {
        self.stop(&self.find(id, Rights::OPERATE).await?).await
    }

    /// Triggers a job now, with that parameter, on one of the executors in the list (broadcast: on each), if it names
    /// any.
    pub async fn trigger_by_id(&self, id: JobId, param: &str, addresses: &str) -> Result<(), RequestError> {
        let job = self.find(id, Rights::OPERATE).await?;
        let named = addresses.split(',').filter(|address| !address.trim().is_empty());
        let named = self.live_addresses(job.spec.app, named)?;
        // In XXL-JOB, two equal requests are two runs, so the key is random. It leaves room to add an offset per
        // executor.
        let key = fastrand::i64(1..i64::MAX - i64::from(u16::MAX));
        self.trigger(&job, key, Some(param.to_owned()), named).await?;
        Ok(())
    }

    /// Replaces the source of a script job.
    pub async fn save_source(&self, id: JobId, source: &str, remark: &str) -> Result<(), RequestError> {
        let job = self.find(id, Rights::VIEW).await?;
        if !self.who.may(Rights::SCRIPT, job.spec.app) {
            return Err(no_scripts());
        }
        let none = || {
            RequestError::new(ProblemCode::Conflict, format!("job {id} calls a handler and has no script"))
        };
        let language = job.spec.script.as_ref().ok_or_else(none)?.language;
        if !(REMARK_MIN..=REMARK_MAX).contains(&remark.chars().count()) {
            return Err(RequestError::invalid(format!(
                "glueRemark: describe the change in {REMARK_MIN} to {REMARK_MAX} characters"
            )));
        }
        self.save_script(&job, language, source, remark).await
    }

    /// Group in the form, if the caller may edit jobs there.
    async fn group(&self, form: &JobForm) -> Result<Option<AppId>, RequestError> {
        let Some(app) = form.group.map(AppId).filter(|app| self.who.may(Rights::EDIT, *app)) else {
            return Ok(None);
        };
        Ok(self.rules.database.app(app).await?.map(|app| app.id))
    }
}

/// XXL-JOB's limits for the remark on a script change.
const REMARK_MIN: usize = 4;
const REMARK_MAX: usize = 100;
