//! Every example works with a centre that only knows XXL-JOB's protocol.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod kit;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use kit::{Centre, TOKEN, call, trigger};
use protocol::xxl::Lineage;

/// Name of the example, handler, parameter, and expected result.
const EXAMPLES: [(&str, &str, &str, &str); 7] = [
    ("cancellation", "poll", "", "scheduling center kill job. [job running, killed]"),
    ("declared", "sync-orders", "", "synced"),
    ("first", "greet", "from my own", "greeted"),
    ("hello", "hello", "world", "hello world"),
    ("inside_an_axum_app", "restock", "shoes", "restocked 1 times"),
    ("sharding", "bill-customers", "", "billed 1000 customers, shard 0/1"),
    ("typed_parameter", "cleanup", r#"{"bucket": "invoices", "older_than_days": 30}"#, "invoices is clean"),
];

#[tokio::test]
async fn every_example_runs_what_it_is_sent() {
    build();
    for (name, handler, param, expected) in EXAMPLES {
        let centre = Centre::start(Lineage::L33).await;
        centre.open();
        let desk = tempfile::tempdir().unwrap();
        write_secret(&desk.path().join("my-app.token"));
        let mut command = Command::new(built().join(name));
        command
            .args([&centre.url(), TOKEN])
            .current_dir(desk.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let example = Process(command.spawn().unwrap());
        centre.until(name, |centre| !centre.registered().is_empty()).await;
        let address = centre.registered()[0].trim_start_matches("http://").trim_end_matches('/').to_owned();
        let to: SocketAddr = address.parse().unwrap();
        let answer = call(to, "/run", &trigger(100, handler, param).to_string()).await;
        assert_eq!(answer["code"], 200, "{name}: {answer}");
        if name == "cancellation" {
            // It would run forever.
            let request = r#"{"logDateTim":1794769410531,"logId":100,"fromLineNum":1}"#;
            while !call(to, "/log", request).await.to_string().contains("still nothing") {}
            call(to, "/kill", r#"{"jobId":1}"#).await;
        }
        assert_eq!(centre.result(100).await.1, expected, "{name}");
        drop(example);
    }
}

#[test]
fn no_example_is_forgotten() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut written: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    written.sort();
    assert_eq!(written, EXAMPLES.map(|(name, ..)| name));
}

/// Writes the token as `tickwright app token --to` does: readable by its owner only.
fn write_secret(path: &Path) {
    std::fs::write(path, TOKEN).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
}

/// Directory of the compiled examples, next to the tests.
fn built() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().with_file_name("examples")
}

/// `cargo test` builds the examples for all tests together; when this test runs alone, it has to build them.
fn build() {
    if EXAMPLES.iter().all(|(name, ..)| built().join(name).exists()) {
        return;
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "-p", "tickwright-executor", "--examples"]).current_dir(env!("CARGO_MANIFEST_DIR"));
    assert!(build.status().unwrap().success());
}

/// Killed when dropped, also when a test fails.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
