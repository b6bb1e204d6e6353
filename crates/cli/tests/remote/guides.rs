//! Runs every command of the guides.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::kit::{Centre, PATIENCE, Process, TICKWRIGHT, credential, repository, until};

#[test]
fn five_minutes_after_the_clone_a_job_of_one_s_own_runs() {
    let mut desk = Desk::new();
    desk.build_example("first");
    let seen = desk.follow("start.md");
    for expected in ["hello, world", "hello from my own program", "free on this disk"] {
        assert!(seen.contains(expected), "no `{expected}` in\n{seen}");
    }
    let program = fs::read_to_string(repository().join("crates/executor/examples/first.rs")).unwrap();
    let code = program.split_once("\n\n").unwrap().1;
    assert!(page("start.md").contains(code), "the guide shows the program as it is");
    assert!(code.lines().count() <= 15);
}

#[test]
fn the_guide_says_the_same_in_chinese() {
    let (english, chinese) = (page("start.md"), page("start.zh-CN.md"));
    let commands = |page: &str| {
        let blocks = [blocks(page, "sh"), blocks(page, "rust")].concat().join("\n");
        let lines = blocks.lines().filter(|line| !line.starts_with("# ")).map(str::to_owned);
        lines.collect::<Vec<_>>()
    };
    // Each page uses a time zone familiar to its readers.
    let english: Vec<String> =
        commands(&english).iter().map(|line| line.replace("Europe/London", "Asia/Shanghai")).collect();
    assert_eq!(commands(&chinese), english);
}

#[test]
fn the_page_about_jobs_that_declare_themselves_works_as_written() {
    let centre = Centre::signed_in();
    let mut desk = Desk::new();
    desk.build_example("declared");
    desk.meet(&centre);
    // Created by the guide before this one.
    desk.type_in("tickwright app add my-app\ntickwright app token my-app --to my-app.token\n");
    let seen = desk.follow("declared-jobs.md");
    let words: Vec<&str> = seen.split_whitespace().collect();
    for expected in ["my-app/sync-orders", "Every 30 seconds", "overridden schedule"] {
        let expected: Vec<&str> = expected.split(' ').collect();
        assert!(words.windows(expected.len()).any(|found| found == expected), "no {expected:?} in\n{seen}");
    }
    assert_eq!(seen.matches("overridden").count(), 1, "put back, it follows again:\n{seen}");
    centre.stop();
}

#[test]
fn the_page_about_the_command_line_works_as_written() {
    let centre = Centre::signed_in();
    // The page requires the scheduling centre started in the guide before, and an agent.
    let _agent = centre.agent();
    let mut desk = Desk::new();
    desk.meet(&centre);
    desk.follow("command-line.md");
    centre.stop();
}

#[test]
fn the_page_about_work_calendars_works_as_written() {
    let centre = Centre::signed_in();
    let mut desk = Desk::new();
    desk.meet(&centre);
    let seen = desk.follow("calendars.md");
    for expected in ["cn: 4 days added", "国庆节", "payroll/report (payroll/report)"] {
        assert!(seen.contains(expected), "no `{expected}` in\n{seen}");
    }
    centre.stop();
}

#[test]
fn a_slip_of_the_pen_in_a_guide_is_noticed() {
    let desk = Desk::new();
    desk.build_example("first");
    for wrong in [
        "make rum",
        "cargo run --release --exampel first",
        "cargo run --release --example frist",
        "cargo run --release --example first http://127.0.0.1:8080",
        "cargo run --example first",
        "cargo run --release -p tickwright-clii -- serve",
        "target/release/tickwright jobs list",
    ] {
        let output = desk.shell(wrong, Some(PATIENCE)).output().unwrap();
        assert!(!output.status.success(), "{wrong}: {}", String::from_utf8_lossy(&output.stdout));
    }
}

/// A simulated reader that types the commands of a guide, in its own folder with the output of `make run`.
struct Desk {
    folder: tempfile::TempDir,
    url: Option<String>,
    password: String,
    /// Variables exported in the shell.
    exports: String,
    terminals: Vec<Process>,
}

/// A block that begins with this runs in another terminal and keeps running.
const OWN_TERMINAL: &str = "# in a terminal of its own";

/// Address used in the guides.
const USUAL: &str = "http://127.0.0.1:8080";

