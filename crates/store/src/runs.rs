//! Runs: a row of `tw_run` while it is open, and a row of `xxl_job_log` that stays.
//!
//! XXL-JOB's names for the parts of a run are used here (and, for reading, in `read.rs`). Our log rows have
//! `alarm_status = 1`, "no alarm needed", from the start, so that a Java admin neither retries our failed runs nor
//! mails about them.

use std::collections::BTreeMap;
use std::fmt::{self, Formatter};

use engine::{
    AppId, Disposition, HistoryEntry, Job, JobId, Node, Origin, Outcome, Run, RunId, RunState, Shard,
    StoreError, Unsent, disposition_of,
};
use timer::Timestamp;

use crate::backfills;
use crate::database::Tables;
use crate::session::{Columns, Lock, Row, Session, SessionError, Value};
use crate::table::table;
use crate::workflows;

// ── Numbers in rows ─────────────────────────────────────────────────────────────────────────────────────────────

/// States of open runs in `tw_run`.
pub const WAITING: i64 = RunState::Waiting.to_number();
pub const CLAIMED: i64 = RunState::Claimed.to_number();
pub const CANCELLING: i64 = RunState::Cancelling.to_number();
pub const UNKNOWN: i64 = RunState::Unknown.to_number();
pub const RUNNING: i64 = RunState::Running.to_number();

/// Condition on `tw_run` for runs of a schedule, as [`Origin::is_scheduled`] defines them.
pub const IS_SCHEDULED: Condition = Condition(|sql| {
    let [scheduled, misfired] = [Origin::Schedule, Origin::Misfire].map(|origin| origin.to_numbers().0);
    write!(sql, "kind IN ({scheduled}, {misfired})")
});

/// Condition on `xxl_job_log l` for runs without a result, by XXL-JOB's rule. Runs that were cancelled or skipped
/// before their dispatch match too.
pub const HAS_NO_RESULT: Condition = Condition(|sql| {
    let (none, ok) = (codes::NONE, codes::OK);
    write!(sql, "(l.handle_code = {none} AND l.trigger_code IN ({none}, {ok}))")
});

/// Condition on `xxl_job_log l` for cancelled runs, as [`result_row`] writes them: neither failed nor running.
pub const IS_CANCELLED: Condition = Condition(|sql| {
    let (none, cancelled) = (codes::NONE, codes::CANCELLED);
    write!(
        sql,
        "(l.handle_code = {cancelled} OR \
         l.handle_code = {none} AND l.trigger_code = {none} AND l.handle_time IS NOT NULL)"
    )
});

