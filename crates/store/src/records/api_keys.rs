//! API keys: a program acts as a user, with some of that user's rights.

use engine::{AppId, StoreError};
use timer::Timestamp;

use super::rights::Rights;
use super::sessions::TOUCH_EVERY;
use super::users::{self, User, UserId};
use crate::database::{Database, Tables, transaction};
use crate::jobs::check_text;
use crate::session::{Columns, Lock, Row, Session, SessionError, Value};

impl Database {
    /// Adds an API key; returns its id.
    pub async fn add_api_key(&self, key: &NewApiKey) -> Result<i64, StoreError> {
        transaction!(self, s => add_api_key(s, &self.tables, key))
    }

    /// Returns the API keys of a user, or of all, including expired ones.
    pub async fn api_keys(&self, user: Option<UserId>) -> Result<Vec<ApiKey>, StoreError> {
        transaction!(self, s => api_keys(s, user))
    }

    /// Returns the API key with this digest and its user, unless it has expired or the user is disabled.
    pub async fn api_key(&self, digest: &str) -> Result<Option<(ApiKey, User)>, StoreError> {
        transaction!(self, s => api_key(s, digest))
    }

    /// Stores that an API key is in use, at most once a minute.
    pub async fn touch_api_key(&self, id: i64) -> Result<(), StoreError> {
        transaction!(self, s => touch_api_key(s, id))
    }

    /// Deletes an API key; returns false if there is none.
    pub async fn delete_api_key(&self, id: i64) -> Result<bool, StoreError> {
        transaction!(self, s => delete_api_key(s, id))
    }
}

/// An API key to add.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewApiKey {
    /// The user that the key acts for.
    pub user: UserId,
    /// Display name.
    pub name: String,
    /// SHA-256 of the key, in hex.
    pub digest: String,
    /// Apps the key may access; `None` means all apps of the user.
    pub apps: Option<Vec<AppId>>,
    /// Upper limit of the rights: the key has those that the user also has.
    pub rights: Rights,
    /// Expiry time, if any.
    pub expires_at: Option<Timestamp>,
}

/// A stored API key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKey {
    /// Id of the key.
    pub id: i64,
    /// The key as it was added.
    pub spec: NewApiKey,
    /// When it was added.
    pub created_at: Timestamp,
    /// When it was last used, to the minute.
    pub used_at: Option<Timestamp>,
}

impl ApiKey {
    /// Rights of the key for an app.
    pub fn rights(&self, user: &User, app: AppId) -> Rights {
        match &self.spec.apps {
            Some(apps) if !apps.contains(&app) => Rights::NONE,
            _ => user.access.rights(app).both(self.spec.rights),
        }
    }
}

pub async fn add_api_key(s: &mut dyn Session, tables: &Tables, key: &NewApiKey) -> Result<i64, SessionError> {
    let apps = key.apps.as_ref().map(|apps| {
        let numbers: Vec<String> = apps.iter().map(|app| app.0.to_string()).collect();
        numbers.join(",")
    });
    for (column, text) in [("name", &key.name), ("digest", &key.digest)] {
        check_text(text)?;
        tables.schema.check_fits("tw_api_key", column, text)?;
    }
    let columns = ["user_id", "name", "digest", "apps", "rights", "created_ms", "expires_ms"];
    let row = vec![
        key.user.0.into(),
        key.name.as_str().into(),
        key.digest.as_str().into(),
        apps.into(),
        key.rights.to_number().into(),
        s.now().await?.into(),
        key.expires_at.into(),
    ];
    Ok(s.insert_numbered(Columns { table: "tw_api_key", keys: &[], columns: &columns }, vec![row]).await?[0])
}

pub async fn api_keys(s: &mut dyn Session, user: Option<UserId>) -> Result<Vec<ApiKey>, SessionError> {
    match user {
        Some(user) => select(s, "WHERE user_id = ? ORDER BY id", &[user.0.into()]).await,
        None => select(s, "ORDER BY id", &[]).await,
    }
}

pub async fn api_key(s: &mut dyn Session, digest: &str) -> Result<Option<(ApiKey, User)>, SessionError> {
    let now = s.now().await?;
    let tail = "WHERE digest = ? AND (expires_ms IS NULL OR expires_ms > ?)";
    let Some(key) = select(s, tail, &[digest.into(), now.into()]).await?.pop() else {
        return Ok(None);
    };
    let user = users::user(s, key.spec.user).await?;
    Ok(user.filter(|user| !user.access.disabled).map(|user| (key, user)))
}

async fn select(s: &mut dyn Session, tail: &str, params: &[Value]) -> Result<Vec<ApiKey>, SessionError> {
    let sql = format!(
        "SELECT id, user_id, name, digest, apps, rights, expires_ms, created_ms, used_ms FROM tw_api_key {tail}"
    );
    s.query(&sql, params, Lock::None).await?.into_iter().map(read).collect()
}

fn read(row: Row) -> Result<ApiKey, SessionError> {
    let mut row = row.read();
    let id = row.int()?;
    let (user, name, digest) = (UserId(row.int()?), row.text()?, row.text()?);
    let apps = row.maybe_text()?;
    let apps = apps.map(|apps| apps.split(',').filter_map(|app| app.parse().ok()).map(AppId).collect());
    let rights = Rights::from_number(row.int()?);
    let spec = NewApiKey { user, name, digest, apps, rights, expires_at: row.maybe_instant()? };
    Ok(ApiKey { id, spec, created_at: row.instant()?, used_at: row.maybe_instant()? })
}

pub async fn touch_api_key(s: &mut dyn Session, id: i64) -> Result<(), SessionError> {
    let now = s.now().await?;
    let sql = "UPDATE tw_api_key SET used_ms = ? WHERE id = ? AND (used_ms IS NULL OR used_ms < ?)";
    s.execute(sql, &[now.into(), id.into(), (now - TOUCH_EVERY).into()]).await?;
    Ok(())
}

pub async fn delete_api_key(s: &mut dyn Session, id: i64) -> Result<bool, SessionError> {
    Ok(s.delete("tw_api_key", "id", &[id]).await? > 0)
}
