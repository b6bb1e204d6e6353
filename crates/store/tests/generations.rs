//! Databases of every XXL-JOB generation are used without changes; a new one is created by the first process that
//! opens it.
//!
//! Needs the servers of `scripts/databases`; prints a message if they are missing.
#![allow(clippy::unwrap_used, reason = "what goes wrong here is to be seen at once")]

use std::sync::Arc;
use std::time::Duration;

use cron::{Cron, DstRule, Schedule, Zone};
use engine::policy::Target;
use engine::{
    AppId, Assignment, Control, Ender, Ending, Fire, FollowUps, Job, JobId, JobRange, JobSpec, LOOK_AHEAD,
    NextFire, Origin, Outcome, Plan, Planner, Run, ScriptLanguage, Slots, Store, StoreError, Verdict,
};
use sqlx::{AssertSqlSafe, Connection, Executor, MySqlConnection, PgConnection, Row, raw_sql};
use tickwright_store::{
    Access, Addresses, AppSpec, Beat, JobFilter, MySqlStore, Noted, Options, Page, Password, PostgresStore,
    Registration, Registry, Rights, RunFilter, RunStatus, open,
};
use timer::Timestamp;

// ── XXL-JOB's generations ───────────────────────────────────────────────────────────────────────────────────────

/// Differences between the generations.
struct Generation {
    name: &'static str,
    schedule: &'static str,
    description: &'static str,
    param: &'static str,
    group: &'static str,
    registry: &'static str,
    log_keys: &'static str,
    report: &'static str,
    user: &'static str,
}

const CRON_ONLY: &str = "job_cron varchar(128) NOT NULL";
const TYPED: &str = "schedule_type varchar(50) NOT NULL DEFAULT 'NONE', schedule_conf varchar(128) DEFAULT NULL, \
     misfire_strategy varchar(50) NOT NULL DEFAULT 'DO_NOTHING'";

const GENERATIONS: [Generation; 5] = [
    Generation {
        name: "2.2",
        schedule: CRON_ONLY,
        description: "job_desc",
        param: "varchar(512)",
        group: "title varchar(12) NOT NULL, `order` int NOT NULL DEFAULT 0, address_list varchar(512)",
        registry: "id int NOT NULL AUTO_INCREMENT PRIMARY KEY, KEY i_g_k_v",
        log_keys: "KEY I_trigger_time (trigger_time), KEY I_handle_code (handle_code)",
        report: "",
        user: "password varchar(50) NOT NULL",
    },
    Generation {
        name: "2.4",
        schedule: TYPED,
        description: "job_desc",
        param: "varchar(512)",
        group: "title varchar(12) NOT NULL, address_list text, update_time datetime",
        registry: "id int NOT NULL AUTO_INCREMENT PRIMARY KEY, KEY i_g_k_v",
        log_keys: "KEY I_trigger_time (trigger_time), KEY I_handle_code (handle_code)",
        report: ", update_time datetime",
        user: "password varchar(50) NOT NULL",
    },
    Generation {
        name: "3.1",
        schedule: TYPED,
        description: "job_desc",
        param: "varchar(512)",
        group: "title varchar(12) NOT NULL, address_list text, update_time datetime",
        registry: "id int NOT NULL AUTO_INCREMENT PRIMARY KEY, UNIQUE KEY i_g_k_v",
        log_keys: "KEY I_trigger_time (trigger_time), KEY I_handle_code (handle_code), \
                   KEY I_jobid_jobgroup (job_id, job_group), KEY I_job_id (job_id)",
        report: ", update_time datetime",
        user: "password varchar(50) NOT NULL",
    },
    Generation {
        name: "3.4",
        schedule: TYPED,
        description: "job_desc",
        param: "text",
        group: "title varchar(64) NOT NULL, address_list text, update_time datetime",
        registry: "id bigint NOT NULL AUTO_INCREMENT PRIMARY KEY, UNIQUE KEY i_g_k_v",
        log_keys: "KEY I_trigger_time (trigger_time), KEY I_handle_code (handle_code), KEY I_jobgroup (job_group), \
                   KEY I_jobid (job_id)",
        report: ", update_time datetime",
        user: "password varchar(100) NOT NULL, token varchar(100)",
    },
    Generation {
        name: "next",
        schedule: TYPED,
        description: "name",
        param: "text",
        group: "name varchar(64) NOT NULL, address_list text, update_time datetime, access_token varchar(255), \
                UNIQUE KEY i_app_name (app_name)",
        registry: "id bigint NOT NULL AUTO_INCREMENT PRIMARY KEY, UNIQUE KEY i_g_k_v",
        log_keys: "KEY i_trigger_time (trigger_time), KEY i_handle_code (handle_code), KEY i_job_group (job_group), \
                   KEY i_job_id (job_id)",
        report: ", update_time datetime",
        user: "password varchar(100) NOT NULL, token varchar(100)",
    },
];

impl Generation {
    fn is_typed(&self) -> bool {
        self.schedule == TYPED
    }

