//! State shared by everything in a simulation: true time, faults, evidence.

use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use super::clock::{Ms, START, SimClock};
use super::evidence::{Evidence, Trouble, Violation};
use super::lifelines::Locks;
use super::plan::{Levels, Plan};

/// Shared state of a simulation.
pub struct World {
    /// The plan drawn from the seed.
    pub plan: Plan,
    /// The true time, which is also the database's.
    pub clock: SimClock,
    /// Session locks held in the database.
    pub locks: Locks,
    evidence: Mutex<Evidence>,
    faults: Mutex<Faults>,
    /// Serialises writes to the database.
    writing: tokio::sync::Mutex<()>,
    trace: Option<Mutex<String>>,
}

/// Faults that affect all nodes.
#[derive(Clone, Copy, Debug, Default)]
struct Faults {
    outage: bool,
    fair: bool,
    /// Number of database servers that have been the primary.
    servers: u64,
}

impl World {
    /// Creates the state at the start of a simulation.
    pub fn new(plan: Plan, traced: bool) -> Self {
        World {
            plan,
            clock: SimClock::new(),
            locks: Locks::default(),
            evidence: Mutex::default(),
            faults: Mutex::default(),
            writing: tokio::sync::Mutex::default(),
            trace: traced.then(Mutex::default),
        }
    }

    /// The true time.
    pub fn now(&self) -> Ms {
        self.clock.millis()
    }

    /// Sleeps.
    pub async fn sleep(&self, length: Duration) {
        if !length.is_zero() {
            tokio::time::sleep(length).await;
        }
    }

    /// Sleeps until this time.
    pub async fn sleep_until(&self, at: Ms) {
        self.sleep(Duration::from_millis((at - self.now()).max(0) as u64)).await;
    }

    /// Sleeps for the time the database needs for this many rows, one writer at a time.
    pub async fn write_rows(&self, rows: usize) {
        if rows > 0 && !self.plan.row_cost.is_zero() {
            let _turn = self.writing.lock().await;
            self.sleep(self.plan.row_cost * rows as u32).await;
        }
    }

    /// Current probabilities of faults.
    pub fn levels(&self) -> Levels {
        if self.is_fair() {
            Levels { latency: self.plan.levels.latency, ..Levels::default() }
        } else {
            self.plan.levels
        }
    }

    /// Whether random faults have ended.
    pub fn is_fair(&self) -> bool {
        self.faults().fair
    }

    /// Ends random faults.
    pub fn clear_up(&self) {
        let mut faults = self.faults();
        *faults = Faults { outage: false, fair: true, ..*faults };
    }

    /// Makes the database unavailable for all nodes, or available again.
    pub fn set_outage(&self, outage: bool) {
        self.faults().outage = outage;
    }

    /// Whether the database is unavailable for all nodes.
    pub fn is_outage(&self) -> bool {
        self.faults().outage
    }

    /// Another database server becomes the primary: all nodes need new connections.
    pub fn change_server(&self) {
        self.faults().servers += 1;
    }

    /// Number of database servers that have been the primary before this one.
    pub fn servers(&self) -> u64 {
        self.faults().servers
    }

    fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().expect("no holder of this lock panics")
    }

    /// The evidence so far.
    pub fn evidence(&self) -> MutexGuard<'_, Evidence> {
        self.evidence.lock().expect("no holder of this lock panics")
    }

    /// Takes the evidence at the end.
    pub fn take_evidence(&self) -> Evidence {
        std::mem::take(&mut *self.evidence())
    }

    /// Records that a node cannot be expected to work from now on, until [`end_trouble`](World::end_trouble).
    pub fn begin_trouble(&self, node: usize) -> usize {
        let from = self.now();
        let mut evidence = self.evidence();
        evidence.troubles.push(Trouble { from, until: Ms::MAX, node, severe: true });
        evidence.troubles.len() - 1
    }

    /// Ends a recorded trouble.
    pub fn end_trouble(&self, trouble: usize) {
        self.evidence().troubles[trouble].until = self.now();
    }

    /// Records that a node could not be expected to work.
    pub fn trouble(&self, node: usize, from: Ms, until: Ms, severe: bool) {
        self.evidence().troubles.push(Trouble { from, until, node, severe });
    }

    /// Records a violated guarantee.
    pub fn broken(&self, promise: &'static str, evidence: String) {
        self.note(|| format!("BROKEN {promise}: {evidence}"));
        self.evidence().broken.push(Violation { promise, evidence });
    }

    /// Adds a line to the trace, if tracing is on.
    pub fn note(&self, line: impl FnOnce() -> String) {
        if let Some(trace) = &self.trace {
            let at = self.now() - START;
            let mut trace = trace.lock().expect("no holder of this lock panics");
            writeln!(trace, "{:>3}.{:03} {}", at / 1000, at % 1000, line()).expect("strings take everything");
        }
    }

    /// The trace so far.
    pub fn trace(&self) -> String {
        self.trace
            .as_ref()
            .map_or_else(String::new, |trace| trace.lock().expect("no holder of this lock panics").clone())
    }
}
