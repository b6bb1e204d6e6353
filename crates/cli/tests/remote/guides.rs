//! Every command of the guides, typed.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::kit::{Centre, PATIENCE, Process, TICKWRIGHT, repository, until};

#[test]
fn five_minutes_after_the_clone_a_job_of_one_s_own_runs() {
    let mut desk = Desk::new();
    desk.build_example("first");
    let seen = desk.follow("start.md");
    for expected in ["hello, world", "hello from my own program", "free on this disk"] {
        assert!(seen.contains(expected), "no `{expected}` in\n{seen}");
    }
    let program = fs::read_to_string(repository().join("crates/executor/examples/first.rs")).unwrap();
    let guide = fs::read_to_string(repository().join("docs/guides/start.md")).unwrap();
    let code = program.split_once("\n\n").unwrap().1;
    assert!(guide.contains(code), "the guide shows the program as it is");
    assert!(code.lines().count() <= 15);
}

#[test]
fn the_page_about_the_command_line_works_as_written() {
    let centre = Centre::start();
    // The page begins with the centre that the guide before it has started, and with an agent.
    let shell = centre.shell();
    shell.input(&centre.password).run("login --user admin").succeeds();
    let _agent = centre.agent();
    let mut desk = Desk::new();
    desk.meet(&centre.url, &centre.password);
    desk.exports = "export PATH=\"$PWD/target/release:$PATH\"\n".into();
    desk.follow("command-line.md");
    centre.stop();
}

/// Somebody who reads a guide and types what it says, in a folder of their own with what `make run` has built.
struct Desk {
    folder: tempfile::TempDir,
    url: Option<String>,
    password: String,
    /// What was said to the shell to remember.
    exports: String,
    terminals: Vec<Process>,
}

/// A block that begins with this is typed in another terminal, where it goes on running.
const OWN_TERMINAL: &str = "# in a terminal of its own";

/// The address that guides speak of.
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
        // What these would build has been built for this test, with other options.
        desk.program("make", "[ \"$*\" = run ] && exec target/release/tickwright serve");
        desk.program("cargo", "[ \"$1 $2 $3\" = 'run --release --example' ] && n=$4 && shift 5 && exec target/release/examples/$n \"$@\"");
        let makefile = fs::read_to_string(repository().join("Makefile")).unwrap();
        assert!(
            makefile.contains("cargo run --release -p tickwright-cli -- serve"),
            "make run is what is typed here"
        );
        desk
    }

    fn program(&self, name: &str, line: &str) {
        let folder = self.folder.path().join("bin");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(name), format!("#!/bin/sh\n{line}\n")).unwrap();
        fs::set_permissions(folder.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// All tests together build the examples; alone, this one has to.
    fn build_example(&self, name: &str) {
        if !built().join("examples").join(name).exists() {
            let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
            let mut build = Command::new(cargo);
            build.current_dir(repository()).args(["build", "-p", "tickwright-executor", "--example", name]);
            assert!(build.status().unwrap().success());
        }
    }

    /// Types every command of a guide; what was printed.
    fn follow(&mut self, guide: &str) -> String {
        let text = fs::read_to_string(repository().join("docs/guides").join(guide)).unwrap();
        let blocks: Vec<&str> =
            text.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
        assert!(!blocks.is_empty());
        let mut seen = String::new();
        for block in blocks {
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
        // A block that asks for nothing may be over already.
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
            // The first terminal is the centre's.
            None => {
                let url = process.wait_for("listening   ").trim().to_owned();
                let password = process.wait_for("sign in     as admin with ");
                self.meet(&url, password.split(' ').next().unwrap());
            }
            Some(before) => until("one more executor is there", || (self.executors() > before).then_some(())),
        }
        self.terminals.push(process);
    }

    fn meet(&mut self, url: &str, password: &str) {
        self.url = Some(url.into());
        self.password = password.into();
    }

    /// How many executors the centre knows.
    fn executors(&self) -> usize {
        let mut command = self.shell("target/release/tickwright app list --output json", Some(PATIENCE));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let apps: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        apps.as_array().unwrap().iter().map(|app| app["executors"].as_array().unwrap().len()).sum()
    }

    /// A shell that is given a block to run, and, unless it is to stay, so much time.
    fn shell(&self, block: &str, patience: Option<Duration>) -> Command {
        let url = self.url.as_deref().unwrap_or(USUAL);
        let script = format!("{}{}", self.exports, block.replace(USUAL, url));
        let path = format!("{}:{}", self.folder.path().join("bin").display(), std::env::var("PATH").unwrap());
        // For `timeout`, no time at all is no bound.
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

/// Where the binary is, and the examples beside it.
fn built() -> PathBuf {
    Path::new(TICKWRIGHT).parent().unwrap().to_owned()
}
