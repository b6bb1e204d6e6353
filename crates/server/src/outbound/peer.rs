//! What is known about one address: its resting connections, how busy it is, whether it answers, what it speaks.

use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout_at};

use super::breaker::{BreakerState, Circuit};
use super::connection::Connection;
use super::opener::Names;
use super::request::TriggerPath;

pub(super) struct Peer {
    /// Runs wait here for their turn.
    pub(super) runs: Gate,
    /// All other calls, so that hung runs do not keep anybody from asking, reading a log or killing.
    pub(super) asides: Gate,
    pub(super) names: Names,
    /// Runs pass it; other calls tell it what they heard.
    pub(super) circuit: Circuit,
    resting: Mutex<Vec<Connection>>,
    resting_max: usize,
    generation: AtomicU64,
    /// 0 while unknown, else a [`TriggerPath`] from 1.
    trigger_path: AtomicU8,
    /// 0 while unknown, 1 if it sends the lines that it is asked for, 2 if it always sends a whole log.
    log_habit: AtomicU8,
}

/// How one address is doing, for metrics and people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figures {
    /// Runs being sent, or waiting for their answer.
    pub runs_in_flight: usize,
    /// Runs waiting for their turn.
    pub runs_waiting: usize,
    /// Other calls under way.
    pub others_in_flight: usize,
    /// Connections that may be used again.
    pub resting_connections: usize,
    /// Whether runs are sent there at all.
    pub breaker: BreakerState,
    /// Where it takes runs, once that is known.
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
        }
    }

    /// A connection that has not waited long and whose other end has not left, if there is one.
    pub(super) fn take_resting(&self) -> Option<Connection> {
        loop {
            let mut connection = self.resting().pop()?;
            if !connection.is_stale(Instant::now()) && connection.is_quiet() {
                return Some(connection);
            }
        }
    }

    /// Keeps a connection for the next call. Says whether it was kept.
    pub(super) fn rest(&self, mut connection: Connection) -> bool {
        connection.rest();
        let mut resting = self.resting();
        let is_kept = connection.generation == self.generation() && resting.len() < self.resting_max;
        if is_kept {
            resting.push(connection);
        }
        is_kept
    }

    /// Closes connections that have rested too long; how many are left.
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

    /// Starts over: whoever listens there now may be somebody else.
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

    /// Whether it sends a whole log whichever line it is asked for, once that is known.
    pub(super) fn repeats_log(&self) -> Option<bool> {
        match self.log_habit.load(Ordering::Relaxed) {
            0 => None,
            habit => Some(habit == 2),
        }
    }

    pub(super) fn learn_repeats_log(&self, repeats: bool) {
        self.log_habit.store(if repeats { 2 } else { 1 }, Ordering::Relaxed);
    }

    pub(super) fn figures(&self) -> Figures {
        Figures {
            runs_in_flight: self.runs.inside(),
            runs_waiting: self.runs.waiting.load(Ordering::Relaxed),
            others_in_flight: self.asides.inside(),
            resting_connections: self.resting().len(),
            breaker: self.circuit.state(),
            trigger_path: self.trigger_path(),
        }
    }

    // What these hold is whole after every statement, so a panic elsewhere has spoilt nothing.
    fn resting(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.resting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// So many may be inside, so many wait; nobody waits longer than it wants to.
pub(super) struct Gate {
    places: Semaphore,
    size: usize,
    waiting: AtomicUsize,
    waiting_max: usize,
}

impl Gate {
    fn new(size: usize, waiting_max: usize) -> Gate {
        Gate { places: Semaphore::new(size), size, waiting: AtomicUsize::new(0), waiting_max }
    }

    /// Waits for a turn until `by`.
    pub(super) async fn enter(&self, by: Instant) -> Result<SemaphorePermit<'_>, GateError> {
        if let Ok(permit) = self.places.try_acquire() {
            return Ok(permit);
        }
        let _waiting = Waiting::join(self)?;
        match timeout_at(by, self.places.acquire()).await {
            Ok(permit) => Ok(permit.expect("the semaphore is never closed")),
            Err(_) => Err(GateError::Busy(self.size)),
        }
    }

    fn inside(&self) -> usize {
        self.size - self.places.available_permits()
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

/// Why there was no turn.
#[derive(Debug, thiserror::Error)]
pub(super) enum GateError {
    #[error("{0} calls are under way there already, and none ended in time")]
    Busy(usize),
    #[error("{0} calls wait for it already")]
    Full(usize),
}

/// Beats, kills and pages of logs at the same time: a person or a probe asks, not a schedule.
const ASIDES_MAX: usize = 8;
/// A console full of people, and a rescue that asks after many runs at once.
const ASIDES_WAITING_MAX: usize = 1024;
