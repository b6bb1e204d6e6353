//! Number of runs per day that succeeded, failed or are running: rows of `xxl_job_log_report` for all apps together,
//! which Java admins also read and write, and of `tw_report` per app.

use engine::{AppId, StoreError};
use timer::Timestamp;

use crate::database::{Database, Tables, transaction};
use crate::runs::{HAS_NO_RESULT, IS_CANCELLED, codes};
use crate::session::{Columns, Lock, Row, Session, SessionError, Value};
use crate::table::table;

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
    let now = &tables.wall.time(s.now().await?);
    let has_counts = stored.as_ref().is_some_and(|stored| stored.counts() == counts);
    if has_counts && !is_over(&end, now) && stored_apps(s, &day).await? == apps {
        return Ok(false);
    }
    let counted = Counted { id: stored.as_ref().map_or(0, |stored| stored.id), start: &start, counts, now };
    match &stored {
        Some(_) => {
            let (set, row) = DayRow::EDIT;
            let (columns, rows) = tables.schema.existing(set, vec![row(counted)]);
            s.update(Columns { columns: &columns, ..set }, rows).await?;
        }
        None => {
            let (into, row) = DayRow::INSERT;
            let (columns, rows) = tables.schema.existing(into, vec![row(counted)]);
            s.insert(Columns { columns: &columns, ..into }, rows).await?;
        }
    }
    // The lock on the day's row above makes this transaction the only writer.
    write_apps(s, &day, apps).await?;
    Ok(stored.is_none_or(|stored| stored.counts() != counts))
}

/// Whether the day that ends at `end` is over. Its counts are then written once more, as the final ones.
fn is_over(end: &Value, now: &Value) -> bool {
    matches!((end, now), (Value::Time(end), Value::Time(now)) if now > end)
}

/// The stored counts per app, ordered as [`count`] orders them.
async fn stored_apps(s: &mut dyn Session, day: &str) -> Result<Vec<(i64, [i64; 3])>, SessionError> {
    let sql = "SELECT app_id, running, succeeded, failed FROM tw_report WHERE day = ? ORDER BY app_id";
    let counts = |row: Row| {
        let mut row = row.read();
        Ok((row.int()?, [row.int()?, row.int()?, row.int()?]))
    };
    s.query(sql, &[day.into()], Lock::None).await?.into_iter().map(counts).collect()
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

/// Counts of a day to write: running, succeeded, failed.
#[derive(Clone, Copy)]
struct Counted<'a> {
    id: i64,
    start: &'a Value,
    counts: [i64; 3],
    now: &'a Value,
}

table! {
    /// Row of `xxl_job_log_report`.
    struct DayRow in "xxl_job_log_report" of day: Counted<'_> {
        trigger_day: String = day.start.clone(),
    }
    edited by id {
        running_count: i64 = day.counts[0],
        suc_count: i64 = day.counts[1],
        fail_count: i64 = day.counts[2],
        update_time: Option<String> = day.now.clone(),
    }
    not inserted { id: i64 = day.id }
}

impl DayRow {
    fn counts(&self) -> [i64; 3] {
        [self.running_count, self.suc_count, self.fail_count]
    }

    /// Whether it was written after the day was over and nothing was running, so the counts are final.
    fn is_final(&self, end: &Value) -> bool {
        match (end, &self.update_time) {
            (Value::Time(end), Some(written)) => self.running_count == 0 && written > end,
            _ => false,
        }
    }
}

async fn stored(s: &mut dyn Session, tables: &Tables, day: &Value) -> Result<Option<DayRow>, SessionError> {
    let list = tables.schema.list("xxl_job_log_report", "d", DayRow::NAMES);
    let sql = format!("SELECT {list} FROM xxl_job_log_report d WHERE d.trigger_day = ?");
    let rows = s.query(&sql, std::slice::from_ref(day), Lock::None).await?;
    rows.into_iter().next().map(|row| DayRow::read(&mut row.read())).transpose()
}

/// Running, succeeded and failed runs per app. Uses the index on `trigger_time`.
async fn count(
    s: &mut dyn Session,
    start: &Value,
    end: &Value,
) -> Result<Vec<(i64, [i64; 3])>, SessionError> {
    let sql = format!(
        "SELECT l.job_group, \
         SUM(CASE WHEN {HAS_NO_RESULT} AND NOT {IS_CANCELLED} THEN 1 ELSE 0 END), \
         SUM(CASE WHEN l.handle_code = {ok} THEN 1 ELSE 0 END), SUM(CASE WHEN {IS_CANCELLED} THEN 0 ELSE 1 END) \
         FROM xxl_job_log l WHERE l.trigger_time >= ? AND l.trigger_time < ? \
         GROUP BY l.job_group ORDER BY l.job_group",
        ok = codes::OK,
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
    match apps {
        None => {
            let list = tables.schema.list("xxl_job_log_report", "d", DayRow::NAMES);
            let sql = format!(
                "SELECT {list} FROM xxl_job_log_report d \
                 WHERE d.trigger_day >= ? AND d.trigger_day <= ? ORDER BY d.trigger_day"
            );
            let rows = s.query(&sql, &[first, last], Lock::None).await?;
            let read = |row: Row| -> Result<DayReport, SessionError> {
                let row = DayRow::read(&mut row.read())?;
                let counts = row.counts();
                Ok(day_report(row.trigger_day, counts))
            };
            rows.into_iter().map(read).collect()
        }
        Some([]) => Ok(Vec::new()),
        Some(apps) => {
            let sql = "SELECT day, SUM(running), SUM(succeeded), SUM(failed) \
                       FROM tw_report WHERE day >= ? AND day <= ? AND app_id IN ? GROUP BY day ORDER BY day";
            let apps = Value::Ids(apps.iter().map(|app| app.0).collect());
            let rows = s.query(sql, &[first_day.into(), last_day.into(), apps], Lock::None).await?;
            let read = |row: Row| -> Result<DayReport, SessionError> {
                let mut row = row.read();
                Ok(day_report(row.text()?, [row.int()?, row.int()?, row.int()?]))
            };
            rows.into_iter().map(read).collect()
        }
    }
}

fn day_report(mut day: String, counts: [i64; 3]) -> DayReport {
    day.truncate("2026-06-21".len());
    let [running, succeeded, failed] = counts.map(|count| count.max(0).unsigned_abs());
    DayReport { day, running, succeeded, failed }
}
