//! Runs the tests of several servers on a Galera cluster.
//!
//! The URLs of its servers are in `TICKWRIGHT_TEST_GALERA_URLS`; if it is not set, the tests print that and pass.
//! `scripts/databases run --galera -- cargo test …` starts a cluster.
#![cfg(feature = "conformance")]
#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use sqlx::{AssertSqlSafe, Connection, Executor, MySqlConnection};
use tickwright_store::conformance::servers;
use tickwright_store::{Database, MySqlStore, Options, hosts};

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_may_not_overlap_runs_once() {
    if let Some(stores) = stores("once").await {
        servers::a_job_that_may_not_overlap_runs_once(&stores).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_may_open_a_new_database_at_once() {
    for number in 0..5 {
        // Opens all at the same time.
        let stores = stores(&format!("open{number}")).await;
        assert!(stores.is_none_or(|stores| stores.len() == 3));
    }
}

#[tokio::test]
async fn each_server_tells_its_settings() {
    let Ok(urls) = std::env::var("TICKWRIGHT_TEST_GALERA_URLS") else { return };
    let urls: Vec<&str> = urls.split_whitespace().collect();
    let address = |url: &str| url.rsplit_once('@').unwrap().1.split('/').next().unwrap().to_owned();
    let all = urls.iter().map(|url| address(url)).collect::<Vec<_>>().join(",");
    let answers = hosts(&urls[0].replace(&address(urls[0]), &all)).await.unwrap();
    assert_eq!(answers.len(), 3);
    for answer in answers {
        assert!(answer.unwrap().galera.unwrap().contains("evs.suspect_timeout = PT"));
    }
}

/// A new database, opened through each server.
async fn stores(name: &str) -> Option<Vec<Arc<Database>>> {
    let Ok(urls) = std::env::var("TICKWRIGHT_TEST_GALERA_URLS") else {
        println!("skipped: TICKWRIGHT_TEST_GALERA_URLS is not set");
        return None;
    };
    let urls: Vec<&str> = urls.split_whitespace().collect();
    let database = format!("tickwright_{}_{name}", std::process::id());
    let mut connection = MySqlConnection::connect(urls[0]).await.unwrap();
    let create = format!("CREATE DATABASE {database} CHARACTER SET utf8mb4");
    connection.execute(AssertSqlSafe(create)).await.unwrap();
    let open = async |url: &&str| {
        let url = url.replace("/tickwright_test", &format!("/{database}"));
        // The other servers create it a little later.
        for _ in 0..LOOKS_MAX {
            if MySqlConnection::connect(&url).await.is_ok() {
                break;
            }
            tokio::time::sleep(LOOK).await;
        }
        Arc::new(MySqlStore::open(&url, Options::default()).await.unwrap())
    };
    Some(join_all(urls.iter().map(open)).await)
}

const LOOK: Duration = Duration::from_millis(20);
const LOOKS_MAX: u32 = 500;
