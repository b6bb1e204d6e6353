//! Pages of jobs.

use std::collections::BTreeMap;

use engine::{AppId, Declaration, Job, JobId, StoreError};
use timer::Timestamp;

use super::job_tags::tags_of;
use super::page::{Conditions, Page, Paged, Total, check_search, limit_of};
use crate::database::{Database, Tables, transaction};
use crate::declare::declarations_of;
use crate::jobs::{self, CRON, NO_TIME, STOPPED};
use crate::schema::check_text;
use crate::session::{Lock, Session, SessionError, Value};
use crate::table::table;

impl Database {
    /// Returns a page of jobs, the newest first.
    pub async fn job_page(&self, filter: &JobFilter, page: Page) -> Result<Paged<JobRow>, StoreError> {
        transaction!(self, s => job_page(s, &self.tables, filter, page))
    }

    /// Returns some jobs, in the order of the given ids; jobs that do not exist are omitted.
    pub async fn job_rows(&self, jobs: &[JobId]) -> Result<Vec<JobRow>, StoreError> {
        let ids: Vec<i64> = jobs.iter().map(|job| job.0).collect();
        transaction!(self, s => rows_of(s, &self.tables, &ids))
    }

    /// Returns the jobs with these keys, in any order; keys that no job has are omitted.
    pub async fn job_rows_by_key(&self, keys: &[&str]) -> Result<Vec<JobRow>, StoreError> {
        transaction!(self, s => rows_by_key(s, &self.tables, keys))
    }

    /// Returns the ids of matching jobs after `after`, ascending.
    pub async fn job_ids(
        &self,
        filter: &JobFilter,
        after: Option<JobId>,
        limit: usize,
    ) -> Result<Vec<JobId>, StoreError> {
        transaction!(self, s => job_ids(s, &self.tables, filter, after, limit))
    }
}

/// Filter for a list of jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobFilter {
    /// Only jobs of these apps; `None` means all apps.
    pub apps: Option<Vec<AppId>>,
    /// Only started jobs, or only stopped ones.
    pub enabled: Option<bool>,
    /// Only jobs with this text in their description.
    pub description: String,
    /// Only jobs with this text in the name of their handler.
    pub handler: String,
    /// Only jobs with this text in the name of their author.
    pub author: String,
    /// Only jobs with this text in description, handler, author or key.
    pub text: String,
    /// Only jobs with this tag.
    pub tag: String,
    /// Only workflows, or only other jobs.
    pub workflow: Option<bool>,
}

/// A job with further columns of its row.
#[derive(Clone, Debug, PartialEq)]
pub struct JobRow {
    /// The job.
    pub job: Job,
    /// Schedule kind and text in XXL-JOB's columns, also if they cannot be parsed.
    pub written_schedule: (String, String),
    /// XXL-JOB's name for the kind of job: a handler, or the language of a script.
    pub kind: String,
    /// Remark on the last change of its script.
    pub script_remark: String,
    /// When its script was last changed.
    pub script_edited_at: Option<Timestamp>,
    /// When it was created.
    pub created_at: Option<Timestamp>,
    /// When its definition was last changed.
    pub updated_at: Option<Timestamp>,
    /// Scheduled time of the last fire.
    pub last_fire_at: Option<Timestamp>,
    /// Tags of the job, sorted.
    pub tags: Vec<String>,
    /// Declaration of the job by a program, if there is one.
    pub declaration: Option<Declaration>,
}

pub async fn job_page(
    s: &mut dyn Session,
    tables: &Tables,
    filter: &JobFilter,
    page: Page,
) -> Result<Paged<JobRow>, SessionError> {
    if filter.apps.as_ref().is_some_and(Vec::is_empty) {
        return Ok(Paged::empty(page));
    }
    let mut conditions = conditions(tables, filter)?;
    let total = match page {
        Page::Offset { .. } => Some(count(s, filter, &conditions).await?),
        Page::After { .. } => None,
    };
    if let Some(after) = page.after() {
        conditions.and("j.id < ?", [after.into()]);
    }
    let sql = format!(
        "SELECT j.id FROM {} {} ORDER BY j.id DESC LIMIT ? OFFSET ?",
        source(filter),
        conditions.sql()
    );
    let rows = s.query(&sql, &conditions.params(page.bounds()), Lock::None).await?;
    let ids = rows.into_iter().map(|row| row.read().int()).collect::<Result<Vec<_>, _>>()?;
    let rows = rows_of(s, tables, &ids).await?;
    Ok(Paged::new(rows, page, total, |row| row.job.id.0))
}

/// Rows of jobs in the order of the given ids; jobs that do not exist are omitted.
pub async fn rows_of(s: &mut dyn Session, tables: &Tables, ids: &[i64]) -> Result<Vec<JobRow>, SessionError> {
    let mut found = jobs::load(s, tables, ids).await?;
    let mut rest = rest(s, tables, ids).await?;
    let mut tags = tags_of(s, ids).await?;
    let mut declarations = declarations_of(s, tables, ids).await?;
    let mut rows = Vec::with_capacity(ids.len());
    for id in ids {
        if let (Some(stored), Some(rest)) = (found.remove(id), rest.remove(id)) {
            let row = job_row(tables, stored.job, rest);
            let tags = tags.remove(id).unwrap_or_default();
            rows.push(JobRow { tags, declaration: declarations.remove(id), ..row });
        }
    }
    Ok(rows)
}

