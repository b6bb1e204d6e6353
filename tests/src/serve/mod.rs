//! `tickwright serve` with the options of a test, and clients for its APIs.

mod certificate;
mod folder;
mod mail_server;
mod tools;
mod web_server;

pub use certificate::Certificate;
pub use folder::Folder;
pub use mail_server::{Mail, MailServer, Security};
pub use tools::tool;
pub use web_server::WebServer;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use crate::process::{Message, Output, Wire, binary, until, until_each};

/// A command line of `tickwright serve`.
///
/// Without further options it listens on a free port of 127.0.0.1, keeps its data in a temporary folder and runs no
/// sample executor.
pub struct Serve {
    folder: Folder,
    options: BTreeMap<String, String>,
    variables: BTreeMap<String, String>,
    open_files: Option<u32>,
}

impl Serve {
    /// A command line with the defaults of tests.
    pub fn new() -> Result<Serve> {
        let folder = Folder::new("serve")?;
        let serve = Serve { options: BTreeMap::new(), variables: BTreeMap::new(), open_files: None, folder };
        let data_dir = serve.path("data").display().to_string();
        Ok(serve.with("listen", "127.0.0.1:0").with("data-dir", &data_dir).with("sample", "false"))
    }

    /// Sets an option, in place of an earlier value.
    pub fn with(mut self, option: &str, value: &str) -> Serve {
        self.options.insert(option.into(), value.into());
        self
    }

    /// Removes an option that the defaults of tests set.
    pub fn without(mut self, option: &str) -> Serve {
        self.options.remove(option);
        self
    }

    /// Sets an environment variable.
    pub fn variable(mut self, name: &str, value: &str) -> Serve {
        self.variables.insert(name.into(), value.into());
        self
    }

    /// Limits the files that the process may open.
    pub fn open_files(mut self, max: u32) -> Serve {
        self.open_files = Some(max);
        self
    }

    /// A path in the temporary folder, which is also the working directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts it and waits until it listens.
    pub async fn start(self) -> Result<Served> {
        let mut process = self.command("serve")?.spawn().context("could not start the program")?;
        let output = Output::default();
        output.follow("serve", process.stdout.take().context("its output was asked for")?);
        output.follow("serve", process.stderr.take().context("its output was asked for")?);
        let url = until("it says where it listens", START_MAX, async || {
            let url = |line: &String| line.split_once("listening   ").map(|(_, url)| url.trim().to_owned());
            let has_ended = process.try_wait().is_ok_and(|status| status.is_some());
            output.find(url).map(Some).or(has_ended.then_some(None))
        });
        let Ok(Some(url)) = url.await else { bail!("it does not start; it said:\n{}", output.text()) };
        let (_, address) = url.split_once("://").context("a URL has a scheme")?;
        let address = address.parse()?;
        let data_dir = self.options.get("data-dir").map_or("tickwright-data", String::as_str);
        let data_dir = self.folder.path().join(data_dir);
        Ok(Served { process, output, address, url, data_dir, folder: self.folder })
    }

    /// Runs a command that is expected to end; returns whether it succeeded, and its output.
    pub async fn run(&self, subcommand: &str) -> Result<(bool, String)> {
        let ended = self.command(subcommand)?.output();
        let ended = tokio::time::timeout(START_MAX, ended).await.context("it does not end")??;
        let said = [ended.stdout, ended.stderr].concat();
        Ok((ended.status.success(), String::from_utf8_lossy(&said).into_owned()))
    }

    fn command(&self, subcommand: &str) -> Result<Command> {
        let mut command = match self.open_files {
            None => Command::new(binary()?),
            Some(max) => {
                let mut shell = Command::new("sh");
                shell.args(["-c", &format!("ulimit -n {max}; exec \"$0\" \"$@\"")]).arg(binary()?);
                shell
            }
        };
        command.arg(subcommand).current_dir(self.folder.path());
        command.args(self.options.iter().map(|(option, value)| format!("--{option}={value}")));
        // Environment variables of a developer or of the test's own databases must not have an effect.
        let ours = std::env::vars_os().map(|(name, _)| name);
        ours.filter(|name| name.to_string_lossy().starts_with("TICKWRIGHT_")).for_each(|name| {
            command.env_remove(name);
        });
        command.envs(&self.variables).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.kill_on_drop(true);
        Ok(command)
    }
}

/// A running program. Dropping it kills it and deletes its folder.
pub struct Served {
    process: Child,
    output: Output,
    address: SocketAddr,
    /// Its URL, as printed.
    pub url: String,
    data_dir: PathBuf,
    folder: Folder,
}

impl Served {
    /// Address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A path in its working directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Its data directory.
    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// Its output so far.
    pub fn said(&self) -> String {
        self.output.text()
    }

    /// A value of the credentials file of a new database.
    pub fn credential(&self, name: &str) -> Result<String> {
        let path = self.data_dir.join("initial-credentials.txt");
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        value.map(str::to_owned).with_context(|| format!("no `{name}` in {}", path.display()))
    }

    /// Signs in as the first administrator.
    pub async fn sign_in(&self) -> Result<Client> {
        Client::sign_in(self.address, &self.credential("password")?).await
    }

