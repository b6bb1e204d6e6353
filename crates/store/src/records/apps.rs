//! Apps: rows of `xxl_job_group`, with the app's name and, for Java admins, the addresses of its executors.

use std::collections::BTreeSet;

use engine::{AppId, RunId, StoreError};
use timer::Timestamp;

use super::counters::{self, REGISTRY};
use super::{registry, secrets};
use crate::database::{Database, Tables, transaction};
use crate::schema::check_text;
use crate::session::{Columns, Lock, Row, Session, SessionError, Value};
use crate::table::table;

impl Database {
    /// Returns one app.
    pub async fn app(&self, id: AppId) -> Result<Option<App>, StoreError> {
        transaction!(self, s => app(s, &self.tables, id))
    }

    /// Returns the app with this name.
    pub async fn app_by_name(&self, name: &str) -> Result<Option<App>, StoreError> {
        transaction!(self, s => app_by_name(s, &self.tables, name))
    }

    /// Adds an app. A name that is taken is a [`StoreError::Conflict`].
    pub async fn create_app(&self, spec: &AppSpec) -> Result<AppId, StoreError> {
        transaction!(self, s => create_app(s, &self.tables, spec))
    }

    /// Changes an app; returns false if there is none. An app that changes to registered executors keeps its
    /// addresses until others are published.
    pub async fn update_app(&self, id: AppId, spec: &AppSpec) -> Result<bool, StoreError> {
        transaction!(self, s => update_app(s, &self.tables, id, spec))
    }

    /// Deletes an app with its registrations, tokens and grants; returns false if there is none. If jobs use the
    /// app, it is a [`StoreError::Conflict`].
    pub async fn delete_app(&self, id: AppId) -> Result<bool, StoreError> {
        transaction!(self, s => delete_app(s, &self.tables, id))
    }

    /// Returns the apps of runs; runs that do not exist are omitted.
    pub async fn apps_of_runs(&self, runs: &[RunId]) -> Result<Vec<(RunId, AppId)>, StoreError> {
        transaction!(self, s => apps_of_runs(s, runs))
    }
}

/// Editable fields of an app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppSpec {
    /// Name under which its executors register. Unique.
    pub name: String,
    /// Display name.
    pub title: String,
    /// Addresses of its executors.
    pub addresses: Addresses,
}

/// Source of an app's executor addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Addresses {
    /// Executors register themselves.
    Registered,
    /// A user entered this list.
    Manual(Vec<String>),
}

/// A stored app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct App {
    /// Id of the app.
    pub id: AppId,
    /// Editable fields.
    pub spec: AppSpec,
    /// Addresses that a Java admin would dispatch to: the manual list, or the list last published.
    pub listed: Vec<String>,
    /// Access token of the app in plain text; only the newest XXL-JOB has this column.
    pub access_token: Option<String>,
    /// When it was last changed, if the table has this column.
    pub updated_at: Option<Timestamp>,
}

// ── Reading ─────────────────────────────────────────────────────────────────────────────────────────────────────

pub async fn apps(s: &mut dyn Session, tables: &Tables) -> Result<Vec<App>, SessionError> {
    let tail = format!("ORDER BY g.app_name, {}, g.id", tables.schema.list("xxl_job_group", "g", &["title"]));
    select(s, tables, &tail, &[]).await
}

pub async fn app(s: &mut dyn Session, tables: &Tables, id: AppId) -> Result<Option<App>, SessionError> {
    Ok(select(s, tables, "WHERE g.id = ?", &[id.into()]).await?.pop())
}

pub async fn app_by_name(
    s: &mut dyn Session,
    tables: &Tables,
    name: &str,
) -> Result<Option<App>, SessionError> {
    if check_text(name).is_err() {
        return Ok(None);
    }
    // Old tables allow several apps with one name; XXL-JOB then picks any.
    Ok(select(s, tables, "WHERE g.app_name = ? ORDER BY g.id LIMIT 1", &[name.into()]).await?.pop())
}