    fn tables(&self) -> String {
        let Generation { schedule, description, param, group, registry, log_keys, report, user, .. } = self;
        let title = if group.starts_with("name") { "name" } else { "title" };
        format!(
            "CREATE TABLE xxl_job_info (id int NOT NULL AUTO_INCREMENT PRIMARY KEY, job_group int NOT NULL, {schedule}, \
               {description} varchar(255) NOT NULL, add_time datetime, update_time datetime, author varchar(64), \
               alarm_email varchar(255), executor_route_strategy varchar(50), executor_handler varchar(255), \
               executor_param {param}, executor_block_strategy varchar(50), executor_timeout int NOT NULL DEFAULT 0, \
               executor_fail_retry_count int NOT NULL DEFAULT 0, glue_type varchar(50) NOT NULL, glue_source mediumtext, \
               glue_remark varchar(128), glue_updatetime datetime, child_jobid varchar(255), \
               trigger_status tinyint NOT NULL DEFAULT 0, trigger_last_time bigint NOT NULL DEFAULT 0, \
               trigger_next_time bigint NOT NULL DEFAULT 0, somebodys_own int NOT NULL DEFAULT 7);
             CREATE TABLE xxl_job_log (id bigint NOT NULL AUTO_INCREMENT PRIMARY KEY, job_group int NOT NULL, \
               job_id int NOT NULL, executor_address varchar(255), executor_handler varchar(255), executor_param {param}, \
               executor_sharding_param varchar(20), executor_fail_retry_count int NOT NULL DEFAULT 0, \
               trigger_time datetime, trigger_code int NOT NULL, trigger_msg text, handle_time datetime, \
               handle_code int NOT NULL, handle_msg text, alarm_status tinyint NOT NULL DEFAULT 0, {log_keys});
             CREATE TABLE xxl_job_log_report (id int NOT NULL AUTO_INCREMENT PRIMARY KEY, trigger_day datetime, \
               running_count int NOT NULL DEFAULT 0, suc_count int NOT NULL DEFAULT 0, \
               fail_count int NOT NULL DEFAULT 0{report}, UNIQUE KEY i_trigger_day (trigger_day));
             CREATE TABLE xxl_job_logglue (id int NOT NULL AUTO_INCREMENT PRIMARY KEY, job_id int NOT NULL, \
               glue_type varchar(50), glue_source mediumtext, glue_remark varchar(128) NOT NULL, add_time datetime, \
               update_time datetime);
             CREATE TABLE xxl_job_registry ({registry} (registry_group, registry_key, registry_value), \
               registry_group varchar(50) NOT NULL, registry_key varchar(255) NOT NULL, \
               registry_value varchar(255) NOT NULL, update_time datetime);
             CREATE TABLE xxl_job_group (id int NOT NULL AUTO_INCREMENT PRIMARY KEY, app_name varchar(64) NOT NULL, \
               address_type tinyint NOT NULL DEFAULT 0, {group});
             CREATE TABLE xxl_job_user (id int NOT NULL AUTO_INCREMENT PRIMARY KEY, username varchar(50) NOT NULL, \
               {user}, role tinyint NOT NULL, permission varchar(255), UNIQUE KEY i_username (username));
             CREATE TABLE xxl_job_lock (lock_name varchar(50) NOT NULL PRIMARY KEY);
             INSERT INTO xxl_job_lock VALUES ('schedule_lock');
             INSERT INTO xxl_job_group (app_name, {title}) VALUES ('billing', 'Billing')"
        )
    }

