//! Nodes and Java admins on one database: every scheduled time fires once.
//!
//! The Java admins are simulated: they run the statements of XXL-JOB's schedule loop on connections of their own.
//! The URL of MariaDB is in `TICKWRIGHT_TEST_MYSQL_URL`; if it is not set, the tests print that and pass.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use cron::{Schedule, Timestamp};
use engine::{Assignment, Control, Fire, Job, JobSpec, NextFire, Origin, Plan, Planner, Run, Slots, Store};
use sqlx::{AssertSqlSafe, Connection, Executor, MySqlConnection, Row};
use tickwright_store::{JavaAdmins, Options, open};

const JOBS: i64 = 500;
const PERIOD: Duration = Duration::from_secs(1);
const LEASE: Duration = Duration::from_secs(30 * 86_400);

/// Look-ahead of all nodes and Java admins, so that all compete for the same jobs.
const AHEAD: Duration = Duration::from_secs(5);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_instant_fires_once_whoever_takes_it() {
    let Some(url) = xxl_database().await else { return };
    let first = seed(&url).await;
    let clock = Clock { began: Instant::now(), first };
    let (one, two) = tokio::join!(node(&url, "one", clock), node(&url, "two", clock));
    let (ours, more_of_ours, new_java, old_java) = tokio::join!(
        tokio::spawn(one.work()),
        tokio::spawn(two.work()),
        tokio::spawn(JavaAdmin { url: url.clone(), one_transaction: true }.work(clock)),
        tokio::spawn(JavaAdmin { url: url.clone(), one_transaction: false }.work(clock)),
    );
    let fires = [ours.unwrap(), more_of_ours.unwrap(), new_java.unwrap(), old_java.unwrap()];
    println!("fires of two nodes and two Java admins: {:?}", fires.each_ref().map(Vec::len));
    assert!(fires.iter().all(|fires| !fires.is_empty()), "all had their share");

    let mut by_job: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    for (job, instant) in fires.into_iter().flatten() {
        by_job.entry(job).or_default().push(instant);
    }
    let mut connection = MySqlConnection::connect(&url).await.unwrap();
    let rows = connection.fetch_all("SELECT id, trigger_next_time FROM xxl_job_info").await.unwrap();
    assert_eq!(rows.len() as i64, JOBS);
    for row in rows {
        let (job, next): (i64, i64) = (i64::from(row.get::<i32, _>(0)), row.get(1));
        let mut fired = by_job.remove(&job).unwrap_or_default();
        fired.sort_unstable();
        let due: Vec<i64> = (first.as_millis()..next).step_by(PERIOD.as_millis() as usize).collect();
        assert_eq!(fired, due, "job {job} is to fire each second up to {next}, once");
    }
}

#[tokio::test]
async fn a_schedule_that_only_we_know_is_neither_fired_nor_stopped_by_a_java_admin() {
    let Some(url) = xxl_database().await else { return };
    let store = open(&url, Options::default()).await.unwrap();
    let node = store.join("ours", LEASE).await.unwrap();
    let app = store.ensure_app("ours").await.unwrap();
    let every_250_ms = Schedule::fixed_rate(node.now, Duration::from_millis(250)).unwrap();
    let job = store.create_job(&JobSpec::new(app, "ours", every_250_ms, "demo")).await.unwrap();
    store.control(job, &Control::Start, 1_000, &Each).await.unwrap();

    let clock = Clock { began: Instant::now(), first: node.now };
    let java = JavaAdmin { url: url.clone(), one_transaction: true };
    let mut connections = java.connections().await;
    assert_eq!(java.pass(&mut connections, clock).await, []);

    let found = store.job(job).await.unwrap().unwrap();
    assert!(found.enabled);
    let next = found.next_fire_at.expect("it goes on firing");
    let claimed = store.claim_due(&node.node, next, Slots::ALL, 10, &Each).await.unwrap();
    assert_eq!(claimed.orders.len(), 1);

    // A user stops it there, like any other job.
    let stop = format!("UPDATE xxl_job_info SET trigger_status = 0, trigger_next_time = 0 WHERE id = {job}");
    connections.0.execute(AssertSqlSafe(stop)).await.unwrap();
    assert_eq!(store.adopt(10, &Each).await, Ok(1));
    assert!(!store.job(job).await.unwrap().unwrap().enabled);
}

