//! Lists of alerts: rows of `tw_alert` with those of `tw_delivery`.

use std::collections::BTreeMap;

pub use engine::AlertState;
use engine::policy::Word;
use engine::{AppId, JobId, RunId, StoreError, TroubleKind};
use timer::Timestamp;

use super::page::{Conditions, Page, Paged};
use crate::alerts::{AlertColumns, DELIVERED, GIVEN_UP, NOBODY, kind_of};
use crate::database::{Database, transaction};
use crate::runs;
use crate::session::{Lock, Row, Session, SessionError, Value};
use crate::table::table;

impl Database {
    /// Returns a page of alerts, the newest first.
    pub async fn alert_page(&self, filter: &AlertFilter, page: Page) -> Result<Paged<AlertRow>, StoreError> {
        transaction!(self, s => alert_page(s, filter, page))
    }

    /// Returns the number of alerts.
    pub async fn alert_count(&self, filter: &AlertFilter) -> Result<AlertCount, StoreError> {
        transaction!(self, s => alert_count(s, filter))
    }

    /// Returns the stored data of an alert that was taken for notification, by the id of [`engine::Alert`].
    pub async fn alert_to_tell(&self, alert: i64) -> Result<Option<AlertRow>, StoreError> {
        transaction!(self, s => alert_to_tell(s, alert))
    }

    /// Stores the delivery results so far, after this many attempts; an empty list means that no recipient is
    /// configured.
    pub async fn note_told(&self, alert: i64, tries: u32, told: &[Delivery]) -> Result<(), StoreError> {
        transaction!(self, s => note_told(s, alert, tries, told))
    }
}

/// Filter for a list of alerts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AlertFilter {
    /// Only alerts of these apps; `None` means all apps.
    pub apps: Option<Vec<AppId>>,
    /// Only alerts of this job.
    pub job: Option<JobId>,
    /// Only alerts of this kind.
    pub kind: Option<TroubleKind>,
    /// Only alerts in this state.
    pub state: Option<AlertState>,
    /// Only alerts that first happened at or after this time.
    pub from: Option<Timestamp>,
    /// Only alerts that first happened before this time.
    pub until: Option<Timestamp>,
}

/// An alert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlertRow {
    /// Id of the alert.
    pub id: i64,
    /// Kind of the incident.
    pub kind: TroubleKind,
    /// App of the job when the alert was raised.
    pub app: AppId,
    /// Id of the job.
    pub job: JobId,
    /// The first affected run, if there is one.
    pub run: Option<RunId>,
    /// Description of the incident.
    pub message: String,
    /// When it happened first.
    pub at: Timestamp,
    /// When it happened last.
    pub last_at: Timestamp,
    /// How often it happened.
    pub count: u64,
    /// Number of occurrences that were added to the previous alert of the same kind without a notification.
    pub earlier: u64,
    /// Delivery state of the notification.
    pub state: AlertState,
    /// Number of delivery attempts.
    pub tries: u32,
    /// Result for each recipient.
    pub deliveries: Vec<Delivery>,
}

/// Delivery of an alert to one recipient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Channel of the notification.
    pub channel: String,
    /// Recipient, without secrets.
    pub to: String,
    /// Time of the last attempt.
    pub at: Timestamp,
    /// Error of the last attempt, if it failed.
    pub trouble: Option<String>,
}

/// Number of alerts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AlertCount {
    /// All alerts.
    pub all: u64,
    /// Alerts with a recipient that is not notified, or not yet.
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

/// The alert with this id in `tw_pending_alert`, if it is still to be delivered.
pub async fn alert_to_tell(s: &mut dyn Session, pending: i64) -> Result<Option<AlertRow>, SessionError> {
    let rows = s.query(&select("WHERE a.pending_id = ?"), &[pending.into()], Lock::None).await?;
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
        "SELECT {}, CASE WHEN {WAITING} THEN 1 ELSE 0 END FROM tw_alert a {conditions}",
        AlertColumns::list_of("a")
    )
}

