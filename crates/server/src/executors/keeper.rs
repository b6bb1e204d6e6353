//! Keeps the directory and the database in line, and asks suspects whether they are back.
//!
//! A new executor is written before its registration is acknowledged; a beat of a known one is written within a second,
//! many in one statement. Other nodes' registrations are found by polling one counter.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use engine::{AppId, StoreError};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use protocol::v1::ExecutorTrouble;
use store::{Database, NewToken, Registration};
use timer::{Clock, Timestamp};
use tokio::sync::Notify;

use super::directory::Directory;
use super::silence::Silence;
use super::tokens::{Key, Tokens, fingerprint};
use crate::hints::Hints;
use crate::outbound::{Address, Callee, Outbound};

/// Writes down who registers, and reads who did elsewhere.
pub struct Keeper {
    clock: Arc<dyn Clock>,
    database: Arc<dyn Database>,
    directory: Arc<Directory>,
    tokens: Arc<Tokens>,
    key: Key,
    outbound: Outbound,
    hints: Arc<Hints>,
    /// Beats still to be written.
    beats: Mutex<BTreeSet<Registration>>,
    silence: Mutex<Silence>,
    ask_now: Notify,
}

impl Keeper {
    /// A keeper of this directory.
    pub fn new(
        clock: Arc<dyn Clock>,
        database: Arc<dyn Database>,
        directory: Arc<Directory>,
        tokens: Arc<Tokens>,
        key: Key,
        outbound: Outbound,
        hints: Arc<Hints>,
    ) -> Self {
        let (beats, silence, ask_now) = (Mutex::default(), Mutex::default(), Notify::new());
        Keeper { clock, database, directory, tokens, key, outbound, hints, beats, silence, ask_now }
    }

    /// Registers an executor. When this returns, runs can go to it, on this node at once and on the others within
    /// [`POLL`].
    pub async fn register(&self, registration: Registration) -> Result<(), StoreError> {
        let Registration { app, address } = &registration;
        let now = self.clock.now();
        if self.directory.arrived(app, address, now) {
            // A new process may listen at an old address.
            if let Ok(address) = Address::parse(address) {
                self.outbound.forget(&address);
            }
            if let Err(error) = self.database.register(std::slice::from_ref(&registration)).await {
                self.directory.never_arrived(app, address);
                return Err(error);
            }
            tracing::info!(app, address, "an executor has registered");
            self.hints.executors();
        } else {
            self.beats().insert(registration);
        }
        Ok(())
    }

    /// Takes an executor out. When this returns, no run goes to it any more.
    pub async fn unregister(&self, registration: &Registration) -> Result<(), StoreError> {
        let Registration { app, address } = registration;
        self.directory.left(app, address, self.clock.now());
        self.beats().remove(registration);
        self.database.unregister(app, address).await?;
        tracing::info!(app, address, "an executor has left");
        self.hints.executors();
        Ok(())
    }

    /// Notes which handlers an executor says it has.
    pub async fn note_handlers(
        &self,
        executor: Registration,
        mut handlers: Vec<String>,
    ) -> Result<(), StoreError> {
        handlers.sort_unstable();
        handlers.dedup();
        handlers.truncate(HANDLERS_MAX);
        if self.database.note_handlers(&executor, &handlers).await? {
            self.directory.learn_handlers(self.database.handlers().await?);
            self.hints.executors();
        }
        Ok(())
    }

    /// Gives an app one more token; returns its number. Executors are shown it from now on; older ones go on counting.
    pub async fn add_token(&self, app: AppId, token: &str) -> Result<i64, StoreError> {
        let (digest, sealed) = (fingerprint(token), self.key.seal(token));
        let new = NewToken { app: Some(app), digest, sealed, expires_at: None };
        let id = self.database.add_token(&new).await?;
        self.load().await?;
        Ok(id)
    }

    /// An executor could not be reached.
    pub fn suspect(&self, address: &str, trouble: ExecutorTrouble) {
        let reason = trouble.detail.clone();
        if self.directory.suspect(address, trouble, self.clock.now()) {
            tracing::warn!(
                address,
                reason,
                "an executor cannot be reached; passing it over and asking it each {ASK_EVERY:?}"
            );
            self.ask_now.notify_one();
            self.hints.executors();
        }
    }

    /// Reads everything; what a node does before it serves anybody.
    pub async fn load(&self) -> Result<(), StoreError> {
        self.read_apps().await?;
        self.read_registrations().await
    }

    /// Keeps at it for ever.
    pub async fn run(&self) {
        tokio::join!(self.poll_loop(), self.beat_loop(), self.publish_loop(), self.ask_loop());
    }

