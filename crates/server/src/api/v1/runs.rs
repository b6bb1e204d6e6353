//! `/v1/runs`: runs, their logs, cancelling and deleting them.

use std::collections::BTreeMap;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use engine::{AppId, JobId, Killed, RunId};
use protocol::v1::{Clear, Cleared, Event, Kill, LogPage, Origin, Page, ProblemCode, RunState, RunView};
use store::{Clearing, JobName, Keep, OpenRun, Rights, RunFilter, RunRow, Sending};
use timer::Timestamp;

use super::authorise::{AppInBody, Authorised, Seen, find_job};
use super::call::{Call, instant};
use super::reply::Reply;
use super::state::V1State;
use super::traces::{self, Trace};
use super::{events, jobs, problem, timeline};
use crate::request_error::RequestError;
use crate::runs::{self, not_ended};

// ── Read ────────────────────────────────────────────────────────────────────────────────────────────────────────

pub async fn list(call: Call, seen: Authorised<Seen>) -> Result<Reply, RequestError> {
    let query = &call.query;
    let status = query.word("state")?;
    let job = match query.text("job") {
        None => None,
        Some(name) => match seen_job(&call, name).await? {
            Some(job) => Some(job),
            None => return Ok(Reply::json(&Page::<RunView> { items: Vec::new(), next: None, total: None })),
        },
    };
    let (from, until) = (query.instant("from")?, query.instant("until")?);
    let filter = RunFilter { apps: seen.apps.clone(), job, status, from, until };
    let found = call.state.database.run_page(&filter, query.page()?).await?;
    let next = found.next.map(|next| next.to_string());
    Ok(Reply::json(&Page { items: views(&call, found.rows).await?, next, total: None }))
}

/// Job named in the query. Runs may outlive their job, so an id is accepted without a job.
pub async fn seen_job(call: &Call, name: &str) -> Result<Option<JobId>, RequestError> {
    match find_job(call, name).await? {
        Some(job) => Ok(call.who.principal.may(Rights::VIEW, job.spec.app).then_some(job.id)),
        None => {
            let number = name.strip_prefix(super::authorise::BY_NUMBER);
            Ok(number.and_then(|number| number.parse().ok()).map(JobId))
        }
    }
}

pub async fn show(call: Call, run: Authorised<RunRow>) -> Result<Reply, RequestError> {
    let trace = traces::of(&call, &[run.id]).await?.remove(&run.id).unwrap_or_default();
    let timeline = timeline::of(&run, &trace.0, call.state.traces.claimed_at(run.id));
    let gone = || RequestError::new(ProblemCode::NotFound, "this run does not exist");
    let view = views(&call, vec![run.into_inner()]).await?.pop().ok_or_else(gone)?;
    Ok(Reply::json(&RunView { timeline, ..view }))
}

/// Views of runs, with the names of their jobs.
pub async fn views(call: &Call, rows: Vec<RunRow>) -> Result<Vec<RunView>, RequestError> {
    let mut jobs: Vec<JobId> = rows.iter().map(|row| row.job).collect();
    jobs.sort_unstable();
    jobs.dedup();
    let ids: Vec<RunId> = rows.iter().map(|row| row.id).collect();
    let names = async { Ok(call.state.database.job_names(&jobs).await?) };
    let (names, mut traces) = tokio::try_join!(names, traces::of(call, &ids))?;
    let names = seen_names(call, names);
    let apps: BTreeMap<AppId, String> = call.state.directory.names().into_iter().collect();
    let app = |id| apps.get(&id).cloned().unwrap_or_default();
    let mut trace = |run| traces.remove(&run).unwrap_or_default();
    let view = |row: RunRow| view(app(row.app), names.get(&row.job), &trace(row.id), row);
    Ok(rows.into_iter().map(view).collect())
}

/// Names of jobs that the caller may see. A run stays in its app when its job is moved to another.
pub fn seen_names(call: &Call, names: Vec<JobName>) -> BTreeMap<JobId, JobName> {
    let seen = names.into_iter().filter(|name| call.who.principal.may(Rights::VIEW, name.app));
    seen.map(|name| (name.job, name)).collect()
}

