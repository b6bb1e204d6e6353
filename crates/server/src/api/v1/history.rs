//! The part of a job's history that the caller may see.
//!
//! A job may have been moved from an app that the caller may not view. Its history there (definitions, scripts,
//! missed fires) stays hidden: the caller sees the job's history from that move on.

use std::collections::BTreeSet;
use std::time::Duration;

use engine::JobId;
use serde_json::Value;
use store::{AuditFilter, AuditRecord, Page, Paged, Rights, ScriptVersion};
use timer::Timestamp;

use super::authorise::{child_name, find_jobs, job_name};
use super::call::Call;
use crate::request_error::RequestError;

/// The last move of a job out of an app that the caller may not view.
#[derive(Clone, Copy, Debug)]
pub struct Move {
    record: i64,
    at: Timestamp,
}

/// The last such move, or `None` if the caller may see the whole history of the job.
pub async fn hidden_before(call: &Call, job: JobId) -> Result<Option<Move>, RequestError> {
    if call.who.principal.apps().is_none() {
        return Ok(None);
    }
    let mut last: Option<Move> = None;
    for action in MOVING {
        let object = Some(job_name(job));
        let filter = AuditFilter { object, action: Some(action.into()), ..AuditFilter::default() };
        let mut page = Page::first(PAGE);
        for _ in 0..PAGES_MAX {
            let found = call.state.database.audit_page(&filter, page).await?;
            if let Some(record) = found.rows.iter().find(|record| leaves_hidden_app(call, record)) {
                last = later(last, record);
                break;
            }
            let Some(next) = found.next else { break };
            page = Page::After { after: Some(next), limit: PAGE };
        }
    }
    Ok(last)
}

fn later(one: Option<Move>, other: &AuditRecord) -> Option<Move> {
    let other = Move { record: other.id, at: other.at };
    Some(one.filter(|one| one.record > other.record).unwrap_or(other))
}

fn leaves_hidden_app(call: &Call, record: &AuditRecord) -> bool {
    let app = |text: &Option<String>| -> Option<String> {
        let written: Value = serde_json::from_str(text.as_deref()?).ok()?;
        Some(written.get("app")?.as_str()?.to_owned())
    };
    let Some(before) = app(&record.entry.before) else { return false };
    let is_seen = |name: &str| {
        let app = call.state.directory.app_named(name);
        app.is_some_and(|app| call.who.principal.may(Rights::VIEW, app))
    };
    record.entry.result == "done" && app(&record.entry.after).as_ref() != Some(&before) && !is_seen(&before)
}

impl Move {
    /// Whether an event at that time is visible.
    pub fn shows(self, at: Timestamp) -> bool {
        at >= self.at
    }

    /// Drops versions of a script, newest first, that may be older than the move. The newest version is always
    /// kept, because it is the one that runs now.
    pub fn cut_versions(self, versions: &mut Vec<ScriptVersion>) {
        let mut visible = 1;
        for (index, version) in versions.iter().enumerate() {
            let before = versions.get(index + 1).and_then(|before| before.saved_at);
            // A version saved right after another one may carry a later time than the real one.
            let is_exact = |at: Timestamp| before.is_none_or(|before| at > before + VERSIONS_APART);
            if version.saved_at.is_some_and(|at| self.shows(at) && is_exact(at)) {
                visible = index + 1;
            }
        }
        versions.truncate(visible);
    }

    /// Drops changes before the move, and the old definition from the record of the move itself.
    pub fn cut_changes(self, found: &mut Paged<AuditRecord>) {
        cut(found, |record| record.id >= self.record);
        for record in &mut found.rows {
            if record.id == self.record {
                record.entry.before = None;
            }
        }
    }
}

/// Versions are dated to the second, each at least one second after the version before it.
const VERSIONS_APART: Duration = Duration::from_secs(1);

/// Keeps the visible rows, newest first. After the first hidden row no visible one follows.
pub fn cut<T>(found: &mut Paged<T>, is_visible: impl Fn(&T) -> bool) {
    let all = found.rows.len();
    found.rows.retain(is_visible);
    if found.rows.len() < all {
        found.next = None;
    }
}

/// Removes from definitions the children and the jobs of steps that the caller may not view.
pub async fn hide_jobs(call: &Call, definitions: &mut [&mut Value]) -> Result<(), RequestError> {
    if call.who.principal.apps().is_none() {
        return Ok(());
    }
    let mut names = BTreeSet::new();
    for definition in definitions.iter_mut() {
        let children = definition.get("children").and_then(Value::as_array).into_iter().flatten();
        names.extend(children.filter_map(Value::as_str).map(child_name));
        names.extend(step_jobs(definition).filter_map(|job| job.as_str().map(str::to_owned)));
    }
    let found = find_jobs(call, names.iter().map(String::as_str)).await?;
    let is_shown =
        |name: &str| found.get(name).is_some_and(|job| call.who.principal.may(Rights::VIEW, job.spec.app));
    for definition in definitions {
        if let Some(children) = definition.get_mut("children").and_then(Value::as_array_mut) {
            children.retain(|child| child.as_str().is_some_and(|child| is_shown(&child_name(child))));
        }
        for job in step_jobs(definition).filter(|job| !job.as_str().is_some_and(is_shown)) {
            *job = HIDDEN.into();
        }
    }
    Ok(())
}

/// Names of the jobs that the steps of a definition run.
fn step_jobs(definition: &mut Value) -> impl Iterator<Item = &mut Value> {
    let steps = definition.pointer_mut("/workflow/steps").and_then(Value::as_array_mut);
    let fields = steps.into_iter().flatten().filter_map(Value::as_object_mut).flatten();
    fields
        .filter(|(name, job)| matches!(name.as_str(), "job" | "workflow") && job.is_string())
        .map(|(_, job)| job)
}

/// Stands for the name of a job that the caller may not view.
const HIDDEN: &str = "(hidden)";

/// Audit actions that can move a job into another app.
const MOVING: [&str; 3] = ["job.put", "job.move", "/jobinfo/update"];

/// Audit records read per page.
const PAGE: usize = 200;

/// Upper limit of pages; people edit a job far less often.
const PAGES_MAX: usize = 50;
