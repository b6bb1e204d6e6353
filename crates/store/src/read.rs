//! Read-only queries.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::{
    Abandoned, AppId, HistoryEntry, Job, JobId, Node, Order, Run, RunId, RunRecord, RunState, Watched,
};
use timer::Timestamp;

use crate::database::Tables;
use crate::runs::{CANCELLING, CLAIMED, LogRow, OpenRow, RUNNING, UNKNOWN, codes};
use crate::schema::check_text;
use crate::session::{Lock, Row, Session, SessionError, Value};
use crate::{foreign, jobs, nodes, runs};

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
    runs::select(s, "WHERE run_id IN ? ORDER BY run_id", &[ids], Lock::None).await
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
    format!("WHERE state = {state} AND node = ? AND epoch = ? AND run_id > ? ORDER BY run_id LIMIT ?")
}

fn part_of_node(node: &Node, after: Option<RunId>, max: usize) -> [Value; 4] {
    [node.name.as_str().into(), node.epoch.into(), after.map_or(0, |run| run.0).into(), limit(max)]
}

pub async fn open_by_app(s: &mut dyn Session, above: u64) -> Result<Vec<(AppId, u64)>, SessionError> {
    let rows = s.query("SELECT COUNT(*) FROM tw_run", &[], Lock::None).await?;
    let open = rows.into_iter().next().map(|row| row.read().int()).transpose()?.unwrap_or(0);
    if open.unsigned_abs() <= above {
        return Ok(Vec::new());
    }
    let sql = "SELECT j.job_group, SUM(r.open) FROM (SELECT job_id, COUNT(*) AS open FROM tw_run GROUP BY job_id) r \
               JOIN xxl_job_info j ON j.id = r.job_id GROUP BY j.job_group";
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
    let tail = format!("WHERE {} ORDER BY run_id LIMIT ?", is_abandoned(running));
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

/// Condition on `tw_run` for runs of fenced owners. A workflow run that is open has none.
pub fn is_abandoned(running: bool) -> String {
    let running = if running { format!(", {RUNNING}") } else { String::new() };
    format!(
        "state IN ({CLAIMED}, {CANCELLING}{running}) AND node IS NOT NULL AND NOT EXISTS (SELECT 1 FROM tw_node n \
         WHERE n.name = tw_run.node AND n.epoch = tw_run.epoch AND n.fenced = 0)"
    )
}

async fn leases(s: &mut dyn Session) -> Result<BTreeMap<Node, Timestamp>, SessionError> {
    let peers = nodes::select(s, "", &[]).await?;
    Ok(peers.into_iter().map(|peer| (peer.node, peer.lease_until)).collect())
}

pub async fn overdue(
    s: &mut dyn Session,
    tables: &Tables,
    now: Timestamp,
    max: usize,
) -> Result<Vec<Watched>, SessionError> {
    let tail =
        format!("WHERE state IN ({UNKNOWN}, {RUNNING}) AND check_ms <= ? ORDER BY check_ms, run_id LIMIT ?");
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
    if check_text(key).is_err() {
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
    let sql = format!(
        "SELECT {}, {} FROM xxl_job_log l LEFT JOIN tw_run r ON r.run_id = l.id \
         WHERE l.job_id = ? AND l.id > ? ORDER BY l.id LIMIT ?",
        LogRow::list_of("l"),
        OpenRow::list_of("r")
    );
    let params = [job.into(), after.map_or(0, |run| run.0).into(), limit(max)];
    let rows = s.query(&sql, &params, Lock::None).await?;
    rows.into_iter().map(|row| run_record(tables, row)).collect()
}

fn run_record(tables: &Tables, row: Row) -> Result<RunRecord, SessionError> {
    let mut row = row.read();
    let (log, open) = (LogRow::read(&mut row)?, OpenRow::read_joined(&mut row)?);
    let logged_at = log.trigger_time.and_then(|text| tables.wall.instant(&text)).unwrap_or_default();
    let ended_as = state_of((log.trigger_code, log.handle_code), log.handle_time.is_some());
    let (state, scheduled_at, address) = match open {
        Some(open) => (open.state, open.scheduled_ms, open.address),
        None => (ended_as, logged_at, None),
    };
    let address = address.or(log.executor_address).filter(|address| !address.is_empty());
    let message = log.handle_msg.or(log.trigger_msg).filter(|message| !message.is_empty());
    Ok(RunRecord { id: log.id, job: log.job_id, scheduled_at, state, address, message })
}

/// State of a run that is not open in `tw_run`, from XXL-JOB's dispatch and result codes, and whether the log has a
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
    let tail = "WHERE job_id = ? AND id > ? ORDER BY id LIMIT ?";
    let params = [job.into(), after.unwrap_or(0).into(), limit(max)];
    let found = runs::select_history(s, tail, &params, Lock::None).await?;
    Ok(found.into_iter().map(HistoryEntry::from).collect())
}