impl Desk {
    fn new() -> Desk {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("target")).unwrap();
        std::os::unix::fs::symlink(built(), folder.path().join("target/release")).unwrap();
        let desk = Desk {
            folder,
            url: None,
            password: String::new(),
            exports: String::new(),
            terminals: Vec::new(),
        };
        // `make` is the real one and uses the repository's Makefile.
        std::os::unix::fs::symlink(repository().join("Makefile"), desk.folder.path().join("Makefile"))
            .unwrap();
        desk.lay_out_cargo();
        desk
    }

    /// Installs a `cargo` that starts binaries built for this test, with other options, where the real one would
    /// build them first. It supports only the commands of the guides.
    fn lay_out_cargo(&self) {
        let folder = self.folder.path().join("bin");
        fs::create_dir_all(&folder).unwrap();
        let script = CARGO.replace("REPOSITORY", repository().to_str().unwrap());
        fs::write(folder.join("cargo"), script).unwrap();
        fs::set_permissions(folder.join("cargo"), fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// All tests together build the examples; this test alone must build them itself.
    fn build_example(&self, name: &str) {
        if !built().join("examples").join(name).exists() {
            let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
            let mut build = Command::new(cargo);
            build.current_dir(repository()).args(["build", "-p", "tickwright-executor", "--example", name]);
            assert!(build.status().unwrap().success());
        }
    }

    /// Runs every command of a guide; returns the printed output.
    fn follow(&mut self, guide: &str) -> String {
        let blocks = blocks(&page(guide), "sh");
        assert!(!blocks.is_empty());
        let mut seen = String::new();
        for block in &blocks {
            match block.starts_with(OWN_TERMINAL) {
                true => self.open_terminal(block),
                false => seen += &self.type_in(block),
            }
        }
        seen
    }

    fn type_in(&mut self, block: &str) -> String {
        let mut child = self
            .shell(block, Some(PATIENCE))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let typed = format!("{}\n", self.password);
        // A block that reads no input may have exited already.
        let _ = child.stdin.take().unwrap().write_all(typed.as_bytes());
        let output = child.wait_with_output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{block}\n{printed}\n{errors}");
        let exports = block.lines().filter(|line| line.starts_with("export "));
        self.exports.extend(exports.map(|line| format!("{line}\n")));
        printed
    }

    fn open_terminal(&mut self, block: &str) {
        let before = self.url.is_some().then(|| self.executors());
        let process = Process::start(self.shell(block, None));
        match before {
            // The first terminal runs the scheduling centre.
            None => {
                let url = process.wait_for("listening   ").trim().to_owned();
                self.url = Some(url);
                // A test has no terminal, so the password is in the file.
                self.password = credential(&self.folder.path().join("tickwright-data"), "password");
            }
            Some(before) => until("one more executor is there", || (self.executors() > before).then_some(())),
        }
        self.terminals.push(process);
    }

    /// Continues where another page has ended: with this scheduling centre, signed in.
    fn meet(&mut self, centre: &Centre) {
        self.url = Some(centre.url.clone());
        self.password.clone_from(&centre.password);
        self.type_in("export PATH=\"$PWD/target/release:$PATH\"\ntickwright login --user admin\n");
    }

    /// Number of executors that the scheduling centre knows.
    fn executors(&self) -> usize {
        let mut command = self.shell("target/release/tickwright app list --output json", Some(PATIENCE));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let apps: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        apps.as_array().unwrap().iter().map(|app| app["executors"].as_array().unwrap().len()).sum()
    }

    /// A shell that runs a block, with a timeout unless it keeps running.
    fn shell(&self, block: &str, patience: Option<Duration>) -> Command {
        let url = self.url.as_deref().unwrap_or(USUAL);
        let script = format!("{}{}", self.exports, block.replace(USUAL, url));
        let path = format!("{}:{}", self.folder.path().join("bin").display(), std::env::var("PATH").unwrap());
        // For `timeout`, 0 means no limit.
        let seconds = patience.map_or(0, |patience| patience.as_secs()).to_string();
        let mut command = Command::new("timeout");
        command.args([&seconds, "bash", "-eu", "-o", "pipefail", "-c", &script]);
        command.current_dir(self.folder.path());
        command.env("XDG_CONFIG_HOME", self.folder.path().join("home")).env("PATH", path);
        command
            .env("TICKWRIGHT_LISTEN", "127.0.0.1:0")
            .env("TICKWRIGHT_URL", url)
            .env_remove("TICKWRIGHT_API_KEY");
        command
    }
}

/// Implements the `cargo` commands of the guides with existing binaries. An example must exist in the repository,
/// with a unique name.
const CARGO: &str = r#"#!/bin/sh
no() { echo "cargo is not called so in a guide: $1" >&2; exit 101; }
said="$*"
[ "$1 $2" = "run --release" ] || no "$said"
case "$3" in
--example)
    ls REPOSITORY/examples/examples/"$4".rs REPOSITORY/crates/*/examples/"$4".rs 2>/dev/null | wc -l | grep -qx 1 || no "$said"
    program=examples/$4
    ;;
-p)
    [ "$4" = tickwright-cli ] || no "$said"
    program=tickwright
    ;;
*) no "$said" ;;
esac
shift 4
[ $# = 0 ] || [ "$1" = -- ] || no "$said"
[ $# = 0 ] || shift
exec target/release/$program "$@"
"#;

/// Text of a guide.
fn page(name: &str) -> String {
    fs::read_to_string(repository().join("docs/guides").join(name)).unwrap()
}

/// Code blocks of a language in a page.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let begin = format!("```{language}\n");
    page.split(&begin).skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

/// Directory of the binary and the examples.
fn built() -> PathBuf {
    Path::new(TICKWRIGHT).parent().unwrap().to_owned()
}
