//! Handlers that executors report: rows of `tw_executor_handlers`, one per row of `xxl_job_registry`.

use std::collections::BTreeMap;

use super::counters::{self, REGISTRY};
use super::registry::{self, Registration};
use crate::schema::check_text;
use crate::session::{Columns, Lock, Session, SessionError};

pub async fn note_handlers(
    s: &mut dyn Session,
    executor: &Registration,
    handlers: &[String],
) -> Result<bool, SessionError> {
    let Some(id) = registry::id_of(s, executor).await? else { return Ok(false) };
    let names = written(handlers);
    check_text(&names)?;
    let sql = "SELECT handlers FROM tw_executor_handlers WHERE registry_id = ?";
    let known = s.query(sql, &[id.into()], Lock::None).await?.into_iter().next();
    if known.map(|row| row.read().text()).transpose()?.as_deref() == Some(names.as_str()) {
        return Ok(false);
    }
    // Makes other nodes reread the handlers, and serializes concurrent writers.
    counters::raise(s, REGISTRY).await?;
    // Java admins delete executors without deleting these rows.
    let sql = "DELETE FROM tw_executor_handlers WHERE registry_id NOT IN (SELECT id FROM xxl_job_registry)";
    s.execute(sql, &[]).await?;
    s.delete("tw_executor_handlers", "registry_id", &[id]).await?;
    let into = Columns { table: "tw_executor_handlers", keys: &[], columns: &["registry_id", "handlers"] };
    s.insert(into, vec![vec![id.into(), names.into()]]).await?;
    Ok(true)
}

/// As many names as fit into the column, one per line.
fn written(handlers: &[String]) -> String {
    let mut names = String::new();
    for handler in handlers.iter().filter(|handler| !handler.contains('\n')) {
        if names.len() + handler.len() >= NAMES_MAX {
            break;
        }
        names.push_str(handler);
        names.push('\n');
    }
    names
}

/// Bytes of a text column in MySQL.
const NAMES_MAX: usize = 65_535;

pub async fn handlers(s: &mut dyn Session) -> Result<BTreeMap<Registration, Vec<String>>, SessionError> {
    let sql = "SELECT r.registry_key, r.registry_value, e.handlers FROM tw_executor_handlers e \
               JOIN xxl_job_registry r ON r.id = e.registry_id WHERE r.registry_group = 'EXECUTOR'";
    let mut found = BTreeMap::new();
    for row in s.query(sql, &[], Lock::None).await? {
        let mut row = row.read();
        let executor = Registration { app: row.text()?, address: row.text()? };
        found.insert(executor, row.text()?.lines().map(str::to_owned).collect());
    }
    Ok(found)
}
