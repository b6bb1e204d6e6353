//! Synchronizes the directory with the database, and probes unreachable executors.
//!
//! A new executor is stored before its registration is acknowledged; a heartbeat of a known one is stored within a
//! second, many in one statement. Registrations at other nodes are found by polling one counter.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use engine::{AppId, RegistryState, StoreError};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use protocol::v1::{Event, ExecutorTrouble, ProblemCode};
use store::{ADDRESSES_MAX, Beat, NewToken, Noted, Registration, Registry};
use timer::{Clock, Timestamp};
use tokio::sync::{Notify, watch};

use super::directory::{Arrival, Directory};
use super::silence::{SILENT_MAX, Silence};
use super::tokens::{Key, Tokens, fingerprint};
use crate::outbound::{Address, Calls};
use crate::request_error::RequestError;
use crate::telemetry::Hints;
use crate::warn::warn_store;

/// Stores registrations, and reads those of other nodes.
pub struct Registrar {
    clock: Arc<dyn Clock>,
    registry: Arc<dyn Registry>,
    directory: Arc<Directory>,
    tokens: Arc<Tokens>,
    key: Key,
    calls: Arc<dyn Calls>,
    hints: Arc<Hints>,
    /// Heartbeats still to be stored.
    beats: Mutex<BTreeMap<Registration, Option<String>>>,
    silence: Mutex<Silence>,
    /// The database's time when last read, and the monotonic time of that read.
    database_time: Mutex<Option<(Timestamp, Duration)>>,
    ask_now: Notify,
    /// Held while everything is read and applied, so that an older read never replaces a newer one.
    reading: tokio::sync::Mutex<()>,
}

impl Registrar {
    /// Creates a registrar of this directory.
    pub fn new(
        clock: Arc<dyn Clock>,
        registry: Arc<dyn Registry>,
        directory: Arc<Directory>,
        tokens: Arc<Tokens>,
        key: Key,
        calls: Arc<dyn Calls>,
        hints: Arc<Hints>,
    ) -> Self {
        Registrar {
            clock,
            registry,
            directory,
            tokens,
            key,
            calls,
            hints,
            beats: Mutex::default(),
            silence: Mutex::default(),
            database_time: Mutex::default(),
            ask_now: Notify::new(),
            reading: tokio::sync::Mutex::default(),
        }
    }

    /// Registers an executor that uses the token with this digest. When this returns, runs can be sent to it, from
    /// this node at once and from the others within a second.
    pub async fn register(
        &self,
        registration: Registration,
        token: Option<String>,
    ) -> Result<(), RequestError> {
        let Registration { app, address } = &registration;
        let arrival = self.directory.arrived(app, address, token.as_deref(), self.now());
        if let Ok(parsed) = Address::parse(address) {
            match arrival {
                // A new process may listen at an old address.
                Arrival::New => self.calls.forget(&parsed),
                Arrival::OtherToken | Arrival::Late | Arrival::Again => self.calls.revive(&parsed),
            }
        }
        let beat = Beat { registration: registration.clone(), token };
        if arrival == Arrival::Again {
            self.beats().insert(registration, beat.token);
            return Ok(());
        }
        let noted = self.registry.register(std::slice::from_ref(&beat), SILENT_MAX).await;
        let refused = match noted.as_deref() {
            Err(error) => Some(error.clone().into()),
            Ok([Noted::TooMany]) => Some(too_many(app)),
            Ok(_) => None,
        };
        if let Some(error) = refused {
            if arrival == Arrival::New {
                self.directory.never_arrived(app, address);
            }
            return Err(error);
        }
        if arrival == Arrival::New {
            tracing::info!(app, address, "executor registered");
        }
        self.hints.announce(Event::Executors);
        Ok(())
    }

    /// Unregisters an executor. When this returns, no run is sent to it any more.
    pub async fn unregister(&self, registration: &Registration) -> Result<(), StoreError> {
        let Registration { app, address } = registration;
        self.directory.left(app, address, self.now());
        self.beats().remove(registration);
        // An executor that was rejected calls this too when it stops.
        if self.registry.unregister(app, address).await? {
            tracing::info!(app, address, "executor unregistered");
        }
        self.hints.announce(Event::Executors);
        Ok(())
    }

    /// Stores the handlers that an executor has reported.
    pub async fn note_handlers(
        &self,
        executor: Registration,
        mut handlers: Vec<String>,
    ) -> Result<(), StoreError> {
        handlers.sort_unstable();
        handlers.dedup();
        handlers.truncate(HANDLERS_MAX);
        if self.registry.note_handlers(&executor, &handlers).await? {
            self.directory.learn_handlers(self.registry.handlers().await?);
            self.hints.announce(Event::Executors);
        }
        Ok(())
    }

    /// Adds a token to an app; returns its id. Executors are sent it from now on; older tokens stay valid.
    pub async fn add_token(&self, app: AppId, token: &str) -> Result<i64, StoreError> {
        let (digest, sealed) = (fingerprint(token), self.key.seal(token));
        let new = NewToken { app: Some(app), digest, sealed, expires_at: None };
        let id = self.registry.add_token(&new).await?;
        self.load().await?;
        Ok(id)
    }

