//! `/v1/jobs`: job definitions, triggers, missed fires and scripts.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::http::StatusCode;
use engine::{AppId, Job, JobId, JobSpec, Store as _, StoreError};
use protocol::v1::{
    IDEMPOTENCY_KEY, JobBody, JobChange, JobView, Miss, MissReason, Page, ProblemCode, ScriptBody,
    ScriptVersion, Trigger, Triggered, WorkflowBody,
};
use serde_json::Value;
use store::{AuditFilter, AuditRecord, JobFilter, JobKey, JobMark, JobOrder, JobRow, Rights};

use super::authorise::{AppInBody, Authorised, PutTarget, Seen, admit_app, child_name, find_jobs, job_name};
use super::call::{Call, instant, page};
use super::job_body::{Reading, Showing, check_key};
use super::reply::Reply;
use super::route::Needs;
use super::session::rights_view;
use super::work_calendars::Resolving;
use super::{history, schedules, workflow_definitions};
use crate::jobs::{Belongings, JobRules};
use crate::request_error::RequestError;

pub const EDIT: Needs = Needs::Right(Rights::EDIT);

// ── Read ────────────────────────────────────────────────────────────────────────────────────────────────────────

pub async fn list(call: Call, seen: Authorised<Seen>) -> Result<Reply, RequestError> {
    let query = &call.query;
    let text = |name: &str| query.text(name).unwrap_or_default().to_owned();
    let filter = JobFilter {
        apps: seen.apps.clone(),
        enabled: query.flag("enabled")?,
        handler: text("handler"),
        author: text("author"),
        text: text("text"),
        tag: text("tag"),
        workflow: query.flag("workflow")?,
        ..JobFilter::default()
    };
    let after = query.text("after").map(mark).transpose()?;
    let order = order(query.text("sort").unwrap_or("-id"))?;
    let found = call.state.database.job_list(&filter, order, after.as_ref(), query.limit()?).await?;
    let next = found.next.map(|mark| format!("{}:{}", mark.job, mark.key));
    // Counted for the first page only; a client that fetches further pages already has the total.
    let total = match after {
        None => Some(call.state.database.job_count(&filter).await?.0),
        Some(_) => None,
    };
    Ok(Reply::json(&Page { items: views(&call, found.rows, false).await?, next, total }))
}

fn order(word: &str) -> Result<JobOrder, RequestError> {
    let (down, key) = word.strip_prefix('-').map_or((false, word), |key| (true, key));
    let by = match key {
        "id" => JobKey::Number,
        "name" => JobKey::Name,
        "next_fire_at" => JobKey::NextFire,
        _ => {
            return Err(RequestError::field(
                "sort",
                "must be id, name or next_fire_at, optionally with a leading minus",
            ));
        }
    };
    Ok(JobOrder { by, down })
}

fn mark(text: &str) -> Result<JobMark, RequestError> {
    let read = text.split_once(':').and_then(|(id, key)| Some((id.parse().ok()?, key)));
    let (id, key) =
        read.ok_or_else(|| RequestError::field("after", "must be the `next` of the previous page"))?;
    Ok(JobMark { job: JobId(id), key: key.into() })
}

pub async fn show(call: Call, job: Authorised<Job>) -> Result<Reply, RequestError> {
    let view = view(&call, job.id).await?;
    Ok(Reply::json(&view).revision(view.revision))
}

/// Current view of a job, with the source of its script.
async fn view(call: &Call, job: JobId) -> Result<JobView, RequestError> {
    let rows = call.state.database.job_rows(&[job]).await?;
    views(call, rows, true).await?.pop().ok_or_else(gone)
}

fn gone() -> RequestError {
    RequestError::new(ProblemCode::NotFound, "this job does not exist")
}

