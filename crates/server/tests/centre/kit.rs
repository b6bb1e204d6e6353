//! A server to test against.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cron::{Schedule, Zone};
use engine::{AppId, Engine, JobId, JobSpec, RunRecord, Store as _};
use executor::{Context, Executor, Job};
use store::{Database, NewToken, Registry as _};
use tickwright_server::executors::{Directory, Key, fingerprint};
use tickwright_server::outbound::Trust;
use tickwright_server::{Centre, DeclaredJobs, FirstAdmin, REQUESTS_EACH, Settings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A running server with a SQLite file of its own.
pub struct Bench {
    pub address: SocketAddr,
    pub engine: Engine,
    pub directory: Arc<Directory>,
    pub database: Arc<Database>,
    pub token: String,
    pub app: String,
    pub admin: FirstAdmin,
    pub folder: PathBuf,
    pub settings: Settings,
    stop: Option<oneshot::Sender<()>>,
    running: JoinHandle<()>,
}

impl Bench {
    pub async fn start() -> Bench {
        Bench::start_with(|_| {}).await
    }

    pub async fn start_with(change: impl FnOnce(&mut Settings)) -> Bench {
        let folder = std::env::temp_dir().join(format!("tickwright-centre-{:x}", fastrand::u64(..)));
        std::fs::create_dir_all(&folder).unwrap();
        let mut settings = Settings {
            listen: "127.0.0.1:0".parse().unwrap(),
            identity: None,
            proxies: Vec::new(),
            hostnames: vec!["centre".into(), "x".into()],
            database: format!("sqlite:{}", folder.join("centre.db").display()),
            node: "centre".into(),
            zone: Zone::utc(),
            connections: 4,
            key: Key::generate(),
            token: None,
            allow_no_token: false,
            executor_networks: Vec::new(),
            scripts: true,
            declared_jobs: DeclaredJobs::OwnToken,
            call_timeout: Duration::from_secs(1),
            trust: Trust::default(),
            channels: Vec::new(),
            late_after: Duration::from_secs(60),
            sample_job: false,
            keep_runs: Duration::from_secs(3_600),
            keep_runs_max: None,
            min_interval: Duration::from_millis(10),
            max_open_runs: 30_000,
            database_wait: Duration::from_secs(1),
            requests_each: REQUESTS_EACH,
            java_admins: store::JavaAdmins::Auto,
        };
        change(&mut settings);
        let centre = Centre::open(settings.clone()).await.unwrap();
        let first = centre.first_start().cloned().unwrap();
        let admin = centre.first_admin().cloned().unwrap();
        let (address, engine) = (centre.address().unwrap(), centre.engine());
        let (directory, database) = (centre.directory(), centre.database());
        let (stop, stopped) = oneshot::channel::<()>();
        let running = tokio::spawn(centre.run(async {
            let _ = stopped.await;
        }));
        let bench = Bench {
            address,
            engine,
            directory,
            database,
            token: first.token,
            app: first.app,
            admin,
            folder,
            settings,
            stop: Some(stop),
            running,
        };
        until("the node has joined", async || bench.engine.status().may_claim.then_some(())).await;
        bench
    }

    /// Stops it gracefully.
    pub async fn stop(mut self) {
        self.end().await;
        std::fs::remove_dir_all(&self.folder).unwrap();
    }

    async fn end(&mut self) {
        drop(self.stop.take());
        tokio::time::timeout(PATIENCE, &mut self.running).await.expect("it stops").unwrap();
    }

    /// Replaces this node by another on the same database, which must be shared.
    pub async fn replace(mut self, node: &str) -> Bench {
        self.end().await;
        let settings = Settings { node: node.into(), ..self.settings.clone() };
        let centre = Centre::open(settings).await.unwrap();
        (self.address, self.engine) = (centre.address().unwrap(), centre.engine());
        (self.directory, self.database) = (centre.directory(), centre.database());
        let (stop, stopped) = oneshot::channel::<()>();
        self.running = tokio::spawn(centre.run(async {
            let _ = stopped.await;
        }));
        self.stop = Some(stop);
        until("the node has joined", async || self.engine.status().may_claim.then_some(())).await;
        self
    }

    /// Starts another node on the same database, which must be shared.
    pub async fn beside(&self, node: &str) -> Bench {
        let settings = Settings { node: node.into(), ..self.settings.clone() };
        let centre = Centre::open(settings.clone()).await.unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let bench = Bench {
            address: centre.address().unwrap(),
            engine: centre.engine(),
            directory: centre.directory(),
            database: centre.database(),
            token: self.token.clone(),
            app: self.app.clone(),
            admin: self.admin.clone(),
            folder: self.folder.clone(),
            settings,
            stop: Some(stop),
            running: tokio::spawn(centre.run(async {
                let _ = stopped.await;
            })),
        };
        until("the node has joined", async || bench.engine.status().may_claim.then_some(())).await;
        bench
    }

    /// Stops a node that was started beside another.
    pub async fn leave(mut self) {
        self.end().await;
    }

    /// Adds a token to the sample app.
    pub async fn add_token(&self, token: &str) {
        let (digest, sealed) = (fingerprint(token), self.settings.key.seal(token));
        let token = NewToken { app: Some(AppId(1)), digest, sealed, expires_at: None };
        self.database.add_token(&token).await.unwrap();
    }

    /// Starts an executor of the sample app with these handlers.
    pub async fn executor(&self, jobs: Vec<Job>) -> Executor {
        let directory = self.folder.join(format!("executor-{:x}", fastrand::u64(..)));
        let builder = Executor::builder(&self.app)
            .centre(format!("http://{}/xxl-job-admin", self.address))
            .token(&self.token)
            .listen("127.0.0.1:0")
            .directory(directory);
        let executor = jobs.into_iter().fold(builder, |builder, job| builder.job(job)).start().await.unwrap();
        let here = executor.address().to_owned();
        until("the executor is registered", async || self.sees(&here).then_some(())).await;
        executor
    }

    /// Returns whether runs can be sent to an executor.
    pub fn sees(&self, address: &str) -> bool {
        self.directory.sightings(AppId(1)).iter().any(|sighting| sighting.address == address)
    }

    /// Creates a job of the sample app that is never due by itself.
    pub async fn job(&self, handler: &str, change: impl FnOnce(&mut JobSpec)) -> JobId {
        let mut spec = JobSpec::new(AppId(1), handler, Schedule::Never, handler);
        change(&mut spec);
        self.engine.create(&spec).await.unwrap()
    }

    /// Runs a job now, and waits until all its runs (one, or one for each shard) have finished.
    pub async fn run(&self, job: JobId, param: Option<&str>) -> Vec<RunRecord> {
        self.engine.trigger(job, fastrand::i64(1..), param.map(Into::into)).await.unwrap();
        self.over(job).await
    }

    /// Returns the runs of a job, once there are some and all have finished.
    pub async fn over(&self, job: JobId) -> Vec<RunRecord> {
        until("all runs of the job are over", async || {
            let runs = self.database.runs(job, None, 100).await.unwrap();
            (!runs.is_empty() && runs.iter().all(|run| run.state.is_over())).then_some(runs)
        })
        .await
    }

    /// The same, when the addresses of the runs are stored, too: a result may arrive before the response to the request,
    /// which names the executor.
    pub async fn over_somewhere(&self, job: JobId) -> Vec<RunRecord> {
        until("all runs of the job are over and have an address", async || {
            let runs = self.over(job).await;
            runs.iter().all(|run| run.address.is_some()).then_some(runs)
        })
        .await
    }

    /// POSTs to a path as executors do, and returns the body of the answer.
    pub async fn post(&self, path: &str, token: Option<&str>, body: &str) -> String {
        let token = token.map(|token| format!("Xxl-Job-Access-Token: {token}\r\n")).unwrap_or_default();
        let length = body.len();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: x\r\n{token}Content-Length: {length}\r\nConnection: close\r\n\r\n"
        );
        let (code, answer) = self.raw(format!("{head}{body}").as_bytes()).await;
        assert_eq!(code, 200, "{answer}");
        answer
    }

    /// Sends bytes; returns the status and the body of the answer.
    pub async fn raw(&self, bytes: &[u8]) -> (u16, String) {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        let mut answer = Vec::new();
        // A server that rejects the request may close while we still send.
        let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer))
            .await
            .expect("it answers or closes");
        let answer = String::from_utf8(answer).unwrap();
        let code = answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        (code, answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default())
    }
}

/// Waits until `look` returns a value.
pub async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let found = async {
        loop {
            match look().await {
                Some(found) => return found,
                None => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    };
    tokio::time::timeout(PATIENCE, found).await.unwrap_or_else(|_| panic!("waited too long until {what}"))
}

/// A handler that succeeds with its parameter as the result.
pub fn echo() -> Job {
    Job::new("echo", |ctx: Context| async move {
        let shard = ctx.shard();
        ctx.log(format!("given {}", ctx.param()));
        format!("{} {}/{}", ctx.param(), shard.index, shard.total)
    })
}

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
