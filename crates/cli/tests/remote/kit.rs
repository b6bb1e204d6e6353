//! A scheduling centre and an agent as processes, and a shell to run commands.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

/// Path of the binary.
pub const TICKWRIGHT: &str = env!("CARGO_BIN_EXE_tickwright");

/// App that every new scheduling centre has.
pub const APP: &str = "tickwright-sample";

/// Timeout that no step reaches, even on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// A scheduling centre on a new database, without its sample executor.
pub struct Centre {
    pub url: String,
    pub password: String,
    pub token: String,
    pub folder: tempfile::TempDir,
    process: Process,
}

impl Centre {
    pub fn start() -> Centre {
        let folder = tempfile::tempdir().unwrap();
        let process = Centre::process(folder.path(), "127.0.0.1:0");
        let url = process.wait_for("listening   ").trim().to_owned();
        let credentials = folder.path().join("data");
        let (password, token) =
            (credential(&credentials, "password"), credential(&credentials, "xxl.job.accessToken"));
        Centre { url, password, token, folder, process }
    }

    fn process(folder: &Path, listen: &str) -> Process {
        let mut command = Command::new(TICKWRIGHT);
        command.args(["serve", "--listen", listen, "--zone", "UTC", "--allow-scripts"]);
        command.args(["--sample", "false", "--data-dir"]).arg(folder.join("data"));
        Process::start(command)
    }

    /// Kills the process.
    pub fn die(&mut self) {
        self.process.kill();
    }

    /// Restarts the process at the same address, with its data.
    pub fn come_back(&mut self) {
        let address = self.url.trim_start_matches("http://");
        self.process = Centre::process(self.folder.path(), address);
        self.process.wait_for("listening   ");
    }

    /// A scheduling centre with a signed-in user.
    pub fn signed_in() -> Centre {
        let centre = Centre::start();
        centre.shell().input(&centre.password).run("login --user admin").succeeds();
        centre
    }

    /// Starts an agent that runs shell scripts for the sample app, and waits until it is registered.
    pub fn agent(&self) -> Process {
        let process = self.agent_at("127.0.0.1:0");
        until("the agent is registered", || {
            let apps = self.json("app list");
            (apps[0]["executors"].as_array().map(Vec::len) == Some(1)).then_some(())
        });
        process
    }

    /// Starts the agent at an address.
    pub fn agent_at(&self, address: &str) -> Process {
        let mut command = Command::new(TICKWRIGHT);
        command.args(["agent", "--app", APP, "--listen", address, "--allow-scripts=shell"]);
        command.args(["--admin", &self.url, "--data-dir"]).arg(self.folder.path().join("agent"));
        command.env("TICKWRIGHT_AGENT_TOKEN", &self.token);
        Process::start(command)
    }

    /// A shell of a user of this scheduling centre.
    pub fn shell(&self) -> Shell {
        let home = self.folder.path().join("home");
        Shell { home, url: Some(self.url.clone()), key: None, input: String::new() }
    }

    /// Output of a command for people.
    pub fn says(&self, line: &str) -> String {
        self.shell().run(line).succeeds()
    }

    /// Output of a command as JSON.
    pub fn json(&self, line: &str) -> Value {
        let printed = self.says(&format!("{line} --output json"));
        serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{line}: {error} in {printed}"))
    }

    /// Repeats a command until its output fulfils a condition.
    pub fn json_once(&self, line: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        until(line, || Some(self.json(line)).filter(&is_so))
    }