fn view(app: String, name: Option<&JobName>, trace: &Trace, row: RunRow) -> RunView {
    let (open, sending) = (row.open.as_ref(), trace.sending());
    let exact = open.map(|open| open.scheduled_at).or(sending.map(|sending| sending.scheduled_at));
    let scheduled_at: Option<Timestamp> = exact.or(row.triggered_at);
    let ended_at = trace.0.iter().find_map(|node| node.recorded_at).or(row.ended_at);
    let holder = open.and_then(|open| open.node.as_ref()).map(|node| node.name.as_str());
    // Traces are kept for a limited time, and Java admins write none.
    let started_at = trace.sent_at().or(scheduled_at.filter(|_| row.address.is_some()));
    let took = ended_at.zip(started_at).map(|(end, start)| (end.as_millis() - start.as_millis()).max(0));
    let (shard_index, shard_total) = shard(row.shard.as_deref());
    RunView {
        id: row.id.0,
        job: row.job.0,
        job_key: name.and_then(|name| name.key.clone()),
        job_name: name.map(|name| name.name.clone()),
        job_zone: name.and_then(|name| name.zone.clone()),
        app,
        state: state(row.state),
        cancel_requested: open.is_some_and(|open| open.cancel),
        origin: origin(open, sending),
        scheduled_at: scheduled_at.map(instant),
        ended_at: ended_at.map(instant),
        took_ms: took,
        node: holder.or(trace.node()).map(str::to_owned),
        attempt: match open {
            Some(open) => u32::try_from(open.attempt).ok(),
            None => sending.map(|sending| sending.attempt),
        },
        address: row.address,
        handler: row.handler,
        param: workflow::secret::shown(&row.param).into_owned(),
        shard_index,
        shard_total,
        dispatch_message: row.trigger_message.unwrap_or_default(),
        result_message: row.result_message.unwrap_or_default(),
        result_code: row.result_code,
        timeline: Vec::new(),
    }
}

/// Parses `index/total`, as XXL-JOB stores it.
fn shard(written: Option<&str>) -> (u32, u32) {
    let read = written.and_then(|text| text.split_once('/'));
    let read = read.and_then(|(index, total)| Some((index.parse().ok()?, total.parse().ok()?)));
    read.unwrap_or((0, 1))
}

/// Why a run exists, if its row or its trace has recorded it.
fn origin(open: Option<&OpenRun>, sending: Option<&Sending>) -> Option<Origin> {
    let (cause, retry_of) = match (open, sending) {
        (Some(open), _) => (open.origin, open.retry_of),
        (None, Some(sending)) => (Some(sending.origin), sending.retry_of),
        (None, None) => (None, None),
    };
    if let Some(of) = retry_of {
        return Some(Origin::Retry { of: of.0 });
    }
    Some(match cause? {
        engine::Origin::Schedule => Origin::Schedule,
        engine::Origin::Misfire => Origin::Misfire,
        engine::Origin::Manual { .. } => Origin::Manual,
        engine::Origin::Child { of } => Origin::Child { of: of.0 },
        engine::Origin::Step { of, .. } => Origin::Step { of: of.0 },
        engine::Origin::Resume { of } => Origin::Resume { of: of.0 },
        engine::Origin::Backfill { of } => Origin::Backfill { of: of.0 },
    })
}

/// State of a run as an API value.
pub fn state(state: engine::RunState) -> RunState {
    match state {
        engine::RunState::Waiting => RunState::Waiting,
        engine::RunState::Claimed => RunState::Claimed,
        engine::RunState::Cancelling => RunState::Cancelling,
        engine::RunState::Unknown => RunState::Unknown,
        engine::RunState::Running => RunState::Running,
        engine::RunState::Succeeded => RunState::Succeeded,
        engine::RunState::Failed => RunState::Failed,
        engine::RunState::TimedOut => RunState::TimedOut,
        engine::RunState::Lost => RunState::Lost,
        engine::RunState::Cancelled => RunState::Cancelled,
    }
}

// ── Logs ────────────────────────────────────────────────────────────────────────────────────────────────────────

pub async fn log(call: Call, run: Authorised<RunRow>) -> Result<Reply, RequestError> {
    Ok(Reply::json(&lines(&call.state, &run, from_line(&call)?).await))
}

fn from_line(call: &Call) -> Result<u32, RequestError> {
    match call.query.number("from")?.unwrap_or(1) {
        0 => Err(RequestError::field("from", "must be a line number, from 1")),
        from => Ok(from),
    }
}

/// Lines of a run's log. A log that cannot be read is a page with a problem, not an error.
async fn lines(state: &V1State, run: &RunRow, from: u32) -> LogPage {
    match state.logs.page(run, from).await {
        Ok(page) => LogPage {
            from: page.from.into(),
            next: u64::from(page.to).saturating_add(1).max(page.from.into()),
            text: page.text,
            end: page.end,
            problem: None,
        },
        Err(error) => LogPage {
            from: from.into(),
            next: from.into(),
            text: String::new(),
            end: run.state.is_over(),
            problem: Some(problem::of_part("/v1/runs/{run}/log", &error)),
        },
    }
}

/// The whole log as a file, fetched page by page.
pub async fn download(call: Call, run: Authorised<RunRow>) -> Result<Reply, RequestError> {
    let name = format!("attachment; filename=\"run-{}.log\"", run.id);
    let name: HeaderValue = name.try_into().expect("a number is a plain text");
    let state = (call.state.clone(), run.into_inner(), 1_u32, Some(Bounds::default()));
    let pages = futures_util::stream::unfold(state, |(state, run, from, bounds)| async move {
        let mut bounds = bounds?;
        let page = lines(&state, &run, from).await;
        let next = u32::try_from(page.next).unwrap_or(u32::MAX);
        // For an unfinished run, the log so far.
        let is_last = page.end || next <= from;
        let mut text = page.text;
        let has_room = bounds.take(text.len());
        if !is_last && !has_room {
            text.push_str(CUT_OFF);
        }
        let bounds = (!is_last && has_room).then_some(bounds);
        Some((Ok::<_, std::convert::Infallible>(Bytes::from(text)), (state, run, next, bounds)))
    });
    let reply = Reply::typed("text/plain; charset=utf-8", Body::from_stream(pages));
    Ok(reply.header(header::CONTENT_DISPOSITION, name))
}

