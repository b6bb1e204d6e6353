//! SQLite files: exclusive use, and changes by other programs.
#![cfg(feature = "conformance")]
#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cron::{Schedule, Zone};
use engine::policy::Target;
use engine::{
    Assignment, Control, Heartbeat, Job, JobId, JobRange, JobSpec, NextFire, Outcome, Plan, Planner, Run,
    RunId, Slots, Store, StoreError, Trigger,
};
use tickwright_store::{Database, Options, SqliteStore, open};
use timer::Timestamp;
use workflow::definition::{Action, Step, Workflow};

/// A folder that is deleted after the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("tickwright_sqlite_{name}_{}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Folder(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("a file?.db")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Claims at the scheduled time itself; assigns waiting runs, and plans nothing else.
struct Plain;

impl Planner for Plain {
    fn plan(&self, _: &Job) -> Plan {
        unreachable!("nothing is claimed here")
    }

    fn assign(&self, _: &Job, _: &Run) -> Assignment {
        Assignment::Send(vec![Target::AtSend])
    }

    fn next_after(&self, job: &Job, after: Timestamp) -> NextFire {
        let next = job.spec.next_after(after);
        next.map_or(NextFire::Never, |fire_at| NextFire::At { fire_at, claim_at: fire_at })
    }

    fn claim_at(&self, _: &Job, fire_at: Timestamp) -> Timestamp {
        fire_at
    }
}

fn options(shared: bool) -> Options {
    Options { zone: Zone::utc(), shared, ..Options::default() }
}

async fn opened(path: &Path, shared: bool) -> Result<Database, StoreError> {
    SqliteStore::open(path, options(shared)).await
}

#[tokio::test]
async fn a_second_process_is_refused_and_told_what_to_do() {
    let folder = Folder::new("second");
    let first = opened(&folder.file(), false).await.unwrap();
    for shared in [false, true] {
        let Err(StoreError::Conflict(message)) = opened(&folder.file(), shared).await else {
            panic!("the file is in use");
        };
        assert!(message.contains("a file?.db") && message.contains("?shared=true"), "{message}");
    }
    drop(first);
    let first = opened(&folder.file(), true).await.unwrap();
    let second = opened(&folder.file(), true).await.unwrap();
    let app = first.ensure_app("shared").await.unwrap();
    assert_eq!(second.ensure_app("shared").await, Ok(app));
    assert!(opened(&folder.file(), false).await.is_err());
}

#[tokio::test]
async fn what_was_committed_is_there_after_a_restart_and_earlier_lives_are_over() {
    let folder = Folder::new("restart");
    let lease = Duration::from_secs(3_600);
    let store = opened(&folder.file(), false).await.unwrap();
    let app = store.ensure_app("app").await.unwrap();
    let job = store.create_job(&JobSpec::new(app, "kept", Schedule::Never, "demo")).await.unwrap();
    let joined = store.join("node", lease).await.unwrap();
    drop(store);

    let store = opened(&folder.file(), false).await.unwrap();
    assert_eq!(store.job(job).await.unwrap().unwrap().spec.name, "kept");
    let beat = Heartbeat { number: 1, acknowledged: 0 };
    assert_eq!(
        store.heartbeat(&joined.node, lease, beat).await,
        Err(StoreError::Fenced(joined.node.clone()))
    );
    assert!(store.join("node", lease).await.unwrap().node.epoch > joined.node.epoch);
}

#[tokio::test]
async fn an_address_opens_a_store_or_says_what_is_wrong() {
    let folder = Folder::new("address");
    let url = |rest: &str| format!("sqlite:{}/{rest}", folder.0.display());
    let store: Arc<dyn Store> = open("sqlite::memory:", options(false)).await.unwrap();
    store.ensure_app("app").await.unwrap();
    open(&url("one.db?shared=true"), options(false)).await.unwrap();
    open(&url("two.db"), options(false)).await.unwrap();
    std::fs::write(folder.0.join("text.db"), "this is not a database, however long it may be").unwrap();
    let refused = [
        (url("no/such/folder.db"), "failed to open"),
        (url("text.db"), "is not a usable database"),
        (url("one.db?mode=ro"), "shared=true"),
        ("oracle://u:secret@host/db".into(), "unknown database `oracle`"),
        ("nothing".into(), "unknown database `nothing`"),
    ];
    for (url, expected) in refused {
        let Err(error) = open(&url, options(false)).await.map(|_| ()) else { panic!("{url} is not usable") };
        let message = error.to_string();
        assert!(message.contains(expected) && !message.contains("secret"), "{url}: {message}");
    }
}

