//! The server process of one node: its parts, how it starts and how it stops.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cron::{Schedule, Timestamp, Zone};
use engine::policy::Repeats;
use engine::{AppId, Engine, JobSpec, Parts, StoreError};
use futures_util::FutureExt;
use protocol::v1::SettingView;
use store::{Addresses, AppSpec, Database, NewToken, Registry as _};
use timer::{Clock, SystemClock};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::alerts::Alerts;
use crate::audit::Audit;
use crate::dispatch::HttpDispatch;
use crate::executors::{self, Directory, Registrar, Tokens};
use crate::http::{BodySlots, Front, Hosts, IdentityError, Proxies, Tls};
use crate::jobs::{self, JobRules};
use crate::outbound::{self, Guard, Outbound, Secret};
use crate::rate::Rates;
use crate::runs::{self, Ended, Following, LogFollower, LogKeeper, TraceRecorder, TraceWriter};
use crate::settings::{DeclaredJobs, Settings};
use crate::telemetry::{Hints, Lateness, Metrics, Telemetry};
use crate::users::{FirstAdmin, Users};
use crate::{api, http, open_files};

/// A node of the scheduling centre that listens and is ready to run.
pub struct Centre {
    state: Arc<ServerState>,
    listener: TcpListener,
    tls: Option<Arc<Tls>>,
    proxies: Arc<Proxies>,
    hosts: Arc<Hosts>,
    first_start: Option<FirstStart>,
    first_admin: Option<FirstAdmin>,
}

/// Parts of a node. Each API takes only those that it uses.
pub struct ServerState {
    pub(crate) database: Arc<Database>,
    pub(crate) engine: Engine,
    pub(crate) directory: Arc<Directory>,
    pub(crate) registrar: Arc<Registrar>,
    pub(crate) tokens: Arc<Tokens>,
    pub(crate) outbound: Outbound,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) users: Arc<Users>,
    pub(crate) audit: Arc<Audit>,
    /// Time zone of jobs without one, and of times shown to users.
    pub(crate) zone: Zone,
    /// Whether script jobs are allowed.
    pub(crate) scripts: bool,
    /// The shortest interval at which jobs may fire.
    pub(crate) min_interval: Duration,
    /// Which programs may declare jobs.
    pub(crate) declared_jobs: DeclaredJobs,
    /// Limits the requests of each user, over all APIs.
    pub(crate) callers: Arc<Rates>,
    /// Limits concurrent large request bodies.
    pub(crate) body_slots: Arc<BodySlots>,
    /// Change notifications for clients of event streams.
    pub(crate) hints: Arc<Hints>,
    /// Ends the event streams when the node stops.
    pub(crate) closing: CancellationToken,
    pub(crate) lateness: Arc<Lateness>,
    pub(crate) traces: Arc<TraceRecorder>,
    pub(crate) following: Arc<Following>,
    ended: Ended,
    pub(crate) origin: Arc<Origin>,
    /// Settings, as shown to users.
    pub(crate) settings: Vec<SettingView>,
}

/// Identity of this node.
pub struct Origin {
    pub(crate) node: String,
    pub(crate) database: protocol::v1::Database,
    pub(crate) started_at: Timestamp,
}

/// App created in a new database, shown to the user once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstStart {
    /// Id of the sample app.
    pub id: AppId,
    /// Name of the sample app.
    pub app: String,
    /// Access token of the sample app.
    pub token: String,
}

/// Listens; retries for a moment while the process that is being replaced still holds the port.
async fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let started = Instant::now();
    loop {
        match TcpListener::bind(address).await {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && started.elapsed() < PORT_WAIT => {
                tokio::time::sleep(PORT_LOOK).await;
            }
            bound => return bound,
        }
    }
}

/// How long the port may still be in use at the start: a process that is being replaced needs a moment to exit.
const PORT_WAIT: Duration = Duration::from_secs(1);
const PORT_LOOK: Duration = Duration::from_millis(50);

