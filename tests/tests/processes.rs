//! The built program as a process: it starts, saves its credentials once, and locks its database file.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::time::Duration;

use tickwright_tests::database::Database;
use tickwright_tests::process::{
    AtRest, Centre, Cluster, Journal, JournalExecutor, NetworkCondition, Nodes, Phases, Resting,
    STOP_GUARANTEED, Workload, move_in, stalls, until,
};

#[tokio::test]
async fn a_second_centre_on_the_same_file_refuses_with_a_clear_word() {
    let folder = std::env::temp_dir().join(format!("tickwright-twice-{:08x}", fastrand::u32(..)));
    std::fs::create_dir_all(&folder).unwrap();
    let url = format!("sqlite:{}", folder.join("centre.db").display());
    let key_file = folder.join("key");
    let address = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();

    let first = Centre::start("first", address(), &url, &key_file).await.unwrap();
    let second = Centre::spawn("second", address(), &url, &key_file).unwrap();
    let (status, said) = second.ended().await.unwrap();
    assert!(!status.success(), "{said}");
    assert!(said.contains("another process"), "{said}");
    assert!(first.is_ready().await, "the first goes on");

    let token = first.first_token().expect("the first start saves a token");
    let executor =
        JournalExecutor::start("tickwright-sample", &token, &[first.address()], Journal::default())
            .await
            .unwrap();
    until("an executor registers with it", Duration::from_secs(120), async || executor.register().await.ok())
        .await
        .unwrap();
    first.stop().await.unwrap();

    std::fs::remove_file(folder.join("first-data/initial-credentials.txt")).unwrap();
    let again = Centre::start("first", address(), &url, &key_file).await.unwrap();
    assert_eq!(again.first_token(), None, "credentials are saved only once");
    again.stop().await.unwrap();
    std::fs::remove_dir_all(folder).unwrap();
}

/// A cluster of one node on each database server that is available.
async fn on_each_server(check: impl AsyncFn(&Cluster) -> anyhow::Result<()>) {
    for database in Database::available() {
        if matches!(database, Database::Sqlite) {
            continue;
        }
        let second = Duration::from_secs(1);
        let nodes = Nodes { centres: 1, executors: 1, lead: second, length: second * 60 };
        let cluster = Cluster::build(&database, nodes, Workload::each_second(8, Phases::Spread)).await;
        let cluster = cluster.expect("the database is there");
        check(&cluster).await.unwrap_or_else(|error| panic!("{}: {error:#}", database.name()));
        cluster.remove().await.expect("the database is there");
    }
}

#[tokio::test]
async fn a_centre_waits_for_its_database_at_the_start() {
    on_each_server(async |cluster| {
        cluster.proxies[0].turn(NetworkCondition::Cut);
        let centre = cluster.spawn(0)?;
        let said = async || centre.said().contains("waiting for the database").then_some(());
        until("it says what it waits for", Duration::from_secs(30), said).await?;
        cluster.proxies[0].turn(NetworkCondition::Clear);
        until("it is ready", Duration::from_secs(30), async || centre.is_ready().await.then_some(())).await?;
        centre.stop().await.map(|_| ())
    })
    .await;
}

#[tokio::test]
async fn a_database_that_is_away_is_not_met_by_a_crowd_of_connections() {
    on_each_server(async |cluster| {
        let centre = cluster.start(0).await?;
        cluster.proxies[0].turn(NetworkCondition::Cut);
        // Its connections break, and each is retried once.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let (before, started) = (cluster.proxies[0].connections(), std::time::Instant::now());
        tokio::time::sleep(Duration::from_secs(3)).await;
        let tried = (cluster.proxies[0].connections() - before) as f64 / started.elapsed().as_secs_f64();
        anyhow::ensure!(tried <= 15.0, "{tried:.0} connections were tried each second");
        cluster.proxies[0].turn(NetworkCondition::Clear);
        until("it is ready", Duration::from_secs(30), async || centre.is_ready().await.then_some(())).await?;
        centre.stop().await.map(|_| ())
    })
    .await;
}

