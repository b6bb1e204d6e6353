//! Builds an executor, starts its parts in order and stops them in order.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use protocol::xxl::{Registry, texts};
use timer::{Clock, SystemClock};
use tokio::net::{TcpListener, UdpSocket};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::centre::Centre;
use crate::declarer::Declarer;
use crate::error::Error;
use crate::inbox::{Inbox, Limits};
use crate::job::{Job, Marked};
use crate::journal::Journal;
use crate::ledger::Memory;
use crate::process::{OUTPUT_MAX, Workspace};
use crate::registrar::Registrar;
use crate::reporter::Reporter;
use crate::run_log::RunLogs;
use crate::scripts::{ScriptCache, Scripts};
use crate::server::{self, HttpServer};

/// Configuration of an executor. Created by [`Executor::builder`].
#[derive(Debug)]
#[must_use = "an executor has no effect until it is started"]
pub struct Builder {
    app: String,
    centres: Vec<String>,
    token: String,
    token_file: Option<PathBuf>,
    listen: String,
    address: Option<String>,
    directory: PathBuf,
    log_retention: Duration,
    drain: Duration,
    memory: Memory,
    limits: Limits,
    scripts: Option<Scripts>,
    passed: Vec<String>,
    output_max: usize,
    jobs: Vec<Job>,
    clock: Arc<dyn Clock>,
}

impl Builder {
    fn new(app: String) -> Builder {
        Builder {
            app,
            centres: Vec::new(),
            token: String::new(),
            token_file: None,
            listen: "127.0.0.1:9999".to_owned(),
            address: None,
            directory: PathBuf::from("tickwright-executor"),
            log_retention: Duration::from_secs(30 * 86_400),
            drain: Duration::from_secs(30),
            memory: Memory::default(),
            limits: Limits::default(),
            scripts: None,
            passed: Vec::new(),
            output_max: OUTPUT_MAX,
            jobs: inventory::iter::<Marked>().map(|marked| (marked.job)()).collect(),
            clock: Arc::new(SystemClock::new()),
        }
    }

    /// Address of the scheduling centre, for example `http://127.0.0.1:8080`. Call it several times for several
    /// nodes, or separate them with commas; they are tried in this order. XXL-JOB up to 3.4.0 has `/xxl-job-admin`
    /// in its address. Without any address the executor does not register and keeps its results.
    pub fn centre(mut self, address: impl AsRef<str>) -> Builder {
        let addresses = address.as_ref().split(',').map(str::trim).filter(|address| !address.is_empty());
        self.centres.extend(addresses.map(str::to_owned));
        self
    }

    /// Access token used in both directions between executor and centre. Default: blank, which is allowed on
    /// loopback only.
    pub fn token(mut self, token: impl AsRef<str>) -> Builder {
        // An HTTP header cannot carry leading and trailing spaces.
        self.token = token.as_ref().trim().to_owned();
        self
    }

    /// File with the token, read when the executor starts. `tickwright app token APP --to FILE` writes one. A file
    /// that every user of the machine can read is rejected.
    pub fn token_file(mut self, path: impl Into<PathBuf>) -> Builder {
        self.token_file = Some(path.into());
        self
    }

    /// Address to listen on. Default: `127.0.0.1:9999`. Port 0 picks any free port.
    pub fn listen(mut self, address: impl Into<String>) -> Builder {
        self.listen = address.into();
        self
    }

    /// URL at which the centre calls this executor, if it differs from the listen address: behind a proxy, or in a
    /// container.
    pub fn address(mut self, url: impl Into<String>) -> Builder {
        self.address = Some(url.into());
        self
    }

    /// Directory of the journal and the run logs. Default: `tickwright-executor`. It must not be shared with
    /// another executor and must survive a restart.
    pub fn directory(mut self, path: impl Into<PathBuf>) -> Builder {
        self.directory = path.into();
        self
    }

