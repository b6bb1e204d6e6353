//! Requests about many jobs: `PUT /v1/jobs` and `POST /v1/jobs/bulk`.
//!
//! Every job is checked as if it were the only one, and has its own result and its own audit record. The request has
//! one more record, with the list. Jobs are read and written many at a time.

use std::collections::{BTreeMap, BTreeSet};

use engine::{AppId, Change, Job, JobId, JobSpec};
use protocol::v1::{
    Bulk, BulkAction, BulkResult, JobBody, JobFilter, KeyedJob, ProblemCode, PutJobs, PutOutcome, PutResult,
};
use serde_json::{Value, json};
use store::{JobRow, Rights};

use super::authorise::{
    Authorised, BY_NUMBER, Nothing, Object as _, READ_MAX, admit_app, child_name, find_jobs, job_name, lacks,
};
use super::call::Call;
use super::job_body::{Showing, check_key};
use super::jobs::{CHILDREN_READ, EDIT, OVERTAKEN, THERE_ALREADY, belongings, outdated, reading, records_of};
use super::reply::{Noted, Reply};
use super::work_calendars::Resolving;
use super::{problem, workflow_definitions};
use crate::jobs::{Family, was_overtaken};
use crate::request_error::RequestError;

// ── Definitions by key ──────────────────────────────────────────────────────────────────────────────────────────

pub async fn put(call: Call, _: Authorised<Nothing>) -> Result<Reply, RequestError> {
    let PutJobs { jobs, atomic, dry_run } = call.json()?;
    if jobs.len() > PUT_MAX {
        return Err(RequestError::field("jobs", format!("must have at most {PUT_MAX} jobs")));
    }
    let mut done: Vec<Option<Done>> = jobs.iter().map(|_| None).collect();
    for round in 1..=ROUNDS {
        let open: Vec<usize> = (0..jobs.len()).filter(|index| done[*index].is_none()).collect();
        if open.is_empty() {
            break;
        }
        let mut plans = Plans::read(&call, &jobs, &open).await?;
        plans.make(&jobs, open).await?;
        let is_rejected = plans.each.iter().any(|(_, plan)| plan.is_err());
        let stops = dry_run || atomic && is_rejected;
        let written = if stops { Vec::new() } else { call.jobs().change(&plans.changes, atomic).await };
        // Another request has changed some of them first: they are compared again, unless this was the last time.
        let again =
            |result: &Result<_, RequestError>| round < ROUNDS && result.as_ref().is_err_and(was_overtaken);
        if atomic && written.iter().any(again) {
            continue;
        }
        for (index, plan) in plans.each {
            done[index] = match plan {
                Err(refused) => Some(Done::refused(refused)),
                Ok(Plan::Keep { row }) => Some(Done::unchanged(row)),
                Ok(plan) if atomic && is_rejected => Some(Done::refused(plan.undone())),
                Ok(plan) if dry_run => Some(plan.done(None)),
                Ok(plan) => match &written[plan.position()] {
                    Ok(changed) => Some(plan.done(Some(changed.job))),
                    overtaken if again(overtaken) => None,
                    Err(refused) => Some(Done::refused(plan.explained(refused))),
                },
            };
        }
    }
    let done: Vec<Done> = done.into_iter().flatten().collect();
    reply(&call, &jobs, done, json!({ "atomic": atomic, "dry_run": dry_run })).await
}

/// Maximum number of jobs of one request: each takes a few milliseconds at worst, and the client waits.
const PUT_MAX: usize = 1_000;

/// How often jobs are compared again that other requests have changed meanwhile.
const ROUNDS: usize = 4;

/// Result for one job.
struct Done {
    outcome: PutOutcome,
    /// The job before.
    before: Option<JobRow>,
    /// Id of the job, if it exists now.
    id: Option<JobId>,
    fields: Vec<String>,
    refused: Option<RequestError>,
}

