//! Problems with a database and its executors are found before a node starts.

use store::{Addresses, AppSpec};
use tickwright_server::Settings;
use tickwright_server::doctor::{Health, examine};

use crate::kit::Bench;

#[tokio::test]
async fn executors_that_do_not_answer_and_jobs_that_would_not_run_are_found() {
    let bench = Bench::start_with(|settings| settings.database.push_str("?shared=true")).await;
    let addresses = Addresses::Manual(vec!["http://127.0.0.1:1".into()]);
    let spec = AppSpec { name: "far-away".into(), title: "Far".into(), addresses };
    let app = bench.database.create_app(&spec).await.unwrap();
    let script = engine::Script {
        language: engine::ScriptLanguage::Shell,
        source: "date".into(),
        edited_at: bench.engine.now(),
    };
    let job = bench
        .job("a script", |spec| {
            spec.app = app;
            spec.schedule = cron::Schedule::once(bench.engine.now() + std::time::Duration::from_secs(3_600));
            spec.script = Some(script);
        })
        .await;
    bench.engine.start(job).await.unwrap();
    let unreadable = bench.job("edited by hand", |_| {}).await;
    let path = bench.settings.database.trim_start_matches("sqlite:").trim_end_matches("?shared=true");
    let sql = "UPDATE xxl_job_info SET schedule_type = 'CRON', schedule_conf = 'at noon', trigger_status = 1 WHERE id = ?";
    rusqlite::Connection::open(path).unwrap().execute(sql, [unreadable.0]).unwrap();

    let settings = Settings { scripts: false, ..bench.settings.clone() };
    let findings = examine(&settings).await;
    let has = |health, part: &str| {
        let found = findings.iter().find(|finding| finding.what.contains(part));
        assert_eq!(found.map(|finding| finding.health), Some(health), "{part}: {findings:#?}");
        assert_eq!(found.and_then(|finding| finding.advice.as_ref()).is_some(), health != Health::Good);
    };
    has(Health::Good, "the database responds: SQLite, tables created by Tickwright");
    has(Health::Good, "the clock differs from the database's by");
    has(Health::Weak, "no notifications are sent for alerts");
    has(Health::Weak, "the app `tickwright-sample` has no executor");
    has(Health::Bad, "1 started jobs are scripts");
    let named =
        format!("1 started jobs do not fire, because their schedules cannot be read: job {unreadable} (");
    has(Health::Bad, &named);
    has(Health::Bad, "the executor http://127.0.0.1:1 of the app `far-away` does not respond");
    bench.stop().await;
}

#[tokio::test]
async fn a_look_changes_nothing_and_says_what_a_start_would_add() {
    let bench = Bench::start().await;
    let file = bench.folder.join("another.db");
    std::fs::write(&file, "").unwrap();
    let settings = Settings { database: format!("sqlite:{}", file.display()), ..bench.settings.clone() };
    let findings = examine(&settings).await;
    let told = "the database responds; the first start will add the tables of XXL-JOB, our own tables, step 1 (runs)";
    assert!(findings.iter().any(|finding| finding.what.starts_with(told)), "{findings:#?}");
    assert_eq!(std::fs::read(&file).unwrap(), b"", "not a table was made");
    let spoilt = bench.folder.join("spoilt.db");
    std::fs::write(&spoilt, "this is no database, however long one looks at it").unwrap();
    let settings = Settings { database: format!("sqlite:{}", spoilt.display()), ..bench.settings.clone() };
    let findings = examine(&settings).await;
    let found = findings.iter().find(|finding| finding.health == Health::Bad).unwrap();
    assert!(found.what.starts_with("failed to use the database: "), "{found:?}");
    assert!(found.advice.as_ref().unwrap().contains("--database-url"), "{found:?}");
    let beside = |ending: &str| bench.folder.join(format!("another.db{ending}")).exists();
    assert!(!beside(".lock") && !beside("-wal"), "nor a file beside it");
    bench.stop().await;
}
