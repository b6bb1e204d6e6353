//! Backfills. A backfill is a row of `tw_backfill`, a row of `tw_backfill_time` per scheduled time, and a queue of events.
//!
//! The end of a run is first an event, stored without a lock in the transaction that closes the run, whichever that is.
//! [`advance`](advance::advance) applies the events of a backfill and opens its next runs, under the lock of its row. So
//! each place is given once, and no transaction waits for a backfill while it holds anything else.

pub mod advance;
mod existing;
mod rows;

use engine::{
    Backfill, BackfillChange, BackfillId, BackfillState, INSTANTS_MAX, InstantCounts, InstantState, JobId,
    NewBackfill, Origin, PARALLEL_MAX, Run, RunId, StoreError, state_after,
};
use timer::Timestamp;

use crate::database::Tables;
use crate::jobs;
use crate::runs::{Closing, FireEnd};
use crate::schema::check_text;
use crate::session::{Lock, Session, SessionError, Value};

pub use existing::earlier_runs;
use rows::AT_ONCE;
pub use rows::{BackfillTime, Event, RunEnd, select, select_times};

// ── Starting ────────────────────────────────────────────────────────────────────────────────────────────────────

pub async fn start(
    s: &mut dyn Session,
    tables: &Tables,
    job: JobId,
    new: &NewBackfill,
) -> Result<BackfillId, SessionError> {
    check(tables, new)?;
    let tail = "WHERE job_id = ? AND request_key = ?";
    if let Some(known) = rows::select(s, tail, &[job.into(), new.key.into()], Lock::None).await?.pop() {
        return Ok(known.id);
    }
    jobs::load_one(s, tables, job).await?.ok_or(StoreError::NoSuchJob(job))?;
    let now = s.now().await?;
    let total = u32::try_from(new.times.len()).unwrap_or(u32::MAX);
    let backfill = Backfill {
        id: BackfillId(0),
        job,
        settings: new.settings.clone(),
        state: BackfillState::Running,
        counts: InstantCounts { total, ..InstantCounts::default() },
        begun_at: now,
        ended_at: None,
    };
    let id = rows::insert(s, &backfill, new.key).await?;
    let times: Vec<BackfillTime> = new.times.iter().map(|at| BackfillTime::pending(id, *at)).collect();
    rows::insert_times(s, &times).await?;
    rows::insert_events(s, &[Event::look(id)]).await?;
    Ok(id)
}

fn check(tables: &Tables, new: &NewBackfill) -> Result<(), SessionError> {
    let count = new.times.len();
    if count == 0 || count > INSTANTS_MAX {
        let why = format!("a backfill has from 1 to {INSTANTS_MAX} scheduled times, not {count}");
        return Err(StoreError::Invalid(why).into());
    }
    let parallel = new.settings.parallel;
    if parallel == 0 || parallel > PARALLEL_MAX {
        let why = format!("a backfill has from 1 to {PARALLEL_MAX} runs at once, not {parallel}");
        return Err(StoreError::Invalid(why).into());
    }
    let param = new.settings.param.as_deref().unwrap_or_default();
    check_text(param)?;
    Ok(tables.schema.check_fits("xxl_job_log", "executor_param", param)?)
}

// ── Changing ────────────────────────────────────────────────────────────────────────────────────────────────────

pub async fn change(
    s: &mut dyn Session,
    id: BackfillId,
    change: BackfillChange,
) -> Result<Backfill, SessionError> {
    let found = rows::select(s, "WHERE id = ?", &[id.into()], Lock::Wait).await?.pop();
    let missing = || StoreError::Invalid(format!("backfill {id} does not exist"));
    let mut backfill = found.ok_or_else(missing)?;
    let now = s.now().await?;
    backfill.change(change, now).map_err(StoreError::Conflict)?;
    match change {
        BackfillChange::Pause | BackfillChange::Continue => {}
        BackfillChange::Cancel => cancel_pending(s, id, now).await?,
        BackfillChange::Retry => reopen(s, id).await?,
    }
    rows::save(s, std::slice::from_ref(&backfill)).await?;
    rows::insert_events(s, &[Event::look(id)]).await?;
    Ok(backfill)
}

