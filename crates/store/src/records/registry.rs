//! Registered executors: rows of `xxl_job_registry`, which Java admins also read and write.
//!
//! A heartbeat of a known executor only refreshes its row. A new or removed executor also raises a counter, so that
//! other nodes check one row to see whether they must reread. The token of an executor is stored in
//! `tw_executor_token`.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Duration;

use engine::StoreError;
use timer::Timestamp;

use super::counters::{self, REGISTRY};
use super::page::limit_of;
use crate::database::Tables;
use crate::schema::Dialect;
use crate::schema::check_text;
use crate::session::{Columns, Lock, Row, Session, SessionError, Value};
use crate::table::table;

/// Identifies an executor.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Registration {
    /// Name of its app.
    pub app: String,
    /// Address it listens on.
    pub address: String,
}

/// Heartbeat of an executor, with its token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beat {
    /// The executor.
    pub registration: Registration,
    /// Digest of the token it presented; `None` if it presented none.
    pub token: Option<String>,
}

/// Result of a heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noted {
    /// The executor was already registered.
    Again,
    /// It is new, or was silent for so long that it was considered gone.
    New,
    /// It is new, and its app, or all apps that do not exist together, already have [`ADDRESSES_MAX`] addresses:
    /// nothing was stored.
    TooMany,
}

/// A registered executor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registered {
    /// App and address of the executor.
    pub registration: Registration,
    /// Time of its last heartbeat, to the second.
    pub seen_at: Timestamp,
    /// Digest of the token it presented, if any.
    pub token: Option<String>,
}

/// Maximum addresses per app, and of all apps that do not exist together. Far more than any app has executors; without it, a program that keeps registering new
/// ones would fill the table and the memory of every node.
pub const ADDRESSES_MAX: usize = 10_000;

// ── Writing ─────────────────────────────────────────────────────────────────────────────────────────────────────

pub async fn register(
    s: &mut dyn Session,
    tables: &Tables,
    beats: &[Beat],
    silent_max: Duration,
) -> Result<Vec<Noted>, SessionError> {
    for beat in beats {
        check(tables, &beat.registration)?;
    }
    let now = s.now().await?;
    let executors: Vec<Registration> = beats.iter().map(|beat| beat.registration.clone()).collect();
    let is_silent =
        |row: &Found| row.seen_at(tables, now).is_none_or(|at| now.duration_since(at) >= silent_max);
    let is_gone = |rows: &Vec<Found>| rows.iter().all(is_silent);
    let is_news =
        |(beat, rows): (&Beat, &Vec<Found>)| is_gone(rows) || rows.iter().any(|row| row.knows_another(beat));
    let mut known = find(s, &executors).await?;
    let mut noted = vec![Noted::Again; beats.len()];
    if beats.iter().zip(&known).any(is_news) {
        // Makes other nodes reread the registry. Where the table has no unique key, holding the counter also
        // prevents duplicates.
        counters::raise(s, REGISTRY).await?;
        known = find(s, &executors).await?;
        for (noted, rows) in noted.iter_mut().zip(&known).filter(|(_, rows)| !rows.is_empty()) {
            *noted = if is_gone(rows) { Noted::New } else { Noted::Again };
        }
        let time = tables.wall.time(now);
        add(s, &executors, unknown(tables, &executors, &known), time, &mut noted).await?;
        known = find(s, &executors).await?;
        note_tokens(s, beats, &known).await?;
    }
    let mut ids: Vec<i64> = known.into_iter().flatten().map(|row| row.id).collect();
    ids.sort_unstable();
    ids.dedup();
    let time = tables.wall.time(now);
    let set = Columns { table: "xxl_job_registry", keys: &["id"], columns: &["update_time"] };
    s.update(set, ids.into_iter().map(|id| vec![id.into(), time.clone()]).collect()).await?;
    Ok(noted)
}