    /// A job as a Java admin writes it.
    fn job(&self, kind: &str, conf: &str, status: i64, next: Timestamp) -> String {
        let description = self.description;
        let (columns, values) = match self.is_typed() {
            true => ("schedule_type, schedule_conf", format!("'{kind}', '{conf}'")),
            false => ("job_cron", format!("'{conf}'")),
        };
        format!(
            "INSERT INTO xxl_job_info (job_group, {description}, add_time, update_time, author, alarm_email, {columns}, \
               executor_route_strategy, executor_handler, executor_param, executor_block_strategy, glue_type, \
               glue_source, glue_remark, glue_updatetime, child_jobid, trigger_status, trigger_next_time) \
             VALUES (1, '月结 job', NOW(), NOW(), 'XXL', '', {values}, 'ROUND', 'settle', 'a=1', 'SERIAL_EXECUTION', 'BEAN', \
               '', 'GLUE代码初始化', NOW(), '', {status}, {})",
            next.as_millis()
        )
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_any_generation_is_used_unaltered() {
    let Some(server) = server("TICKWRIGHT_TEST_MYSQL_URL") else { return };
    for generation in &GENERATIONS {
        println!("generation {}", generation.name);
        let database = Database::create(&server).await;
        take_over(generation, &database).await;
        database.remove().await;
    }
}

async fn take_over(generation: &Generation, database: &Database) {
    let mut xxl = MySqlConnection::connect(&database.url).await.unwrap();
    let now = mysql_now(&mut xxl).await;
    let due = Timestamp::from_millis(now.as_millis() / 1_000 * 1_000);
    run(&mut xxl, &generation.tables()).await;
    run(&mut xxl, &generation.job("CRON", "0/1 * * * * ?", 1, due)).await;
    run(&mut xxl, &generation.job("CRON", "0 0 0 * * ? *", 0, Timestamp::from_millis(0))).await;
    run(&mut xxl, &generation.job("CRON", "0 0 25 * * ?", 1, due)).await;
    if generation.is_typed() {
        run(&mut xxl, &generation.job("FIX_RATE", "30", 1, due)).await;
    }
    run(&mut xxl, JAVA_LOG).await;
    let before = definitions(&mut xxl).await;

    let store = MySqlStore::open(&database.url, options()).await.unwrap();
    assert_eq!(definitions(&mut xxl).await, before, "{}: nothing is altered", generation.name);
    adopted_jobs_fire(generation, &store, &mut xxl, due).await;
    jobs_are_edited_within_what_the_columns_hold(generation, &store, &mut xxl).await;
    executors_register_as_with_a_java_admin(generation, &store, &mut xxl).await;
    people_keep_the_passwords_that_java_admins_know(&store, &mut xxl).await;
    scripts_and_reports_are_written_as_java_admins_do(generation, &store, &mut xxl).await;
    drop(store);

    assert_eq!(definitions(&mut xxl).await, before, "{}: nothing was altered", generation.name);
    assert_eq!(line(&mut xxl, "SELECT lock_name FROM xxl_job_lock").await, ["schedule_lock"]);
    assert_eq!(
        line(&mut xxl, "SELECT job_id, trigger_code, handle_code, handle_msg FROM xxl_job_log WHERE id = 1")
            .await,
        ["2", "200", "500", "by Java"],
        "other people's rows stay as they are"
    );
    assert_eq!(line(&mut xxl, "SELECT DISTINCT somebodys_own FROM xxl_job_info").await, ["7"]);
}

const JAVA_LOG: &str = "INSERT INTO xxl_job_log (job_group, job_id, executor_handler, trigger_time, trigger_code, \
     handle_time, handle_code, handle_msg) VALUES (1, 2, 'settle', NOW(), 200, NOW(), 500, 'by Java')";

async fn adopted_jobs_fire(
    generation: &Generation,
    store: &tickwright_store::Database,
    xxl: &mut MySqlConnection,
    due: Timestamp,
) {
    let jobs = if generation.is_typed() { 4 } else { 3 };
    assert_eq!(
        store.adopt(JobRange::ALL, 100, &EveryFire).await.unwrap().changed,
        jobs,
        "{}",
        generation.name
    );
    let joined = store.join("taker", Duration::from_secs(60)).await.unwrap();
    let broken = store.job(JobId(3)).await.unwrap().unwrap();
    assert!(broken.problem.is_some(), "a schedule that cannot be read is said to be so");

    let claim = store.claim_due(&joined.node, joined.now, Slots::ALL, 10, &EveryFire).await.unwrap();
    let fired: Vec<(i64, Timestamp)> =
        claim.orders.iter().map(|order| (order.job.id.0, order.run.scheduled_at)).collect();
    let expected = if generation.is_typed() { vec![(1, due), (4, due)] } else { vec![(1, due)] };
    assert_eq!(fired, expected, "{}", generation.name);
    assert_eq!(
        line(
            xxl,
            "SELECT trigger_last_time, trigger_next_time, trigger_status FROM xxl_job_info WHERE id = 1"
        )
        .await,
        [due.as_millis().to_string(), (due.as_millis() + 1_000).to_string(), "1".into()]
    );

    let run = claim.orders[0].run.id;
    let open = "SELECT trigger_code, handle_code, alarm_status FROM xxl_job_log WHERE id = ";
    assert_eq!(line(xxl, &format!("{open}{run}")).await, ["0", "0", "1"], "Java takes it for one on its way");
    let endings: Vec<Ending> = claim
        .orders
        .iter()
        .map(|order| Ending {
            run: order.run.id,
            outcome: Outcome::Succeeded("done 好".into()),
            version: None,
            address: None,
        })
        .collect();
    let verdicts = store.complete(joined.now, &endings, &NothingFollows).await.unwrap();
    assert!(verdicts.iter().all(|verdict| *verdict == Verdict::Applied), "{verdicts:?}");
    let log = "SELECT job_group, job_id, executor_address, executor_handler, executor_param, executor_sharding_param, \
               trigger_time, trigger_code, handle_code, handle_msg, alarm_status FROM xxl_job_log WHERE id = ";
    assert_eq!(
        line(xxl, &format!("{log}{run}")).await,
        [
            "1",
            "1",
            "http://10.0.0.7:9999/",
            "settle",
            "a=1",
            "NULL",
            &shanghai(due),
            "200",
            "200",
            "done 好",
            "1"
        ],
        "{}",
        generation.name
    );
}

async fn jobs_are_edited_within_what_the_columns_hold(
    generation: &Generation,
    store: &tickwright_store::Database,
    xxl: &mut MySqlConnection,
) {
    let job = store.job(JobId(2)).await.unwrap().unwrap();
    let mut spec =
        JobSpec { name: "renamed ' 名".into(), schedule: cron("0 30 2 * * ?"), ..job.spec.clone() };
    edit(store, &spec).await.unwrap();
    let schedule = if generation.is_typed() { "schedule_conf" } else { "job_cron" };
    let sql = format!(
        "SELECT {}, {schedule}, executor_param FROM xxl_job_info WHERE id = 2",
        generation.description
    );
    assert_eq!(line(xxl, &sql).await, ["renamed ' 名", "0 30 2 * * ?", "a=1"]);

    spec.param = "x".repeat(600);
    match edit(store, &spec).await {
        Ok(()) => assert_eq!(generation.param, "text"),
        Err(error) => {
            assert!(matches!(error, StoreError::Invalid(_)), "{error}");
            assert_eq!(generation.param, "varchar(512)", "{error}");
        }
    }
    store.control(JobId(2), &Control::Start, 1_000, &EveryFire).await.unwrap();
    store.control(JobId(2), &Control::Stop, 1_000, &EveryFire).await.unwrap();

    let app = store.ensure_app("billing").await.unwrap();
    assert_eq!(app, AppId(1));
    let other = store.ensure_app("a-group-with-a-rather-long-name").await.unwrap();
    let created =
        store.create_job(&JobSpec::new(other, "made here", cron("0 0 3 * * ?"), "made")).await.unwrap();
    store.control(created, &Control::Start, 1_000, &EveryFire).await.unwrap();
    let sql = format!(
        "SELECT trigger_status, glue_type, glue_updatetime IS NULL FROM xxl_job_info WHERE id = {created}"
    );
    assert_eq!(line(xxl, &sql).await, ["1", "BEAN", "0"]);
}

async fn executors_register_as_with_a_java_admin(
    generation: &Generation,
    store: &tickwright_store::Database,
    xxl: &mut MySqlConnection,
) {
    let java = "INSERT INTO xxl_job_registry (registry_group, registry_key, registry_value, update_time) \
                VALUES ('EXECUTOR', 'billing', 'http://j:1/', '2000-01-01 00:00:00')";
    run(xxl, java).await;
    if generation.registry.contains(", KEY") {
        run(xxl, java).await;
    }
    let beat = |address: &str| Beat {
        registration: Registration { app: "billing".into(), address: address.into() },
        token: Some("0a".repeat(32)),
    };
    let hour = Duration::from_secs(3_600);
    let beats = [beat("http://j:1/"), beat("http://b:1/"), beat("HTTP://B:1/")];
    let noted = store.register(&beats, hour).await;
    assert_eq!(noted, Ok(vec![Noted::New, Noted::New, Noted::Again]), "{}", generation.name);
    assert_eq!(store.register(&beats, hour).await, Ok(vec![Noted::Again; 3]), "{}", generation.name);
    let fresh =
        "SELECT COUNT(DISTINCT registry_value), MIN(update_time) > '2020-01-01' FROM xxl_job_registry";
    assert_eq!(line(xxl, fresh).await, ["2", "1"]);
    let hour_ago = mysql_now(xxl).await - Duration::from_secs(3_600);
    let seen: Vec<String> = store
        .registrations(hour_ago)
        .await
        .unwrap()
        .into_iter()
        .map(|seen| seen.registration.address)
        .collect();
    assert_eq!(seen, ["http://b:1/", "http://j:1/"]);
    assert_eq!(
        store.publish_addresses(&[(AppId(1), vec!["http://j:1/".into(), "http://b:1/".into()])]).await,
        Ok(1)
    );
    let group = "SELECT app_name, address_type, address_list FROM xxl_job_group WHERE id = 1";
    assert_eq!(line(xxl, group).await, ["billing", "0", "http://b:1/,http://j:1/"]);
    assert_eq!(store.publish_addresses(&[(AppId(1), vec![])]).await, Ok(1));
    assert_eq!(line(xxl, group).await, ["billing", "0", "NULL"]);
    let long: Vec<String> = (0..100).map(|port| format!("http://10.0.0.1:{port}/")).collect();
    let fits = !generation.group.contains("varchar(512)");
    assert_eq!(store.publish_addresses(&[(AppId(1), long)]).await, Ok(usize::from(fits)));
    assert!(store.unregister("billing", "http://j:1/").await.unwrap());
    assert_eq!(line(xxl, "SELECT registry_value FROM xxl_job_registry").await, ["http://b:1/"]);

    let by_hand = Addresses::Manual(vec!["http://m:1/".into()]);
    let spec = AppSpec { name: "ledger".into(), title: "Twelve chars".into(), addresses: by_hand };
    let ledger = store.create_app(&spec).await.unwrap();
    assert_eq!(store.app(ledger).await.unwrap().unwrap().spec, spec);
    let wordy = AppSpec { title: "Thirteen char".into(), ..spec };
    let fits = !generation.group.contains("varchar(12)");
    assert_eq!(store.update_app(ledger, &wordy).await.is_ok(), fits, "{}", generation.name);
    assert!(store.delete_app(ledger).await.unwrap());
    if generation.group.contains("access_token") {
        run(xxl, "UPDATE xxl_job_group SET access_token = 'secret' WHERE id = 1").await;
        assert_eq!(store.app(AppId(1)).await.unwrap().unwrap().access_token.as_deref(), Some("secret"));
    }
}

async fn people_keep_the_passwords_that_java_admins_know(
    store: &tickwright_store::Database,
    xxl: &mut MySqlConnection,
) {
    let md5 = "e10adc3949ba59abbe56e057f20f883e";
    run(
        xxl,
        &format!(
            "INSERT INTO xxl_job_user (username, password, role, permission) VALUES ('ada', '{md5}', 0, '1,x,7')"
        ),
    )
    .await;
    assert!(!store.create_first_admin("admin", "hash").await.unwrap(), "somebody can sign in already");
    let ada = async || store.user_by_name("ada").await.unwrap().unwrap();
    let found = ada().await;
    assert_eq!(found.password, Password::Legacy(md5.into()));
    assert_eq!(found.access.rights(AppId(7)), Rights::MEMBER, "all but writing scripts");
    assert!(!store.upgrade_password(found.id, "another", "hash").await.unwrap());
    assert!(store.upgrade_password(found.id, md5, "hash").await.unwrap());
    assert_eq!(ada().await.password, Password::Hashed("hash".into()));
    let row = "SELECT password, permission FROM xxl_job_user WHERE username = 'ada'";
    assert_eq!(line(xxl, row).await, [md5, "1,x,7"]);

    let mut access = ada().await.access;
    access.grants.insert(AppId(7), Rights::ALL);
    access.grants.insert(AppId(9), Rights::VIEW);
    assert!(store.update_user(found.id, &access).await.unwrap());
    assert_eq!(line(xxl, row).await, [md5, "1,7"], "a right to view is not one that Java admins know");
    assert_eq!(ada().await.access, access);
    // A Java admin changes both.
    run(xxl, "UPDATE xxl_job_user SET password = 'other', permission = '1' WHERE username = 'ada'").await;
    let found = ada().await;
    assert_eq!(found.password, Password::Legacy("other".into()));
    assert_eq!(found.access.rights(AppId(7)), Rights::NONE);
    assert_eq!(found.access.rights(AppId(9)), Rights::VIEW);

    let made = store.create_user("made-here", "hash", &access).await.unwrap();
    let row = "SELECT password, role, permission FROM xxl_job_user WHERE username = 'made-here'";
    assert_eq!(line(xxl, row).await, ["!", "0", "1,7"]);
    assert!(store.set_password_hash(made, "hash 2", None).await.unwrap());
    assert_eq!(line(xxl, row).await, ["!", "0", "1,7"]);
    let crowded = Access { grants: (100..200).map(|app| (AppId(app), Rights::ALL)).collect(), ..access };
    assert!(matches!(store.update_user(made, &crowded).await, Err(StoreError::Invalid(_))));
    assert!(store.delete_user(made).await.unwrap());
}

async fn scripts_and_reports_are_written_as_java_admins_do(
    generation: &Generation,
    store: &tickwright_store::Database,
    xxl: &mut MySqlConnection,
) {
    store.save_script(JobId(2), ScriptLanguage::Shell, "echo 好", "first").await.unwrap();
    assert_eq!(
        line(xxl, "SELECT glue_type, glue_source, glue_remark FROM xxl_job_logglue").await,
        ["GLUE_SHELL", "echo 好", "first"]
    );
    assert_eq!(
        line(
            xxl,
            "SELECT i.glue_source, i.glue_updatetime = g.update_time FROM xxl_job_info i, xxl_job_logglue g \
                   WHERE i.id = 2"
        )
        .await,
        ["echo 好", "1"]
    );
    let now = mysql_now(xxl).await;
    assert!(store.refresh_report(now).await.unwrap());
    let report =
        "SELECT TIME(trigger_day), suc_count + fail_count + running_count > 0 FROM xxl_job_log_report";
    assert_eq!(line(xxl, report).await, ["00:00:00", "1"], "{}", generation.name);
    assert_eq!(store.report((now, now), None).await.unwrap().len(), 1);
    let about = store.about().await.unwrap();
    let expected = match generation.name {
        "2.2" => "2.2",
        "2.4" | "3.1" => "2.3 to 3.1",
        "3.4" => "3.2 to 3.4",
        _ => "3.5",
    };
    assert!(about.was_xxl_jobs && about.generation == expected, "{about:?} for {}", generation.name);

    let jobs = store.job_page(&JobFilter::default(), Page::first(100)).await.unwrap();
    assert!(jobs.rows.iter().any(|row| row.job.id == JobId(3) && row.written_schedule.1 == "0 0 25 * * ?"));
    let failed = RunFilter { job: Some(JobId(2)), status: Some(RunStatus::Failed), ..RunFilter::default() };
    let page = store.run_page(&failed, Page::first(10)).await.unwrap();
    assert_eq!(page.rows[0].result_message.as_deref(), Some("by Java"));
}

async fn edit(store: &tickwright_store::Database, spec: &JobSpec) -> Result<(), StoreError> {
    let control = Control::Edit { spec: Box::new(spec.clone()), revision: None };
    store.control(JobId(2), &control, 1_000, &EveryFire).await.map(|_| ())
}

// ── New databases ───────────────────────────────────────────────────────────────────────────────────────────────

#[tokio::test(flavor = "multi_thread")]
async fn three_processes_may_open_a_new_mysql_database_at_once() {
    let Some(server) = server("TICKWRIGHT_TEST_MYSQL_URL") else { return };
    let database = Database::create(&server).await;
    let open = || MySqlStore::open(&database.url, options());
    let (first, second, third) = tokio::join!(open(), open(), open());
    for store in [first.unwrap(), second.unwrap(), third.unwrap()] {
        works(&store).await;
    }
    let mut xxl = MySqlConnection::connect(&database.url).await.unwrap();
    assert_eq!(line(&mut xxl, "SELECT COUNT(*) FROM xxl_job_lock").await, ["1"]);
    assert_eq!(
        line(&mut xxl, "SELECT COUNT(*) FROM xxl_job_user").await,
        ["0"],
        "nobody has a password we know"
    );
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn three_processes_may_open_a_new_postgres_database_at_once() {
    let Some(server) = server("TICKWRIGHT_TEST_POSTGRES_URL") else { return };
    let database = Database::create(&server).await;
    let open = || PostgresStore::open(&database.url, options());
    let (first, second, third) = tokio::join!(open(), open(), open());
    for store in [first.unwrap(), second.unwrap(), third.unwrap()] {
        works(&store).await;
    }
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_start_at_once_adopt_each_job_once() {
    for variable in ["TICKWRIGHT_TEST_MYSQL_URL", "TICKWRIGHT_TEST_POSTGRES_URL"] {
        let Some(server) = server(variable) else { continue };
        let database = Database::create(&server).await;
        let first = open(&database.url, options()).await.unwrap();
        let row =
            |id: i64| format!("({id}, 1, 'x', 'CRON', '0 0 0 * * ?', 'BEAN', 1, {})", 4_000_000_000_000 + id);
        let rows: Vec<String> = (1..=3_000).map(row).collect();
        let insert = format!(
            "INSERT INTO xxl_job_info (id, job_group, job_desc, schedule_type, schedule_conf, glue_type, \
             trigger_status, trigger_next_time) VALUES {}",
            rows.join(", ")
        );
        match server.starts_with("postgres") {
            true => drop(
                PgConnection::connect(&database.url)
                    .await
                    .unwrap()
                    .execute(AssertSqlSafe(insert))
                    .await
                    .unwrap(),
            ),
            false => drop(
                MySqlConnection::connect(&database.url)
                    .await
                    .unwrap()
                    .execute(AssertSqlSafe(insert))
                    .await
                    .unwrap(),
            ),
        }
        let (second, third) =
            (open(&database.url, options()).await.unwrap(), open(&database.url, options()).await.unwrap());
        let adopt = async |store: Arc<tickwright_store::Database>| -> usize {
            let (mut left, mut changed) = (Some(JobRange::ALL), 0);
            while let Some(range) = left {
                let adopted = store.adopt(range, 200, &EveryFire).await.unwrap();
                changed += adopted.changed;
                left = adopted.next.map(|after| JobRange { after, ..range });
            }
            changed
        };
        let (one, two, three) = tokio::join!(adopt(first.clone()), adopt(second), adopt(third));
        assert_eq!(one + two + three, 3_000, "{one}, {two} and {three}");
        assert_eq!(first.jobs_to_adopt().await, Ok(0));
        drop(first);
        database.remove().await;
    }
}

async fn works<S: Store>(store: &S) {
    let joined = store.join(&format!("node-{}", fastrand::u32(..)), Duration::from_secs(60)).await.unwrap();
    let app = store.ensure_app("works").await.unwrap();
    let spec = JobSpec::new(app, "a job", cron("0/1 * * * * ?"), "handle");
    let job = store.create_job(&spec).await.unwrap();
    store.control(job, &Control::Start, 1_000, &EveryFire).await.unwrap();
    let later = joined.now + Duration::from_secs(5);
    let claim = store.claim_due(&joined.node, later, Slots::ALL, 10, &EveryFire).await.unwrap();
    assert!(claim.orders.iter().any(|order| order.job.id == job));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_does_not_answer_is_passed_over() {
    for variable in ["TICKWRIGHT_TEST_MYSQL_URL", "TICKWRIGHT_TEST_POSTGRES_URL"] {
        let Some(server) = server(variable) else { continue };
        let database = Database::create(&server).await;
        let several = database.url.replace('@', "@127.0.0.1:1,");
        let store = open(&several, options()).await.unwrap();
        works(&*store).await;
        drop(store);
        let none = database.url.replace('@', "@127.0.0.1:1,127.0.0.1:2,");
        let none =
            none.rsplit_once(',').map(|(hosts, rest)| format!("{hosts}/{}", rest.split_once('/').unwrap().1));
        let error = open(&none.unwrap(), options()).await.map(|_| ()).unwrap_err();
        assert!(error.to_string().contains("none of the 2 hosts of the database accepts writes"), "{error}");
        database.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_were_cut_while_idle_are_not_noticed() {
    if let Some(server) = server("TICKWRIGHT_TEST_MYSQL_URL") {
        let database = Database::create(&server).await;
        let store = MySqlStore::open(&database.url, options()).await.unwrap();
        let mut other = MySqlConnection::connect(&server).await.unwrap();
        let cut = async |other: &mut MySqlConnection| {
            let idle =
                format!("SELECT id FROM information_schema.processlist WHERE db = '{}'", database.name);
            for id in raw_sql(AssertSqlSafe(idle)).fetch_all(&mut *other).await.unwrap() {
                run(other, &format!("KILL {}", id.get_unchecked::<i64, _>(0))).await;
            }
        };
        several_read(&store).await;
        cut(&mut other).await;
        several_read(&store).await;
        cut(&mut other).await;
        several_write(&store).await;
        drop(store);
        database.remove().await;
    }
    if let Some(server) = server("TICKWRIGHT_TEST_POSTGRES_URL") {
        let database = Database::create(&server).await;
        let store = PostgresStore::open(&database.url, options()).await.unwrap();
        let mut other = PgConnection::connect(&server).await.unwrap();
        let cut = async |other: &mut PgConnection| {
            let cut = "SELECT COUNT(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = ";
            raw_sql(AssertSqlSafe(format!("{cut}'{}'", database.name))).execute(other).await.unwrap();
        };
        several_read(&store).await;
        cut(&mut other).await;
        several_read(&store).await;
        cut(&mut other).await;
        several_write(&store).await;
        drop(store);
        database.remove().await;
    }
}

async fn several_read<S: Store>(store: &S) {
    let (a, b, c) = tokio::join!(store.jobs(None, 10), store.jobs(None, 10), store.jobs(None, 10));
    for jobs in [a, b, c] {
        assert_eq!(jobs.unwrap(), []);
    }
}

async fn several_write<S: Store>(store: &S) {
    let (a, b, c) = tokio::join!(store.ensure_app("a"), store.ensure_app("b"), store.ensure_app("c"));
    for app in [a, b, c] {
        app.unwrap();
    }
}

// ── Unusable databases ──────────────────────────────────────────────────────────────────────────────────────────

#[tokio::test(flavor = "multi_thread")]
async fn an_incomplete_database_is_refused_with_what_it_lacks() {
    let Some(server) = server("TICKWRIGHT_TEST_MYSQL_URL") else { return };
    let check = async |change: &str, expected: &str| {
        let database = Database::create(&server).await;
        let mut xxl = MySqlConnection::connect(&database.url).await.unwrap();
        run(&mut xxl, &GENERATIONS[3].tables()).await;
        run(&mut xxl, change).await;
        match MySqlStore::open(&database.url, options()).await.map(|_| ()) {
            Err(StoreError::Schema(reason)) => assert!(reason.contains(expected), "{reason}"),
            other => panic!("{change}: {other:?}"),
        }
        database.remove().await;
    };
    check("DROP TABLE xxl_job_log", "not xxl_job_log").await;
    check("ALTER TABLE xxl_job_info DROP COLUMN trigger_next_time", "no column trigger_next_time").await;
    check("ALTER TABLE xxl_job_info DROP COLUMN schedule_type", "neither schedule_type nor job_cron").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_lock_row_is_added() {
    let Some(server) = server("TICKWRIGHT_TEST_MYSQL_URL") else { return };
    let database = Database::create(&server).await;
    let mut xxl = MySqlConnection::connect(&database.url).await.unwrap();
    run(&mut xxl, &GENERATIONS[0].tables()).await;
    run(&mut xxl, "DELETE FROM xxl_job_lock").await;
    MySqlStore::open(&database.url, options()).await.unwrap();
    assert_eq!(line(&mut xxl, "SELECT lock_name FROM xxl_job_lock").await, ["schedule_lock"]);
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_never_tells_the_password() {
    for url in
        ["mysql://me:s3cret@127.0.0.1:1/x", "mysql://me:s3cret@127.0.0.1:nowhere/x", "mysql:me:s3cret@"]
    {
        let error = MySqlStore::open(url, options()).await.map(|_| ()).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("s3cret"), "{error}");
    }
    for url in [
        "postgres://me:s3cret@127.0.0.1:1/x",
        "postgres://me:s3cret@127.0.0.1:nowhere/x",
        "postgres:me:s3cret@",
    ] {
        let error = PostgresStore::open(url, options()).await.map(|_| ()).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("s3cret"), "{error}");
    }
}

// ── A simple planner ────────────────────────────────────────────────────────────────────────────────────────────

/// Dispatches every fire.
struct EveryFire;

impl Planner for EveryFire {
    fn plan(&self, job: &Job) -> Plan {
        let at = job.next_fire_at.expect("only jobs with a next time are due");
        let fire = Fire {
            scheduled_at: at,
            due_at: at,
            origin: Origin::Schedule,
            targets: vec![Target::Address("http://10.0.0.7:9999/".into())],
            waits: false,
        };
        Plan { fires: vec![fire], unsent: Vec::new(), next: self.next_after(job, at), replace: false }
    }

    fn assign(&self, _: &Job, run: &Run) -> Assignment {
        Assignment::Leave(run.due_at)
    }

    fn next_after(&self, job: &Job, after: Timestamp) -> NextFire {
        match job.spec.next_after(after) {
            Some(fire_at) => NextFire::At { fire_at, claim_at: self.claim_at(job, fire_at) },
            None => NextFire::Never,
        }
    }

    fn claim_at(&self, _: &Job, fire_at: Timestamp) -> Timestamp {
        fire_at - LOOK_AHEAD
    }
}

struct NothingFollows;

impl Ender for NothingFollows {
    fn follow(&self, _: &Job, _: &Run, _: &Outcome) -> FollowUps {
        FollowUps::default()
    }
}

// ── The databases ───────────────────────────────────────────────────────────────────────────────────────────────

fn server(variable: &str) -> Option<String> {
    let server = std::env::var(variable).ok();
    if server.is_none() {
        println!("skipped: {variable} is not set; run this under `scripts/databases run --`");
    }
    server
}

/// A database for one test.
struct Database {
    server: String,
    name: String,
    url: String,
}

impl Database {
    async fn create(server: &str) -> Database {
        let name = format!("tickwright_generations_{:08x}", fastrand::u32(..));
        let (address, rest) = server.rsplit_once('/').expect("the address of a server ends with a database");
        let settings = rest.find('?').map_or("", |begin| &rest[begin..]);
        let url = format!("{address}/{name}{settings}");
        let database = Database { server: server.into(), url, name };
        let charset = if server.starts_with("postgres") { "" } else { " CHARACTER SET utf8mb4" };
        database.tell(&format!("CREATE DATABASE {}{charset}", database.name)).await;
        database
    }

    async fn remove(self) {
        let forced = if self.server.starts_with("postgres") { " WITH (FORCE)" } else { "" };
        self.tell(&format!("DROP DATABASE {}{forced}", self.name)).await;
    }

    async fn tell(&self, sql: &str) {
        let sql = raw_sql(AssertSqlSafe(sql.to_owned()));
        if self.server.starts_with("postgres") {
            sql.execute(&mut PgConnection::connect(&self.server).await.unwrap()).await.unwrap();
        } else {
            sql.execute(&mut MySqlConnection::connect(&self.server).await.unwrap()).await.unwrap();
        }
    }
}

/// XXL-JOB's columns contain wall-clock times in the zone of its default URL.
fn options() -> Options {
    Options { zone: Zone::parse("Asia/Shanghai").unwrap(), ..Options::default() }
}

fn shanghai(at: Timestamp) -> String {
    let east = at + Duration::from_secs(8 * 3_600);
    east.to_string().replace('T', " ").replace('Z', "")
}

fn cron(expression: &str) -> Schedule {
    Schedule::cron(Cron::parse(expression).unwrap(), Zone::parse("Asia/Shanghai").unwrap(), DstRule::QUARTZ)
}

async fn run(connection: &mut MySqlConnection, sql: &str) {
    raw_sql(AssertSqlSafe(sql.to_owned())).execute(connection).await.unwrap();
}

async fn mysql_now(connection: &mut MySqlConnection) -> Timestamp {
    let now = line(connection, "SELECT CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)").await;
    Timestamp::from_millis(now[0].parse().unwrap())
}

/// The only row of a query, as text.
async fn line(connection: &mut MySqlConnection, sql: &str) -> Vec<String> {
    let rows = raw_sql(AssertSqlSafe(sql.to_owned())).fetch_all(connection).await.unwrap();
    let [row] = &rows[..] else { panic!("{} rows of {sql}", rows.len()) };
    (0..row.len())
        .map(|index| {
            let bytes: Option<&[u8]> = row.get_unchecked(index);
            bytes.map_or("NULL".into(), |bytes| String::from_utf8(bytes.to_vec()).unwrap())
        })
        .collect()
}

/// The definitions of XXL-JOB's tables, without the next auto-increment value.
async fn definitions(connection: &mut MySqlConnection) -> String {
    let sql = "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() \
               AND table_name LIKE 'xxl%' ORDER BY table_name";
    let mut text = String::new();
    for table in raw_sql(sql).fetch_all(&mut *connection).await.unwrap() {
        let table: String = table.get_unchecked(0);
        let created = line(connection, &format!("SHOW CREATE TABLE {table}")).await.remove(1);
        let (before, after) = created.split_once(" AUTO_INCREMENT=").unwrap_or((&created, ""));
        text.push_str(before);
        text.push_str(after.trim_start_matches(|char: char| char.is_ascii_digit()));
        text.push('\n');
    }
    text
}
