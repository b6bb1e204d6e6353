//! What everything in a simulation shares: the true time, the weather, the record.

use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use super::clock::{Ms, START, SimClock};
use super::evidence::{Evidence, Trouble, Violation};
use super::lifelines::Locks;
use super::plan::{Levels, Plan};

/// What everything shares.
pub struct World {
    /// What the seed decided.
    pub plan: Plan,
    /// The true time, which is the database's.
    pub clock: SimClock,
    /// Whose connections the database sees.
    pub locks: Locks,
    evidence: Mutex<Evidence>,
    weather: Mutex<Weather>,
    /// Whose turn it is to write.
    writing: tokio::sync::Mutex<()>,
    trace: Option<Mutex<String>>,
}

/// What is broken for all.
#[derive(Clone, Copy, Debug, Default)]
struct Weather {
    outage: bool,
    fair: bool,
}

impl World {
    /// A world at its beginning.
    pub fn new(plan: Plan, traced: bool) -> Self {
        World {
            plan,
            clock: SimClock::new(),
            locks: Locks::default(),
            evidence: Mutex::default(),
            weather: Mutex::default(),
            writing: tokio::sync::Mutex::default(),
            trace: traced.then(Mutex::default),
        }
    }

    /// The true time.
    pub fn now(&self) -> Ms {
        self.clock.millis()
    }

    /// Waits.
    pub async fn sleep(&self, length: Duration) {
        if !length.is_zero() {
            tokio::time::sleep(length).await;
        }
    }

    /// Waits until then.
    pub async fn sleep_until(&self, at: Ms) {
        self.sleep(Duration::from_millis((at - self.now()).max(0) as u64)).await;
    }

    /// Lets the time pass that the database needs for so many rows, one writer after the other.
    pub async fn write_rows(&self, rows: usize) {
        if rows > 0 && !self.plan.row_cost.is_zero() {
            let _turn = self.writing.lock().await;
            self.sleep(self.plan.row_cost * rows as u32).await;
        }
    }

    /// How often what breaks now.
    pub fn levels(&self) -> Levels {
        if self.is_fair() {
            Levels { latency: self.plan.levels.latency, ..Levels::default() }
        } else {
            self.plan.levels
        }
    }

    /// Whether nothing breaks any more by chance.
    pub fn is_fair(&self) -> bool {
        self.weather().fair
    }

    /// Nothing breaks any more by chance.
    pub fn clear_up(&self) {
        *self.weather() = Weather { outage: false, fair: true };
    }

    /// The database is gone for all, or back.
    pub fn set_outage(&self, outage: bool) {
        self.weather().outage = outage;
    }

    /// Whether the database is gone for all.
    pub fn is_outage(&self) -> bool {
        self.weather().outage
    }

    fn weather(&self) -> MutexGuard<'_, Weather> {
        self.weather.lock().expect("no holder of this lock panics")
    }

    /// The record.
    pub fn evidence(&self) -> MutexGuard<'_, Evidence> {
        self.evidence.lock().expect("no holder of this lock panics")
    }

    /// Takes the record out, in the end.
    pub fn take_evidence(&self) -> Evidence {
        std::mem::take(&mut *self.evidence())
    }

    /// Notes that from now on a node cannot be expected to work; [`end_trouble`](World::end_trouble) says until when.
    pub fn begin_trouble(&self, node: usize) -> usize {
        let from = self.now();
        let mut evidence = self.evidence();
        evidence.troubles.push(Trouble { from, until: Ms::MAX, node, severe: true });
        evidence.troubles.len() - 1
    }

    /// It is over now.
    pub fn end_trouble(&self, trouble: usize) {
        self.evidence().troubles[trouble].until = self.now();
    }

    /// Notes that a node could not be expected to work.
    pub fn trouble(&self, node: usize, from: Ms, until: Ms, severe: bool) {
        self.evidence().troubles.push(Trouble { from, until, node, severe });
    }

    /// Notes a broken promise.
    pub fn broken(&self, promise: &'static str, evidence: String) {
        self.note(|| format!("BROKEN {promise}: {evidence}"));
        self.evidence().broken.push(Violation { promise, evidence });
    }

    /// Writes a line into the trace, if there is one.
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
