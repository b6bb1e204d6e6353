//! Tags of jobs.

use std::collections::BTreeMap;

use engine::JobId;

use crate::database::Tables;
use crate::jobs;
use crate::schema::check_text;
use crate::session::{Columns, Lock, Session, SessionError, Value};

/// Replaces the tags of a job.
pub async fn set_job_tags(
    s: &mut dyn Session,
    tables: &Tables,
    job: JobId,
    tags: &[String],
) -> Result<(), SessionError> {
    for tag in tags {
        check_text(tag)?;
        tables.schema.check_fits("tw_job_tag", "tag", tag)?;
    }
    jobs::lock(s, &[job.0], Lock::Wait).await?;
    s.delete("tw_job_tag", "job_id", &[job.0]).await?;
    let mut tags: Vec<&str> = tags.iter().map(String::as_str).collect();
    tags.sort_unstable();
    tags.dedup();
    if tags.is_empty() {
        return Ok(());
    }
    let rows = tags.into_iter().map(|tag| vec![job.0.into(), tag.into()]).collect();
    s.insert(Columns { table: "tw_job_tag", keys: &[], columns: &["job_id", "tag"] }, rows).await
}

/// Tags of jobs, each list sorted.
pub async fn tags_of(s: &mut dyn Session, jobs: &[i64]) -> Result<BTreeMap<i64, Vec<String>>, SessionError> {
    let mut found: BTreeMap<i64, Vec<String>> = BTreeMap::new();
    if jobs.is_empty() {
        return Ok(found);
    }
    let sql = "SELECT job_id, tag FROM tw_job_tag WHERE job_id IN ? ORDER BY job_id, tag";
    for row in s.query(sql, &[Value::Ids(jobs.to_vec())], Lock::None).await? {
        let mut row = row.read();
        found.entry(row.int()?).or_default().push(row.text()?);
    }
    Ok(found)
}
