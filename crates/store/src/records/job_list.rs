//! Lists of jobs in any order with keyset pagination: each page begins after the last row of the previous page, even
//! if that row has moved.

use std::collections::BTreeMap;

use engine::{AppId, JobId, StoreError};

use super::job_rows::{IS_LISTED, JobFilter, JobRow, conditions, rows_of, source};
use super::page::{Page, limit_of};
use crate::database::{Database, Tables, transaction};
use crate::jobs::{NO_TIME, STOPPED};
use crate::session::{Lock, Reader, Session, SessionError, Value};

impl Database {
    /// Returns jobs in the given order, after a position.
    pub async fn job_list(
        &self,
        filter: &JobFilter,
        order: JobOrder,
        after: Option<&JobMark>,
        limit: usize,
    ) -> Result<JobList, StoreError> {
        transaction!(self, s => job_list(s, &self.tables, filter, order, after, limit))
    }

    /// Returns the names of jobs, in any order; jobs that do not exist are omitted.
    pub async fn job_names(&self, jobs: &[JobId]) -> Result<Vec<JobName>, StoreError> {
        transaction!(self, s => job_names(s, &self.tables, jobs))
    }

    /// Returns the number of jobs, and the number of started jobs.
    pub async fn job_count(&self, filter: &JobFilter) -> Result<(u64, u64), StoreError> {
        transaction!(self, s => job_count(s, &self.tables, filter))
    }

    /// Returns the number of jobs per app; apps without jobs are omitted.
    pub async fn jobs_by_app(&self) -> Result<BTreeMap<AppId, u64>, StoreError> {
        transaction!(self, s => jobs_by_app(s))
    }
}

/// Order of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobOrder {
    /// Sort key.
    pub by: JobKey,
    /// Whether the order is descending.
    pub down: bool,
}

/// Sort key of a list of jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JobKey {
    /// Id, which is the order of creation.
    #[default]
    Number,
    /// Name.
    Name,
    /// Next fire; jobs without one come last in both directions.
    NextFire,
}

/// Position where a page ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobMark {
    /// The last job of the page.
    pub job: JobId,
    /// Sort key of that job, as text.
    pub key: String,
}

/// A page of jobs.
#[derive(Clone, Debug, PartialEq)]
pub struct JobList {
    /// The jobs, in order.
    pub rows: Vec<JobRow>,
    /// Position where the next page begins, if there may be one.
    pub next: Option<JobMark>,
}

/// Fields of a job that are shown with its runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobName {
    /// Id of the job.
    pub job: JobId,
    /// App the job belongs to now.
    pub app: AppId,
    /// Key of the job, if it has one.
    pub key: Option<String>,
    /// Display name.
    pub name: String,
    /// The job's own time zone, if it has one.
    pub zone: Option<String>,
}

pub async fn job_list(
    s: &mut dyn Session,
    tables: &Tables,
    filter: &JobFilter,
    order: JobOrder,
    after: Option<&JobMark>,
    limit: usize,
) -> Result<JobList, SessionError> {
    if filter.apps.as_ref().is_some_and(Vec::is_empty) {
        return Ok(JobList { rows: Vec::new(), next: None });
    }
    let limit = limit.min(Page::MAX);
    let key = column(tables, order);
    let (more, way) = if order.down { ("<", "DESC") } else { (">", "ASC") };
    let mut conditions = conditions(tables, filter)?;
    if let Some(mark) = after {
        match value(order.by, &mark.key) {
            Some(value) => {
                let term = format!("({key} {more} ? OR ({key} = ? AND j.id {more} ?))");
                conditions.and(term, [value.clone(), value, mark.job.0.into()]);
            }
            None => conditions.and(format!("j.id {more} ?"), [mark.job.0.into()]),
        }
    }
    let order_by = match order.by {
        JobKey::Number => format!("j.id {way}"),
        _ => format!("{key} {way}, j.id {way}"),
    };
    let sql = format!(
        "SELECT j.id, {key} FROM {} {} ORDER BY {order_by} LIMIT ?",
        source(filter),
        conditions.sql()
    );
    let mut marks = Vec::new();
    for row in s.query(&sql, &conditions.params([limit_of(limit)]), Lock::None).await? {
        let mut row = row.read();
        marks.push(JobMark { job: JobId(row.int()?), key: text(order.by, &mut row)? });
    }
    let ids: Vec<i64> = marks.iter().map(|mark| mark.job.0).collect();
    let next = if marks.len() == limit { marks.pop() } else { None };
    Ok(JobList { rows: rows_of(s, tables, &ids).await?, next })
}

