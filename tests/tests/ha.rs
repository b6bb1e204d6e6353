//! A short form of `make ha`: one server of a replicated database is killed while jobs fire on three centres.
//!
//! `scripts/databases run --galera --` or `--patroni sync|async --` starts the servers; without them the tests print that
//! and pass.
#![cfg(feature = "processes")]

use std::time::Duration;

use tickwright_tests::ha::{Size, Story, tell};
use tickwright_tests::process::{Members, Replicated};

#[tokio::test(flavor = "multi_thread")]
async fn a_galera_cluster_that_loses_a_server_loses_no_fire() {
    of(Replicated::Galera, &[Story::KillWriter]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failover_loses_no_fire_or_names_the_runs_that_the_database_lost() {
    of(Replicated::Patroni, &[Story::KillWriter, Story::LoseCommits]).await;
}

async fn of(kind: Replicated, stories: &[Story]) {
    let Some(mut members) = Members::of(kind).expect("the servers run") else {
        println!("skipped: no servers of {} were started", kind.name());
        return;
    };
    let is_synchronous = members.are_synchronous();
    for story in stories.iter().filter(|story| story.fits(kind, is_synchronous)) {
        let told = tell(*story, &mut members, SIZE).await.expect("the servers and centres start");
        println!("{:<8} {told}", kind.name());
        assert!(told.is_kept(), "{told}\n{}", told.check);
    }
    members.end().await.expect("the servers end");
}

const SIZE: Size = Size { jobs: 24, length: Duration::from_secs(14) };
