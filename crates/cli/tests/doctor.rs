//! `tickwright doctor` as a command.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::Command;

fn doctor(folder: &Path, options: &[&str]) -> (Option<i32>, String) {
    let done = Command::new(env!("CARGO_BIN_EXE_tickwright"))
        .arg("doctor")
        .args(["--data-dir", folder.to_str().unwrap()])
        .args(options)
        .env_clear()
        .output()
        .unwrap();
    (done.status.code(), String::from_utf8(done.stdout).unwrap())
}

#[test]
fn what_is_wrong_is_said_with_what_to_do_and_only_then_is_the_exit_code_1() {
    let folder = tempfile::tempdir().unwrap();
    let (code, text) = doctor(folder.path(), &[]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("ok     no database yet:"), "{text}");
    assert!(
        text.contains("warn   no notifications are sent for alerts\n       -> set --alert-webhook"),
        "{text}"
    );
    assert!(!text.contains('\x1b'), "colours are for terminals");

    let (code, text) = doctor(folder.path(), &["--database-url", "mysql://root:secret@127.0.0.1:1/xxl_job"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("fail   failed to use the database:") && text.contains("\n       -> "), "{text}");
    assert!(!text.contains("secret"), "{text}");

    let (code, text) = doctor(folder.path(), &["--listen", "0.0.0.0:8080"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("fail   0.0.0.0:8080 is reachable from other machines"), "{text}");
}