/// Cancels the scheduled times whose runs are not opened.
async fn cancel_pending(s: &mut dyn Session, id: BackfillId, now: Timestamp) -> Result<(), SessionError> {
    let sql = "UPDATE tw_backfill_time SET state = ?, ended_ms = ? WHERE backfill_id = ? AND state = ?";
    let params = [InstantState::Cancelled.into(), now.into(), id.into(), InstantState::Pending.into()];
    s.execute(sql, &params).await.map(|_| ())
}

/// Lets failed and cancelled scheduled times run again.
async fn reopen(s: &mut dyn Session, id: BackfillId) -> Result<(), SessionError> {
    let sql = "UPDATE tw_backfill_time SET state = ?, ended_ms = NULL, message = NULL \
               WHERE backfill_id = ? AND state IN (?, ?)";
    let [pending, failed, cancelled] =
        [InstantState::Pending, InstantState::Failed, InstantState::Cancelled].map(Value::from);
    s.execute(sql, &[pending, id.into(), failed, cancelled]).await.map(|_| ())
}

/// Open runs of a backfill, which is one of this job.
pub async fn open_runs(s: &mut dyn Session, id: BackfillId) -> Result<Vec<RunId>, SessionError> {
    let Some(backfill) = rows::select(s, "WHERE id = ?", &[id.into()], Lock::None).await?.pop() else {
        return Ok(Vec::new());
    };
    let (kind, cause) = Origin::Backfill { of: id }.to_numbers();
    let sql = "SELECT run_id FROM tw_run WHERE job_id = ? AND kind = ? AND cause = ? ORDER BY run_id";
    let rows = s.query(sql, &[backfill.job.into(), kind.into(), cause.into()], Lock::None).await?;
    rows.into_iter().map(|row| row.read().int().map(RunId)).collect()
}

// ── Ends of runs ────────────────────────────────────────────────────────────────────────────────────────────────

/// Stores the ends of scheduled times whose runs are closed. One with another attempt, or another shard, has not ended.
pub async fn note_ends(
    s: &mut dyn Session,
    closings: &[Closing],
    ends: &[FireEnd],
) -> Result<(), SessionError> {
    let ended = closings.iter().zip(ends).filter(|(_, end)| end.over);
    let events: Vec<Event> =
        ended.filter_map(|(closing, end)| end_of(&closing.run, &closing.outcome, *end)).collect();
    rows::insert_events(s, &events).await
}

/// Stores the end of a scheduled time whose run was given up and has succeeded after all.
pub async fn note_late_end(
    s: &mut dyn Session,
    run: &Run,
    outcome: &engine::Outcome,
    end: FireEnd,
) -> Result<(), SessionError> {
    let event = end_of(run, outcome, end).filter(|_| end.over);
    rows::insert_events(s, event.as_slice()).await
}

fn end_of(run: &Run, outcome: &engine::Outcome, end: FireEnd) -> Option<Event> {
    let Origin::Backfill { of } = run.origin else { return None };
    let (state, message) = match state_after(outcome) {
        InstantState::Succeeded if !end.succeeded => {
            (InstantState::Failed, Some("another shard of the run has failed".to_owned()))
        }
        InstantState::Succeeded => (InstantState::Succeeded, None),
        ended => (ended, Some(short(outcome.message()))),
    };
    let end = RunEnd { scheduled_at: run.scheduled_at, fire: run.fire, run: run.id, state, message };
    Some(Event { backfill: of, due_at: AT_ONCE, end: Some(end) })
}

/// The beginning of a message; the log of the run has all of it.
fn short(message: &str) -> String {
    let mut text: String = message.chars().take(MESSAGE_MAX).collect();
    if text.len() < message.len() {
        text.push('…');
    }
    text.replace('\0', "\u{fffd}")
}

/// Enough to see what went wrong: a page shows many of them.
const MESSAGE_MAX: usize = 300;

/// Deletes the oldest backfill that ended before this time. One at a time, because it may have thousands of rows.
pub async fn prune(s: &mut dyn Session, before: Timestamp) -> Result<usize, SessionError> {
    let tail = "WHERE ended_ms < ? ORDER BY ended_ms LIMIT 1";
    let Some(old) = rows::select(s, tail, &[before.into()], Lock::None).await?.pop() else {
        return Ok(0);
    };
    for (table, key) in
        [("tw_backfill", "id"), ("tw_backfill_time", "backfill_id"), ("tw_backfill_event", "backfill_id")]
    {
        s.delete(table, key, &[old.id.0]).await?;
    }
    Ok(1)
}
