//! Lists of runs: rows of `xxl_job_log`, possibly tens of millions, with data of open runs from `tw_run`.
//!
//! Runs of a job or a time range are found through an index (for both, the one that the database chooses).
//! Conditions without an index are checked from the newest run on, some thousands of runs per page. Then a page may
//! be short, and the next one continues from there.

use std::collections::BTreeMap;

pub use engine::RunStatus;
use engine::{AppId, JobId, Node, Origin, RunId, RunState, StoreError};
use timer::Timestamp;

use super::page::{Conditions, Page, Paged, Total, limit_of};
use crate::database::{Database, Tables, transaction};
use crate::read::state_of;
use crate::runs::{self, HAS_NO_RESULT, IS_CANCELLED, LogRow, OpenRow, codes};
use crate::schema::Dialect;
use crate::session::{Lock, Row, Session, SessionError, Value};

impl Database {
    /// Counts runs by status, if there are at most `max`; otherwise the result is marked as incomplete.
    pub async fn run_tally(&self, filter: &RunFilter, max: usize) -> Result<RunTally, StoreError> {
        transaction!(self, s => run_tally(s, &self.tables, filter, max))
    }

    /// Returns a page of runs, the newest first: by id, or by scheduled time if the filter has a time range. The
    /// number of rows read is bounded, however many there are.
    pub async fn run_page(&self, filter: &RunFilter, page: Page) -> Result<Paged<RunRow>, StoreError> {
        transaction!(self, s => run_page(s, &self.tables, filter, page))
    }

    /// Returns one run.
    pub async fn run(&self, id: RunId) -> Result<Option<RunRow>, StoreError> {
        transaction!(self, s => run(s, &self.tables, id))
    }

    /// Deletes at most `max` finished runs, with their logs; returns how many were deleted. `position` is where the
    /// step before has ended, the default for the first step.
    pub async fn clear_runs(
        &self,
        clearing: &Clearing,
        position: &mut ClearPosition,
        max: usize,
    ) -> Result<usize, StoreError> {
        let from = *position;
        let (deleted, next) = transaction!(self, s => clear_runs(s, &self.tables, clearing, from, max))?;
        *position = next;
        Ok(deleted)
    }
}

/// Filter for a list of runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Only runs of these apps; `None` means all apps.
    pub apps: Option<Vec<AppId>>,
    /// Only runs of this job.
    pub job: Option<JobId>,
    /// Only runs with this status.
    pub status: Option<RunStatus>,
    /// Only runs with a scheduled time at or after this.
    pub from: Option<Timestamp>,
    /// Only runs with a scheduled time before this.
    pub until: Option<Timestamp>,
}

/// All stored data of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRow {
    /// Id of the run.
    pub id: RunId,
    /// App of the job when the run was created.
    pub app: AppId,
    /// Id of the job.
    pub job: JobId,
    /// Executor it was dispatched to.
    pub address: Option<String>,
    /// Handler that was called.
    pub handler: String,
    /// Parameter of the handler.
    pub param: String,
    /// Shard of the fire, as `index/total`.
    pub shard: Option<String>,
    /// Number of retries left.
    pub retries_left: i64,
    /// Scheduled time, to the second.
    pub triggered_at: Option<Timestamp>,
    /// XXL-JOB's dispatch code: 0 not yet, 200 dispatched, others failed.
    pub trigger_code: i64,
    /// Message about the dispatch.
    pub trigger_message: Option<String>,
    /// When its result was stored.
    pub ended_at: Option<Timestamp>,
    /// XXL-JOB's result code: 0 none yet, 200 success, 502 timeout, others failure.
    pub result_code: i64,
    /// Message about the result.
    pub result_message: Option<String>,
    /// XXL-JOB's alarm status.
    pub alarm_status: i64,
    /// State of the run.
    pub state: RunState,
    /// Further data while the run is open in `tw_run`.
    pub open: Option<OpenRun>,
}

