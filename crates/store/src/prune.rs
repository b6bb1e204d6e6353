//! Deletes old rows by key, a few per transaction.

use engine::Retention;

use crate::backfills;
use crate::database::Tables;
use crate::runs;
use crate::session::{Lock, Session, SessionError, Value};
use crate::workflows;

pub async fn prune(
    s: &mut dyn Session,
    tables: &Tables,
    retention: &Retention,
    max: usize,
) -> Result<usize, SessionError> {
    let runs_before = tables.wall.time(retention.runs_before);
    let failed_before = runs_before.clone();
    let history_before: Value = retention.history_before.into();
    let old = [
        Old {
            rows: &[("xxl_job_log", "id"), ("tw_trace", "run_id"), ("tw_failed", "id")],
            select: "SELECT l.id FROM xxl_job_log l WHERE l.trigger_time < ? \
                     AND (l.handle_time IS NULL OR l.handle_time < ?) \
                     AND NOT EXISTS (SELECT 1 FROM tw_run r WHERE r.run_id = l.id) ORDER BY l.trigger_time LIMIT ?",
            before: vec![runs_before.clone(), runs_before],
        },
        // Deleted by their own age, because other programs that delete runs, such as Java admins, leave them.
        Old {
            rows: &[("tw_run_log", "run_id")],
            select: "SELECT run_id FROM tw_run_log WHERE kept_ms < ? AND part = 0 ORDER BY kept_ms LIMIT ?",
            before: vec![retention.runs_before.into()],
        },
        Old {
            rows: &[("tw_failed", "id")],
            select: "SELECT f.id FROM tw_failed f WHERE f.trigger_time < ? \
                     AND NOT EXISTS (SELECT 1 FROM xxl_job_log l WHERE l.id = f.id) ORDER BY f.trigger_time LIMIT ?",
            before: vec![failed_before],
        },
        Old {
            rows: &[("tw_trace", "run_id")],
            select: "SELECT run_id FROM tw_trace WHERE saved_ms < ? ORDER BY saved_ms LIMIT ?",
            before: vec![retention.runs_before.into()],
        },
        Old {
            rows: &[("tw_alert", "id"), ("tw_delivery", "alert_id")],
            select: "SELECT a.id FROM tw_alert a WHERE a.at_ms < ? \
                     AND NOT EXISTS (SELECT 1 FROM tw_pending_alert p WHERE p.id = a.pending_id) ORDER BY a.at_ms LIMIT ?",
            before: vec![retention.runs_before.into()],
        },
        // Rows of this table have no time of their own; they are deleted after the log of their first shard.
        Old {
            rows: &[("tw_broadcast", "fire_id")],
            select: "SELECT b.fire_id FROM tw_broadcast b WHERE b.open = 0 \
                     AND NOT EXISTS (SELECT 1 FROM xxl_job_log l WHERE l.id = b.fire_id) LIMIT ?",
            before: vec![],
        },
        // A run that a user clears earlier leaves its steps until then.
        Old {
            rows: &workflows::TABLES,
            select: "SELECT w.run_id FROM tw_workflow_run w WHERE w.begun_ms < ? \
                     AND NOT EXISTS (SELECT 1 FROM xxl_job_log l WHERE l.id = w.run_id) ORDER BY w.begun_ms LIMIT ?",
            before: vec![retention.runs_before.into()],
        },
        Old {
            rows: &[("tw_run_starter", "run_id")],
            select: "SELECT s.run_id FROM tw_run_starter s WHERE s.at_ms < ? \
                     AND NOT EXISTS (SELECT 1 FROM xxl_job_log l WHERE l.id = s.run_id) ORDER BY s.at_ms LIMIT ?",
            before: vec![retention.runs_before.into()],
        },
        // A run that was to resume another one, and never began.
        Old {
            rows: &workflows::TABLES,
            select: "SELECT r.run_id FROM tw_resume r WHERE r.at_ms < ? \
                     AND NOT EXISTS (SELECT 1 FROM xxl_job_log l WHERE l.id = r.run_id) ORDER BY r.at_ms LIMIT ?",
            before: vec![retention.runs_before.into()],
        },
        Old {
            rows: &[("tw_history", "id")],
            select: "SELECT id FROM tw_history WHERE at_ms < ? ORDER BY id LIMIT ?",
            before: vec![history_before.clone()],
        },
        // These have no time either; they are deleted after their history entry.
        Old {
            rows: &[("tw_lost", "run_id")],
            select: "SELECT l.run_id FROM tw_lost l \
                     WHERE NOT EXISTS (SELECT 1 FROM tw_history h WHERE h.run_id = l.run_id) LIMIT ?",
            before: vec![],
        },
    ];
    let mut pruned = 0;
    for Old { rows, select, before: mut params } in old {
        if pruned == max {
            return Ok(pruned);
        }
        params.push(left(max, pruned));
        let ids = ids(s, select, &params).await?;
        if !ids.is_empty() {
            for (table, key) in rows {
                s.delete(table, key, &ids).await?;
            }
        }
        pruned += ids.len();
    }
    if let Some(keep) = retention.runs_max {
        pruned += prune_beyond(s, keep, left(max, pruned)).await?;
    }
    if pruned < max {
        pruned += backfills::prune(s, retention.runs_before).await?;
    }
    let unused_before = retention.runs_before.min(retention.history_before);
    pruned += workflows::prune::prune(s, unused_before, max.saturating_sub(pruned)).await?;
    pruned += prune_triggers(s, &history_before, left(max, pruned)).await?;
    pruned += prune_nodes(s, &history_before, left(max, pruned)).await?;
    Ok(pruned)
}