#[tokio::test]
async fn without_the_row_of_the_lock_nothing_is_claimed() {
    let Some(url) = xxl_database().await else { return };
    let check = async |java_admins, works| {
        let store = open(&url, Options { java_admins, ..Options::default() }).await.unwrap();
        let node = store.join("ours", LEASE).await.unwrap();
        let mut connection = MySqlConnection::connect(&url).await.unwrap();
        connection.execute("DELETE FROM xxl_job_lock").await.unwrap();
        let claimed = store.claim_due(&node.node, node.now, Slots::ALL, 10, &Each).await;
        assert_eq!(claimed.is_ok(), works, "{java_admins:?}: {claimed:?}");
    };
    check(JavaAdmins::Auto, false).await;
    check(JavaAdmins::Beside, false).await;
    check(JavaAdmins::None, true).await;
}

/// A clock for all participants, ten times as fast as real time.
#[derive(Clone, Copy)]
struct Clock {
    began: Instant,
    first: Timestamp,
}

impl Clock {
    fn now(self) -> Timestamp {
        self.first + self.began.elapsed() * 10
    }

    fn is_over(self) -> bool {
        self.began.elapsed() > Duration::from_secs(3)
    }
}

// ── Our nodes ───────────────────────────────────────────────────────────────────────────────────────────────────

struct OurNode {
    store: Arc<dyn Store>,
    node: engine::Node,
    clock: Clock,
}

async fn node(url: &str, name: &str, clock: Clock) -> OurNode {
    let store = open(url, Options::default()).await.unwrap();
    let node = store.join(name, LEASE).await.unwrap().node;
    OurNode { store, node, clock }
}

impl OurNode {
    async fn work(self) -> Vec<(i64, i64)> {
        let mut fires = vec![];
        while !self.clock.is_over() {
            self.store.adopt(1_000, &Each).await.unwrap();
            let now = self.clock.now();
            let claim = self.store.claim_due(&self.node, now, Slots::ALL, 100, &Each).await.unwrap();
            let fire = |order: &engine::Order| (order.run.job.0, order.run.scheduled_at.as_millis());
            fires.extend(claim.orders.iter().map(fire));
        }
        fires
    }
}

/// Fires each scheduled time by itself.
struct Each;

impl Planner for Each {
    fn plan(&self, job: &Job) -> Plan {
        let scheduled_at = job.next_fire_at.unwrap();
        let fire = Fire {
            scheduled_at,
            due_at: scheduled_at,
            origin: Origin::Schedule,
            targets: vec![],
            waits: false,
        };
        let next = self.next_after(job, scheduled_at);
        Plan { fires: vec![fire], unsent: vec![], next, replace: false }
    }

    fn assign(&self, _: &Job, _: &Run) -> Assignment {
        Assignment::Send(vec![])
    }

    fn next_after(&self, job: &Job, after: Timestamp) -> NextFire {
        let next = job.spec.next_after(after);
        next.map_or(NextFire::Never, |at| NextFire::At { fire_at: at, claim_at: self.claim_at(job, at) })
    }

    fn claim_at(&self, _: &Job, fire_at: Timestamp) -> Timestamp {
        fire_at - AHEAD
    }
}

// ── Java admins ─────────────────────────────────────────────────────────────────────────────────────────────────

struct JavaAdmin {
    url: String,
    /// True from 3.3.0 on. Before, the lock was held on one connection, and the jobs were updated on another.
    one_transaction: bool,
}

