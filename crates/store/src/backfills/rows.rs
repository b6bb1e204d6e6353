//! Rows of backfills, their scheduled times and their events.

use engine::policy::Word;
use engine::{
    Backfill, BackfillId, BackfillOrder, BackfillSettings, BackfillState, Existing, InstantCounts,
    InstantState, JobId, OnFailure, RunId, TimeRange,
};
use timer::Timestamp;

use crate::session::{Lock, Session, SessionError, Value};
use crate::table::{Cell, table};

/// A scheduled time of a backfill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackfillTime {
    /// Id of the backfill.
    pub backfill: BackfillId,
    /// The scheduled time.
    pub scheduled_at: Timestamp,
    /// Its state.
    pub state: InstantState,
    /// First run that was opened for it.
    pub fire: Option<RunId>,
    /// Run that ended it.
    pub run: Option<RunId>,
    /// Time when it ended.
    pub ended_at: Option<Timestamp>,
    /// Reason of a failure, or why it was left out.
    pub message: Option<String>,
}

impl BackfillTime {
    /// One whose run is not opened yet.
    pub fn pending(backfill: BackfillId, scheduled_at: Timestamp) -> BackfillTime {
        let (fire, run, ended_at, message) = (None, None, None, None);
        BackfillTime { backfill, scheduled_at, state: InstantState::Pending, fire, run, ended_at, message }
    }
}

/// Something that happened to a backfill.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Id of the backfill.
    pub backfill: BackfillId,
    /// Time from which it may be applied.
    pub due_at: Timestamp,
    /// End of a run; without one, the backfill is to look whether it can open runs.
    pub end: Option<RunEnd>,
}

impl Event {
    /// Lets the backfill look whether it can open runs.
    pub fn look(backfill: BackfillId) -> Event {
        Event { backfill, due_at: AT_ONCE, end: None }
    }
}

/// Due time of events that may be applied at once. Nodes are a little behind the clock of the database.
pub const AT_ONCE: Timestamp = Timestamp::from_millis(0);

/// End of all runs of a scheduled time.
#[derive(Clone, Debug, PartialEq)]
pub struct RunEnd {
    /// The scheduled time.
    pub scheduled_at: Timestamp,
    /// First run that was opened for it.
    pub fire: RunId,
    /// Run that ended last.
    pub run: RunId,
    /// State of the scheduled time.
    pub state: InstantState,
    /// Reason of a failure.
    pub message: Option<String>,
}

table! {
    /// Row of `tw_backfill`.
    struct BackfillRow in "tw_backfill" of new: (&Backfill, i64) {
        job_id: JobId = new.0.job,
        from_ms: Timestamp = new.0.settings.range.from,
        until_ms: Timestamp = new.0.settings.range.until,
        fill_order: BackfillOrder = new.0.settings.order,
        at_once: u32 = i64::from(new.0.settings.parallel),
        existing: Existing = new.0.settings.existing,
        on_failure: OnFailure = new.0.settings.on_failure,
        param: Option<String> = new.0.settings.param.as_deref(),
        author: String = new.0.settings.by.as_str(),
        state: BackfillState = new.0.state,
        total: u32 = i64::from(new.0.counts.total),
        open: u32 = i64::from(new.0.counts.open),
        succeeded: u32 = i64::from(new.0.counts.succeeded),
        failed: u32 = i64::from(new.0.counts.failed),
        skipped: u32 = i64::from(new.0.counts.skipped),
        cancelled: u32 = i64::from(new.0.counts.cancelled),
        begun_ms: Timestamp = new.0.begun_at,
        ended_ms: Option<Timestamp> = new.0.ended_at,
    }
    not inserted { id: BackfillId = new.0.id }
    not read { request_key = new.1 }
    update PROGRESS by id { state, open, succeeded, failed, skipped, cancelled, ended_ms }
}

impl From<BackfillRow> for Backfill {
    fn from(row: BackfillRow) -> Backfill {
        Backfill {
            id: row.id,
            job: row.job_id,
            settings: BackfillSettings {
                range: TimeRange { from: row.from_ms, until: row.until_ms },
                order: row.fill_order,
                parallel: row.at_once,
                existing: row.existing,
                on_failure: row.on_failure,
                param: row.param,
                by: row.author,
            },
            state: row.state,
            counts: InstantCounts {
                total: row.total,
                open: row.open,
                succeeded: row.succeeded,
                failed: row.failed,
                skipped: row.skipped,
                cancelled: row.cancelled,
            },
            begun_at: row.begun_ms,
            ended_at: row.ended_ms,
        }
    }
}

/// Reads the backfills that match `tail`.
pub async fn select(
    s: &mut dyn Session,
    tail: &str,
    params: &[Value],
    lock: Lock,
) -> Result<Vec<Backfill>, SessionError> {
    let sql = format!("SELECT {} FROM tw_backfill {tail}", BackfillRow::LIST);
    let rows = s.query(&sql, params, lock).await?;
    rows.into_iter().map(|row| Ok(BackfillRow::read(&mut row.read())?.into())).collect()
}

/// Inserts a backfill with the key of its request; returns its id.
pub async fn insert(s: &mut dyn Session, backfill: &Backfill, key: i64) -> Result<BackfillId, SessionError> {
    let (into, row) = BackfillRow::INSERT;
    let ids = s.insert_numbered(into, vec![row((backfill, key))]).await?;
    Ok(BackfillId(ids[0]))
}

