//! Alerts: rows of `tw_outbox` until they are delivered, and of `tw_alert` until they are old.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use engine::policy::{Repeats, Word};
use engine::{Alert, JobId, RunId, Trouble, TroubleKind};
use timer::Timestamp;

use crate::database::Tables;
use crate::runs;
use crate::session::{Columns, Lock, Row, Session, SessionError, Value};

/// A job, the affected run if there is one, and the incident.
pub type About = (JobId, Option<RunId>, Trouble);

/// Stores alerts for immediate delivery. Repeats within the window of an earlier alert are only counted there.
pub async fn raise(
    s: &mut dyn Session,
    tables: &Tables,
    now: Timestamp,
    alerts: Vec<About>,
) -> Result<(), SessionError> {
    if alerts.is_empty() {
        return Ok(());
    }
    let jobs: BTreeSet<i64> = alerts.iter().map(|(job, ..)| job.0).collect();
    let jobs = Value::Ids(jobs.into_iter().collect());
    let (mut rows, mut latest) = match tables.repeats {
        Some(repeats) => lately(s, repeats.most, now, jobs.clone()).await?,
        None => Default::default(),
    };
    let known = rows.len();
    let mut fresh = Vec::new();
    for about in alerts {
        let key = (about.0, about.2.kind.stored());
        let before = latest.get(&key).copied();
        match before {
            Some(at) if now < rows[at].joins_until => rows[at].add(now),
            _ => {
                let row = Remembered::first(tables.repeats, now, before.map(|at| &rows[at]));
                latest.insert(key, rows.len());
                rows.push(row);
                fresh.push(about);
            }
        }
    }
    let new = rows.split_off(known);
    count(s, rows).await?;
    write(s, now, jobs, fresh.into_iter().zip(new)).await
}

/// An alert that repeats may be added to.
struct Remembered {
    id: i64,
    last: Timestamp,
    count: i64,
    /// Number of occurrences that were added to the alert before without a notification.
    earlier: i64,
    step: u32,
    joins_until: Timestamp,
    has_grown: bool,
}