/// A condition for SQL statements, written with the names of its numbers.
pub struct Condition(fn(&mut Formatter<'_>) -> fmt::Result);

impl fmt::Display for Condition {
    fn fmt(&self, sql: &mut Formatter<'_>) -> fmt::Result {
        (self.0)(sql)
    }
}

/// XXL-JOB's codes in `handle_code`, and in `trigger_code` for the dispatch.
pub mod codes {
    /// No result yet.
    pub const NONE: i64 = 0;
    /// Succeeded, or accepted by an executor.
    pub const OK: i64 = 200;
    pub const FAILED: i64 = 500;
    pub const TIMED_OUT: i64 = 502;
    /// Result code of a run that was cancelled after its dispatch. XXL-JOB has none and counts any code of its own as
    /// a failure; no executor reports this one.
    pub const CANCELLED: i64 = -499;
}

/// `alarm_status` of a run that a Java admin has just started.
pub const ALARM_PENDING: i64 = 0;

/// `alarm_status` of our log rows: no alarm needed.
pub const NO_ALARM: i64 = 1;

// ── Reading ─────────────────────────────────────────────────────────────────────────────────────────────────────

table! {
    /// Row of `tw_run`: an open run.
    struct OpenRow in "tw_run" of run: &Run {
        run_id: RunId = run.id,
        fire_id: RunId = run.fire,
        job_id: JobId = run.job,
        scheduled_ms: Timestamp = run.scheduled_at,
        kind: i64 = run.origin.to_numbers().0,
        cause: i64 = run.origin.to_numbers().1,
        shard: u32 = i64::from(run.shard.index),
        shards: u32 = i64::from(run.shard.total),
        attempt: u32 = i64::from(run.attempt),
        retry_of: Option<RunId> = run.retry_of,
        depth: u32 = i64::from(run.depth),
        state: RunState = run.state,
        version: i64 = run.version,
        node: Option<String> = run.node.as_ref().map(|node| node.name.as_str()),
        epoch: Option<i64> = run.node.as_ref().map(|node| node.epoch),
        due_ms: Timestamp = run.due_at,
        check_ms: Timestamp = run.check_at,
        doubt_ms: Option<Timestamp> = run.doubt_since,
        recalled: i64 = recall(run),
        address: Option<String> = run.address.as_deref(),
        param: Option<String> = run.param.as_deref(),
    }
    update CHANGE by run_id {
        shard, shards, state, version, node, epoch, due_ms, check_ms, doubt_ms, recalled, address,
    }
    update SENT by run_id { state, version, check_ms, doubt_ms, address }
}

/// Reads the open runs that match `tail`.
pub async fn select(
    s: &mut dyn Session,
    tail: &str,
    params: &[Value],
    lock: Lock,
) -> Result<Vec<Run>, SessionError> {
    let rows = s.query(&format!("SELECT {} FROM tw_run {tail}", OpenRow::LIST), params, lock).await?;
    rows.into_iter().map(|row| OpenRow::read(&mut row.read())?.run()).collect()
}

/// Reads open runs by their ids, and locks them in that order.
pub async fn lock(s: &mut dyn Session, ids: &[i64]) -> Result<BTreeMap<i64, Run>, SessionError> {
    if ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    let ids = [Value::Ids(ids.to_vec())];
    let runs = select(s, "WHERE run_id IN ? ORDER BY run_id", &ids, Lock::Wait).await?;
    Ok(runs.into_iter().map(|run| (run.id.0, run)).collect())
}

/// Reads the ids of the open runs that match `tail`, then locks them in the order of their ids, as every transaction
/// does, so that two do not wait for each other. Until a run is locked it may end or change its state.
pub async fn lock_matching(
    s: &mut dyn Session,
    tail: &str,
    params: &[Value],
) -> Result<Vec<Run>, SessionError> {
    let rows = s.query(&format!("SELECT run_id FROM tw_run {tail}"), params, Lock::None).await?;
    let ids = rows.into_iter().map(|row| row.read().int()).collect::<Result<Vec<_>, _>>()?;
    Ok(lock(s, &ids).await?.into_values().collect())
}

impl OpenRow {
    fn run(self) -> Result<Run, SessionError> {
        Ok(Run {
            origin: origin_of(self.run_id, self.kind, self.cause)?,
            node: node_of(self.node, self.epoch),
            id: self.run_id,
            fire: self.fire_id,
            job: self.job_id,
            scheduled_at: self.scheduled_ms,
            shard: Shard { index: self.shard, total: self.shards },
            attempt: self.attempt,
            retry_of: self.retry_of,
            depth: self.depth,
            state: self.state,
            version: self.version,
            due_at: self.due_ms,
            check_at: self.check_ms,
            doubt_since: self.doubt_ms,
            recalled: self.recalled != NOT_RECALLED,
            cancel: self.recalled >= CANCEL,
            replaced: self.recalled == REPLACED,
            address: self.address,
            param: self.param,
        })
    }
}

/// The node that has a run.
pub fn node_of(name: Option<String>, epoch: Option<i64>) -> Option<Node> {
    Some(Node { name: name?, epoch: epoch? })
}

fn origin_of(run: RunId, kind: i64, cause: i64) -> Result<Origin, SessionError> {
    let unknown = || {
        StoreError::Schema(format!("run {run} has an unknown kind {kind}; it was written by another version"))
    };
    Ok(Origin::from_numbers(kind, cause).ok_or_else(unknown)?)
}

/// The values of `recalled`: withdrawn by a change of its job that continues after its time, so that the time is fired
/// again if the run was not sent; not; withdrawn by a change of its job; to be cancelled, because a user requested it
/// or because a later run replaced it.
pub const REOPEN: i64 = -1;
pub const NOT_RECALLED: i64 = 0;
const RECALLED: i64 = 1;
pub const CANCEL: i64 = 2;
pub const REPLACED: i64 = 3;

fn recall(run: &Run) -> i64 {
    match () {
        () if run.replaced => REPLACED,
        () if run.cancel => CANCEL,
        () if run.recalled => RECALLED,
        () => NOT_RECALLED,
    }
}

// ── Opening ─────────────────────────────────────────────────────────────────────────────────────────────────────

/// A run to open. Its id is not known yet; neither is its fire, unless it belongs to an older one.
pub struct Opening<'a> {
    pub run: Run,
    pub job: &'a Job,
}

/// The id of a run before it has one, and its fire if that is itself or the shard before it.
pub const NEW: RunId = RunId(0);

/// The first attempt of a whole fire, waiting. The caller sets the fields that differ.
pub fn waiting(job: JobId, origin: Origin, scheduled_at: Timestamp, due_at: Timestamp) -> Run {
    Run {
        id: NEW,
        fire: NEW,
        job,
        scheduled_at,
        origin,
        shard: Shard::UNSPLIT,
        attempt: 1,
        retry_of: None,
        depth: 0,
        state: RunState::Waiting,
        version: 1,
        node: None,
        due_at,
        check_at: due_at,
        doubt_since: None,
        recalled: false,
        cancel: false,
        replaced: false,
        address: None,
        param: None,
    }
}

/// Opens runs, the shards of one fire one after the other. Returns them with their ids.
pub async fn open(
    s: &mut dyn Session,
    tables: &Tables,
    openings: Vec<Opening<'_>>,
) -> Result<Vec<Run>, SessionError> {
    if openings.is_empty() {
        return Ok(Vec::new());
    }
    let (into, row) = LogRow::INSERT;
    let logs = openings.iter().map(|Opening { run, job }| row(NewLog { tables, run, job })).collect();
    let ids = s.insert_numbered(into, logs).await?;

    let mut runs: Vec<Run> = Vec::with_capacity(openings.len());
    let mut broadcasts = Vec::new();
    for (opening, id) in openings.into_iter().zip(ids) {
        let mut run = opening.run;
        run.id = RunId(id);
        if run.fire == NEW {
            run.fire = match runs.last() {
                Some(first) if run.shard.index > 0 => first.fire,
                _ => run.id,
            };
            if run.shard.index == 0 && run.shard.total > 1 {
                broadcasts.push((run.fire, run.shard.total));
            }
        }
        runs.push(run);
    }
    let (into, row) = OpenRow::INSERT;
    s.insert(into, runs.iter().map(row).collect()).await?;
    open_broadcasts(s, &broadcasts).await?;
    Ok(runs)
}

/// Adds the count of open shards for fires with several.
pub async fn open_broadcasts(s: &mut dyn Session, fires: &[(RunId, u32)]) -> Result<(), SessionError> {
    if fires.is_empty() {
        return Ok(());
    }
    let (into, row) = BroadcastRow::INSERT;
    let counts = fires.iter().map(|(fire, total)| (fire.0, Count { open: (*total).into(), failed: 0 }));
    s.insert(into, counts.map(|(fire, count)| row((fire, &count))).collect()).await
}

/// A log row to add.
#[derive(Clone, Copy)]
struct NewLog<'a> {
    tables: &'a Tables,
    run: &'a Run,
    job: &'a Job,
}