/// Adds executors that have no row, up to the maximum addresses of their apps. Names of apps that do not exist are
/// unlimited, so these share one maximum.
async fn add(
    s: &mut dyn Session,
    executors: &[Registration],
    unknown: Vec<usize>,
    time: Value,
    noted: &mut [Noted],
) -> Result<(), SessionError> {
    let mut room: BTreeMap<Option<&str>, usize> = BTreeMap::new();
    let mut apps: BTreeMap<&str, bool> = BTreeMap::new();
    let (into, row) = RegistryRow::INSERT;
    let mut added = Vec::new();
    for index in unknown {
        let name = executors[index].app.as_str();
        let exists = match apps.entry(name) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => *new.insert(has_app(s, name).await?),
        };
        let app = exists.then_some(name);
        let room = match room.entry(app) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(ADDRESSES_MAX.saturating_sub(count_of(s, app).await?)),
        };
        noted[index] = if *room > 0 { Noted::New } else { Noted::TooMany };
        if *room > 0 {
            *room -= 1;
            added.push(row((&executors[index], &time)));
        }
    }
    if !added.is_empty() {
        s.insert(into, added).await?;
    }
    Ok(())
}

async fn has_app(s: &mut dyn Session, name: &str) -> Result<bool, SessionError> {
    let sql = "SELECT id FROM xxl_job_group WHERE app_name = ?";
    Ok(!s.query(sql, &[name.into()], Lock::None).await?.is_empty())
}

/// Number of addresses of an app; of all apps that do not exist if `None`.
async fn count_of(s: &mut dyn Session, app: Option<&str>) -> Result<usize, SessionError> {
    let of = match app {
        Some(_) => "registry_key = ?",
        None => "registry_key NOT IN (SELECT app_name FROM xxl_job_group)",
    };
    let sql = format!("SELECT COUNT(*) FROM xxl_job_registry WHERE registry_group = '{EXECUTOR}' AND {of}");
    let params: Vec<Value> = app.map(Value::from).into_iter().collect();
    let rows = s.query(&sql, &params, Lock::None).await?;
    let count = rows.into_iter().next().map(|row| row.read().int()).transpose()?.unwrap_or(0);
    Ok(usize::try_from(count).unwrap_or(0))
}

/// Stores the tokens of executors that changed.
async fn note_tokens(s: &mut dyn Session, beats: &[Beat], known: &[Vec<Found>]) -> Result<(), SessionError> {
    let mut tokens: BTreeMap<i64, &str> = BTreeMap::new();
    for (beat, rows) in beats.iter().zip(known) {
        let Some(token) = beat.token.as_deref() else { continue };
        tokens.extend(rows.iter().filter(|row| row.knows_another(beat)).map(|row| (row.id, token)));
    }
    if tokens.is_empty() {
        return Ok(());
    }
    // Java admins delete executors without deleting these rows.
    let sql = "DELETE FROM tw_executor_token WHERE registry_id NOT IN (SELECT id FROM xxl_job_registry)";
    s.execute(sql, &[]).await?;
    let ids: Vec<i64> = tokens.keys().copied().collect();
    s.delete("tw_executor_token", "registry_id", &ids).await?;
    let rows = tokens.into_iter().map(|(id, token)| vec![id.into(), token.into()]).collect();
    s.insert(Columns { table: "tw_executor_token", keys: &[], columns: &["registry_id", "digest"] }, rows)
        .await
}

/// The registry group of executors; no other is in use.
const EXECUTOR: &str = "EXECUTOR";

fn check(tables: &Tables, beat: &Registration) -> Result<(), SessionError> {
    for (column, text) in [("registry_key", &beat.app), ("registry_value", &beat.address)] {
        if text.trim().is_empty() {
            let reason = "a registration needs the name of an app and an address; one is empty";
            return Err(StoreError::Invalid(reason.into()).into());
        }
        check_text(text)?;
        tables.schema.check_fits("xxl_job_registry", column, text)?;
    }
    Ok(())
}

