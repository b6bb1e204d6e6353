//! Read-only queries.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::{
    Abandoned, AppId, Disposition, HistoryEntry, Job, JobId, Node, Order, Run, RunId, RunRecord, RunState,
    StoreError, Unsent, Watched,
};
use timer::Timestamp;

use crate::database::Tables;
use crate::runs::{CANCELLING, CLAIMED, RUNNING, UNKNOWN, codes};
use crate::session::{Lock, Row, Session, SessionError, Value};
use crate::{foreign, jobs, runs};

// ── Open runs ───────────────────────────────────────────────────────────────────────────────────────────────────

pub async fn owned(
    s: &mut dyn Session,
    tables: &Tables,
    node: &Node,
    after: Option<RunId>,
    max: usize,
) -> Result<(Vec<Order>, Option<RunId>), SessionError> {
    let found = runs::select(s, &of_node(CLAIMED), &part_of_node(node, after, max), Lock::None).await?;
    let next = found.last().filter(|_| found.len() >= max).map(|run| run.id);
    let jobs = jobs_of(s, tables, &found).await?;
    // A claimed run of a deleted job is returned by `asked_to_cancel`, or was deleted by another program.
    let order = |run: Run| jobs.get(&run.job.0).map(|job| Order { job: job.clone(), run });
    Ok((found.into_iter().filter_map(order).collect(), next))
}

pub async fn open_runs(s: &mut dyn Session, ids: &[RunId]) -> Result<Vec<Run>, SessionError> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let ids = Value::Ids(ids.iter().map(|id| id.0).collect());
    runs::select(s, "WHERE log_id IN ? ORDER BY log_id", &[ids], Lock::None).await
}

pub async fn asked_to_cancel(
    s: &mut dyn Session,
    node: &Node,
    after: Option<RunId>,
    max: usize,
) -> Result<Vec<Run>, SessionError> {
    runs::select(s, &of_node(CANCELLING), &part_of_node(node, after, max), Lock::None).await
}

/// Finds the runs of a node in this state, one page at a time.
fn of_node(state: i64) -> String {
    format!("WHERE state = {state} AND node = ? AND epoch = ? AND log_id > ? ORDER BY log_id LIMIT ?")
}

fn part_of_node(node: &Node, after: Option<RunId>, max: usize) -> [Value; 4] {
    [node.name.as_str().into(), node.epoch.into(), after.map_or(0, |run| run.0).into(), limit(max)]
}

pub async fn open_by_app(s: &mut dyn Session, above: u64) -> Result<Vec<(AppId, u64)>, SessionError> {
    let rows = s.query("SELECT COUNT(*) FROM tw_fire", &[], Lock::None).await?;
    let open = rows.into_iter().next().map(|row| row.read().int()).transpose()?.unwrap_or(0);
    if open.unsigned_abs() <= above {
        return Ok(Vec::new());
    }
    let sql = "SELECT j.job_group, SUM(f.open) FROM (SELECT job_id, COUNT(*) AS open FROM tw_fire GROUP BY job_id) f \
               JOIN xxl_job_info j ON j.id = f.job_id GROUP BY j.job_group";
    let count = |row: Row| -> Result<(AppId, u64), SessionError> {
        let mut row = row.read();
        Ok((AppId(row.int()?), row.int()?.unsigned_abs()))
    };
    s.query(sql, &[], Lock::None).await?.into_iter().map(count).collect()
}

