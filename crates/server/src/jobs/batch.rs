//! Changes of many jobs at once, with the same rules as for one.

use std::collections::{BTreeMap, BTreeSet};

use engine::{Change, Changed, Control, Job, JobId, JobSpec, Store as _, StoreError};
use protocol::v1::{BulkAction, Event, ProblemCode};
use store::Rights;

use super::children::{CHILDREN_MAX, FOLLOWED_MAX, wrong};
use super::{Belongings, Jobs};
use crate::request_error::RequestError;

impl Jobs<'_> {
    /// Applies changes that were checked; all or none of them if `atomic`.
    pub async fn change(&self, changes: &[Change], atomic: bool) -> Vec<Result<Changed, RequestError>> {
        if changes.is_empty() {
            return Vec::new();
        }
        let done = self.rules.engine.change(changes, atomic).await;
        self.rules.hints.announce(Event::Jobs);
        done.into_iter().map(|result| result.map_err(RequestError::from)).collect()
    }

    /// Checks whether the caller may do this with a job that the caller may view. Returns the change; a `move` goes
    /// to the app in `moved`.
    pub fn check_bulk(
        &self,
        action: BulkAction,
        job: &Job,
        moved: Option<engine::AppId>,
    ) -> Result<Change, RequestError> {
        let right = match action {
            BulkAction::Start | BulkAction::Stop => Rights::OPERATE,
            BulkAction::Delete | BulkAction::Move => Rights::EDIT,
        };
        if !self.who.may(right, job.spec.app) {
            let why = "this requires another right in the job's app";
            return Err(RequestError::new(ProblemCode::NotAllowed, why));
        }
        let control = match action {
            BulkAction::Start => {
                self.check_may_start(&job.spec.planned(), job.spec.app, self.rules.engine.now())?;
                Control::Start
            }
            BulkAction::Stop => {
                self.check_stop(job)?;
                Control::Stop
            }
            BulkAction::Delete => {
                self.check_delete(job)?;
                Control::Delete
            }
            BulkAction::Move => {
                let app =
                    moved.ok_or_else(|| RequestError::field("app", "must name the target of the move"))?;
                let spec = JobSpec { app, ..job.spec.clone() };
                self.check_new_values(job, &spec, None)?;
                Control::Edit { spec: Box::new(spec), revision: Some(job.revision) }
            }
        };
        Ok(Change::Control(job.id, control))
    }

    /// Checks whether the caller, who may edit jobs of the app, may add this one in a batch.
    pub fn check_new_in(
        &self,
        family: &Family,
        spec: &JobSpec,
        belongings: &Belongings<'_>,
    ) -> Result<(), RequestError> {
        self.check_new_definition(spec, belongings)?;
        family.check_count(&spec.children)
    }

    /// Checks whether the caller, who may edit the job, may give it that definition in a batch.
    pub async fn check_edit_in(
        &self,
        family: &mut Family,
        job: &Job,
        spec: &JobSpec,
        enabled: Option<bool>,
    ) -> Result<(), RequestError> {
        self.check_new_values(job, spec, enabled)?;
        if spec.children == job.spec.children {
            return Ok(());
        }
        family.check_count(&spec.children)?;
        self.check_no_circle(family, job.id, &spec.children).await
    }

    /// Rejects a cycle, jobs that would trigger each other forever, as they will be after the batch.
    pub async fn check_no_circle(
        &self,
        family: &mut Family,
        parent: JobId,
        children: &[JobId],
    ) -> Result<(), RequestError> {
        let (mut next, mut seen) = (children.to_vec(), BTreeSet::new());
        while let Some(id) = next.pop() {
            if id == parent {
                return Err(wrong(format!("must not lead back to job {parent}: a cycle of jobs never ends")));
            }
            if !seen.insert(id) {
                continue;
            }
            if seen.len() > FOLLOWED_MAX {
                return Err(wrong(format!("must not lead to more than {FOLLOWED_MAX} jobs")));
            }
            if !family.children.contains_key(&id) && id.stands_for().is_none() {
                let job = self.rules.database.job(id).await?;
                family.children.insert(id, job.map(|job| job.spec.children).unwrap_or_default());
            }
            next.extend(family.children.get(&id).into_iter().flatten());
        }
        Ok(())
    }
}

/// Children of jobs as they will be after a batch, as far as they are known.
#[derive(Default)]
pub struct Family {
    children: BTreeMap<JobId, Vec<JobId>>,
}

impl Family {
    /// Adds a job that the batch adds or changes.
    pub fn add(&mut self, job: JobId, children: &[JobId]) {
        self.children.insert(job, children.to_vec());
    }

    fn check_count(&self, children: &[JobId]) -> Result<(), RequestError> {
        match children.len() <= CHILDREN_MAX {
            true => Ok(()),
            false => Err(wrong(format!("{} jobs; at most {CHILDREN_MAX} are allowed", children.len()))),
        }
    }
}

/// Whether a change failed because another request changed or added the same job first.
pub fn was_overtaken(error: &RequestError) -> bool {
    matches!(error.store_error(), Some(StoreError::Conflict(_))) || error.code == ProblemCode::Conflict
}
