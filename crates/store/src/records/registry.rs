//! Which executors are there: rows of `xxl_job_registry`, which every admin beside us reads and writes too.
//!
//! A beat of an executor that is known only refreshes its row. What is new or gone also raises a counter, so that other
//! nodes ask one row whether there is anything to reread.

use engine::StoreError;
use timer::Timestamp;

use super::counters::{self, REGISTRY};
use super::page::limit_of;
use crate::jobs::check_text;
use crate::schema::Dialect;
use crate::session::{Columns, Lock, Row, Session, SessionError, Value};
use crate::sql_store::Tables;

/// An executor says that it is there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Registration {
    /// The name of its app.
    pub app: String,
    /// Where it listens.
    pub address: String,
}

/// An executor that has said so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registered {
    /// What it said.
    pub registration: Registration,
    /// When it last did, to the second.
    pub seen_at: Timestamp,
}

// ── Writing ─────────────────────────────────────────────────────────────────────────────────────────────────────

pub async fn register(
    s: &mut dyn Session,
    tables: &Tables,
    beats: &[Registration],
) -> Result<Vec<bool>, SessionError> {
    for beat in beats {
        check(tables, beat)?;
    }
    let mut known = find(s, beats).await?;
    let mut is_new = vec![false; beats.len()];
    if known.iter().any(Vec::is_empty) {
        // Where the table itself keeps nothing from being there twice, only those who hold the counter add to it.
        counters::raise(s, REGISTRY).await?;
        known = find(s, beats).await?;
        for index in unknown(tables, beats, &known) {
            is_new[index] = true;
        }
    }
    let time = tables.wall.time(s.now().await?);
    let added = beats.iter().zip(&is_new).filter(|(_, is_new)| **is_new);
    let added: Vec<Vec<Value>> = added
        .map(|(beat, _)| {
            vec![EXECUTOR.into(), beat.app.as_str().into(), beat.address.as_str().into(), time.clone()]
        })
        .collect();
    let columns = ["registry_group", "registry_key", "registry_value", "update_time"];
    if !added.is_empty() {
        s.insert(Columns { table: "xxl_job_registry", keys: &[], columns: &columns }, added).await?;
    }
    let mut ids: Vec<i64> = known.into_iter().flatten().collect();
    ids.sort_unstable();
    ids.dedup();
    let set = Columns { table: "xxl_job_registry", keys: &["id"], columns: &["update_time"] };
    s.update(set, ids.into_iter().map(|id| vec![id.into(), time.clone()]).collect()).await?;
    Ok(is_new)
}

/// The registry's word for executors; it has no other in use.
const EXECUTOR: &str = "EXECUTOR";

fn check(tables: &Tables, beat: &Registration) -> Result<(), SessionError> {
    for (column, text) in [("registry_key", &beat.app), ("registry_value", &beat.address)] {
        if text.trim().is_empty() {
            let reason = "an executor registers with the name of its app and its own address; one was empty";
            return Err(StoreError::Invalid(reason.into()).into());
        }
        check_text(text)?;
        tables.schema.check_fits("xxl_job_registry", column, text)?;
    }
    Ok(())
}

/// The rows of each: which are the same is for the database to say, since some do not tell upper from lower case.
async fn find(s: &mut dyn Session, beats: &[Registration]) -> Result<Vec<Vec<i64>>, SessionError> {
    let mut found = vec![Vec::new(); beats.len()];
    for (chunk, from) in beats.chunks(FIND_MAX).zip((0..).step_by(FIND_MAX)) {
        // A few lengths only, so that the database knows the statement from before.
        let length = chunk.len().next_power_of_two();
        let mut sql = String::new();
        let mut params = Vec::with_capacity(2 * length);
        for index in 0..length {
            let beat = &chunk[index.min(chunk.len() - 1)];
            let union = if index == 0 { "" } else { " UNION ALL " };
            sql.push_str(&format!(
                "{union}SELECT {index}, id FROM xxl_job_registry \
                 WHERE registry_group = 'EXECUTOR' AND registry_key = ? AND registry_value = ?"
            ));
            params.extend([beat.app.as_str().into(), beat.address.as_str().into()]);
        }
        for row in s.query(&sql, &params, Lock::None).await? {
            let mut row = row.read();
            let (index, id) = (row.int()?, row.int()?);
            let index = usize::try_from(index).unwrap_or(usize::MAX);
            if index < chunk.len() {
                found[from + index].push(id);
            }
        }
    }
    Ok(found)
}

/// Lookups in one statement: as many as a batch of beats usually has, and far below any database's limit.
const FIND_MAX: usize = 64;

/// Those that have no row, each once.
fn unknown(tables: &Tables, beats: &[Registration], known: &[Vec<i64>]) -> Vec<usize> {
    // What MySQL may take for the same must not be added twice; the second then is known at its next beat.
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
    let ids = find(s, &[gone]).await?.remove(0);
    remove(s, &ids).await?;
    Ok(!ids.is_empty())
}

/// Deletes executors, with what they said of themselves.
async fn remove(s: &mut dyn Session, ids: &[i64]) -> Result<(), SessionError> {
    if !ids.is_empty() {
        s.delete("tw_executor", "registry_id", ids).await?;
        s.delete("xxl_job_registry", "id", ids).await?;
    }
    Ok(())
}

/// Deletes all registrations of an app that is no more. The caller has raised the counter.
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
    // Only these rows are locked, so that others can beat meanwhile, and one that has just done so is seen to.
    let sql = "SELECT id FROM xxl_job_registry WHERE id IN ? AND update_time < ? ORDER BY id";
    let ids = ids(s.query(sql, &[Value::Ids(silent), before], Lock::Wait).await?)?;
    remove(s, &ids).await?;
    Ok(ids.len())
}

fn ids(rows: Vec<Row>) -> Result<Vec<i64>, SessionError> {
    rows.into_iter().map(|row| row.read().int()).collect()
}

// ── Reading ─────────────────────────────────────────────────────────────────────────────────────────────────────

/// The row of an executor, if it is there.
pub async fn id_of(s: &mut dyn Session, executor: &Registration) -> Result<Option<i64>, SessionError> {
    if check_text(&executor.app).is_err() || check_text(&executor.address).is_err() {
        return Ok(None);
    }
    Ok(find(s, std::slice::from_ref(executor)).await?.remove(0).first().copied())
}

pub async fn registrations(
    s: &mut dyn Session,
    tables: &Tables,
    seen_after: Timestamp,
) -> Result<Vec<Registered>, SessionError> {
    let now = s.now().await?;
    let sql = "SELECT registry_key, registry_value, MAX(update_time) FROM xxl_job_registry \
               WHERE registry_group = 'EXECUTOR' AND update_time > ? \
               GROUP BY registry_key, registry_value ORDER BY registry_key, registry_value";
    let read = |row: Row| -> Result<Registered, SessionError> {
        let mut row = row.read();
        let registration = Registration { app: row.text()?, address: row.text()? };
        let seen_at = row.maybe_text()?.and_then(|text| tables.wall.instant_before(&text, now));
        Ok(Registered { registration, seen_at: seen_at.unwrap_or_default() })
    };
    let rows = s.query(sql, &[tables.wall.least(seen_after, now)], Lock::None).await?;
    rows.into_iter().map(read).collect()
}
