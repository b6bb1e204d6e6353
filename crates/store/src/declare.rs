//! Declarations of jobs by programs, stored next to the jobs.

use std::collections::BTreeMap;

use engine::policy::Named;
use engine::{AppId, Change, Control, Declaration, Declared, JobId, JobSpec, NewJob, Planner, StoreError};

use crate::database::Tables;
use crate::jobs::{self, ScheduleWords};
use crate::session::{Lock, Row, Session, SessionError, Value};
use crate::table::table;
use crate::{changes, control};

pub async fn declare(
    s: &mut dyn Session,
    tables: &Tables,
    declaration: &Declaration,
    key: &str,
    planner: &dyn Planner,
) -> Result<Declared, SessionError> {
    check(tables, declaration)?;
    match find(s, declaration, key).await? {
        Some(job) => change(s, tables, declaration, job, planner).await,
        None => create(s, tables, declaration, key, planner).await,
    }
}

fn check(tables: &Tables, declaration: &Declaration) -> Result<(), StoreError> {
    let (into, row) = DeclarationRow::INSERT;
    let words = &jobs::schedule_words(&declaration.schedule, tables)?;
    tables.schema.check_row(into, &row(Declares { job: JobId(0), declaration, words }))
}

// ── Finding ─────────────────────────────────────────────────────────────────────────────────────────────────────

/// Finds the declared job.
async fn find(
    s: &mut dyn Session,
    declaration: &Declaration,
    key: &str,
) -> Result<Option<JobId>, SessionError> {
    let Declaration { app, handler, .. } = declaration;
    let sql = "SELECT job_id FROM tw_declaration WHERE app_id = ? AND handler = ?";
    let declared = s.query(sql, &[app.0.into(), handler.as_str().into()], Lock::None).await?;
    if let Some(row) = declared.into_iter().next() {
        return Ok(Some(JobId(row.read().int()?)));
    }
    let sql = "SELECT job_id FROM tw_job WHERE job_key = ?";
    if let Some(row) = s.query(sql, &[key.into()], Lock::None).await?.into_iter().next() {
        return Ok(Some(JobId(row.read().int()?)));
    }
    match callers(s, *app, handler).await?.as_slice() {
        [] => Ok(None),
        [job] => Ok(Some(*job)),
        [one, other, ..] => Err(StoreError::Conflict(format!(
            "jobs {one} and {other} both call the handler `{handler}`; delete all but one"
        ))
        .into()),
    }
}

/// Jobs of an app that call a handler and are not declared by a program: another job for this handler would do the
/// work twice.
async fn callers(s: &mut dyn Session, app: AppId, handler: &str) -> Result<Vec<JobId>, SessionError> {
    let sql = "SELECT id, executor_handler FROM xxl_job_info WHERE job_group = ? AND executor_handler = ? \
               AND glue_type = 'BEAN' AND id NOT IN (SELECT job_id FROM tw_declaration) ORDER BY id";
    let mut found = Vec::new();
    for row in s.query(sql, &[app.0.into(), handler.into()], Lock::None).await? {
        let mut row = row.read();
        let (id, name) = (JobId(row.int()?), row.text()?);
        // Some databases compare case-insensitively.
        if name == handler {
            found.push(id);
        }
    }
    Ok(found)
}

// ── Creating and changing ───────────────────────────────────────────────────────────────────────────────────────

async fn create(
    s: &mut dyn Session,
    tables: &Tables,
    declaration: &Declaration,
    key: &str,
    planner: &dyn Planner,
) -> Result<Declared, SessionError> {
    let spec = JobSpec { key: Some(key.to_owned()), ..declaration.spec() };
    let new = NewJob { enabled: true, ..NewJob::stopped(spec.clone()) };
    let added = changes::change_jobs(s, tables, &[Change::Add(Box::new(new))], true, 0, planner).await?;
    let job = added.only().map_err(SessionError::from).map_err(overtaken)?;
    // If another process was faster, this insert or the key collides, and the retry finds its job.
    insert(s, tables, job, declaration).await?;
    Ok(Declared { job, before: None, after: spec, overridden: Vec::new(), cancelling: 0 })
}

/// A key that was free was taken by another process meanwhile: the retry finds its job.
fn overtaken(error: SessionError) -> SessionError {
    match error {
        SessionError::Store(StoreError::Conflict(why)) => SessionError::Collision(why),
        other => other,
    }
}

