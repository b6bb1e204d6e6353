//! The engine: what it is made of, its life as a node, and how it stops.
//!
//! All loops of an engine are one future. Dropping it is a crash, not polling it is a pause, and the simulation does
//! both. A loop reads rows, decides with a pure function, writes rows; none calls another.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use cron::Timestamp;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use timer::Clock;
use tokio::sync::Notify;

use crate::complain::Full;
use crate::complete::Reports;
use crate::membership::{Beat, Membership, Skew};
use crate::note::Notes;
use crate::outbox::Outbox;
use crate::pace::{Pace, STEP_MAX};
use crate::policy::Router;
use crate::ports::{Alarms, Dispatch, Move, Observer, Peer, Store, StoreError, To};
use crate::quota::Quota;
use crate::run::Node;
use crate::sabotage::{Bugs, Sabotage};

/// One node of the scheduling centre. Clones are handles to the same node.
#[derive(Clone)]
pub struct Engine {
    pub(crate) inner: Arc<Inner>,
}

/// What an engine is made of.
pub struct Parts {
    /// The node's name, different from every other node's on the same database.
    pub name: String,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Remembers.
    pub store: Arc<dyn Store>,
    /// Chooses executors.
    pub router: Arc<dyn Router>,
    /// Reaches them.
    pub dispatch: Arc<dyn Dispatch>,
    /// Tells people.
    pub alarms: Arc<dyn Alarms>,
    /// Is told how it is doing; `Arc::new(())` if nobody wants to know.
    pub observer: Arc<dyn Observer>,
    /// What may be set.
    pub options: Options,
}

/// What may be set about an engine.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How long a stopping engine waits for what it is sending, and for runs that would die with it.
    pub drain: Duration,
    /// How long runs and their logs are kept.
    pub keep_runs: Duration,
    /// How many runs and logs are kept, about; as many as there are, if nothing is said.
    pub keep_runs_max: Option<u64>,
    /// How long the history of fires that were not sent is kept.
    pub keep_history: Duration,
    /// People are told of a run that begins more than this after its instant, if its job says so.
    pub late_after: Option<Duration>,
    /// How many runs each app may have open, about; any number, if nothing is said.
    pub open_runs_max: Option<u64>,
    /// How many rows one step of a stop or deletion changes at most. Tests set it low, so that there are many steps.
    pub step_max: usize,
    /// Deliberate bugs, to show that the tests find them.
    pub bugs: Bugs,
}

impl Default for Options {
    fn default() -> Self {
        const DAY: Duration = Duration::from_secs(24 * 60 * 60);
        Options {
            drain: Duration::from_secs(4),
            keep_runs: 30 * DAY,
            keep_runs_max: None,
            keep_history: 30 * DAY,
            late_after: None,
            open_runs_max: None,
            step_max: STEP_MAX,
            bugs: Bugs::default(),
        }
    }
}

pub(crate) struct Inner {
    pub(crate) name: String,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) router: Arc<dyn Router>,
    pub(crate) dispatch: Arc<dyn Dispatch>,
    pub(crate) alarms: Arc<dyn Alarms>,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) options: Options,
    /// This life; none before the first.
    life: Mutex<Option<Membership>>,
    outbox: Mutex<Outbox>,
    pub(crate) notes: Notes,
    pub(crate) reports: Reports,
    pub(crate) paces: Paces,
    pub(crate) quota: Quota,
    /// The database was found to have no room.
    pub(crate) full: Mutex<Option<Full>>,
    /// Held while a stop or deletion takes one step: those of many jobs at once take turns, and delay the fires of others
    /// no more than that of one job does.
    pub(crate) step: tokio::sync::Mutex<()>,
    /// A claim may bring something.
    pub(crate) claim_now: Notify,
    /// The outbox or the lease changed.
    pub(crate) send_now: Notify,
    /// Somebody may have left something.
    pub(crate) rescue_now: Notify,
    /// This life may be over.
    pub(crate) beat_now: Notify,
    /// A run is in doubt.
    pub(crate) watch_now: Notify,
    /// A node that was asking about runs is gone.
    pub(crate) asker_gone: AtomicBool,
    stopping: AtomicBool,
}