/// Data that only an open run has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenRun {
    /// Scheduled time of the run.
    pub scheduled_at: Timestamp,
    /// When it is to be dispatched.
    pub due_at: Timestamp,
    /// Node that has claimed it.
    pub node: Option<Node>,
    /// Number of the attempt, from 1.
    pub attempt: i64,
    /// Why the run exists.
    pub origin: Option<Origin>,
    /// The run that this attempt retries, if any.
    pub retry_of: Option<RunId>,
    /// Whether a user requested to cancel it and it has not ended yet.
    pub cancel: bool,
}

/// Number of runs by status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunTally {
    /// Waiting, being dispatched or running.
    pub running: u64,
    /// Finished with success.
    pub succeeded: u64,
    /// Finished without success; not including runs withdrawn before dispatch.
    pub failed: u64,
    /// Number of runs read, including withdrawn ones.
    pub read: usize,
    /// Whether all matching runs were read.
    pub is_all: bool,
}

// ── Pages ───────────────────────────────────────────────────────────────────────────────────────────────────────

pub async fn run_page(
    s: &mut dyn Session,
    tables: &Tables,
    filter: &RunFilter,
    page: Page,
) -> Result<Paged<RunRow>, SessionError> {
    if filter.apps.as_ref().is_some_and(Vec::is_empty) {
        return Ok(Paged::empty(page));
    }
    let search = Search::new(tables, filter);
    let found = match page {
        Page::Offset { .. } => search.by_offset(s, page).await?,
        Page::After { after, limit } => search.after(s, after, limit.min(Page::MAX)).await?,
    };
    let mut rows = load(s, tables, &found.rows).await?;
    let rows = found.rows.iter().filter_map(|id| rows.remove(id)).collect();
    Ok(Paged { rows, total: found.total, next: found.next })
}

/// Plan for finding runs.
struct Search {
    /// All runs, or only failed ones.
    table: &'static str,
    /// Conditions that an index supports: runs of a job, or of a time range.
    found: Conditions,
    /// Conditions that are checked on each row found.
    wanted: Conditions,
    /// Whether every row found matches, or an index supports the other conditions too.
    direct: bool,
    by_time: bool,
}

impl Search {
    fn new(tables: &Tables, filter: &RunFilter) -> Search {
        let is_listed = filter.status == Some(RunStatus::Failed) && tables.lists_failed();
        Search::of(if is_listed { FAILED } else { LOG }, tables, filter)
    }

    fn of(table: &'static str, tables: &Tables, filter: &RunFilter) -> Search {
        let (mut found, mut wanted) = (Conditions::default(), Conditions::default());
        if let Some(job) = filter.job {
            found.and("l.job_id = ?", [job.0.into()]);
        }
        if let Some(from) = filter.from {
            found.and("l.trigger_time >= ?", [tables.wall.time(from)]);
        }
        if let Some(until) = filter.until {
            found.and("l.trigger_time < ?", [tables.wall.time(until)]);
        }
        if let Some(apps) = &filter.apps {
            wanted.and("l.job_group IN ?", [Value::Ids(apps.iter().map(|app| app.0).collect())]);
        }
        match filter.status {
            Some(RunStatus::Succeeded) => wanted.and(format!("l.handle_code = {}", codes::OK), []),
            Some(RunStatus::Failed) if table == FAILED => {}
            Some(RunStatus::Failed) => {
                let good = format!("{}, {}", codes::OK, codes::CANCELLED);
                wanted.and(format!("NOT {HAS_NO_RESULT} AND l.handle_code NOT IN ({good})"), []);
            }
            // Java admins exist only with MySQL, and we have no rows of their open runs; MySQL also has an index for
            // this.
            Some(RunStatus::Running) if tables.schema.dialect() == Dialect::MySql => {
                wanted.and(format!("{HAS_NO_RESULT} AND NOT {IS_CANCELLED}"), []);
            }
            Some(RunStatus::Running) => wanted.and("l.id IN (SELECT run_id FROM tw_run)", []),
            None => {}
        }
        let direct = wanted.is_empty() || filter.status == Some(RunStatus::Running);
        Search { table, found, wanted, direct, by_time: filter.from.is_some() || filter.until.is_some() }
    }