/// Old rows of a table, and rows of other tables that belong to them.
struct Old {
    /// Tables, each with the column that holds the id.
    rows: &'static [(&'static str, &'static str)],
    /// Query for the ids of the oldest rows.
    select: &'static str,
    /// Cutoff times, one per parameter of the query.
    before: Vec<Value>,
}

/// Deletes runs beyond the number to keep, and their logs.
async fn prune_beyond(s: &mut dyn Session, keep: u64, max: Value) -> Result<usize, SessionError> {
    let Some(last) = last_beyond(s, keep).await? else { return Ok(0) };
    let sql = "SELECT l.id FROM xxl_job_log l WHERE l.id <= ? \
               AND NOT EXISTS (SELECT 1 FROM tw_run r WHERE r.run_id = l.id) ORDER BY l.id LIMIT ?";
    let ids = ids(s, sql, &[last.into(), max]).await?;
    runs::forget(s, &ids).await?;
    Ok(ids.len())
}

/// The newest run beyond the number to keep. Only few rows are counted, because counting millions each minute would
/// slow down dispatching. The position is extrapolated from the spacing of the newest ids, because ids of some
/// databases have gaps.
async fn last_beyond(s: &mut dyn Session, keep: u64) -> Result<Option<i64>, SessionError> {
    let sql = "SELECT id FROM xxl_job_log ORDER BY id DESC LIMIT ?";
    let newest = ids(s, sql, &[keep.saturating_add(1).min(COUNTED_MAX).cast_signed().into()]).await?;
    let (Some(first), Some(last)) = (newest.first(), newest.last()) else { return Ok(None) };
    let counted = newest.len() as u64;
    Ok(match keep {
        keep if counted <= keep && counted < COUNTED_MAX => None,
        keep if keep < COUNTED_MAX => Some(*last),
        keep => {
            let distance = i128::from(first - last) * i128::from(keep) / i128::from(counted - 1);
            Some(i64::try_from(i128::from(*first) - distance).unwrap_or(0))
        }
    })
}

/// Maximum rows counted to find the runs beyond the limit.
const COUNTED_MAX: u64 = 1_000;

async fn ids(s: &mut dyn Session, sql: &str, params: &[Value]) -> Result<Vec<i64>, SessionError> {
    let rows = s.query(sql, params, Lock::None).await?;
    rows.into_iter().map(|row| row.read().int()).collect()
}

fn left(max: usize, pruned: usize) -> Value {
    i64::try_from(max.saturating_sub(pruned)).unwrap_or(i64::MAX).into()
}

/// The key of an open run is kept: it still prevents a duplicate trigger.
async fn prune_triggers(s: &mut dyn Session, before: &Value, max: Value) -> Result<usize, SessionError> {
    let sql = "SELECT t.job_id, t.trigger_key FROM tw_trigger t WHERE t.at_ms < ? \
               AND NOT EXISTS (SELECT 1 FROM tw_run r WHERE r.run_id = t.run_id) LIMIT ?";
    let rows = s.query(sql, &[before.clone(), max], Lock::None).await?;
    let count = rows.len();
    for row in rows {
        s.execute("DELETE FROM tw_trigger WHERE job_id = ? AND trigger_key = ?", &row.0).await?;
    }
    Ok(count)
}

/// An incarnation with open runs is kept, because the end of its lease limits when it may have dispatched them.
async fn prune_nodes(s: &mut dyn Session, before: &Value, max: Value) -> Result<usize, SessionError> {
    let sql = "SELECT n.name, n.epoch FROM tw_node n WHERE n.fenced = 1 AND n.lease_until_ms < ? \
               AND NOT EXISTS (SELECT 1 FROM tw_run r WHERE r.node = n.name AND r.epoch = n.epoch) LIMIT ?";
    let rows = s.query(sql, &[before.clone(), max], Lock::None).await?;
    let count = rows.len();
    for row in rows {
        s.execute("DELETE FROM tw_node WHERE name = ? AND epoch = ?", &row.0).await?;
    }
    Ok(count)
}
