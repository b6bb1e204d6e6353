//! Jobs of steps that name a handler or script themselves. They are ordinary jobs, but in no list of jobs.

use std::collections::{BTreeMap, BTreeSet};

use engine::{JobId, JobSpec};

use crate::changes;
use crate::database::Tables;
use crate::session::{Columns, Lock, Session, SessionError, Value};

/// Jobs by the digests of their definitions.
pub async fn find(s: &mut dyn Session, digests: &[&str]) -> Result<BTreeMap<String, JobId>, SessionError> {
    if digests.is_empty() {
        return Ok(BTreeMap::new());
    }
    let sql = "SELECT digest, job_id FROM tw_step_job WHERE digest IN ?";
    let digests = Value::Texts(digests.iter().map(|digest| (*digest).to_owned()).collect());
    let mut found = BTreeMap::new();
    for row in s.query(sql, &[digests], Lock::None).await? {
        let mut row = row.read();
        found.insert(row.text()?, JobId(row.int()?));
    }
    Ok(found)
}

/// Those of the jobs that belong to steps.
pub async fn only(s: &mut dyn Session, jobs: &[JobId]) -> Result<BTreeSet<JobId>, SessionError> {
    if jobs.is_empty() {
        return Ok(BTreeSet::new());
    }
    let ids = Value::Ids(jobs.iter().map(|job| job.0).collect());
    let rows = s.query("SELECT job_id FROM tw_step_job WHERE job_id IN ?", &[ids], Lock::None).await?;
    rows.into_iter().map(|row| row.read().int().map(JobId)).collect()
}

/// Adds jobs with the digests of their definitions. One that exists already keeps its id.
pub async fn add(
    s: &mut dyn Session,
    tables: &Tables,
    new: &[(String, JobSpec)],
) -> Result<BTreeMap<String, JobId>, SessionError> {
    let digests: Vec<&str> = new.iter().map(|(digest, _)| digest.as_str()).collect();
    let mut found = find(s, &digests).await?;
    for (digest, spec) in new {
        if found.contains_key(digest) {
            continue;
        }
        let job = changes::create_job(s, tables, spec).await?;
        // If another process was faster, the digest collides, and the retry finds its job.
        let into = Columns { table: "tw_step_job", keys: &[], columns: &["job_id", "digest"] };
        s.insert(into, vec![vec![job.into(), digest.as_str().into()]]).await?;
        found.insert(digest.clone(), job);
    }
    Ok(found)
}