    fn order(&self) -> &'static str {
        if self.by_time { "l.trigger_time DESC, l.id DESC" } else { "l.id DESC" }
    }

    /// Whether runs are checked one after the other, because no index helps.
    fn goes_by_numbers(&self) -> bool {
        !self.direct && self.found.is_empty() && self.table == LOG
    }

    /// All conditions.
    fn conditions(&self) -> Conditions {
        self.found.clone().with(&self.wanted)
    }

    /// A page with a bounded total: counting ends at [`COUNT_MAX`] rows, and without an index only the newest
    /// [`OFFSET_SCAN`] runs are read.
    async fn by_offset(&self, s: &mut dyn Session, page: Page) -> Result<Paged<i64>, SessionError> {
        let mut conditions = self.conditions();
        let mut exact = true;
        if self.goes_by_numbers()
            && let Some((oldest, newest)) = ends(s).await?
            && newest - oldest >= OFFSET_SCAN
        {
            exact = false;
            conditions.and("l.id > ?", [(newest - OFFSET_SCAN).into()]);
        }
        let rows = self.select(s, &conditions, page.bounds()).await?;
        let sql = format!(
            "SELECT COUNT(*) FROM (SELECT l.id FROM {} l {} LIMIT ?) counted",
            self.table,
            conditions.sql()
        );
        let counted = s.query(&sql, &conditions.params([(COUNT_MAX + 1).into()]), Lock::None).await?;
        let count = counted.into_iter().next().map(|row| row.read().int()).transpose()?.unwrap_or(0);
        let total = Total { count: count.min(COUNT_MAX).unsigned_abs(), exact: exact && count <= COUNT_MAX };
        Ok(Paged { rows, total: Some(total), next: None })
    }

    async fn after(
        &self,
        s: &mut dyn Session,
        after: Option<i64>,
        limit: usize,
    ) -> Result<Paged<i64>, SessionError> {
        let page = Page::After { after, limit };
        if self.direct {
            let mut conditions = self.conditions();
            if let Some(after) = after
                && !self.follow(s, &mut conditions, after).await?
            {
                return Ok(Paged::empty(page));
            }
            let rows = self.select(s, &conditions, [limit_of(limit), 0.into()]).await?;
            return Ok(Paged::new(rows, page, None, |id| *id));
        }
        if self.goes_by_numbers() {
            return self.through_numbers(s, after, limit).await;
        }
        self.through_found(s, after, limit).await
    }

    /// Adds the condition that rows come after this one. Returns false if it was deleted: then the older ones after
    /// it are deleted too.
    async fn follow(
        &self,
        s: &mut dyn Session,
        conditions: &mut Conditions,
        after: i64,
    ) -> Result<bool, SessionError> {
        if !self.by_time {
            conditions.and("l.id < ?", [after.into()]);
            return Ok(true);
        }
        let sql = "SELECT trigger_time FROM xxl_job_log WHERE id = ?";
        let rows = s.query(sql, &[after.into()], Lock::None).await?;
        let Some(time) = rows.into_iter().next().map(|row| row.read().maybe_text()).transpose()?.flatten()
        else {
            return Ok(false);
        };
        let time = Value::Time(time);
        let term = "l.trigger_time <= ? AND (l.trigger_time < ? OR l.id < ?)";
        conditions.and(term, [time.clone(), time, after.into()]);
        Ok(true)
    }

    /// Checks the rows found from the newest on, in a small window first, until the page is full or the bound is
    /// reached.
    async fn through_found(
        &self,
        s: &mut dyn Session,
        after: Option<i64>,
        limit: usize,
    ) -> Result<Paged<i64>, SessionError> {
        let (mut rows, mut after) = (Vec::new(), after);
        for window in FOUND_WINDOWS {
            let mut found = self.found.clone();
            if let Some(after) = after
                && !self.follow(s, &mut found, after).await?
            {
                return Ok(Paged { rows, total: None, next: None });
            }
            let (order, found_sql, wanted_sql) = (self.order(), found.sql(), self.wanted.sql());
            let (table, codes) =
                (self.table, if self.table == LOG { ", l.trigger_code, l.handle_code" } else { "" });
            let sql = format!(
                "SELECT l.id FROM (SELECT l.id, l.job_group, l.trigger_time{codes} FROM {table} l {found_sql} \
                 ORDER BY {order} LIMIT ?) l {wanted_sql} ORDER BY {order} LIMIT ?"
            );
            let mut params = found.params([window.into()]);
            params.extend(self.wanted.params([limit_of(limit - rows.len())]));
            rows.extend(ids(s.query(&sql, &params, Lock::None).await?)?);
            if rows.len() >= limit {
                return Ok(Paged { next: rows.last().copied(), rows, total: None });
            }
            let last = self.select(s, &found, [1.into(), (window - 1).into()]).await?;
            let Some(last) = last.first() else {
                return Ok(Paged { rows, total: None, next: None });
            };
            after = Some(*last);
        }
        Ok(Paged { rows, total: None, next: after })
    }

    /// The same over all runs, with ids as an estimate of their number.
    async fn through_numbers(
        &self,
        s: &mut dyn Session,
        after: Option<i64>,
        limit: usize,
    ) -> Result<Paged<i64>, SessionError> {
        let Some((oldest, newest)) = ends(s).await? else {
            return Ok(Paged::empty(Page::After { after, limit }));
        };
        let below = after.unwrap_or(newest + 1);
        // The key comes from the client and may be any number.
        let from = below.saturating_sub(NUMBERS);
        let mut conditions = self.wanted.clone();
        conditions.and("l.id >= ? AND l.id < ?", [from.into(), below.into()]);
        let rows = self.select(s, &conditions, [limit_of(limit), 0.into()]).await?;
        let next = match rows.last() {
            Some(last) if rows.len() >= limit => Some(*last),
            _ => (from > oldest).then_some(from),
        };
        Ok(Paged { rows, total: None, next })
    }

    async fn select(
        &self,
        s: &mut dyn Session,
        conditions: &Conditions,
        bounds: [Value; 2],
    ) -> Result<Vec<i64>, SessionError> {
        let sql = format!(
            "SELECT l.id FROM {} l {} ORDER BY {} LIMIT ? OFFSET ?",
            self.table,
            conditions.sql(),
            self.order()
        );
        ids(s.query(&sql, &conditions.params(bounds), Lock::None).await?)
    }
}

