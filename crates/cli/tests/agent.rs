//! `tickwright agent`, as started in a shell.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

const TOKEN: &str = "p2Vq0mXo5tYb";
const SOON: Duration = Duration::from_secs(120);

#[test]
fn an_agent_says_what_it_may_runs_a_script_and_leaves_when_told() {
    let (centre, calls) = centre();
    let directory = tempfile::tempdir().unwrap();
    let agent = Agent::start(&centre, directory.path(), &["--allow-scripts", "--allow-url=example.com"]);
    let lines = &agent.lines;
    assert_eq!(lines[0], "tickwright agent `scripts`");
    assert!(lines[2].starts_with(&format!("  registering with  {centre} as http://127.0.0.1:")), "{lines:?}");
    assert_eq!(lines[3], "  scripts           shell, python, python2, php, node, powershell");
    assert_eq!(lines[4], "  URLs              example.com");
    assert_eq!(lines[5], "  programs          none");
    until(&calls, "/api/registry", "EXECUTOR");

    assert!(agent.trigger(100, "env; echo did").contains(r#""code":200"#));
    let report = until(&calls, "/api/callback", r#""logId":100"#);
    assert!(report.contains(r#""handleCode":200"#), "{report}");
    let log = agent.call("/log", r#"{"logDateTim":1794769410531,"logId":100,"fromLineNum":1}"#);
    assert!(log.contains(" did") && !log.contains(TOKEN), "{log}");

    let last = agent.terminate();
    assert_eq!(
        last,
        "stopped; 0 runs were terminated, 0 results are stored and will be reported after the next start"
    );
    until(&calls, "/api/registryRemove", "EXECUTOR");
}

#[test]
fn a_killed_agent_s_scripts_are_ended_and_never_run_again() {
    let (centre, calls) = centre();
    let directory = tempfile::tempdir().unwrap();
    let notes = directory.path().join("notes");
    let data = directory.path().join("data");
    let agent = Agent::start(&centre, &data, &["--allow-scripts=shell"]);
    let source = format!("echo $$ >> {0}; sleep 1000 & echo $! >> {0}; wait", notes.display());
    agent.trigger(100, &source);
    let pids = wait_for(|| {
        let text = fs::read_to_string(&notes).unwrap_or_default();
        (text.lines().count() == 2 && text.ends_with('\n')).then(|| text.clone())
    });
    drop(agent);
    for pid in pids.lines() {
        assert!(is_alive(pid), "nobody ended {pid} yet");
    }

    let agent = Agent::start(&centre, &data, &["--allow-scripts=shell"]);
    wait_for(|| pids.lines().all(|pid| !is_alive(pid)).then_some(()));
    let report = until(&calls, "/api/callback", r#""logId":100"#);
    assert!(
        report.contains(r#""handleCode":500"#) && report.contains("the executor was restarted"),
        "{report}"
    );
    let again = agent.trigger(100, &source);
    assert!(again.contains(r#""code":500"#) || again.contains(r#""code":200"#), "{again}");
    // Run 101 is queued after the repeated trigger, so if that had run, it would show now.
    agent.trigger(101, "exit 0");
    until(&calls, "/api/callback", r#""logId":101"#);
    assert_eq!(fs::read_to_string(&notes).unwrap(), pids, "it ran once");
    assert!(fs::read_dir(data.join("work")).unwrap().next().is_none());
    agent.terminate();
}

/// Few machines have all of these languages. Substitutes print how they were called, and with which script.
#[test]
fn every_language_is_started_as_xxl_job_starts_it() {
    let (centre, calls) = centre();
    let directory = tempfile::tempdir().unwrap();
    let programs = directory.path().join("bin");
    fs::create_dir(&programs).unwrap();
    for name in ["bash", "python3", "python", "php", "node", "pwsh"] {
        let program = programs.join(name);
        let script = format!(
            "#!/bin/sh\necho \"{name} $(basename \"$1\") has $(cat \"$1\")\"\nshift\nprintf '<%s>' \"$@\"\n"
        );
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut command = agent(&directory.path().join("data"), TOKEN);
    command.env("PATH", format!("{}:{}", programs.display(), std::env::var("PATH").unwrap()));
    let agent = Agent::start_by(command, &centre, &["--allow-scripts"]);
    for (run_id, language, program, suffix) in [
        (100, "GLUE_SHELL", "bash", "sh"),
        (200, "GLUE_PYTHON", "python3", "py"),
        (300, "GLUE_PYTHON2", "python", "py"),
        (400, "GLUE_PHP", "php", "php"),
        (500, "GLUE_NODEJS", "node", "js"),
        (600, "GLUE_POWERSHELL", "pwsh", "ps1"),
    ] {
        agent.trigger_in(language, run_id, "the source");
        until(&calls, "/api/callback", &format!(r#""logId":{run_id}"#));
        let ask = format!(r#"{{"logDateTim":1794769410531,"logId":{run_id},"fromLineNum":1}}"#);
        let log = agent.call("/log", &ask);
        let said = format!("{program} {}_1.{suffix} has the source", run_id / 100);
        assert!(log.contains(&said) && log.contains("<a b><1><3>"), "{language}: {log}");
    }
    agent.terminate();
}

/// X6, X7, X27 of docs/security.md.
#[test]
fn what_is_not_allowed_is_refused() {
    let (centre, calls) = centre();
    let directory = tempfile::tempdir().unwrap();
    let agent = Agent::start(&centre, directory.path(), &[]);
    let refusal = agent.trigger(100, "exit 0");
    assert!(refusal.contains("fail, current glue type [GLUE(Shell)] not supported."), "{refusal}");
    for (run_id, handler, param, expected) in [
        (200, "httpJobHandler", r#"{\"url\":\"http://127.0.0.1:1/\"}"#, "is not allowed on this executor"),
        (300, "http", "url: http://127.0.0.1:1/", "is not allowed on this executor"),
        (400, "commandJobHandler", "/bin/true", "is not allowed on this executor"),
        (500, "command", r#"[\"/bin/true\"]"#, "is not allowed on this executor"),
    ] {
        let body = format!(
            r#"{{"jobId":{run_id},"executorHandler":"{handler}","executorParams":"{param}","logId":{run_id},
                "logDateTime":1794769410531,"glueType":"BEAN"}}"#
        );
        agent.call("/run", &body);
        let report = until(&calls, "/api/callback", &format!(r#""logId":{run_id}"#));
        assert!(report.contains(r#""handleCode":500"#) && report.contains(expected), "{report}");
    }
    agent.terminate();
}

/// X1 of docs/security.md.
#[test]
fn what_cannot_be_safe_does_not_start() {
    let directory = tempfile::tempdir().unwrap();
    let open = directory.path().join("token");
    fs::write(&open, TOKEN).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o644)).unwrap();
    let file = format!("file:{}", open.display());
    let check = |arguments: &[&str], token: &str, expected: &str| {
        let output = refused(directory.path(), arguments, token);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && stderr.contains(expected), "{arguments:?}: {stderr}");
        assert!(!stderr.contains(TOKEN), "{stderr}");
    };
    check(&["--listen", "0.0.0.0:0"], "", "listening on 0.0.0.0");
    check(&["--listen", "0.0.0.0:0"], "default_token", "a publicly known token");
    check(&[], &file, "chmod 600");
    check(&[], "file:/no/such/file", "failed to read the secret");
    check(&["--allow-scripts=perl"], TOKEN, "unknown script language `perl`");
    check(&["--allow-url", "ftp://x"], TOKEN, "invalid URL or host `ftp://x`");
    check(&["--allow-program", "rsync"], TOKEN, "use the full path");
    check(&["--admin", "nowhere"], TOKEN, "is not the address of a scheduling centre");
}

#[test]
fn a_token_is_best_not_typed() {
    let directory = tempfile::tempdir().unwrap();
    let warning = "a token on the command line is visible to every user of this machine";
    // It fails for another reason, after the warning.
    let typed = refused(directory.path(), &["--token", TOKEN, "--listen", "nowhere"], "");
    assert!(String::from_utf8(typed.stderr).unwrap().contains(warning));
    let by_environment = refused(directory.path(), &["--listen", "nowhere"], TOKEN);
    assert!(!String::from_utf8(by_environment.stderr).unwrap().contains(warning));
}

/// An agent that has started; killed when dropped.
struct Agent {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
    /// Lines it printed at startup.
    lines: Vec<String>,
    address: SocketAddr,
}

impl Agent {
    fn start(centre: &str, directory: &Path, arguments: &[&str]) -> Agent {
        Agent::start_by(agent(directory, TOKEN), centre, arguments)
    }

    fn start_by(mut command: Command, centre: &str, arguments: &[&str]) -> Agent {
        let command = command.args(["--admin", centre]).args(arguments).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the binary was built for this test");
        let mut output = BufReader::new(child.stdout.take().expect("it is piped"));
        let lines: Vec<String> = (0..7).map(|_| read_line(&mut output)).collect();
        let address = lines[1].rsplit(' ').next().unwrap().parse().unwrap();
        Agent { child, output, lines, address }
    }

    fn trigger(&self, run_id: i64, source: &str) -> String {
        self.trigger_in("GLUE_SHELL", run_id, source)
    }

    fn trigger_in(&self, language: &str, run_id: i64, source: &str) -> String {
        let job_id = run_id / 100;
        self.call(
            "/run",
            &format!(
                r#"{{"jobId":{job_id},"executorHandler":"","executorParams":"a b","logId":{run_id},
                    "logDateTime":1794769410531,"glueType":"{language}","glueSource":"{source}","glueUpdatetime":1,
                    "broadcastIndex":1,"broadcastTotal":3}}"#
            ),
        )
    }

    fn call(&self, path: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(self.address).unwrap();
        write!(
            stream,
            "POST {path} HTTP/1.1\r\nHost: x\r\nXXL-JOB-ACCESS-TOKEN: {TOKEN}\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Stops it with a signal; returns its last line of output.
    fn terminate(mut self) -> String {
        let told = Command::new("kill").arg(self.child.id().to_string()).status().unwrap();
        assert!(told.success());
        let line = read_line(&mut self.output);
        assert!(self.child.wait().unwrap().success());
        line
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An agent of the app `scripts`, without variables of this process's environment that it would read.
fn agent(directory: &Path, token: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tickwright"));
    command.args(["agent", "--app", "scripts", "--listen", "127.0.0.1:0", "--data-dir"]).arg(directory);
    command.env("TICKWRIGHT_AGENT_TOKEN", token);
    command
}

/// Runs an agent that fails to start.
fn refused(directory: &Path, arguments: &[&str], token: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tickwright"));
    command.args(["agent", "--app", "scripts", "--data-dir"]).arg(directory.join("data")).args(arguments);
    if !arguments.contains(&"--admin") {
        command.args(["--admin", "http://127.0.0.1:1"]);
    }
    command.env("TICKWRIGHT_AGENT_TOKEN", token).output().expect("the binary was built for this test")
}

fn read_line(from: &mut impl BufRead) -> String {
    let mut line = String::new();
    from.read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

/// A scheduling centre that accepts every call; also returns the received paths and bodies.
fn centre() -> (String, Receiver<(String, String)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let tell = tell.clone();
            thread::spawn(move || listen(stream, &tell));
        }
    });
    (address, told)
}

/// Serves the calls of one connection.
fn listen(mut stream: TcpStream, tell: &mpsc::Sender<(String, String)>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    loop {
        let first = read_line(&mut reader);
        let Some(path) = first.split(' ').nth(1) else { return };
        let mut length = 0;
        loop {
            let header = read_line(&mut reader).to_ascii_lowercase();
            if header.is_empty() {
                break;
            }
            if let Some(value) = header.strip_prefix("content-length: ") {
                length = value.parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let answer = r#"{"code":200,"msg":null,"content":null}"#;
        let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{answer}", answer.len());
        let _ = tell.send((path.to_owned(), String::from_utf8(body).unwrap()));
    }
}

/// Waits for the next call of that path with that text in its body.
fn until(calls: &Receiver<(String, String)>, path: &str, text: &str) -> String {
    loop {
        let (called, body) = calls.recv_timeout(SOON).unwrap_or_else(|_| panic!("no {path} with {text}"));
        if called == path && body.contains(text) {
            return body;
        }
    }
}

fn wait_for<T>(mut seen: impl FnMut() -> Option<T>) -> T {
    for _ in 0..6_000 {
        if let Some(seen) = seen() {
            return seen;
        }
        thread::sleep(Duration::from_millis(5));
    }
    panic!("waited in vain");
}

/// Whether a process is running and is not a zombie.
fn is_alive(pid: &str) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}
