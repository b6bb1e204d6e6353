//! Lists of a job's fires that were not dispatched.

use engine::{Disposition, HistoryEntry, JobId, StoreError};

use super::page::{Page, Paged};
use crate::database::{Database, transaction};
use crate::read::history_entry;
use crate::session::{Lock, Session, SessionError, Value};

impl Database {
    /// Returns fires of a job that were not dispatched, the newest first.
    pub async fn misses(&self, job: JobId, page: Page) -> Result<Paged<HistoryEntry>, StoreError> {
        transaction!(self, s => misses(s, job, page))
    }
}

pub async fn misses(
    s: &mut dyn Session,
    job: JobId,
    page: Page,
) -> Result<Paged<HistoryEntry>, SessionError> {
    let below = page.after().unwrap_or(i64::MAX);
    let [limit, _] = page.bounds();
    // A lost run was dispatched, so it is listed with the runs.
    let sql = "SELECT id, job_id, disposition, first_ms, last_ms, count, reason, run_id, at_ms FROM tw_history \
               WHERE job_id = ? AND id < ? AND disposition <> ? ORDER BY id DESC LIMIT ?";
    let params: [Value; 4] = [job.0.into(), below.into(), Disposition::Lost.to_number().into(), limit];
    let rows = s.query(sql, &params, Lock::None).await?;
    let rows = rows.into_iter().map(history_entry).collect::<Result<Vec<_>, _>>()?;
    Ok(Paged::new(rows, page, None, |entry| entry.id))
}