pub async fn abandoned(
    s: &mut dyn Session,
    tables: &Tables,
    running: bool,
    max: usize,
) -> Result<Vec<Abandoned>, SessionError> {
    let running = if running { format!(", {RUNNING}") } else { String::new() };
    let tail = format!(
        "WHERE state IN ({CLAIMED}, {CANCELLING}{running}) AND NOT EXISTS (SELECT 1 FROM tw_node n WHERE n.name = tw_fire.node \
         AND n.epoch = tw_fire.epoch AND n.fenced = 0) ORDER BY log_id LIMIT ?"
    );
    let found = runs::select(s, &tail, &[limit(max)], Lock::None).await?;
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let jobs = jobs_of(s, tables, &found).await?;
    let leases = leases(s).await?;
    let abandoned = found.into_iter().map(|run| Abandoned {
        job: jobs.get(&run.job.0).cloned(),
        lease_until: run.node.as_ref().and_then(|node| leases.get(node)).copied(),
        run,
    });
    Ok(abandoned.collect())
}

async fn leases(s: &mut dyn Session) -> Result<BTreeMap<Node, Timestamp>, SessionError> {
    let rows = s.query("SELECT name, epoch, lease_until_ms FROM tw_node", &[], Lock::None).await?;
    let lease = |row: Row| -> Result<(Node, Timestamp), SessionError> {
        let mut row = row.read();
        Ok((Node { name: row.text()?, epoch: row.int()? }, row.instant()?))
    };
    rows.into_iter().map(lease).collect()
}

pub async fn overdue(
    s: &mut dyn Session,
    tables: &Tables,
    now: Timestamp,
    max: usize,
) -> Result<Vec<Watched>, SessionError> {
    let tail =
        format!("WHERE state IN ({UNKNOWN}, {RUNNING}) AND check_ms <= ? ORDER BY check_ms, log_id LIMIT ?");
    let found = runs::select(s, &tail, &[now.into(), limit(max)], Lock::None).await?;
    let jobs = jobs_of(s, tables, &found).await?;
    let ids = found.iter().map(|run| run.id.0).collect();
    let mut stored = foreign::results_of(s, tables, ids, Lock::None).await?;
    let watched =
        |run: Run| Watched { job: jobs.get(&run.job.0).cloned(), stored: stored.remove(&run.id), run };
    Ok(found.into_iter().map(watched).collect())
}

async fn jobs_of(
    s: &mut dyn Session,
    tables: &Tables,
    runs: &[Run],
) -> Result<BTreeMap<i64, Arc<Job>>, SessionError> {
    let mut ids: Vec<i64> = runs.iter().map(|run| run.job.0).collect();
    ids.sort_unstable();
    ids.dedup();
    let found = jobs::load(s, tables, &ids).await?;
    Ok(found.into_iter().map(|(id, stored)| (id, Arc::new(stored.job))).collect())
}

fn limit(max: usize) -> Value {
    i64::try_from(max).unwrap_or(i64::MAX).into()
}

// ── Jobs ────────────────────────────────────────────────────────────────────────────────────────────────────────

pub async fn job(s: &mut dyn Session, tables: &Tables, id: JobId) -> Result<Option<Job>, SessionError> {
    Ok(jobs::load_one(s, tables, id).await?.map(|stored| stored.job))
}

pub async fn job_by_key(
    s: &mut dyn Session,
    tables: &Tables,
    key: &str,
) -> Result<Option<Job>, SessionError> {
    if jobs::check_text(key).is_err() {
        return Ok(None);
    }
    let found = jobs::select(s, tables, "WHERE t.job_key = ?", &[key.into()]).await?;
    Ok(found.into_iter().next().map(|stored| stored.job))
}

pub async fn jobs(
    s: &mut dyn Session,
    tables: &Tables,
    after: Option<JobId>,
    max: usize,
) -> Result<Vec<Job>, SessionError> {
    let after = after.map_or(0, |id| id.0);
    let found =
        jobs::select(s, tables, "WHERE j.id > ? ORDER BY j.id LIMIT ?", &[after.into(), limit(max)]).await?;
    Ok(found.into_iter().map(|stored| stored.job).collect())
}

// ── History ─────────────────────────────────────────────────────────────────────────────────────────────────────

