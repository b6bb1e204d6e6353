//! Work calendars: their days, and the jobs that are planned with them.

use std::collections::BTreeMap;
use std::sync::Arc;

use cron::WorkCalendar;
use engine::{CalendarId, Job, JobId, StoreError};

use crate::calendars::{self, Head, HeadRow, StoredCalendar, number_of};
use crate::database::{Database, Tables, transaction};
use crate::jobs;
use crate::schema::check_text;
use crate::session::{Columns, Lock, Row, Session, SessionError, Value};

/// A stored work calendar.
#[derive(Clone, Debug, PartialEq)]
pub struct CalendarRow {
    /// Id of the calendar.
    pub id: CalendarId,
    /// Unique name.
    pub name: String,
    /// Incremented by each change.
    pub revision: i64,
    /// Its days.
    pub calendar: Arc<WorkCalendar>,
    /// Number of jobs that use it.
    pub jobs: u64,
}

impl Database {
    /// Returns all work calendars, ordered by name.
    pub async fn work_calendars(&self) -> Result<Vec<CalendarRow>, StoreError> {
        transaction!(self, s => rows(s, &self.tables, "ORDER BY name", &[]))
    }

    /// Returns a work calendar by its name.
    pub async fn work_calendar(&self, name: &str) -> Result<Option<CalendarRow>, StoreError> {
        if check_text(name).is_err() {
            return Ok(None);
        }
        let found: Result<Vec<_>, _> =
            transaction!(self, s => rows(s, &self.tables, "WHERE name = ?", &[name.into()]));
        Ok(found?.pop())
    }

    /// Creates or replaces a work calendar; with `revision`, only the one of that revision. Returns its new revision.
    /// Jobs that use it are then to be planned again, see [`Database::jobs_to_replan`].
    pub async fn save_work_calendar(
        &self,
        name: &str,
        calendar: &WorkCalendar,
        revision: Option<i64>,
    ) -> Result<i64, StoreError> {
        transaction!(self, s => save(s, &self.tables, name, calendar, revision))
    }

    /// Deletes a work calendar; returns false if it does not exist. [`StoreError::Conflict`] if a job uses it.
    pub async fn delete_work_calendar(&self, name: &str) -> Result<bool, StoreError> {
        transaction!(self, s => delete(s, &self.tables, name))
    }

    /// Returns at most `max` jobs whose work calendar was changed after they were last planned, lowest id first.
    pub async fn jobs_to_replan(&self, after: JobId, max: usize) -> Result<Vec<JobId>, StoreError> {
        transaction!(self, s => jobs_to_replan(s, after, max))
    }

    /// Returns at most `max` jobs that use a work calendar, lowest id first.
    pub async fn jobs_on_calendar(&self, id: CalendarId, max: usize) -> Result<Vec<Job>, StoreError> {
        transaction!(self, s => jobs_on_calendar(s, &self.tables, id, max))
    }
}

async fn rows(
    s: &mut dyn Session,
    tables: &Tables,
    tail: &str,
    params: &[Value],
) -> Result<Vec<CalendarRow>, SessionError> {
    let found = calendars::select(s, tables, tail, params).await?;
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let sql = "SELECT calendar_id, COUNT(*) FROM tw_job WHERE calendar_id IS NOT NULL GROUP BY calendar_id";
    let counted = |row: Row| {
        let mut row = row.read();
        Ok((row.int()?, row.int()?.unsigned_abs()))
    };
    let counts = s.query(sql, &[], Lock::None).await?.into_iter().map(counted);
    let counts = counts.collect::<Result<BTreeMap<i64, u64>, SessionError>>()?;
    let row = |StoredCalendar { id, name, revision, calendar }| {
        let jobs = counts.get(&id.0).copied().unwrap_or(0);
        CalendarRow { id, name, revision, calendar, jobs }
    };
    Ok(found.into_iter().map(row).collect())
}

