//! What a node needs when the database may have lost commits.

use engine::{Incident, JobId, Kept, RunId};
use timer::Timestamp;

use crate::alerts;
use crate::database::Tables;
use crate::schema::Dialect;
use crate::session::{Lock, Session, SessionError, Value};

pub async fn kept(s: &mut dyn Session, runs: &[RunId]) -> Result<Kept, SessionError> {
    let mut kept = Kept::default();
    if runs.is_empty() {
        return Ok(kept);
    }
    let ids = Value::Ids(runs.iter().map(|run| run.0).collect());
    let sql = "SELECT l.id, l.job_id, r.run_id FROM xxl_job_log l LEFT JOIN tw_run r ON r.run_id = l.id \
               WHERE l.id IN ?";
    for row in s.query(sql, &[ids], Lock::None).await? {
        let mut row = row.read();
        let run = RunId(row.int()?);
        kept.runs.insert(run, JobId(row.int()?));
        if row.maybe_int()?.is_some() {
            kept.open.insert(run);
        }
    }
    Ok(kept)
}

/// Never sets the sequence back, except by less than the margin while several nodes do this at once: then the next id is
/// still above all that each of them knows.
pub async fn skip_run_ids(s: &mut dyn Session, dialect: Dialect, past: RunId) -> Result<(), SessionError> {
    let rows = s.query("SELECT MAX(id) FROM xxl_job_log", &[], Lock::None).await?;
    let highest = rows.into_iter().next().map(|row| row.read().maybe_int()).transpose()?.flatten();
    let next = highest.unwrap_or(0).max(past.0).saturating_add(IDS_SKIPPED);
    match dialect {
        Dialect::Sqlite => {
            let sql = "INSERT INTO sqlite_sequence (name, seq) SELECT 'xxl_job_log', 0 \
                       WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'xxl_job_log')";
            s.execute(sql, &[]).await?;
            s.execute(
                "UPDATE sqlite_sequence SET seq = ? WHERE name = 'xxl_job_log' AND seq < ?",
                &[next.into(), next.into()],
            )
            .await?;
        }
        Dialect::MySql => {
            s.execute(&format!("ALTER TABLE xxl_job_log AUTO_INCREMENT = {next}"), &[]).await?;
        }
        Dialect::Postgres => {
            let sequence = "CAST(pg_get_serial_sequence('xxl_job_log', 'id') AS regclass)";
            let sql = format!(
                "SELECT CASE WHEN COALESCE(pg_sequence_last_value({sequence}), 0) < {next} \
                 THEN setval({sequence}, {next}) ELSE 0 END"
            );
            s.query(&sql, &[], Lock::None).await?;
        }
    }
    Ok(())
}

/// Number of ids that are left out: more than any node can have been given while the others did not know it.
const IDS_SKIPPED: i64 = 1_000_000;

pub async fn raise(
    s: &mut dyn Session,
    tables: &Tables,
    now: Timestamp,
    incidents: &[Incident],
) -> Result<(), SessionError> {
    let about = |incident: &Incident| (incident.job, incident.run, incident.trouble.clone());
    alerts::raise(s, tables, now, incidents.iter().map(about).collect()).await
}