fn ids(rows: Vec<Row>) -> Result<Vec<i64>, SessionError> {
    rows.into_iter().map(|row| row.read().int()).collect()
}

/// Counting stops here, because users do not page further.
const COUNT_MAX: i64 = 10_000;

/// Runs read for a page by offset: about 100 ms.
const OFFSET_SCAN: i64 = 200_000;

/// Runs read for a page by key: at most about 20 ms.
const NUMBERS: i64 = 20_000;

/// Runs read for a page by key through an index, a small window first, because some databases read all before they
/// compare any.
const FOUND_WINDOWS: [i64; 2] = [1_000, 10_000];

/// All runs.
const LOG: &str = "xxl_job_log";

/// Copies of the failed runs, with the columns by which runs are found.
const FAILED: &str = "tw_failed";

/// The oldest and the newest run, in two subqueries: with both in one, SQLite would read the whole table.
async fn ends(s: &mut dyn Session) -> Result<Option<(i64, i64)>, SessionError> {
    let sql = "SELECT (SELECT MIN(id) FROM xxl_job_log), (SELECT MAX(id) FROM xxl_job_log)";
    let rows = s.query(sql, &[], Lock::None).await?;
    let Some(row) = rows.into_iter().next() else { return Ok(None) };
    let mut row = row.read();
    Ok(row.maybe_int()?.zip(row.maybe_int()?))
}

