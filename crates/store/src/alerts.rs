//! Alerts: rows of `tw_outbox` until somebody has told people.

use std::time::Duration;

use engine::{Alert, JobId, RunId, Trouble, TroubleKind};
use timer::Timestamp;

use crate::runs;
use crate::session::{Columns, Lock, Row, Session, SessionError, Value};

/// Something to be told of a job, and of one of its runs if it is about one.
pub type About = (JobId, Option<RunId>, Trouble);

/// Adds alerts, to be delivered at once.
pub async fn raise(s: &mut dyn Session, now: Timestamp, alerts: Vec<About>) -> Result<(), SessionError> {
    if alerts.is_empty() {
        return Ok(());
    }
    let columns = ["kind", "job_id", "run_id", "message", "due_ms", "leased_until_ms", "tries"];
    let row = |(job, run, trouble): About| -> Vec<Value> {
        let run = run.map_or(NO_RUN, |run| run.0);
        let (kind, message) = (trouble.kind.word(), runs::message_text(&trouble.message));
        vec![kind.into(), job.0.into(), run.into(), message.into(), now.into(), 0.into(), 0.into()]
    };
    let into = Columns { table: "tw_outbox", keys: &[], columns: &columns };
    s.insert(into, alerts.into_iter().map(row).collect()).await
}

/// The number in the row of an alert that is about no run.
const NO_RUN: i64 = 0;

pub async fn take_alerts(
    s: &mut dyn Session,
    now: Timestamp,
    lease: Duration,
    max: usize,
) -> Result<Vec<Alert>, SessionError> {
    let sql = "SELECT id, kind, job_id, run_id, message, tries FROM tw_outbox \
               WHERE due_ms <= ? AND leased_until_ms <= ? ORDER BY id LIMIT ?";
    let max = i64::try_from(max).unwrap_or(i64::MAX);
    let rows = s.query(sql, &[now.into(), now.into(), max.into()], Lock::Skip).await?;
    let read = |row: Row| -> Result<Alert, SessionError> {
        let mut row = row.read();
        let (id, kind) = (row.int()?, TroubleKind::from_word(&row.text()?));
        let (job, run) = (JobId(row.int()?), row.int()?);
        let run = (run != NO_RUN).then_some(RunId(run));
        let trouble = Trouble { kind, message: row.text()? };
        let tries = u32::try_from(row.int()? + 1).unwrap_or(u32::MAX);
        Ok(Alert { id, job, run, trouble, tries })
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

pub async fn delay_alert(s: &mut dyn Session, id: i64, until: Timestamp) -> Result<(), SessionError> {
    s.execute("UPDATE tw_outbox SET leased_until_ms = ? WHERE id = ?", &[until.into(), id.into()]).await?;
    Ok(())
}