impl Done {
    fn refused(error: RequestError) -> Done {
        let outcome = PutOutcome::Rejected;
        Done { outcome, before: None, id: None, fields: Vec::new(), refused: Some(error) }
    }

    fn unchanged(row: JobRow) -> Done {
        let id = Some(row.job.id);
        Done { outcome: PutOutcome::Unchanged, before: Some(row), id, fields: Vec::new(), refused: None }
    }
}

/// What is to happen with one job.
enum Plan {
    /// It has this definition already.
    Keep { row: JobRow },
    /// It is changed by the change at this position; it is new without a row.
    Write { row: Option<JobRow>, fields: Vec<String>, position: usize, wants_new: bool },
}

impl Plan {
    fn position(&self) -> usize {
        match self {
            Plan::Keep { .. } => usize::MAX,
            Plan::Write { position, .. } => *position,
        }
    }

    fn done(self, id: Option<JobId>) -> Done {
        match self {
            Plan::Keep { row } => Done::unchanged(row),
            Plan::Write { row, fields, .. } => {
                let outcome = if row.is_some() { PutOutcome::Replaced } else { PutOutcome::Created };
                let id = id.or_else(|| row.as_ref().map(|row| row.job.id));
                Done { outcome, before: row, id, fields, refused: None }
            }
        }
    }

    fn undone(&self) -> RequestError {
        let why = "not changed, because other jobs of the request were rejected";
        RequestError::new(ProblemCode::Conflict, why)
    }

    /// The error for the client: a change that came first is `outdated`, as for a single job.
    fn explained(&self, error: &RequestError) -> RequestError {
        match self {
            Plan::Write { row: Some(_), .. } if was_overtaken(error) => outdated(OVERTAKEN),
            Plan::Write { wants_new: true, .. } if was_overtaken(error) => outdated(THERE_ALREADY),
            _ => error.clone(),
        }
    }
}

/// Compares the jobs of a request with the existing ones.
struct Plans<'a> {
    call: &'a Call,
    /// Existing jobs of the request by key.
    rows: BTreeMap<String, JobRow>,
    /// Existing jobs that are named as children.
    named: BTreeMap<String, Job>,
    apps: BTreeMap<String, Result<AppId, RequestError>>,
    calendars: Resolving,
    family: Family,
    /// New jobs by key: the change that adds each, and its app.
    added: BTreeMap<String, (usize, AppId)>,
    changes: Vec<Change>,
    each: Vec<(usize, Result<Plan, RequestError>)>,
}