#[tokio::test]
async fn a_centre_stops_in_time_while_its_database_does_not_answer() {
    on_each_server(async |cluster| {
        let centre = cluster.start(0).await?;
        for executor in &cluster.executors {
            until("it registers", Duration::from_secs(30), async || executor.register().await.ok()).await?;
        }
        until("runs arrive", Duration::from_secs(30), async || (!cluster.journal.is_empty()).then_some(()))
            .await?;
        cluster.proxies[0].turn(NetworkCondition::BlackHole);
        let (took, stalled) = stalls(centre.stop()).await;
        let took = took?;
        anyhow::ensure!(
            took < STOP_GUARANTEED + stalled,
            "it took {took:?}, and the machine stalled {stalled:?}"
        );
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_centre_waits_a_moment_for_its_port() {
    let folder = std::env::temp_dir().join(format!("tickwright-port-{:08x}", fastrand::u32(..)));
    std::fs::create_dir_all(&folder).unwrap();
    let url = format!("sqlite:{}", folder.join("centre.db").display());
    let address = tickwright_tests::process::free_address().unwrap();
    let taken = TcpListener::bind(address).unwrap();
    let centre = Centre::spawn("patient", address, &url, &folder.join("key")).unwrap();
    // Longer than the process takes to find the port in use, and shorter than it waits for the port.
    tokio::time::sleep(Duration::from_millis(500)).await;
    drop(taken);
    until("it is ready", Duration::from_secs(30), async || centre.is_ready().await.then_some(()))
        .await
        .unwrap();
    centre.stop().await.unwrap();

    let taken = TcpListener::bind(address).unwrap();
    let (status, said) =
        Centre::spawn("patient", address, &url, &folder.join("key")).unwrap().ended().await.unwrap();
    assert!(!status.success() && said.contains("failed to listen on"), "{said}");
    drop(taken);
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn all_jobs_of_a_java_admin_fire_from_the_moment_the_centre_is_ready() {
    for database in Database::available() {
        let (second, jobs) = (Duration::from_secs(1), 3_000);
        let nodes = Nodes { centres: 1, executors: 1, lead: second * 4, length: second * 10 };
        let workload = Workload { period: second * 10, ..Workload::each_second(jobs, Phases::Spread) };
        let cluster = Cluster::build(&database, nodes, workload).await.expect("the database is there");
        cluster.forget_own_rows().await.unwrap();

        let centres = cluster.start_all().await.unwrap();
        let all_fired = async || {
            let fired: BTreeSet<i64> = cluster.journal.entries().iter().map(|entry| entry.job).collect();
            (fired.len() as u64 == jobs).then_some(())
        };
        until("every job has fired", second * 120, all_fired).await.unwrap();
        for centre in centres.into_iter().flatten() {
            let adopted = centre.said().contains("adopted the jobs of the database");
            assert!(adopted, "{}: {}", database.name(), centre.said());
            centre.stop().await.unwrap();
        }
        let check = cluster.check().await.unwrap();
        assert_eq!((check.doubled, check.silent, check.early), (0, 0, 0), "{}: {check}", database.name());
        cluster.remove().await.expect("the database is there");
    }
}

#[tokio::test]
async fn a_thousand_jobs_move_in_and_out_while_others_fire() {
    for database in Database::available() {
        let moved = move_in(&database, 1_000).await.unwrap();
        let (name, check) = (database.name(), &moved.others.check);
        assert!(moved.fired > 0, "{name}: the new jobs fire");
        assert_eq!(moved.after_stop, 0, "{name}: nothing is sent after the stop is acknowledged");
        assert_eq!((check.lost(), check.doubled, check.silent, check.early), (0, 0, 0, 0), "{name}: {check}");
        assert_eq!((check.phantoms, check.forgotten), (0, 0), "{name}: {check}");
    }
}

#[tokio::test]
async fn a_centre_at_rest_sends_three_statements_each_second_and_writes_only_its_lease() {
    for database in Database::available() {
        let resting = Resting::start(&database, 1_000).await.unwrap();
        let mut observed = Vec::new();
        // On a busy machine its start goes on for longer, or it is late with its lease: then it is at rest later.
        while !observed.last().is_some_and(|rest| is_quiet(&database, rest)) {
            assert!(observed.len() < 3, "{}: {observed:#?}", database.name());
            observed.push(resting.observe(Duration::from_secs(12)).await.unwrap());
        }
        resting.stop().await.unwrap();
    }
}

fn is_quiet(database: &Database, rest: &AtRest) -> bool {
    // A busy machine delays the test, and then the centre does more meanwhile.
    let seconds = rest.took.as_secs_f64().ceil() as u64;
    match database {
        // Each commit changes one row.
        Database::Sqlite => rest.commits <= seconds + 1 && rest.pages == rest.commits,
        _ => rest.statements <= 3 * seconds,
    }
}