/// Opens the database. Waits for a server that does not answer yet: after a power cut it may start later than this
/// node. Logs the reason for waiting once a second.
async fn open_database(settings: &Settings, options: store::Options) -> Result<Arc<Database>, StoreError> {
    let started = Instant::now();
    // A file exists or not; there is nothing to wait for.
    let is_server = !settings.database.starts_with("sqlite:");
    let mut why = None;
    let mut second = tokio::time::interval(Duration::from_secs(1));
    second.tick().await;
    loop {
        let attempt = store::open(&settings.database, options.clone());
        tokio::pin!(attempt);
        let opened = loop {
            tokio::select! {
                biased;
                opened = &mut attempt => break opened,
                _ = second.tick() => if let Some(why) = &why {
                    let (waited, most) = (started.elapsed().as_secs(), settings.database_wait.as_secs());
                    tracing::warn!("still waiting for the database, {waited} s of {most} s (--database-wait): {why}");
                },
            }
        };
        match opened {
            Err(error) if is_server && error.is_transient() && started.elapsed() < settings.database_wait => {
                if why.is_none() {
                    tracing::warn!(%error, "the database does not respond yet; retrying");
                } else if second.tick().now_or_never().is_some() {
                    let (waited, most) = (started.elapsed().as_secs(), settings.database_wait.as_secs());
                    tracing::warn!(
                        "still waiting for the database, {waited} s of {most} s (--database-wait): {error}"
                    );
                }
                why = Some(error);
                tokio::time::sleep(DATABASE_LOOK).await;
            }
            opened => return opened,
        }
    }
}

/// Pause between two attempts to reach the database at the start.
const DATABASE_LOOK: Duration = Duration::from_millis(250);

/// Why the node did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address cannot be listened on.
    #[error("failed to listen on {address}: {error}; choose another address with --listen")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Error of the operating system.
        error: io::Error,
    },
    /// The database does not answer or cannot be used.
    #[error(transparent)]
    Database(#[from] StoreError),
    /// The TLS certificate cannot be loaded.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The options of calls to executors are invalid.
    #[error(transparent)]
    Outbound(#[from] outbound::OptionsError),
}

impl Centre {
    /// Opens the database, initializes it if it is new, and listens.
    pub async fn open(settings: Settings) -> Result<Centre, StartError> {
        let tls = settings.identity.clone().map(Tls::load).transpose()?.map(Arc::new);
        let listener = listen(settings.listen)
            .await
            .map_err(|error| StartError::Listen { address: settings.listen, error })?;
        let address = listener.local_addr().unwrap_or(settings.listen);
        let options = store::Options {
            zone: settings.zone.clone(),
            connections: settings.connections,
            java_admins: settings.java_admins,
            repeats: Some(Repeats::USUAL),
            ..Default::default()
        };
        let database = open_database(&settings, options).await?;
        let first_start = prepare(&database, &settings).await?;
        let state = Arc::new(ServerState::new(&settings, database, address)?);
        state.registrar.load().await?;
        if let Some(first) = first_start.as_ref().filter(|_| settings.sample_job) {
            state.engine.ensure(sample_job(first)).await?;
        }
        let first_admin = state.users.first_admin().await?;
        let hosts = Arc::new(Hosts::new(&settings.hostnames, address.ip()));
        let proxies = Arc::new(Proxies(settings.proxies));
        Ok(Centre { state, listener, tls, proxies, hosts, first_start, first_admin })
    }

    /// Returns the address it listens on.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Returns the app created in a new database.
    pub fn first_start(&self) -> Option<&FirstStart> {
        self.first_start.as_ref()
    }

    /// Returns the first administrator of a new database.
    pub fn first_admin(&self) -> Option<&FirstAdmin> {
        self.first_admin.as_ref()
    }

    /// Returns the engine: to add, start, stop, edit and trigger jobs.
    pub fn engine(&self) -> Engine {
        self.state.engine.clone()
    }

    /// Returns the access token of an app, used in both directions.
    pub fn token_of(&self, app: &str) -> Option<Secret> {
        self.state.tokens.outgoing(self.state.directory.app_named(app)?)
    }

    /// Returns the registry of executors.
    pub fn directory(&self) -> Arc<Directory> {
        self.state.directory.clone()
    }

    /// Returns the database.
    pub fn database(&self) -> Arc<Database> {
        self.state.database.clone()
    }

    /// Schedules and serves until `stop`. Then it stops claiming, gives back claimed runs, lets dispatches in
    /// progress finish, accepts results that still come in, and returns within the 5 s that supervisors are promised.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let Centre { state, listener, tls, proxies, hosts, .. } = self;
        let quiet = CancellationToken::new();
        let front = Front { api: api::all(&state), tls: tls.clone(), proxies, hosts };
        let serving = tokio::spawn(http::serve(listener, front, quiet.clone()));
        let following = tokio::spawn(async move {
            if let Some(tls) = tls {
                tls.follow().await;
            }
        });
        let (registrar, states) = (state.registrar.clone(), state.engine.registry_states());
        let keeping = tokio::spawn(async move { registrar.run(states).await });
        let keeping_logs = tokio::spawn(state.log_keeper().run(state.ended.clone()));
        let following_logs = tokio::spawn(state.log_follower().run());
        let writing_traces = tokio::spawn(state.trace_writer().run());
        let counting = runs::count_loop(state.clock.clone(), state.database.clone(), state.engine.clone());
        let counting = tokio::spawn(counting);
        let replanning = tokio::spawn(jobs::replan_loop(state.clock.clone(), JobRules::of(&state)));
        let (engine_stop, engine_done) = schedule_apart(state.engine.clone());
        stop.await;
        let deadline = tokio::time::Instant::now() + STOP_MAX;
        let _ = engine_stop.send(());
        let _ = tokio::time::timeout_at(deadline, engine_done).await;
        state.closing.cancel();
        quiet.cancel();
        // A request that waits for an unresponsive database does not delay the stop.
        let _ = tokio::time::timeout_at(deadline, serving).await;
        let side_loops =
            [keeping, keeping_logs, following_logs, writing_traces, counting, replanning, following];
        for side_loop in side_loops {
            side_loop.abort();
        }
        let _ = tokio::time::timeout_at(deadline, state.trace_writer().finish()).await;
    }
}

