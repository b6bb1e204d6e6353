//! Tokens by which executors and the centre know each other. The text itself is never here: a digest to find it by, and
//! the text as the caller has sealed it, since it is also sent to executors.

use engine::AppId;
use timer::Timestamp;

use super::counters::{self, REGISTRY};
use crate::session::{Columns, Lock, Row, Session, SessionError, Value};
use crate::sql_store::Tables;

/// A token to be added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewToken {
    /// The app it opens; none opens all, as old setups need.
    pub app: Option<AppId>,
    /// SHA-256 of the token, in hex.
    pub digest: String,
    /// The token, encrypted by the caller.
    pub sealed: String,
    /// It counts until then.
    pub expires_at: Option<Timestamp>,
}

/// A token as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Its number.
    pub id: i64,
    /// The app it opens; none opens all.
    pub app: Option<AppId>,
    /// SHA-256 of the token, in hex.
    pub digest: String,
    /// The token, encrypted by the caller.
    pub sealed: String,
    /// When it was added.
    pub created_at: Timestamp,
    /// It counts until then.
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
