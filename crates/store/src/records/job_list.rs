//! Lists of jobs in any order, page by page: each page begins after the last row of the one before, wherever that row is
//! by then.

use std::collections::BTreeMap;

use engine::{AppId, JobId};

use super::job_rows::{JobFilter, JobRow, conditions, rows_of, source};
use super::page::{Page, limit_of};
use crate::session::{Lock, Reader, Session, SessionError, Value};
use crate::sql_store::Tables;

/// The order of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobOrder {
    /// By what.
    pub by: JobKey,
    /// The other way round.
    pub down: bool,
}

/// What jobs are put in order by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JobKey {
    /// Their numbers: the order they were made in.
    #[default]
    Number,
    /// Their names.
    Name,
    /// When they fire next; those that do not come last, either way.
    NextFire,
}

/// Where a page ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobMark {
    /// The last job,
    pub job: JobId,
    /// and what it was put in order by, as text.
    pub key: String,
}

/// A page of jobs.
#[derive(Clone, Debug, PartialEq)]
pub struct JobList {
    /// The jobs, in order.
    pub rows: Vec<JobRow>,
    /// Where the next page goes on, if there may be one.
    pub next: Option<JobMark>,
}

/// What a run says of its job, while that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobName {
    /// Which job.
    pub job: JobId,
    /// The app it belongs to now.
    pub app: AppId,
    /// The key by which programs name it, if they do.
    pub key: Option<String>,
    /// For people.
    pub name: String,
    /// The zone of its own whose clocks it follows, if it has one.
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
        JobKey::Name => format!("j.{}", tables.schema.description_column()),
        JobKey::NextFire => {
            let last = if order.down { -1 } else { i64::MAX };
            format!(
                "CASE WHEN j.trigger_status <> 0 AND j.trigger_next_time > 0 THEN j.trigger_next_time ELSE {last} END"
            )
        }
    }
}

/// The key of a mark, as it is compared; none where the number alone decides, or for a mark that nobody was given.
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
        "SELECT j.id, j.job_group, t.job_key, j.{}, t.zone FROM xxl_job_info j LEFT JOIN tw_job t ON t.job_id = j.id WHERE j.id IN ?",
        tables.schema.description_column()
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

/// How many jobs there are, and how many of them are started.
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
        "SELECT COUNT(*), SUM(CASE WHEN j.trigger_status <> 0 THEN 1 ELSE 0 END) \
         FROM {} {}",
        source(filter),
        conditions.sql()
    );
    let rows = s.query(&sql, &conditions.params([]), Lock::None).await?;
    let Some(row) = rows.into_iter().next() else { return Ok((0, 0)) };
    let mut row = row.read();
    Ok((row.int()?.unsigned_abs(), row.maybe_int()?.unwrap_or(0).unsigned_abs()))
}

/// How many jobs each app has; apps without any are left out.
pub async fn jobs_by_app(s: &mut dyn Session) -> Result<BTreeMap<AppId, u64>, SessionError> {
    let sql = "SELECT job_group, COUNT(*) FROM xxl_job_info GROUP BY job_group";
    let mut counts = BTreeMap::new();
    for row in s.query(sql, &[], Lock::None).await? {
        let mut row = row.read();
        counts.insert(AppId(row.int()?), row.int()?.unsigned_abs());
    }
    Ok(counts)
}