table! {
    /// Row of `xxl_job_log`: a run.
    struct LogRow in "xxl_job_log" of log: NewLog<'_> {
        job_group: AppId = log.job.spec.app,
        job_id: JobId = log.job.id,
        executor_address: Option<String> = log.run.address.as_deref(),
        executor_handler: String = log.job.spec.handler.as_str(),
        executor_param: Option<String> = log.param(),
        executor_sharding_param: Option<String> = sharding(log.run.shard),
        executor_fail_retry_count: i64 = log.retries_left(),
        trigger_time: Option<String> = log.tables.wall.time(log.run.scheduled_at),
        trigger_code: i64 = codes::NONE,
        handle_code: i64 = codes::NONE,
        alarm_status: i64 = NO_ALARM,
    }
    not inserted {
        id: RunId,
        trigger_msg: Option<String>,
        handle_time: Option<String>,
        handle_msg: Option<String>,
    }
}

impl NewLog<'_> {
    /// The parameter, as far as the column holds it: that of a step or a workflow run may be longer.
    fn param(&self) -> String {
        let param = self.run.param.as_ref().unwrap_or(&self.job.spec.param);
        match self.run.origin {
            Origin::Step { .. } | Origin::Resume { .. } => {
                self.tables.schema.fitting("xxl_job_log", "executor_param", param)
            }
            _ => param.clone(),
        }
    }

    fn retries_left(&self) -> i64 {
        let left = self.job.spec.retry.count.saturating_sub(self.run.attempt - 1);
        left.min(i32::MAX.unsigned_abs()).into()
    }
}