    /// Marks an executor as unreachable.
    pub fn suspect(&self, address: &str, trouble: ExecutorTrouble) {
        let reason = trouble.detail.clone();
        if self.directory.suspect(address, trouble, self.now()) {
            tracing::warn!(
                address,
                reason,
                "executor unreachable; sending no runs to it, checking it every {ASK_EVERY:?}"
            );
            self.ask_now.notify_one();
            self.hints.announce(Event::Executors);
        }
    }

    /// Reads everything. A node does this before it serves requests. When this returns, all changes committed before
    /// the call are in effect.
    pub async fn load(&self) -> Result<(), StoreError> {
        let _turn = self.reading.lock().await;
        if self.database_time().is_none() {
            self.revision().await?;
        }
        self.read_apps().await?;
        self.read_registrations().await
    }

    /// Runs all loops, forever. `states` are the counters of changes that the engine reads.
    pub async fn run(&self, states: States) {
        tokio::join!(self.poll_loop(states), self.beat_loop(), self.publish_loop(), self.ask_loop());
    }

    /// Notices changes made by other nodes. Heartbeats alone do not count as a change, so everything is also read from
    /// time to time, and always before an executor expires: it may send heartbeats to another node.
    async fn poll_loop(&self, mut states: States) {
        let mut known = None;
        let mut last_read = self.clock.monotonic();
        let read_all = if self.registry.is_beside_java() { READ_ALL_BESIDE_JAVA } else { READ_ALL };
        loop {
            let state = self.next_state(&mut states).await;
            let result = async {
                let revision = match state {
                    Some(state) => self.heard(state),
                    None => self.revision().await?,
                };
                let is_news = known != Some(revision);
                let is_old = self.clock.monotonic() - last_read > read_all;
                if is_news || is_old || self.directory.has_silent(self.silent_before()) {
                    self.load().await?;
                    (known, last_read) = (Some(revision), self.clock.monotonic());
                }
                self.directory.expire(self.now(), self.silent_before());
                if is_news {
                    self.hints.announce(Event::Executors);
                }
                Ok::<_, StoreError>(())
            };
            if let Err(error) = result.await {
                warn_store!(error, "failed to read the registered executors; continuing with the last list");
            }
        }
    }

    /// Waits for the next state that the engine reads; `None` if it reads none for a while.
    async fn next_state(&self, states: &mut States) -> Option<RegistryState> {
        tokio::select! {
            biased;
            Ok(()) = states.changed() => *states.borrow_and_update(),
            () = self.clock.sleep(POLL_ITSELF) => None,
        }
    }

    /// Reads the counter of changes. If that fails, heartbeats cannot be read either.
    async fn revision(&self) -> Result<i64, StoreError> {
        let asked_at = self.now();
        match self.registry.registry_state().await {
            Ok((revision, now)) => {
                Ok(self.heard(RegistryState { revision, now, read_at: self.clock.monotonic() }))
            }
            Err(error) => {
                // Before the database's time is known, this node's clock would count, which may be wrong.
                if self.database_time().is_some() {
                    self.silence().is_deaf(asked_at);
                }
                Err(error)
            }
        }
    }

    /// Notes that the database has answered. A state of the engine may be older than one that was read here.
    fn heard(&self, state: RegistryState) -> i64 {
        let mut known = self.database_time();
        if known.is_none_or(|(_, read_at)| read_at <= state.read_at) {
            *known = Some((state.now, state.read_at));
        }
        drop(known);
        self.silence().hears(state.now);
        state.revision
    }

    /// Encrypts a secret.
    pub fn seal(&self, value: &str) -> String {
        self.key.seal(value)
    }

    async fn read_apps(&self) -> Result<(), StoreError> {
        let apps = self.registry.apps().await?;
        let rows = self.registry.tokens().await?;
        self.tokens.learn(&apps, &rows, &self.key, self.now());
        self.tokens.secrets.learn(&self.registry.secrets().await?, &self.key);
        self.directory.learn_apps(apps);
        Ok(())
    }

    async fn read_registrations(&self) -> Result<(), StoreError> {
        let as_of = self.now();
        let found = self.registry.registrations(self.silent_before()).await?;
        self.directory.learn_registrations(found, as_of - OVERTAKEN);
        self.directory.learn_handlers(self.registry.handlers().await?);
        Ok(())
    }

    async fn beat_loop(&self) {
        loop {
            self.clock.sleep(BEAT_EVERY).await;
            let beats = std::mem::take(&mut *self.beats());
            if beats.is_empty() {
                continue;
            }
            let beat = |(registration, token): (&Registration, &Option<String>)| Beat {
                registration: registration.clone(),
                token: token.clone(),
            };
            let written: Vec<Beat> = beats.iter().map(beat).collect();
            match self.registry.register(&written, SILENT_MAX).await {
                Ok(noted) => self.turn_away(written, noted),
                Err(error) => {
                    warn_store!(
                        error,
                        executors = beats.len(),
                        "failed to store heartbeats of executors; retrying in {BEAT_EVERY:?}"
                    );
                    // Heartbeats received meanwhile are newer.
                    let newer = std::mem::take(&mut *self.beats());
                    *self.beats() = beats.into_iter().chain(newer).collect();
                }
            }
        }
    }

