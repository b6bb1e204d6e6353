//! Hostile input of every kind to every endpoint of the built program at once: no fire is lost, duplicated or
//! forgotten meanwhile.

use std::time::Duration;

use tickwright_tests::database::Database;
use tickwright_tests::hostile::{Disturbance, Scenario};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_is_thrown_at_a_centre_its_jobs_fire() {
    unharmed_by(Disturbance::BadInput).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deleting_busy_jobs_of_one_app_harms_no_other() {
    unharmed_by(Disturbance::Deletions).await.unwrap();
}

/// Prints how late the fires of the other app were, and fails if any was lost or skipped.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn editing_stopping_and_clearing_busy_jobs_of_one_app_harms_no_other() {
    unharmed_by(Disturbance::Changes).await.unwrap();
}

async fn unharmed_by(disturbance: Disturbance) -> anyhow::Result<()> {
    let scenario = Scenario { jobs: 200, length: Duration::from_secs(8), disturbance };
    let result = scenario.run(&Database::Sqlite).await?;
    println!("{result}");
    result.ensure_unharmed()
}