    /// Retention of run logs. Default: 30 days; zero keeps them forever.
    pub fn log_retention(mut self, age: Duration) -> Builder {
        self.log_retention = age;
        self
    }

    /// How long [`Builder::run`] waits for runs to finish after a signal, before it stops them. Default: 30 s.
    pub fn drain(mut self, grace: Duration) -> Builder {
        self.drain = grace;
        self
    }

    /// How many finished runs are remembered, and for how long, to detect duplicates. Default: 1,000,000 runs, 7 days.
    pub fn memory(mut self, runs: usize, age: Duration) -> Builder {
        self.memory = Memory { runs, age };
        self
    }

    /// Maximum number of waiting runs per job. Default: 1,000.
    pub fn queue(mut self, waiting: usize) -> Builder {
        self.limits.waiting = waiting;
        self
    }

    /// How long a stopped run may take to return before the next run of its job starts. Default: 5 s. Only blocking
    /// handlers that do not check [`Context::is_cancelled`](crate::Context::is_cancelled) take that long.
    pub fn stop_grace(mut self, grace: Duration) -> Builder {
        self.limits.stop_grace = grace;
        self
    }

    /// Adds a handler, in addition to those marked [`#[job]`](crate::job).
    pub fn job(mut self, job: Job) -> Builder {
        self.jobs.push(job);
        self
    }

    /// Adds several handlers.
    pub fn jobs(mut self, jobs: impl IntoIterator<Item = Job>) -> Builder {
        self.jobs.extend(jobs);
        self
    }

    /// Lets the centre send scripts to run. Disabled by default, because every user who can edit a job can then run
    /// any code as the user of this process.
    pub fn scripts(mut self, scripts: Scripts) -> Builder {
        self.scripts = Some(scripts);
        self
    }

    /// Passes an environment variable of this process to scripts and commands, in addition to `PATH`, `HOME`,
    /// `LANG`, `LC_ALL` and `TZ`.
    pub fn pass_env(mut self, name: impl Into<String>) -> Builder {
        self.passed.push(name.into());
        self
    }

    /// Maximum output of a script or command in its run's log, in bytes. Default: 16 MiB. The rest is dropped, and
    /// the log states that.
    pub fn output_max(mut self, bytes: usize) -> Builder {
        self.output_max = bytes;
        self
    }