/// Views of jobs. Children that the caller may not view are left out.
pub async fn views(call: &Call, rows: Vec<JobRow>, with_source: bool) -> Result<Vec<JobView>, RequestError> {
    let children: Vec<JobId> = rows.iter().flat_map(|row| row.job.spec.children.iter().copied()).collect();
    let who = &call.who.principal;
    let mut children = call.state.database.job_names(&children).await?;
    children.retain(|name| who.may(Rights::VIEW, name.app));
    let all_children = who.apps().is_none();
    let apps: BTreeMap<AppId, String> = call.state.directory.names().into_iter().collect();
    let is_shown = |app| who.may(Rights::VIEW, app);
    let workflows =
        &workflow_definitions::bodies(&call.state.database, &rows, with_source, &apps, &is_shown).await?;
    let view = |row: JobRow| {
        let app = row.job.spec.app;
        let rights = rights_view(call.who.principal.rights(app));
        let app = apps.get(&app).cloned().unwrap_or_default();
        let (zone, children) = (&call.state.zone, &children[..]);
        Showing { zone, app, rights, children, all_children, with_source, workflows }
            .view(row, call.language())
    };
    Ok(rows.into_iter().map(view).collect())
}

pub async fn fires(call: Call, job: Authorised<Job>) -> Result<Reply, RequestError> {
    let count = call.query.number("count")?;
    let after = call.query.instant("after")?.unwrap_or(call.state.engine.now());
    // The job's own `valid_from` and `valid_until` also count, so its next fires are computed one by one.
    let first = job.spec.valid_from.map(|from| from - Duration::from_millis(1));
    let after = first.map_or(after, |first| after.max(first));
    let next = |after| job.spec.next_after(after);
    let days = job.spec.workdays.as_ref();
    Ok(Reply::json(&schedules::preview(&call, (&job.spec.schedule, days), count, after, next)?))
}

pub async fn misses(call: Call, job: Authorised<Job>) -> Result<Reply, RequestError> {
    let mut found = call.state.database.misses(job.id, call.query.page()?).await?;
    if let Some(moved) = history::hidden_before(&call, job.id).await? {
        history::cut(&mut found, |entry| moved.shows(entry.at));
    }
    let view = |entry: engine::HistoryEntry| Miss {
        id: entry.id,
        job: entry.job.0,
        first: instant(entry.unsent.first),
        last: instant(entry.unsent.last),
        count: entry.unsent.count,
        reason: match entry.unsent.disposition {
            engine::Disposition::MisfireSkipped => MissReason::Skipped,
            engine::Disposition::Coalesced => MissReason::Coalesced,
            engine::Disposition::Blocked => MissReason::Blocked,
            _ => MissReason::Cancelled,
        },
        into: entry.run.map(|run| run.0),
        at: instant(entry.at),
    };
    Ok(Reply::json(&page(found, view)))
}

pub async fn changes(call: Call, job: Authorised<Job>) -> Result<Reply, RequestError> {
    let filter = AuditFilter { object: Some(job_name(job.id)), ..AuditFilter::default() };
    let mut found = call.state.database.audit_page(&filter, call.query.page()?).await?;
    if let Some(moved) = history::hidden_before(&call, job.id).await? {
        moved.cut_changes(&mut found);
    }
    found.rows.retain(|record| record.entry.result == "done");
    let read = |text: Option<String>| text.and_then(|text| serde_json::from_str(&text).ok());
    let view = |record: AuditRecord| JobChange {
        at: instant(record.at),
        by: record.entry.principal,
        action: record.entry.action,
        before: read(record.entry.before),
        after: read(record.entry.after),
    };
    let mut page = page(found, view);
    let definitions = page.items.iter_mut().flat_map(|change| [&mut change.before, &mut change.after]);
    let mut definitions: Vec<_> = definitions.filter_map(Option::as_mut).collect();
    history::hide_jobs(&call, &mut definitions).await?;
    Ok(Reply::json(&page))
}

// ── Write ───────────────────────────────────────────────────────────────────────────────────────────────────────

pub async fn create(call: Call, app: Authorised<AppInBody>) -> Result<Reply, RequestError> {
    let body: JobBody = call.json()?;
    let children = children(&call, &body, None).await?;
    let workflow = workflow_definitions::save(&call, &body, None).await?;
    let workdays = Resolving::default().workdays(&call, body.workdays.as_ref()).await?;
    let reading = reading(&call, None).on(workdays);
    let spec = reading.spec(&body, app.0.id, children, workflow).map_err(RequestError::fields)?;
    add(&call, &body, spec).await
}