impl<'a> Plans<'a> {
    async fn read(call: &'a Call, jobs: &[KeyedJob], open: &[usize]) -> Result<Plans<'a>, RequestError> {
        let database = &call.state.database;
        let wanted: Vec<&str> = open.iter().map(|index| jobs[*index].key.as_str()).collect();
        let mut rows = BTreeMap::new();
        for keys in wanted.chunks(READ_MAX) {
            for row in database.job_rows_by_key(keys).await? {
                rows.insert(row.job.spec.key.clone().unwrap_or_default(), row);
            }
        }
        let children = open.iter().flat_map(|index| jobs[*index].job.children.iter().take(CHILDREN_READ + 1));
        let children: BTreeSet<String> = children.map(String::as_str).map(child_name).collect();
        let named = find_jobs(call, children.iter().map(String::as_str)).await?;
        let (apps, calendars) = (BTreeMap::new(), Resolving::default());
        let (family, added) = (Family::default(), BTreeMap::new());
        Ok(Plans { call, rows, named, apps, calendars, family, added, changes: Vec::new(), each: Vec::new() })
    }

    /// Plans the open jobs, children before their parents.
    async fn make(&mut self, jobs: &[KeyedJob], open: Vec<usize>) -> Result<(), RequestError> {
        let mut seen = BTreeSet::new();
        for index in in_order(jobs, open) {
            let keyed = &jobs[index];
            let plan = match seen.insert(keyed.key.as_str()) {
                true => self.plan(keyed).await,
                false => Err(RequestError::field("key", "occurs more than once in the request")),
            };
            match plan {
                Err(error) if error.is_store_failure() => return Err(error),
                plan => self.each.push((index, plan)),
            }
        }
        Ok(())
    }

    async fn plan(&mut self, keyed: &KeyedJob) -> Result<Plan, RequestError> {
        check_key(&keyed.key).map_err(|wrong| RequestError::fields(vec![wrong]))?;
        if keyed.key.starts_with(BY_NUMBER) {
            let why = format!("must not begin with `{BY_NUMBER}`, which stands for an id");
            return Err(RequestError::field("key", why));
        }
        let Some(row) = self.rows.get(&keyed.key).cloned() else {
            return match keyed.revision {
                Some(_) => Err(outdated("this job was deleted")),
                None => self.plan_new(keyed).await,
            };
        };
        let rights = self.call.who.principal.rights(row.job.spec.app);
        if !rights.contains(Rights::VIEW) {
            // As if the key were free: only a request that would have created a job learns that it is taken.
            if keyed.revision.is_some() {
                return Err(outdated("this job was deleted"));
            }
            self.new_spec(keyed).await?;
            return Err(Job::missing().hiding(row.job.name()));
        }
        match () {
            () if !rights.contains(Rights::EDIT) => Err(lacks(EDIT)),
            () if keyed.create_only => Err(outdated(THERE_ALREADY)),
            () if keyed.revision.is_some_and(|revision| revision != row.job.revision) => {
                Err(outdated(OVERTAKEN))
            }
            () => self.plan_edit(keyed, row).await,
        }
    }

    async fn new_spec(&mut self, keyed: &KeyedJob) -> Result<JobSpec, RequestError> {
        let body = &keyed.job;
        let app = self.app(&body.app).await?;
        let children = self.children(body, None)?;
        let workflow = workflow_definitions::save(self.call, body, None).await?;
        let workdays = self.calendars.workdays(self.call, body.workdays.as_ref()).await?;
        let reading = reading(self.call, None).on(workdays);
        let spec = reading.spec(body, app, children, workflow).map_err(RequestError::fields)?;
        let spec = JobSpec { key: Some(keyed.key.clone()), ..spec };
        self.call.jobs().check_new_in(&self.family, &spec, &belongings(body))?;
        Ok(spec)
    }

    async fn plan_new(&mut self, keyed: &KeyedJob) -> Result<Plan, RequestError> {
        let spec = self.new_spec(keyed).await?;
        let position = self.changes.len();
        self.added.insert(keyed.key.clone(), (position, spec.app));
        self.family.add(JobId::added_by(position), &spec.children);
        self.changes.push(Change::Add(Box::new(belongings(&keyed.job).new_job(spec))));
        Ok(Plan::Write { row: None, fields: Vec::new(), position, wants_new: keyed.create_only })
    }

    async fn plan_edit(&mut self, keyed: &KeyedJob, row: JobRow) -> Result<Plan, RequestError> {
        let body = &keyed.job;
        let app = self.app(&body.app).await?;
        let jobs = self.call.jobs();
        let named = self.children(body, Some(&row.job))?;
        let children = match row.job.spec.children.is_empty() {
            true => named,
            false => jobs.edited_children(&row.job, named).await?,
        };
        let workflow = workflow_definitions::save(self.call, body, Some(&row.job)).await?;
        let workdays = self.calendars.workdays(self.call, body.workdays.as_ref()).await?;
        let reading = reading(self.call, Some(&row.job)).on(workdays);
        let spec = reading.spec(body, app, children, workflow).map_err(RequestError::fields)?;
        jobs.check_edit_in(&mut self.family, &row.job, &spec, body.enabled).await?;
        let fields = changed_fields(self.call, &row, &spec, body);
        if fields.is_empty() {
            return Ok(Plan::Keep { row });
        }
        let position = self.changes.len();
        self.family.add(row.job.id, &spec.children);
        self.changes.push(belongings(body).put(&row.job, spec));
        Ok(Plan::Write { row: Some(row), fields, position, wants_new: false })
    }

    /// App of that name, if the caller may edit jobs in it. Looked up once per request.
    async fn app(&mut self, name: &str) -> Result<AppId, RequestError> {
        if let Some(known) = self.apps.get(name) {
            return known.clone();
        }
        let app = admit_app(self.call, name, EDIT).await.map(|app| app.id);
        if !app.as_ref().is_err_and(RequestError::is_store_failure) {
            self.apps.insert(name.to_owned(), app.clone());
        }
        app
    }

    /// Ids of the child jobs that a body names. A new child needs the right to operate it; an existing one only the
    /// right to view it.
    fn children(&self, body: &JobBody, job: Option<&Job>) -> Result<Vec<JobId>, RequestError> {
        if body.children.len() > CHILDREN_READ {
            return Err(RequestError::field("children", format!("must have at most {CHILDREN_READ} jobs")));
        }
        let who = &self.call.who.principal;
        let find = |name: &String| {
            if let Some((position, app)) = self.added.get(name) {
                return who.may(Rights::OPERATE, *app).then(|| JobId::added_by(*position));
            }
            let child = self.named.get(&child_name(name))?;
            let is_kept = job.is_some_and(|job| job.spec.children.contains(&child.id));
            let right = if is_kept { Rights::VIEW } else { Rights::OPERATE };
            who.may(right, child.spec.app).then_some(child.id)
        };
        let found = |name: &String| {
            let shown: String = name.chars().take(40).collect();
            let none = || RequestError::field("children", format!("the job `{shown}` does not exist"));
            find(name).ok_or_else(none)
        };
        body.children.iter().map(found).collect()
    }
}

/// The jobs in an order in which each comes after its children; those of a cycle come last.
fn in_order(jobs: &[KeyedJob], open: Vec<usize>) -> Vec<usize> {
    let by_key: BTreeMap<&str, usize> =
        open.iter().map(|index| (jobs[*index].key.as_str(), *index)).collect();
    let mut parents: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut waiting: BTreeMap<usize, usize> = BTreeMap::new();
    for index in &open {
        let children: BTreeSet<usize> = jobs[*index]
            .job
            .children
            .iter()
            .filter_map(|child| by_key.get(child.as_str()).copied())
            .collect();
        waiting.insert(*index, children.len());
        children.into_iter().for_each(|child| parents.entry(child).or_default().push(*index));
    }
    let mut order: Vec<usize> = open.iter().copied().filter(|index| waiting[index] == 0).collect();
    let mut next = 0;
    while let Some(child) = order.get(next).copied() {
        next += 1;
        for parent in parents.remove(&child).into_iter().flatten() {
            if let Some(left) = waiting.get_mut(&parent) {
                *left -= 1;
                if *left == 0 {
                    order.push(parent);
                }
            }
        }
    }
    order.extend(open.into_iter().filter(|index| waiting[index] > 0));
    order
}

/// Names of the fields in which the new definition of a job differs.
fn changed_fields(call: &Call, row: &JobRow, spec: &JobSpec, body: &JobBody) -> Vec<String> {
    let shown = |row: &JobRow| -> serde_json::Map<String, Value> {
        // Ids instead of names: nobody reads them.
        let (app, rights) = (row.job.spec.app.0.to_string(), Vec::new());
        let showing = Showing {
            zone: &call.state.zone,
            app,
            rights,
            children: &[],
            all_children: true,
            with_source: true,
            workflows: &BTreeMap::new(),
        };
        let mut body = showing.body(row);
        if let Some(script) = &mut body.script {
            script.remark.clear();
        }
        if let Some(workflow) = &mut body.workflow {
            workflow.remark.clear();
        }
        match serde_json::to_value(body) {
            Ok(Value::Object(fields)) => fields,
            _ => serde_json::Map::new(),
        }
    };
    let tags: BTreeSet<&String> = body.tags.iter().collect();
    let after = JobRow {
        job: Job {
            spec: spec.clone(),
            enabled: body.enabled.unwrap_or(row.job.enabled),
            problem: None,
            ..row.job.clone()
        },
        tags: tags.into_iter().cloned().collect(),
        ..row.clone()
    };
    let (before, after) = (shown(row), shown(&after));
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let changed = names.into_iter().filter(|name| before.get(*name) != after.get(*name)).cloned();
    let is_other = row.job.spec.workflow.is_some() && row.job.spec.workflow != spec.workflow;
    changed.chain(is_other.then(|| "workflow".to_owned())).collect::<BTreeSet<_>>().into_iter().collect()
}

/// The response, with the audit records of the jobs that were changed or rejected.
async fn reply(
    call: &Call,
    jobs: &[KeyedJob],
    done: Vec<Done>,
    request: Value,
) -> Result<Reply, RequestError> {
    let is_dry = request["dry_run"] == true;
    let is_changed = |done: &&Done| matches!(done.outcome, PutOutcome::Created | PutOutcome::Replaced);
    let written = done.iter().filter(is_changed).filter(|_| !is_dry);
    let before: Vec<JobRow> = written.clone().filter_map(|done| done.before.clone()).collect();
    let before = records_of(&call.state.jobs, &before).await?;
    let ids: Vec<JobId> = written.filter_map(|done| done.id).collect();
    let (mut revisions, mut after) = (BTreeMap::new(), BTreeMap::new());
    for ids in ids.chunks(READ_MAX) {
        let rows = call.state.database.job_rows(ids).await?;
        revisions.extend(rows.iter().map(|row| (row.job.id, row.job.revision)));
        after.extend(records_of(&call.state.jobs, &rows).await?);
    }
    let (mut results, mut each, mut counts) = (Vec::new(), Vec::new(), BTreeMap::new());
    for (keyed, done) in jobs.iter().zip(done) {
        let problem = done.refused.as_ref().map(|refused| problem::of_part("/v1/jobs", refused));
        *counts.entry(done.outcome as u8).or_insert(0_u64) += 1;
        if done.outcome != PutOutcome::Unchanged && !is_dry {
            let hidden = done.refused.as_ref().and_then(|refused| refused.object.clone());
            let object = hidden.or(done.id.map(job_name)).unwrap_or_else(|| format!("job:{}", keyed.key));
            let result = problem.as_ref().map_or_else(|| "done".into(), |problem| problem.detail.clone());
            let before = done.id.and_then(|id| before.get(&id).cloned());
            let after = done.id.and_then(|id| after.get(&id).cloned());
            each.push(Noted { action: "job.put", object, result, before, after });
        }
        let known = done.before.as_ref().map(|row| row.job.revision);
        let revision = done.id.and_then(|id| revisions.get(&id).copied()).or(known);
        let (key, outcome, fields) = (keyed.key.clone(), done.outcome, done.fields);
        results.push(PutResult { key, outcome, id: done.id.map(|id| id.0), revision, fields, problem });
    }
    let count = |outcome: PutOutcome| counts.get(&(outcome as u8)).copied().unwrap_or(0);
    let summary = json!({
        "created": count(PutOutcome::Created),
        "replaced": count(PutOutcome::Replaced),
        "unchanged": count(PutOutcome::Unchanged),
        "rejected": count(PutOutcome::Rejected),
        "jobs": listed(&ids),
        "request": request,
    });
    Ok(Reply::json(&results).changed(None, Some(summary)).noting(each))
}

/// Ids for the audit record of a request, for example `1-3,7`; cut if there are very many gaps.
fn listed(ids: &[JobId]) -> String {
    let ids: BTreeSet<i64> = ids.iter().map(|id| id.0).collect();
    let mut ranges: Vec<(i64, i64)> = Vec::new();
    for id in ids {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == id => *last = id,
            _ => ranges.push((id, id)),
        }
    }
    let more = if ranges.len() > RANGES_MAX { ",…" } else { "" };
    let range = |(first, last): &(i64, i64)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    ranges.iter().take(RANGES_MAX).map(range).collect::<Vec<_>>().join(",") + more
}

