//! The timeline of the server: its number grows when a standby is promoted or a backup is restored. The server may lack
//! commits then, so the ids of runs continue after a gap: executors know runs by their ids, which must never be given
//! twice.

use crate::records::counters;
use crate::session::{Columns, Lock, Session, SessionError};

/// Query for the timeline; 0 on a standby.
pub const TIMELINE: &str = "SELECT CASE WHEN pg_is_in_recovery() THEN 0 ELSE \
     CAST(CAST('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) AS bit(32)) AS bigint) END";

/// Leaves a gap that is wider than what a standby lags behind.
pub const SKIP_IDS: &str = "SELECT setval(s.name, GREATEST(COALESCE(pg_sequence_last_value(s.name), 0), \
     (SELECT COALESCE(MAX(id), 0) FROM xxl_job_log)) + 1000000) \
     FROM (SELECT CAST(pg_get_serial_sequence('xxl_job_log', 'id') AS regclass) AS name) s";

/// Name of the counter with the timeline on which ids were last given.
const COUNTER: &str = "timeline";

/// Continues the ids of runs after a gap if the timeline is another than when a process of ours last began.
pub async fn begin(s: &mut dyn Session, timeline: i64) -> Result<(), SessionError> {
    let known = counters::read(s, COUNTER).await?;
    if timeline == known || timeline == 0 {
        return Ok(());
    }
    if known == 0 {
        let into = Columns { table: "tw_counter", keys: &[], columns: &["name", "value"] };
        return s.insert(into, vec![vec![COUNTER.into(), timeline.into()]]).await;
    }
    tracing::info!(
        known,
        timeline,
        "the database has another timeline; the ids of runs continue after a gap"
    );
    s.query(SKIP_IDS, &[], Lock::None).await?;
    let sql = "UPDATE tw_counter SET value = ? WHERE name = ?";
    s.execute(sql, &[timeline.into(), COUNTER.into()]).await.map(|_| ())
}
