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
use engine::{
    Assignment, CancelAnswer, Control, Ender, Ending, Fire, FollowUps, Job, JobId, JobRange, JobSpec, Move,
    Moved, NextFire, Origin, Outcome, Plan, Planner, Run, RunId, RunState, Slots, Store, To, Verdict,
};
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
    assert_eq!(store.adopt(JobRange::ALL, 10, &Each).await.map(|adopted| adopted.changed), Ok(1));
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

#[tokio::test]
async fn a_result_that_a_java_admin_stored_ends_our_run() {
    let Some(Both { store, node, job, child, mut java }) = Both::new().await else { return };
    let run = store.claim_due(&node, job.next, Slots::ALL, 10, &Each).await.unwrap().orders.remove(0).run;
    assert_eq!(run.job, job.id);
    accept(&*store, &run).await;
    let code = |code: i32, run: RunId| {
        format!(
            "UPDATE xxl_job_log SET handle_time = NOW(), handle_code = {code}, handle_msg = 'java' WHERE id = {run}"
        )
    };
    assert_eq!(store.stored_results(10).await.unwrap(), []);
    java.execute(AssertSqlSafe(code(200, run.id))).await.unwrap();

    let stored = (run.id, Outcome::Succeeded("java".into()));
    assert_eq!(store.stored_results(10).await.unwrap(), std::slice::from_ref(&stored));
    let overdue = store.overdue(job.next + LEASE, 10).await.unwrap();
    assert_eq!(overdue[0].stored, Some(stored.1), "nobody is asked");
    // Nor is it sent again, or concluded otherwise, whatever a node believes by now.
    let again = Move { run: run.id, version: 2, to: To::Waiting { due_at: job.next }, trouble: None };
    assert_eq!(store.move_runs(&[again]).await.unwrap(), [Moved::Stale]);
    let lost = Ending { run: run.id, outcome: Outcome::Lost("silence".into()), version: None, address: None };
    assert_eq!(store.complete(job.next, &[lost], &AfterEach).await.unwrap(), [Verdict::Stored]);
    let record = store.runs(job.id, None, 10).await.unwrap().remove(0);
    assert_eq!((record.state, record.message.as_deref()), (RunState::Succeeded, Some("java")));
    assert_eq!(record.address.as_deref(), Some("http://e:9999"), "the log can be read there");
    assert_eq!(store.runs(child, None, 10).await.unwrap(), [], "the Java admin starts the children");

    // A failure is retried by us: a Java admin leaves our runs alone.
    let at = store.job(job.id).await.unwrap().unwrap().next_fire_at.unwrap();
    let run = store.claim_due(&node, at, Slots::ALL, 10, &Each).await.unwrap().orders.remove(0).run;
    accept(&*store, &run).await;
    java.execute(AssertSqlSafe(code(500, run.id))).await.unwrap();
    let reported = Ending { run: run.id, outcome: Outcome::Failed("x".into()), version: None, address: None };
    assert_eq!(store.complete(at, &[reported], &AfterEach).await.unwrap(), [Verdict::Stored]);
    let retry = store.runs(job.id, Some(run.id), 10).await.unwrap().remove(0);
    assert_eq!(retry.state, RunState::Waiting);
    // Its result comes while it waits to be sent again: it is not sent.
    java.execute(AssertSqlSafe(code(200, retry.id))).await.unwrap();
    let claim = store.claim_waiting(&node, at + PERIOD, Slots::ALL, 10, &Each).await.unwrap();
    assert_eq!(claim.orders, []);
}

