//! A node takes over the database of a Java admin, and obeys changes that other programs make there with SQL.

use std::time::Duration;

use engine::policy::Misfire;
use futures_util::future::join_all;
use tickwright_tests::database::Database;
use tickwright_tests::process::take_over;

#[tokio::test]
async fn twenty_thousand_jobs_of_a_java_admin_fire_and_changes_by_sql_are_obeyed() {
    let story = async |database: Database| {
        // The minimum rate of 20 000 jobs is 333 fires per second, which a development build carries once.
        let jobs = if matches!(database, Database::MySql { .. }) { 20_000 } else { 2_000 };
        (database.name(), take_over(&database, jobs).await)
    };
    for (name, found) in join_all(Database::available().into_iter().map(story)).await {
        let found = found.unwrap_or_else(|error| panic!("{name}: {error:#}"));
        println!("{name}: {found}");
        assert_eq!((found.lost, found.silent), (0, 0), "{name}: {found}");
        assert_eq!((found.doubled, found.early, found.phantoms), (0, 0, 0), "{name}: {found}");
        assert_eq!(found.disobeyed, 0, "{name}: {found}");
        // A machine that stalls for longer than that makes fires miss their time.
        assert!(found.skipped == 0 || found.stalled > Misfire::GRACE, "{name}: {found}");
        assert!(found.obeyed_after <= Duration::from_secs(2) + found.stalled, "{name}: {found}");
    }
}