/// About ten kilobytes of ids.
const RANGES_MAX: usize = 1_000;

// ── One action for many jobs ────────────────────────────────────────────────────────────────────────────────────

pub async fn bulk(call: Call, _: Authorised<Nothing>) -> Result<Reply, RequestError> {
    let bulk: Bulk = call.json()?;
    let ids = chosen(&call, &bulk).await?;
    let moved = match bulk.action {
        BulkAction::Move => {
            Some(admit_app(&call, bulk.app.as_deref().unwrap_or_default(), EDIT).await.map(|app| app.id))
        }
        _ => None,
    };
    let (mut results, mut each) = (Vec::with_capacity(ids.len()), Vec::with_capacity(ids.len()));
    for ids in ids.chunks(BULK_STEP) {
        for (id, done) in act(&call, &bulk, &moved, ids).await? {
            let (result, before, after) = match done {
                Ok((before, after)) => {
                    results.push(BulkResult { job: id.0, problem: None });
                    ("done".into(), before, after)
                }
                Err(refused) => {
                    let problem = problem::of_part("/v1/jobs/bulk", &refused);
                    let detail = problem.detail.clone();
                    results.push(BulkResult { job: id.0, problem: Some(problem) });
                    (detail, None, None)
                }
            };
            let action = match bulk.action {
                BulkAction::Start => "job.start",
                BulkAction::Stop => "job.stop",
                BulkAction::Delete => "job.delete",
                BulkAction::Move => "job.move",
            };
            each.push(Noted { action, object: job_name(id), result, before, after });
        }
    }
    let rejected = results.iter().filter(|result| result.problem.is_some()).count();
    let summary = json!({
        "action": bulk.action,
        "filter": bulk.filter,
        "app": bulk.app,
        "done": results.len() - rejected,
        "rejected": rejected,
        "jobs": listed(&ids),
    });
    Ok(Reply::json(&results).changed(None, Some(summary)).noting(each))
}

