//! Bad input of every kind, to every listener of the built program at once: nothing is lost, doubled or forgotten meanwhile.

use std::time::Duration;

use tickwright_tests::database::Database;
use tickwright_tests::hostile::Story;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_is_thrown_at_a_centre_its_jobs_fire() {
    let story = Story { jobs: 200, length: Duration::from_secs(8), attacked: true };
    let told = story.play(&Database::Sqlite).await.unwrap();
    println!("{told}");
    told.ensure_unharmed().unwrap();
}
