//! `tickwright job trigger` and `tickwright run`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::json;

use crate::kit::{APP, Centre, Process, until};

#[test]
fn a_run_is_triggered_and_its_log_is_on_the_screen() {
    let centre = Centre::signed_in();
    let _agent = centre.agent();
    centre.script_job("greet", "echo \"hello $1\"\necho done\n");
    let log = centre.shell().run("job trigger greet --param world --follow");
    assert!(log.stderr.contains("succeeded after"), "{}", log.stderr);
    let log = log.succeeds();
    assert!(log.contains("hello world") && log.contains("done"), "{log}");

    let runs = centre.json("run list --job greet");
    let run = runs[0]["id"].as_i64().unwrap();
    assert_eq!((&runs[0]["state"], &runs[0]["param"]), (&json!("succeeded"), &json!("world")));
    assert!(centre.says(&format!("run logs {run}")).contains("hello world"));
    assert_eq!(centre.says("run logs greet"), centre.says(&format!("run logs {run}")), "the newest");
    assert_eq!(centre.says("run logs -f greet"), centre.says("run logs greet"));
    let first = centre.says(&format!("run logs {run} --from 1"));
    let second = centre.says(&format!("run logs {run} --from 2"));
    assert_eq!(first.split_once('\n').unwrap().1, second);

    let shown = centre.says(&format!("run show {run}"));
    assert!(shown.contains("state      succeeded") && shown.contains("trace      "), "{shown}");
    assert_eq!(centre.json(&format!("run show {run}"))["job_key"], "greet");
    let listed = centre.says("run list --state succeeded");
    assert!(listed.starts_with("RUN") && listed.contains("greet"), "{listed}");
    assert_eq!(centre.json("run list --state failed"), json!([]));
    centre.stop();
}

#[test]
fn a_run_that_fails_fails_the_command_that_follows_it() {
    let centre = Centre::signed_in();
    let _agent = centre.agent();
    centre.script_job("broken", "echo 'no luck'\nexit 3\n");
    let followed = centre.shell().run("job trigger broken --follow");
    assert!(followed.stdout.contains("no luck"), "{}", followed.stdout);
    followed.fails(1, "did not succeed");
    let run = centre.json("job trigger broken")["run"].as_i64().unwrap();
    centre.json_once(&format!("run show {run}"), |run| run["state"] == "failed");
    centre.stop();
}

#[test]
fn a_run_is_followed_while_it_goes_on_and_killed() {
    let centre = Centre::signed_in();
    let _agent = centre.agent();
    centre.script_job("long", "echo started\nsleep 1000\n");
    centre.shell().run("run logs long").fails(1, "add -f to wait for the first one");
    let run = centre.json("job trigger long")["run"].as_i64().unwrap();
    let following = Process::start(centre.shell().command(&format!("run logs -f {run}")));
    following.wait_for(" started");
    assert_eq!(centre.json(&format!("run show {run}"))["state"], "running", "its line came meanwhile");
    assert_eq!(centre.says(&format!("run cancel {run}")), format!("run {run} cancelled\n"));
    following.wait_for(&format!("run {run} "));
    centre.json_once(&format!("run show {run}"), |run| !run["ended_at"].is_null());
    centre.shell().run(&format!("run kill {run}")).fails(1, "has already finished");
    centre.stop();
}

#[test]
fn whoever_waits_for_the_first_run_sees_it() {
    let centre = Centre::signed_in();
    let _agent = centre.agent();
    centre.script_job("later", "echo 'here I am'\n");
    let followed = std::thread::scope(|scope| {
        let shell = centre.shell();
        let follow = scope.spawn(move || shell.run("run logs -f later"));
        centre.says("job edit later --every 1s");
        centre.says("job start later");
        follow.join().unwrap()
    });
    assert!(followed.succeeds().contains("here I am"));
    centre.stop();
}

#[test]
fn without_an_executor_the_trigger_says_so() {
    let centre = Centre::signed_in();
    centre.says(&format!("job add lonely --app {APP} --handler nobody"));
    let triggered = centre.shell().run("job trigger lonely --follow");
    assert_eq!(triggered.code, Some(1), "{}{}", triggered.stdout, triggered.stderr);
    assert!(triggered.stderr.contains("did not succeed"), "{}", triggered.stderr);
    assert!(triggered.stderr.contains("no executor of the app"), "it says why: {}", triggered.stderr);
    centre.stop();
}