/// `i/n`, for a fire with several shards.
pub fn sharding(shard: Shard) -> Value {
    if shard.total > 1 { format!("{}/{}", shard.index, shard.total).into() } else { Value::Null }
}

// ── Changing ────────────────────────────────────────────────────────────────────────────────────────────────────

/// Writes the fields of a run that change. The caller has locked the rows, and raised the versions.
pub async fn save(s: &mut dyn Session, runs: &[Run]) -> Result<(), SessionError> {
    if runs.is_empty() {
        return Ok(());
    }
    let (set, row) = OpenRow::CHANGE;
    s.update(set, runs.iter().map(row).collect()).await?;
    Ok(())
}

/// Writes the fields that change when a node has dispatched a run: fewer than [`save`], and written for every run.
pub async fn save_sent(s: &mut dyn Session, runs: &[Run]) -> Result<(), SessionError> {
    if runs.is_empty() {
        return Ok(());
    }
    let (set, row) = OpenRow::SENT;
    s.update(set, runs.iter().map(row).collect()).await?;
    Ok(())
}

/// The run as it waits to be claimed again by any node.
pub fn released(mut run: Run) -> Run {
    run.state = RunState::Waiting;
    run.version += 1;
    run.node = None;
    run.check_at = run.due_at;
    run.doubt_since = None;
    run
}

/// Lets the oldest run that waits for an exclusive job be claimed now, if the job is free. Runs that wait for their
/// own time are not included: retries, and runs for later.
pub async fn wake(s: &mut dyn Session, jobs: &[i64], now: Timestamp) -> Result<(), SessionError> {
    if jobs.is_empty() {
        return Ok(());
    }
    let mut open =
        select(s, "WHERE job_id IN ? ORDER BY run_id", &[Value::Ids(jobs.to_vec())], Lock::None).await?;
    let mut woken = Vec::new();
    for job in jobs {
        let is_active = |run: &Run| run.state != RunState::Waiting && !run.replaced;
        if open.iter().any(|run| run.job.0 == *job && is_active(run)) {
            continue;
        }
        let first =
            open.iter_mut().find(|run| run.job.0 == *job && run.attempt == 1 && run.scheduled_at <= now);
        if let Some(run) = first
            && run.due_at > now
        {
            run.due_at = now;
            run.check_at = now;
            run.version += 1;
            woken.push(run.clone());
        }
    }
    save(s, &woken).await
}

// ── Closing ─────────────────────────────────────────────────────────────────────────────────────────────────────

/// A run to close.
pub struct Closing {
    /// The run before it is closed.
    pub run: Run,
    pub outcome: Outcome,
    /// Whether another attempt follows.
    pub retried: bool,
    /// Whether a Java admin has stored the outcome in the log.
    pub stored: bool,
}

