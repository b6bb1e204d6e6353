//! `/jobinfo` and `/jobcode`: jobs and their scripts.

use engine::{AppId, JobId};
use protocol::xxl::{JobForm, JobView};
use serde_json::Value;
use store::{JobFilter, JobRow, Page, Rights};

use super::time;
use super::{Reply, Visit, value};
use crate::jobs::{self, Jobs};
use crate::request_error::RequestError;

impl Visit<'_> {
    fn jobs(&self) -> Jobs<'_> {
        self.state.jobs.by(&self.who)
    }

    fn job(&self) -> Result<JobId, RequestError> {
        Ok(JobId(self.id()?))
    }

    pub(super) async fn job_page(&self) -> Result<Reply, RequestError> {
        let fields = &self.fields;
        let filter = JobFilter {
            apps: self.seen_apps()?,
            enabled: match fields.trimmed("triggerStatus") {
                "1" => Some(true),
                "0" => Some(false),
                _ => None,
            },
            description: fields.get("jobDesc").or(fields.get("name")).unwrap_or_default().trim().into(),
            handler: fields.trimmed("executorHandler").into(),
            author: fields.trimmed("author").into(),
            ..JobFilter::default()
        };
        let found = self.state.database.job_page(&filter, self.page()?).await?;
        let total = found.total.map_or(0, |total| total.count);
        Ok(Reply::Page(self.job_views(found.rows).await?, total))
    }

    async fn job_views(&self, rows: Vec<JobRow>) -> Result<Vec<Value>, RequestError> {
        let children: Vec<JobId> =
            rows.iter().flat_map(|row| row.job.spec.children.iter().copied()).collect();
        let seen = self.jobs().seen_children(&children).await?;
        Ok(rows.into_iter().map(|row| self.job_view(row, &seen)).collect())
    }

    /// Apps to include in a list: those that the caller may view, limited to `jobGroup` if it is set.
    pub(super) fn seen_apps(&self) -> Result<Option<Vec<AppId>>, RequestError> {
        let named = self.fields.number("jobGroup")?.filter(|group| *group > 0).map(AppId);
        Ok(match named {
            Some(app) if self.who.may(Rights::VIEW, app) => Some(vec![app]),
            Some(_) => Some(Vec::new()),
            None => self.who.apps(),
        })
    }

    /// Jobs of a group, for a selection list.
    pub(super) async fn jobs_of_app(&self) -> Result<Reply, RequestError> {
        let named = self.fields.number("jobGroup")?.map(AppId).filter(|app| self.who.may(Rights::VIEW, *app));
        let filter = JobFilter { apps: Some(named.into_iter().collect()), ..JobFilter::default() };
        let found = self.state.database.job_page(&filter, Page::first(Page::MAX)).await?;
        Ok(Reply::Done(Value::Array(self.job_views(found.rows).await?)))
    }

    pub(super) async fn add_job(&self) -> Result<Reply, RequestError> {
        let id = self.jobs().add_form(&JobForm::read(&self.fields)?).await?;
        Ok(Reply::Done(Value::String(id.to_string())))
    }

    pub(super) async fn update_job(&self) -> Result<Reply, RequestError> {
        self.jobs().update_form(self.job()?, &JobForm::read(&self.fields)?).await?;
        Ok(Reply::Done(Value::Null))
    }

    pub(super) async fn remove_job(&self) -> Result<Reply, RequestError> {
        self.jobs().remove(self.job()?).await?;
        Ok(Reply::Done(Value::Null))
    }

    pub(super) async fn start_job(&self) -> Result<Reply, RequestError> {
        self.jobs().start_by_id(self.job()?).await?;
        Ok(Reply::Done(Value::Null))
    }

    pub(super) async fn stop_job(&self) -> Result<Reply, RequestError> {
        self.jobs().stop_by_id(self.job()?).await?;
        Ok(Reply::Done(Value::Null))
    }

    pub(super) async fn trigger_job(&self) -> Result<Reply, RequestError> {
        let text = |name: &str| self.fields.get(name).unwrap_or_default();
        self.jobs().trigger_by_id(self.job()?, text("executorParam"), text("addressList")).await?;
        Ok(Reply::Done(Value::Null))
    }

    pub(super) fn preview(&self) -> Result<Reply, RequestError> {
        let mut form = JobForm::read(&self.fields)?;
        if let Some(cron) = self.fields.get("cron") {
            (form.schedule_type, form.schedule_conf) = ("CRON".into(), cron.trim().into());
        }
        let zone = &self.state.zone;
        let instants = jobs::preview(&form, zone, self.state.engine.now())?;
        let shown = instants.into_iter().map(|at| Value::String(time::wall(at, zone))).collect();
        Ok(Reply::Done(Value::Array(shown)))
    }

    pub(super) async fn save_script(&self) -> Result<Reply, RequestError> {
        let (source, remark) =
            (self.fields.get("glueSource").unwrap_or_default(), self.fields.trimmed("glueRemark"));
        self.jobs().save_source(self.job()?, source, remark).await?;
        Ok(Reply::Done(Value::Null))
    }

    /// View of a job, with only those children that the caller may see.
    fn job_view(&self, row: JobRow, seen: &[JobId]) -> Value {
        let JobRow { job, written_schedule: (schedule_type, schedule_conf), .. } = row;
        let time = |at| self.dialect.time(at, &self.state.zone);
        let spec = job.spec;
        let children = spec.children.iter().filter(|child| seen.contains(child));
        let children: Vec<String> = children.map(JobId::to_string).collect();
        value(JobView {
            id: job.id.0,
            job_group: spec.app.0,
            job_desc: spec.name.clone(),
            name: spec.name,
            add_time: time(row.created_at),
            update_time: time(row.updated_at),
            author: spec.author,
            alarm_email: spec.alert_to,
            schedule_type,
            schedule_conf,
            misfire_strategy: spec.misfire.stored().into(),
            executor_route_strategy: spec.route.stored().into(),
            executor_handler: spec.handler,
            executor_param: spec.param,
            executor_block_strategy: spec.block.stored().into(),
            executor_timeout: spec.timeout.map_or(0, |length| length.as_millis().div_ceil(1_000) as u64),
            executor_fail_retry_count: spec.retry.count,
            glue_type: row.kind,
            glue_source: spec.script.map(|script| script.source).unwrap_or_default(),
            glue_remark: row.script_remark,
            glue_updatetime: time(row.script_edited_at),
            child_job_id: children.join(","),
            trigger_status: i32::from(job.enabled),
            trigger_last_time: row.last_fire_at.map_or(0, |at| at.as_millis()),
            trigger_next_time: job.next_fire_at.map_or(0, |at| at.as_millis()),
        })
    }
}