/// Jobs whose changes are held in memory, and confirmed by the nodes together.
const BULK_STEP: usize = 10_000;

/// The jobs that the request lists, each once, or all that match its filter.
async fn chosen(call: &Call, bulk: &Bulk) -> Result<Vec<JobId>, RequestError> {
    let filter = match (&bulk.jobs, &bulk.filter) {
        (Some(ids), None) => {
            let mut seen = BTreeSet::new();
            return Ok(ids.iter().copied().filter(|id| seen.insert(*id)).map(JobId).collect());
        }
        (None, Some(filter)) => seen_filter(call, filter),
        _ => return Err(RequestError::field("jobs", "either `jobs` or `filter` is required, not both")),
    };
    let mut found: Vec<JobId> = Vec::new();
    loop {
        let page = call.state.database.job_ids(&filter, found.last().copied(), BULK_STEP).await?;
        let is_last = page.len() < BULK_STEP;
        found.extend(page);
        if is_last {
            return Ok(found);
        }
    }
}

/// The filter for jobs that the caller may view.
fn seen_filter(call: &Call, filter: &JobFilter) -> store::JobFilter {
    let who = &call.who.principal;
    let apps = match &filter.app {
        None => who.apps(),
        Some(name) => {
            let app = call.state.directory.app_named(name).filter(|app| who.may(Rights::VIEW, *app));
            Some(app.into_iter().collect())
        }
    };
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    store::JobFilter {
        apps,
        enabled: filter.enabled,
        handler: text(&filter.handler),
        author: text(&filter.author),
        text: text(&filter.text),
        tag: text(&filter.tag),
        workflow: filter.workflow,
        ..store::JobFilter::default()
    }
}