async fn save(
    s: &mut dyn Session,
    tables: &Tables,
    name: &str,
    calendar: &WorkCalendar,
    revision: Option<i64>,
) -> Result<i64, SessionError> {
    check_text(name)?;
    tables.schema.check_fits("tw_work_calendar", "name", name)?;
    let before = locked(s, name).await?;
    if let Some(wanted) = revision
        && before.is_none_or(|(_, found)| found != wanted)
    {
        let why = format!("the work calendar `{name}` was changed in the meantime; read it again");
        return Err(StoreError::Conflict(why).into());
    }
    let (id, revision) = match before {
        Some((id, revision)) => {
            let (set, row) = HeadRow::CHANGED;
            s.update(set, vec![row(Head { id, name, calendar, revision: revision + 1 })]).await?;
            s.delete("tw_work_calendar_day", "calendar_id", &[id]).await?;
            (id, revision + 1)
        }
        // If another node creates it at the same time, this collides, and the retry replaces that one.
        None => {
            let (into, row) = HeadRow::NEW;
            let ids = s.insert_numbered(into, vec![row(Head { id: 0, name, calendar, revision: 1 })]).await?;
            let none = || StoreError::Schema("the database returned no id for a new row".into());
            (ids.first().copied().ok_or_else(none)?, 1)
        }
    };
    let day = |(day, entry): (cron::Day, &cron::DayEntry)| {
        vec![id.into(), number_of(day).into(), i64::from(entry.is_work).into(), entry.name().into()]
    };
    let days: Vec<Vec<Value>> = calendar.entries().map(day).collect();
    if !days.is_empty() {
        let columns = &["calendar_id", "day", "is_work", "name"];
        s.insert(Columns { table: "tw_work_calendar_day", keys: &[], columns }, days).await?;
    }
    Ok(revision)
}

/// Id and revision of a calendar, locked until the transaction ends.
async fn locked(s: &mut dyn Session, name: &str) -> Result<Option<(i64, i64)>, SessionError> {
    let sql = "SELECT id, revision FROM tw_work_calendar WHERE name = ?";
    let row = s.query(sql, &[name.into()], Lock::Wait).await?.into_iter().next();
    let Some(mut row) = row.map(Row::read) else { return Ok(None) };
    Ok(Some((row.int()?, row.int()?)))
}

async fn delete(s: &mut dyn Session, tables: &Tables, name: &str) -> Result<bool, SessionError> {
    if check_text(name).is_err() {
        return Ok(false);
    }
    // A transaction that gives it to a job commits before we get the lock, or then finds the calendar deleted.
    let Some((id, _)) = locked(s, name).await? else { return Ok(false) };
    if let Some(job) = jobs_on_calendar(s, tables, CalendarId(id), 1).await?.into_iter().next() {
        let named = job.spec.key.unwrap_or_else(|| job.id.to_string());
        return Err(StoreError::Conflict(format!(
            "the work calendar `{name}` is used by job `{named}`; remove it from its jobs first"
        ))
        .into());
    }
    s.delete("tw_work_calendar_day", "calendar_id", &[id]).await?;
    s.delete("tw_work_calendar", "id", &[id]).await?;
    Ok(true)
}

async fn jobs_to_replan(s: &mut dyn Session, after: JobId, max: usize) -> Result<Vec<JobId>, SessionError> {
    let sql = "SELECT t.job_id FROM tw_job t JOIN tw_work_calendar c ON c.id = t.calendar_id \
               WHERE t.job_id > ? AND (t.calendar_revision IS NULL OR t.calendar_revision <> c.revision) \
               ORDER BY t.job_id LIMIT ?";
    let max = i64::try_from(max).unwrap_or(i64::MAX);
    let rows = s.query(sql, &[after.0.into(), max.into()], Lock::None).await?;
    rows.into_iter().map(|row| row.read().int().map(JobId)).collect()
}

async fn jobs_on_calendar(
    s: &mut dyn Session,
    tables: &Tables,
    id: CalendarId,
    max: usize,
) -> Result<Vec<Job>, SessionError> {
    let max = i64::try_from(max).unwrap_or(i64::MAX);
    let tail = "WHERE t.calendar_id = ? ORDER BY j.id LIMIT ?";
    let found = jobs::select(s, tables, tail, &[id.0.into(), max.into()]).await?;
    Ok(found.into_iter().map(|stored| stored.job).collect())
}