pub async fn apps_of_runs(s: &mut dyn Session, runs: &[RunId]) -> Result<Vec<(RunId, AppId)>, SessionError> {
    if runs.is_empty() {
        return Ok(Vec::new());
    }
    let ids = Value::Ids(runs.iter().map(|run| run.0).collect());
    let rows = s.query("SELECT id, job_group FROM xxl_job_log WHERE id IN ?", &[ids], Lock::None).await?;
    let owner = |row: Row| -> Result<(RunId, AppId), SessionError> {
        let mut row = row.read();
        Ok((RunId(row.int()?), AppId(row.int()?)))
    };
    rows.into_iter().map(owner).collect()
}

async fn select(
    s: &mut dyn Session,
    tables: &Tables,
    tail: &str,
    params: &[Value],
) -> Result<Vec<App>, SessionError> {
    let list = tables.schema.list("xxl_job_group", "g", GroupRow::NAMES);
    let rows = s.query(&format!("SELECT {list} FROM xxl_job_group g {tail}"), params, Lock::None).await?;
    rows.into_iter().map(|row| Ok(app_of(tables, GroupRow::read(&mut row.read())?))).collect()
}

fn app_of(tables: &Tables, row: GroupRow) -> App {
    let listed = split(&row.address_list);
    let addresses = match row.address_type {
        BY_HAND => Addresses::Manual(listed.clone()),
        _ => Addresses::Registered,
    };
    App {
        id: row.id,
        spec: AppSpec { name: row.app_name, title: row.title, addresses },
        listed,
        access_token: row.access_token.filter(|token| !token.is_empty()),
        updated_at: row.update_time.and_then(|text| tables.wall.instant(&text)),
    }
}

/// An app to write.
#[derive(Clone, Copy)]
struct Group<'a> {
    id: AppId,
    spec: &'a AppSpec,
    now: &'a Value,
}

table! {
    /// Row of `xxl_job_group`.
    struct GroupRow in "xxl_job_group" of app: Group<'_> {
        address_list: String = address_list(&app.spec.addresses),
        update_time: Option<String> = app.now.clone(),
    }
    edited by id with update_time {
        app_name: String = app.spec.name.as_str(),
        title: String = app.spec.title.as_str(),
        address_type: i64 = address_type(&app.spec.addresses),
    }
    not inserted { id: AppId = app.id, access_token: Option<String> }
    update ADDRESSES by id { address_list }
}

/// Values of `address_type`.
const REGISTERED: i64 = 0;
const BY_HAND: i64 = 1;

fn split(list: &str) -> Vec<String> {
    list.split(',').map(str::trim).filter(|address| !address.is_empty()).map(str::to_owned).collect()
}

// ── Writing ─────────────────────────────────────────────────────────────────────────────────────────────────────

pub async fn create_app(s: &mut dyn Session, tables: &Tables, spec: &AppSpec) -> Result<AppId, SessionError> {
    check(tables, spec)?;
    counters::raise(s, REGISTRY).await?;
    check_name(s, tables, &spec.name, None).await?;
    let now = &tables.wall.time(s.now().await?);
    let (into, row) = GroupRow::INSERT;
    let (columns, rows) = tables.schema.existing(into, vec![row(Group { id: AppId(0), spec, now })]);
    Ok(AppId(s.insert_numbered(Columns { columns: &columns, ..into }, rows).await?[0]))
}

/// Returns the app with this name; creates it if there is none.
pub async fn ensure_app(s: &mut dyn Session, tables: &Tables, name: &str) -> Result<AppId, SessionError> {
    if let Some(app) = app_by_name(s, tables, name).await? {
        return Ok(app.id);
    }
    // The title column of old tables is limited to twelve characters.
    let title = match tables.schema.check_fits("xxl_job_group", "title", name) {
        Ok(()) => name.to_owned(),
        Err(_) => name.chars().take(12).collect(),
    };
    let spec = AppSpec { name: name.to_owned(), title, addresses: Addresses::Registered };
    create_app(s, tables, &spec).await.map_err(|error| match error {
        // Another node created it at the same time; the retry finds it.
        SessionError::Store(StoreError::Conflict(why)) => SessionError::Collision(why),
        other => other,
    })
}