pub async fn rows_by_key(
    s: &mut dyn Session,
    tables: &Tables,
    keys: &[&str],
) -> Result<Vec<JobRow>, SessionError> {
    let keys: Vec<String> =
        keys.iter().filter(|key| check_text(key).is_ok()).map(|key| (*key).to_owned()).collect();
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let sql = "SELECT job_id FROM tw_job WHERE job_key IN ?";
    let rows = s.query(sql, &[Value::Texts(keys)], Lock::None).await?;
    let ids = rows.into_iter().map(|row| row.read().int()).collect::<Result<Vec<_>, _>>()?;
    rows_of(s, tables, &ids).await
}

pub async fn job_ids(
    s: &mut dyn Session,
    tables: &Tables,
    filter: &JobFilter,
    after: Option<JobId>,
    limit: usize,
) -> Result<Vec<JobId>, SessionError> {
    if filter.apps.as_ref().is_some_and(Vec::is_empty) {
        return Ok(Vec::new());
    }
    let mut conditions = conditions(tables, filter)?;
    if let Some(after) = after {
        conditions.and("j.id > ?", [after.0.into()]);
    }
    let sql = format!("SELECT j.id FROM {} {} ORDER BY j.id LIMIT ?", source(filter), conditions.sql());
    let rows = s.query(&sql, &conditions.params([limit_of(limit)]), Lock::None).await?;
    rows.into_iter().map(|row| row.read().int().map(JobId)).collect()
}

pub fn conditions(tables: &Tables, filter: &JobFilter) -> Result<Conditions, StoreError> {
    let mut conditions = Conditions::default();
    conditions.and(IS_LISTED, []);
    if let Some(apps) = &filter.apps {
        conditions.and("j.job_group IN ?", [Value::Ids(apps.iter().map(|app| app.0).collect())]);
    }
    if let Some(enabled) = filter.enabled {
        // There are two values for started, see `jobs`.
        let is = if enabled { "<>" } else { "=" };
        conditions.and(format!("j.trigger_status {is} {STOPPED}"), []);
    }
    let description = tables.schema.list("xxl_job_info", "j", &["job_desc"]);
    let (handler, author) = ("j.executor_handler", "j.author");
    conditions.and_contains(&[&description], &filter.description)?;
    conditions.and_contains(&[handler], &filter.handler)?;
    conditions.and_contains(&[author], &filter.author)?;
    conditions.and_contains(&[&description, handler, author, "t.job_key"], &filter.text)?;
    check_search(&filter.tag)?;
    if !filter.tag.is_empty() {
        let term = "j.id IN (SELECT job_id FROM tw_job_tag WHERE tag = ?)";
        conditions.and(term, [filter.tag.replace('\0', "").into()]);
    }
    if let Some(workflow) = filter.workflow {
        let is = if workflow { "IN" } else { "NOT IN" };
        let term = format!("j.id {is} (SELECT job_id FROM tw_job WHERE workflow_id IS NOT NULL)");
        conditions.and(term, []);
    }
    Ok(conditions)
}

/// Condition of all lists of jobs: jobs of steps are shown with their workflows only.
pub const IS_LISTED: &str = "NOT EXISTS (SELECT 1 FROM tw_step_job x WHERE x.job_id = j.id)";

/// The tables that a filter needs. With a hundred thousand jobs, an unneeded join is noticeably slow.
pub fn source(filter: &JobFilter) -> &'static str {
    match filter.text.is_empty() {
        true => "xxl_job_info j",
        false => "xxl_job_info j LEFT JOIN tw_job t ON t.job_id = j.id",
    }
}

/// Exact: jobs are thousands, not millions.
async fn count(
    s: &mut dyn Session,
    filter: &JobFilter,
    conditions: &Conditions,
) -> Result<Total, SessionError> {
    let sql = format!("SELECT COUNT(*) FROM {} {}", source(filter), conditions.sql());
    let rows = s.query(&sql, &conditions.params([]), Lock::None).await?;
    let count = rows.into_iter().next().map(|row| row.read().int()).transpose()?.unwrap_or(0);
    Ok(Total { count: count.unsigned_abs(), exact: true })
}

table! {
    /// Columns of `xxl_job_info` that are not in a [`Job`].
    struct RestRow in "xxl_job_info" {
        id: i64,
        schedule_type: Option<String>,
        schedule_conf: String,
        glue_type: String,
        glue_remark: String,
        glue_updatetime: Option<String>,
        add_time: Option<String>,
        update_time: Option<String>,
        trigger_last_time: i64,
    }
}

async fn rest(
    s: &mut dyn Session,
    tables: &Tables,
    ids: &[i64],
) -> Result<BTreeMap<i64, RestRow>, SessionError> {
    if ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    let list = tables.schema.list("xxl_job_info", "j", RestRow::NAMES);
    let sql = format!("SELECT {list} FROM xxl_job_info j WHERE j.id IN ?");
    let mut found = BTreeMap::new();
    for row in s.query(&sql, &[Value::Ids(ids.to_vec())], Lock::None).await? {
        let row = RestRow::read(&mut row.read())?;
        found.insert(row.id, row);
    }
    Ok(found)
}

fn job_row(tables: &Tables, job: Job, row: RestRow) -> JobRow {
    let time = |text: Option<String>| text.and_then(|text| tables.wall.instant(&text));
    let last = row.trigger_last_time;
    JobRow {
        job,
        written_schedule: (row.schedule_type.unwrap_or_else(|| CRON.to_owned()), row.schedule_conf),
        kind: row.glue_type,
        script_remark: row.glue_remark,
        script_edited_at: time(row.glue_updatetime),
        created_at: time(row.add_time),
        updated_at: time(row.update_time),
        last_fire_at: (last > NO_TIME).then(|| Timestamp::from_millis(last)),
        tags: Vec::new(),
        declaration: None,
    }
}
