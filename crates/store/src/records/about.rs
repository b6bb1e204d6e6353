//! Facts about the database, for operators.

use engine::StoreError;
use timer::Timestamp;

use crate::database::{Database, Tables, transaction};
use crate::schema::Dialect;
use crate::session::{Session, SessionError};

impl Database {
    /// Returns facts about the database.
    pub async fn about(&self) -> Result<About, StoreError> {
        transaction!(self, s => about(s, &self.tables))
    }
}

/// Facts about the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// Database product, for example `SQLite`.
    pub kind: &'static str,
    /// XXL-JOB releases that have these tables.
    pub generation: &'static str,
    /// Whether XXL-JOB's tables existed before ours.
    pub was_xxl_jobs: bool,
    /// Time of the database's clock.
    pub now: Timestamp,
}

pub async fn about(s: &mut dyn Session, tables: &Tables) -> Result<About, SessionError> {
    let schema = &tables.schema;
    let kind = match schema.dialect() {
        Dialect::Sqlite => "SQLite",
        Dialect::MySql => "MySQL or MariaDB",
        Dialect::Postgres => "PostgreSQL",
    };
    let (generation, was_xxl_jobs) = (schema.generation(), schema.was_xxl_jobs());
    Ok(About { kind, generation, was_xxl_jobs, now: s.now().await? })
}