/// How much is written at a time, of each kind.
pub(crate) struct Paces {
    pub(crate) claims: Pace,
    pub(crate) notes: Pace,
    pub(crate) endings: Pace,
    pub(crate) steps: Pace,
}

impl Engine {
    /// An engine, ready to [`run`](Engine::run).
    pub fn new(parts: Parts) -> Self {
        let now = parts.clock.now();
        Engine {
            inner: Arc::new(Inner {
                name: parts.name,
                clock: parts.clock,
                store: parts.store,
                router: parts.router,
                dispatch: parts.dispatch,
                alarms: parts.alarms,
                observer: parts.observer,
                options: parts.options,
                life: Mutex::new(None),
                outbox: Mutex::new(Outbox::new(now)),
                notes: Notes::default(),
                reports: Reports::new(),
                paces: Paces {
                    claims: Pace::new(),
                    notes: Pace::new(),
                    endings: Pace::new(),
                    steps: Pace::step(parts.options.step_max.max(1)),
                },
                quota: Quota::new(parts.options.open_runs_max),
                full: Mutex::new(None),
                step: tokio::sync::Mutex::new(()),
                claim_now: Notify::new(),
                send_now: Notify::new(),
                rescue_now: Notify::new(),
                beat_now: Notify::new(),
                watch_now: Notify::new(),
                asker_gone: AtomicBool::new(false),
                stopping: AtomicBool::new(false),
            }),
        }
    }

    /// Schedules until `stop`, then hands back what it has claimed, lets what is being sent finish, and leaves: at
    /// most [`Options::drain`] and a second later.
    pub async fn run(&self, stop: impl Future<Output = ()>) {
        let work = async {
            tokio::join!(self.complete_loop(), async {
                loop {
                    self.live().await;
                }
            })
        };
        tokio::pin!(work);
        tokio::select! {
            biased;
            () = stop => {}
            _ = &mut work => {}
        }
        self.inner.stopping.store(true, Ordering::Relaxed);
        let settled = tokio::select! {
            biased;
            () = self.settled() => true,
            _ = &mut work => false,
            () = self.inner.clock.sleep(self.inner.options.drain) => false,
        };
        let node = self.life().as_ref().map(|life| life.node.clone());
        if let Some(node) = node {
            if !settled {
                // What may have been sent must not be handed back as if it had not been.
                tracing::warn!(%node, "stopping with requests unanswered; the others ask about them when the lease ends");
                return;
            }
            tokio::select! {
                biased;
                left = self.inner.store.leave(&node) => if let Err(error) = left {
                    tracing::warn!(%node, %error, "could not hand back what was claimed; the others take it over when the lease ends");
                },
                () = self.inner.clock.sleep(LEAVE_MAX) => {}
            }
        }
    }

    /// What there is to know about this node.
    pub fn status(&self) -> Status {
        let monotonic = self.inner.clock.monotonic();
        let idle = Status {
            node: None,
            may_send: false,
            may_claim: false,
            skew: Skew { millis: 0 },
            disk_full: self.is_disk_full(),
            held: self.outbox().len(),
            answers_waiting: self.inner.notes.len(),
            ends_waiting: self.inner.reports.len(),
        };
        match self.life().as_ref() {
            None => idle,
            Some(life) => {
                let has_lease = !life.lease_left(monotonic).is_zero();
                Status {
                    node: Some(life.node.clone()),
                    may_send: has_lease && life.lifeline_holds(monotonic),
                    may_claim: has_lease && !life.skew.is_too_large() && !self.is_stopping(),
                    skew: life.skew,
                    ..idle
                }
            }
        }
    }

    /// All nodes that were not declared over when this one last beat, itself too.
    pub fn peers(&self) -> Vec<Peer> {
        self.life().as_ref().map(|life| life.peers.clone()).unwrap_or_default()
    }

