//! Scripts sent by a centre, executed for real.

#![cfg(unix)]

mod kit;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kit::{Centre, TOKEN, builder, call, send, trigger, with};
use protocol::xxl::Lineage;
use serde_json::{Value, json};
use tickwright_executor::{Builder, Executor, Job, Language, Scripts};
use tokio::time::timeout;

const SOON: Duration = Duration::from_secs(120);

#[tokio::test]
async fn every_language_at_hand_gets_its_arguments() {
    let it = Fixture::start(|builder| builder).await;
    let mut missing = Vec::new();
    let rows = [
        ("GLUE_SHELL", "bash", r#"echo "got $1 $2 $3 $(basename "$0")""#, "1_1700000000000.sh"),
        (
            "GLUE_PYTHON",
            "python3",
            "import sys, os; print('got', *sys.argv[1:], os.path.basename(sys.argv[0]))",
            "2_1700000000000.py",
        ),
        (
            "GLUE_PYTHON2",
            "python",
            "import sys, os; print(' '.join(['got'] + sys.argv[1:] + [os.path.basename(sys.argv[0])]))",
            "3_1700000000000.py",
        ),
        (
            "GLUE_PHP",
            "php",
            r#"<?php echo "got $argv[1] $argv[2] $argv[3] ", basename($argv[0]), "\n";"#,
            "4_1700000000000.php",
        ),
        (
            "GLUE_NODEJS",
            "node",
            "console.log('got', ...process.argv.slice(2), require('path').basename(process.argv[1]))",
            "5_1700000000000.js",
        ),
        (
            "GLUE_POWERSHELL",
            "pwsh",
            r#"Write-Output "got $($args -join ' ') $(Split-Path -Leaf $PSCommandPath)""#,
            "6_1700000000000.ps1",
        ),
    ];
    for (number, (glue, program, source, file)) in (1..).zip(rows) {
        if !is_installed(program) {
            missing.push(program);
            continue;
        }
        let request = with(script(number * 100, glue, source, "a;b"), "broadcastIndex", 1);
        it.accepted(&with(request, "broadcastTotal", 3)).await;
        assert_eq!(it.centre.result(number * 100).await, (200, String::new()), "{glue}");
        let log = it.log(number * 100).await;
        assert!(log.contains(&format!(" got a;b 1 3 {file}\n")), "{glue}: {log}");
    }
    println!("not installed, so not tried: {missing:?}");
    it.tidied().await;
}

#[tokio::test]
async fn the_exit_code_decides() {
    let it = Fixture::start(|builder| builder).await;
    for (run_id, source, expected) in [
        (100, "exit 0", (200, String::new())),
        (200, "exit 3", (500, "script exit value(3) is failed".to_owned())),
        (300, "kill -9 $$", (500, "script exit value(137) is failed".to_owned())),
        (400, "echo on; echo windows\r\nexit 0\r\n", (200, String::new())),
    ] {
        it.accepted(&script(run_id, "GLUE_SHELL", source, "")).await;
        assert_eq!(it.centre.result(run_id).await, expected, "{source}");
    }
    // Longer than the system allows for an argument.
    it.accepted(&script(500, "GLUE_SHELL", "exit 0", &"x".repeat(4_000_000))).await;
    assert_eq!(it.centre.result(500).await, (500, "script exit value(-1) is failed".to_owned()));
    assert!(it.log(500).await.contains("failed to start `bash`: "));
}

#[tokio::test]
async fn the_environment_holds_what_is_documented_and_no_more() {
    let it = Fixture::start(|builder| builder.pass_env("CARGO_MANIFEST_DIR")).await;
    let request =
        with(script(700, "GLUE_SHELL", "env -0 | sort -z | tr '\\0' '\\n'; pwd", "p q"), "broadcastTotal", 2);
    it.accepted(&request).await;
    assert_eq!(it.centre.result(700).await.0, 200);
    let log = it.log(700).await;
    let lines: Vec<&str> = log.lines().map(|line| line.get(24..).unwrap_or_default()).collect();
    let folder = fs::canonicalize(it.directory.path()).unwrap().join("work/700").display().to_string();
    for expected in [
        "TICKWRIGHT_JOB_ID=7",
        "TICKWRIGHT_PARAM=p q",
        "TICKWRIGHT_RUN_ID=700",
        "TICKWRIGHT_SHARD_INDEX=0",
        "TICKWRIGHT_SHARD_TOTAL=2",
        "TICKWRIGHT_TRIGGERED_AT=1794769410531",
        &format!("TICKWRIGHT_WORK_FOLDER={folder}"),
        &format!("TMPDIR={folder}"),
        &folder,
    ] {
        assert!(lines.contains(&expected), "no {expected} in\n{log}");
    }
    let known = ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "CARGO_MANIFEST_DIR", "PWD", "SHLVL", "_"];
    for line in lines.iter().filter(|line| line.contains('=')) {
        let name = line.split('=').next().unwrap();
        assert!(known.contains(&name) || name.starts_with("TICKWRIGHT_"), "{line}");
    }
    assert!(!log.contains(TOKEN));
    assert!(!Path::new(&folder).exists());
}