table! {
    /// Row of `xxl_job_registry`: an executor, and the time of its heartbeat.
    struct RegistryRow in "xxl_job_registry" of beat: (&Registration, &Value) {
        update_time: Option<String> = beat.1.clone(),
    }
    not inserted { id: i64 }
    not read {
        registry_group = EXECUTOR,
        registry_key = beat.0.app.as_str(),
        registry_value = beat.0.address.as_str(),
    }
}

/// A row of an executor.
struct Found {
    id: i64,
    seen: Option<String>,
    token: Option<String>,
}

impl Found {
    fn seen_at(&self, tables: &Tables, now: Timestamp) -> Option<Timestamp> {
        self.seen.as_deref().and_then(|text| tables.wall.instant_before(text, now))
    }

    /// Whether the heartbeat has another token than the row.
    fn knows_another(&self, beat: &Beat) -> bool {
        beat.token.is_some() && beat.token != self.token
    }
}

/// Finds the rows of each executor. The database compares, because some compare case-insensitively.
async fn find(s: &mut dyn Session, executors: &[Registration]) -> Result<Vec<Vec<Found>>, SessionError> {
    let list = RegistryRow::list_of("r");
    let mut found: Vec<Vec<Found>> = executors.iter().map(|_| Vec::new()).collect();
    for (chunk, from) in executors.chunks(FIND_MAX).zip((0..).step_by(FIND_MAX)) {
        // Only a few lengths, so that the statement is prepared once per length.
        let length = chunk.len().next_power_of_two();
        let mut sql = String::new();
        let mut params = Vec::with_capacity(2 * length);
        for index in 0..length {
            let executor = &chunk[index.min(chunk.len() - 1)];
            let union = if index == 0 { "" } else { " UNION ALL " };
            sql.push_str(&format!(
                "{union}SELECT {index}, {list}, t.digest FROM xxl_job_registry r \
                 LEFT JOIN tw_executor_token t ON t.registry_id = r.id \
                 WHERE r.registry_group = 'EXECUTOR' AND r.registry_key = ? AND r.registry_value = ?"
            ));
            params.extend([executor.app.as_str().into(), executor.address.as_str().into()]);
        }
        for row in s.query(&sql, &params, Lock::None).await? {
            let mut row = row.read();
            let index = usize::try_from(row.int()?).unwrap_or(usize::MAX);
            let (executor, token) = (RegistryRow::read(&mut row)?, row.maybe_text()?);
            if index < chunk.len() {
                found[from + index].push(Found { id: executor.id, seen: executor.update_time, token });
            }
        }
    }
    Ok(found)
}

/// Lookups per statement: the usual size of a batch of heartbeats, and far below any database's limit.
const FIND_MAX: usize = 64;

/// Executors without a row, each once.
fn unknown(tables: &Tables, beats: &[Registration], known: &[Vec<Found>]) -> Vec<usize> {
    // Names that MySQL may consider equal must not be added twice; the second is known at its next heartbeat.
    let same = |beat: &Registration| match tables.schema.dialect() {
        Dialect::MySql => (beat.app.trim_end().to_lowercase(), beat.address.trim_end().to_lowercase()),
        Dialect::Sqlite | Dialect::Postgres => (beat.app.clone(), beat.address.clone()),
    };
    let mut seen = std::collections::BTreeSet::new();
    let is_unknown = |index: &usize| known[*index].is_empty() && seen.insert(same(&beats[*index]));
    (0..beats.len()).filter(is_unknown).collect()
}

pub async fn unregister(s: &mut dyn Session, app: &str, address: &str) -> Result<bool, SessionError> {
    let gone = Registration { app: app.to_owned(), address: address.to_owned() };
    if check_text(app).is_err() || check_text(address).is_err() {
        return Ok(false);
    }
    if find(s, std::slice::from_ref(&gone)).await?[0].is_empty() {
        return Ok(false);
    }
    counters::raise(s, REGISTRY).await?;
    let ids: Vec<i64> = find(s, &[gone]).await?.remove(0).into_iter().map(|row| row.id).collect();
    remove(s, &ids).await?;
    Ok(!ids.is_empty())
}