    /// One life: joins, runs the loops, and returns when the others have declared it over.
    async fn live(&self) {
        self.join().await;
        let mut loops: FuturesUnordered<Pin<Box<dyn Future<Output = ()> + Send + '_>>> =
            FuturesUnordered::new();
        loops.push(Box::pin(self.heart_loop()));
        loops.push(Box::pin(self.lifeline_loop()));
        loops.push(Box::pin(self.claim_loop()));
        loops.push(Box::pin(self.send_loop()));
        loops.push(Box::pin(self.note_loop()));
        loops.push(Box::pin(self.cancel_loop()));
        loops.push(Box::pin(self.rescue_loop()));
        loops.push(Box::pin(self.watch_loop()));
        loops.push(Box::pin(self.alert_loop()));
        loops.push(Box::pin(self.adopt_loop()));
        loops.push(Box::pin(self.prune_loop()));
        loops.push(Box::pin(self.quota_loop()));
        // Only the heart ever ends.
        loops.next().await;
        drop(loops);
        *self.outbox() = Outbox::new(self.inner.clock.now());
        self.inner.notes.clear();
    }

    async fn join(&self) {
        loop {
            let sent = self.inner.clock.monotonic();
            match self.inner.store.join(&self.inner.name, LEASE).await {
                Ok(joined) => {
                    let beat = self.beat(sent, joined.now);
                    tracing::info!(node = %joined.node, "joined");
                    let life = Membership::new(joined.node, LEASE, &beat);
                    *self.outbox() = Outbox::new(life.now(beat.received));
                    *self.life() = Some(life);
                    // An earlier life of the same name is over now, if there was one.
                    self.look_early();
                    return;
                }
                Err(error) => {
                    self.complain(&error, "could not join", RETRY);
                    self.inner.clock.sleep(RETRY).await;
                }
            }
        }
    }

    /// Keeps this life going. Returns when it is over.
    async fn heart_loop(&self) {
        // The first one at once: it tells who else is there.
        let mut wait = Duration::ZERO;
        loop {
            tokio::select! {
                biased;
                () = self.inner.beat_now.notified() => {}
                () = self.inner.clock.sleep(wait) => {}
            }
            let node = self.node();
            let sent = self.inner.clock.monotonic();
            wait = match self.inner.store.heartbeat(&node, LEASE).await {
                Ok(heartbeat) => {
                    let beat = self.beat(sent, heartbeat.now);
                    if let Some(life) = self.life().as_mut() {
                        life.renew(LEASE, &beat);
                        life.peers = heartbeat.nodes;
                        if life.skew.is_too_large() {
                            tracing::error!(
                                skew_ms = life.skew.millis,
                                "this machine's clock differs from the database's by more than {} ms: claiming nothing until it is set right",
                                Skew::MAX_MILLIS
                            );
                        }
                    }
                    self.inner.send_now.notify_one();
                    HEARTBEAT
                }
                Err(StoreError::Fenced(_)) if !self.sabotaged(Sabotage::NoFencing) => {
                    tracing::warn!(%node, "the others have declared this node dead; dropping all claims and joining anew");
                    if let Some(life) = self.life().as_mut() {
                        life.end();
                    }
                    return;
                }
                Err(error) => {
                    self.complain(&error, "heartbeat failed", RETRY);
                    RETRY
                }
            };
        }
    }

    fn beat(&self, sent: Duration, database: Timestamp) -> Beat {
        Beat { sent, received: self.inner.clock.monotonic(), database, wall: self.inner.clock.now() }
    }

    /// Done when everything that was handed to the dispatch is noted, what would die with us has ended, and every report
    /// is written.
    async fn settled(&self) {
        loop {
            // First, and again should a claim that was under way have brought more: nobody's fire waits for our farewell.
            self.hand_back().await;
            let has_work = self.inner.dispatch.is_busy()
                || !self.outbox().is_settled()
                || !self.inner.notes.is_empty()
                || !self.inner.reports.is_empty();
            if !has_work {
                return;
            }
            self.inner.clock.sleep(SETTLE_LOOK).await;
        }
    }

