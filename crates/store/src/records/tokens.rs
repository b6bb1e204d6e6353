//! Access tokens between executors and the centre. The plain text is not stored: only a digest to look it up, and
//! the text encrypted by the caller, because it is also sent to executors.

use engine::{AppId, StoreError};
use timer::Timestamp;

use super::counters::{self, REGISTRY};
use crate::database::{Database, Tables, transaction};
use crate::session::{Lock, Session, SessionError};
use crate::table::table;

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
    let sql = format!("SELECT {} FROM tw_token ORDER BY id", TokenRow::LIST);
    let rows = s.query(&sql, &[], Lock::None).await?;
    rows.into_iter().map(|row| TokenRow::read(&mut row.read()).map(Token::from)).collect()
}

table! {
    /// Row of `tw_token`.
    struct TokenRow in "tw_token" of new: (&NewToken, Timestamp) {
        app_id: Option<AppId> = new.0.app,
        digest: String = new.0.digest.as_str(),
        sealed: String = new.0.sealed.as_str(),
        created_ms: Timestamp = new.1,
        expires_ms: Option<Timestamp> = new.0.expires_at,
    }
    not inserted { id: i64 }
}

impl From<TokenRow> for Token {
    fn from(row: TokenRow) -> Token {
        Token {
            id: row.id,
            app: row.app_id,
            digest: row.digest,
            sealed: row.sealed,
            created_at: row.created_ms,
            expires_at: row.expires_ms,
        }
    }
}

pub async fn add_token(s: &mut dyn Session, tables: &Tables, token: &NewToken) -> Result<i64, SessionError> {
    let (into, row) = TokenRow::INSERT;
    let row = row((token, s.now().await?));
    tables.schema.check_row(into, &row)?;
    counters::raise(s, REGISTRY).await?;
    Ok(s.insert_numbered(into, vec![row]).await?[0])
}

pub async fn expire_token(s: &mut dyn Session, id: i64, at: Timestamp) -> Result<bool, SessionError> {
    counters::raise(s, REGISTRY).await?;
    let sql = "UPDATE tw_token SET expires_ms = ? WHERE id = ?";
    Ok(s.execute(sql, &[at.into(), id.into()]).await? > 0)
}