    /// Calls the API, for actions without a command.
    pub fn post(&self, path: &str, session: &str, body: &str) -> Value {
        let address = self.url.trim_start_matches("http://");
        let mut stream = TcpStream::connect(address).unwrap();
        let length = body.len();
        write!(
            stream,
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {session}\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap_or_else(|_| panic!("{answer}"))
    }

    /// Writes a file, for example a script for a job.
    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Adds a job that runs a shell script.
    pub fn script_job(&self, key: &str, source: &str) {
        let file = self.file("script.sh", source);
        self.says(&format!("job add {key} --app {APP} --script {}", file.display()));
    }

    /// Stops the process.
    pub fn stop(self) {
        drop(self.process);
    }
}

/// Reads a value from the file with the credentials of a new database, in a data directory.
pub fn credential(data_dir: &Path, name: &str) -> String {
    let path = data_dir.join("initial-credentials.txt");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    line.unwrap_or_else(|| panic!("no `{name}` in {}", path.display())).to_owned()
}

/// A shell to run commands in.
pub struct Shell {
    pub home: PathBuf,
    pub url: Option<String>,
    pub key: Option<String>,
    pub input: String,
}

impl Shell {
    /// Sets the text typed when a command asks.
    pub fn input(mut self, text: &str) -> Shell {
        self.input = format!("{text}\n");
        self
    }

    /// Creates a command, without variables of this process's environment that it would read.
    pub fn command(&self, line: &str) -> Command {
        let mut command = Command::new(TICKWRIGHT);
        command.args(words(line)).env("XDG_CONFIG_HOME", &self.home).env("TZ", "UTC");
        for (name, value) in [("TICKWRIGHT_URL", &self.url), ("TICKWRIGHT_API_KEY", &self.key)] {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
    }

    /// Runs a command.
    pub fn run(&self, line: &str) -> Outcome {
        let mut command = self.command(line);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary was built for this test");
        // A command that reads no input may have exited already.
        let _ = child.stdin.take().unwrap().write_all(self.input.as_bytes());
        let output = child.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).expect("we print UTF-8");
        let (stdout, stderr) = (text(output.stdout), text(output.stderr));
        Outcome { line: line.into(), code: output.status.code(), stdout, stderr }
    }
}

/// Result of a command.
pub struct Outcome {
    line: String,
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Outcome {
    /// Asserts success; returns the output.
    #[track_caller]
    pub fn succeeds(self) -> String {
        let Outcome { line, code, stdout, stderr } = self;
        assert_eq!(code, Some(0), "{line}: {stdout}{stderr}");
        assert!(!stdout.contains('\x1b') && !stderr.contains('\x1b'), "{line}: colours where nobody looks");
        stdout
    }

    /// Asserts failure with this exit code and this text.
    #[track_caller]
    pub fn fails(self, expected_code: i32, expected: &str) {
        let Outcome { line, code, stdout, stderr } = self;
        assert_eq!(code, Some(expected_code), "{line}: {stdout}{stderr}");
        assert!(stderr.contains("error: ") && stderr.contains(expected), "{line}: {stderr}");
    }
}

/// A process whose output is read line by line; killed with its process group when dropped.
pub struct Process {
    child: Child,
    lines: Receiver<String>,
}

impl Process {
    pub fn start(mut command: Command) -> Process {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.process_group(0).spawn().unwrap();
        let (tell, lines) = mpsc::channel();
        let (out, err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        pass_on(out, tell.clone());
        pass_on(err, tell);
        Process { child, lines }
    }

    /// Waits for a line with this text; returns the rest of that line.
    #[track_caller]
    pub fn wait_for(&self, text: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        let mut seen = Vec::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => match line.split_once(text) {
                    Some((_, after)) => return after.to_owned(),
                    None => seen.push(line),
                },
                Err(_) => panic!("no `{text}` in:\n{}", seen.join("\n")),
            }
        }
    }
}

impl Process {
    /// Kills the process and its process group.
    pub fn kill(&mut self) {
        let group = format!("-{}", self.child.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

fn pass_on(from: impl Read + Send + 'static, to: mpsc::Sender<String>) {
    thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            // Keep reading without a receiver, or the process would block on its pipe.
            let _ = to.send(line);
        }
    });
}

/// Waits until the closure returns a value.
#[track_caller]
pub fn until<T>(what: &str, mut seen: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(seen) = seen() {
            return seen;
        }
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// Splits as a shell would: at blanks, except within single quotes.
fn words(line: &str) -> Vec<String> {
    let parts = line.split('\'').enumerate();
    parts
        .flat_map(|(i, part)| match i % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect(),
            _ => vec![part.to_owned()],
        })
        .collect()
}

/// Path of the repository.
pub fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}
