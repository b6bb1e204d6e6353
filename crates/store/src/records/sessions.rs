//! Sessions of signed-in users. Only a digest of the cookie is stored.

use engine::StoreError;
use std::time::Duration;

use timer::Timestamp;

use super::page::limit_of;
use super::users::{self, User, UserId};
use crate::database::{Database, Tables, transaction};
use crate::session::{Lock, Session, SessionError, Value};
use crate::table::table;

impl Database {
    /// Opens a session.
    pub async fn open_session(&self, session: &NewSession) -> Result<(), StoreError> {
        transaction!(self, s => open_session(s, &self.tables, session))
    }

    /// Returns the session with this digest and its user, unless it has expired, was idle for this long, or the user
    /// is disabled.
    pub async fn session(
        &self,
        digest: &str,
        idle: Duration,
    ) -> Result<Option<(UserSession, User)>, StoreError> {
        transaction!(self, s => session(s, digest, idle))
    }

    /// Returns the sessions of a user, the newest first.
    pub async fn sessions_of(&self, user: UserId) -> Result<Vec<UserSession>, StoreError> {
        transaction!(self, s => sessions_of(s, user))
    }

    /// Stores that a session is in use, at most once a minute.
    pub async fn touch_session(&self, digest: &str) -> Result<(), StoreError> {
        transaction!(self, s => touch_session(s, digest))
    }

    /// Ends a session; returns false if there is none.
    pub async fn end_session(&self, digest: &str) -> Result<bool, StoreError> {
        transaction!(self, s => end_session(s, digest))
    }

    /// Ends the sessions of a user except the one with this digest; returns how many there were.
    pub async fn end_sessions_of(&self, user: UserId, except: Option<&str>) -> Result<u64, StoreError> {
        transaction!(self, s => end_sessions_of(s, user, except))
    }

    /// Deletes at most `max` sessions that have expired or were idle for this long; returns how many were deleted.
    pub async fn prune_sessions(&self, idle: Duration, max: usize) -> Result<usize, StoreError> {
        transaction!(self, s => prune_sessions(s, idle, max))
    }
}

/// A session to open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSession {
    /// SHA-256 of the cookie, in hex.
    pub digest: String,
    /// Id of the user.
    pub user: UserId,
    /// CSRF token, required in requests that change something.
    pub csrf: String,
    /// When it ends, even if it is in use.
    pub expires_at: Timestamp,
    /// Client address.
    pub address: String,
    /// User agent of the client, truncated to the column.
    pub agent: String,
}

/// An open session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserSession {
    /// SHA-256 of the cookie, in hex.
    pub digest: String,
    /// Id of the user.
    pub user: UserId,
    /// CSRF token, required in requests that change something.
    pub csrf: String,
    /// When it was opened.
    pub created_at: Timestamp,
    /// When it was last used, to the minute.
    pub seen_at: Timestamp,
    /// When it ends, even if it is in use.
    pub expires_at: Timestamp,
    /// Client address.
    pub address: String,
    /// User agent of the client.
    pub agent: String,
}

table! {
    /// Row of `tw_session`.
    struct SessionRow in "tw_session" of new: (&NewSession, Timestamp) {
        digest: String = new.0.digest.as_str(),
        user_id: i64 = new.0.user.0,
        csrf: String = new.0.csrf.as_str(),
        created_ms: Timestamp = new.1,
        seen_ms: Timestamp = new.1,
        expires_ms: Timestamp = new.0.expires_at,
        address: String = cut(&new.0.address, 190),
        agent: String = cut(&new.0.agent, 255),
    }
}

pub async fn open_session(
    s: &mut dyn Session,
    tables: &Tables,
    session: &NewSession,
) -> Result<(), SessionError> {
    let (into, row) = SessionRow::INSERT;
    let row = row((session, s.now().await?));
    tables.schema.check_row(into, &row)?;
    s.insert(into, vec![row]).await
}

/// Truncates client input to the width of a column, and replaces NUL characters.
pub fn cut(text: &str, width: usize) -> String {
    text.chars().map(|letter| if letter == '\0' { '\u{fffd}' } else { letter }).take(width).collect()
}

pub async fn session(
    s: &mut dyn Session,
    digest: &str,
    idle: Duration,
) -> Result<Option<(UserSession, User)>, SessionError> {
    let now = s.now().await?;
    let tail = "WHERE digest = ? AND expires_ms > ? AND seen_ms > ?";
    let params = [digest.into(), now.into(), (now - idle).into()];
    let Some(session) = select(s, tail, &params).await?.pop() else {
        return Ok(None);
    };
    let user = users::user(s, session.user).await?;
    Ok(user.filter(|user| !user.access.disabled).map(|user| (session, user)))
}

pub async fn sessions_of(s: &mut dyn Session, user: UserId) -> Result<Vec<UserSession>, SessionError> {
    let now = s.now().await?;
    let tail = "WHERE user_id = ? AND expires_ms > ? ORDER BY created_ms DESC, digest";
    select(s, tail, &[user.0.into(), now.into()]).await
}

async fn select(s: &mut dyn Session, tail: &str, params: &[Value]) -> Result<Vec<UserSession>, SessionError> {
    let sql = format!("SELECT {} FROM tw_session {tail}", SessionRow::LIST);
    let rows = s.query(&sql, params, Lock::None).await?;
    rows.into_iter().map(|row| SessionRow::read(&mut row.read()).map(UserSession::from)).collect()
}

impl From<SessionRow> for UserSession {
    fn from(row: SessionRow) -> UserSession {
        UserSession {
            digest: row.digest,
            user: UserId(row.user_id),
            csrf: row.csrf,
            created_at: row.created_ms,
            seen_at: row.seen_ms,
            expires_at: row.expires_ms,
            address: row.address,
            agent: row.agent,
        }
    }
}

pub async fn touch_session(s: &mut dyn Session, digest: &str) -> Result<(), SessionError> {
    let now = s.now().await?;
    let sql = "UPDATE tw_session SET seen_ms = ? WHERE digest = ? AND seen_ms < ?";
    s.execute(sql, &[now.into(), digest.into(), (now - TOUCH_EVERY).into()]).await?;
    Ok(())
}

/// Use is stored at most this often, because one write per request would be wasteful.
pub const TOUCH_EVERY: Duration = Duration::from_secs(60);

pub async fn end_session(s: &mut dyn Session, digest: &str) -> Result<bool, SessionError> {
    Ok(s.execute("DELETE FROM tw_session WHERE digest = ?", &[digest.into()]).await? > 0)
}

pub async fn end_sessions_of(
    s: &mut dyn Session,
    user: UserId,
    except: Option<&str>,
) -> Result<u64, SessionError> {
    let sql = "DELETE FROM tw_session WHERE user_id = ? AND digest <> ?";
    s.execute(sql, &[user.0.into(), except.unwrap_or_default().into()]).await
}

pub async fn prune_sessions(s: &mut dyn Session, idle: Duration, max: usize) -> Result<usize, SessionError> {
    let now = s.now().await?;
    let sql = "SELECT digest FROM tw_session WHERE expires_ms <= ? OR seen_ms <= ? ORDER BY seen_ms LIMIT ?";
    let rows = s.query(sql, &[now.into(), (now - idle).into(), limit_of(max)], Lock::None).await?;
    let count = rows.len();
    for row in rows {
        s.execute("DELETE FROM tw_session WHERE digest = ?", &row.0).await?;
    }
    Ok(count)
}