/// The row of a pending alert stays until it is delivered. Nodes of older releases update nothing else, so it
/// decides.
const WAITING: &str = "EXISTS (SELECT 1 FROM tw_pending_alert p WHERE p.id = a.pending_id)";

/// `None` if no alert can match.
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
        conditions.and("a.kind = ?", [kind.stored().into()]);
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
    let (alert, is_waiting) = (AlertColumns::read(&mut row)?, row.int()? != 0);
    Ok(AlertRow {
        id: alert.id,
        kind: kind_of(&alert.kind),
        app: alert.app_id,
        job: alert.job_id,
        run: alert.run_id,
        message: alert.message,
        at: alert.at_ms,
        last_at: alert.last_ms,
        count: alert.count,
        earlier: alert.earlier,
        tries: alert.tries,
        state: match alert.outcome {
            _ if is_waiting => AlertState::Waiting,
            GIVEN_UP => AlertState::GivenUp,
            NOBODY => AlertState::Nobody,
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
    let sql =
        format!("SELECT {} FROM tw_delivery WHERE alert_id IN ? ORDER BY alert_id, part", DeliveryRow::LIST);
    let mut deliveries: BTreeMap<i64, Vec<Delivery>> = BTreeMap::new();
    for row in s.query(&sql, &[ids], Lock::None).await? {
        let row = DeliveryRow::read(&mut row.read())?;
        deliveries.entry(row.alert_id).or_default().push(Delivery {
            channel: row.channel,
            to: row.recipient,
            at: row.at_ms,
            trouble: row.trouble,
        });
    }
    for alert in &mut alerts {
        alert.deliveries = deliveries.remove(&alert.id).unwrap_or_default();
    }
    Ok(alerts)
}

// ── Writing ─────────────────────────────────────────────────────────────────────────────────────────────────────

/// Stores the delivery results so far; does nothing if the notification is no longer pending.
pub async fn note_told(
    s: &mut dyn Session,
    pending: i64,
    tries: u32,
    deliveries: &[Delivery],
) -> Result<(), SessionError> {
    let sql = "SELECT id FROM tw_alert WHERE pending_id = ?";
    let found = s.query(sql, &[pending.into()], Lock::Wait).await?;
    let Some(id) = found.into_iter().next().map(|row| row.read().int()).transpose()? else { return Ok(()) };
    // The final state if there is no further attempt.
    let state = match () {
        () if deliveries.is_empty() => AlertState::Nobody,
        () if deliveries.iter().any(|delivery| delivery.trouble.is_some()) => AlertState::GivenUp,
        () => AlertState::Delivered,
    };
    let sql = "UPDATE tw_alert SET outcome = ?, tries = ? WHERE id = ?";
    s.execute(sql, &[outcome(state).into(), i64::from(tries).into(), id.into()]).await?;
    s.delete("tw_delivery", "alert_id", &[id]).await?;
    let (into, row) = DeliveryRow::INSERT;
    let rows: Vec<_> = (0..).zip(deliveries).map(|(part, delivery)| row((id, part, delivery))).collect();
    if rows.is_empty() {
        return Ok(());
    }
    s.insert(into, rows).await
}

table! {
    /// Row of `tw_delivery`: the alert, the number of the delivery, and the delivery.
    struct DeliveryRow in "tw_delivery" of new: (i64, i64, &Delivery) {
        alert_id: i64 = new.0,
        channel: String = new.2.channel.as_str(),
        recipient: String = recipient(&new.2.to),
        at_ms: Timestamp = new.2.at,
        trouble: Option<String> = new.2.trouble.as_deref().map(runs::message_text),
    }
    not read { part = new.1 }
}

fn recipient(to: &str) -> String {
    to.chars().filter(|letter| *letter != '\0').take(TO_MAX).collect()
}

/// Maximum characters of a recipient: the width of the column.
const TO_MAX: usize = 190;
