//! Applies events to backfills: scheduled times end, and the next ones get runs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use engine::{
    Backfill, BackfillChange, BackfillId, BackfillOrder, BackfillState, Filled, InstantState, Job, Origin,
    Run, Turn, turn,
};
use timer::Timestamp;

use super::existing::earlier_runs;
use super::rows::{self, BackfillTime, Event, RunEnd};
use super::{cancel_pending, short};
use crate::database::Tables;
use crate::jobs;
use crate::runs::{self, Opening};
use crate::session::{Lock, Session, SessionError, Value};

pub async fn advance(
    s: &mut dyn Session,
    tables: &Tables,
    now: Timestamp,
    max: usize,
) -> Result<Filled, SessionError> {
    let tail = "WHERE due_ms <= ? ORDER BY due_ms, id LIMIT ?";
    let due = rows::select_events(s, tail, &[now.into(), EVENTS_MAX.into()]).await?;
    let mut ids: BTreeSet<i64> = BTreeSet::new();
    for (_, event) in &due {
        if ids.len() < max {
            ids.insert(event.backfill.0);
        }
    }
    if ids.is_empty() {
        return Ok(Filled::default());
    }
    let more =
        due.len() as i64 == EVENTS_MAX || due.iter().any(|(_, event)| !ids.contains(&event.backfill.0));
    let ids: Vec<i64> = ids.into_iter().collect();
    // One that another node works on is left to it.
    let found = rows::select(s, "WHERE id IN ? ORDER BY id", &[Value::Ids(ids.clone())], Lock::Skip).await?;
    let known: BTreeSet<BackfillId> = found.iter().map(|backfill| backfill.id).collect();
    let mut applied = events_of_deleted(s, &ids, &known, &due).await?;
    let mut filled = Filled { more, ..Filled::default() };
    for mut backfill in found {
        // Read again under the lock: another node may have applied some meanwhile.
        let tail = "WHERE backfill_id = ? AND due_ms <= ? ORDER BY id LIMIT ?";
        let params = [backfill.id.into(), now.into(), EVENTS_MAX.into()];
        let (events, ends): (Vec<i64>, Vec<Option<RunEnd>>) = rows::select_events(s, tail, &params)
            .await?
            .into_iter()
            .map(|(id, event)| (id, event.end))
            .unzip();
        if events.is_empty() {
            continue;
        }
        applied.extend(events);
        apply(s, tables, now, &mut backfill, ends.into_iter().flatten().collect()).await?;
        filled.opened += open_next(s, tables, now, &mut backfill, &mut filled.more).await?;
        backfill.conclude(now);
        rows::save(s, &[backfill]).await?;
    }
    if !applied.is_empty() {
        s.delete("tw_backfill_event", "id", &applied).await?;
    }
    Ok(filled)
}

/// Maximum number of events that are read at a time.
const EVENTS_MAX: i64 = 1_000;

/// Events of backfills that do not exist any more.
async fn events_of_deleted(
    s: &mut dyn Session,
    ids: &[i64],
    known: &BTreeSet<BackfillId>,
    due: &[(i64, Event)],
) -> Result<Vec<i64>, SessionError> {
    let unknown: Vec<i64> = ids.iter().copied().filter(|id| !known.contains(&BackfillId(*id))).collect();
    if unknown.is_empty() {
        return Ok(Vec::new());
    }
    // Those that exist were skipped, because another node works on them.
    let existing = rows::select(s, "WHERE id IN ?", &[Value::Ids(unknown.clone())], Lock::None).await?;
    let existing: BTreeSet<i64> = existing.into_iter().map(|backfill| backfill.id.0).collect();
    let is_gone = |id: i64| unknown.contains(&id) && !existing.contains(&id);
    Ok(due.iter().filter(|(_, event)| is_gone(event.backfill.0)).map(|(id, _)| *id).collect())
}

/// Ends the scheduled times of runs that have ended.
async fn apply(
    s: &mut dyn Session,
    tables: &Tables,
    now: Timestamp,
    backfill: &mut Backfill,
    ends: Vec<RunEnd>,
) -> Result<(), SessionError> {
    if ends.is_empty() {
        return Ok(());
    }
    let tail = "WHERE backfill_id = ? AND scheduled_ms IN ?";
    let at = Value::Ids(ends.iter().map(|end| end.scheduled_at.as_millis()).collect());
    let times = rows::select_times(s, tail, &[backfill.id.into(), at]).await?;
    let mut times: BTreeMap<Timestamp, BackfillTime> =
        times.into_iter().map(|time| (time.scheduled_at, time)).collect();
    for end in ends {
        let Some(time) = times.get_mut(&end.scheduled_at) else { continue };
        let next = Backfill::after_end(time.state, end.state).filter(|_| time.fire == Some(end.fire));
        let Some(next) = next else { continue };
        let before = if tables.frees_places_once { time.state } else { InstantState::Open };
        backfill.end(before, next);
        (time.state, time.run, time.message) = (next, Some(end.run), end.message);
        time.ended_at = Some(now);
    }
    rows::save_times(s, &times.into_values().collect::<Vec<_>>()).await
}