fn column(tables: &Tables, order: JobOrder) -> String {
    match order.by {
        JobKey::Number => "j.id".into(),
        JobKey::Name => tables.schema.list("xxl_job_info", "j", &["job_desc"]),
        JobKey::NextFire => {
            let last = if order.down { -1 } else { i64::MAX };
            format!(
                "CASE WHEN j.trigger_status <> {STOPPED} AND j.trigger_next_time > {NO_TIME} \
                 THEN j.trigger_next_time ELSE {last} END"
            )
        }
    }
}

/// The sort key of a mark as an SQL value; `None` if the list is ordered by id, or if the mark is not one of ours.
fn value(by: JobKey, key: &str) -> Option<Value> {
    match by {
        JobKey::Number => None,
        JobKey::Name => Some(key.replace('\0', "").into()),
        JobKey::NextFire => key.parse::<i64>().ok().map(Value::from),
    }
}

fn text(by: JobKey, row: &mut Reader) -> Result<String, SessionError> {
    match by {
        JobKey::Name => row.text(),
        JobKey::Number | JobKey::NextFire => Ok(row.int()?.to_string()),
    }
}

pub async fn job_names(
    s: &mut dyn Session,
    tables: &Tables,
    jobs: &[JobId],
) -> Result<Vec<JobName>, SessionError> {
    if jobs.is_empty() {
        return Ok(Vec::new());
    }
    let sql = format!(
        "SELECT j.id, j.job_group, t.job_key, {}, t.zone FROM xxl_job_info j LEFT JOIN tw_job t ON t.job_id = j.id WHERE j.id IN ?",
        tables.schema.list("xxl_job_info", "j", &["job_desc"])
    );
    let ids = Value::Ids(jobs.iter().map(|job| job.0).collect());
    let mut names = Vec::new();
    for row in s.query(&sql, &[ids], Lock::None).await? {
        let mut row = row.read();
        let (job, app, key) = (JobId(row.int()?), AppId(row.int()?), row.maybe_text()?);
        let (name, zone) = (row.text()?, row.maybe_text()?.filter(|zone| !zone.is_empty()));
        names.push(JobName { job, app, key, name, zone });
    }
    Ok(names)
}

/// Number of jobs, and number of started jobs.
pub async fn job_count(
    s: &mut dyn Session,
    tables: &Tables,
    filter: &JobFilter,
) -> Result<(u64, u64), SessionError> {
    if filter.apps.as_ref().is_some_and(Vec::is_empty) {
        return Ok((0, 0));
    }
    let conditions = conditions(tables, filter)?;
    let sql = format!(
        "SELECT COUNT(*), SUM(CASE WHEN j.trigger_status <> {STOPPED} THEN 1 ELSE 0 END) \
         FROM {} {}",
        source(filter),
        conditions.sql()
    );
    let rows = s.query(&sql, &conditions.params([]), Lock::None).await?;
    let Some(row) = rows.into_iter().next() else { return Ok((0, 0)) };
    let mut row = row.read();
    Ok((row.int()?.unsigned_abs(), row.maybe_int()?.unwrap_or(0).unsigned_abs()))
}

/// Number of jobs per app; apps without jobs are omitted.
pub async fn jobs_by_app(s: &mut dyn Session) -> Result<BTreeMap<AppId, u64>, SessionError> {
    let sql = format!("SELECT job_group, COUNT(*) FROM xxl_job_info j WHERE {IS_LISTED} GROUP BY job_group");
    let mut counts = BTreeMap::new();
    for row in s.query(&sql, &[], Lock::None).await? {
        let mut row = row.read();
        counts.insert(AppId(row.int()?), row.int()?.unsigned_abs());
    }
    Ok(counts)
}