    /// Clock to use. Default: the system clock.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Builder {
        self.clock = clock;
        self
    }

    /// Starts the executor: reads the journal, listens, registers, declares its jobs. Must be called on a tokio
    /// runtime with I/O and time.
    pub async fn start(mut self) -> Result<Executor, Error> {
        if self.app.trim().is_empty() {
            return Err(Error::App);
        }
        if let Some(path) = self.token_file.take() {
            let app = self.app.clone();
            let token = read_secret(&path).map_err(|why| Error::TokenFile { path, app, why })?;
            self = self.token(token);
        }
        let declared = self.jobs.iter().filter_map(|job| job.declared().transpose());
        let declared = declared.collect::<Result<Vec<_>, _>>()?;
        let handlers = self.jobs.iter().map(|job| job.name().to_owned()).collect();
        let jobs = by_name(self.jobs)?;
        let clock = self.clock;
        let centre = Arc::new(Centre::new(&self.centres, &self.app, &self.token, Arc::clone(&clock))?);
        let (listener, local) = listen(&self.listen, &self.token).await?;
        let logs = RunLogs::new(self.directory.join("logs"), Arc::clone(&clock));
        let (reports, reported) = mpsc::unbounded_channel();
        let journal = Journal::open(&self.directory, self.memory, Arc::clone(&clock), reports)?;
        // The journal's lock ensures that no other process uses the directory.
        let explain = |why| Error::Directory { path: self.directory.clone(), why };
        let workspace = Workspace::open(&self.directory, &self.passed, self.output_max).map_err(explain)?;
        let script_cache =
            self.scripts.map(|scripts| ScriptCache::open(&self.directory, scripts)).transpose();
        let script_cache = script_cache.map_err(explain)?.map(Arc::new);
        let inbox = Inbox::new(
            jobs,
            script_cache.clone(),
            Arc::new(workspace),
            journal.clone(),
            logs.clone(),
            Arc::clone(&clock),
            self.limits,
        );

        let address = match self.address {
            Some(address) => address,
            None => format!("http://{}/", reachable(local, &centre).await),
        };
        let (leave, stop) = (CancellationToken::new(), CancellationToken::new());
        let server = Arc::new(HttpServer {
            app: self.app.clone(),
            token: self.token,
            inbox: inbox.clone(),
            script_cache,
            journal: journal.clone(),
            logs: logs.clone(),
            clock: Arc::clone(&clock),
        });
        let registrar = if self.centres.is_empty() {
            tracing::warn!("no scheduling centre is configured; this executor registers nowhere");
            None
        } else {
            let registry = Registry::executor(&self.app, &address);
            let declarer = Declarer::new(&address, handlers, declared);
            let (centre, clock) = (Arc::clone(&centre), Arc::clone(&clock));
            let registrar = Registrar { centre, registry, declarer, clock };
            Some(tokio::spawn(registrar.run(leave.clone())))
        };
        let reporter = Reporter::new(centre, journal.clone(), Arc::clone(&clock));
        let tasks = vec![
            tokio::spawn(server.serve(listener, stop.clone())),
            tokio::spawn(reporter.run(reported, stop.clone())),
            tokio::spawn(sweep(logs, self.log_retention, Arc::clone(&clock), stop.clone())),
        ];
        Ok(Executor { address, local, leave, stop, registrar, tasks, inbox, journal, clock })
    }

    /// Starts the executor and stops it gracefully on Ctrl-C or SIGTERM.
    pub async fn run(self) -> Result<(), Error> {
        let drain = self.drain;
        self.start().await?.stop_when_told(drain).await;
        Ok(())
    }
}

/// A running executor. Dropping it stops everything immediately; [`Executor::stop`] stops it gracefully.
pub struct Executor {
    address: String,
    local: SocketAddr,
    /// Ends the registration.
    leave: CancellationToken,
    /// Stops everything.
    stop: CancellationToken,
    registrar: Option<JoinHandle<()>>,
    tasks: Vec<JoinHandle<()>>,
    inbox: Inbox,
    journal: Journal,
    clock: Arc<dyn Clock>,
}

/// Runs and results left over after a stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stopped {
    /// Runs that did not finish in time. They were stopped and reported as such.
    pub killed: usize,
    /// Results that could not be reported. They are on disk and are sent after the next start.
    pub unreported: usize,
}

impl Executor {
    /// Configures an executor of this app, with all functions marked [`#[job]`](crate::job).
    pub fn builder(app: impl Into<String>) -> Builder {
        Builder::new(app.into())
    }

    /// URL under which the executor is registered.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Local address of the listening socket.
    pub fn local_address(&self) -> SocketAddr {
        self.local
    }

    /// Waits for Ctrl-C or SIGTERM, then stops as [`Executor::stop`] does.
    pub async fn stop_when_told(self, grace: Duration) -> Stopped {
        signalled().await;
        self.stop(grace).await
    }

    /// Stops gracefully: accepts no more runs, deregisters, waits up to `grace` for runs to finish, stops the
    /// others, reports results, and releases the port and the directory.
    pub async fn stop(mut self, grace: Duration) -> Stopped {
        self.inbox.close();
        self.leave.cancel();
        if let Some(registrar) = self.registrar.take() {
            // Its calls have timeouts of their own.
            let _ = registrar.await;
        }
        let mut stopped = Stopped::default();
        tokio::select! {
            biased;
            () = self.inbox.idle() => {}
            () = self.clock.sleep(grace) => {
                stopped.killed = self.inbox.kill_all(texts::SHUT_DOWN);
                // Bounded, because a stopped run is abandoned after a while.
                self.inbox.idle().await;
            }
        }
        tokio::select! {
            biased;
            () = self.journal.settled() => {}
            () = self.clock.sleep(REPORTING) => {}
        }
        self.stop.cancel();
        for task in self.tasks.drain(..) {
            let _ = task.await;
        }
        self.inbox.end_jobs().await;
        self.journal.close().await;
        stopped.unreported = self.journal.open_count();
        stopped
    }
}

