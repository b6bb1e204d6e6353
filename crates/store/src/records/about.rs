//! What database this is, for people who look after it.

use timer::Timestamp;

use crate::schema::Dialect;
use crate::session::{Session, SessionError};
use crate::sql_store::Tables;

/// What database this is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// Its kind.
    pub kind: &'static str,
    /// The releases of XXL-JOB whose tables look like these.
    pub generation: &'static str,
    /// Whether XXL-JOB's tables were there before us.
    pub was_xxl_jobs: bool,
    /// What its clock shows.
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
