//! The engine: its parts, its incarnations as a node, and its shutdown.
//!
//! All loops of an engine are one future. Dropping it is a crash, not polling it is a pause; the simulation does
//! both. A loop reads rows, decides with a pure function and writes rows; none calls another.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use cron::Timestamp;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use timer::Clock;
use tokio::sync::{Notify, watch};

use crate::adopt::Adopting;
use crate::agenda::RegistryState;
use crate::complain::Full;
use crate::complete::Reports;
use crate::history::History;
use crate::membership::{Beat, Membership, Skew};
use crate::note::Notes;
use crate::outbox::Outbox;
use crate::pace::{CHANGES_MAX, Pace, STEP_MAX};
use crate::policy::Router;
use crate::ports::{Agenda, Alarms, Dispatch, Move, Peer, Store, StoreError, To};
use crate::quota::Quota;
use crate::run::Node;
use crate::sabotage::{Bugs, Sabotage};
use crate::telemetry::Telemetry;

/// One node of the scheduling centre. Clones are handles to the same node.
#[derive(Clone)]
pub struct Engine {
    pub(crate) inner: Arc<Inner>,
}

/// Parts of an engine.
pub struct Parts {
    /// Name of the node, unique on the database.
    pub name: String,
    /// Clock.
    pub clock: Arc<dyn Clock>,
    /// Database.
    pub store: Arc<dyn Store>,
    /// Selects executors.
    pub router: Arc<dyn Router>,
    /// Sends requests to executors.
    pub dispatch: Arc<dyn Dispatch>,
    /// Sends notifications.
    pub alarms: Arc<dyn Alarms>,
    /// Receives step events; `Arc::new(())` to ignore them.
    pub telemetry: Arc<dyn Telemetry>,
    /// Options of the engine.
    pub options: Options,
}

/// Options of an engine.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Maximum time to wait at shutdown for requests in flight, and for runs that would die with the process.
    pub drain: Duration,
    /// Retention period of runs and their logs.
    pub keep_runs: Duration,
    /// Approximate maximum number of runs and logs to keep; unlimited if absent.
    pub keep_runs_max: Option<u64>,
    /// Retention period of the history of fires that were not sent.
    pub keep_history: Duration,
    /// A run that starts later than this after its scheduled time raises an alert, if its job has alerts enabled.
    pub late_after: Option<Duration>,
    /// Approximate maximum number of open runs per app; unlimited if absent.
    pub open_runs_max: Option<u64>,
    /// Maximum number of rows changed by one step of a stop or deletion. Tests set it low to get many steps.
    pub step_max: usize,
    /// Maximum number of jobs changed by one transaction of a batch that is not atomic. Tests set it low to get
    /// many transactions.
    pub changes_max: usize,
    /// Deliberate bugs, to prove that the tests find them.
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
            changes_max: CHANGES_MAX,
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
    pub(crate) telemetry: Arc<dyn Telemetry>,
    pub(crate) options: Options,
    /// Current incarnation; none before the first join.
    life: Mutex<Option<Membership>>,
    outbox: Mutex<Outbox>,
    /// What the database has acknowledged.
    pub(crate) history: Mutex<History>,
    pub(crate) notes: Notes,
    pub(crate) reports: Reports,
    pub(crate) paces: Paces,
    pub(crate) quota: Quota,
    /// Progress of the first sweep for jobs that others wrote; none once it has ended.
    pub(crate) adopting: Mutex<Option<Adopting>>,
    /// Set if the database disk was found full.
    pub(crate) full: Mutex<Option<Full>>,
    /// Held during one step of a stop or deletion, so that steps of many jobs take turns and delay the fires of
    /// others no more than one job does.
    pub(crate) step: tokio::sync::Mutex<()>,
    /// Last agenda; none if it could not be read.
    pub(crate) agenda: Mutex<Option<Agenda>>,
    /// State of the registry, from the last agenda.
    pub(crate) registry: watch::Sender<Option<RegistryState>>,
    /// Wakes the claim loop: there may be due work.
    pub(crate) claim_now: Notify,
    /// There are events of workflow runs.
    pub(crate) advance_now: Notify,
    /// The outbox got runs.
    pub(crate) holds_now: Notify,
    /// Monotonic time until which results and notes wait for a herd to leave.
    pub(crate) herd_until: Mutex<Duration>,
    /// The node holds runs to send, for which its lifeline must be confirmed.
    pub(crate) lifeline_now: Notify,
    /// The outbox or the lease changed.
    pub(crate) send_now: Notify,
    /// A node may have left runs behind.
    pub(crate) rescue_now: Notify,
    /// This incarnation may have been fenced.
    pub(crate) beat_now: Notify,
    /// It is unknown whether a run was received.
    pub(crate) watch_now: Notify,
    /// There may be events of workflow runs.
    pub(crate) has_workflow_events: AtomicBool,
    /// There may be events of backfills.
    pub(crate) has_backfill_events: AtomicBool,
    /// A node that was probing runs is gone.
    pub(crate) asker_gone: AtomicBool,
    /// Last time at which nothing could be sent, in milliseconds.
    pub(crate) held_until: AtomicI64,
    stopping: AtomicBool,
}

