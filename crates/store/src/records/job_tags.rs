//! Tags of jobs.

use std::collections::{BTreeMap, BTreeSet};

use engine::{JobId, StoreError};

use crate::database::Tables;
use crate::schema::check_text;
use crate::session::{Columns, Lock, Session, SessionError, Value};

/// Rejects tags that their column cannot hold.
pub fn check(tables: &Tables, tags: &[String]) -> Result<(), StoreError> {
    for tag in tags {
        check_text(tag)?;
        tables.schema.check_fits("tw_job_tag", "tag", tag)?;
    }
    Ok(())
}

/// Replaces the tags of jobs that the caller has locked.
pub async fn replace(s: &mut dyn Session, jobs: &[(JobId, &[String])]) -> Result<(), SessionError> {
    if jobs.is_empty() {
        return Ok(());
    }
    s.delete("tw_job_tag", "job_id", &jobs.iter().map(|(job, _)| job.0).collect::<Vec<_>>()).await?;
    insert(s, jobs).await
}

/// Adds the tags of jobs that have none.
pub async fn insert(s: &mut dyn Session, jobs: &[(JobId, &[String])]) -> Result<(), SessionError> {
    let mut rows = Vec::new();
    for (job, tags) in jobs {
        let tags: BTreeSet<&str> = tags.iter().map(String::as_str).collect();
        rows.extend(tags.into_iter().map(|tag| vec![job.0.into(), tag.into()]));
    }
    if rows.is_empty() {
        return Ok(());
    }
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
