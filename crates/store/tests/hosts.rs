//! Facts about the hosts of a database, and a PostgreSQL server that is not the one that acknowledged the last commits.
//!
//! The URLs of MariaDB and PostgreSQL are in `TICKWRIGHT_TEST_MYSQL_URL` and `TICKWRIGHT_TEST_POSTGRES_URL`; without them
//! the tests print that and pass.
#![cfg(feature = "conformance")]
#![allow(clippy::unwrap_used, reason = "these are tests")]

use cron::Schedule;
use engine::{JobSpec, Store as _, Trigger};
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};
use tickwright_store::{HostFacts, Options, PostgresStore, hosts};

#[tokio::test]
async fn each_host_is_asked() {
    assert_eq!(hosts("sqlite:a.db").await.unwrap(), []);
    for variable in ["TICKWRIGHT_TEST_MYSQL_URL", "TICKWRIGHT_TEST_POSTGRES_URL"] {
        let Some(url) = url(variable) else { continue };
        // Nothing listens at the first one.
        let both = url.replacen('@', "@127.0.0.1:1,", 1);
        let answers = hosts(&both).await.unwrap();
        let [Err(_), Ok(facts)] = &answers[..] else { panic!("{answers:?}") };
        let HostFacts { clock, galera, replication } = facts;
        assert!(clock.offset_ms > 0 && clock.within_ms > 0, "{clock:?}");
        assert_eq!(*galera, None);
        assert_eq!(replication.is_some(), url.starts_with("postgres"));
        if let Some(replication) = replication {
            assert!(!replication.is_standby && replication.timeline >= 1, "{replication:?}");
            assert_eq!(replication.standbys, 0);
        }
    }
}

#[tokio::test]
async fn ids_of_runs_continue_after_a_gap_on_another_timeline() {
    let Some(server) = url("TICKWRIGHT_TEST_POSTGRES_URL") else { return };
    let name = format!("tickwright_timeline_{}", std::process::id());
    let mut connection = PgConnection::connect(&server).await.unwrap();
    connection.execute(AssertSqlSafe(format!("CREATE DATABASE {name}"))).await.unwrap();
    let (address, _) = server.rsplit_once('/').unwrap();
    let url = format!("{address}/{name}");
    let first = run(&url, 1).await;
    let second = run(&url, 2).await;
    assert_eq!(second, first + 1, "the timeline is the same");
    let mut connection = PgConnection::connect(&url).await.unwrap();
    connection.execute("UPDATE tw_counter SET value = value + 1 WHERE name = 'timeline'").await.unwrap();
    let third = run(&url, 3).await;
    assert!(third > second + 1_000_000, "{third} after {second}");
    assert_eq!(run(&url, 4).await, third + 1, "the gap is left once");
}

/// Starts a process, as far as the database is concerned, and triggers a run.
async fn run(url: &str, key: i64) -> i64 {
    let store = PostgresStore::open(url, Options::default()).await.unwrap();
    let app = store.ensure_app("app").await.unwrap();
    let job = match store.jobs(None, 1).await.unwrap().first() {
        Some(job) => job.id,
        None => store.create_job(&JobSpec::new(app, "job", Schedule::Never, "handler")).await.unwrap(),
    };
    let trigger = Trigger { key, at: None, param: None, address: None, by: None };
    store.trigger(job, &trigger).await.unwrap().0
}

fn url(variable: &str) -> Option<String> {
    let url = std::env::var(variable).ok();
    if url.is_none() {
        println!("skipped: {variable} is not set");
    }
    url
}