/// Maximum time to stop. Supervisors are promised 5 s for the whole process; the rest is for its threads to end, and for
/// a busy machine.
const STOP_MAX: Duration = Duration::from_millis(4_400);

/// Part of it that the engine gives dispatches in progress: somewhat longer than the usual timeout of an executor's
/// answer. The engine needs up to 0.8 s more to sign off; the rest is for requests and traces.
const DRAIN: Duration = Duration::from_millis(3_100);

/// Runs the engine on a separate thread, so that a flood of requests does not make runs late.
fn schedule_apart(engine: Engine) -> (oneshot::Sender<()>, oneshot::Receiver<()>) {
    let (stop, stopped) = oneshot::channel();
    let (done, finished) = oneshot::channel();
    let schedule = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("the operating system gives one more event queue");
        runtime.block_on(engine.run(async {
            let _ = stopped.await;
        }));
        let _ = done.send(());
    };
    std::thread::Builder::new()
        .name("schedule".into())
        .spawn(schedule)
        .expect("the operating system gives one more thread");
    (stop, finished)
}

impl ServerState {
    pub(crate) fn new(
        settings: &Settings,
        database: Arc<Database>,
        address: SocketAddr,
    ) -> Result<ServerState, StartError> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let guard = Guard {
            loopback: address.ip().is_loopback(),
            allow: settings.executor_networks.clone(),
            own: vec![address],
        };
        let usual = outbound::Options::default();
        let options = outbound::Options {
            guard,
            connections_max: usual.connections_max.min(open_files::limit() / 4),
            trust: settings.trust.clone(),
            timeout: settings.call_timeout,
            ..usual
        };
        let outbound = Outbound::new(options)?;
        let (hints, lateness) = (Arc::new(Hints::new()), Arc::new(Lateness::new()));
        let traces = Arc::new(TraceRecorder::new(&settings.node));
        let (log_reading, ended) = (Arc::new(Following::default()), Ended::default());
        let tokens = Arc::new(Tokens::new(settings.token.clone(), settings.allow_no_token));
        let directory = Arc::new(Directory::new(tokens.clone()));
        let registrar = Arc::new(Registrar::new(
            clock.clone(),
            database.clone(),
            directory.clone(),
            tokens.clone(),
            settings.key.clone(),
            Arc::new(outbound.clone()),
            hints.clone(),
        ));
        let metrics = Arc::new(Metrics::new());
        let dispatch = HttpDispatch {
            clock: clock.clone(),
            directory: directory.clone(),
            registrar: registrar.clone(),
            calls: Arc::new(outbound.clone()),
            scripts: settings.scripts,
        };
        let engine = Engine::new(Parts {
            name: settings.node.clone(),
            clock: clock.clone(),
            store: database.clone(),
            router: directory.clone(),
            dispatch: Arc::new(dispatch),
            alarms: Arc::new(Alerts::new(
                clock.clone(),
                database.clone(),
                settings.channels.clone(),
                hints.clone(),
            )),
            telemetry: Arc::new(Telemetry {
                clock: clock.clone(),
                metrics: metrics.clone(),
                hints: hints.clone(),
                lateness: lateness.clone(),
                traces: traces.clone(),
                following: log_reading.clone(),
                ended: ended.clone(),
            }),
            options: engine::Options {
                keep_runs: settings.keep_runs,
                keep_runs_max: settings.keep_runs_max,
                late_after: Some(settings.late_after),
                open_runs_max: Some(settings.max_open_runs),
                drain: DRAIN,
                ..Default::default()
            },
        });
        let users = Arc::new(Users::new(clock.clone(), database.clone(), &settings.key));
        let audit = Arc::new(Audit::new(clock.clone(), database.clone()));
        let origin = Arc::new(Origin {
            node: settings.node.clone(),
            database: kind_of(&settings.database),
            started_at: clock.now(),
        });
        Ok(ServerState {
            database,
            engine,
            directory,
            registrar,
            tokens,
            outbound,
            metrics,
            clock,
            users,
            audit,
            zone: settings.zone.clone(),
            scripts: settings.scripts,
            min_interval: settings.min_interval,
            declared_jobs: settings.declared_jobs,
            callers: Arc::new(Rates::per_second(settings.requests_each)),
            body_slots: Arc::default(),
            hints,
            closing: CancellationToken::new(),
            lateness,
            traces,
            following: log_reading,
            ended,
            origin,
            settings: settings.shown(),
        })
    }

    fn trace_writer(&self) -> TraceWriter {
        let (clock, database) = (self.clock.clone(), self.database.clone());
        TraceWriter { clock, database, traces: self.traces.clone() }
    }

    fn log_keeper(&self) -> LogKeeper {
        LogKeeper {
            clock: self.clock.clone(),
            database: self.database.clone(),
            directory: self.directory.clone(),
            outbound: self.outbound.clone(),
            metrics: self.metrics.clone(),
            following: self.following.clone(),
        }
    }

    fn log_follower(&self) -> LogFollower {
        LogFollower {
            clock: self.clock.clone(),
            database: self.database.clone(),
            directory: self.directory.clone(),
            outbound: self.outbound.clone(),
            following: self.following.clone(),
            ended: self.ended.clone(),
        }
    }
}