/// Batch sizes of each kind of write.
pub(crate) struct Paces {
    pub(crate) claims: Pace,
    pub(crate) notes: Pace,
    pub(crate) endings: Pace,
    pub(crate) steps: Pace,
    pub(crate) changes: Pace,
}

impl Engine {
    /// Creates an engine, ready to [`run`](Engine::run).
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
                telemetry: parts.telemetry,
                options: parts.options,
                life: Mutex::new(None),
                outbox: Mutex::new(Outbox::new(now)),
                history: Mutex::default(),
                notes: Notes::default(),
                reports: Reports::new(),
                paces: Paces {
                    claims: Pace::new(),
                    notes: Pace::new(),
                    endings: Pace::new(),
                    steps: Pace::step(parts.options.step_max.max(1)),
                    changes: Pace::changes(parts.options.changes_max.max(1)),
                },
                quota: Quota::new(parts.options.open_runs_max),
                adopting: Mutex::new(Some(Adopting { done: 0, total: 0 })),
                full: Mutex::new(None),
                step: tokio::sync::Mutex::new(()),
                agenda: Mutex::new(None),
                registry: watch::Sender::new(None),
                claim_now: Notify::new(),
                advance_now: Notify::new(),
                holds_now: Notify::new(),
                lifeline_now: Notify::new(),
                herd_until: Mutex::default(),
                send_now: Notify::new(),
                rescue_now: Notify::new(),
                beat_now: Notify::new(),
                watch_now: Notify::new(),
                has_workflow_events: AtomicBool::new(false),
                has_backfill_events: AtomicBool::new(false),
                asker_gone: AtomicBool::new(false),
                held_until: AtomicI64::new(i64::MIN),
                stopping: AtomicBool::new(false),
            }),
        }
    }

    /// Schedules until `stop`, then releases its claimed runs, waits for requests in flight, and leaves the
    /// cluster: at most [`Options::drain`] plus one second later.
    pub async fn run(&self, stop: impl Future<Output = ()>) {
        let work = async {
            tokio::join!(self.complete_loop(), self.complete_backlog_loop(), async {
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
                // A run that may have been sent must not be released as if it had not been.
                tracing::warn!(%node, "stopping before all executors have responded; other nodes check these runs when the lease ends");
                return;
            }
            tokio::select! {
                biased;
                left = self.inner.store.leave(&node) => if let Err(error) = left {
                    tracing::warn!(%node, %error, "failed to release claimed runs; other nodes take them over when the lease ends");
                },
                () = self.inner.clock.sleep(LEAVE_MAX) => {}
            }
        }
    }

    /// Status of this node.
    pub fn status(&self) -> Status {
        let monotonic = self.inner.clock.monotonic();
        let idle = Status {
            node: None,
            may_send: false,
            may_claim: false,
            skew: Skew { millis: 0 },
            adopting: self.adopting(),
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
                    may_claim: has_lease
                        && !life.skew.is_too_large()
                        && !self.is_stopping()
                        && (idle.adopting.is_none() || self.sabotaged(Sabotage::ClaimBeforeAdopting)),
                    skew: life.skew,
                    ..idle
                }
            }
        }
    }

    /// All nodes, including this one, that were not fenced when last read.
    pub fn peers(&self) -> Vec<Peer> {
        self.life().as_ref().map(|life| life.peers.clone()).unwrap_or_default()
    }

    /// One incarnation: joins, runs the loops, and returns when it has been fenced or the database has lost commits.
    async fn live(&self) {
        self.join().await;
        self.set_agenda(None);
        let mut loops: FuturesUnordered<Pin<Box<dyn Future<Output = ()> + Send + '_>>> =
            FuturesUnordered::new();
        loops.push(Box::pin(self.heart_loop()));
        loops.push(Box::pin(self.agenda_loop()));
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
        // Only the heartbeat loop ever ends.
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
                    self.history().begin(life.now(beat.received));
                    *self.life() = Some(life);
                    // An earlier incarnation of the same name is fenced now, if there was one.
                    self.look_early();
                    return;
                }
                Err(error) => {
                    self.complain(&error, "failed to join the cluster", RETRY);
                    self.inner.clock.sleep(RETRY).await;
                }
            }
        }
    }

    /// Renews the lease of this incarnation. Returns when it is fenced, or when the database has lost commits.
    async fn heart_loop(&self) {
        let mut wait = HEARTBEAT;
        loop {
            tokio::select! {
                biased;
                () = self.inner.beat_now.notified() => {}
                () = self.inner.clock.sleep(wait) => {}
            }
            let node = self.node();
            wait = match self.beat_once(&node).await {
                Ok(None) => HEARTBEAT,
                Ok(Some(sign)) if self.are_commits_lost() => {
                    if let Some(life) = self.life().as_mut() {
                        life.end();
                    }
                    self.recover_history(&node, sign).await;
                    return;
                }
                Ok(Some(_)) => RETRY,
                Err(StoreError::Fenced(_)) if !self.sabotaged(Sabotage::NoFencing) => {
                    tracing::warn!(%node, "other nodes have declared this node dead; dropping all claims and joining again");
                    if let Some(life) = self.life().as_mut() {
                        life.end();
                    }
                    return;
                }
                Err(error) => {
                    self.complain(&error, "failed to send the heartbeat", RETRY);
                    RETRY
                }
            };
        }
    }

    pub(crate) fn beat(&self, sent: Duration, database: Timestamp) -> Beat {
        Beat { sent, received: self.inner.clock.monotonic(), database, wall: self.inner.clock.now() }
    }

    /// Returns when everything handed to the dispatch is noted, runs that would die with this process have
    /// finished, and every report is written.
    async fn settled(&self) {
        loop {
            // Repeated in case a claim in flight brought more: no fire should wait for our shutdown.
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

    /// Releases claimed runs that were not sent, for other nodes. Runs that cannot be released here are released on
    /// leaving.
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
                tracing::warn!(%error, runs = moves.len(), "failed to release claimed runs; retrying when the node leaves");
            }
        }
    }

    /// Time of the database's clock; the wall clock before the first query.
    pub fn now(&self) -> Timestamp {
        if self.sabotaged(Sabotage::OwnClock) {
            return self.inner.clock.now();
        }
        match self.life().as_ref() {
            Some(life) => life.now(self.inner.clock.monotonic()),
            None => self.inner.clock.now(),
        }
    }

    /// Time for which this node may still send.
    pub(crate) fn lease_left(&self) -> Duration {
        if self.sabotaged(Sabotage::NoFencing) {
            return LEASE;
        }
        self.life().as_ref().map_or(Duration::ZERO, |life| life.lease_left(self.inner.clock.monotonic()))
    }

    /// Whether the lifeline that this incarnation depends on, if any, is confirmed.
    pub(crate) fn lifeline_holds(&self) -> bool {
        let monotonic = self.inner.clock.monotonic();
        self.sabotaged(Sabotage::NoFencing)
            || self.life().as_ref().is_some_and(|life| life.lifeline_holds(monotonic))
    }

    /// Current incarnation. Only called by loops, which run inside one.
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

    /// Has runs checked soon that a dead node may have been probing.
    pub(crate) fn look_early(&self) {
        self.inner.asker_gone.store(true, Ordering::Relaxed);
        self.inner.watch_now.notify_one();
    }

    /// Whether this deliberate bug is enabled. Never outside the tests that prove it is found.
    pub(crate) fn sabotaged(&self, sabotage: Sabotage) -> bool {
        self.inner.options.bugs.has(sabotage)
    }
}

