//! Secrets of apps, encrypted by the caller.

use engine::{AppId, StoreError};
use timer::Timestamp;

use super::counters::{self, REGISTRY};
use crate::database::{Database, Tables, transaction};
use crate::session::{Lock, Session, SessionError};
use crate::table::table;

/// A stored secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSecret {
    /// App to which it belongs.
    pub app: AppId,
    /// Name, unique in the app.
    pub name: String,
    /// The value, encrypted by the caller.
    pub sealed: String,
    /// User who set it last.
    pub author: String,
    /// Time when it was set last.
    pub at: Timestamp,
}

impl Database {
    /// Stores a secret, or replaces its value. [`StoreError::Invalid`] if the app has [`SECRETS_MAX`] others. The time is
    /// that of the database.
    pub async fn put_secret(&self, secret: &StoredSecret) -> Result<(), StoreError> {
        transaction!(self, s => put(s, &self.tables, secret))
    }

    /// Deletes a secret; false if there is none with this name.
    pub async fn delete_secret(&self, app: AppId, name: &str) -> Result<bool, StoreError> {
        transaction!(self, s => delete(s, app, name))
    }
}

/// Maximum number of secrets of an app: each node keeps all in memory.
pub const SECRETS_MAX: usize = 200;

table! {
    /// Row of `tw_secret`.
    struct SecretRow in "tw_secret" of new: (&StoredSecret, Timestamp) {
        app_id: AppId = new.0.app,
        name: String = new.0.name.as_str(),
        sealed: String = new.0.sealed.as_str(),
        author: String = new.0.author.as_str(),
        at_ms: Timestamp = new.1,
    }
}

pub async fn secrets(s: &mut dyn Session) -> Result<Vec<StoredSecret>, SessionError> {
    let sql = format!("SELECT {} FROM tw_secret ORDER BY app_id, name", SecretRow::LIST);
    let rows = s.query(&sql, &[], Lock::None).await?;
    let read = |row: crate::session::Row| -> Result<_, SessionError> {
        let row = SecretRow::read(&mut row.read())?;
        let SecretRow { app_id: app, name, sealed, author, at_ms: at } = row;
        Ok(StoredSecret { app, name, sealed, author, at })
    };
    rows.into_iter().map(read).collect()
}

async fn put(s: &mut dyn Session, tables: &Tables, secret: &StoredSecret) -> Result<(), SessionError> {
    // Also makes the other nodes read the secrets again, and lets changes wait for one another.
    counters::raise(s, REGISTRY).await?;
    delete_row(s, secret.app, &secret.name).await?;
    let sql = "SELECT COUNT(*) FROM tw_secret WHERE app_id = ?";
    let count = s.query(sql, &[secret.app.into()], Lock::None).await?.into_iter().next();
    let count = count.map(|row| row.read().int()).transpose()?.unwrap_or_default();
    if usize::try_from(count).is_ok_and(|count| count >= SECRETS_MAX) {
        let why = format!("an app has at most {SECRETS_MAX} secrets; delete one that is not used");
        return Err(StoreError::Invalid(why).into());
    }
    let (into, row) = SecretRow::INSERT;
    let row = row((secret, s.now().await?));
    tables.schema.check_row(into, &row)?;
    s.insert(into, vec![row]).await
}

async fn delete(s: &mut dyn Session, app: AppId, name: &str) -> Result<bool, SessionError> {
    counters::raise(s, REGISTRY).await?;
    delete_row(s, app, name).await
}

async fn delete_row(s: &mut dyn Session, app: AppId, name: &str) -> Result<bool, SessionError> {
    let sql = "DELETE FROM tw_secret WHERE app_id = ? AND name = ?";
    Ok(s.execute(sql, &[app.into(), name.into()]).await? > 0)
}

/// Deletes the secrets of an app that is deleted.
pub async fn forget_app(s: &mut dyn Session, app: AppId) -> Result<(), SessionError> {
    s.delete("tw_secret", "app_id", &[app.0]).await
}
