//! A node takes over the database of a Java admin, and obeys changes that other programs make there with SQL.

use std::time::Duration;

use engine::policy::Misfire;
use futures_util::future::join_all;
use tickwright_tests::database::Database;
use tickwright_tests::process::take_over;

#[tokio::test]
async fn jobs_of_a_java_admin_fire_and_changes_by_sql_are_obeyed() {
    let story = async |database: Database| (database.name(), take_over(&database, JOBS, OBEYED_WITHIN).await);
    for (name, found) in join_all(Database::available().into_iter().map(story)).await {
        let found = found.unwrap_or_else(|error| panic!("{name}: {error:#}"));
        println!("{name}: {found}");
        assert_eq!((found.lost, found.silent), (0, 0), "{name}: {found}");
        assert_eq!((found.doubled, found.early, found.phantoms), (0, 0, 0), "{name}: {found}");
        assert_eq!(found.disobeyed, 0, "{name}: {found}");
        // A machine that stalls for longer than that makes fires miss their time.
        assert!(found.skipped == 0 || found.stalled > Misfire::GRACE, "{name}: {found}");
    }
}

/// Few enough for a development build on a machine that does other work: about 40 fires per second. `make bench-move`
/// takes over 20 000.
const JOBS: i64 = 1_000;

/// Far longer than on a machine that does nothing else, where `make bench-move` measures it.
const OBEYED_WITHIN: Duration = Duration::from_secs(8);