/// Status of a node.
#[derive(Clone, Debug)]
pub struct Status {
    /// Current incarnation, once it has joined.
    pub node: Option<Node>,
    /// Whether its lease is valid, and the lifeline it depends on, if any.
    pub may_send: bool,
    /// Whether its lease is valid, its clock is right, all jobs of the database are adopted, and it is not stopping.
    pub may_claim: bool,
    /// Difference of its clock from the database's.
    pub skew: Skew,
    /// Progress of adopting the jobs that others wrote into the database; none once it may claim.
    pub adopting: Option<Adopting>,
    /// Whether the database disk was full recently.
    pub disk_full: bool,
    /// Number of claimed runs it holds.
    pub held: usize,
    /// Number of executors' responses not yet written.
    pub answers_waiting: usize,
    /// Number of ends of runs not yet written.
    pub ends_waiting: usize,
}

/// Lease duration: a node that misses heartbeats for this long is considered dead. Its fires are late by this plus
/// one heartbeat at most.
pub const LEASE: Duration = Duration::from_secs(3);

/// Three per lease, so that one may be lost.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(1);

/// Delay after a failed call to the store. Scheduling resumes this soon after the database is back.
pub(crate) const RETRY: Duration = Duration::from_millis(200);

/// Maximum time to deregister after the drain.
const LEAVE_MAX: Duration = Duration::from_millis(800);

/// Number of runs released in one transaction: other nodes take them over while the next follow.
const HAND_BACK_MAX: usize = 500;

const SETTLE_LOOK: Duration = Duration::from_millis(10);
