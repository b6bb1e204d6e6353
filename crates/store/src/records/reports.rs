//! Number of runs per day that succeeded, failed or are running: rows of `xxl_job_log_report` for all apps together,
//! which Java admins also read and write, and of `tw_report` per app.

use engine::{AppId, StoreError};
use timer::Timestamp;

use crate::database::{Database, Tables, transaction};
use crate::runs::IS_CANCELLED;
use crate::session::{Columns, Lock, Row, Session, SessionError, Value};

impl Database {
    /// Counts the runs of the day that contains this time, unless the day is over and all its runs were finished
    /// when last counted; returns whether the counts changed.
    pub async fn refresh_report(&self, within: Timestamp) -> Result<bool, StoreError> {
        transaction!(self, s => refresh_report(s, &self.tables, within))
    }

    /// Returns the counts per day, from the day of the first time to that of the second, where there are any: of all
    /// runs, or of the runs of some apps, for days that were counted here.
    pub async fn report(
        &self,
        days: (Timestamp, Timestamp),
        apps: Option<&[AppId]>,
    ) -> Result<Vec<DayReport>, StoreError> {
        transaction!(self, s => report(s, &self.tables, days, apps))
    }
}

/// Runs of a day in the database's time zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DayReport {
    /// The day, for example `2026-06-21`.
    pub day: String,
    /// Runs that are not finished.
    pub running: u64,
    /// Runs that succeeded.
    pub succeeded: u64,
    /// Runs that failed.
    pub failed: u64,
}

// ── Writing ─────────────────────────────────────────────────────────────────────────────────────────────────────

pub async fn refresh_report(
    s: &mut dyn Session,
    tables: &Tables,
    within: Timestamp,
) -> Result<bool, SessionError> {
    let (day, start, end) = tables.wall.day(within);
    let stored = stored(s, tables, &start).await?;
    if stored.as_ref().is_some_and(|stored| stored.is_final(&end)) {
        return Ok(false);
    }
    let apps = count(s, &start, &end).await?;
    let counts = apps.iter().fold([0; 3], |sum: [i64; 3], (_, counts)| {
        std::array::from_fn(|column| sum[column] + counts[column])
    });
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
    // The lock on the day's row above makes this transaction the only writer.
    write_apps(s, &day, apps).await?;
    Ok(stored.is_none_or(|stored| stored.counts != counts))
}

async fn write_apps(s: &mut dyn Session, day: &str, apps: Vec<(i64, [i64; 3])>) -> Result<(), SessionError> {
    s.execute("DELETE FROM tw_report WHERE day = ?", &[day.into()]).await?;
    let row = |(app, [running, succeeded, failed]): (i64, [i64; 3])| -> Vec<Value> {
        vec![day.into(), app.into(), running.into(), succeeded.into(), failed.into()]
    };
    let columns = ["day", "app_id", "running", "succeeded", "failed"];
    let rows: Vec<_> = apps.into_iter().map(row).collect();
    if !rows.is_empty() {
        s.insert(Columns { table: "tw_report", keys: &[], columns: &columns }, rows).await?;
    }
    Ok(())
}

/// A day's row.
struct Stored {
    id: i64,
    /// Running, succeeded, failed.
    counts: [i64; 3],
    written_at: Option<String>,
}

impl Stored {
    /// Whether it was written after the day was over and nothing was running, so the counts are final.
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

/// Running, succeeded and failed runs per app. Uses the index on `trigger_time`.
async fn count(
    s: &mut dyn Session,
    start: &Value,
    end: &Value,
) -> Result<Vec<(i64, [i64; 3])>, SessionError> {
    let sql = format!(
        "SELECT l.job_group, \
         SUM(CASE WHEN l.handle_code = 0 AND l.trigger_code IN (0, 200) AND NOT {IS_CANCELLED} THEN 1 ELSE 0 END), \
         SUM(CASE WHEN l.handle_code = 200 THEN 1 ELSE 0 END), SUM(CASE WHEN {IS_CANCELLED} THEN 0 ELSE 1 END) \
         FROM xxl_job_log l WHERE l.trigger_time >= ? AND l.trigger_time < ? \
         GROUP BY l.job_group ORDER BY l.job_group"
    );
    let read = |row: Row| -> Result<(i64, [i64; 3]), SessionError> {
        let mut row = row.read();
        let (app, running, succeeded) = (row.int()?, row.int()?, row.int()?);
        Ok((app, [running, succeeded, row.int()? - running - succeeded]))
    };
    let rows = s.query(&sql, &[start.clone(), end.clone()], Lock::None).await?;
    rows.into_iter().map(read).collect()
}

// ── Reading ─────────────────────────────────────────────────────────────────────────────────────────────────────

pub async fn report(
    s: &mut dyn Session,
    tables: &Tables,
    (from, to): (Timestamp, Timestamp),
    apps: Option<&[AppId]>,
) -> Result<Vec<DayReport>, SessionError> {
    let ((first_day, first, _), (last_day, last, _)) = (tables.wall.day(from), tables.wall.day(to));
    let rows = match apps {
        None => {
            let sql = "SELECT trigger_day, running_count, suc_count, fail_count FROM xxl_job_log_report \
                       WHERE trigger_day >= ? AND trigger_day <= ? ORDER BY trigger_day";
            s.query(sql, &[first, last], Lock::None).await?
        }
        Some([]) => Vec::new(),
        Some(apps) => {
            let sql = "SELECT day, SUM(running), SUM(succeeded), SUM(failed) \
                       FROM tw_report WHERE day >= ? AND day <= ? AND app_id IN ? GROUP BY day ORDER BY day";
            let apps = Value::Ids(apps.iter().map(|app| app.0).collect());
            s.query(sql, &[first_day.into(), last_day.into(), apps], Lock::None).await?
        }
    };
    let read = |row: Row| -> Result<DayReport, SessionError> {
        let mut row = row.read();
        let mut day = row.text()?;
        day.truncate("2026-06-21".len());
        let mut count = || row.int().map(|count| count.max(0).unsigned_abs());
        Ok(DayReport { day, running: count()?, succeeded: count()?, failed: count()? })
    };
    rows.into_iter().map(read).collect()
}
