//! Jobs of steps that name a handler or script themselves. They are ordinary jobs, but in no list of jobs.

use std::collections::{BTreeMap, BTreeSet};

use engine::{JobId, JobSpec};
use workflow::definition::{Action, Workflow};

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

/// Locks the jobs of steps that a definition names, and lists them, so that they are deleted with the last definition.
/// Returns them.
pub async fn register(
    s: &mut dyn Session,
    workflow: i64,
    definition: &Workflow,
) -> Result<BTreeSet<i64>, SessionError> {
    let job = |action: &Action| match action {
        Action::Job { job, .. } => Some(*job),
        _ => None,
    };
    let jobs: BTreeSet<i64> = definition.steps.iter().filter_map(|step| job(&step.action)).collect();
    let mut found = BTreeSet::new();
    for jobs in jobs.into_iter().collect::<Vec<_>>().chunks(LISTED_AT_ONCE) {
        let sql = "SELECT job_id FROM tw_step_job WHERE job_id IN ? ORDER BY job_id";
        for row in s.query(sql, &[Value::Ids(jobs.to_vec())], Lock::Wait).await? {
            found.insert(row.read().int()?);
        }
    }
    // The job 0 says that the list is complete.
    let rows: Vec<Vec<Value>> =
        found.iter().copied().chain([0]).map(|job| vec![workflow.into(), job.into()]).collect();
    let into = Columns { table: "tw_workflow_step_job", keys: &[], columns: &["workflow_id", "job_id"] };
    s.insert(into, rows).await?;
    Ok(found)
}

/// Jobs per query.
const LISTED_AT_ONCE: usize = 1_000;

/// Jobs of steps that each of these definitions names.
pub async fn named(
    s: &mut dyn Session,
    workflows: &BTreeSet<i64>,
) -> Result<BTreeMap<i64, BTreeSet<i64>>, SessionError> {
    let sql = "SELECT workflow_id, job_id FROM tw_workflow_step_job WHERE workflow_id IN ? AND job_id > 0";
    let mut named: BTreeMap<i64, BTreeSet<i64>> = BTreeMap::new();
    for row in s.query(sql, &[Value::Ids(workflows.iter().copied().collect())], Lock::None).await? {
        let mut row = row.read();
        named.entry(row.int()?).or_default().insert(row.int()?);
    }
    Ok(named)
}
