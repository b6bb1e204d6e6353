//! Alerts as people look through them: rows of `tw_alert` with those of `tw_delivery`.

use std::collections::BTreeMap;

use engine::{AppId, JobId, RunId, TroubleKind};
use timer::Timestamp;

use super::page::{Conditions, Page, Paged};
use crate::alerts::{DELIVERED, GIVEN_UP, NOBODY};
use crate::runs;
use crate::session::{Columns, Lock, Row, Session, SessionError, Value};

/// Which alerts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AlertFilter {
    /// Of these apps; of all where there is no list.
    pub apps: Option<Vec<AppId>>,
    /// Of this job.
    pub job: Option<JobId>,
    /// Of this kind.
    pub kind: Option<TroubleKind>,
    /// That stand like this.
    pub state: Option<AlertState>,
    /// That happened first from then on,
    pub from: Option<Timestamp>,
    /// and before then.
    pub until: Option<Timestamp>,
}

/// Whether people were told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlertState {
    /// Not all of them yet.
    Waiting,
    /// All of them.
    Delivered,
    /// Not all of them, and it is not tried any more.
    GivenUp,
    /// There was nobody to tell.
    Nobody,
}

/// An alert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlertRow {
    /// Its number.
    pub id: i64,
    /// What happened.
    pub kind: TroubleKind,
    /// The app of its job then.
    pub app: AppId,
    /// Its job.
    pub job: JobId,
    /// The run that it happened to first, if there was one.
    pub run: Option<RunId>,
    /// What there is to say about it.
    pub message: String,
    /// When it happened first,
    pub at: Timestamp,
    /// when last,
    pub last_at: Timestamp,
    /// and how often.
    pub count: u64,
    /// How many joined the alert of the same kind before it, without being told.
    pub earlier: u64,
    /// Whether people were told.
    pub state: AlertState,
    /// How often that was tried.
    pub tries: u32,
    /// Who was told, or could not be.
    pub deliveries: Vec<Delivery>,
}

/// Somebody who is told of an alert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// By what.
    pub channel: String,
    /// Who, without secrets.
    pub to: String,
    /// When that was last tried.
    pub at: Timestamp,
    /// Why it did not work, if it did not.
    pub trouble: Option<String>,
}

/// How many alerts there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AlertCount {
    /// In all,
    pub all: u64,
    /// and those of which not everybody was told, or not yet.
    pub undelivered: u64,
}

// ── Reading ─────────────────────────────────────────────────────────────────────────────────────────────────────

pub async fn alert_page(
    s: &mut dyn Session,
    filter: &AlertFilter,
    page: Page,
) -> Result<Paged<AlertRow>, SessionError> {
    let Some(mut conditions) = conditions(filter) else { return Ok(Paged::empty(page)) };
    if let Some(after) = page.after() {
        conditions.and("a.id < ?", [after.into()]);
    }
    let sql = format!("{} ORDER BY a.id DESC LIMIT ? OFFSET ?", select(&conditions.sql()));
    let rows = s.query(&sql, &conditions.params(page.bounds()), Lock::None).await?;
    let rows = with_deliveries(s, rows).await?;
    Ok(Paged::new(rows, page, None, |row| row.id))
}

/// The alert that is still to be told under that number.
pub async fn alert_to_tell(s: &mut dyn Session, outbox: i64) -> Result<Option<AlertRow>, SessionError> {
    let rows = s.query(&select("WHERE a.outbox_id = ?"), &[outbox.into()], Lock::None).await?;
    Ok(with_deliveries(s, rows).await?.pop())
}

pub async fn alert_count(s: &mut dyn Session, filter: &AlertFilter) -> Result<AlertCount, SessionError> {
    let Some(conditions) = conditions(filter) else { return Ok(AlertCount::default()) };
    let sql = format!(
        "SELECT COUNT(*), SUM(CASE WHEN {WAITING} OR a.outcome = {GIVEN_UP} THEN 1 ELSE 0 END) FROM tw_alert a {}",
        conditions.sql()
    );
    let rows = s.query(&sql, &conditions.params([]), Lock::None).await?;
    let Some(row) = rows.into_iter().next() else { return Ok(AlertCount::default()) };
    let mut row = row.read();
    let all = row.int()?.unsigned_abs();
    Ok(AlertCount { all, undelivered: row.maybe_int()?.unwrap_or(0).unsigned_abs() })
}

fn select(conditions: &str) -> String {
    format!(
        "SELECT a.id, a.kind, a.app_id, a.job_id, a.run_id, a.message, a.at_ms, a.last_ms, a.count, a.earlier, \
         a.tries, a.outcome, CASE WHEN {WAITING} THEN 1 ELSE 0 END FROM tw_alert a {conditions}"
    )
}

/// Whoever delivers takes the row out of the outbox, and a node of an older release does nothing else.
const WAITING: &str = "EXISTS (SELECT 1 FROM tw_outbox o WHERE o.id = a.outbox_id)";

