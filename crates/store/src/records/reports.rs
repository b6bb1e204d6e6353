//! How many runs of each day succeeded, failed or are going on: rows of `xxl_job_log_report`.

use timer::Timestamp;

use crate::session::{Columns, Lock, Row, Session, SessionError, Value};
use crate::sql_store::Tables;

/// The runs of a day in the database's zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DayReport {
    /// The day, as `2026-06-21`.
    pub day: String,
    /// Not over yet.
    pub running: u64,
    /// Over, with success.
    pub succeeded: u64,
    /// Over, without.
    pub failed: u64,
}

// ── Writing ─────────────────────────────────────────────────────────────────────────────────────────────────────

pub async fn refresh_report(
    s: &mut dyn Session,
    tables: &Tables,
    within: Timestamp,
) -> Result<bool, SessionError> {
    let (_, start, end) = tables.wall.day(within);
    let stored = stored(s, tables, &start).await?;
    if stored.as_ref().is_some_and(|stored| stored.is_final(&end)) {
        return Ok(false);
    }
    let counts = count(s, &start, &end).await?;
    let now = tables.wall.time(s.now().await?);
    let mut columns = vec!["running_count", "suc_count", "fail_count"];
    let mut values: Vec<Value> = counts.map(Value::from).into();
    if tables.schema.report_has_update_time() {
        columns.push("update_time");
        values.push(now);
    }
    match &stored {
        Some(stored) => {
            values.insert(0, stored.id.into());
            let set = Columns { table: "xxl_job_log_report", keys: &["id"], columns: &columns };
            s.update(set, vec![values]).await?;
        }
        None => {
            columns.push("trigger_day");
            values.push(start);
            let into = Columns { table: "xxl_job_log_report", keys: &[], columns: &columns };
            s.insert(into, vec![values]).await?;
        }
    }
    Ok(stored.is_none_or(|stored| stored.counts != counts))
}

/// A day's row.
struct Stored {
    id: i64,
    /// Running, succeeded, failed.
    counts: [i64; 3],
    written_at: Option<String>,
}

impl Stored {
    /// Whether it was written after the day was over and nothing was running: then there is nothing left to count.
    fn is_final(&self, end: &Value) -> bool {
        match (end, &self.written_at) {
            (Value::Time(end), Some(written)) => self.counts[0] == 0 && written > end,
            _ => false,
        }
    }
}

async fn stored(s: &mut dyn Session, tables: &Tables, day: &Value) -> Result<Option<Stored>, SessionError> {
    let written = if tables.schema.report_has_update_time() { "update_time" } else { "NULL" };
    let sql = format!(
        "SELECT id, running_count, suc_count, fail_count, {written} FROM xxl_job_log_report WHERE trigger_day = ?"
    );
    let rows = s.query(&sql, std::slice::from_ref(day), Lock::None).await?;
    let read = |row: Row| -> Result<Stored, SessionError> {
        let mut row = row.read();
        let (id, counts) = (row.int()?, [row.int()?, row.int()?, row.int()?]);
        Ok(Stored { id, counts, written_at: row.maybe_text()? })
    };
    rows.into_iter().next().map(read).transpose()
}

/// Follows the index on `trigger_time`.
async fn count(s: &mut dyn Session, start: &Value, end: &Value) -> Result<[i64; 3], SessionError> {
    let sql = "SELECT SUM(CASE WHEN handle_code = 0 AND trigger_code IN (0, 200) THEN 1 ELSE 0 END), \
               SUM(CASE WHEN handle_code = 200 THEN 1 ELSE 0 END), COUNT(*) \
               FROM xxl_job_log WHERE trigger_time >= ? AND trigger_time < ?";
    let rows = s.query(sql, &[start.clone(), end.clone()], Lock::None).await?;
    let Some(row) = rows.into_iter().next() else { return Ok([0; 3]) };
    let mut row = row.read();
    let (running, succeeded) = (row.maybe_int()?.unwrap_or(0), row.maybe_int()?.unwrap_or(0));
    Ok([running, succeeded, row.int()? - running - succeeded])
}

// ── Reading ─────────────────────────────────────────────────────────────────────────────────────────────────────

pub async fn report(
    s: &mut dyn Session,
    tables: &Tables,
    from: Timestamp,
    to: Timestamp,
) -> Result<Vec<DayReport>, SessionError> {
    let ((_, first, _), (_, last, _)) = (tables.wall.day(from), tables.wall.day(to));
    let sql = "SELECT trigger_day, running_count, suc_count, fail_count FROM xxl_job_log_report \
               WHERE trigger_day >= ? AND trigger_day <= ? ORDER BY trigger_day";
    let read = |row: Row| -> Result<DayReport, SessionError> {
        let mut row = row.read();
        let mut day = row.text()?;
        day.truncate("2026-06-21".len());
        let mut count = || row.int().map(|count| count.max(0).unsigned_abs());
        Ok(DayReport { day, running: count()?, succeeded: count()?, failed: count()? })
    };
    s.query(sql, &[first, last], Lock::None).await?.into_iter().map(read).collect()
}