impl Closing {
    /// Closes the last attempt.
    pub fn last(run: Run, outcome: Outcome) -> Self {
        Closing { run, outcome, retried: false, stored: false }
    }

    /// Id of the run, if its row stays.
    pub fn row(&self) -> Option<RunId> {
        (!self.leaves_no_row()).then_some(self.run.id)
    }

    /// A withdrawn or skipped fire leaves only its entry in the history. The row of any other run stays: a user or a
    /// program may have its id, and so may an executor if the run was released after it was perhaps dispatched.
    fn leaves_no_row(&self) -> bool {
        let fresh_version = if self.run.state == RunState::Waiting { 1 } else { 2 };
        is_unsent(self.run.state)
            && is_withdrawn(&self.run, &self.outcome)
            && self.run.origin.is_scheduled()
            && self.run.attempt == 1
            && self.run.version <= fresh_version
    }
}

/// Whether a run in this state was not dispatched yet.
fn is_unsent(state: RunState) -> bool {
    matches!(state, RunState::Waiting | RunState::Claimed | RunState::Cancelling)
}

/// Whether the run ended before its dispatch and is no failure: it was cancelled, or the misfire policy skipped it.
/// XXL-JOB counts a run that it blocks as failed; here only a scheduled one is none, as if it had not been opened.
fn is_withdrawn(run: &Run, outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Cancelled(_) => is_unsent(run.state),
        Outcome::Dropped(Disposition::Blocked, _) => run.origin.is_scheduled(),
        Outcome::Dropped(..) => true,
        _ => false,
    }
}

/// Effect of a run's end on its fire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FireEnd {
    /// Whether no run of the fire is left.
    pub over: bool,
    /// Whether the fire is over and every shard succeeded.
    pub succeeded: bool,
}

/// Closes runs that the caller has locked: writes the result to the log, adds undispatched and lost runs to the
/// history, and deletes the open rows. Returns the effect of each on its fire.
pub async fn close(
    s: &mut dyn Session,
    tables: &Tables,
    now: Timestamp,
    closings: &[Closing],
) -> Result<Vec<FireEnd>, SessionError> {
    if closings.is_empty() {
        return Ok(Vec::new());
    }
    let (gone, stays): (Vec<&Closing>, Vec<&Closing>) =
        closings.iter().partition(|closing| closing.leaves_no_row());
    let (stored, stays): (Vec<&Closing>, Vec<&Closing>) = stays.into_iter().partition(|c| c.stored);
    let logs: Vec<_> = stays.iter().map(|c| result_row(tables, now, &c.run, &c.outcome)).collect();
    if !logs.is_empty() {
        s.update(RESULT, logs).await?;
    }
    write_sent(s, &stored).await?;
    forget(s, &gone.iter().map(|closing| closing.run.id.0).collect::<Vec<_>>()).await?;
    let ids: Vec<i64> = closings.iter().map(|closing| closing.run.id.0).collect();
    s.delete("tw_run", "run_id", &ids).await?;
    let history = closings.iter().filter_map(|closing| ended_entry(now, closing)).collect();
    record(s, history).await?;
    let is_failed = |closing: &&Closing| {
        !matches!(closing.outcome, Outcome::Succeeded(_) | Outcome::Cancelled(_))
            && !is_withdrawn(&closing.run, &closing.outcome)
    };
    let failed = closings.iter().filter(is_failed);
    list_failed(s, &failed.map(|closing| closing.run.id.0).collect::<Vec<_>>()).await?;
    remember_lost(s, closings).await?;
    let ends = count_down(s, closings).await?;
    workflows::note_ends(s, now, closings, &ends).await?;
    backfills::note_ends(s, closings, &ends).await?;
    Ok(ends)
}

