//! Origins of sign-ins: devices and networks from which a user has signed in, so that the centre recognises them
//! after a restart and on every node. Only digests are stored.

use std::time::Duration;

use engine::StoreError;
use timer::Timestamp;

use super::users::UserId;
use crate::database::{Database, Tables, transaction};
use crate::session::{Lock, Session, SessionError};
use crate::table::table;

impl Database {
    /// Whether a user signed in from this origin within `lifetime`.
    pub async fn knows_origin(&self, digest: &str, lifetime: Duration) -> Result<bool, StoreError> {
        transaction!(self, s => knows_origin(s, digest, lifetime))
    }

    /// Stores that a user signed in from this origin. For each user, the `keep` most recent origins of a kind are
    /// kept, and none that was last used longer than `lifetime` ago.
    pub async fn remember_origin(
        &self,
        user: UserId,
        origin: &SignInOrigin,
        keep: usize,
        lifetime: Duration,
    ) -> Result<(), StoreError> {
        transaction!(self, s => remember_origin(s, &self.tables, user, origin, keep, lifetime))
    }

    /// Deletes the origins of a user, except those with these digests; returns how many were deleted.
    pub async fn forget_origins(&self, user: UserId, except: &[String]) -> Result<usize, StoreError> {
        transaction!(self, s => forget_origins(s, user, except))
    }
}

/// A device or network from which a user signed in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignInOrigin {
    /// Kind of the origin, for example `device`.
    pub kind: &'static str,
    /// Digest of user name and origin, in hex.
    pub digest: String,
}

table! {
    /// Row of `tw_sign_in_origin`.
    struct OriginRow in "tw_sign_in_origin" of new: (UserId, &SignInOrigin, Timestamp) {
        digest: String = new.1.digest.as_str(),
        kind: String = new.1.kind,
        seen_ms: Timestamp = new.2,
    }
    not read { user_id = new.0.0 }
}

pub async fn knows_origin(
    s: &mut dyn Session,
    digest: &str,
    lifetime: Duration,
) -> Result<bool, SessionError> {
    let now = s.now().await?;
    let seen = seen_at(s, digest).await?;
    Ok(seen.is_some_and(|seen| seen > now - lifetime))
}

async fn seen_at(s: &mut dyn Session, digest: &str) -> Result<Option<Timestamp>, SessionError> {
    let sql = "SELECT seen_ms FROM tw_sign_in_origin WHERE digest = ?";
    let rows = s.query(sql, &[digest.into()], Lock::None).await?;
    rows.into_iter().next().map(|row| row.read().instant()).transpose()
}

pub async fn remember_origin(
    s: &mut dyn Session,
    tables: &Tables,
    user: UserId,
    origin: &SignInOrigin,
    keep: usize,
    lifetime: Duration,
) -> Result<(), SessionError> {
    let now = s.now().await?;
    match seen_at(s, &origin.digest).await? {
        Some(seen) if seen > now - SEEN_EVERY => return Ok(()),
        Some(_) => {
            let sql = "UPDATE tw_sign_in_origin SET seen_ms = ?, user_id = ? WHERE digest = ?";
            s.execute(sql, &[now.into(), user.0.into(), origin.digest.as_str().into()]).await?;
        }
        None => {
            let (into, row) = OriginRow::INSERT;
            let row = row((user, origin, now));
            tables.schema.check_row(into, &row)?;
            s.insert(into, vec![row]).await?;
        }
    }
    let mut kept = 0;
    for row in of_user(s, user).await? {
        let is_of_kind = row.kind == origin.kind;
        kept += usize::from(is_of_kind);
        if row.seen_ms <= now - lifetime || (is_of_kind && kept > keep) {
            delete(s, &row.digest).await?;
        }
    }
    Ok(())
}

/// A sign-in from a known origin is stored at most this often, because scripts sign in for each call.
const SEEN_EVERY: Duration = Duration::from_secs(60 * 60);

/// Origins of a user, the most recent first.
async fn of_user(s: &mut dyn Session, user: UserId) -> Result<Vec<OriginRow>, SessionError> {
    let list = OriginRow::LIST;
    let sql = format!("SELECT {list} FROM tw_sign_in_origin WHERE user_id = ? ORDER BY seen_ms DESC, digest");
    let rows = s.query(&sql, &[user.0.into()], Lock::None).await?;
    rows.into_iter().map(|row| OriginRow::read(&mut row.read())).collect()
}

async fn delete(s: &mut dyn Session, digest: &str) -> Result<(), SessionError> {
    s.execute("DELETE FROM tw_sign_in_origin WHERE digest = ?", &[digest.into()]).await.map(drop)
}

pub async fn forget_origins(
    s: &mut dyn Session,
    user: UserId,
    except: &[String],
) -> Result<usize, SessionError> {
    let mut deleted = 0;
    for row in of_user(s, user).await? {
        if !except.contains(&row.digest) {
            delete(s, &row.digest).await?;
            deleted += 1;
        }
    }
    Ok(deleted)
}