#[tokio::test]
async fn the_result_of_a_run_that_a_java_admin_started_is_stored_once_with_its_children() {
    for (java_admins, retried) in [(JavaAdmins::Auto, 0), (JavaAdmins::None, 1)] {
        let Some(Both { store, job, child, mut java, .. }) = Both::with(java_admins).await else { return };
        let mut start = async |sent: i32| {
            let sql = format!(
                "INSERT INTO xxl_job_log (job_group, job_id, trigger_time, trigger_code, handle_code, \
                 executor_fail_retry_count) VALUES (1, {}, NOW(), {sent}, 0, 1)",
                job.id
            );
            RunId(java.execute(AssertSqlSafe(sql)).await.unwrap().last_insert_id() as i64)
        };
        // The result may overtake the admin's own note that the run was accepted.
        let (good, bad) = (start(0).await, start(200).await);
        let end = async |run, outcome| {
            let ending = Ending { run, outcome, version: None, address: None };
            store.complete(job.next, &[ending], &AfterEach).await.unwrap()[0]
        };
        assert_eq!(end(good, Outcome::Succeeded("done".into())).await, Verdict::Applied);
        assert_eq!(end(good, Outcome::Failed("again".into())).await, Verdict::Duplicate);
        let records = store.runs(job.id, None, 10).await.unwrap();
        let shown = |run| records.iter().find(|record| record.id == run).unwrap();
        assert_eq!(shown(good).state, RunState::Succeeded);
        assert_eq!(shown(good).message.as_deref(), Some("done"));
        assert_eq!(store.runs(child, None, 10).await.unwrap().len(), 1);

        assert_eq!(end(bad, Outcome::Failed("broken".into())).await, Verdict::Applied);
        let after = store.runs(job.id, Some(bad), 10).await.unwrap();
        assert_eq!(after.len(), retried, "{java_admins:?}: a Java admin retries its own runs");
        assert_eq!(store.runs(child, None, 10).await.unwrap().len(), 1);
    }
}

#[tokio::test]
async fn fires_that_a_java_admin_has_taken_ahead_are_not_fired_again_after_a_change() {
    let Some(Both { store, job, mut java, .. }) = Both::new().await else { return };
    let next_of = async || store.job(job.id).await.unwrap().unwrap().next_fire_at.unwrap();
    // A Java admin takes all fires of the next four seconds; returns the last.
    let mut take = async || {
        let now: i64 =
            java.fetch_one("SELECT CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)").await.unwrap().get(0);
        let last = now + 4_000 - (now - job.next.as_millis()).rem_euclid(1_000);
        let sql = format!(
            "UPDATE xxl_job_info SET trigger_last_time = {last}, trigger_next_time = {last} + 1000 WHERE id = {}",
            job.id
        );
        java.execute(AssertSqlSafe(sql)).await.unwrap();
        Timestamp::from_millis(last)
    };
    let mut spec = store.job(job.id).await.unwrap().unwrap().spec;
    spec.valid_from = None;
    let edit = |spec: &JobSpec| Control::Edit { spec: Box::new(spec.clone()), revision: None };

    store.control(job.id, &edit(&spec), 1_000, &Each).await.unwrap();
    spec.param = "edited".into();
    let last = take().await;
    store.control(job.id, &edit(&spec), 1_000, &Each).await.unwrap();
    assert_eq!(next_of().await, last + PERIOD, "after the last that was taken");
    assert_eq!(store.runs(job.id, None, 10).await.unwrap(), []);

    // The new schedule also fires in between: those fires are not lost.
    let half = Duration::from_millis(500);
    spec.schedule = Schedule::fixed_rate(last - LEASE, half).unwrap();
    let last = take().await;
    store.control(job.id, &edit(&spec), 1_000, &Each).await.unwrap();
    let runs = store.runs(job.id, None, 10).await.unwrap();
    let opened: Vec<Timestamp> = runs.iter().map(|run| run.scheduled_at).collect();
    assert!(opened.contains(&(last - half)), "{opened:?} has the half second before {last}");
    let is_half = |at: &Timestamp| (last.as_millis() - at.as_millis()) % 1_000 == 500;
    assert!(opened.iter().all(|at| *at < last && is_half(at)), "{opened:?}");
    assert_eq!(next_of().await, last + half);

    // Two stops and a start: what was taken before the first stop is still sent.
    spec.schedule = Schedule::fixed_rate(last - LEASE, PERIOD).unwrap();
    store.control(job.id, &edit(&spec), 1_000, &Each).await.unwrap();
    let last = take().await;
    store.control(job.id, &Control::Stop, 1_000, &Each).await.unwrap();
    store.control(job.id, &Control::Stop, 1_000, &Each).await.unwrap();
    store.control(job.id, &Control::Start, 1_000, &Each).await.unwrap();
    assert_eq!(next_of().await, last + PERIOD);
}