/// Completes the log rows of runs with a result that a Java admin stored: it does not know of their dispatch.
async fn write_sent(s: &mut dyn Session, stored: &[&Closing]) -> Result<(), SessionError> {
    if stored.is_empty() {
        return Ok(());
    }
    let row = |closing: &&Closing| -> Vec<Value> {
        vec![closing.run.id.0.into(), closing.run.address.as_deref().into(), codes::OK.into()]
    };
    let set = Columns { table: "xxl_job_log", keys: &["id"], columns: &["executor_address", "trigger_code"] };
    s.update(set, stored.iter().map(row).collect()).await?;
    Ok(())
}

/// Copies failed runs to a table of their own: they are few, and users look for them first.
pub async fn list_failed(s: &mut dyn Session, ids: &[i64]) -> Result<(), SessionError> {
    if ids.is_empty() {
        return Ok(());
    }
    let sql = "INSERT INTO tw_failed (id, job_group, job_id, trigger_time) \
               SELECT id, job_group, job_id, trigger_time FROM xxl_job_log WHERE id IN ?";
    s.execute(sql, &[Value::Ids(ids.to_vec())]).await.map(|_| ())
}

/// Deletes finished runs, with all their data.
pub async fn forget(s: &mut dyn Session, ids: &[i64]) -> Result<(), SessionError> {
    if ids.is_empty() {
        return Ok(());
    }
    for (table, key) in
        [("xxl_job_log", "id"), ("tw_run_log", "run_id"), ("tw_trace", "run_id"), ("tw_failed", "id")]
    {
        s.delete(table, key, ids).await?;
    }
    Ok(())
}

/// Stores the data of lost runs that a late result needs and no other row has.
async fn remember_lost(s: &mut dyn Session, closings: &[Closing]) -> Result<(), SessionError> {
    let is_lost = |closing: &&Closing| disposition_of(&closing.outcome) == Some(Disposition::Lost);
    let lost: Vec<&Closing> = closings.iter().filter(is_lost).collect();
    if lost.is_empty() {
        return Ok(());
    }
    let (into, row) = LostRow::INSERT;
    s.insert(into, lost.into_iter().map(|closing| row(&closing.run)).collect()).await
}

table! {
    /// Row of `tw_lost`: the data of a lost run that a late result needs.
    struct LostRow in "tw_lost" of run: &Run {
        kind: i64 = run.origin.to_numbers().0,
        cause: i64 = run.origin.to_numbers().1,
        depth: u32 = i64::from(run.depth),
    }
    not read { run_id = run.id }
}

/// Origin of a lost run, and its depth in a chain of children. `None` if a node of an older version gave it up.
pub async fn take_lost(s: &mut dyn Session, run: RunId) -> Result<Option<(Origin, u32)>, SessionError> {
    let sql = format!("SELECT {} FROM tw_lost WHERE run_id = ?", LostRow::LIST);
    let Some(row) = s.query(&sql, &[run.into()], Lock::None).await?.into_iter().next() else {
        return Ok(None);
    };
    s.delete("tw_lost", "run_id", &[run.0]).await?;
    let lost = LostRow::read(&mut row.read())?;
    Ok(Some((origin_of(run, lost.kind, lost.cause)?, lost.depth)))
}

/// Writes the results of [`result_row`] into log rows that have none yet.
const RESULT: Columns<'static> = Columns {
    table: "xxl_job_log",
    keys: &["id", "handle_code"],
    columns: &["executor_address", "trigger_code", "trigger_msg", "handle_time", "handle_code", "handle_msg"],
};

/// A row for [`RESULT`]: XXL-JOB's codes for an outcome.
fn result_row(tables: &Tables, now: Timestamp, run: &Run, outcome: &Outcome) -> Vec<Value> {
    let message = Value::Text(message_text(outcome.message()));
    let [trigger_code, trigger_msg, handle_time, handle_code, handle_msg] = match outcome {
        // Codes that XXL-JOB does not count as a failure. The end time distinguishes it from a run in progress.
        withdrawn if is_withdrawn(run, withdrawn) => {
            [codes::NONE.into(), message, tables.wall.time(now), codes::NONE.into(), Value::Null]
        }
        Outcome::Refused(_) | Outcome::Dropped(..) => {
            [codes::FAILED.into(), message, Value::Null, codes::NONE.into(), Value::Null]
        }
        handled => {
            [codes::OK.into(), Value::Null, tables.wall.time(now), handle_code(handled).into(), message]
        }
    };
    vec![
        run.id.0.into(),
        codes::NONE.into(),
        run.address.as_deref().into(),
        trigger_code,
        trigger_msg,
        handle_time,
        handle_code,
        handle_msg,
    ]
}

