//! Numbers that only grow. Whoever raises one holds it until the transaction ends, so that it is a lock as well.

use timer::Timestamp;

use crate::session::{Columns, Lock, Session, SessionError};

/// Says that apps, their executors or their tokens have changed.
pub const REGISTRY: &str = "registry";

/// Raises the counter, after all who came before have committed; returns its value.
pub async fn raise(s: &mut dyn Session, name: &str) -> Result<i64, SessionError> {
    let sql = "UPDATE tw_counter SET value = value + 1 WHERE name = ?";
    if s.execute(sql, &[name.into()]).await? == 0 {
        // Of several that are first, one succeeds and the others begin again.
        let into = Columns { table: "tw_counter", keys: &[], columns: &["name", "value"] };
        s.insert(into, vec![vec![name.into(), 1.into()]]).await?;
    }
    read(s, name).await
}

/// The counter and the database's time.
pub async fn read_with_time(s: &mut dyn Session, name: &str) -> Result<(i64, Timestamp), SessionError> {
    Ok((read(s, name).await?, s.now().await?))
}

/// Zero before it was first raised.
pub async fn read(s: &mut dyn Session, name: &str) -> Result<i64, SessionError> {
    let rows = s.query("SELECT value FROM tw_counter WHERE name = ?", &[name.into()], Lock::None).await?;
    Ok(rows.into_iter().next().map(|row| row.read().int()).transpose()?.unwrap_or(0))
}