/// Uses the index on the scheduled time or on the job, and reads at most `max` rows. In the hour that clocks show
/// twice, runs count for the first of the two, so that adjacent time ranges count each run once.
pub async fn run_tally(
    s: &mut dyn Session,
    tables: &Tables,
    filter: &RunFilter,
    max: usize,
) -> Result<RunTally, SessionError> {
    let mut tally = RunTally { is_all: true, ..RunTally::default() };
    if filter.apps.as_ref().is_some_and(Vec::is_empty) {
        return Ok(tally);
    }
    let mut conditions =
        Search::of(LOG, tables, &RunFilter { from: None, until: None, ..filter.clone() }).conditions();
    if let Some(from) = filter.from {
        conditions.and("l.trigger_time >= ?", [tables.wall.first_from(from)]);
    }
    if let Some(until) = filter.until {
        conditions.and("l.trigger_time < ?", [tables.wall.first_from(until)]);
    }
    let sql = format!(
        "SELECT c.came_to, COUNT(*) FROM (SELECT CASE WHEN l.handle_code = {ok} THEN {SUCCEEDED} \
         WHEN {IS_CANCELLED} THEN {CANCELLED} WHEN {HAS_NO_RESULT} THEN {RUNNING} ELSE {UNSUCCESSFUL} END \
         AS came_to FROM xxl_job_log l {} LIMIT ?) c GROUP BY c.came_to",
        conditions.sql(),
        ok = codes::OK,
    );
    for row in s.query(&sql, &conditions.params([limit_of(max.saturating_add(1))]), Lock::None).await? {
        let mut row = row.read();
        let (came_to, count) = (row.int()?, row.int()?.unsigned_abs());
        match came_to {
            RUNNING => tally.running = count,
            SUCCEEDED => tally.succeeded = count,
            UNSUCCESSFUL => tally.failed = count,
            _ => {}
        }
        tally.read = tally.read.saturating_add(usize::try_from(count).unwrap_or(usize::MAX));
    }
    tally.is_all = tally.read <= max;
    Ok(tally)
}

/// Groups of runs that are counted.
const RUNNING: i64 = 0;
const SUCCEEDED: i64 = 1;
const UNSUCCESSFUL: i64 = 2;
const CANCELLED: i64 = 3;

// ── Rows ────────────────────────────────────────────────────────────────────────────────────────────────────────

pub async fn run(s: &mut dyn Session, tables: &Tables, id: RunId) -> Result<Option<RunRow>, SessionError> {
    Ok(load(s, tables, &[id.0]).await?.remove(&id.0))
}

/// Runs by id; those that do not exist are omitted.
pub async fn load(
    s: &mut dyn Session,
    tables: &Tables,
    ids: &[i64],
) -> Result<BTreeMap<i64, RunRow>, SessionError> {
    if ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    let sql = format!(
        "SELECT {}, {} FROM xxl_job_log l LEFT JOIN tw_run r ON r.run_id = l.id WHERE l.id IN ?",
        LogRow::list_of("l"),
        OpenRow::list_of("r")
    );
    let rows = s.query(&sql, &[Value::Ids(ids.to_vec())], Lock::None).await?;
    rows.into_iter().map(|row| read(tables, row)).map(|row| row.map(|row| (row.id.0, row))).collect()
}