#[tokio::test]
async fn the_file_is_its_owners_alone() {
    let folder = Folder::new("mode");
    let _store = opened(&folder.file(), false).await.unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(folder.file()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

/// A store, and a direct connection to its file, as used by a Java admin or a user.
async fn with_neighbour(folder: &Folder) -> (Database, rusqlite::Connection) {
    let store = opened(&folder.file(), true).await.unwrap();
    (store, rusqlite::Connection::open(folder.file()).unwrap())
}

#[tokio::test]
async fn jobs_that_others_wrote_are_adopted() {
    let folder = Folder::new("adopt");
    let (store, neighbour) = with_neighbour(&folder).await;
    let insert = |kind: &str, conf: &str, next: i64| {
        let sql = "INSERT INTO xxl_job_info (job_group, job_desc, schedule_type, schedule_conf, misfire_strategy, \
                   glue_type, alarm_email, child_jobid, executor_fail_retry_count, trigger_status, trigger_next_time) \
                   VALUES (1, 'theirs', ?, ?, 'FIRE_ONCE_NOW', 'BEAN', 'a@b', '7, x,,9', 2, 1, ?)";
        neighbour.execute(sql, (kind, conf, next)).unwrap();
        JobId(neighbour.last_insert_rowid())
    };
    let next = 4_000_000_000_000;
    let cron = insert("CRON", "0 0 0 * * ?", next);
    let rate = insert("FIX_RATE", "60", next);
    let broken = insert("CRON", "not a cron", next);
    let unknown = insert("FIX_DELAY", "5", next);
    let unplanned = insert("CRON", "0 0 0 * * ?", 0);
    assert_eq!(store.has_changed_jobs(JobRange::ALL).await, Ok(true));
    let adopted = store.adopt(JobRange::ALL, 100, &Plain).await.unwrap();
    assert_eq!((adopted.changed, adopted.unreadable), (5, 2));
    assert_eq!(store.has_changed_jobs(JobRange::ALL).await, Ok(false));
    let alerts = store.take_alerts(Timestamp::from_millis(next), Duration::from_secs(1), 10).await.unwrap();
    let alerts: Vec<_> = alerts.iter().map(|alert| (alert.job, alert.trouble.kind)).collect();
    assert_eq!(alerts, [(broken, engine::TroubleKind::NotRun), (unknown, engine::TroubleKind::NotRun)]);
    assert_eq!(store.adopt(JobRange::ALL, 100, &Plain).await.map(|adopted| adopted.changed), Ok(0));

    let job = async |id| store.job(id).await.unwrap().unwrap();
    let spec = job(cron).await.spec;
    assert_eq!((spec.misfire, spec.retry.count, spec.alert), (engine::policy::Misfire::FireOnce, 2, true));
    assert_eq!(spec.children, [JobId(7), JobId(9)]);
    assert_eq!(spec.children_mode, engine::ChildrenMode::Each, "as XXL-JOB does");
    let anchor = Timestamp::from_millis(next);
    let expected = Schedule::fixed_rate(anchor, Duration::from_secs(60)).unwrap();
    assert_eq!(job(rate).await.spec.schedule, expected);
    for id in [broken, unknown] {
        let job = job(id).await;
        assert!(job.problem.is_some() && job.spec.schedule == Schedule::Never, "{job:?}");
        let refused = store.control(id, &Control::Start, 1_000, &Plain).await;
        assert!(matches!(refused, Err(StoreError::Invalid(_))), "{refused:?}");
    }
    assert!(job(unplanned).await.next_fire_at.is_some(), "it begins now");

    // One job is moved, another stopped, a third deleted.
    let set = |sql: &str, id: JobId| neighbour.execute(sql, [id.0]).unwrap();
    set("UPDATE xxl_job_info SET trigger_next_time = trigger_next_time + 1500 WHERE id = ?", rate);
    set("UPDATE xxl_job_info SET trigger_status = 0, trigger_next_time = 0 WHERE id = ?", cron);
    set("DELETE FROM xxl_job_info WHERE id = ?", broken);
    assert_eq!(store.forget_deleted(JobRange::ALL, 100).await, Ok(1));
    assert_eq!(store.adopt(JobRange::ALL, 100, &Plain).await.map(|adopted| adopted.changed), Ok(2));
    assert_eq!(store.adopt(JobRange::ALL, 100, &Plain).await.map(|adopted| adopted.changed), Ok(0));
    let moved = job(rate).await;
    assert_eq!(moved.next_fire_at, Some(anchor + Duration::from_millis(1_500)));
    assert_eq!(moved.spec.next_after(anchor), moved.next_fire_at, "it beats from the new time on");
    assert_eq!(job(cron).await.next_fire_at, None);
    assert_eq!(store.job(broken).await, Ok(None));

    // The schedule alone is edited, to another and then to one that cannot be read.
    let set = |conf: &str| {
        let sql = "UPDATE xxl_job_info SET schedule_conf = ? WHERE id = ?";
        neighbour.execute(sql, (conf, unplanned.0)).unwrap();
    };
    for (conf, is_readable) in [("0 0 1 * * ?", true), ("never", false), ("0 0 2 * * ?", true)] {
        set(conf);
        assert_eq!(store.adopt(JobRange::ALL, 100, &Plain).await.map(|adopted| adopted.changed), Ok(1));
        let job = job(unplanned).await;
        assert_eq!(job.problem.is_none(), is_readable, "{conf}");
        let before = Timestamp::from_millis(job.next_fire_at.unwrap().as_millis() - 1);
        assert!(!is_readable || job.spec.next_after(before) == job.next_fire_at, "{conf}: {job:?}");
    }
}

#[tokio::test]
async fn a_job_that_others_start_without_a_next_time_begins_now() {
    let folder = Folder::new("idle");
    let (store, neighbour) = with_neighbour(&folder).await;
    let app = store.ensure_app("app").await.unwrap();
    let spec = |schedule| JobSpec::new(app, "ours", schedule, "demo");
    let minute = Duration::from_secs(60);
    let mut ids = Vec::new();
    for schedule in [
        Schedule::fixed_rate(Timestamp::default(), minute).unwrap(),
        // A kind that Java admins do not support.
        Schedule::fixed_rate(Timestamp::default(), Duration::from_millis(60_001)).unwrap(),
        Schedule::fixed_delay(minute).unwrap(),
        Schedule::Never,
    ] {
        ids.push(store.create_job(&spec(schedule)).await.unwrap());
    }
    assert_eq!(store.adopt(JobRange::ALL, 100, &Plain).await.map(|adopted| adopted.changed), Ok(0));

    neighbour.execute("UPDATE xxl_job_info SET trigger_status = 1", ()).unwrap();
    assert_eq!(store.adopt(JobRange::ALL, 100, &Plain).await.map(|adopted| adopted.changed), Ok(4));
    let mut statuses = neighbour.prepare("SELECT trigger_status FROM xxl_job_info ORDER BY id").unwrap();
    let statuses = statuses.query_map([], |row| row.get::<_, i64>(0)).unwrap();
    // `Plain` has no next time after the end of a run, so the fixed delay is over, like the job without a schedule.
    assert_eq!(statuses.collect::<Result<Vec<_>, _>>().unwrap(), [1, 2, 0, 0]);
    for id in &ids[..2] {
        let job = store.job(*id).await.unwrap().unwrap();
        assert_eq!(
            job.next_fire_at,
            job.spec.next_after(job.next_fire_at.unwrap() - Duration::from_millis(1))
        );
    }
    assert_eq!(store.adopt(JobRange::ALL, 100, &Plain).await.map(|adopted| adopted.changed), Ok(0));
}

#[tokio::test]
async fn a_schedule_that_others_wrote_with_more_spaces_is_not_taken_for_an_edit() {
    let folder = Folder::new("spaces");
    let (store, neighbour) = with_neighbour(&folder).await;
    let sql = "INSERT INTO xxl_job_info (job_group, job_desc, schedule_type, schedule_conf, glue_type, \
               trigger_status, trigger_next_time) VALUES (1, 'theirs', 'CRON', ' 0  0 0 * * ? ', 'BEAN', 1, 4000000000000)";
    neighbour.execute(sql, ()).unwrap();
    let job = JobId(neighbour.last_insert_rowid());
    store.control(job, &Control::Stop, 1_000, &Plain).await.unwrap();
    assert_eq!(store.adopt(JobRange::ALL, 100, &Plain).await.map(|adopted| adopted.changed), Ok(0));
}

#[tokio::test]
async fn writes_of_others_are_noticed_and_our_own_are_not() {
    let folder = Folder::new("others-wrote");
    let (store, neighbour) = with_neighbour(&folder).await;
    assert_eq!(store.others_wrote().await, Ok(true), "before the first look");
    assert_eq!(store.others_wrote().await, Ok(false));
    store.join("n", Duration::from_secs(3)).await.unwrap();
    assert_eq!(store.others_wrote().await, Ok(false), "it was this process");
    neighbour.execute("DELETE FROM tw_schema WHERE version = 1", ()).unwrap();
    assert_eq!(store.others_wrote().await, Ok(true));
    assert_eq!(store.others_wrote().await, Ok(false));
}

#[tokio::test]
async fn many_jobs_that_others_wrote_are_adopted_step_by_step() {
    let folder = Folder::new("adopt-many");
    let (store, neighbour) = with_neighbour(&folder).await;
    let sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500) \
               INSERT INTO xxl_job_info (job_group, job_desc, schedule_type, schedule_conf, misfire_strategy, \
               glue_type, trigger_status, trigger_next_time) \
               SELECT 1, 'theirs', 'CRON', '0 0 0 * * ?', 'DO_NOTHING', 'BEAN', 1, 4000000000000 + i FROM n";
    neighbour.execute(sql, ()).unwrap();
    assert_eq!(store.jobs_to_adopt().await, Ok(2_500));
    let first = store.jobs_after(JobId(0), 1_700).await.unwrap();
    let second = store.jobs_after(first.until.unwrap(), 1_700).await.unwrap();
    assert_eq!(second.until, None);
    let mut steps = Vec::new();
    for range in [first, second] {
        let mut left = Some(range);
        while let Some(range) = left {
            let adopted = store.adopt(range, 1_000, &Plain).await.unwrap();
            steps.push(adopted.changed);
            left = adopted.next.map(|after| JobRange { after, ..range });
        }
    }
    assert_eq!((steps, store.jobs_to_adopt().await), (vec![1_000, 700, 800], Ok(0)));

    // Both ends of the table change at once: one sweep finds all of it.
    neighbour.execute("UPDATE xxl_job_info SET trigger_status = 0 WHERE id % 2 = 0", ()).unwrap();
    let stopped = store.adopt(JobRange::ALL, 10_000, &Plain).await.unwrap();
    assert_eq!((stopped.changed, stopped.next), (1_250, None));
    let withdrawals = store.withdrawals(Timestamp::from_millis(1), 10_000).await;
    assert_eq!(withdrawals, Ok(vec![]), "none of them has an open run");
}

/// Opens a run of a new workflow with one step, whose name makes the definition differ from others.
async fn open_workflow_run(store: &Database, step: &str) -> RunId {
    let app = store.ensure_app("app").await.unwrap();
    let wait = Action::Wait { duration: Duration::from_secs(3_600) };
    let definition = Workflow { steps: vec![Step::new(step, &[], wait)], ..Workflow::default() };
    let id = store.add_workflow(&definition, "ada").await.unwrap();
    let spec = JobSpec { workflow: Some(id), ..JobSpec::new(app, step, Schedule::Never, "") };
    let job = store.create_job(&spec).await.unwrap();
    let trigger =
        Trigger { key: 1, at: Some(Timestamp::from_millis(1_000)), param: None, address: None, by: None };
    store.trigger(job, &trigger).await.unwrap()
}

#[tokio::test]
async fn a_workflow_run_that_cannot_be_read_ends_and_stops_no_other() {
    let folder = Folder::new("unreadable");
    let (store, neighbour) = with_neighbour(&folder).await;
    let joined = store.join("node", Duration::from_secs(3_600)).await.unwrap();
    let broken = open_workflow_run(&store, "broken").await;
    let sound = open_workflow_run(&store, "sound").await;
    let now = joined.now;
    let claim = store.claim_waiting(&joined.node, now, Slots::ALL, 10, &Plain).await.unwrap();
    assert_eq!(claim.orders.len(), 2);
    for order in claim.orders {
        store.open_workflow(now, &order.run, &order.job).await.unwrap();
    }
    neighbour.execute("UPDATE tw_workflow SET body = '{' WHERE body LIKE '%broken%'", ()).unwrap();

    // Another process has not read the definitions yet.
    let other = opened(&folder.file(), true).await.unwrap();
    let advance = other.advance_workflows(&joined.node, now, 10, &Plain).await.unwrap();
    let [(run, Outcome::Failed(why))] = &advance.ended[..] else { panic!("{advance:?}") };
    assert_eq!(*run, broken);
    assert!(why.contains("cannot be read"), "{why}");
    let state = other.workflow_run(sound).await.unwrap().unwrap().steps[0].row.state;
    assert_eq!(state, workflow::StepState::Waiting);
    assert!(!advance.more);
}