#[tokio::test]
async fn what_is_printed_is_seen_while_it_runs_and_ends_at_a_limit() {
    let it = Fixture::start(|builder| builder.output_max(1_000)).await;
    let source = "echo first; echo second >&2; printf 'a\\xffb\\n'; sleep 1000";
    it.accepted(&script(100, "GLUE_SHELL", source, "")).await;
    let seen = async {
        while !it.log(100).await.contains(" a\u{fffd}b\n") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(SOON, seen).await.unwrap();
    let log = it.log(100).await;
    assert!(log.contains(" first\n") && log.find("first") < log.find("second"), "{log}");
    call(it.to, "/kill", r#"{"jobId":1}"#).await;
    it.centre.result(100).await;

    // The script can write a gigabyte without blocking.
    it.accepted(&script(200, "GLUE_SHELL", "head -c 1000000000 /dev/zero | tr '\\0' x; echo; exit 0", ""))
        .await;
    assert_eq!(it.centre.result(200).await, (200, String::new()));
    let log = it.log(200).await;
    assert!(log.contains("the output is longer than 1000 bytes; the rest is not stored"), "{log}");
    assert!(log.len() < 2_000, "{}", log.len());
}

#[tokio::test]
async fn a_kill_ends_the_whole_tree() {
    let it = Fixture::start(|builder| builder).await;
    let pids = it.directory.path().join("pids");
    // A child, a grandchild that ignores `SIGTERM`, and a process that left the group.
    let source = "sleep 1000 & echo $! >> $1\n\
                  (trap '' TERM; bash -c 'echo $$ >> $0; trap \"\" TERM; sleep 1000; sleep 1000' $1) &\n\
                  setsid bash -c 'echo $$ >> $0; exec sleep 1000' $1 &\n\
                  echo $$ >> $1; wait; sleep 1000";
    it.accepted(&script(100, "GLUE_SHELL", source, pids.to_str().unwrap())).await;
    let pids = numbers(&pids, 4).await;
    assert_eq!(call(it.to, "/kill", r#"{"jobId":1}"#).await["code"], 200);
    assert_eq!(
        it.centre.result(100).await,
        (500, "scheduling center kill job. [job running, killed]".to_owned())
    );
    for pid in pids {
        gone(pid).await;
    }
    it.tidied().await;
}

#[tokio::test]
async fn a_script_may_tidy_up_before_it_is_ended() {
    let it = Fixture::start(|builder| builder).await;
    let note = it.directory.path().join("note");
    let source = "trap 'echo tidied > $1; exit 0' TERM; echo ready > $1.ready; while :; do sleep 0.01; done";
    it.accepted(&script(100, "GLUE_SHELL", source, note.to_str().unwrap())).await;
    content(&note.with_extension("ready")).await;
    call(it.to, "/kill", r#"{"jobId":1}"#).await;
    it.centre.result(100).await;
    assert_eq!(fs::read_to_string(&note).unwrap(), "tidied\n");
}

#[tokio::test]
async fn a_script_that_takes_too_long_is_ended() {
    let it = Fixture::start(|builder| builder).await;
    let pids = it.directory.path().join("pids");
    let source = "echo $$ >> $1; sleep 1000 & echo $! >> $1; wait";
    let request = script(100, "GLUE_SHELL", source, pids.to_str().unwrap());
    it.accepted(&with(request, "executorTimeout", 1)).await;
    assert_eq!(it.centre.result(100).await, (502, "job execute timeout ".to_owned()));
    for pid in numbers(&pids, 2).await {
        gone(pid).await;
    }
}

#[tokio::test]
async fn what_a_script_leaves_behind_ends_with_it() {
    let it = Fixture::start(|builder| builder).await;
    let pids = it.directory.path().join("pids");
    let source = "sleep 1000 & echo $! >> $1; touch left; mkdir -p a/b; exit 0";
    it.accepted(&script(100, "GLUE_SHELL", source, pids.to_str().unwrap())).await;
    assert_eq!(it.centre.result(100).await.0, 200);
    for pid in numbers(&pids, 1).await {
        gone(pid).await;
    }
    it.tidied().await;
}

#[tokio::test]
async fn a_stop_of_the_executor_ends_its_scripts() {
    let it = Fixture::start(|builder| builder).await;
    let pids = it.directory.path().join("pids");
    let source = "echo $$ >> $1; sleep 1000";
    it.accepted(&script(100, "GLUE_SHELL", source, pids.to_str().unwrap())).await;
    let pids = numbers(&pids, 1).await;
    let Fixture { executor, centre, .. } = it;
    assert_eq!(executor.stop(Duration::ZERO).await.killed, 1);
    let expected = "web container destroy and kill the job. [job running, killed]";
    assert_eq!(centre.result(100).await, (500, expected.to_owned()));
    gone(pids[0]).await;
}

#[tokio::test]
async fn an_edited_script_takes_the_place_of_the_old_one() {
    let it = Fixture::start(|builder| builder.job(Job::new("quiet", |_| async {}))).await;
    let version = |run_id, source, version: i64| {
        with(script(run_id, "GLUE_SHELL", source, ""), "glueUpdatetime", version)
    };
    it.accepted(&version(100, "sleep 1000", 1)).await;
    it.accepted(&version(101, "sleep 1000", 1)).await;
    // A run of the same version waits its turn, or is discarded.
    let later = with(version(102, "sleep 1000", 1), "executorBlockStrategy", "DISCARD_LATER");
    assert_eq!(call(it.to, "/run", &later.to_string()).await["msg"], "block strategy effect：Discard Later");
    // A run of another version replaces it, even with the strategy "discard later".
    it.accepted(&with(version(103, "sleep 1000", 2), "executorBlockStrategy", "DISCARD_LATER")).await;
    let reason = "change job source or glue type, and terminate the old job thread.";
    assert_eq!(it.centre.result(100).await, (500, format!("{reason} [job running, killed]")));
    let waited = format!("{reason} [job not executed, in the job queue, killed.]");
    assert_eq!(it.centre.result(101).await, (500, waited));
    // So does a run of a handler, with its own text.
    it.accepted(&trigger(104, "quiet", "")).await;
    let reason = "change jobhandler or glue type, and terminate the old job thread.";
    assert_eq!(it.centre.result(103).await, (500, format!("{reason} [job running, killed]")));
    assert_eq!(it.centre.result(104).await.0, 200);
    // With no run left to stop, a new version simply runs.
    it.accepted(&version(105, "exit 0", 3)).await;
    assert_eq!(it.centre.result(105).await.0, 200);
    assert_eq!(it.centre.results().len(), 5);
}

/// X1, X27 of docs/security.md.
#[tokio::test]
async fn no_script_runs_where_none_is_wanted_or_for_whom_it_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let centre = Centre::start(Lineage::L33).await;
    let off = builder(&centre, directory.path()).start().await.unwrap();
    let other = tempfile::tempdir().unwrap();
    let shell_only =
        builder(&centre, other.path()).scripts(Scripts::of([Language::Shell])).start().await.unwrap();
    let proof = directory.path().join("proof");
    let source = format!("touch {}", proof.display());
    let titles = [
        ("GLUE_SHELL", "GLUE(Shell)"),
        ("GLUE_PYTHON", "GLUE(Python3)"),
        ("GLUE_PYTHON2", "GLUE(Python2)"),
        ("GLUE_PHP", "GLUE(PHP)"),
        ("GLUE_NODEJS", "GLUE(Nodejs)"),
        ("GLUE_POWERSHELL", "GLUE(PowerShell)"),
        ("GLUE_GROOVY", "GLUE(Java)"),
    ];
    for (number, (glue, title)) in (1..).zip(titles) {
        let request = script(number * 100, glue, &source, "").to_string();
        for path in ["/run", "/trigger"] {
            let refusal = format!("fail, current glue type [{title}] not supported.");
            assert_eq!(call(off.local_address(), path, &request).await["msg"], refusal.as_str());
            if glue != "GLUE_SHELL" {
                assert_eq!(call(shell_only.local_address(), path, &request).await["msg"], refusal.as_str());
            }
        }
    }
    // With scripts enabled, only requests with the right token are accepted.
    let to = shell_only.local_address();
    let token = format!("XXL-JOB-ACCESS-TOKEN: {TOKEN}\r\n");
    let request = script(900, "GLUE_SHELL", &source, "").to_string();
    for path in ["/run", "/trigger", "/kill", "/log", "/beat", "/idleBeat"] {
        for headers in [
            "",
            "XXL-JOB-ACCESS-TOKEN: \r\n",
            "XXL-JOB-ACCESS-TOKEN: other\r\n",
            &token.to_uppercase(),
            &token.repeat(2),
            &format!("{token}XXL-JOB-APPNAME: other\r\n"),
        ] {
            let head = format!("POST {path} HTTP/1.1\r\nHost: x\r\n{headers}");
            let (_, answer) = send(to, &head, Some(&request)).await;
            assert!(answer.starts_with(r#"{"code":500,"#), "{head} {answer}");
        }
    }
    assert!(!proof.exists());
    assert!(centre.results().is_empty());
}

struct Fixture {
    executor: Executor,
    to: SocketAddr,
    centre: Centre,
    directory: tempfile::TempDir,
}

impl Fixture {
    async fn start(change: impl FnOnce(Builder) -> Builder) -> Fixture {
        let centre = Centre::start(Lineage::L33).await;
        let directory = tempfile::tempdir().expect("a directory");
        let builder = change(builder(&centre, directory.path()).scripts(Scripts::all()));
        let executor = builder.start().await.expect("it starts");
        Fixture { to: executor.local_address(), executor, centre, directory }
    }

    async fn accepted(&self, request: &Value) {
        let answer = call(self.to, "/run", &request.to_string()).await;
        assert_eq!(answer["code"], 200, "{answer}");
    }

    async fn log(&self, run_id: i64) -> String {
        let ask = json!({"logDateTim": 1_794_769_410_531_i64, "logId": run_id, "fromLineNum": 1});
        let answer = call(self.to, "/log", &ask.to_string()).await;
        answer["data"]["logContent"].as_str().expect("a log").to_owned()
    }

    /// Waits until no files of finished runs are left. A script is removed shortly after its run was reported.
    async fn tidied(&self) {
        let is_empty = |name: &&str| {
            fs::read_dir(self.directory.path().join(name)).is_ok_and(|mut entries| entries.next().is_none())
        };
        let tidied = async {
            while !["work", "scripts"].iter().all(is_empty) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(SOON, tidied).await.expect("scripts and folders are removed");
    }
}

fn script(run_id: i64, glue: &str, source: &str, param: &str) -> Value {
    with(with(trigger(run_id, "", param), "glueType", glue), "glueSource", source)
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Reads process ids from a file, once it contains `count` of them.
async fn numbers(file: &Path, count: usize) -> Vec<u32> {
    let read = async {
        loop {
            let text = fs::read_to_string(file).unwrap_or_default();
            let numbers: Vec<u32> = text.lines().filter_map(|line| line.parse().ok()).collect();
            if numbers.len() >= count && text.ends_with('\n') {
                return numbers;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(SOON, read).await.expect("the script says who it is")
}

async fn content(file: &Path) {
    let there = async {
        while !file.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(SOON, there).await.expect("the file appears");
}

/// Waits until a process is gone or a zombie.
async fn gone(pid: u32) {
    let ended = async {
        loop {
            let stat = fs::read_to_string(PathBuf::from(format!("/proc/{pid}/stat"))).unwrap_or_default();
            if stat.is_empty() || stat.contains(") Z ") {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(SOON, ended).await.unwrap_or_else(|_| panic!("process {pid} lives on"));
}