/// Recent alerts of jobs, and the index of the last one of each kind. The rows are locked until the transaction
/// ends.
type Lately = (Vec<Remembered>, BTreeMap<(JobId, &'static str), usize>);

async fn lately(
    s: &mut dyn Session,
    window: Duration,
    now: Timestamp,
    jobs: Value,
) -> Result<Lately, SessionError> {
    let sql = "SELECT job_id, kind, id, last_ms, count, step, joins_until_ms FROM tw_alert \
               WHERE job_id IN ? AND joins_until_ms > ? ORDER BY job_id, joins_until_ms, id";
    let (mut rows, mut latest) = Lately::default();
    for row in s.query(sql, &[jobs, (now - window).into()], Lock::Wait).await? {
        let mut row = row.read();
        latest.insert((JobId(row.int()?), kind_of(&row.text()?).stored()), rows.len());
        rows.push(Remembered {
            id: row.int()?,
            last: row.instant()?,
            count: row.int()?,
            earlier: 0,
            step: u32::try_from(row.int()?).unwrap_or(0),
            joins_until: row.instant()?,
            has_grown: false,
        });
    }
    Ok((rows, latest))
}

impl Remembered {
    /// A new alert, after the last recent one of its kind, if there is one.
    fn first(repeats: Option<Repeats>, now: Timestamp, before: Option<&Remembered>) -> Remembered {
        let (mut step, mut earlier, mut joins_until) = (0, 0, now);
        if let Some(repeats) = repeats {
            if let Some(before) = before {
                step = repeats.next_step(before.step, now.duration_since(before.last));
                earlier = if step > 0 { before.count - 1 } else { 0 };
            }
            joins_until = now + repeats.window(step);
        }
        Remembered { id: 0, last: now, count: 1, earlier, step, joins_until, has_grown: false }
    }

    fn add(&mut self, now: Timestamp) {
        self.count += 1;
        self.last = self.last.max(now);
        self.has_grown = true;
    }
}

/// Stores how often alerts have happened.
async fn count(s: &mut dyn Session, mut rows: Vec<Remembered>) -> Result<(), SessionError> {
    rows.retain(|row| row.has_grown);
    if rows.is_empty() {
        return Ok(());
    }
    rows.sort_by_key(|row| row.id);
    let set = Columns { table: "tw_alert", keys: &["id"], columns: &["count", "last_ms"] };
    let rows = rows.iter().map(|row| vec![row.id.into(), row.count.into(), row.last.into()]);
    s.update(set, rows.collect()).await?;
    Ok(())
}

async fn write(
    s: &mut dyn Session,
    now: Timestamp,
    jobs: Value,
    fresh: impl ExactSizeIterator<Item = (About, Remembered)>,
) -> Result<(), SessionError> {
    if fresh.len() == 0 {
        return Ok(());
    }
    let mut apps = BTreeMap::new();
    for row in s.query("SELECT id, job_group FROM xxl_job_info WHERE id IN ?", &[jobs], Lock::None).await? {
        let mut row = row.read();
        apps.insert(row.int()?, row.int()?);
    }
    let (mut told, mut kept) = (Vec::new(), Vec::new());
    for ((job, run, trouble), row) in fresh {
        let (kind, message) = (trouble.kind.stored(), runs::message_text(&trouble.message));
        let run = run.map(|run| run.0);
        let number: Value = run.unwrap_or(NO_RUN).into();
        told.push(vec![
            kind.into(),
            job.0.into(),
            number,
            message.clone().into(),
            now.into(),
            0.into(),
            0.into(),
        ]);
        // A deleted job has no app any more; only users with access to all apps see its alert.
        let app = apps.get(&job.0).copied().unwrap_or(0);
        kept.push(vec![
            kind.into(),
            app.into(),
            job.0.into(),
            run.into(),
            message.into(),
            now.into(),
            row.last.into(),
            row.count.into(),
            row.earlier.into(),
            i64::from(row.step).into(),
            row.joins_until.into(),
            DELIVERED.into(),
            0.into(),
        ]);
    }
    let columns = ["kind", "job_id", "run_id", "message", "due_ms", "leased_until_ms", "tries"];
    let into = Columns { table: "tw_outbox", keys: &[], columns: &columns };
    let numbers = s.insert_numbered(into, told).await?;
    for (row, number) in kept.iter_mut().zip(numbers) {
        row.push(number.into());
    }
    let columns = [
        "kind",
        "app_id",
        "job_id",
        "run_id",
        "message",
        "at_ms",
        "last_ms",
        "count",
        "earlier",
        "step",
        "joins_until_ms",
        "outcome",
        "tries",
        "outbox_id",
    ];
    s.insert(Columns { table: "tw_alert", keys: &[], columns: &columns }, kept).await
}

/// Outcome of an alert that is not in `tw_outbox` any more: every recipient was notified, as far as recorded.
pub const DELIVERED: i64 = 1;

/// Outcome: at least one recipient was not notified, and there are no more retries.
pub const GIVEN_UP: i64 = 2;

/// Outcome: no recipient is configured.
pub const NOBODY: i64 = 3;

/// Run id of an alert without a run.
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
        let (id, kind) = (row.int()?, kind_of(&row.text()?));
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
        let sql = "UPDATE tw_alert SET outbox_id = NULL WHERE outbox_id IN ?";
        s.execute(sql, &[Value::Ids(ids.to_vec())]).await?;
        s.delete("tw_outbox", "id", ids).await?;
    }
    Ok(())
}

pub async fn delay_alert(s: &mut dyn Session, id: i64, until: Timestamp) -> Result<(), SessionError> {
    s.execute("UPDATE tw_outbox SET leased_until_ms = ? WHERE id = ?", &[until.into(), id.into()]).await?;
    Ok(())
}

/// Kind of an alert. Rows written before there were kinds are failures.
pub fn kind_of(word: &str) -> TroubleKind {
    TroubleKind::from_stored(word).unwrap_or(TroubleKind::Failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_read_back() {
        use TroubleKind::*;
        for kind in [Failed, TimedOut, Lost, Late, NotRun] {
            assert_eq!(kind_of(kind.stored()), kind);
        }
        assert_eq!(kind_of("alert"), Failed);
    }
}
