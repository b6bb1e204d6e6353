//! `tickwright routes`, as typed in a shell.

use std::process::Command;

#[test]
fn each_line_says_who_may_come() {
    let output = Command::new(env!("CARGO_BIN_EXE_tickwright")).arg("routes").output().unwrap();
    let table = String::from_utf8(output.stdout).unwrap();
    let words = |path: &str| -> Vec<String> {
        let line = table
            .lines()
            .find(|line| line.contains(&format!("{path} ")))
            .unwrap_or_else(|| panic!("{table}"));
        line.split_whitespace().take(5).map(str::to_owned).collect()
    };
    assert_eq!(words("/v1/jobs/{job}/trigger"), ["POST", "/v1/jobs/{job}/trigger", "api", "operate", "job"]);
    assert_eq!(words("/v1/session"), ["POST", "/v1/session", "open", "-", "-"]);
}
