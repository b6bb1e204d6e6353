//! The databases: SQLite, MySQL/MariaDB and PostgreSQL behind [`engine::Store`] and [`Database`].
//!
//! Each method of the store is one transaction. Its steps are written once, over a `Session`; a database implements
//! only the differences: how many rows are written at a time, how they are locked, how its errors are classified.
//! XXL-JOB's tables are our tables: their names for things are used only in `jobs.rs`, `runs.rs` and `records/`.

mod addresses;
mod adopt;
mod agenda;
mod alerts;
mod backfills;
mod calendars;
mod changes;
mod claim;
mod complete;
#[cfg(feature = "conformance")]
#[allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "tests: their names say what they show, and they may panic"
)]
pub mod conformance;
mod control;
mod database;
mod declare;
#[cfg(feature = "conformance")]
pub mod faults;
mod flow;
mod foreign;
mod health;
mod history;
#[cfg(feature = "conformance")]
mod java;
mod jobs;
mod lifeline;
mod moves;
mod mysql;
mod nodes;
mod postgres;
mod prune;
mod read;
mod records;
mod runs;
mod schema;
mod server;
mod session;
mod sqlite;
mod table;
mod wall;
mod withdraw;
mod workflows;
mod writer;

use std::path::Path;
use std::sync::Arc;

use cron::Zone;
use engine::StoreError;
use engine::policy::Repeats;
use timer::SystemClock;

pub use database::Database;
#[cfg(feature = "conformance")]
pub use database::{BrokenRule, Ignored};
pub use flow::{Flow, FlowStep};
pub use mysql::MySqlStore;
pub use postgres::PostgresStore;
pub use records::*;
pub use sqlite::SqliteStore;

/// Opens the store at `url`, and creates missing tables: `sqlite:path/to/file.db`, `sqlite::memory:`,
/// `mysql://user:password@host/database` or `postgres://user:password@host/database`.
///
/// A server URL may name several hosts, for example `postgres://user:password@a,b:5433/database`: the one that accepts
/// writes is used, and after a failover the next one.
///
/// `?shared=true` after a SQLite file lets several processes of one machine use it.
pub async fn open(url: &str, mut options: Options) -> Result<Arc<Database>, StoreError> {
    let Some((scheme, rest)) = url.split_once(':') else {
        return Err(unknown(url));
    };
    match scheme {
        "sqlite" if rest == ":memory:" => {
            options.zone = Zone::utc();
            Ok(Arc::new(SqliteStore::in_memory_with(Arc::new(SystemClock::new()), &options)?))
        }
        "sqlite" => {
            let (path, settings) = rest.split_once('?').unwrap_or((rest, ""));
            options.shared |= match settings {
                "" | "shared=false" => false,
                "shared=true" => true,
                other => {
                    return Err(StoreError::Invalid(format!(
                        "unknown setting `{other}` of a SQLite file; the only one is `shared=true`"
                    )));
                }
            };
            Ok(Arc::new(SqliteStore::open(Path::new(path), options).await?))
        }
        "mysql" | "mariadb" => Ok(Arc::new(MySqlStore::open(url, options).await?)),
        "postgres" | "postgresql" => Ok(Arc::new(PostgresStore::open(url, options).await?)),
        _ => Err(unknown(url)),
    }
}

/// Describes the tables and migrations that opening the store at `url` would add; empty if there are none. Only
/// reads: a missing file is not created.
pub async fn pending(url: &str, options: Options) -> Result<Vec<String>, StoreError> {
    let Some((scheme, rest)) = url.split_once(':') else {
        return Err(unknown(url));
    };
    match scheme {
        "sqlite" if rest == ":memory:" => Ok(Vec::new()),
        "sqlite" => SqliteStore::pending(Path::new(rest.split('?').next().unwrap_or(rest))).await,
        "mysql" | "mariadb" => MySqlStore::pending(url, &options).await,
        "postgres" | "postgresql" => PostgresStore::pending(url, &options).await,
        _ => Err(unknown(url)),
    }
}

/// An error without the URL, which may contain a password.
fn unknown(url: &str) -> StoreError {
    let scheme = url.split(':').next().unwrap_or_default();
    StoreError::Invalid(format!(
        "unknown database `{scheme}`; a URL begins with `sqlite:`, `mysql://` or `postgres://`"
    ))
}

/// Options of a database.
#[derive(Clone, Debug)]
pub struct Options {
    /// Time zone of XXL-JOB's `DATETIME` columns, and of cron jobs without a zone. All nodes of one database must
    /// agree. Default: the machine's.
    pub zone: Zone,
    /// SQLite: several processes of this machine use the file. Each transaction then waits for the others', and a
    /// dead process is noticed only when its lease ends. Default: false.
    pub shared: bool,
    /// MySQL, PostgreSQL: maximum connections, not including one for the lifeline. Default: 8.
    pub connections: u32,
    /// Whether Java admins of XXL-JOB use the same database. Default: [`JavaAdmins::Auto`].
    pub java_admins: JavaAdmins,
    /// How repeated incidents are grouped into one alert instead of being notified again. Default: `None`, each is
    /// notified.
    pub repeats: Option<Repeats>,
}

/// Whether Java admins of XXL-JOB use the same database: then each claim takes the lock that they take, and all
/// admins claim one after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JavaAdmins {
    /// Assume so if XXL-JOB's tables existed before ours.
    #[default]
    Auto,
    /// They do, or may at any time.
    Beside,
    /// They do not, and will not: nodes claim concurrently.
    None,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            zone: Zone::system(),
            shared: false,
            connections: 8,
            java_admins: JavaAdmins::Auto,
            repeats: None,
        }
    }
}