pub async fn runs(
    s: &mut dyn Session,
    tables: &Tables,
    job: JobId,
    after: Option<RunId>,
    max: usize,
) -> Result<Vec<RunRecord>, SessionError> {
    let sql = "SELECT l.id, l.job_id, l.trigger_time, l.trigger_code, l.handle_code, l.executor_address, \
               l.trigger_msg, l.handle_msg, l.handle_time, f.state, f.scheduled_ms, f.address \
               FROM xxl_job_log l LEFT JOIN tw_fire f ON f.log_id = l.id \
               WHERE l.job_id = ? AND l.id > ? ORDER BY l.id LIMIT ?";
    let params = [job.0.into(), after.map_or(0, |run| run.0).into(), limit(max)];
    let rows = s.query(sql, &params, Lock::None).await?;
    rows.into_iter().map(|row| run_record(tables, row)).collect()
}

fn run_record(tables: &Tables, row: Row) -> Result<RunRecord, SessionError> {
    let mut row = row.read();
    let (id, job) = (RunId(row.int()?), JobId(row.int()?));
    let logged_at = row.maybe_text()?.and_then(|text| tables.wall.instant(&text)).unwrap_or_default();
    let codes = (row.int()?, row.int()?);
    let logged_address = row.maybe_text()?;
    let (trigger_msg, handle_msg) = (row.maybe_text()?, row.maybe_text()?);
    let has_ended = row.maybe_text()?.is_some();
    let open = row.maybe_int()?.and_then(RunState::from_number);
    let scheduled_at = row.maybe_instant()?.unwrap_or(logged_at);
    let address = row.maybe_text()?.or(logged_address).filter(|address| !address.is_empty());
    let message = handle_msg.or(trigger_msg).filter(|message| !message.is_empty());
    Ok(RunRecord {
        id,
        job,
        scheduled_at,
        state: open.unwrap_or(state_of(codes, has_ended)),
        address,
        message,
    })
}

/// State of a run that is not open in `tw_fire`, from XXL-JOB's dispatch and result codes, and whether the log has a
/// time for its end.
pub fn state_of((trigger_code, handle_code): (i64, i64), has_ended: bool) -> RunState {
    match (trigger_code, handle_code) {
        (codes::NONE, codes::NONE) if has_ended => RunState::Cancelled,
        (_, codes::OK) => RunState::Succeeded,
        (_, codes::CANCELLED) => RunState::Cancelled,
        (_, codes::TIMED_OUT) => RunState::TimedOut,
        // A run of a Java admin, in progress.
        (codes::OK, codes::NONE) => RunState::Running,
        (codes::NONE, codes::NONE) => RunState::Unknown,
        _ => RunState::Failed,
    }
}

pub async fn history(
    s: &mut dyn Session,
    job: JobId,
    after: Option<i64>,
    max: usize,
) -> Result<Vec<HistoryEntry>, SessionError> {
    let sql = "SELECT id, job_id, disposition, first_ms, last_ms, count, reason, run_id, at_ms \
               FROM tw_history WHERE job_id = ? AND id > ? ORDER BY id LIMIT ?";
    let rows = s.query(sql, &[job.0.into(), after.unwrap_or(0).into(), limit(max)], Lock::None).await?;
    rows.into_iter().map(history_entry).collect()
}

pub fn history_entry(row: Row) -> Result<HistoryEntry, SessionError> {
    let mut row = row.read();
    let (id, job) = (row.int()?, JobId(row.int()?));
    let number = row.int()?;
    let disposition = Disposition::from_number(number).ok_or_else(|| {
        StoreError::Schema(format!("entry {id} of the history has an unknown disposition {number}"))
    })?;
    let (first, last) = (row.instant()?, row.instant()?);
    let (count, reason) = (row.int()?.unsigned_abs(), row.text()?);
    let run = row.maybe_int()?.map(RunId);
    let unsent = Unsent { disposition, first, last, count, reason };
    Ok(HistoryEntry { id, job, unsent, run, at: row.instant()? })
}