/// Definition of a new job with that key.
async fn new_spec(call: &Call, body: &JobBody, key: String) -> Result<JobSpec, RequestError> {
    check_key(&key).map_err(|wrong| RequestError::fields(vec![wrong]))?;
    let app = admit_app(call, &body.app, EDIT).await?;
    let children = children(call, body, None).await?;
    let workflow = workflow_definitions::save(call, body, None).await?;
    let workdays = Resolving::default().workdays(call, body.workdays.as_ref()).await?;
    let reading = reading(call, None).on(workdays);
    let spec = reading.spec(body, app.id, children, workflow).map_err(RequestError::fields)?;
    Ok(JobSpec { key: Some(key), ..spec })
}

/// Rejects a request with an `If-Match` that does not name the current revision of the job.
fn check_revision(call: &Call, job: &Job) -> Result<(), RequestError> {
    let wanted = call.header("if-match").map(|tag| tag.trim().trim_start_matches("W/").trim_matches('"'));
    match wanted.is_none_or(|tag| tag == "*" || tag == job.revision.to_string()) {
        true => Ok(()),
        false => Err(outdated(OVERTAKEN)),
    }
}

pub async fn put(call: Call, target: Authorised<PutTarget<Job>>) -> Result<Reply, RequestError> {
    let body: JobBody = call.json()?;
    match target.into_inner() {
        PutTarget::Free(_) | PutTarget::Hidden(..) if call.header("if-match").is_some() => {
            Err(outdated("this job was deleted"))
        }
        PutTarget::Free(key) => {
            let spec = new_spec(&call, &body, key).await?;
            add(&call, &body, spec).await
        }
        // The key belongs to a job that the caller may not see: all other errors of the request are returned
        // first, as if the key were free. Only a request that would have created a job learns that the key is
        // taken.
        PutTarget::Hidden(key, refused) => {
            let spec = new_spec(&call, &body, key).await?;
            call.jobs().check_new(&spec, &belongings(&body)).await?;
            Err(refused)
        }
        PutTarget::Taken(_) if wants_new(&call) => Err(outdated(THERE_ALREADY)),
        PutTarget::Taken(job) => {
            check_revision(&call, &job)?;
            edit(&call, &body, job).await
        }
    }
}

/// Whether the request may only create a job (`If-None-Match: *`).
fn wants_new(call: &Call) -> bool {
    call.header("if-none-match").is_some_and(|tag| tag.trim() == "*")
}

pub const THERE_ALREADY: &str = "this job already exists";

pub const OVERTAKEN: &str = "the job was changed in the meantime; read it again";

pub fn outdated(why: &str) -> RequestError {
    RequestError::new(ProblemCode::Outdated, why)
}

async fn add(call: &Call, body: &JobBody, spec: JobSpec) -> Result<Reply, RequestError> {
    let is_named = spec.key.is_some();
    let added = call.jobs().create(spec, belongings(body)).await;
    let id = added.map_err(|error| match error.code {
        // Another request has just created a job with the same key.
        ProblemCode::Conflict if is_named && wants_new(call) => outdated(THERE_ALREADY),
        _ => error,
    })?;
    let after = written(call, id).await?;
    let view = view(call, id).await?;
    let reply = Reply::json(&view).status(StatusCode::CREATED).revision(view.revision);
    Ok(reply.about(job_name(id)).changed(None, after))
}

