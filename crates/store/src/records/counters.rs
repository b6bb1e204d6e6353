//! Counters that only grow. Raising one locks it until the transaction ends, so a counter is also a lock.

use timer::Timestamp;

use crate::session::{Columns, Lock, Session, SessionError};

/// Raised when apps, their executors or their tokens change.
pub const REGISTRY: &str = "registry";

/// Raised by each transaction that adopts changes of other programs. Nodes that adopt at the same time take turns.
pub const ADOPTION: &str = "adoption";

/// Raises the counter, after all earlier transactions that raised it have committed; returns its value.
pub async fn raise(s: &mut dyn Session, name: &str) -> Result<i64, SessionError> {
    let sql = "UPDATE tw_counter SET value = value + 1 WHERE name = ?";
    if s.execute(sql, &[name.into()]).await? == 0 {
        // If several transactions insert it at once, one succeeds and the others retry.
        let into = Columns { table: "tw_counter", keys: &[], columns: &["name", "value"] };
        s.insert(into, vec![vec![name.into(), 1.into()]]).await?;
    }
    read(s, name).await
}

/// The counter and the database's time.
pub async fn read_with_time(s: &mut dyn Session, name: &str) -> Result<(i64, Timestamp), SessionError> {
    Ok((read(s, name).await?, s.now().await?))
}

/// The value of a counter; zero before it was first raised.
pub async fn read(s: &mut dyn Session, name: &str) -> Result<i64, SessionError> {
    let rows = s.query("SELECT value FROM tw_counter WHERE name = ?", &[name.into()], Lock::None).await?;
    Ok(rows.into_iter().next().map(|row| row.read().int()).transpose()?.unwrap_or(0))
}