async fn change(
    s: &mut dyn Session,
    tables: &Tables,
    declaration: &Declaration,
    id: JobId,
    planner: &dyn Planner,
) -> Result<Declared, SessionError> {
    let job = match control::lock_job(s, tables, id, planner).await {
        Ok(stored) => stored.job,
        Err(SessionError::Store(StoreError::NoSuchJob(_))) => {
            return Err(SessionError::Collision(format!("job {id} was deleted in the meantime")));
        }
        Err(error) => return Err(error),
    };
    if job.spec.app != declaration.app {
        return Err(StoreError::Conflict(format!(
            "job {id} belongs to another app; move it back, delete it, or rename the handler"
        ))
        .into());
    }
    // Only now, with the job's row locked: until then another process may have declared it differently.
    let before = declarations_of(s, tables, &[id.0]).await?.remove(&id.0);
    let merged = declaration.merged(before.as_ref(), &job.spec);
    let cancelling = match merged == job.spec {
        true => 0,
        false => {
            let edit = Control::Edit { spec: Box::new(merged.clone()), revision: None };
            let edited =
                changes::change_jobs(s, tables, &[Change::Control(id, edit)], true, 0, planner).await?;
            let cancelling = edited.cancelling.iter().map(|(_, runs)| runs).sum();
            edited.only()?;
            cancelling
        }
    };
    match before {
        None => insert(s, tables, id, declaration).await?,
        Some(known) => {
            let (set, _) = DeclarationRow::EDIT;
            let (known, declared) = (edit(tables, id, &known)?, edit(tables, id, declaration)?);
            if known != declared {
                s.update(set, vec![declared]).await?;
            }
        }
    }
    let after = engine::Job { spec: merged, ..job.clone() };
    let overridden = declaration.overridden(&after);
    Ok(Declared { job: id, before: Some(job.spec), after: after.spec, overridden, cancelling })
}

// ── Rows ────────────────────────────────────────────────────────────────────────────────────────────────────────

/// Table of the declarations.
pub const TABLE: &str = "tw_declaration";

/// A declaration to write.
#[derive(Clone, Copy)]
struct Declares<'a> {
    job: JobId,
    declaration: &'a Declaration,
    words: &'a ScheduleWords,
}

table! {
    /// Row of `tw_declaration`.
    struct DeclarationRow in "tw_declaration" of row: Declares<'_> {
        job_id: JobId = row.job,
    }
    edited by job_id {
        app_id: AppId = row.declaration.app,
        handler: String = row.declaration.handler.as_str(),
        name: Option<String> = row.declaration.name.as_deref(),
        param: Option<String> = row.declaration.param.as_deref(),
        timeout_ms: Option<i64> = row.declaration.timeout.map(jobs::whole_millis),
        retries: Option<u32> = row.declaration.retries.map(i64::from),
        route: Option<String> = row.declaration.route.as_ref().map(Named::stored),
        schedule_kind: Option<String> = row.words.kind.as_deref(),
        schedule_text: Option<String> = row.words.text.as_deref(),
        zone: Option<String> = row.words.zone.as_deref(),
        dst_rule: Option<String> = row.words.dst_rule.as_deref(),
    }
}

fn read(tables: &Tables, row: DeclarationRow) -> Declaration {
    let words = ScheduleWords {
        kind: row.schedule_kind,
        text: row.schedule_text,
        zone: row.zone,
        dst_rule: row.dst_rule,
    };
    Declaration {
        app: row.app_id,
        handler: row.handler,
        name: row.name,
        param: row.param,
        timeout: row.timeout_ms.map(jobs::millis),
        retries: row.retries,
        route: row.route.as_deref().map(Named::from_stored),
        schedule: jobs::schedule_of_words(words, tables),
    }
}

fn edit(tables: &Tables, job: JobId, declaration: &Declaration) -> Result<Vec<Value>, StoreError> {
    let words = &jobs::schedule_words(&declaration.schedule, tables)?;
    let (_, row) = DeclarationRow::EDIT;
    Ok(row(Declares { job, declaration, words }))
}

async fn insert(
    s: &mut dyn Session,
    tables: &Tables,
    job: JobId,
    declaration: &Declaration,
) -> Result<(), SessionError> {
    let words = &jobs::schedule_words(&declaration.schedule, tables)?;
    let (into, row) = DeclarationRow::INSERT;
    s.insert(into, vec![row(Declares { job, declaration, words })]).await
}

/// Declarations of these jobs; jobs without one are omitted.
pub async fn declarations_of(
    s: &mut dyn Session,
    tables: &Tables,
    jobs: &[i64],
) -> Result<BTreeMap<i64, Declaration>, SessionError> {
    if jobs.is_empty() {
        return Ok(BTreeMap::new());
    }
    let sql = format!("SELECT {} FROM tw_declaration WHERE job_id IN ?", DeclarationRow::LIST);
    let rows = s.query(&sql, &[Value::Ids(jobs.to_vec())], Lock::None).await?;
    let read = |row: Row| -> Result<(i64, Declaration), SessionError> {
        let row = DeclarationRow::read(&mut row.read())?;
        Ok((row.job_id.0, read(tables, row)))
    };
    rows.into_iter().map(read).collect()
}
