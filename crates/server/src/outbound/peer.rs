//! State of one address: idle connections, load, circuit breaker, protocol variant.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout_at};

use super::breaker::{BreakerState, Circuit};
use super::connection::Connection;
use super::opener::Names;
use super::request::TriggerPath;

pub(super) struct Peer {
    /// Limits concurrent runs; further runs wait here.
    pub(super) runs: Gate,
    /// Limits all other calls, so that runs that hang do not block beats, logs and kills.
    pub(super) asides: Gate,
    pub(super) names: Names,
    /// Admits runs; other calls only record their answers in it.
    pub(super) circuit: Circuit,
    resting: Mutex<Vec<Connection>>,
    resting_max: usize,
    generation: AtomicU64,
    /// 0 while unknown, else the number of a [`TriggerPath`] from 1.
    trigger_path: AtomicU8,
    /// 0 while unknown, 1 if the executor sends the requested lines, 2 if it always sends the whole log.
    log_habit: AtomicU8,
    /// Run, line and hash of the last page of a log.
    last_page: Mutex<Option<(i64, u32, u64)>>,
}

/// Figures of one address, for metrics and users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figures {
    /// Runs being sent, or waiting for their answer.
    pub runs_in_flight: usize,
    /// Runs waiting for their turn.
    pub runs_waiting: usize,
    /// Other calls in progress.
    pub others_in_flight: usize,
    /// Idle connections that can be reused.
    pub resting_connections: usize,
    /// State of the circuit breaker for runs.
    pub breaker: BreakerState,
    /// Path at which the executor accepts runs, once known.
    pub trigger_path: Option<TriggerPath>,
}

impl Peer {
    pub(super) fn new(in_flight_max: usize, waiting_max: usize) -> Peer {
        Peer {
            runs: Gate::new(in_flight_max, waiting_max),
            asides: Gate::new(ASIDES_MAX, ASIDES_WAITING_MAX),
            names: Names::new(),
            circuit: Circuit::default(),
            resting: Mutex::default(),
            resting_max: in_flight_max + ASIDES_MAX,
            generation: AtomicU64::new(0),
            trigger_path: AtomicU8::new(0),
            log_habit: AtomicU8::new(0),
            last_page: Mutex::default(),
        }
    }

    /// Takes an idle connection that is neither stale nor closed by the peer, if there is one.
    pub(super) fn take_resting(&self) -> Option<Connection> {
        loop {
            let mut connection = self.resting().pop()?;
            if !connection.is_stale(Instant::now()) && connection.is_quiet() {
                return Some(connection);
            }
        }
    }

    /// Keeps a connection for the next call; returns whether it was kept.
    pub(super) fn rest(&self, mut connection: Connection) -> bool {
        connection.rest();
        let mut resting = self.resting();
        let is_kept = connection.generation == self.generation() && resting.len() < self.resting_max;
        if is_kept {
            resting.push(connection);
        }
        is_kept
    }

    /// Closes connections that were idle too long; returns how many remain.
    pub(super) fn sweep(&self, now: Instant) -> usize {
        let mut resting = self.resting();
        resting.retain(|connection| !connection.is_stale(now));
        resting.len()
    }

    pub(super) fn close_resting(&self) {
        self.resting().clear();
    }

    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Starts over, because another executor may listen there now.
    pub(super) fn forget(&self) {
        let mut resting = self.resting();
        self.generation.fetch_add(1, Ordering::AcqRel);
        resting.clear();
        drop(resting);
        self.names.forget();
        self.trigger_path.store(0, Ordering::Relaxed);
        self.log_habit.store(0, Ordering::Relaxed);
        self.circuit.close();
    }

    pub(super) fn trigger_path(&self) -> Option<TriggerPath> {
        match self.trigger_path.load(Ordering::Relaxed) {
            1 => Some(TriggerPath::Run),
            2 => Some(TriggerPath::Trigger),
            _ => None,
        }
    }

    pub(super) fn learn(&self, path: TriggerPath) {
        let number = match path {
            TriggerPath::Run => 1,
            TriggerPath::Trigger => 2,
        };
        self.trigger_path.store(number, Ordering::Relaxed);
    }

    /// Whether the executor sends the whole log whichever line is requested, once known.
    pub(super) fn repeats_log(&self) -> Option<bool> {
        match self.log_habit.load(Ordering::Relaxed) {
            0 => None,
            habit => Some(habit == 2),
        }
    }

    /// Whether the executor sent the same page of a run's log for another line just before.
    pub(super) fn sent_before(&self, run: i64, line: u32, text: &str) -> bool {
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        let page = (run, line, hasher.finish());
        let last = self.last_page.lock().unwrap_or_else(PoisonError::into_inner).replace(page);
        last.is_some_and(|last| last.0 == run && last.1 != line && last.2 == page.2)
    }

    pub(super) fn learn_repeats_log(&self, repeats: bool) {
        self.log_habit.store(if repeats { 2 } else { 1 }, Ordering::Relaxed);
    }

    pub(super) fn figures(&self) -> Figures {
        Figures {
            runs_in_flight: self.runs.in_use(),
            runs_waiting: self.runs.waiting.load(Ordering::Relaxed),
            others_in_flight: self.asides.in_use(),
            resting_connections: self.resting().len(),
            breaker: self.circuit.state(),
            trigger_path: self.trigger_path(),
        }
    }

    // The state is consistent after every statement, so a poisoned lock can still be used.
    fn resting(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.resting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Limits concurrent calls and waiting calls; each call waits at most until its own deadline.
pub(super) struct Gate {
    slots: Semaphore,
    size: usize,
    waiting: AtomicUsize,
    waiting_max: usize,
}

impl Gate {
    fn new(size: usize, waiting_max: usize) -> Gate {
        Gate { slots: Semaphore::new(size), size, waiting: AtomicUsize::new(0), waiting_max }
    }

    /// Waits for a turn until `by`.
    pub(super) async fn enter(&self, by: Instant) -> Result<SemaphorePermit<'_>, GateError> {
        if let Ok(permit) = self.slots.try_acquire() {
            return Ok(permit);
        }
        let _waiting = Waiting::join(self)?;
        match timeout_at(by, self.slots.acquire()).await {
            Ok(permit) => Ok(permit.expect("the semaphore is never closed")),
            Err(_) => Err(GateError::Busy(self.size)),
        }
    }

    fn in_use(&self) -> usize {
        self.size - self.slots.available_permits()
    }
}

struct Waiting<'a>(&'a AtomicUsize);

impl Waiting<'_> {
    fn join(gate: &Gate) -> Result<Waiting<'_>, GateError> {
        let more = |waiting| (waiting < gate.waiting_max).then_some(waiting + 1);
        match gate.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(_) => Ok(Waiting(&gate.waiting)),
            Err(waiting) => Err(GateError::Full(waiting)),
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Why a call got no turn.
#[derive(Debug, thiserror::Error)]
pub(super) enum GateError {
    #[error("{0} calls are in progress, and none ended in time")]
    Busy(usize),
    #[error("{0} calls are already waiting")]
    Full(usize),
}

/// Concurrent beats, kills and log pages: sent for users and probes, not by schedules.
const ASIDES_MAX: usize = 8;
/// Enough for many console users and a rescue that asks about many runs at once.
const ASIDES_WAITING_MAX: usize = 1024;