impl JavaAdmin {
    async fn work(self, clock: Clock) -> Vec<(i64, i64)> {
        let mut connections = self.connections().await;
        let mut fires = vec![];
        while !clock.is_over() {
            fires.extend(self.pass(&mut connections, clock).await);
            // Gives others a turn: a Java admin pauses until the next second.
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        fires
    }

    /// One connection for the lock, one for the jobs.
    async fn connections(&self) -> (MySqlConnection, MySqlConnection) {
        let connect = || async { MySqlConnection::connect(&self.url).await.unwrap() };
        (connect().await, connect().await)
    }

    /// One pass of the schedule loop: jobs due soon move on by their period, and fire.
    async fn pass(
        &self,
        (lock, jobs): &mut (MySqlConnection, MySqlConnection),
        clock: Clock,
    ) -> Vec<(i64, i64)> {
        lock.execute("START TRANSACTION").await.unwrap();
        let sql = "SELECT * FROM xxl_job_lock WHERE lock_name = 'schedule_lock' FOR UPDATE";
        lock.execute(sql).await.unwrap();
        let work = if self.one_transaction { &mut *lock } else { &mut *jobs };
        let fires = advance(work, clock.now()).await;
        lock.execute("COMMIT").await.unwrap();
        for some in fires.chunks(100) {
            let rows: Vec<String> = some.iter().map(|(job, _)| format!("(1, {job}, NOW(), 0, 0)")).collect();
            let sql = format!(
                "INSERT INTO xxl_job_log (job_group, job_id, trigger_time, trigger_code, handle_code) VALUES {}",
                rows.join(", ")
            );
            jobs.execute(AssertSqlSafe(sql)).await.unwrap();
        }
        fires
    }
}

async fn advance(connection: &mut MySqlConnection, now: Timestamp) -> Vec<(i64, i64)> {
    let sql = format!(
        "SELECT id, trigger_next_time FROM xxl_job_info WHERE trigger_status = 1 AND trigger_next_time <= {} \
         ORDER BY id ASC LIMIT 200",
        (now + AHEAD).as_millis()
    );
    let due = connection.fetch_all(AssertSqlSafe(sql)).await.unwrap();
    let due: Vec<(i64, i64)> = due.iter().map(|row| (i64::from(row.get::<i32, _>(0)), row.get(1))).collect();
    for some in due.chunks(100) {
        let cases = |by: i64| -> String {
            some.iter().map(|(id, next)| format!(" WHEN {id} THEN {}", next + by)).collect()
        };
        let ids: Vec<String> = some.iter().map(|(id, _)| id.to_string()).collect();
        let sql = format!(
            "UPDATE xxl_job_info SET trigger_last_time = CASE id{} END, trigger_next_time = CASE id{} END \
             WHERE id IN ({}) AND trigger_status = 1",
            cases(0),
            cases(PERIOD.as_millis() as i64),
            ids.join(", ")
        );
        connection.execute(AssertSqlSafe(sql)).await.unwrap();
    }
    due
}

// ── The database ────────────────────────────────────────────────────────────────────────────────────────────────

/// A database with XXL-JOB's tables, and none of ours.
async fn xxl_database() -> Option<String> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let Ok(server) = std::env::var("TICKWRIGHT_TEST_MYSQL_URL") else {
        println!("skipped: TICKWRIGHT_TEST_MYSQL_URL is not set");
        return None;
    };
    let name = format!("tickwright_java_{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let mut connection = MySqlConnection::connect(&server).await.unwrap();
    connection.execute(AssertSqlSafe(format!("CREATE DATABASE {name}"))).await.unwrap();
    let url = format!("{}/{name}", server.rsplit_once('/').unwrap().0);
    let mut connection = MySqlConnection::connect(&url).await.unwrap();
    connection.execute(sqlx::raw_sql(include_str!("../src/schema/mysql/xxl.sql"))).await.unwrap();
    let lock = "INSERT IGNORE INTO xxl_job_lock (lock_name) VALUES ('schedule_lock')";
    connection.execute(lock).await.unwrap();
    Some(url)
}

/// Adds jobs that fire every second, all first at the returned time, as a Java admin writes them.
async fn seed(url: &str) -> Timestamp {
    let mut connection = MySqlConnection::connect(url).await.unwrap();
    let sql = "SELECT CAST(UNIX_TIMESTAMP() * 1000 AS SIGNED)";
    let first: i64 = connection.fetch_one(sql).await.unwrap().get(0);
    let row = format!(
        "(1, 'java', NOW(), NOW(), '', '', 'FIX_RATE', '1', 'DO_NOTHING', 'FIRST', 'demo', '', \
         'SERIAL_EXECUTION', 0, 0, 'BEAN', '', '', NOW(), '', 1, 0, {first})"
    );
    let sql = format!(
        "INSERT INTO xxl_job_info (job_group, job_desc, add_time, update_time, author, alarm_email, schedule_type, \
         schedule_conf, misfire_strategy, executor_route_strategy, executor_handler, executor_param, \
         executor_block_strategy, executor_timeout, executor_fail_retry_count, glue_type, glue_source, glue_remark, \
         glue_updatetime, child_jobid, trigger_status, trigger_last_time, trigger_next_time) VALUES {}",
        vec![row; JOBS as usize].join(", ")
    );
    connection.execute(AssertSqlSafe(sql)).await.unwrap();
    Timestamp::from_millis(first)
}
