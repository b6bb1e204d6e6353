//! Lists of a job's fires that were not dispatched.

use engine::{Disposition, HistoryEntry, JobId, StoreError};

use super::page::{Page, Paged};
use crate::database::{Database, transaction};
use crate::runs;
use crate::session::{Lock, Session, SessionError};

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
    let tail = "WHERE job_id = ? AND id < ? AND disposition <> ? ORDER BY id DESC LIMIT ?";
    let params = [job.into(), below.into(), Disposition::Lost.into(), limit];
    let rows = runs::select_history(s, tail, &params, Lock::None).await?;
    let rows = rows.into_iter().map(HistoryEntry::from).collect();
    Ok(Paged::new(rows, page, None, |entry| entry.id))
}