#[test]
fn a_handler_that_nobody_has_is_named_when_the_job_is_added_and_when_it_runs() {
    let centre = Centre::signed_in();
    let _agent = centre.agent();
    // The agent has `http`, but no allowed URL, and no other handler.
    let added = centre.shell().run(&format!("job add typo --app {APP} --handler htpp"));
    assert!(
        added.stderr.contains("no executor of tickwright-sample has reported a handler `htpp`"),
        "{}",
        added.stderr
    );
    let triggered = centre.shell().run("job trigger typo --follow");
    assert!(triggered.stderr.contains("job handler [htpp] not found."), "{}", triggered.stderr);
    assert!(!triggered.stderr.contains("no log lines"), "{}", triggered.stderr);
    triggered.fails(1, "did not succeed");
    centre.stop();
}

/// An executor that answers every request for a log with all lines so far, as if they were the requested ones.
struct Repeater {
    address: String,
    written: Arc<AtomicUsize>,
    asked: Arc<AtomicUsize>,
}

impl Repeater {
    fn start(centre: &Centre) -> Repeater {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/", listener.local_addr().unwrap());
        let (written, asked) = (Arc::new(AtomicUsize::new(2)), Arc::new(AtomicUsize::new(0)));
        let (lines, calls) = (written.clone(), asked.clone());
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (lines, calls) = (lines.clone(), calls.clone());
                thread::spawn(move || answer(stream, &lines, &calls));
            }
        });
        let body = json!({ "registryGroup": "EXECUTOR", "registryKey": APP, "registryValue": address });
        executor_call(centre, "registry", &body.to_string());
        until("the executor is registered", || {
            let apps = centre.json("app list");
            (apps[0]["executors"].as_array().map(Vec::len) == Some(1)).then_some(())
        });
        Repeater { address, written, asked }
    }

    /// Waits until the log was read again.
    fn is_read(&self) {
        let before = self.asked.load(Ordering::SeqCst);
        until("the log is read", || (self.asked.load(Ordering::SeqCst) > before + 1).then_some(()));
    }
}

fn answer(stream: TcpStream, lines: &AtomicUsize, calls: &AtomicUsize) {
    let mut reader = BufReader::new(stream);
    loop {
        let (mut head, mut length) = (String::new(), 0);
        while reader.read_line(&mut head).is_ok_and(|read| read > 2) {
            let line = head.lines().last().unwrap_or_default().to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        if head.is_empty() || reader.read_exact(&mut body).is_err() {
            return;
        }
        let answer = if head.starts_with("POST /log") {
            calls.fetch_add(1, Ordering::SeqCst);
            let asked: serde_json::Value = serde_json::from_slice(&body).unwrap();
            let (from, count) = (asked["fromLineNum"].as_u64().unwrap(), lines.load(Ordering::SeqCst));
            let text: String = (1..=count).map(|line| format!("line {line}\n")).collect();
            let to = from + count as u64 - 1;
            let page = json!({ "fromLineNum": from, "toLineNum": to, "logContent": text, "isEnd": false });
            json!({ "code": 200, "content": page })
        } else if head.starts_with("POST /idleBeat") {
            json!({ "code": 500, "msg": "job thread is running or has trigger queue." })
        } else {
            json!({ "code": 200 })
        };
        let answer = answer.to_string();
        let sent =
            write!(reader.get_mut(), "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{answer}", answer.len());
        if sent.is_err() {
            return;
        }
    }
}

/// Calls the executor API.
fn executor_call(centre: &Centre, name: &str, body: &str) {
    let address = centre.url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).unwrap();
    let (token, length) = (&centre.token, body.len());
    write!(
        stream,
        "POST /api/{name} HTTP/1.1\r\nHost: {address}\r\nXXL-JOB-ACCESS-TOKEN: {token}\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains(r#""code":200"#), "{answer}");
}

#[test]
fn a_log_that_its_executor_repeats_is_printed_once() {
    let centre = Centre::signed_in();
    let executor = Repeater::start(&centre);
    centre.says(&format!("job add talker --app {APP} --handler talk"));
    let run = centre.json("job trigger talker")["run"].as_i64().unwrap();
    centre.json_once(&format!("run show {run}"), |run| run["state"] == "running");
    let lines = |count: usize| (1..=count).map(|line| format!("line {line}\n")).collect::<String>();
    let followed = thread::scope(|scope| {
        let shell = centre.shell();
        let follow = scope.spawn(move || shell.run(&format!("run logs -f {run}")));
        for written in [2, 3, 5] {
            executor.written.store(written, Ordering::SeqCst);
            executor.is_read();
            assert_eq!(centre.says(&format!("run logs {run}")), lines(written));
        }
        let result = json!([{ "logId": run, "logDateTim": 0, "handleCode": 200, "handleMsg": "done" }]);
        executor_call(&centre, "callback", &result.to_string());
        follow.join().unwrap()
    });
    assert_eq!(followed.succeeds(), lines(5), "{}", executor.address);
    assert_eq!(centre.says(&format!("run logs {run}")), lines(5));
    centre.stop();
}