    /// Lets others have what was claimed and not sent. What this fails to hand back goes with the good-bye.
    async fn hand_back(&self) {
        let mut moves: Vec<Move> = self
            .outbox()
            .take_all_back()
            .into_iter()
            .map(|run| Move {
                run: run.id,
                version: run.version,
                to: To::Waiting { due_at: run.due_at },
                trouble: None,
            })
            .collect();
        moves.sort_by_key(|back| back.run);
        for moves in moves.chunks(HAND_BACK_MAX) {
            if let Err(error) = self.inner.store.move_runs(moves).await {
                tracing::warn!(%error, runs = moves.len(), "could not hand back what was claimed; trying again with the good-bye");
            }
        }
    }

    /// The database's clock; the wall clock before it was ever asked.
    pub fn now(&self) -> Timestamp {
        if self.sabotaged(Sabotage::OwnClock) {
            return self.inner.clock.now();
        }
        match self.life().as_ref() {
            Some(life) => life.now(self.inner.clock.monotonic()),
            None => self.inner.clock.now(),
        }
    }

    /// How long this node may still send.
    pub(crate) fn lease_left(&self) -> Duration {
        if self.sabotaged(Sabotage::NoFencing) {
            return LEASE;
        }
        self.life().as_ref().map_or(Duration::ZERO, |life| life.lease_left(self.inner.clock.monotonic()))
    }

    /// Whether the lifeline that this life depends on, if any, is known to hold.
    pub(crate) fn lifeline_holds(&self) -> bool {
        let monotonic = self.inner.clock.monotonic();
        self.sabotaged(Sabotage::NoFencing)
            || self.life().as_ref().is_some_and(|life| life.lifeline_holds(monotonic))
    }

    /// This life. Only asked by loops, which run inside one.
    pub(crate) fn node(&self) -> Node {
        self.life().as_ref().expect("loops run only after joining").node.clone()
    }

    pub(crate) fn life(&self) -> MutexGuard<'_, Option<Membership>> {
        self.inner.life.lock().expect("no holder of this lock panics")
    }

    pub(crate) fn outbox(&self) -> MutexGuard<'_, Outbox> {
        self.inner.outbox.lock().expect("no holder of this lock panics")
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.inner.stopping.load(Ordering::Relaxed)
    }

    /// Has somebody look soon at what a node that is gone may have been asking about.
    pub(crate) fn look_early(&self) {
        self.inner.asker_gone.store(true, Ordering::Relaxed);
        self.inner.watch_now.notify_one();
    }

    /// Whether this deliberate bug is switched on. Never, outside the tests that show they are found.
    pub(crate) fn sabotaged(&self, sabotage: Sabotage) -> bool {
        self.inner.options.bugs.has(sabotage)
    }
}

/// What there is to know about a node.
#[derive(Clone, Debug)]
pub struct Status {
    /// This life, once it has joined.
    pub node: Option<Node>,
    /// Its lease holds, and the lifeline it depends on, if any.
    pub may_send: bool,
    /// Its lease holds, its clock is right and it is not stopping.
    pub may_claim: bool,
    /// How far its clock is from the database's.
    pub skew: Skew,
    /// The database had no room a moment ago.
    pub disk_full: bool,
    /// How many claimed runs it has in hand.
    pub held: usize,
    /// How many executors' answers it has still to write down,
    pub answers_waiting: usize,
    /// and how many ends of runs.
    pub ends_waiting: usize,
}

/// How long a life lasts without a heartbeat. A dead node's fires are late by this and one heartbeat at most.
pub const LEASE: Duration = Duration::from_secs(3);

/// Three in a lease, so that one may be lost.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// After a failed call to the store. Scheduling resumes this soon after the database is back.
pub(crate) const RETRY: Duration = Duration::from_millis(200);

/// How long it then tries to say good-bye.
const LEAVE_MAX: Duration = Duration::from_millis(800);

/// Runs handed back in one transaction: others take them over while the next follow.
const HAND_BACK_MAX: usize = 500;

const SETTLE_LOOK: Duration = Duration::from_millis(10);