async fn edit(call: &Call, body: &JobBody, job: Job) -> Result<Reply, RequestError> {
    workflow_definitions::check_no_step_job(call, job.id).await?;
    let app = admit_app(call, &body.app, EDIT).await?;
    let jobs = call.jobs();
    let children = jobs.edited_children(&job, children(call, body, Some(&job)).await?).await?;
    let workflow = workflow_definitions::save(call, body, Some(&job)).await?;
    let workdays = Resolving::default().workdays(call, body.workdays.as_ref()).await?;
    let reading = reading(call, Some(&job)).on(workdays);
    let spec = reading.spec(body, app.id, children, workflow).map_err(RequestError::fields)?;
    let before = written(call, job.id).await?;
    jobs.check_edit(&job, &spec, body.enabled).await?;
    if let Err(error) = jobs.put(&job, spec, belongings(body)).await {
        let now = call.state.database.job(job.id).await?;
        let was_faster = now.is_none_or(|now| now.revision != job.revision);
        return Err(if was_faster { outdated(OVERTAKEN) } else { error });
    }
    let after = written(call, job.id).await?;
    let view = view(call, job.id).await?;
    Ok(Reply::json(&view).revision(view.revision).changed(before, after))
}

/// Gives a job an earlier workflow, as if a client had read the job and saved it with that workflow.
pub async fn put_workflow(call: &Call, job: Job, workflow: WorkflowBody) -> Result<Reply, RequestError> {
    check_revision(call, &job)?;
    let body = view(call, job.id).await?.body;
    let body = JobBody { workflow: Some(workflow), enabled: None, ..body };
    edit(call, &body, job).await
}

pub fn reading<'a>(call: &'a Call, before: Option<&'a Job>) -> Reading<'a> {
    let before = before.map(|job| &job.spec);
    Reading { zone: &call.state.zone, now: call.state.engine.now(), before, workdays: None }
}

pub fn belongings(body: &JobBody) -> Belongings<'_> {
    let of_script = body.script.as_ref().map(|script| &script.remark);
    let of_workflow = body.workflow.as_ref().map(|workflow| &workflow.remark);
    let remark = of_workflow.or(of_script).map_or("", String::as_str);
    Belongings { enabled: body.enabled, tags: body.tags.clone(), remark }
}

/// Resolves the child jobs that a body names. A new child needs the right to operate it; an existing one only the
/// right to view it.
async fn children(call: &Call, body: &JobBody, job: Option<&Job>) -> Result<Vec<JobId>, RequestError> {
    if body.children.len() > CHILDREN_READ {
        return Err(RequestError::field("children", format!("must have at most {CHILDREN_READ} jobs")));
    }
    let names: Vec<String> = body.children.iter().map(String::as_str).map(child_name).collect();
    let found = find_jobs(call, names.iter().map(String::as_str)).await?;
    let is_kept = |child: &Job| job.is_some_and(|job| job.spec.children.contains(&child.id));
    let right = |child: &Job| if is_kept(child) { Rights::VIEW } else { Rights::OPERATE };
    let may_use = |child: &&Job| call.who.principal.may(right(child), child.spec.app);
    let id_of = |name: &String| {
        let shown: String = name.chars().take(40).collect();
        let none = || RequestError::field("children", format!("the job `{shown}` does not exist"));
        found.get(name).filter(may_use).map(|child| child.id).ok_or_else(none)
    };
    names.iter().map(id_of).collect()
}

/// Each child is looked up in the database; their column holds fewer than this.
pub const CHILDREN_READ: usize = 100;

/// Definition of a job as stored in the audit log.
async fn written(call: &Call, job: JobId) -> Result<Option<Value>, RequestError> {
    Ok(on_record(&call.state.jobs, job).await?)
}

/// Definition of the job with that id as stored in the audit log, for the compat APIs. `None` if it cannot be
/// read: the change itself goes ahead.
pub async fn text_on_record(rules: &JobRules, id: &str) -> Option<String> {
    let job = on_record(rules, JobId(id.trim().parse().ok()?)).await.ok().flatten()?;
    Some(job.to_string())
}

/// Shared by all APIs. Without the source of the script, since its versions are stored anyway.
async fn on_record(rules: &JobRules, job: JobId) -> Result<Option<Value>, StoreError> {
    let rows = rules.database.job_rows(&[job]).await?;
    Ok(records_of(rules, &rows).await?.remove(&job))
}