/// Opens as many runs as the backfill has room for; returns their number.
async fn open_next(
    s: &mut dyn Session,
    tables: &Tables,
    now: Timestamp,
    backfill: &mut Backfill,
    more: &mut bool,
) -> Result<usize, SessionError> {
    if backfill.state != BackfillState::Running {
        return Ok(0);
    }
    let Some(stored) = jobs::load_one(s, tables, backfill.job).await? else {
        // Its job was deleted.
        if backfill.change(BackfillChange::Cancel, now).is_ok() {
            cancel_pending(s, backfill.id, now).await?;
        }
        return Ok(0);
    };
    let room = backfill.room(stored.job.spec.overlap.is_exclusive());
    if room == 0 {
        return Ok(0);
    }
    let candidates = pending(s, backfill, i64::from(room) + LOOK_AHEAD).await?;
    let at: Vec<Timestamp> = candidates.iter().map(|time| time.scheduled_at).collect();
    let mut earlier = earlier_runs(s, tables, backfill.job, &at).await?;

    let (mut opening, mut left_out, mut waits) = (Vec::new(), Vec::new(), false);
    for mut time in candidates {
        if opening.len() as u32 == room {
            break;
        }
        let runs = earlier.remove(&time.scheduled_at).unwrap_or_default();
        match turn(backfill.settings.existing, &runs) {
            Turn::Run => opening.push(time),
            Turn::Wait(_) => waits = true,
            Turn::LeaveOut(run) => {
                backfill.counts.moved(time.state, InstantState::Skipped);
                (time.state, time.ended_at) = (InstantState::Skipped, Some(now));
                time.message = Some(short(&format!("run {run} succeeded")));
                time.run = Some(run);
                left_out.push(time);
            }
        }
    }
    rows::save_times(s, &left_out).await?;
    let opened = open_runs(s, tables, now, backfill, &stored.job, opening).await?;
    let has_moved = opened > 0 || !left_out.is_empty();
    if backfill.room(stored.job.spec.overlap.is_exclusive()) > 0 && (has_moved || waits) {
        // There may be others to open; or the runs that it waits for have ended by then.
        let look = Event::look(backfill.id);
        let look = if has_moved { look } else { Event { due_at: now + LOOK_AGAIN, ..look } };
        rows::insert_events(s, &[look]).await?;
        *more |= has_moved;
    }
    Ok(opened)
}

/// Scheduled times beyond the room that are looked at, because some may be left out.
const LOOK_AHEAD: i64 = 100;

/// Time after which a backfill looks again at runs of others that it waits for.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// The next scheduled times in the order of the backfill.
async fn pending(
    s: &mut dyn Session,
    backfill: &Backfill,
    max: i64,
) -> Result<Vec<BackfillTime>, SessionError> {
    let direction = match backfill.settings.order {
        BackfillOrder::Oldest => "ASC",
        BackfillOrder::Newest => "DESC",
    };
    let tail = format!("WHERE backfill_id = ? AND state = ? ORDER BY scheduled_ms {direction} LIMIT ?");
    rows::select_times(s, &tail, &[backfill.id.into(), InstantState::Pending.into(), max.into()]).await
}

async fn open_runs(
    s: &mut dyn Session,
    tables: &Tables,
    now: Timestamp,
    backfill: &mut Backfill,
    job: &Job,
    mut times: Vec<BackfillTime>,
) -> Result<usize, SessionError> {
    let run = |time: &BackfillTime| Run {
        param: backfill.settings.param.clone(),
        ..runs::waiting(job.id, Origin::Backfill { of: backfill.id }, time.scheduled_at, now)
    };
    let openings = times.iter().map(|time| Opening { run: run(time), job }).collect();
    let opened = runs::open(s, tables, openings).await?;
    for (time, run) in times.iter_mut().zip(&opened) {
        backfill.counts.moved(time.state, InstantState::Open);
        (time.state, time.fire, time.run) = (InstantState::Open, Some(run.id), Some(run.id));
    }
    rows::save_times(s, &times).await?;
    Ok(opened.len())
}