/// Result for one job: its definition before and after, if the action changes it.
type Acted = Result<(Option<Value>, Option<Value>), RequestError>;

/// Applies the action to jobs, in their order.
async fn act(
    call: &Call,
    bulk: &Bulk,
    moved: &Option<Result<AppId, RequestError>>,
    ids: &[JobId],
) -> Result<Vec<(JobId, Acted)>, RequestError> {
    let defines = matches!(bulk.action, BulkAction::Delete | BulkAction::Move);
    let (who, jobs) = (&call.who.principal, call.jobs());
    let (mut checked, mut changes, mut before) = (Vec::with_capacity(ids.len()), Vec::new(), BTreeMap::new());
    for ids in ids.chunks(READ_MAX) {
        let mut rows = call.state.database.job_rows(ids).await?;
        rows.retain(|row| who.may(Rights::VIEW, row.job.spec.app));
        if defines {
            before.extend(records_of(&call.state.jobs, &rows).await?);
        }
        let rows: BTreeMap<JobId, JobRow> = rows.into_iter().map(|row| (row.job.id, row)).collect();
        for id in ids {
            let row = rows.get(id).ok_or_else(|| RequestError::from(engine::StoreError::NoSuchJob(*id)));
            let check = |row: &JobRow| match moved {
                Some(Err(refused)) => Err(refused.clone()),
                moved => {
                    let app = moved.as_ref().and_then(|app| app.as_ref().ok().copied());
                    jobs.check_bulk(bulk.action, &row.job, app)
                }
            };
            checked.push((*id, row.and_then(check).map(|change| changes.push(change))));
        }
    }
    let mut done = jobs.change(&changes, false).await.into_iter();
    let mut after = BTreeMap::new();
    if bulk.action == BulkAction::Move {
        for ids in ids.chunks(READ_MAX) {
            let rows = call.state.database.job_rows(ids).await?;
            after.extend(records_of(&call.state.jobs, &rows).await?);
        }
    }
    let result = |(id, checked): (JobId, Result<(), RequestError>)| {
        let done = checked.and_then(|()| match done.next() {
            // A job that was deleted in the meantime is no error.
            Some(Err(gone)) if bulk.action == BulkAction::Delete && gone.code == ProblemCode::NotFound => {
                Ok(())
            }
            Some(done) => done.map(drop),
            None => Ok(()),
        });
        (id, done.map(|()| (before.remove(&id), after.remove(&id))))
    };
    Ok(checked.into_iter().map(result).collect())
}

#[cfg(test)]
mod tests {
    use protocol::v1::Schedule;

    use super::*;

    #[test]
    fn ids_are_listed_as_ranges_and_cut() {
        let check = |ids: &[i64], expected: &str| {
            assert_eq!(listed(&ids.iter().copied().map(JobId).collect::<Vec<_>>()), expected);
        };
        check(&[], "");
        check(&[7], "7");
        check(&[3, 1, 2, 9, 2], "1-3,9");
        let gaps: Vec<JobId> = (0..3_000).map(|n| JobId(2 * n)).collect();
        assert!(listed(&gaps).ends_with(",1998,…"));
    }

    #[test]
    fn children_come_first_and_cycles_last() {
        let job = |key: &str, children: &[&str]| KeyedJob {
            key: key.into(),
            job: JobBody {
                children: children.iter().map(|child| (*child).into()).collect(),
                ..JobBody::new("orders", key, Schedule::None)
            },
            revision: None,
            create_only: false,
        };
        let jobs =
            [job("a", &["b", "x"]), job("b", &["c"]), job("c", &[]), job("d", &["e"]), job("e", &["d"])];
        assert_eq!(in_order(&jobs, (0..5).collect()), [2, 1, 0, 3, 4]);
    }
}
