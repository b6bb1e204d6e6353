//! Nodes, databases and executors are broken, one kind of fault after another, while jobs fire. Afterwards the
//! executors' journals contain every fire exactly once: none is lost, duplicated or unexplained.
//!
//! A database without an available server is skipped, and a line is printed.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use anyhow::Result;
use tickwright_tests::chaos::{Fault, Story};
use tickwright_tests::database::Database;

/// Plays one fault on every database it applies to, one after the other, because they share the machine.
fn play(fault: Fault) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        for database in Database::available() {
            if fault.fits(&database) {
                let told = tell(&database, fault).await;
                told.unwrap_or_else(|error| panic!("{fault:?} on {}: {error:#}", database.name()));
            }
        }
    });
}

async fn tell(database: &Database, fault: Fault) -> Result<()> {
    let told = Story { fault, nodes: fault.nodes(database), jobs: 64, length: Duration::from_secs(6) };
    let told = told.play(database).await?;
    println!("{:<10} {told}", database.name());
    anyhow::ensure!(told.is_kept(), "{told}\n{}", told.check);
    Ok(())
}

#[test]
fn a_node_that_is_killed_loses_nothing() {
    play(Fault::KillOne);
}

#[test]
fn all_nodes_killed_at_once_lose_nothing() {
    play(Fault::KillAll);
}

#[test]
fn a_rolling_restart_loses_nothing() {
    play(Fault::RollingRestart);
}

#[test]
fn a_node_that_is_paused_sends_nothing_it_no_longer_owns() {
    play(Fault::Pause);
}

#[test]
fn a_database_that_is_killed_loses_nothing() {
    play(Fault::KillDatabase);
}

#[test]
fn connections_to_the_database_may_break_at_any_time() {
    play(Fault::CutDatabase);
}

#[test]
fn a_commit_may_be_lost_before_it_is_done() {
    play(Fault::CutBeforeCommit);
}

#[test]
fn a_commit_may_be_done_and_its_answer_lost() {
    play(Fault::CutAfterCommit);
}

#[test]
fn a_slow_database_makes_nothing_lost_or_doubled() {
    play(Fault::SlowDatabase);
}

#[test]
fn a_database_that_crawls_makes_nothing_lost_or_doubled() {
    play(Fault::CrawlingDatabase);
}

#[test]
fn a_poor_line_to_the_database_makes_nothing_lost_or_doubled() {
    play(Fault::ThinDatabase);
}

#[test]
fn rows_that_somebody_holds_are_sent_when_they_are_free_and_keep_up_nobody_else() {
    play(Fault::HeldRows);
}

#[test]
fn a_database_that_takes_no_writes_or_no_connections_is_complained_about_and_used_again() {
    play(Fault::SickDatabase);
}

#[test]
fn a_full_disk_is_complained_about_and_used_again() {
    play(Fault::FullDisk);
}

#[test]
fn a_node_that_neither_hears_nor_speaks_is_replaced() {
    play(Fault::Partition);
}

#[test]
fn a_node_that_hears_and_cannot_speak_is_replaced() {
    play(Fault::Mute);
}

#[test]
fn executors_may_misbehave_in_every_way() {
    play(Fault::Executors);
}
