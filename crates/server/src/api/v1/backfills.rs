//! `/v1/backfills`: runs of a job for scheduled times of the past.

use std::collections::BTreeMap;

use cron::{Day, Zone};
use engine::{
    Backfill, BackfillChange, BackfillId, BackfillSettings, Job, JobId, NewBackfill, PARALLEL_MAX, TimeRange,
    TimesError, Turn, times_of, turn,
};
use protocol::v1::{
    BackfillBody, BackfillOrder, BackfillPlan, BackfillStarted, BackfillTime, BackfillView, CancelBackfill,
    Event, Instant, Page, PlannedAction, PlannedTime,
};
use store::{BackfillFilter, JobName};
use timer::Timestamp;

use super::authorise::{Authorised, JobBackfill, Seen, job_name};
use super::call::{self, Call, instant};
use super::jobs::request_key;
use super::reply::Reply;
use super::runs::{seen_job, seen_names};
use crate::jobs::check_param;
use crate::request_error::RequestError;

// ── Starting ────────────────────────────────────────────────────────────────────────────────────────────────────

pub async fn start(call: Call, job: Authorised<Job>) -> Result<Reply, RequestError> {
    let body: BackfillBody = call.json()?;
    let (ranges, zone) = (ranges(&call, &job, &body)?, zone_of(&call, &job));
    let parallel = body.parallel.unwrap_or(1);
    if !(1..=PARALLEL_MAX).contains(&parallel) {
        return Err(RequestError::field("parallel", format!("must be from 1 to {PARALLEL_MAX}")));
    }
    check_param(body.param.as_deref().unwrap_or_default())?;
    let schedule = job.spec.planned().into_owned();
    let within = ranges.clone();
    // Counting the fires of a long range takes a fraction of a second.
    let times = tokio::task::spawn_blocking(move || times_of(&schedule, &zone, &within));
    let times =
        times.await.expect("a schedule is counted without a panic").map_err(|error: TimesError| {
            RequestError::field(if body.dates.is_empty() { "to" } else { "dates" }, error.to_string())
        })?;
    if body.dry_run {
        let plan = Some(plan(&call, job.id, &body, times).await?);
        let asked = serde_json::json!({ "dry_run": true });
        return Ok(Reply::json(&BackfillStarted { backfill: None, plan }).changed(None, Some(asked)));
    }
    call.state.engine.check_room(job.spec.app).await?;
    let range = TimeRange {
        from: ranges.iter().map(|range| range.from).min().unwrap_or(times[0]),
        until: ranges.iter().map(|range| range.until).max().unwrap_or(times[0]),
    };
    let settings = BackfillSettings {
        range,
        order: body.order,
        parallel,
        existing: body.existing,
        on_failure: body.on_failure,
        param: body.param.clone(),
        by: call.who.principal.name.clone(),
    };
    let new = NewBackfill { key: request_key(&call, ""), settings, times };
    let id = call.state.engine.start_backfill(job.id, &new).await?;
    let backfill = found(&call, id).await?;
    call.state.hints.announce(Event::Runs);
    let after = serde_json::json!({ "backfill": backfill.id, "request": body });
    let reply = Reply::json(&BackfillStarted { backfill: Some(backfill), plan: None });
    Ok(reply.about(job_name(job.id)).changed(None, Some(after)))
}

/// Zone in which dates of a job are counted.
fn zone_of(call: &Call, job: &Job) -> Zone {
    job.spec.schedule.zone().unwrap_or(&call.state.zone).clone()
}

