//! Lifelines on real servers: which nodes are considered dead, and how soon.
//!
//! The URLs of MariaDB and PostgreSQL are in `TICKWRIGHT_TEST_MYSQL_URL` and `TICKWRIGHT_TEST_POSTGRES_URL`; if a
//! variable is not set, its tests print that and pass. `scripts/databases run -- cargo test …` starts both.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cron::Schedule;
use engine::embedded::{Context, Handlers};
use engine::{JobSpec, LifelineId, Lifelines, Node, Store, StoreError};
use sqlx::{AssertSqlSafe, Connection, Executor, MySqlConnection, PgConnection, Row};
use tickwright_store::{Options, open};
use timer::{Clock, SystemClock};

const LEASE: Duration = Duration::from_secs(600);
const LOOK: Duration = Duration::from_millis(50);
const DEADLINE: Duration = Duration::from_secs(120);

macro_rules! on_both {
    ($($name:ident)*) => {
        mod mariadb {
            $(#[tokio::test] async fn $name() {
                if let Some(server) = super::Server::fresh("TICKWRIGHT_TEST_MYSQL_URL").await { super::$name(server).await; }
            })*
        }
        mod postgres {
            $(#[tokio::test] async fn $name() {
                if let Some(server) = super::Server::fresh("TICKWRIGHT_TEST_POSTGRES_URL").await { super::$name(server).await; }
            })*
        }
    };
}

on_both! {
    a_process_that_is_killed_is_declared_over_long_before_its_lease_ends
    a_lifeline_that_the_server_ends_is_replaced_and_the_life_that_depended_on_it_is_over
    where_all_connections_end_at_once_nobody_is_declared_over
    a_process_started_again_does_not_wait_for_the_lease_it_had
    a_second_process_of_a_name_waits_for_the_lease_of_the_first
    the_fires_of_a_killed_node_are_taken_over_long_before_its_lease_ends
}

async fn a_process_that_is_killed_is_declared_over_long_before_its_lease_ends(server: Server) {
    let watcher = server.store().await;
    watcher.join("watcher", LEASE).await.unwrap();
    let mut other = OtherProcess::start(&server.url);
    assert_eq!(look(&*watcher).await.broken, [], "it is seen holding");

    other.0.kill().unwrap();
    let killed = Instant::now();
    let broken = until_broken(&*watcher).await;
    let dead = watcher.fence_broken(&broken).await.unwrap();
    println!("known dead {} ms after kill -9", killed.elapsed().as_millis());
    assert_eq!(dead.iter().map(|node| node.name.as_str()).collect::<Vec<_>>(), ["other"]);
    assert!(watcher.fence(&dead[0]).await.unwrap());
}

async fn a_lifeline_that_the_server_ends_is_replaced_and_the_life_that_depended_on_it_is_over(
    server: Server,
) {
    let (first, second) = (server.store().await, server.store().await);
    let node = joined(&*first, "first").await;
    second.join("second", LEASE).await.unwrap();
    let own = look(&*first).await.own;
    look(&*second).await;

    server.end_connection_of(own).await;
    assert!(first.lifelines().await.is_err(), "it hears that its lifeline has broken");
    let anew = look(&*first).await.own;
    assert_ne!(anew, own);

    assert_eq!(until_broken(&*second).await, [own]);
    assert_eq!(second.fence_broken(&[own]).await, Ok(vec![node.clone()]));
    assert_eq!(first.depend_on(&node, Some(anew)).await, Err(StoreError::Fenced(node)));
}

/// Like a restart of the server.
async fn where_all_connections_end_at_once_nobody_is_declared_over(server: Server) {
    let (first, second) = (server.store().await, server.store().await);
    let nodes = [joined(&*first, "first").await, joined(&*second, "second").await];
    for store in [&first, &second] {
        look(&**store).await;
    }
    for store in [&first, &second] {
        server.end_connection_of(look(&**store).await.own).await;
    }
    for store in [&first, &second] {
        // The server may take a moment to end the connection.
        until(|| async { store.lifelines().await.is_err() }).await;
    }
    // Longer than the grace period, while both lifelines in the rows are broken.
    let until = Instant::now() + 3 * engine::LIFELINE_GRACE;
    while Instant::now() < until {
        for store in [&first, &second] {
            assert_eq!(look(&**store).await.broken, []);
        }
        tokio::time::sleep(LOOK).await;
    }
    for (store, node) in [&first, &second].into_iter().zip(&nodes) {
        store.depend_on(node, Some(look(&**store).await.own)).await.unwrap();
        store.heartbeat(node, LEASE, engine::Heartbeat { number: 1, acknowledged: 0 }).await.unwrap();
        assert_eq!(store.agenda(false).await.unwrap().nodes.len(), 2);
    }
}

