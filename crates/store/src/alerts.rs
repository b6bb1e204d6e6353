//! Alerts: rows of `tw_outbox` until somebody has told people.

use std::time::Duration;

use engine::{Alert, JobId, RunId};
use timer::Timestamp;

use crate::runs;
use crate::session::{Columns, Lock, Row, Session, SessionError, Value};

/// Adds alerts, to be delivered at once.
pub async fn raise(
    s: &mut dyn Session,
    now: Timestamp,
    alerts: Vec<(JobId, RunId, String)>,
) -> Result<(), SessionError> {
    if alerts.is_empty() {
        return Ok(());
    }
    let columns = ["kind", "job_id", "run_id", "message", "due_ms", "leased_until_ms", "tries"];
    let row = |(job, run, message): (JobId, RunId, String)| -> Vec<Value> {
        let message = runs::message_text(&message);
        vec!["alert".into(), job.0.into(), run.0.into(), message.into(), now.into(), 0.into(), 0.into()]
    };
    let into = Columns { table: "tw_outbox", keys: &[], columns: &columns };
    s.insert(into, alerts.into_iter().map(row).collect()).await
}

pub async fn take_alerts(
    s: &mut dyn Session,
    now: Timestamp,
    lease: Duration,
    max: usize,
) -> Result<Vec<Alert>, SessionError> {
    let sql = "SELECT id, job_id, run_id, message FROM tw_outbox \
               WHERE due_ms <= ? AND leased_until_ms <= ? ORDER BY id LIMIT ?";
    let max = i64::try_from(max).unwrap_or(i64::MAX);
    let rows = s.query(sql, &[now.into(), now.into(), max.into()], Lock::Skip).await?;
    let read = |row: Row| -> Result<Alert, SessionError> {
        let mut row = row.read();
        Ok(Alert { id: row.int()?, job: JobId(row.int()?), run: RunId(row.int()?), message: row.text()? })
    };
    let alerts = rows.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
    if !alerts.is_empty() {
        let ids = Value::Ids(alerts.iter().map(|alert| alert.id).collect());
        let sql = "UPDATE tw_outbox SET leased_until_ms = ?, tries = tries + 1 WHERE id IN ?";
        s.execute(sql, &[(now + lease).into(), ids]).await?;
    }
    Ok(alerts)
}

pub async fn forget_alerts(s: &mut dyn Session, ids: &[i64]) -> Result<(), SessionError> {
    if !ids.is_empty() {
        s.delete("tw_outbox", "id", ids).await?;
    }
    Ok(())
}