/// Ranges that the request names, none of which reaches into the future.
fn ranges(call: &Call, job: &Job, body: &BackfillBody) -> Result<Vec<TimeRange>, RequestError> {
    let (zone, now) = (zone_of(call, job), call.state.engine.now());
    let after_now = Timestamp::from_millis(now.as_millis() + 1);
    if !body.dates.is_empty() {
        if body.from.is_some() || body.to.is_some() {
            return Err(RequestError::field("dates", "cannot be combined with `from` and `to`"));
        }
        if body.dates.len() > DATES_MAX {
            return Err(RequestError::field("dates", format!("must be at most {DATES_MAX}")));
        }
        let range = |text: &String| {
            let day: Day = text.parse().map_err(|_| RequestError::field("dates", not_a_date(text)))?;
            let range =
                TimeRange { from: zone.start_of(day), until: zone.start_of(day.next()).min(after_now) };
            if range.from > now { Err(in_the_future("dates", text)) } else { Ok(range) }
        };
        return body.dates.iter().map(range).collect();
    }
    let Some(first) = &body.from else {
        return Err(RequestError::field("from", "is required, unless `dates` are given"));
    };
    let from = match point("from", first)? {
        Point::Day(day) => zone.start_of(day),
        Point::Time(at) => at,
    };
    if from > now {
        return Err(in_the_future("from", first));
    }
    let until = match body.to.as_deref().map(|text| point("to", text).map(|end| (text, end))).transpose()? {
        None => after_now,
        Some((text, Point::Day(day))) if zone.start_of(day) > now => return Err(in_the_future("to", text)),
        Some((text, Point::Time(at))) if at > now => return Err(in_the_future("to", text)),
        Some((_, Point::Day(day))) => zone.start_of(day.next()).min(after_now),
        Some((_, Point::Time(at))) => Timestamp::from_millis(at.as_millis() + 1),
    };
    if until <= from {
        return Err(RequestError::field("to", "must not be before `from`"));
    }
    Ok(vec![TimeRange { from, until }])
}

/// Maximum number of dates in a request.
const DATES_MAX: usize = 1_000;

/// One end of a range.
enum Point {
    Day(Day),
    Time(Timestamp),
}

fn point(field: &'static str, text: &str) -> Result<Point, RequestError> {
    if let Ok(day) = text.parse() {
        return Ok(Point::Day(day));
    }
    let time: Instant = text.parse().map_err(|_| RequestError::field(field, not_a_date(text)))?;
    Ok(Point::Time(Timestamp::from_millis(time.millis())))
}

fn not_a_date(text: &str) -> String {
    let shown: String = text.chars().take(40).collect();
    format!("`{shown}` is neither a date nor a time; use for example `2026-06-21` or `2026-06-21T08:00:00Z`")
}

fn in_the_future(field: &'static str, text: &str) -> RequestError {
    RequestError::field(
        field,
        format!("`{text}` is in the future; a backfill runs scheduled times of the past"),
    )
}

/// What would happen to each scheduled time now.
async fn plan(
    call: &Call,
    job: JobId,
    body: &BackfillBody,
    mut times: Vec<Timestamp>,
) -> Result<BackfillPlan, RequestError> {
    if body.order == BackfillOrder::Newest {
        times.reverse();
    }
    let (mut planned, mut counts) = (Vec::with_capacity(times.len()), [0, 0, 0]);
    for some in times.chunks(PLANNED_AT_ONCE) {
        let mut earlier = call.state.database.earlier_runs(job, some).await?;
        for at in some {
            let runs = earlier.remove(at).unwrap_or_default();
            let (action, run) = match turn(body.existing, &runs) {
                Turn::Run => (PlannedAction::Run, None),
                Turn::LeaveOut(run) => (PlannedAction::Skip, Some(run)),
                Turn::Wait(run) => (PlannedAction::Wait, Some(run)),
            };
            counts[action as usize] += 1;
            let (scheduled_at, because_of) = (instant(*at), run.map(|run| run.0));
            planned.push(PlannedTime { scheduled_at, action, because_of });
        }
    }
    let total = u32::try_from(planned.len()).unwrap_or(u32::MAX);
    let last = planned.len().saturating_sub(SHOWN_AT_EACH_END).max(SHOWN_AT_EACH_END);
    let mut rest = if last < planned.len() { planned.split_off(last) } else { Vec::new() };
    planned.truncate(SHOWN_AT_EACH_END);
    planned.append(&mut rest);
    let [run, skip, wait] = counts;
    Ok(BackfillPlan { total, run, skip, wait, times: planned })
}

/// Scheduled times whose runs are looked up in one transaction.
const PLANNED_AT_ONCE: usize = 500;

/// Scheduled times that a plan shows at its beginning and at its end.
const SHOWN_AT_EACH_END: usize = 100;

// ── Reading ─────────────────────────────────────────────────────────────────────────────────────────────────────