async fn a_process_started_again_does_not_wait_for_the_lease_it_had(server: Server) {
    let mut other = OtherProcess::start(&server.url);
    other.0.kill().unwrap();
    other.0.wait().unwrap();
    let again = server.store().await;
    // The server may take a moment to notice that the process is gone.
    until(|| async {
        again.join("other", LEASE).await.unwrap();
        server.leases_of_earlier_lives("other").await == 0
    })
    .await;
}

async fn a_second_process_of_a_name_waits_for_the_lease_of_the_first(server: Server) {
    let (first, second) = (server.store().await, server.store().await);
    joined(&*first, "same").await;
    second.join("same", LEASE).await.unwrap();
    assert_eq!(server.leases_of_earlier_lives("same").await, 1);
}

async fn the_fires_of_a_killed_node_are_taken_over_long_before_its_lease_ends(server: Server) {
    let mut other = OtherProcess::start_centre(&server.url);
    let clock = Arc::new(SystemClock::new());
    let (fired, mut fires) = tokio::sync::mpsc::unbounded_channel();
    let handlers = Handlers::new().with("beat", move |context: Context| {
        // The test may have stopped receiving.
        let _ = fired.send(context.scheduled_at);
        async { Ok(String::new()) }
    });
    let centre = handlers.into_centre("watcher", clock.clone(), server.store().await);
    let engine = centre.engine();
    let running = tokio::spawn(centre.run(std::future::pending()));
    until(|| async { engine.status().may_claim }).await;
    let app = server.store().await.ensure_app("centre").await.unwrap();
    for number in 0..JOBS {
        let schedule = Schedule::fixed_rate(clock.now(), PERIOD).unwrap();
        let mut spec = JobSpec::new(app, "beat", schedule, "beat");
        spec.key = Some(format!("beat {number}"));
        engine.ensure(spec).await.unwrap();
    }
    let of_other = "FROM tw_node WHERE name = 'other'";
    until(|| async { server.number(format!("SELECT COUNT(*) {of_other} AND depends = 1")).await == 1 }).await;

    let promised = server.number(format!("SELECT MAX(lease_until_ms) {of_other}")).await;
    other.0.kill().unwrap();
    let killed = clock.now();
    let mut worst = Duration::ZERO;
    let mut seen = 0;
    while seen < JOBS * 20 {
        let scheduled_at = tokio::time::timeout(DEADLINE, fires.recv()).await.expect("it goes on").unwrap();
        if scheduled_at > killed {
            seen += 1;
            worst = worst.max(clock.now().duration_since(scheduled_at));
        }
    }
    println!("worst lateness after kill -9: {} ms", worst.as_millis());
    let ended = server.number(format!("SELECT MAX(lease_until_ms) {of_other} AND fenced = 1")).await;
    assert!(ended < promised, "it was seen dead by its lifeline, not by its lease");
    running.abort();
}

const JOBS: usize = 8;
const PERIOD: Duration = Duration::from_millis(200);

/// Another process: this program again, with this test only. It joins as `other`, prints a line, and stays.
#[tokio::test]
async fn the_other_process() {
    let Ok(url) = std::env::var(OTHER_PROCESS) else { return };
    let store = open(&url, Options::default()).await.unwrap();
    joined(&*store, "other").await;
    println!("{READY}");
    std::future::pending().await
}

/// The same, with an engine.
#[tokio::test]
async fn the_other_centre() {
    let Ok(url) = std::env::var(OTHER_PROCESS) else { return };
    let store = open(&url, Options::default()).await.unwrap();
    let handlers = Handlers::new().with("beat", |_: Context| async { Ok(String::new()) });
    let centre = handlers.into_centre("other", Arc::new(SystemClock::new()), store);
    println!("{READY}");
    centre.run(std::future::pending()).await;
}

const OTHER_PROCESS: &str = "TICKWRIGHT_TEST_OTHER_PROCESS";
const READY: &str = "the other process is ready";

struct OtherProcess(Child);

impl OtherProcess {
    fn start(url: &str) -> OtherProcess {
        OtherProcess::start_as("the_other_process", url)
    }

