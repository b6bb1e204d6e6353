//! Versions of the workflow of a job: each saved definition is one, also one that was saved before.
//!
//! A version is stored in the transaction that gives the job its definition. The job keeps its newest versions.

use std::collections::{BTreeMap, BTreeSet};

use engine::{JobId, StoreError, WorkflowId};
use timer::Timestamp;

use super::graphs;
use crate::database::Tables;
use crate::schema::check_text;
use crate::session::{Lock, Session, SessionError, Value};
use crate::table::table;

/// A version of the workflow of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkflowVersion {
    /// Number of the version, from 1.
    pub version: u32,
    /// Its definition; versions with the same steps have the same.
    pub workflow: WorkflowId,
    /// User who saved it.
    pub author: String,
    /// Remark on the change.
    pub remark: String,
    /// Time when it was saved.
    pub at: Timestamp,
}

/// Number of versions kept per job.
pub const WORKFLOW_VERSIONS: u32 = 100;

table! {
    /// Row of `tw_workflow_version`.
    struct VersionRow in "tw_workflow_version" of new: (JobId, &WorkflowVersion) {
        version: u32 = i64::from(new.1.version),
        workflow_id: WorkflowId = new.1.workflow,
        author: String = new.1.author.as_str(),
        remark: String = new.1.remark.as_str(),
        at_ms: Timestamp = new.1.at,
    }
    not read { job_id = new.0 }
}

impl From<VersionRow> for WorkflowVersion {
    fn from(row: VersionRow) -> WorkflowVersion {
        let VersionRow { version, workflow_id: workflow, author, remark, at_ms: at } = row;
        WorkflowVersion { version, workflow, author, remark, at }
    }
}

/// A new definition of a job.
pub struct Replacement<'a> {
    /// The job.
    pub job: JobId,
    /// Its definition before the change.
    pub before: Option<WorkflowId>,
    /// Its new definition.
    pub after: WorkflowId,
    /// Remark on the change.
    pub remark: &'a str,
}

/// Rejects a remark that its column cannot hold.
pub fn check_remark(tables: &Tables, remark: &str) -> Result<(), StoreError> {
    check_text(remark)?;
    tables.schema.check_fits("tw_workflow_version", "remark", remark)
}

/// Stores new versions. The jobs are locked.
pub async fn add(
    s: &mut dyn Session,
    at: Timestamp,
    replacements: &[Replacement<'_>],
) -> Result<(), SessionError> {
    if replacements.is_empty() {
        return Ok(());
    }
    let new: BTreeSet<i64> = replacements.iter().map(|new| new.after.0).collect();
    let old = replacements.iter().filter_map(|new| new.before).map(|id| id.0);
    let old: BTreeSet<i64> = old.filter(|id| !new.contains(id)).collect();
    let saved = graphs::saved(s, old.iter().chain(&new).copied().map(WorkflowId).collect()).await?;
    if graphs::touch(s, at, &new).await? < new.len() as u64 {
        let why = "the definition of the workflow was deleted just now; save the workflow again";
        return Err(StoreError::Conflict(why.into()).into());
    }
    if !old.is_empty() {
        graphs::touch(s, at, &old).await?;
    }
    let last = last(s, &replacements.iter().map(|new| new.job.0).collect::<Vec<_>>()).await?;
    let (mut rows, mut outdated) = (Vec::new(), Vec::new());
    let (into, row) = VersionRow::INSERT;
    for Replacement { job, before, after, remark } in replacements {
        let (mut version, stored) = last.get(&job.0).copied().unzip();
        let mut keep = |workflow: WorkflowId, at: Option<Timestamp>, remark: &str| {
            let number = version.unwrap_or(0) + 1;
            version = Some(number);
            let (author, saved_at) = saved.get(&workflow).cloned().unwrap_or_default();
            let (at, remark) = (at.unwrap_or(saved_at), remark.to_owned());
            let kept = WorkflowVersion { version: number, workflow, author, remark, at };
            rows.push(row((*job, &kept)));
        };
        // The definition of a job that has no versions yet, or was changed by a node that does not know them.
        if let Some(before) = before.filter(|before| stored != Some(*before)) {
            keep(before, None, "");
        }
        keep(*after, Some(at), remark);
        if let Some(oldest) = version.and_then(|version| version.checked_sub(WORKFLOW_VERSIONS)) {
            outdated.push((*job, oldest));
        }
    }
    s.insert(into, rows).await?;
    for (job, oldest) in outdated {
        let sql = "DELETE FROM tw_workflow_version WHERE job_id = ? AND version <= ?";
        s.execute(sql, &[job.into(), i64::from(oldest).into()]).await?;
    }
    Ok(())
}

/// Newest version of each job, with its definition.
async fn last(s: &mut dyn Session, jobs: &[i64]) -> Result<BTreeMap<i64, (u32, WorkflowId)>, SessionError> {
    let sql = "SELECT v.job_id, v.version, v.workflow_id FROM tw_workflow_version v WHERE v.job_id IN ? \
               AND v.version = (SELECT MAX(x.version) FROM tw_workflow_version x WHERE x.job_id = v.job_id)";
    let mut last = BTreeMap::new();
    for row in s.query(sql, &[Value::Ids(jobs.to_vec())], Lock::None).await? {
        let mut row = row.read();
        let (job, version) = (row.int()?, row.int()?);
        last.insert(job, (u32::try_from(version).unwrap_or(u32::MAX), WorkflowId(row.int()?)));
    }
    Ok(last)
}

/// Versions of a job with the definition `current`, the newest first. The first is the current one.
pub async fn select(
    s: &mut dyn Session,
    job: JobId,
    current: WorkflowId,
) -> Result<Vec<WorkflowVersion>, SessionError> {
    let list = VersionRow::LIST;
    let sql = format!("SELECT {list} FROM tw_workflow_version WHERE job_id = ? ORDER BY version DESC");
    let mut found = Vec::new();
    for row in s.query(&sql, &[job.into()], Lock::None).await? {
        found.push(WorkflowVersion::from(VersionRow::read(&mut row.read())?));
    }
    // As `add` would store it.
    if found.first().map(|first| first.workflow) != Some(current) {
        let version = found.first().map_or(0, |first| first.version) + 1;
        let saved = graphs::saved(s, vec![current]).await?;
        let (author, at) = saved.into_values().next().unwrap_or_default();
        found.insert(0, WorkflowVersion { version, workflow: current, author, remark: String::new(), at });
    }
    Ok(found)
}