    /// Removes executors that the database rejects: they were deleted there meanwhile, and their app is full.
    fn turn_away(&self, beats: Vec<Beat>, noted: Vec<Noted>) {
        let too_many = beats.into_iter().zip(noted).filter(|(_, noted)| *noted == Noted::TooMany);
        for (Beat { registration: Registration { app, address }, .. }, _) in too_many {
            tracing::warn!(app, address, "executor rejected: its app already has {ADDRESSES_MAX}");
            self.directory.never_arrived(&app, &address);
        }
    }

    /// Writes the address lists to XXL-JOB's table, for Java admins and users, and deletes expired registrations.
    async fn publish_loop(&self) {
        loop {
            self.clock.sleep(PUBLISH_EVERY).await;
            let before = self.silent_before();
            let published = async {
                self.registry.publish_addresses(&self.directory.lists()).await?;
                self.registry.forget_registrations(before, FORGET_MAX).await
            };
            if let Err(error) = published.await {
                warn_store!(
                    error,
                    "failed to store the address lists of apps; retrying in {PUBLISH_EVERY:?}"
                );
            }
        }
    }

    async fn ask_loop(&self) {
        let mut last = String::new();
        loop {
            tokio::select! {
                biased;
                () = self.clock.sleep(ASK_EVERY) => {}
                () = self.ask_now.notified() => self.clock.sleep(ASK_EVERY).await,
            }
            // They take turns, so that one app with many addresses does not keep the others from being asked.
            let mut suspects = self.directory.suspects();
            let turn = suspects.partition_point(|(address, _)| *address <= last);
            suspects.rotate_left(turn);
            suspects.truncate(ASK_MAX);
            if let Some((address, _)) = suspects.last() {
                last.clone_from(address);
            }
            let mut asked: FuturesUnordered<_> = suspects
                .into_iter()
                .map(|(written, to)| async move {
                    let callee = to.callee(&written)?;
                    self.calls.beat(&callee).await.ok().map(|()| written)
                })
                .collect();
            while let Some(answer) = asked.next().await {
                if let Some(address) = answer {
                    tracing::info!(address, "executor reachable again");
                    self.directory.trust(&address);
                    self.hints.announce(Event::Executors);
                }
            }
        }
    }

    fn beats(&self) -> MutexGuard<'_, BTreeMap<Registration, Option<String>>> {
        self.beats.lock().expect("no holder of this lock panics")
    }

    fn silence(&self) -> MutexGuard<'_, Silence> {
        self.silence.lock().expect("no holder of this lock panics")
    }

    /// Executors last seen before this time have expired.
    fn silent_before(&self) -> Timestamp {
        let now = self.now();
        self.silence().limit(now)
    }

    fn database_time(&self) -> MutexGuard<'_, Option<(Timestamp, Duration)>> {
        self.database_time.lock().expect("no holder of this lock panics")
    }

    /// The database's time, by which all nodes record when executors were seen; before its first read, the wall clock.
    pub fn now(&self) -> Timestamp {
        match *self.database_time() {
            Some((time, read_at)) => time + self.clock.monotonic().saturating_sub(read_at),
            None => self.clock.now(),
        }
    }
}

fn too_many(app: &str) -> RequestError {
    let why = format!(
        "the app `{app}` already has {ADDRESSES_MAX} registered executors, the maximum; this one is not registered"
    );
    RequestError::new(ProblemCode::Conflict, why)
}

/// Values of the counter of changes with the database's times, as the engine reads them. It does so twice per second
/// while there are other nodes: including the time to read the changes, every node knows an executor within a second
/// after it has registered anywhere.
type States = watch::Receiver<Option<RegistryState>>;

/// How long to wait for the engine, which reads nothing while the database does not answer.
const POLL_ITSELF: Duration = Duration::from_millis(1_500);

/// How often everything is read even if nothing has changed, for example to show when executors were last seen.
const READ_ALL: Duration = Duration::from_secs(60);

/// The same beside Java admins: executors that register there are found only by this.
const READ_ALL_BESIDE_JAVA: Duration = Duration::from_secs(15);

/// A registration this recent may not be in the database's answer yet.
const OVERTAKEN: Duration = Duration::from_secs(5);

/// How often heartbeats are stored: an executor sends one each 30 s and expires after 90.
const BEAT_EVERY: Duration = Duration::from_secs(1);

/// Maximum number of handler names of one executor; more are of no use to a reader.
const HANDLERS_MAX: usize = 1_000;

/// Same as XXL-JOB.
const PUBLISH_EVERY: Duration = Duration::from_secs(30);

/// Registrations deleted at a time.
const FORGET_MAX: usize = 1_000;

/// How often an unreachable executor is probed.
const ASK_EVERY: Duration = Duration::from_secs(1);

/// Unreachable executors probed at a time.
const ASK_MAX: usize = 256;