/// XXL-JOB's result code of a dispatched run.
pub fn handle_code(outcome: &Outcome) -> i64 {
    match outcome {
        Outcome::Succeeded(_) => codes::OK,
        Outcome::TimedOut(_) => codes::TIMED_OUT,
        Outcome::FailedWith(code, _) => (*code).into(),
        Outcome::Failed(_)
        | Outcome::Refused(_)
        | Outcome::Ambiguous(_)
        | Outcome::Lost(_)
        | Outcome::Dropped(..) => codes::FAILED,
        Outcome::Cancelled(_) => codes::CANCELLED,
    }
}

/// Truncates a message to the log's limit, and replaces NUL characters.
pub fn message_text(message: &str) -> String {
    let mut text: String = message.chars().take(MESSAGE_MAX).collect();
    if text.len() < message.len() {
        text.push_str("… (cut)");
    }
    if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text }
}

/// XXL-JOB's limit.
const MESSAGE_MAX: usize = 15_000;

/// An entry of the history.
pub struct Entry {
    pub job: JobId,
    pub unsent: Unsent,
    pub run: Option<RunId>,
    pub fire: Option<RunId>,
    pub at: Timestamp,
    pub superseded: i64,
}

/// A late result may replace the lost run's.
pub const LOST: i64 = 0;
/// A late result has replaced it.
pub const SUPERSEDED: i64 = 1;
/// A late result may replace it, but another attempt was made.
pub const RETRIED: i64 = 2;

fn ended_entry(now: Timestamp, closing: &Closing) -> Option<Entry> {
    let Closing { run, outcome, retried, .. } = closing;
    let unsent = Unsent {
        disposition: disposition_of(outcome)?,
        first: run.scheduled_at,
        last: run.scheduled_at,
        count: 1,
        reason: message_text(outcome.message()),
    };
    let superseded = if *retried { RETRIED } else { LOST };
    Some(Entry { job: run.job, unsent, run: Some(run.id), fire: Some(run.fire), at: now, superseded })
}

pub async fn record(s: &mut dyn Session, entries: Vec<Entry>) -> Result<(), SessionError> {
    if entries.is_empty() {
        return Ok(());
    }
    let (into, row) = HistoryRow::INSERT;
    s.insert(into, entries.iter().map(row).collect()).await
}

table! {
    /// Row of `tw_history`: fires that were not dispatched, or a lost run.
    struct HistoryRow in "tw_history" of entry: &Entry {
        job_id: JobId = entry.job,
        disposition: Disposition = entry.unsent.disposition,
        first_ms: Timestamp = entry.unsent.first,
        last_ms: Timestamp = entry.unsent.last,
        count: u64 = i64::try_from(entry.unsent.count).unwrap_or(i64::MAX),
        reason: String = entry.unsent.reason.as_str(),
        run_id: Option<RunId> = entry.run,
        fire_id: Option<RunId> = entry.fire,
        at_ms: Timestamp = entry.at,
        superseded: i64 = entry.superseded,
    }
    not inserted { id: i64 }
}

/// Reads the entries of the history that match `tail`.
pub async fn select_history(
    s: &mut dyn Session,
    tail: &str,
    params: &[Value],
    lock: Lock,
) -> Result<Vec<HistoryRow>, SessionError> {
    let rows = s.query(&format!("SELECT {} FROM tw_history {tail}", HistoryRow::LIST), params, lock).await?;
    rows.into_iter().map(|row| HistoryRow::read(&mut row.read())).collect()
}