    fn start_centre(url: &str) -> OtherProcess {
        OtherProcess::start_as("the_other_centre", url)
    }

    fn start_as(test: &str, url: &str) -> OtherProcess {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", test, "--nocapture"]).env(OTHER_PROCESS, url);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        let is_ready = said.lines().any(|line| line.unwrap().contains(READY));
        let process = OtherProcess(child);
        assert!(is_ready, "the other process ended before it was ready");
        process
    }
}

impl Drop for OtherProcess {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Joins a node that depends on its lifeline.
async fn joined(store: &dyn Store, name: &str) -> Node {
    let node = store.join(name, LEASE).await.unwrap().node;
    store.depend_on(&node, Some(look(store).await.own)).await.unwrap();
    node
}

async fn look(store: &dyn Store) -> Lifelines {
    store.lifelines().await.unwrap().expect("this server keeps lifelines")
}

async fn until_broken(store: &dyn Store) -> Vec<LifelineId> {
    let mut broken = vec![];
    let deadline = Instant::now() + DEADLINE;
    while broken.is_empty() {
        assert!(Instant::now() < deadline, "nothing was seen to break");
        tokio::time::sleep(LOOK).await;
        broken = look(store).await.broken;
    }
    broken
}

async fn until<F: Future<Output = bool>>(is_so: impl Fn() -> F) {
    let deadline = Instant::now() + DEADLINE;
    while !is_so().await {
        assert!(Instant::now() < deadline, "it did not come about in time");
        tokio::time::sleep(LOOK).await;
    }
}

/// An empty database.
struct Server {
    url: String,
}

impl Server {
    async fn fresh(variable: &str) -> Option<Server> {
        let Ok(server) = std::env::var(variable) else {
            println!("skipped: {variable} is not set");
            return None;
        };
        let name = format!("tickwright_{}_{}", std::process::id(), next_number());
        let this = Server { url: server.clone() };
        this.execute(format!("CREATE DATABASE {name}")).await;
        let (address, _) = server.rsplit_once('/').unwrap();
        Some(Server { url: format!("{address}/{name}") })
    }

    async fn store(&self) -> Arc<dyn Store> {
        open(&self.url, Options::default()).await.unwrap()
    }

    /// Ends the connection that holds the lock of this lifeline.
    async fn end_connection_of(&self, LifelineId(id): LifelineId) {
        if self.is_mysql() {
            let lock = format!("'tickwright.lifeline.{id}'");
            let found = self.number(format!("SELECT IS_USED_LOCK({lock})")).await;
            self.execute(format!("KILL {found}")).await;
            // The server closes the connection before it releases the lock.
            until(|| async { self.number(format!("SELECT IS_FREE_LOCK({lock})")).await == 1 }).await;
        } else {
            let holder = format!(
                "(SELECT pid FROM pg_locks WHERE locktype = 'advisory' \
                 AND ((classid::bigint << 32) | objid::bigint) = {id})"
            );
            self.execute(format!("SELECT pg_terminate_backend({holder})")).await;
            until(|| async { self.number(format!("SELECT COUNT(*) FROM {holder} AS held")).await == 0 })
                .await;
        }
    }

    /// Number of incarnations of this name, except the last, with an unexpired lease.
    async fn leases_of_earlier_lives(&self, name: &str) -> i64 {
        let now = match self.is_mysql() {
            true => "CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)",
            false => "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)",
        };
        self.number(format!(
            "SELECT COUNT(*) FROM tw_node WHERE name = '{name}' AND fenced = 1 AND lease_until_ms > {now}"
        ))
        .await
    }

    fn is_mysql(&self) -> bool {
        self.url.starts_with("mysql")
    }

    async fn execute(&self, sql: String) {
        if self.is_mysql() {
            MySqlConnection::connect(&self.url).await.unwrap().execute(AssertSqlSafe(sql)).await.unwrap();
        } else {
            PgConnection::connect(&self.url).await.unwrap().execute(AssertSqlSafe(sql)).await.unwrap();
        }
    }

    async fn number(&self, sql: String) -> i64 {
        if self.is_mysql() {
            let mut connection = MySqlConnection::connect(&self.url).await.unwrap();
            connection.fetch_one(AssertSqlSafe(sql)).await.unwrap().get_unchecked(0)
        } else {
            let mut connection = PgConnection::connect(&self.url).await.unwrap();
            connection.fetch_one(AssertSqlSafe(sql)).await.unwrap().get(0)
        }
    }
}

fn next_number() -> u32 {
    static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}