pub async fn list(call: Call, seen: Authorised<Seen>) -> Result<Reply, RequestError> {
    let job = match call.query.text("job") {
        None => None,
        Some(name) => match seen_job(&call, name).await? {
            Some(job) => Some(job),
            None => {
                return Ok(Reply::json(&Page::<BackfillView> { items: Vec::new(), next: None, total: None }));
            }
        },
    };
    let filter = BackfillFilter { apps: seen.apps.clone(), job };
    let found = call.state.database.backfills(&filter, call.query.page()?).await?;
    let mut jobs: Vec<JobId> = found.rows.iter().map(|backfill| backfill.job).collect();
    jobs.sort_unstable();
    jobs.dedup();
    let names: BTreeMap<JobId, JobName> = seen_names(&call, call.state.database.job_names(&jobs).await?);
    Ok(Reply::json(&call::page(found, |backfill| view(&backfill, names.get(&backfill.job)))))
}

pub async fn show(call: Call, backfill: Authorised<JobBackfill>) -> Result<Reply, RequestError> {
    Ok(Reply::json(&found(&call, backfill.backfill.id).await?))
}

pub async fn times(call: Call, backfill: Authorised<JobBackfill>) -> Result<Reply, RequestError> {
    let (state, page) = (call.query.word("state")?, call.query.page()?);
    let found = call.state.database.backfill_times(backfill.backfill.id, state, page).await?;
    Ok(Reply::json(&call::page(found, |time| BackfillTime {
        scheduled_at: instant(time.scheduled_at),
        state: time.state,
        run: time.run.map(|run| run.0),
        ended_at: time.ended_at.map(instant),
        message: time.message,
    })))
}

async fn found(call: &Call, id: BackfillId) -> Result<BackfillView, RequestError> {
    let gone = || RequestError::not_found("this backfill does not exist");
    let backfill = call.state.database.backfill(id).await?.ok_or_else(gone)?;
    let names = call.state.database.job_names(&[backfill.job]).await?;
    Ok(view(&backfill, names.first()))
}

fn view(backfill: &Backfill, name: Option<&JobName>) -> BackfillView {
    let (settings, counts) = (&backfill.settings, backfill.counts);
    BackfillView {
        id: backfill.id.0,
        job: backfill.job.0,
        job_key: name.and_then(|name| name.key.clone()),
        job_name: name.map(|name| name.name.clone()).unwrap_or_default(),
        state: backfill.state,
        from: instant(settings.range.from),
        until: instant(settings.range.until),
        order: settings.order,
        parallel: settings.parallel,
        existing: settings.existing,
        on_failure: settings.on_failure,
        param: settings.param.clone(),
        by: settings.by.clone(),
        started_at: instant(backfill.begun_at),
        ended_at: backfill.ended_at.map(instant),
        total: counts.total,
        pending: counts.pending(),
        open: counts.open,
        succeeded: counts.succeeded,
        failed: counts.failed,
        skipped: counts.skipped,
        cancelled: counts.cancelled,
    }
}

// ── Changing ────────────────────────────────────────────────────────────────────────────────────────────────────

pub async fn pause(call: Call, backfill: Authorised<JobBackfill>) -> Result<Reply, RequestError> {
    change(&call, &backfill, BackfillChange::Pause).await
}

pub async fn go_on(call: Call, backfill: Authorised<JobBackfill>) -> Result<Reply, RequestError> {
    change(&call, &backfill, BackfillChange::Continue).await
}

pub async fn retry(call: Call, backfill: Authorised<JobBackfill>) -> Result<Reply, RequestError> {
    change(&call, &backfill, BackfillChange::Retry).await
}

pub async fn cancel(call: Call, backfill: Authorised<JobBackfill>) -> Result<Reply, RequestError> {
    let CancelBackfill { kill } = call.json_or_default()?;
    let reply = change(&call, &backfill, BackfillChange::Cancel).await?;
    if !kill {
        return Ok(reply);
    }
    let id = backfill.backfill.id;
    let reason = format!("backfill {id} was cancelled by {}", call.who.principal.name);
    let going_on = call.state.engine.kill_backfill_runs(id, &reason).await?;
    let after = serde_json::json!({ "backfill": id.0, "killed": true, "not_ended": going_on });
    Ok(Reply::json(&found(&call, id).await?).changed(None, Some(after)))
}

async fn change(call: &Call, backfill: &JobBackfill, change: BackfillChange) -> Result<Reply, RequestError> {
    let id = backfill.backfill.id;
    let changed = call.state.engine.change_backfill(id, change).await?;
    call.state.hints.announce(Event::Runs);
    let after = serde_json::json!({ "backfill": id.0, "state": changed.state });
    Ok(Reply::json(&found(call, id).await?).changed(None, Some(after)))
}
