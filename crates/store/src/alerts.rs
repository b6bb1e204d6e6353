//! Alerts: rows of `tw_pending_alert` until they are delivered, and of `tw_alert` until they are old.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use engine::policy::{Repeats, Word};
use engine::{Alert, AppId, JobId, RunId, Trouble, TroubleKind};
use timer::Timestamp;

use crate::database::Tables;
use crate::runs;
use crate::session::{Columns, Lock, Row, Session, SessionError, Value};
use crate::table::table;

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
            // Each of these names other runs.
            Some(at) if now < rows[at].joins_until && about.2.kind != TroubleKind::HistoryLost => {
                rows[at].add(now);
            }
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
    let sql = format!(
        "SELECT {} FROM tw_alert WHERE job_id IN ? AND joins_until_ms > ? ORDER BY job_id, joins_until_ms, id",
        RecentRow::LIST
    );
    let (mut rows, mut latest) = Lately::default();
    for row in s.query(&sql, &[jobs, (now - window).into()], Lock::Wait).await? {
        let row = RecentRow::read(&mut row.read())?;
        latest.insert((row.job_id, kind_of(&row.kind).stored()), rows.len());
        rows.push(Remembered {
            id: row.id,
            last: row.last_ms,
            count: row.count,
            earlier: 0,
            step: row.step,
            joins_until: row.joins_until_ms,
            has_grown: false,
        });
    }
    Ok((rows, latest))
}

table! {
    /// The columns of `tw_alert` that decide whether a repeat is added.
    struct RecentRow in "tw_alert" {
        id: i64,
        job_id: JobId,
        kind: String,
        last_ms: Timestamp,
        count: i64,
        step: u32,
        joins_until_ms: Timestamp,
    }
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
        apps.insert(row.int()?, AppId(row.int()?));
    }
    let fresh: Vec<(About, Remembered)> = fresh.collect();
    let new: Vec<NewAlert<'_>> = fresh
        .iter()
        .map(|((job, run, trouble), row)| NewAlert {
            pending: 0,
            // A deleted job has no app any more; only users with access to all apps see its alert.
            app: apps.get(&job.0).copied().unwrap_or(AppId(0)),
            job: *job,
            run: *run,
            trouble,
            now,
            row,
        })
        .collect();
    let (into, row) = PendingRow::INSERT;
    let numbers = s.insert_numbered(into, new.iter().map(|alert| row(*alert)).collect()).await?;
    let (into, row) = AlertColumns::INSERT;
    let rows = new.into_iter().zip(numbers).map(|(alert, pending)| row(NewAlert { pending, ..alert }));
    s.insert(into, rows.collect()).await
}

/// An alert to write.
#[derive(Clone, Copy)]
struct NewAlert<'a> {
    pending: i64,
    app: AppId,
    job: JobId,
    run: Option<RunId>,
    trouble: &'a Trouble,
    now: Timestamp,
    row: &'a Remembered,
}

table! {
    /// Row of `tw_pending_alert`.
    struct PendingRow in "tw_pending_alert" of alert: NewAlert<'_> {
        kind: String = alert.trouble.kind.stored(),
        job_id: JobId = alert.job,
        run_id: RunId = alert.run.unwrap_or(NO_RUN),
        message: String = runs::message_text(&alert.trouble.message),
        tries: u32 = 0,
    }
    not inserted { id: i64 }
    not read { due_ms = alert.now, leased_until_ms = Timestamp::from_millis(0) }
}

table! {
    /// Row of `tw_alert`.
    struct AlertColumns in "tw_alert" of alert: NewAlert<'_> {
        kind: String = alert.trouble.kind.stored(),
        app_id: AppId = alert.app,
        job_id: JobId = alert.job,
        run_id: Option<RunId> = alert.run,
        message: String = runs::message_text(&alert.trouble.message),
        at_ms: Timestamp = alert.now,
        last_ms: Timestamp = alert.row.last,
        count: u64 = alert.row.count,
        earlier: u64 = alert.row.earlier,
        outcome: i64 = DELIVERED,
        tries: u32 = 0,
    }
    not inserted { id: i64 }
    not read {
        step = i64::from(alert.row.step),
        joins_until_ms = alert.row.joins_until,
        pending_id = alert.pending,
    }
}

/// Outcome of an alert that is not in `tw_pending_alert` any more: every recipient was notified, as far as recorded.
pub const DELIVERED: i64 = 1;

/// Outcome: at least one recipient was not notified, and there are no more retries.
pub const GIVEN_UP: i64 = 2;

/// Outcome: no recipient is configured.
pub const NOBODY: i64 = 3;

/// Run id of an alert without a run.
const NO_RUN: RunId = RunId(0);

pub async fn take_alerts(
    s: &mut dyn Session,
    now: Timestamp,
    lease: Duration,
    max: usize,
) -> Result<Vec<Alert>, SessionError> {
    let sql = format!(
        "SELECT {} FROM tw_pending_alert WHERE due_ms <= ? AND leased_until_ms <= ? ORDER BY id LIMIT ?",
        PendingRow::LIST
    );
    let max = i64::try_from(max).unwrap_or(i64::MAX);
    let rows = s.query(&sql, &[now.into(), now.into(), max.into()], Lock::Skip).await?;
    let read = |row: Row| -> Result<Alert, SessionError> {
        let row = PendingRow::read(&mut row.read())?;
        let trouble = Trouble { kind: kind_of(&row.kind), message: row.message };
        let run = (row.run_id != NO_RUN).then_some(row.run_id);
        Ok(Alert { id: row.id, job: row.job_id, run, trouble, tries: row.tries.saturating_add(1) })
    };
    let alerts = rows.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
    if !alerts.is_empty() {
        let ids = Value::Ids(alerts.iter().map(|alert| alert.id).collect());
        let sql = "UPDATE tw_pending_alert SET leased_until_ms = ?, tries = tries + 1 WHERE id IN ?";
        s.execute(sql, &[(now + lease).into(), ids]).await?;
    }
    Ok(alerts)
}

pub async fn forget_alerts(s: &mut dyn Session, ids: &[i64]) -> Result<(), SessionError> {
    if !ids.is_empty() {
        let sql = "UPDATE tw_alert SET pending_id = NULL WHERE pending_id IN ?";
        s.execute(sql, &[Value::Ids(ids.to_vec())]).await?;
        s.delete("tw_pending_alert", "id", ids).await?;
    }
    Ok(())
}

pub async fn delay_alert(s: &mut dyn Session, id: i64, until: Timestamp) -> Result<(), SessionError> {
    s.execute("UPDATE tw_pending_alert SET leased_until_ms = ? WHERE id = ?", &[until.into(), id.into()])
        .await?;
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
        for kind in [Failed, TimedOut, Lost, Late, NotRun, HistoryLost] {
            assert_eq!(kind_of(kind.stored()), kind);
        }
        assert_eq!(kind_of("alert"), Failed);
    }
}
