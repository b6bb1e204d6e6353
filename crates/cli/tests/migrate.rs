//! `tickwright migrate` as a command.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::Command;

use cron::{Cron, DstRule, Schedule, Zone};
use engine::{JobSpec, Store as _};

fn migrate(folder: &Path, options: &[&str]) -> (Option<i32>, String) {
    let done = Command::new(env!("CARGO_BIN_EXE_tickwright"))
        .arg("migrate")
        .args(options)
        .current_dir(folder)
        .env_clear()
        .output()
        .unwrap();
    let text = [done.stdout, done.stderr].concat();
    (done.status.code(), String::from_utf8(text).unwrap())
}

#[test]
fn settings_of_xxl_job_become_a_file_that_only_its_owner_reads() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let properties =
        "spring.datasource.url=jdbc:mysql://db:3306/xxl_job\nspring.datasource.password=secret\n";
    std::fs::write(folder.path().join("application.properties"), properties).unwrap();
    let (code, text) = migrate(folder.path(), &["--from-properties", "application.properties"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("migrate --check --config tickwright.toml") && !text.contains("secret"), "{text}");
    let file = folder.path().join("tickwright.toml");
    assert!(std::fs::read_to_string(&file).unwrap().contains("mysql://root:secret@db:3306/xxl_job"));
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o077, 0);

    let (code, text) = migrate(folder.path(), &["--from-properties", "application.properties"]);
    assert_eq!(code, Some(1), "what is there is not overwritten");
    assert!(text.contains("--output"), "{text}");
}

#[test]
fn a_database_that_is_not_there_is_not_made() {
    let folder = tempfile::tempdir().unwrap();
    let (code, text) = migrate(folder.path(), &["--check"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("there is no database at tickwright-data/tickwright.db; set XXL-JOB's"), "{text}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nor a folder or a key");
}

#[tokio::test]
async fn the_report_names_each_difference_and_why() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("jobs.db").display());
    let database =
        store::open(&url, store::Options { zone: Zone::utc(), ..Default::default() }).await.unwrap();
    let app = database.ensure_app("shop").await.unwrap();
    for (name, expr) in [("daily", "0 0 3 * * ?"), ("month end", "0 15 10 L * ?"), ("list", "0 0 0 1,L * ?")]
    {
        let schedule = Schedule::cron(Cron::parse(expr).unwrap(), Zone::utc(), DstRule::QUARTZ);
        database.create_job(&JobSpec::new(app, name, schedule, "report")).await.unwrap();
    }
    drop(database);
    let (code, text) = migrate(folder.path(), &["--check", "--zone", "UTC", "--database-url", &url]);
    assert_eq!(code, Some(0), "{text}");
    assert!(!text.contains("`daily`"), "{text}");
    assert!(text.contains("job 2 `month end`, 0 15 10 L * ?\n  under 3.1.0 to 3.3.2: fire "), "{text}");
    assert!(text.contains("it supports L only in months of 31 days"), "{text}");
    assert!(text.contains("under 2.2.0 to 3.0.0: never, because it rejects L in a list of days"), "{text}");
    assert!(
        text.contains(
            "3 jobs: 1 fire the same under every release, 2 differ under some, 0 have an invalid schedule"
        ),
        "{text}"
    );
}
