//! API keys: a program acts as a user, with some of that user's rights.

use engine::{AppId, StoreError};
use timer::Timestamp;

use super::rights::Rights;
use super::sessions::TOUCH_EVERY;
use super::users::{self, User, UserId};
use crate::database::{Database, Tables, transaction};
use crate::session::{Lock, Session, SessionError, Value};
use crate::table::table;

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
    let (into, row) = KeyRow::INSERT;
    let row = row((key, s.now().await?));
    tables.schema.check_row(into, &row)?;
    Ok(s.insert_numbered(into, vec![row]).await?[0])
}

table! {
    /// Row of `tw_api_key`.
    struct KeyRow in "tw_api_key" of new: (&NewApiKey, Timestamp) {
        user_id: i64 = new.0.user.0,
        name: String = new.0.name.as_str(),
        digest: String = new.0.digest.as_str(),
        apps: Option<String> = new.0.apps.as_deref().map(list_of),
        rights: i64 = new.0.rights.to_number(),
        expires_ms: Option<Timestamp> = new.0.expires_at,
        created_ms: Timestamp = new.1,
    }
    not inserted { id: i64, used_ms: Option<Timestamp> }
}

fn list_of(apps: &[AppId]) -> String {
    apps.iter().map(|app| app.0.to_string()).collect::<Vec<_>>().join(",")
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
    let rows =
        s.query(&format!("SELECT {} FROM tw_api_key {tail}", KeyRow::LIST), params, Lock::None).await?;
    rows.into_iter().map(|row| KeyRow::read(&mut row.read()).map(ApiKey::from)).collect()
}

impl From<KeyRow> for ApiKey {
    fn from(row: KeyRow) -> ApiKey {
        let apps =
            row.apps.map(|apps| apps.split(',').filter_map(|app| app.parse().ok()).map(AppId).collect());
        let spec = NewApiKey {
            user: UserId(row.user_id),
            name: row.name,
            digest: row.digest,
            apps,
            rights: Rights::from_number(row.rights),
            expires_at: row.expires_ms,
        };
        ApiKey { id: row.id, spec, created_at: row.created_ms, used_at: row.used_ms }
    }
}

pub async fn touch_api_key(s: &mut dyn Session, id: i64) -> Result<(), SessionError> {
    let now = s.now().await?;
    let sql = "UPDATE tw_api_key SET used_ms = ? WHERE id = ? AND (used_ms IS NULL OR used_ms < ?)";
    s.execute(sql, &[now.into(), id.into(), (now - TOUCH_EVERY).into()]).await?;
    Ok(())
}

pub async fn delete_api_key(s: &mut dyn Session, id: i64) -> Result<bool, SessionError> {
    Ok(s.execute("DELETE FROM tw_api_key WHERE id = ?", &[id.into()]).await? > 0)
}