/// Returns the kind of database by the scheme of its URL.
fn kind_of(database: &str) -> protocol::v1::Database {
    match database.split(':').next() {
        Some("mysql" | "mariadb") => protocol::v1::Database::Mysql,
        Some("postgres" | "postgresql") => protocol::v1::Database::Postgres,
        _ => protocol::v1::Database::Sqlite,
    }
}

/// Creates an app in a new database, so that the first executor can register with settings only.
async fn prepare(database: &Database, settings: &Settings) -> Result<Option<FirstStart>, StoreError> {
    if !database.apps().await?.is_empty() {
        return Ok(None);
    }
    let spec = AppSpec { name: SAMPLE_APP.into(), title: "Sample".into(), addresses: Addresses::Registered };
    let app = match database.create_app(&spec).await {
        Ok(app) => app,
        // Another node starts at the same time and was first.
        Err(StoreError::Conflict(_)) => return Ok(None),
        Err(error) => return Err(error),
    };
    let token = executors::generate();
    let row = NewToken {
        app: Some(app),
        digest: executors::fingerprint(&token),
        sealed: settings.key.seal(&token),
        expires_at: None,
    };
    database.add_token(&row).await?;
    Ok(Some(FirstStart { id: app, app: spec.name, token }))
}

/// A job that a new user can see running within a minute of the first start.
fn sample_job(first: &FirstStart) -> JobSpec {
    let each_ten_seconds = Schedule::fixed_rate(Timestamp::default(), Duration::from_secs(10));
    let schedule = each_ten_seconds.expect("ten seconds are a period");
    JobSpec {
        key: Some("sample/hello".into()),
        param: "world".into(),
        author: "Tickwright".into(),
        ..JobSpec::new(first.id, "Say hello", schedule, SAMPLE_HANDLER)
    }
}

/// Name of the app in a new database.
pub const SAMPLE_APP: &str = "tickwright-sample";

/// Handler of its sample job.
pub const SAMPLE_HANDLER: &str = "hello";