pub async fn save(s: &mut dyn Session, backfills: &[Backfill]) -> Result<(), SessionError> {
    if backfills.is_empty() {
        return Ok(());
    }
    let (set, row) = BackfillRow::PROGRESS;
    s.update(set, backfills.iter().map(|backfill| row((backfill, 0))).collect()).await
}

table! {
    /// Row of `tw_backfill_time`.
    struct TimeRow in "tw_backfill_time" of time: &BackfillTime {
        backfill_id: BackfillId = time.backfill,
        scheduled_ms: Timestamp = time.scheduled_at,
        state: InstantState = time.state,
        fire_id: Option<RunId> = time.fire,
        run_id: Option<RunId> = time.run,
        ended_ms: Option<Timestamp> = time.ended_at,
        message: Option<String> = time.message.as_deref(),
    }
    update CHANGE by backfill_id, scheduled_ms { state, fire_id, run_id, ended_ms, message }
}

impl From<TimeRow> for BackfillTime {
    fn from(row: TimeRow) -> BackfillTime {
        BackfillTime {
            backfill: row.backfill_id,
            scheduled_at: row.scheduled_ms,
            state: row.state,
            fire: row.fire_id,
            run: row.run_id,
            ended_at: row.ended_ms,
            message: row.message,
        }
    }
}

/// Reads the scheduled times that match `tail`.
pub async fn select_times(
    s: &mut dyn Session,
    tail: &str,
    params: &[Value],
) -> Result<Vec<BackfillTime>, SessionError> {
    let sql = format!("SELECT {} FROM tw_backfill_time {tail}", TimeRow::LIST);
    let rows = s.query(&sql, params, Lock::None).await?;
    rows.into_iter().map(|row| Ok(TimeRow::read(&mut row.read())?.into())).collect()
}

pub async fn insert_times(s: &mut dyn Session, times: &[BackfillTime]) -> Result<(), SessionError> {
    let (into, row) = TimeRow::INSERT;
    s.insert(into, times.iter().map(row).collect()).await
}

pub async fn save_times(s: &mut dyn Session, times: &[BackfillTime]) -> Result<(), SessionError> {
    if times.is_empty() {
        return Ok(());
    }
    let (set, row) = TimeRow::CHANGE;
    s.update(set, times.iter().map(row).collect()).await
}

table! {
    /// Row of `tw_backfill_event`.
    struct EventRow in "tw_backfill_event" of event: &Event {
        backfill_id: BackfillId = event.backfill,
        due_ms: Timestamp = event.due_at,
        scheduled_ms: Option<Timestamp> = event.end.as_ref().map(|end| end.scheduled_at),
        fire_id: Option<RunId> = event.end.as_ref().map(|end| end.fire),
        run_id: Option<RunId> = event.end.as_ref().map(|end| end.run),
        state: Option<InstantState> = event.end.as_ref().map(|end| end.state),
        message: Option<String> = event.end.as_ref().and_then(|end| end.message.as_deref()),
    }
    not inserted { id: i64 }
}

impl EventRow {
    fn end(self) -> Option<RunEnd> {
        Some(RunEnd {
            scheduled_at: self.scheduled_ms?,
            fire: self.fire_id?,
            run: self.run_id?,
            state: self.state?,
            message: self.message,
        })
    }
}

/// Reads the events that match `tail`, each with its id.
pub async fn select_events(
    s: &mut dyn Session,
    tail: &str,
    params: &[Value],
) -> Result<Vec<(i64, Event)>, SessionError> {
    let sql = format!("SELECT {} FROM tw_backfill_event {tail}", EventRow::LIST);
    let rows = s.query(&sql, params, Lock::None).await?;
    let read = |row: crate::session::Row| -> Result<_, SessionError> {
        let row = EventRow::read(&mut row.read())?;
        let (id, backfill, due_at) = (row.id, row.backfill_id, row.due_ms);
        Ok((id, Event { backfill, due_at, end: row.end() }))
    };
    rows.into_iter().map(read).collect()
}

pub async fn insert_events(s: &mut dyn Session, events: &[Event]) -> Result<(), SessionError> {
    if events.is_empty() {
        return Ok(());
    }
    let (into, row) = EventRow::INSERT;
    s.insert(into, events.iter().map(row).collect()).await
}

// ── Types of columns ────────────────────────────────────────────────────────────────────────────────────────────

impl Cell for BackfillId {
    const WANTED: &'static str = "the id of a backfill";

    fn of(value: Value) -> Result<Self, Value> {
        i64::of(value).map(BackfillId)
    }
}

impl From<BackfillId> for Value {
    fn from(backfill: BackfillId) -> Self {
        Value::Int(backfill.0)
    }
}

/// Types that are stored as their word.
macro_rules! worded {
    ($($Type:ty),*) => {$(
        impl Cell for $Type {
            const WANTED: &'static str = <$Type as Word>::NOUN;

            fn of(value: Value) -> Result<Self, Value> {
                let text = String::of(value)?;
                <$Type as Word>::from_stored(&text).ok_or(Value::Text(text))
            }
        }

        impl From<$Type> for Value {
            fn from(value: $Type) -> Self {
                Value::Text(value.stored().to_owned())
            }
        }
    )*};
}

worded! { BackfillOrder, BackfillState, Existing, InstantState, OnFailure }
