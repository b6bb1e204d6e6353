//! Scripts of jobs and their earlier versions: columns of `xxl_job_info` and rows of `xxl_job_logglue`.

use std::time::Duration;

use engine::policy::Word;
use engine::{JobId, ScriptLanguage, StoreError};
use timer::Timestamp;

use crate::database::{Database, Tables, transaction};
use crate::jobs;
use crate::schema::check_text;
use crate::session::{Columns, Lock, Row, Session, SessionError, Value};
use crate::table::table;

impl Database {
    /// Returns the current and earlier scripts of a job, the newest first.
    pub async fn script_versions(&self, job: JobId) -> Result<Vec<ScriptVersion>, StoreError> {
        transaction!(self, s => script_versions(s, &self.tables, job))
    }

    /// Sets the script of a job, and stores it as a version; deletes the oldest beyond [`SCRIPT_VERSIONS`].
    pub async fn save_script(
        &self,
        job: JobId,
        language: ScriptLanguage,
        source: &str,
        remark: &str,
    ) -> Result<(), StoreError> {
        transaction!(self, s => save_script(s, &self.tables, job, language, source, remark))
    }
}

/// A stored version of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptVersion {
    /// Id of the version.
    pub id: i64,
    /// Language of the script; `None` if it is unknown.
    pub language: Option<ScriptLanguage>,
    /// Text of the script.
    pub source: String,
    /// Remark on the change.
    pub remark: String,
    /// When it was saved.
    pub saved_at: Option<Timestamp>,
}

/// Number of versions kept per job, the same as in XXL-JOB.
pub const SCRIPT_VERSIONS: usize = 30;

pub async fn script_versions(
    s: &mut dyn Session,
    tables: &Tables,
    job: JobId,
) -> Result<Vec<ScriptVersion>, SessionError> {
    let sql = format!("SELECT {} FROM xxl_job_logglue WHERE job_id = ? ORDER BY id DESC", VersionRow::LIST);
    let version = |row: Row| -> Result<ScriptVersion, SessionError> {
        let row = VersionRow::read(&mut row.read())?;
        Ok(ScriptVersion {
            id: row.id,
            language: ScriptLanguage::from_stored(&row.glue_type),
            source: row.glue_source,
            remark: row.glue_remark,
            saved_at: row.update_time.and_then(|text| tables.wall.instant(&text)),
        })
    };
    s.query(&sql, &[job.into()], Lock::None).await?.into_iter().map(version).collect()
}

table! {
    /// Row of `xxl_job_logglue`, a copy of columns of the job that [`keep_version`] makes.
    struct VersionRow in "xxl_job_logglue" {
        id: i64,
        glue_type: String,
        glue_source: String,
        glue_remark: String,
        update_time: Option<String>,
    }
}

pub async fn save_script(
    s: &mut dyn Session,
    tables: &Tables,
    job: JobId,
    language: ScriptLanguage,
    source: &str,
    remark: &str,
) -> Result<(), SessionError> {
    check_remark(tables, remark)?;
    jobs::check_source(tables, source)?;
    jobs::lock(s, &[job.0], Lock::Wait).await?;
    let saved_at = tables.wall.time(next_edit(s, tables, job).await?);
    let now = tables.wall.time(s.now().await?);
    let word = language.stored();
    let columns = ["glue_type", "glue_source", "glue_remark", "glue_updatetime", "update_time"];
    let set = Columns { table: "xxl_job_info", keys: &["id"], columns: &columns };
    let row = vec![job.0.into(), word.into(), source.into(), remark.into(), saved_at, now];
    s.update(set, vec![row]).await?;
    // A client that is editing the job has to read it again.
    s.execute("UPDATE tw_job SET revision = revision + 1 WHERE job_id = ?", &[job.0.into()]).await?;
    keep_version(s, job).await
}

/// Rejects a remark that its columns cannot hold.
pub fn check_remark(tables: &Tables, remark: &str) -> Result<(), StoreError> {
    check_text(remark)?;
    for table in ["xxl_job_info", "xxl_job_logglue"] {
        tables.schema.check_fits(table, "glue_remark", remark)?;
    }
    Ok(())
}

/// Stores the current script of a job as a version.
pub async fn keep_version(s: &mut dyn Session, job: JobId) -> Result<(), SessionError> {
    keep_first_versions(s, &[job.0]).await?;
    forget_versions(s, job).await
}

/// The same for new jobs, which have no earlier versions.
pub async fn keep_first_versions(s: &mut dyn Session, jobs: &[i64]) -> Result<(), SessionError> {
    if jobs.is_empty() {
        return Ok(());
    }
    let sql = "INSERT INTO xxl_job_logglue (job_id, glue_type, glue_source, glue_remark, add_time, update_time) \
               SELECT id, glue_type, glue_source, glue_remark, glue_updatetime, glue_updatetime \
               FROM xxl_job_info WHERE id IN ? ORDER BY id";
    s.execute(sql, &[Value::Ids(jobs.to_vec())]).await.map(drop)
}

/// The time stored as the script's change. Executors compare versions by it, to the second, so it must differ from
/// the last one.
async fn next_edit(s: &mut dyn Session, tables: &Tables, job: JobId) -> Result<Timestamp, SessionError> {
    let sql = "SELECT glue_updatetime FROM xxl_job_info WHERE id = ?";
    let rows = s.query(sql, &[job.0.into()], Lock::Wait).await?;
    let row = rows.into_iter().next().ok_or(StoreError::NoSuchJob(job))?;
    let last = row.read().maybe_text()?.and_then(|text| tables.wall.instant(&text));
    let now = s.now().await?;
    Ok(last.map_or(now, |last| now.max(last + Duration::from_secs(1))))
}

async fn forget_versions(s: &mut dyn Session, job: JobId) -> Result<(), SessionError> {
    let sql = "SELECT id FROM xxl_job_logglue WHERE job_id = ? ORDER BY id DESC";
    let rows = s.query(sql, &[job.0.into()], Lock::None).await?;
    let ids = rows.into_iter().map(|row| row.read().int()).collect::<Result<Vec<_>, _>>()?;
    if ids.len() > SCRIPT_VERSIONS {
        s.delete("xxl_job_logglue", "id", &ids[SCRIPT_VERSIONS..]).await?;
    }
    Ok(())
}
