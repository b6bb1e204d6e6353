//! Runs the one test suite on every database.
//!
//! The URLs of MariaDB and PostgreSQL are in `TICKWRIGHT_TEST_MYSQL_URL` and `TICKWRIGHT_TEST_POSTGRES_URL`; if a
//! variable is not set, its tests print that and pass. `scripts/databases run -- cargo test …` starts both.
#![cfg(feature = "conformance")]
#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use cron::Zone;
use engine::policy::Repeats;
use sqlx::{AssertSqlSafe, Connection, Executor, MySqlConnection, PgConnection};
use tickwright_store::conformance::Fresh;
use tickwright_store::{MySqlStore, Options, PostgresStore, SqliteStore};
use timer::SystemClock;

mod sqlite_in_memory {
    use super::*;

    async fn fresh() -> Option<Fresh> {
        Some(SqliteStore::in_memory_with(Arc::new(SystemClock::new()), &options()).unwrap().into())
    }

    tickwright_store::conformance_tests!(fresh);
}

mod sqlite_file {
    use super::*;

    async fn fresh() -> Option<Fresh> {
        let folder = std::env::temp_dir().join(name());
        std::fs::create_dir(&folder).unwrap();
        let store = SqliteStore::open(&folder.join("store.db"), options()).await.unwrap();
        // The file stays usable while it is open, and needs no cleanup.
        std::fs::remove_dir_all(&folder).unwrap();
        Some(store.into())
    }

    tickwright_store::conformance_tests!(fresh);
}

mod mysql {
    use super::*;

    async fn fresh() -> Option<Fresh> {
        let server = url("TICKWRIGHT_TEST_MYSQL_URL")?;
        let database = name();
        let mut connection = MySqlConnection::connect(&server).await.unwrap();
        let create = format!("CREATE DATABASE {database} CHARACTER SET utf8mb4");
        connection.execute(AssertSqlSafe(create)).await.unwrap();
        Some(MySqlStore::open(&with_database(&server, &database), options()).await.unwrap().into())
    }

    tickwright_store::conformance_tests!(fresh);
}

mod postgres {
    use super::*;

    async fn fresh() -> Option<Fresh> {
        let server = url("TICKWRIGHT_TEST_POSTGRES_URL")?;
        let database = name();
        let mut connection = PgConnection::connect(&server).await.unwrap();
        connection.execute(AssertSqlSafe(format!("CREATE DATABASE {database}"))).await.unwrap();
        Some(PostgresStore::open(&with_database(&server, &database), options()).await.unwrap().into())
    }

    tickwright_store::conformance_tests!(fresh);
}

fn url(variable: &str) -> Option<String> {
    let url = std::env::var(variable).ok();
    if url.is_none() {
        println!("skipped: {variable} is not set");
    }
    url
}

/// A name that is unique on this machine.
fn name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("tickwright_{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

fn with_database(server: &str, database: &str) -> String {
    let (address, settings) = server.split_once('?').unwrap_or((server, ""));
    let host_end =
        address.rfind('/').filter(|slash| !address[..*slash].ends_with('/')).unwrap_or(address.len());
    let settings = if settings.is_empty() { String::new() } else { format!("?{settings}") };
    format!("{}/{database}{settings}", &address[..host_end])
}

/// A zone that is not the machine's.
fn options() -> Options {
    let repeats = Some(Repeats::USUAL);
    Options { zone: Zone::parse("Asia/Shanghai").unwrap(), repeats, ..Options::default() }
}
