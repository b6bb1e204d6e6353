//! Settings shared by all nodes of a database.

use crate::database::{Database, Tables, transaction};
use crate::schema::check_text;
use crate::session::{Columns, Lock, Session, SessionError};
use engine::StoreError;

impl Database {
    /// Returns the value of a setting.
    pub async fn setting(&self, name: &str) -> Result<Option<String>, StoreError> {
        transaction!(self, s => setting(s, name))
    }

    /// Sets a setting.
    pub async fn set_setting(&self, name: &str, value: &str) -> Result<(), StoreError> {
        transaction!(self, s => set_setting(s, &self.tables, name, value))
    }

    /// Sets a setting if it has no value; returns the value in effect, the same for all concurrent callers.
    pub async fn set_setting_if_absent(&self, name: &str, value: &str) -> Result<String, StoreError> {
        transaction!(self, s => set_setting_if_absent(s, &self.tables, name, value))
    }
}

pub async fn setting(s: &mut dyn Session, name: &str) -> Result<Option<String>, SessionError> {
    let rows = s.query("SELECT value FROM tw_setting WHERE name = ?", &[name.into()], Lock::None).await?;
    rows.into_iter().next().map(|row| row.read().text()).transpose()
}

pub async fn set_setting(
    s: &mut dyn Session,
    tables: &Tables,
    name: &str,
    value: &str,
) -> Result<(), SessionError> {
    check(tables, name, value)?;
    let sql = "UPDATE tw_setting SET value = ? WHERE name = ?";
    if s.execute(sql, &[value.into(), name.into()]).await? == 0 {
        insert(s, name, value).await?;
    }
    Ok(())
}

pub async fn set_setting_if_absent(
    s: &mut dyn Session,
    tables: &Tables,
    name: &str,
    value: &str,
) -> Result<String, SessionError> {
    check(tables, name, value)?;
    if let Some(stands) = setting(s, name).await? {
        return Ok(stands);
    }
    // If another node is faster, this collides, and the retry returns that node's value.
    insert(s, name, value).await?;
    Ok(value.to_owned())
}

fn check(tables: &Tables, name: &str, value: &str) -> Result<(), SessionError> {
    for (column, text) in [("name", name), ("value", value)] {
        check_text(text)?;
        tables.schema.check_fits("tw_setting", column, text)?;
    }
    Ok(())
}

async fn insert(s: &mut dyn Session, name: &str, value: &str) -> Result<(), SessionError> {
    let into = Columns { table: "tw_setting", keys: &[], columns: &["name", "value"] };
    s.insert(into, vec![vec![name.into(), value.into()]]).await
}