    /// Looks whether anything changed elsewhere. Beats alone do not count as a change, so everything is read from time
    /// to time as well.
    async fn poll_loop(&self) {
        let mut known = None;
        let mut last_read = self.clock.monotonic();
        loop {
            self.clock.sleep(POLL).await;
            let result = async {
                let revision = self.revision().await?;
                self.directory.expire(self.clock.now(), self.silent_before());
                if known != Some(revision) || self.clock.monotonic() - last_read > READ_ALL {
                    self.load().await?;
                    if known != Some(revision) {
                        self.hints.executors();
                    }
                    (known, last_read) = (Some(revision), self.clock.monotonic());
                }
                Ok::<_, StoreError>(())
            };
            if let Err(error) = result.await {
                tracing::warn!(%error, "could not read who is registered; going on with who was");
            }
        }
    }

    /// The counter of changes. Whether it can be read at all says whether executors could be heard.
    async fn revision(&self) -> Result<i64, StoreError> {
        let asked_at = self.clock.now();
        let revision = self.database.registry_revision().await;
        match revision {
            Ok(_) => self.silence().hears(self.clock.now()),
            Err(_) => self.silence().is_deaf(asked_at),
        }
        revision
    }

    async fn read_apps(&self) -> Result<(), StoreError> {
        let apps = self.database.apps().await?;
        let rows = self.database.tokens().await?;
        let now = self.clock.now();
        self.tokens.learn(&apps, &rows, &self.key, now);
        let with_token = apps.into_iter().map(|app| {
            let token = self.tokens.outgoing(app.id);
            (app, token)
        });
        self.directory.learn_apps(with_token.collect());
        Ok(())
    }

    async fn read_registrations(&self) -> Result<(), StoreError> {
        let as_of = self.clock.now();
        let found = self.database.registrations(self.silent_before()).await?;
        self.directory.learn_registrations(found, as_of - OVERTAKEN);
        self.directory.learn_handlers(self.database.handlers().await?);
        Ok(())
    }

    async fn beat_loop(&self) {
        loop {
            self.clock.sleep(BEAT_EVERY).await;
            let beats: Vec<Registration> = std::mem::take(&mut *self.beats()).into_iter().collect();
            if beats.is_empty() {
                continue;
            }
            if let Err(error) = self.database.register(&beats).await {
                tracing::warn!(%error, executors = beats.len(), "could not write that executors are alive; trying again in {BEAT_EVERY:?}");
                self.beats().extend(beats);
            }
        }
    }

    /// Writes the lists where a Java admin, or a person, looks for them; and forgets who is long gone.
    async fn publish_loop(&self) {
        loop {
            self.clock.sleep(PUBLISH_EVERY).await;
            let before = self.silent_before();
            let published = async {
                self.database.publish_addresses(&self.directory.lists()).await?;
                self.database.forget_registrations(before, FORGET_MAX).await
            };
            if let Err(error) = published.await {
                tracing::warn!(%error, "could not write the lists of executors; trying again in {PUBLISH_EVERY:?}");
            }
        }
    }

    async fn ask_loop(&self) {
        loop {
            tokio::select! {
                () = self.clock.sleep(ASK_EVERY) => {}
                () = self.ask_now.notified() => self.clock.sleep(ASK_EVERY).await,
            }
            let mut asked: FuturesUnordered<_> = self
                .directory
                .suspects()
                .into_iter()
                .take(ASK_MAX)
                .map(|(written, to)| async move {
                    let address = Address::parse(&written).ok()?;
                    let callee = Callee { address, app: to.name, token: to.token };
                    self.outbound.beat(&callee).await.ok().map(|()| written)
                })
                .collect();
            while let Some(answer) = asked.next().await {
                if let Some(address) = answer {
                    tracing::info!(address, "an executor answers again");
                    self.directory.trust(&address);
                    self.hints.executors();
                }
            }
        }
    }

    fn beats(&self) -> MutexGuard<'_, BTreeSet<Registration>> {
        self.beats.lock().expect("no holder of this lock panics")
    }

    fn silence(&self) -> MutexGuard<'_, Silence> {
        self.silence.lock().expect("no holder of this lock panics")
    }

    /// Executors that were last heard of before this are gone.
    fn silent_before(&self) -> Timestamp {
        self.silence().limit(self.clock.now())
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

/// How often a node looks for what other nodes were told.
pub const POLL: Duration = Duration::from_secs(1);

/// How often everything is read even if nothing has changed: beats at other nodes keep executors alive here.
const READ_ALL: Duration = Duration::from_secs(15);

/// A registration so recent may be in no answer of the database yet.
const OVERTAKEN: Duration = Duration::from_secs(5);

/// Beats are written so often: an executor beats each 30 s and is gone after 90.
const BEAT_EVERY: Duration = Duration::from_secs(1);

/// Names of one executor, beyond which nobody reads on.
const HANDLERS_MAX: usize = 1_000;

/// As often as XXL-JOB does.
const PUBLISH_EVERY: Duration = Duration::from_secs(30);

/// Registrations forgotten at a time.
const FORGET_MAX: usize = 1_000;

/// How often a suspect is asked whether it is back.
const ASK_EVERY: Duration = Duration::from_secs(1);

/// Suspects asked at a time.
const ASK_MAX: usize = 256;
