//! Access tokens between executors and the centre. The plain text is not stored: only a digest to look it up, and
//! the text encrypted by the caller, because it is also sent to executors.

use engine::{AppId, StoreError};
use timer::Timestamp;

use super::counters::{self, REGISTRY};
use crate::database::{Database, Tables, transaction};
use crate::session::{Columns, Lock, Row, Session, SessionError, Value};

impl Database {
    /// Sets when a token expires; returns false if there is none with this id.
    pub async fn expire_token(&self, id: i64, at: Timestamp) -> Result<bool, StoreError> {
        transaction!(self, s => expire_token(s, id, at))
    }
}

/// A token to add.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewToken {
    /// App the token is valid for; `None` means all apps, as old setups need.
    pub app: Option<AppId>,
    /// SHA-256 of the token, in hex.
    pub digest: String,
    /// The token, encrypted by the caller.
    pub sealed: String,
    /// Expiry time, if any.
    pub expires_at: Option<Timestamp>,
}

/// A stored token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Id of the token.
    pub id: i64,
    /// App the token is valid for; `None` means all apps.
    pub app: Option<AppId>,
    /// SHA-256 of the token, in hex.
    pub digest: String,
    /// The token, encrypted by the caller.
    pub sealed: String,
    /// When it was added.
    pub created_at: Timestamp,
    /// Expiry time, if any.
    pub expires_at: Option<Timestamp>,
}

pub async fn tokens(s: &mut dyn Session) -> Result<Vec<Token>, SessionError> {
    let sql = "SELECT id, app_id, digest, sealed, created_ms, expires_ms FROM tw_token ORDER BY id";
    let read = |row: Row| -> Result<Token, SessionError> {
        let mut row = row.read();
        Ok(Token {
            id: row.int()?,
            app: row.maybe_int()?.map(AppId),
            digest: row.text()?,
            sealed: row.text()?,
            created_at: row.instant()?,
            expires_at: row.maybe_instant()?,
        })
    };
    s.query(sql, &[], Lock::None).await?.into_iter().map(read).collect()
}

pub async fn add_token(s: &mut dyn Session, tables: &Tables, token: &NewToken) -> Result<i64, SessionError> {
    for (column, text) in [("digest", &token.digest), ("sealed", &token.sealed)] {
        crate::jobs::check_text(text)?;
        tables.schema.check_fits("tw_token", column, text)?;
    }
    counters::raise(s, REGISTRY).await?;
    let now = s.now().await?;
    let columns = ["app_id", "digest", "sealed", "created_ms", "expires_ms"];
    let row: Vec<Value> = vec![
        token.app.map(|app| app.0).into(),
        token.digest.as_str().into(),
        token.sealed.as_str().into(),
        now.into(),
        token.expires_at.into(),
    ];
    let into = Columns { table: "tw_token", keys: &[], columns: &columns };
    Ok(s.insert_numbered(into, vec![row]).await?[0])
}

pub async fn expire_token(s: &mut dyn Session, id: i64, at: Timestamp) -> Result<bool, SessionError> {
    counters::raise(s, REGISTRY).await?;
    let sql = "UPDATE tw_token SET expires_ms = ? WHERE id = ?";
    Ok(s.execute(sql, &[at.into(), id.into()]).await? > 0)
}