#[tokio::test]
async fn fires_that_we_have_claimed_ahead_are_fired_after_a_change() {
    let Some(Both { store, node, job, .. }) = Both::new().await else { return };
    let run = store.claim_due(&node, job.next, Slots::ALL, 10, &Each).await.unwrap().orders.remove(0).run;
    assert_eq!(run.scheduled_at, job.next);
    store.control(job.id, &Control::Stop, 1_000, &Each).await.unwrap();
    let cancelled = CancelAnswer { run: run.id, version: run.version, sent: None };
    store.answer_cancel(&[cancelled], &Each).await.unwrap();
    store.control(job.id, &Control::Start, 1_000, &Each).await.unwrap();
    let next = store.job(job.id).await.unwrap().unwrap().next_fire_at;
    assert_eq!(next, Some(job.next), "it was not sent, so it is still to come");
}

/// A store beside a Java admin, with a job that fires each second, its child, and the admin's connection.
struct Both {
    store: Arc<dyn Store>,
    node: engine::Node,
    job: Fires,
    child: JobId,
    java: MySqlConnection,
}

struct Fires {
    id: JobId,
    /// First scheduled time; a minute from now, so that no test is too slow for it.
    next: Timestamp,
}

impl Both {
    async fn new() -> Option<Both> {
        Both::with(JavaAdmins::Auto).await
    }

    async fn with(java_admins: JavaAdmins) -> Option<Both> {
        let url = xxl_database().await?;
        let java = MySqlConnection::connect(&url).await.unwrap();
        let store = open(&url, Options { java_admins, ..Options::default() }).await.unwrap();
        let joined = store.join("ours", LEASE).await.unwrap();
        let app = store.ensure_app("ours").await.unwrap();
        let child = store.create_job(&JobSpec::new(app, "child", Schedule::Never, "demo")).await.unwrap();
        let next = joined.now + Duration::from_secs(60);
        let anchor = next - Duration::from_secs(120);
        let mut spec = JobSpec::new(app, "ours", Schedule::fixed_rate(anchor, PERIOD).unwrap(), "demo");
        spec.children = vec![child];
        spec.retry.count = 1;
        spec.valid_from = Some(next);
        let id = store.create_job(&spec).await.unwrap();
        store.control(id, &Control::Start, 1_000, &Each).await.unwrap();
        assert_eq!(store.job(id).await.unwrap().unwrap().next_fire_at, Some(next));
        let job = Fires { id, next };
        Some(Both { store, node: joined.node, job, child, java })
    }
}

async fn accept(store: &dyn Store, run: &Run) {
    let address = Some("http://e:9999".into());
    let to = To::Running { address, check_at: run.due_at, doubt_since: None };
    let accepted = Move { run: run.id, version: run.version, to, trouble: None };
    assert_eq!(store.move_runs(&[accepted]).await.unwrap(), [Moved::Done(run.version + 1)]);
}

/// Retries failures and starts children.
struct AfterEach;

impl Ender for AfterEach {
    fn follow(&self, job: &Job, run: &Run, outcome: &Outcome) -> FollowUps {
        let succeeded = matches!(outcome, Outcome::Succeeded(_));
        let retry = job.spec.retry.delay_after(run.attempt).filter(|_| !succeeded);
        FollowUps {
            retry_at: retry.map(|delay| run.scheduled_at + delay),
            children: if succeeded { job.spec.children.clone() } else { vec![] },
            ..FollowUps::default()
        }
    }
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
            self.store.adopt(JobRange::ALL, 1_000, &Each).await.unwrap();
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