/// None where nothing fits.
fn conditions(filter: &AlertFilter) -> Option<Conditions> {
    let mut conditions = Conditions::default();
    if let Some(apps) = &filter.apps {
        if apps.is_empty() {
            return None;
        }
        conditions.and("a.app_id IN ?", [Value::Ids(apps.iter().map(|app| app.0).collect())]);
    }
    if let Some(job) = filter.job {
        conditions.and("a.job_id = ?", [job.0.into()]);
    }
    if let Some(kind) = filter.kind {
        conditions.and("a.kind = ?", [kind.word().into()]);
    }
    match filter.state {
        Some(AlertState::Waiting) => conditions.and(WAITING, []),
        Some(other) => {
            conditions.and(format!("NOT {WAITING} AND a.outcome = ?"), [outcome(other).into()]);
        }
        None => {}
    }
    if let Some(from) = filter.from {
        conditions.and("a.at_ms >= ?", [from.into()]);
    }
    if let Some(until) = filter.until {
        conditions.and("a.at_ms < ?", [until.into()]);
    }
    Some(conditions)
}

fn outcome(state: AlertState) -> i64 {
    match state {
        AlertState::Waiting | AlertState::Delivered => DELIVERED,
        AlertState::GivenUp => GIVEN_UP,
        AlertState::Nobody => NOBODY,
    }
}

fn read(row: Row) -> Result<AlertRow, SessionError> {
    let mut row = row.read();
    Ok(AlertRow {
        id: row.int()?,
        kind: TroubleKind::from_word(&row.text()?),
        app: AppId(row.int()?),
        job: JobId(row.int()?),
        run: row.maybe_int()?.map(RunId),
        message: row.text()?,
        at: row.instant()?,
        last_at: row.instant()?,
        count: row.int()?.unsigned_abs(),
        earlier: row.int()?.unsigned_abs(),
        tries: u32::try_from(row.int()?).unwrap_or(u32::MAX),
        state: match (row.int()?, row.int()?) {
            (_, 1) => AlertState::Waiting,
            (GIVEN_UP, _) => AlertState::GivenUp,
            (NOBODY, _) => AlertState::Nobody,
            _ => AlertState::Delivered,
        },
        deliveries: Vec::new(),
    })
}

async fn with_deliveries(s: &mut dyn Session, rows: Vec<Row>) -> Result<Vec<AlertRow>, SessionError> {
    let mut alerts = rows.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
    if alerts.is_empty() {
        return Ok(alerts);
    }
    let ids = Value::Ids(alerts.iter().map(|alert| alert.id).collect());
    let sql = "SELECT alert_id, channel, told, at_ms, trouble FROM tw_delivery WHERE alert_id IN ? \
               ORDER BY alert_id, part";
    let mut deliveries: BTreeMap<i64, Vec<Delivery>> = BTreeMap::new();
    for row in s.query(sql, &[ids], Lock::None).await? {
        let mut row = row.read();
        deliveries.entry(row.int()?).or_default().push(Delivery {
            channel: row.text()?,
            to: row.text()?,
            at: row.instant()?,
            trouble: row.maybe_text()?,
        });
    }
    for alert in &mut alerts {
        alert.deliveries = deliveries.remove(&alert.id).unwrap_or_default();
    }
    Ok(alerts)
}

// ── Writing ─────────────────────────────────────────────────────────────────────────────────────────────────────

/// Writes down who was told by now; nothing where that alert is not to be told any more.
pub async fn note_told(
    s: &mut dyn Session,
    outbox: i64,
    tries: u32,
    deliveries: &[Delivery],
) -> Result<(), SessionError> {
    let sql = "SELECT id FROM tw_alert WHERE outbox_id = ?";
    let found = s.query(sql, &[outbox.into()], Lock::Wait).await?;
    let Some(id) = found.into_iter().next().map(|row| row.read().int()).transpose()? else { return Ok(()) };
    // What it comes to if nobody tries again.
    let state = match () {
        () if deliveries.is_empty() => AlertState::Nobody,
        () if deliveries.iter().any(|delivery| delivery.trouble.is_some()) => AlertState::GivenUp,
        () => AlertState::Delivered,
    };
    let sql = "UPDATE tw_alert SET outcome = ?, tries = ? WHERE id = ?";
    s.execute(sql, &[outcome(state).into(), i64::from(tries).into(), id.into()]).await?;
    s.delete("tw_delivery", "alert_id", &[id]).await?;
    let row = |(part, delivery): (i64, &Delivery)| -> Vec<Value> {
        let trouble = delivery.trouble.as_deref().map(runs::message_text);
        let to: String = delivery.to.chars().filter(|letter| *letter != '\0').take(TO_MAX).collect();
        let channel = delivery.channel.as_str();
        vec![id.into(), part.into(), channel.into(), to.into(), delivery.at.into(), trouble.into()]
    };
    let rows: Vec<_> = (0..).zip(deliveries).map(row).collect();
    if rows.is_empty() {
        return Ok(());
    }
    let columns = ["alert_id", "part", "channel", "told", "at_ms", "trouble"];
    s.insert(Columns { table: "tw_delivery", keys: &[], columns: &columns }, rows).await
}

/// Letters of who is told: as many as the column holds.
const TO_MAX: usize = 190;
