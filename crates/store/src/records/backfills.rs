//! Backfills: lists and progress.

use std::collections::BTreeMap;

use engine::{AppId, Backfill, BackfillId, EarlierRun, InstantState, JobId, StoreError};
use timer::Timestamp;

use super::page::{Page, Paged, limit_of};
use crate::backfills;
pub use crate::backfills::BackfillTime;
use crate::database::{Database, transaction};
use crate::session::{Lock, Session, SessionError, Value};

/// Which backfills to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackfillFilter {
    /// Apps of the jobs; all apps if absent.
    pub apps: Option<Vec<AppId>>,
    /// A job; all jobs if absent.
    pub job: Option<JobId>,
}

impl Database {
    /// Backfill by id.
    pub async fn backfill(&self, id: BackfillId) -> Result<Option<Backfill>, StoreError> {
        transaction!(self, s => backfill(s, id))
    }

    /// Backfills of existing jobs, newest first.
    pub async fn backfills(
        &self,
        filter: &BackfillFilter,
        page: Page,
    ) -> Result<Paged<Backfill>, StoreError> {
        transaction!(self, s => list(s, filter, page))
    }

    /// Scheduled times of a backfill, oldest first, after the time in milliseconds that the page continues from; of one
    /// state, or of all.
    pub async fn backfill_times(
        &self,
        id: BackfillId,
        state: Option<InstantState>,
        page: Page,
    ) -> Result<Paged<BackfillTime>, StoreError> {
        transaction!(self, s => times(s, id, state, page))
    }

    /// Runs that these scheduled times of a job already have.
    pub async fn earlier_runs(
        &self,
        job: JobId,
        times: &[Timestamp],
    ) -> Result<BTreeMap<Timestamp, Vec<EarlierRun>>, StoreError> {
        transaction!(self, s => backfills::earlier_runs(s, &self.tables, job, times))
    }
}

async fn backfill(s: &mut dyn Session, id: BackfillId) -> Result<Option<Backfill>, SessionError> {
    Ok(backfills::select(s, "WHERE id = ?", &[id.into()], Lock::None).await?.pop())
}

async fn list(
    s: &mut dyn Session,
    filter: &BackfillFilter,
    page: Page,
) -> Result<Paged<Backfill>, SessionError> {
    let mut tail = String::from("WHERE id < ?");
    let mut params: Vec<Value> = vec![page.after().unwrap_or(i64::MAX).into()];
    if let Some(job) = filter.job {
        tail.push_str(" AND job_id = ?");
        params.push(job.into());
    }
    match filter.apps.as_deref() {
        Some([]) => return Ok(Paged::empty(page)),
        Some(apps) => {
            tail.push_str(" AND job_id IN (SELECT j.id FROM xxl_job_info j WHERE j.job_group IN ?)");
            params.push(Value::Ids(apps.iter().map(|app| app.0).collect()));
        }
        None => tail.push_str(" AND job_id IN (SELECT j.id FROM xxl_job_info j)"),
    }
    tail.push_str(" ORDER BY id DESC LIMIT ?");
    params.push(limit_of(page.limit()));
    let rows = backfills::select(s, &tail, &params, Lock::None).await?;
    Ok(Paged::new(rows, page, None, |backfill| backfill.id.0))
}

async fn times(
    s: &mut dyn Session,
    id: BackfillId,
    state: Option<InstantState>,
    page: Page,
) -> Result<Paged<BackfillTime>, SessionError> {
    let mut tail = String::from("WHERE backfill_id = ? AND scheduled_ms > ?");
    let mut params: Vec<Value> = vec![id.into(), page.after().unwrap_or(i64::MIN).into()];
    if let Some(state) = state {
        tail.push_str(" AND state = ?");
        params.push(state.into());
    }
    tail.push_str(" ORDER BY scheduled_ms LIMIT ?");
    params.push(limit_of(page.limit()));
    let rows = backfills::select_times(s, &tail, &params).await?;
    Ok(Paged::new(rows, page, None, |time| time.scheduled_at.as_millis()))
}