/// Time for the last reports; the journal keeps the rest.
const REPORTING: Duration = Duration::from_secs(10);

impl Drop for Executor {
    fn drop(&mut self) {
        self.inbox.close();
        self.leave.cancel();
        self.stop.cancel();
        if let Some(registrar) = &self.registrar {
            registrar.abort();
        }
    }
}

impl fmt::Debug for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executor").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Reads a file with a secret; rejects one that every user of this machine can read.
fn read_secret(path: &Path) -> io::Result<String> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        if fs::metadata(path)?.permissions().mode() & 0o007 != 0 {
            return Err(io::Error::other("every user of this machine can read it; run: chmod o= on it"));
        }
    }
    fs::read_to_string(path)
}

fn by_name(jobs: Vec<Job>) -> Result<HashMap<String, Arc<Job>>, Error> {
    let mut named = HashMap::new();
    for job in jobs {
        if let Some(job) = named.insert(job.name().to_owned(), Arc::new(job)) {
            return Err(Error::HandlerTwice { name: job.name().to_owned() });
        }
    }
    let mut names: Vec<_> = named.keys().collect();
    names.sort();
    // The linker drops handlers of a library that nothing refers to; this line shows which handlers are present.
    tracing::info!(?names, "handlers");
    Ok(named)
}

async fn listen(address: &str, token: &str) -> Result<(TcpListener, SocketAddr), Error> {
    let explain = |why| Error::Listen { address: address.to_owned(), why };
    let listener = TcpListener::bind(address).await.map_err(explain)?;
    let local = listener.local_addr().map_err(explain)?;
    match server::weakness(token, local) {
        Some(what) => Err(Error::WeakToken { address: local, what }),
        None => Ok((listener, local)),
    }
}

/// The address at which the centre can reach this listener. When it listens on all addresses, the local address of
/// a connection to the centre is used.
async fn reachable(local: SocketAddr, centre: &Centre) -> SocketAddr {
    if !local.ip().is_unspecified() {
        return local;
    }
    let ip = match centre.first_host() {
        Some(host) => outgoing(&host).await,
        None => None,
    };
    let loopback = match local.ip() {
        IpAddr::V4(_) => IpAddr::from([127, 0, 0, 1]),
        IpAddr::V6(_) => IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]),
    };
    SocketAddr::new(ip.unwrap_or(loopback), local.port())
}

/// Local address used to reach `host`. Sends nothing: connecting a UDP socket only selects a route.
async fn outgoing(host: &str) -> Option<IpAddr> {
    let to = tokio::net::lookup_host(host).await.ok()?.next()?;
    let from: SocketAddr = if to.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0u16; 8], 0).into() };
    let socket = UdpSocket::bind(from).await.ok()?;
    socket.connect(to).await.ok()?;
    Some(socket.local_addr().ok()?.ip())
}

/// Deletes old logs, immediately and once a day.
async fn sweep(logs: RunLogs, age: Duration, clock: Arc<dyn Clock>, stop: CancellationToken) {
    if age.is_zero() {
        return;
    }
    loop {
        let logs = logs.clone();
        if let Ok(Err(error)) = tokio::task::spawn_blocking(move || logs.clean(age)).await {
            tracing::warn!(%error, "failed to delete old logs of runs; retrying tomorrow");
        }
        tokio::select! {
            () = clock.sleep(Duration::from_secs(86_400)) => {}
            () = stop.cancelled() => return,
        }
    }
}

async fn signalled() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}