/// Definitions of jobs as stored in the audit log.
pub async fn records_of(rules: &JobRules, rows: &[JobRow]) -> Result<BTreeMap<JobId, Value>, StoreError> {
    let children: Vec<JobId> = rows.iter().flat_map(|row| row.job.spec.children.iter().copied()).collect();
    let children = rules.database.job_names(&children).await?;
    let apps: BTreeMap<AppId, String> = rules.directory.names().into_iter().collect();
    let workflows = &workflow_definitions::bodies(&rules.database, rows, true, &apps, &|_| true).await?;
    let record = |row: &JobRow| {
        let app = apps.get(&row.job.spec.app).cloned().unwrap_or_default();
        let (zone, rights, children) = (&rules.zone, Vec::new(), &children[..]);
        let (all_children, with_source) = (true, false);
        let showing = Showing { zone, app, rights, children, all_children, with_source, workflows };
        let body = serde_json::to_value(showing.body(row)).expect("API types have text keys");
        (row.job.id, body)
    };
    Ok(rows.iter().map(record).collect())
}

pub async fn delete(call: Call, job: Authorised<Job>) -> Result<Reply, RequestError> {
    workflow_definitions::check_no_step_job(&call, job.id).await?;
    let before = written(&call, job.id).await?;
    call.jobs().delete(&job).await?;
    Ok(Reply::done().changed(before, None))
}

pub async fn start(call: Call, job: Authorised<Job>) -> Result<Reply, RequestError> {
    call.jobs().start(&job).await?;
    Ok(Reply::json(&view(&call, job.id).await?))
}

pub async fn stop(call: Call, job: Authorised<Job>) -> Result<Reply, RequestError> {
    call.jobs().stop(&job).await?;
    Ok(Reply::json(&view(&call, job.id).await?))
}

pub async fn trigger(call: Call, job: Authorised<Job>) -> Result<Reply, RequestError> {
    let Trigger { param, address } = call.json_or_default()?;
    run_now(&call, &job, param, address).await
}

/// Triggers a job now. A repeated `Idempotency-Key` returns the same run.
pub async fn run_now(
    call: &Call,
    job: &Job,
    param: Option<String>,
    address: Option<String>,
) -> Result<Reply, RequestError> {
    let jobs = call.jobs();
    let named = jobs.live_addresses(job.spec.app, address.as_deref())?;
    let run = jobs.trigger(job, request_key(call, ""), param.clone(), named).await?;
    let reply = Reply::json(&Triggered { run: run.0 }).status(StatusCode::ACCEPTED);
    Ok(reply.about(job_name(job.id)).changed(None, Some(serde_json::json!({ "run": run.0, "param": param }))))
}

/// Id of a request that opens a run: a hash of the idempotency key, the caller's name and the request, or a random
/// number without that header. A trigger has the request "".
pub fn request_key(call: &Call, request: &str) -> i64 {
    let Some(header) = call.header(IDEMPOTENCY_KEY) else { return fastrand::i64(1..) };
    let digest = crate::executors::fingerprint(&format!("{}\0{header}{request}", call.who.principal.name));
    let number = digest.get(..16).and_then(|half| u64::from_str_radix(half, 16).ok()).unwrap_or(1);
    i64::try_from(number >> 1).unwrap_or(1).max(1)
}

// ── Scripts ─────────────────────────────────────────────────────────────────────────────────────────────────────

pub async fn scripts(call: Call, job: Authorised<Job>) -> Result<Reply, RequestError> {
    let mut versions = call.state.database.script_versions(job.id).await?;
    if let Some(moved) = history::hidden_before(&call, job.id).await? {
        moved.cut_versions(&mut versions);
    }
    let view = |version: store::ScriptVersion| ScriptVersion {
        id: version.id,
        language: version.language,
        source: version.source,
        remark: version.remark,
        saved_at: version.saved_at.map(instant),
    };
    Ok(Reply::json(&versions.into_iter().map(view).collect::<Vec<_>>()))
}

pub async fn save_script(call: Call, job: Authorised<Job>) -> Result<Reply, RequestError> {
    let ScriptBody { language, source, remark } = call.json()?;
    workflow_definitions::check_no_step_job(&call, job.id).await?;
    call.jobs().save_script(&job, language, &source, &remark).await?;
    Ok(Reply::done().changed(None, Some(serde_json::json!({ "language": language, "remark": remark }))))
}
