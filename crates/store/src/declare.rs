//! Declarations of jobs by programs, stored next to the jobs.

use std::collections::BTreeMap;

use engine::policy::Named;
use engine::{AppId, Declaration, Declared, JobId, JobSpec, Planner, StoreError};

use crate::control;
use crate::database::Tables;
use crate::jobs::{self, check_text};
use crate::session::{Columns, Lock, Session, SessionError, Value};

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
    let texts = [
        ("handler", Some(declaration.handler.as_str())),
        ("name", declaration.name.as_deref()),
        ("param", declaration.param.as_deref()),
        ("route", declaration.route.as_ref().map(Named::stored)),
    ];
    for (column, text) in texts {
        let text = text.unwrap_or_default();
        check_text(text)?;
        tables.schema.check_fits("tw_declaration", column, text)?;
    }
    Ok(())
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
    let job = control::create_job(s, tables, &spec).await.map_err(overtaken)?;
    // If another process was faster, this insert or the key collides, and the retry finds its job.
    insert(s, job, words(tables, declaration)?).await?;
    let at = s.now().await?;
    control::start(s, tables, jobs::new(job, spec.clone()), at, planner).await?;
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
    let rows = select(s, &[id.0]).await?.remove(&id.0);
    let before = rows.clone().map(|row| read(tables, row)).transpose()?;
    let merged = declaration.merged(before.as_ref(), &job.spec);
    let cancelling = match merged == job.spec {
        true => 0,
        false => {
            let at = s.now().await?;
            control::edit(s, tables, job.clone(), at, &merged, None, planner).await?
        }
    };
    let words = words(tables, declaration)?;
    match rows {
        None => insert(s, id, words).await?,
        Some(known) if known != words => {
            let mut row = vec![id.0.into()];
            row.extend(words);
            s.update(Columns { table: TABLE, keys: &["job_id"], columns: &COLUMNS }, vec![row]).await?;
        }
        Some(_) => {}
    }
    let after = engine::Job { spec: merged, ..job.clone() };
    let overridden = declaration.overridden(&after);
    Ok(Declared { job: id, before: Some(job.spec), after: after.spec, overridden, cancelling })
}

// ── Rows ────────────────────────────────────────────────────────────────────────────────────────────────────────

const TABLE: &str = "tw_declaration";

/// Columns of a declaration, in the order of [`words`].
const COLUMNS: [&str; 11] = [
    "app_id",
    "handler",
    "name",
    "param",
    "timeout_ms",
    "retries",
    "route",
    "schedule_kind",
    "schedule_text",
    "zone",
    "dst_rule",
];

fn words(tables: &Tables, declaration: &Declaration) -> Result<Vec<Value>, StoreError> {
    let Declaration { app, handler, schedule, name, param, timeout, retries, route } = declaration;
    let timeout = timeout.map(|timeout| i64::try_from(timeout.as_millis()).unwrap_or(i64::MAX));
    let mut words: Vec<Value> = vec![
        app.0.into(),
        handler.as_str().into(),
        name.as_deref().into(),
        param.as_deref().into(),
        timeout.into(),
        retries.map(i64::from).into(),
        route.as_ref().map(Named::stored).into(),
    ];
    words.extend(jobs::schedule_words(schedule, tables)?);
    Ok(words)
}

fn read(tables: &Tables, words: Vec<Value>) -> Result<Declaration, SessionError> {
    let mut row = crate::session::Row(words).read();
    Ok(Declaration {
        app: AppId(row.int()?),
        handler: row.text()?,
        name: row.maybe_text()?,
        param: row.maybe_text()?,
        timeout: row.maybe_int()?.map(jobs::millis),
        retries: row.maybe_int()?.map(|retries| u32::try_from(retries).unwrap_or(0)),
        route: row.maybe_text()?.as_deref().map(Named::from_stored),
        schedule: jobs::schedule_of_words(&mut row, tables)?,
    })
}

async fn insert(s: &mut dyn Session, job: JobId, words: Vec<Value>) -> Result<(), SessionError> {
    let columns = [&["job_id"], &COLUMNS[..]].concat();
    let mut row = vec![job.0.into()];
    row.extend(words);
    s.insert(Columns { table: TABLE, keys: &[], columns: &columns }, vec![row]).await
}

async fn select(s: &mut dyn Session, jobs: &[i64]) -> Result<BTreeMap<i64, Vec<Value>>, SessionError> {
    if jobs.is_empty() {
        return Ok(BTreeMap::new());
    }
    let sql = format!("SELECT job_id, {} FROM {TABLE} WHERE job_id IN ?", COLUMNS.join(", "));
    let mut found = BTreeMap::new();
    for mut row in s.query(&sql, &[Value::Ids(jobs.to_vec())], Lock::None).await? {
        let words = row.0.split_off(1);
        found.insert(row.read().int()?, words);
    }
    Ok(found)
}

/// Declarations of these jobs; jobs without one are omitted.
pub async fn declarations_of(
    s: &mut dyn Session,
    tables: &Tables,
    jobs: &[i64],
) -> Result<BTreeMap<i64, Declaration>, SessionError> {
    let rows = select(s, jobs).await?;
    rows.into_iter().map(|(job, words)| Ok((job, read(tables, words)?))).collect()
}

/// Deletes the declaration of a deleted job.
pub async fn forget(s: &mut dyn Session, job: JobId) -> Result<(), SessionError> {
    s.delete(TABLE, "job_id", &[job.0]).await.map(drop)
}