/// Remaining pages and bytes of one log, to limit executors with huge logs.
struct Bounds {
    pages: u32,
    bytes: usize,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds { pages: PAGES_MAX, bytes: BYTES_MAX }
    }
}

impl Bounds {
    /// Counts a page of that size; returns whether another may follow.
    fn take(&mut self, bytes: usize) -> bool {
        self.pages = self.pages.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
        self.pages > 0 && self.bytes > 0
    }
}

/// Pages of one log. A page has at least one line, and most have thousands.
const PAGES_MAX: u32 = 10_000;

/// Bytes of one log: more than a person reads, and a bound for an executor with an endless log.
const BYTES_MAX: usize = 256 * 1024 * 1024;

/// Last line of a truncated download.
const CUT_OFF: &str = "[the log is cut here; read the rest at its executor]\n";

/// Streams a run's log while it is written, until its end.
pub async fn live(call: Call, run: Authorised<RunRow>) -> Result<Reply, RequestError> {
    let mut from = from_line(&call)?;
    let id = run.id;
    drop(run);
    events::stream(call, move |state, out| async move {
        // An unfinished run may write any amount; the rest of a finished run is bounded.
        let mut rest = Bounds::default();
        loop {
            let Ok(Some(run)) = state.database.run(id).await else { return };
            let mut page = lines(&state, &run, from).await;
            from = u32::try_from(page.next).unwrap_or(u32::MAX);
            if run.state.is_over() && !rest.take(page.text.len()) && !page.end {
                page.text.push_str(CUT_OFF);
                page.end = true;
            }
            let is_over = page.end;
            let is_news = !page.text.is_empty() || page.end || page.problem.is_some();
            if is_news && !out.send(&page).await || is_over {
                return;
            }
            state.clock.sleep(LOG_LOOK).await;
        }
    })
}

/// How often an executor is asked for more lines while a client follows the log.
const LOG_LOOK: std::time::Duration = std::time::Duration::from_secs(1);

// ── Cancel and delete ───────────────────────────────────────────────────────────────────────────────────────────

pub async fn kill(call: Call, run: Authorised<RunRow>) -> Result<Reply, RequestError> {
    let Kill { force } = call.json_or_default()?;
    let reason = format!("cancelled by {}", call.who.principal.name);
    match call.state.engine.kill(run.id, &reason, force).await? {
        Killed::Cancelled | Killed::Ending => {
            Ok(Reply::accepted().changed(None, Some(serde_json::json!({ "force": force }))))
        }
        Killed::Over => {
            Err(RequestError::new(ProblemCode::Conflict, format!("run {} has already finished", run.id)))
        }
        Killed::Open(answer) => Err(not_ended(&answer)),
    }
}

/// Triggers the same job with the same parameter. The job may have moved to another app, so its rights are checked
/// again.
pub async fn again(call: Call, run: Authorised<RunRow>) -> Result<Reply, RequestError> {
    let job = call.jobs().find(run.job, Rights::OPERATE).await?;
    jobs::run_now(&call, &job, Some(run.param.clone()), None).await
}

pub async fn clear(call: Call, app: Authorised<AppInBody>) -> Result<Reply, RequestError> {
    let (body, app): (Clear, AppId) = (call.json()?, app.0.id);
    let job = match &body.job {
        None => None,
        Some(name) => {
            let found = find_job(&call, name).await?.filter(|job| job.spec.app == app);
            Some(found.ok_or_else(|| RequestError::field("job", "this job does not exist in this app"))?.id)
        }
    };
    let keep = Keep::Since(Timestamp::from_millis(body.before.millis()));
    let clearing = Clearing { apps: Some(vec![app]), job, keep };
    let runs::Cleared { deleted, more, failed } =
        runs::clear(&call.state.database, &clearing, CLEAR_ROUNDS).await?;
    if let Some(error) = failed {
        tracing::warn!(%error, deleted, "failed to delete all runs; the caller may repeat the request");
    }
    let cleared = Cleared { deleted: deleted as u64, more };
    call.state.hints.announce(Event::Runs);
    let after = serde_json::json!({ "before": body.before, "job": body.job, "deleted": cleared.deleted });
    Ok(Reply::json(&cleared).changed(None, Some(after)))
}

/// Transactions per request: fewer than in the compat API, because clients of this one repeat the request.
const CLEAR_ROUNDS: usize = 1_000;