impl From<HistoryRow> for HistoryEntry {
    fn from(row: HistoryRow) -> HistoryEntry {
        let unsent = Unsent {
            disposition: row.disposition,
            first: row.first_ms,
            last: row.last_ms,
            count: row.count,
            reason: row.reason,
        };
        HistoryEntry { id: row.id, job: row.job_id, unsent, run: row.run_id, at: row.at_ms }
    }
}

/// Subtracts ended shards from the counts of their fires. A fire with one shard has no count.
async fn count_down(s: &mut dyn Session, closings: &[Closing]) -> Result<Vec<FireEnd>, SessionError> {
    let in_shards = closings.iter().filter(|c| c.run.shard.total > 1 && !c.retried);
    let fires: Vec<i64> = in_shards.map(|closing| closing.run.fire.0).collect();
    let mut counts = lock_broadcasts(s, fires).await?;
    let ends = closings.iter().map(|closing| {
        let succeeded = matches!(closing.outcome, Outcome::Succeeded(_));
        match counts.get_mut(&closing.run.fire.0) {
            _ if closing.retried => FireEnd { over: false, succeeded: false },
            Some(count) if closing.run.shard.total > 1 => {
                count.open -= 1;
                // A Java admin has started the children of a shard with a stored result: the fire opens none.
                count.failed += i64::from(!succeeded || closing.stored);
                FireEnd { over: count.open == 0, succeeded: count.open == 0 && count.failed == 0 }
            }
            _ => FireEnd { over: true, succeeded },
        }
    });
    let ends = ends.collect();
    save_broadcasts(s, counts).await?;
    Ok(ends)
}

/// Number of open shards of a fire, and of those that failed for good.
pub struct Count {
    pub open: i64,
    pub failed: i64,
}

table! {
    /// Row of `tw_broadcast`: the counts of a fire with several shards.
    struct BroadcastRow in "tw_broadcast" of fire: (i64, &Count) {
        fire_id: i64 = fire.0,
        open: i64 = fire.1.open,
        failed: i64 = fire.1.failed,
    }
    update COUNTED by fire_id { open, failed }
}

pub async fn lock_broadcasts(
    s: &mut dyn Session,
    mut fires: Vec<i64>,
) -> Result<BTreeMap<i64, Count>, SessionError> {
    fires.sort_unstable();
    fires.dedup();
    if fires.is_empty() {
        return Ok(BTreeMap::new());
    }
    let sql = format!("SELECT {} FROM tw_broadcast WHERE fire_id IN ? ORDER BY fire_id", BroadcastRow::LIST);
    let rows = s.query(&sql, &[Value::Ids(fires)], Lock::Wait).await?;
    let count = |row: Row| -> Result<(i64, Count), SessionError> {
        let BroadcastRow { fire_id, open, failed } = BroadcastRow::read(&mut row.read())?;
        Ok((fire_id, Count { open, failed }))
    };
    rows.into_iter().map(count).collect()
}

pub async fn save_broadcasts(s: &mut dyn Session, counts: BTreeMap<i64, Count>) -> Result<(), SessionError> {
    if counts.is_empty() {
        return Ok(());
    }
    let (set, row) = BroadcastRow::COUNTED;
    s.update(set, counts.iter().map(|(fire, count)| row((*fire, count))).collect()).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_in_sql_agree_with_the_engine() {
        let origins =
            [Origin::Schedule, Origin::Misfire, Origin::Manual { key: 1 }, Origin::Child { of: RunId(1) }];
        let step = Origin::Step { of: RunId(1), step: 0 };
        let backfill = Origin::Backfill { of: engine::BackfillId(1) };
        let origins = origins.into_iter().chain([step, Origin::Resume { of: RunId(1) }, backfill]);
        let scheduled = origins.filter(|origin| origin.is_scheduled());
        let kinds: Vec<String> = scheduled.map(|origin| origin.to_numbers().0.to_string()).collect();
        assert_eq!(IS_SCHEDULED.to_string(), format!("kind IN ({})", kinds.join(", ")));
        assert!(IS_CANCELLED.to_string().contains(&format!("l.handle_code = {} ", codes::CANCELLED)));
    }
}