/// Locks apps against deletion until the transaction ends; returns those that exist.
pub async fn lock(s: &mut dyn Session, apps: &BTreeSet<AppId>) -> Result<BTreeSet<AppId>, SessionError> {
    if apps.is_empty() {
        return Ok(BTreeSet::new());
    }
    let ids = Value::Ids(apps.iter().map(|app| app.0).collect());
    let sql = "SELECT id FROM xxl_job_group WHERE id IN ? ORDER BY id";
    let rows = s.query(sql, &[ids], Lock::Wait).await?;
    rows.into_iter().map(|row| row.read().int().map(AppId)).collect()
}

pub async fn update_app(
    s: &mut dyn Session,
    tables: &Tables,
    id: AppId,
    spec: &AppSpec,
) -> Result<bool, SessionError> {
    check(tables, spec)?;
    counters::raise(s, REGISTRY).await?;
    check_name(s, tables, &spec.name, Some(id)).await?;
    let group = Group { id, spec, now: &tables.wall.time(s.now().await?) };
    let (set, row) = GroupRow::EDIT;
    let (columns, rows) = tables.schema.existing(set, vec![row(group)]);
    let found = s.compare_and_set(Columns { columns: &columns, ..set }, rows).await? > 0;
    // Registered addresses stay listed until the next list is published.
    if let Addresses::Manual(_) = &spec.addresses {
        let (set, row) = GroupRow::ADDRESSES;
        s.update(set, vec![row(group)]).await?;
    }
    Ok(found)
}

pub async fn delete_app(s: &mut dyn Session, tables: &Tables, id: AppId) -> Result<bool, SessionError> {
    counters::raise(s, REGISTRY).await?;
    // A transaction that adds a job to this app commits before we get the lock, or then finds the app deleted.
    lock(s, &BTreeSet::from([id])).await?;
    let Some(app) = app(s, tables, id).await? else {
        return Ok(false);
    };
    let sql = "SELECT id FROM xxl_job_info WHERE job_group = ? ORDER BY id LIMIT 1";
    if let Some(row) = s.query(sql, &[id.0.into()], Lock::None).await?.into_iter().next() {
        let job = row.read().int()?;
        return Err(StoreError::Conflict(format!(
            "the app `{}` is used by job {job}; delete its jobs or move them to another app first",
            app.spec.name
        ))
        .into());
    }
    s.delete("xxl_job_group", "id", &[id.0]).await?;
    s.delete("tw_token", "app_id", &[id.0]).await?;
    secrets::forget_app(s, id).await?;
    s.delete("tw_grant", "app_id", &[id.0]).await?;
    if app_by_name(s, tables, &app.spec.name).await?.is_none() {
        registry::forget_app(s, &app.spec.name).await?;
    }
    Ok(true)
}

fn check(tables: &Tables, spec: &AppSpec) -> Result<(), SessionError> {
    if spec.name.trim().is_empty() {
        return Err(StoreError::Invalid("an app needs a name".into()).into());
    }
    if let Addresses::Manual(addresses) = &spec.addresses
        && let Some(bad) = addresses.iter().find(|address| address.trim().is_empty() || address.contains(','))
    {
        let reason = format!("`{bad}` is not one address; use one entry per address, without commas");
        return Err(StoreError::Invalid(reason).into());
    }
    let (into, row) = GroupRow::INSERT;
    Ok(tables.schema.check_row(into, &row(Group { id: AppId(0), spec, now: &Value::Null }))?)
}

