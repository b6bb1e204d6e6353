//! Nodes, databases and executors are broken, one kind of fault after another, while jobs fire. Afterwards the
//! executors' journals contain every fire exactly once: none is lost, duplicated or unexplained.
//!
//! A database without an available server is skipped, and a line is printed.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use anyhow::Result;
use tickwright_tests::chaos::{Fault, Scenario};
use tickwright_tests::database::Database;

/// Runs one fault on every database it applies to, one after the other, because they share the machine.
fn run(fault: Fault) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        for database in Database::available() {
            if fault.fits(&database) {
                let result = run_on(&database, fault).await;
                result.unwrap_or_else(|error| panic!("{fault:?} on {}: {error:#}", database.name()));
            }
        }
    });
}

async fn run_on(database: &Database, fault: Fault) -> Result<()> {
    let result = Scenario { fault, nodes: fault.nodes(database), jobs: 64, length: Duration::from_secs(6) };
    let result = result.run(database).await?;
    println!("{:<10} {result}", database.name());
    anyhow::ensure!(result.is_kept(), "{result}\n{}", result.check);
    Ok(())
}

#[test]
fn a_node_that_is_killed_loses_nothing() {
    run(Fault::KillOne);
}

#[test]
fn all_nodes_killed_at_once_lose_nothing() {
    run(Fault::KillAll);
}

#[test]
fn a_rolling_restart_loses_nothing() {
    run(Fault::RollingRestart);
}

#[test]
fn a_node_that_is_paused_sends_nothing_it_no_longer_owns() {
    run(Fault::Pause);
}

#[test]
fn a_database_that_is_killed_loses_nothing() {
    run(Fault::KillDatabase);
}

#[test]
fn a_standby_that_takes_over_loses_nothing() {
    run(Fault::Failover);
}

#[test]
fn connections_to_the_database_may_break_at_any_time() {
    run(Fault::CutDatabase);
}

#[test]
fn a_commit_may_be_lost_before_it_is_done() {
    run(Fault::CutBeforeCommit);
}

#[test]
fn a_commit_may_be_done_and_its_answer_lost() {
    run(Fault::CutAfterCommit);
}

#[test]
fn a_slow_database_makes_nothing_lost_or_doubled() {
    run(Fault::SlowDatabase);
}

#[test]
fn a_database_that_crawls_makes_nothing_lost_or_doubled() {
    run(Fault::CrawlingDatabase);
}

#[test]
fn a_poor_line_to_the_database_makes_nothing_lost_or_doubled() {
    run(Fault::ThinDatabase);
}

#[test]
fn rows_that_somebody_holds_are_sent_when_they_are_free_and_keep_up_nobody_else() {
    run(Fault::HeldRows);
}

#[test]
fn a_database_that_takes_no_writes_or_no_connections_is_complained_about_and_used_again() {
    run(Fault::SickDatabase);
}

#[test]
fn a_full_disk_is_complained_about_and_used_again() {
    run(Fault::FullDisk);
}

#[test]
fn a_node_that_neither_hears_nor_speaks_is_replaced() {
    run(Fault::Partition);
}

#[test]
fn a_node_that_hears_and_cannot_speak_is_replaced() {
    run(Fault::Mute);
}

#[test]
fn executors_may_misbehave_in_every_way() {
    run(Fault::Executors);
}