fn read(tables: &Tables, row: Row) -> Result<RunRow, SessionError> {
    let mut row = row.read();
    let (log, open) = (LogRow::read(&mut row)?, OpenRow::read_joined(&mut row)?);
    let time = |text: Option<String>| text.and_then(|text| tables.wall.instant(&text));
    let ended_at = time(log.handle_time);
    let ended_as = state_of((log.trigger_code, log.handle_code), ended_at.is_some());
    let (state, address) = match &open {
        Some(open) => (open.state, open.address.clone()),
        None => (ended_as, None),
    };
    Ok(RunRow {
        id: log.id,
        app: log.job_group,
        job: log.job_id,
        address: address.or(log.executor_address).filter(|address| !address.is_empty()),
        handler: log.executor_handler,
        param: log.executor_param.unwrap_or_default(),
        shard: log.executor_sharding_param.filter(|shard| !shard.is_empty()),
        retries_left: log.executor_fail_retry_count,
        triggered_at: time(log.trigger_time),
        trigger_code: log.trigger_code,
        trigger_message: log.trigger_msg,
        ended_at,
        // The state tells that it was cancelled; XXL-JOB's tools know only this code for it.
        result_code: if log.handle_code == codes::CANCELLED { codes::FAILED } else { log.handle_code },
        result_message: log.handle_msg,
        alarm_status: log.alarm_status,
        state,
        open: open.map(OpenRun::from),
    })
}

impl From<OpenRow> for OpenRun {
    fn from(row: OpenRow) -> OpenRun {
        OpenRun {
            scheduled_at: row.scheduled_ms,
            due_at: row.due_ms,
            node: runs::node_of(row.node, row.epoch),
            attempt: row.attempt.into(),
            origin: Origin::from_numbers(row.kind, row.cause),
            retry_of: row.retry_of,
            cancel: row.recalled >= runs::CANCEL,
        }
    }
}

// ── Clearing ────────────────────────────────────────────────────────────────────────────────────────────────────

/// Finished runs that a user deletes. Open runs stay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clearing {
    /// Only runs of these apps; `None` means all apps.
    pub apps: Option<Vec<AppId>>,
    /// Only runs of this job.
    pub job: Option<JobId>,
    /// Runs to keep.
    pub keep: Keep,
}

/// Runs to keep when deleting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Runs with a scheduled time at or after this.
    Since(Timestamp),
    /// The newest runs, this many.
    Newest(usize),
    /// None.
    Nothing,
}

/// Position of a deletion that takes several steps, so that none searches again what others have searched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClearPosition {
    /// The last deleted run.
    after: i64,
    /// The last run to delete, once it is known.
    last: Option<i64>,
}

pub async fn clear_runs(
    s: &mut dyn Session,
    tables: &Tables,
    clearing: &Clearing,
    mut position: ClearPosition,
    max: usize,
) -> Result<(usize, ClearPosition), SessionError> {
    if clearing.apps.as_ref().is_some_and(Vec::is_empty) {
        return Ok((0, position));
    }
    let filter = RunFilter { apps: clearing.apps.clone(), job: clearing.job, ..RunFilter::default() };
    let mut conditions = Search::of(LOG, tables, &filter).conditions();
    match clearing.keep {
        Keep::Since(at) => conditions.and("l.trigger_time < ?", [tables.wall.time(at)]),
        Keep::Newest(count) if position.last.is_none() => {
            let count =
                i64::try_from(count).map_err(|_| StoreError::Invalid("too many runs to keep".into()))?;
            let sql = format!(
                "SELECT l.id FROM xxl_job_log l {} ORDER BY l.id DESC LIMIT 1 OFFSET ?",
                conditions.sql()
            );
            let rows = s.query(&sql, &conditions.params([count.into()]), Lock::None).await?;
            let Some(row) = rows.into_iter().next() else { return Ok((0, position)) };
            position.last = Some(row.read().int()?);
        }
        Keep::Newest(_) | Keep::Nothing => {}
    }
    if let Some(last) = position.last {
        conditions.and("l.id <= ?", [last.into()]);
    }
    conditions.and("l.id > ?", [position.after.into()]);
    conditions.and("NOT EXISTS (SELECT 1 FROM tw_run r WHERE r.run_id = l.id)", []);
    let sql = format!("SELECT l.id FROM xxl_job_log l {} ORDER BY l.id LIMIT ?", conditions.sql());
    let ids = ids(s.query(&sql, &conditions.params([limit_of(max)]), Lock::None).await?)?;
    runs::forget(s, &ids).await?;
    position.after = ids.last().copied().unwrap_or(position.after);
    Ok((ids.len(), position))
}