/// Deletes executors with their handlers and tokens.
async fn remove(s: &mut dyn Session, ids: &[i64]) -> Result<(), SessionError> {
    if !ids.is_empty() {
        s.delete("tw_executor_handlers", "registry_id", ids).await?;
        s.delete("tw_executor_token", "registry_id", ids).await?;
        s.delete("xxl_job_registry", "id", ids).await?;
    }
    Ok(())
}

/// Deletes all registrations of a deleted app. The caller has raised the counter.
pub async fn forget_app(s: &mut dyn Session, app: &str) -> Result<(), SessionError> {
    let sql = "SELECT id FROM xxl_job_registry WHERE registry_group = 'EXECUTOR' AND registry_key = ?";
    let ids = ids(s.query(sql, &[app.into()], Lock::None).await?)?;
    remove(s, &ids).await
}

pub async fn forget_registrations(
    s: &mut dyn Session,
    tables: &Tables,
    before: Timestamp,
    max: usize,
) -> Result<usize, SessionError> {
    let before = tables.wall.least(before, s.now().await?);
    let sql = "SELECT id FROM xxl_job_registry WHERE update_time < ? ORDER BY id LIMIT ?";
    let silent = ids(s.query(sql, &[before.clone(), limit_of(max)], Lock::None).await?)?;
    if silent.is_empty() {
        return Ok(0);
    }
    counters::raise(s, REGISTRY).await?;
    // Locks only these rows, so that other executors can refresh theirs, and checks the time again: an executor may
    // have sent a heartbeat meanwhile.
    let sql = "SELECT id FROM xxl_job_registry WHERE id IN ? AND update_time < ? ORDER BY id";
    let ids = ids(s.query(sql, &[Value::Ids(silent), before], Lock::Wait).await?)?;
    remove(s, &ids).await?;
    Ok(ids.len())
}

fn ids(rows: Vec<Row>) -> Result<Vec<i64>, SessionError> {
    rows.into_iter().map(|row| row.read().int()).collect()
}

// ── Reading ─────────────────────────────────────────────────────────────────────────────────────────────────────

/// Id of an executor's row, if it is registered.
pub async fn id_of(s: &mut dyn Session, executor: &Registration) -> Result<Option<i64>, SessionError> {
    if check_text(&executor.app).is_err() || check_text(&executor.address).is_err() {
        return Ok(None);
    }
    Ok(find(s, std::slice::from_ref(executor)).await?.remove(0).first().map(|row| row.id))
}

pub async fn registrations(
    s: &mut dyn Session,
    tables: &Tables,
    seen_after: Timestamp,
) -> Result<Vec<Registered>, SessionError> {
    let now = s.now().await?;
    let sql = "SELECT r.registry_key, r.registry_value, MAX(r.update_time), MAX(t.digest) FROM xxl_job_registry r \
               LEFT JOIN tw_executor_token t ON t.registry_id = r.id \
               WHERE r.registry_group = 'EXECUTOR' AND r.update_time > ? \
               GROUP BY r.registry_key, r.registry_value ORDER BY r.registry_key, r.registry_value";
    let read = |row: Row| -> Result<Registered, SessionError> {
        let mut row = row.read();
        let registration = Registration { app: row.text()?, address: row.text()? };
        let seen_at = row.maybe_text()?.and_then(|text| tables.wall.instant_before(&text, now));
        Ok(Registered { registration, seen_at: seen_at.unwrap_or_default(), token: row.maybe_text()? })
    };
    let rows = s.query(sql, &[tables.wall.least(seen_after, now)], Lock::None).await?;
    rows.into_iter().map(read).collect()
}
