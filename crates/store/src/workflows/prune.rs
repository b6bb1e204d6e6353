//! Deletes definitions of workflows that nothing needs any more, with the jobs of their steps.
//!
//! A definition is needed by jobs and their versions, and by runs, open or kept: a kept run can be resumed. Each
//! transaction that begins to need a definition changes its time ([`touch`](graphs::touch)), so it waits for one that
//! deletes it, and then finds it missing.

use std::collections::{BTreeMap, BTreeSet};

use timer::Timestamp;

use super::{graphs, step_jobs};
use crate::changes;
use crate::session::{Lock, Session, SessionError, Value};

/// Deletes at most `max` definitions that nothing needs, and that were neither saved nor replaced since `before`.
pub async fn prune(s: &mut dyn Session, before: Timestamp, max: usize) -> Result<usize, SessionError> {
    if max == 0 || register(s).await? {
        return Ok(0);
    }
    let sql = "SELECT id, steps FROM tw_workflow WHERE at_ms < ? AND NOT EXISTS \
               (SELECT 1 FROM tw_workflow_version v WHERE v.workflow_id = tw_workflow.id) ORDER BY id LIMIT ?";
    let most = i64::try_from(max).unwrap_or(i64::MAX);
    let (mut old, mut steps) = (BTreeSet::new(), 0);
    for row in s.query(sql, &[before.into(), most.into()], Lock::Skip).await? {
        let mut row = row.read();
        let (id, more) = (row.int()?, row.int()?);
        steps += more;
        if steps <= STEPS_MAX || old.is_empty() {
            old.insert(id);
        }
    }
    if old.is_empty() {
        return Ok(0);
    }
    let named = step_jobs::named(s, &old).await?;
    let needed = needed(s, &old, &named).await?;
    if !needed.is_empty() {
        // They are looked at again when they are old again, so they do not keep others waiting.
        let now = s.now().await?;
        graphs::touch(s, now, &needed).await?;
    }
    let gone: Vec<i64> = old.difference(&needed).copied().collect();
    if gone.is_empty() {
        return Ok(0);
    }
    s.delete("tw_workflow", "id", &gone).await?;
    s.delete("tw_workflow_step_job", "workflow_id", &gone).await?;
    let jobs: BTreeSet<i64> = gone.iter().filter_map(|id| named.get(id)).flatten().copied().collect();
    delete_step_jobs(s, jobs).await?;
    Ok(gone.len())
}

/// Maximum number of steps of all definitions that are deleted in one transaction, unless one alone has more.
const STEPS_MAX: i64 = 1_000;

/// Lists the jobs of steps of some definitions that an older version of this program has stored. True if there were any:
/// until all are listed, no job is known to be unneeded.
async fn register(s: &mut dyn Session) -> Result<bool, SessionError> {
    let sql = "SELECT w.id FROM tw_workflow w WHERE NOT EXISTS \
               (SELECT 1 FROM tw_workflow_step_job j WHERE j.workflow_id = w.id AND j.job_id = 0) ORDER BY w.id LIMIT ?";
    let ids = column(s, sql, &[REGISTERED_AT_ONCE.into()]).await?;
    for id in &ids {
        let rows = s.query("SELECT body FROM tw_workflow WHERE id = ?", &[(*id).into()], Lock::None).await?;
        let Some(row) = rows.into_iter().next() else { continue };
        // One that cannot be read cannot be used either.
        let definition = serde_json::from_str(&row.read().text()?).unwrap_or_default();
        step_jobs::register(s, *id, &definition).await?;
    }
    Ok(!ids.is_empty())
}

/// Definitions that are listed in one transaction.
const REGISTERED_AT_ONCE: i64 = 20;

/// Those of the definitions that a job or a run needs.
async fn needed(
    s: &mut dyn Session,
    old: &BTreeSet<i64>,
    named: &BTreeMap<i64, BTreeSet<i64>>,
) -> Result<BTreeSet<i64>, SessionError> {
    let mut needed = BTreeSet::new();
    for table in ["tw_job", "tw_workflow_run", "tw_resume"] {
        let sql = format!("SELECT DISTINCT workflow_id FROM {table} WHERE workflow_id IN ?");
        needed.extend(column(s, &sql, &[Value::Ids(old.iter().copied().collect())]).await?);
    }
    let jobs: BTreeSet<i64> = named.values().flatten().copied().collect();
    if !jobs.is_empty() {
        let sql = "SELECT DISTINCT job_id FROM tw_run WHERE job_id IN ?";
        let running = column(s, sql, &[Value::Ids(jobs.into_iter().collect())]).await?;
        let runs = |jobs: &BTreeSet<i64>| running.iter().any(|job| jobs.contains(job));
        needed.extend(named.iter().filter(|(_, jobs)| runs(jobs)).map(|(id, _)| *id));
    }
    Ok(needed)
}

/// Deletes those of the jobs that no definition names.
async fn delete_step_jobs(s: &mut dyn Session, jobs: BTreeSet<i64>) -> Result<(), SessionError> {
    if jobs.is_empty() {
        return Ok(());
    }
    let ids = Value::Ids(jobs.iter().copied().collect());
    // A definition that begins to name them locks them, too.
    let sql = "SELECT job_id FROM tw_step_job WHERE job_id IN ? ORDER BY job_id";
    let locked = s.query(sql, std::slice::from_ref(&ids), Lock::Wait).await?;
    let sql = "SELECT DISTINCT job_id FROM tw_workflow_step_job WHERE job_id IN ?";
    let named: BTreeSet<i64> = column(s, sql, &[ids]).await?.into_iter().collect();
    let mut free = Vec::new();
    for row in locked {
        free.extend(Some(row.read().int()?).filter(|job| !named.contains(job)));
    }
    changes::delete_rows(s, &free).await
}

async fn column(s: &mut dyn Session, sql: &str, params: &[Value]) -> Result<Vec<i64>, SessionError> {
    let rows = s.query(sql, params, Lock::None).await?;
    rows.into_iter().map(|row| row.read().int()).collect()
}