/// Rejects a name that another app has. The caller has raised the counter, so no other transaction can take the name
/// meanwhile.
async fn check_name(
    s: &mut dyn Session,
    tables: &Tables,
    name: &str,
    own: Option<AppId>,
) -> Result<(), SessionError> {
    match app_by_name(s, tables, name).await? {
        Some(holder) if Some(holder.id) != own => Err(StoreError::Conflict(format!(
            "app {} already has the name `{name}`; names of apps are unique",
            holder.id.0
        ))
        .into()),
        _ => Ok(()),
    }
}

fn address_type(addresses: &Addresses) -> i64 {
    match addresses {
        Addresses::Registered => REGISTERED,
        Addresses::Manual(_) => BY_HAND,
    }
}

fn address_list(addresses: &Addresses) -> Option<String> {
    match addresses {
        Addresses::Registered => None,
        Addresses::Manual(addresses) => Some(addresses.join(",")),
    }
}

// ── For Java admins ─────────────────────────────────────────────────────────────────────────────────────────────

pub async fn publish_addresses(
    s: &mut dyn Session,
    tables: &Tables,
    lists: &[(AppId, Vec<String>)],
) -> Result<usize, SessionError> {
    if lists.is_empty() {
        return Ok(0);
    }
    let ids = Value::Ids(lists.iter().map(|(app, _)| app.0).collect());
    let sql = "SELECT id, address_list FROM xxl_job_group WHERE id IN ? AND address_type = ? ORDER BY id";
    let mut changed = Vec::new();
    for row in s.query(sql, &[ids, REGISTERED.into()], Lock::None).await? {
        let mut row = row.read();
        let (id, stored) = (row.int()?, row.maybe_text()?);
        let list = lists.iter().find(|(app, _)| app.0 == id).and_then(|(_, addresses)| published(addresses));
        if list == stored {
            continue;
        }
        if let Err(error) =
            tables.schema.check_fits("xxl_job_group", "address_list", list.as_deref().unwrap_or(""))
        {
            tracing::warn!(app = id, %error, "failed to notify Java admins of a change; they use their last list of executors");
            continue;
        }
        changed.push((id, list));
    }
    if changed.is_empty() {
        return Ok(0);
    }
    let now = tables.wall.time(s.now().await?);
    let row =
        |(id, list): (i64, Option<String>)| vec![id.into(), REGISTERED.into(), list.into(), now.clone()];
    let rows = changed.into_iter().map(row).collect();
    // Only these columns, and only while the app is of that kind: a Java admin or a user may be editing the rest.
    let set = Columns {
        table: "xxl_job_group",
        keys: &["id", "address_type"],
        columns: &["address_list", "update_time"],
    };
    let (columns, rows) = tables.schema.existing(set, rows);
    let changed = s.compare_and_set(Columns { columns: &columns, ..set }, rows).await?;
    Ok(usize::try_from(changed).unwrap_or(usize::MAX))
}

/// The list exactly as a Java admin would write it, so that the two do not overwrite each other in turn.
fn published(addresses: &[String]) -> Option<String> {
    let mut sorted: Vec<&str> = addresses.iter().map(String::as_str).collect();
    // Java compares by UTF-16 units; for ASCII addresses the order is the same.
    sorted.sort_unstable();
    sorted.dedup();
    (!sorted.is_empty()).then(|| sorted.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_published_list_is_sorted_and_has_no_doubles() {
        let check = |addresses: &[&str], expected: Option<&str>| {
            let addresses: Vec<String> = addresses.iter().map(|address| (*address).to_owned()).collect();
            assert_eq!(published(&addresses).as_deref(), expected);
        };
        check(&[], None);
        check(&["http://b:1/", "http://a:1/", "http://b:1/"], Some("http://a:1/,http://b:1/"));
        check(&["http://10.0.0.9:1/", "http://10.0.0.10:1/"], Some("http://10.0.0.10:1/,http://10.0.0.9:1/"));
    }
}