    /// Sends a request with these header lines.
    pub async fn ask(&self, method: &str, path: &str, lines: &str, body: &str) -> Result<Message> {
        ask(self.address, method, path, lines, body).await
    }

    /// Calls the executor API with a token; returns `code` and `msg` of the response.
    pub async fn executor_call(&self, name: &str, token: &str, body: &Value) -> Result<(i64, String)> {
        let lines = format!(
            "Content-Type: application/json\r\nXXL-JOB-ACCESS-TOKEN: {token}\r\nXXL-JOB-APPNAME: {}\r\n",
            body["registryKey"].as_str().unwrap_or_default()
        );
        let answer = self.ask("POST", &format!("/api/{name}"), &lines, &body.to_string()).await?;
        let answer: Value = serde_json::from_slice(&answer.body)?;
        Ok((answer["code"].as_i64().unwrap_or(0), answer["msg"].as_str().unwrap_or_default().to_owned()))
    }

    /// Registers an executor with a token; returns `code` and `msg` of the response.
    pub async fn register(&self, app: &str, token: &str, executor: &str) -> Result<(i64, String)> {
        let body = json!({ "registryGroup": "EXECUTOR", "registryKey": app, "registryValue": executor });
        self.executor_call("registry", token, &body).await
    }

    /// Suspends it for this long with SIGSTOP and SIGCONT.
    pub async fn pause(&self, length: Duration) -> Result<()> {
        let pid = self.process.id().context("it has ended already")?;
        crate::process::signal(pid, "STOP").await?;
        tokio::time::sleep(length).await;
        crate::process::signal(pid, "CONT").await
    }

    /// Sends SIGTERM and waits for its end.
    pub async fn stop(mut self) -> Result<Folder> {
        crate::process::signal(self.process.id().context("it has ended already")?, "TERM").await?;
        let ended = tokio::time::timeout(START_MAX, self.process.wait()).await;
        let status = ended.with_context(|| format!("it does not stop; it said:\n{}", self.said()))??;
        ensure!(status.success(), "it ended with {status}; it said:\n{}", self.said());
        Ok(self.folder)
    }
}

/// A client that has signed in.
pub struct Client {
    address: SocketAddr,
    session: String,
}

impl Client {
    /// Signs in as the first administrator.
    pub async fn sign_in(address: SocketAddr, password: &str) -> Result<Client> {
        let body = json!({ "user": "admin", "password": password });
        let lines = "Tickwright-Client: test\r\nContent-Type: application/json\r\n";
        let answer = ask(address, "POST", "/v1/session", lines, &body.to_string()).await?;
        let session = answer.header("tickwright-session").context("no session was opened")?.to_owned();
        Ok(Client { address, session })
    }

    /// The credentials, as a bearer token.
    pub fn session(&self) -> &str {
        &self.session
    }

    /// Calls the API; returns status and body.
    pub async fn call(&self, method: &str, path: &str, body: &Value) -> Result<(u16, Value)> {
        let lines = format!("Content-Type: application/json\r\nAuthorization: Bearer {}\r\n", self.session);
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let answer = ask(self.address, method, path, &lines, &body).await?;
        Ok((answer.status(), serde_json::from_slice(&answer.body).unwrap_or_default()))
    }

    /// Calls the API; fails unless it succeeds.
    pub async fn done(&self, method: &str, path: &str, body: &Value) -> Result<Value> {
        let (status, answer) = self.call(method, path, body).await?;
        ensure!((200..300).contains(&status), "{method} {path}: {status} {answer}");
        Ok(answer)
    }

    /// Reads from the API.
    pub async fn get(&self, path: &str) -> Result<Value> {
        self.done("GET", path, &Value::Null).await
    }

    /// Reads from the API until a condition holds.
    pub async fn get_until(&self, path: &str, is_so: impl Fn(&Value) -> bool) -> Result<Value> {
        self.get_within(WAIT_MAX, path, is_so).await
    }

    /// The same with an explicit limit.
    pub async fn get_within(
        &self,
        limit: Duration,
        path: &str,
        is_so: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        let mut last = Value::Null;
        let found = until_each(LOOK, path, limit, async || {
            last = self.get(path).await.ok()?;
            Some(last.clone()).filter(&is_so)
        });
        let found = found.await;
        found.with_context(|| format!("last seen: {last}"))
    }

    /// Creates an app with an executor at this address.
    pub async fn app(&self, name: &str, executor: &str) -> Result<()> {
        let addressing = json!({ "kind": "manual", "addresses": [executor] });
        let body = json!({ "title": name, "addressing": addressing });
        self.done("PUT", &format!("/v1/apps/{name}"), &body).await.map(drop)
    }
}

async fn ask(to: SocketAddr, method: &str, path: &str, lines: &str, body: &str) -> Result<Message> {
    let mut wire = Wire::new(TcpStream::connect(to).await?);
    let answer = tokio::time::timeout(WAIT_MAX, wire.ask(method, path, lines, body)).await;
    Ok(answer.with_context(|| format!("{method} {path} is not answered"))??)
}

/// Longer than a start or a stop takes on a busy machine.
const START_MAX: Duration = Duration::from_secs(60);

/// Longer than anything else takes on a busy machine.
pub const WAIT_MAX: Duration = Duration::from_secs(60);

/// Pause between two polls: clients are rate limited.
const LOOK: Duration = Duration::from_millis(100);
