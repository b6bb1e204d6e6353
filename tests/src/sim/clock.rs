//! Clocks: the true time, and for each node a wall clock that may be wrong.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use timer::{Clock, Sleep, Timestamp};
use tokio::time::Instant;

/// Milliseconds since 1970, used in all records of a simulation.
pub type Ms = i64;

/// Start of every simulation: 2026-06-21T00:00:00Z.
pub const START: Ms = 1_782_000_000_000;

/// A clock on the runtime's virtual time. Clones show the same time.
#[derive(Clone, Debug)]
pub struct SimClock {
    begin: Instant,
    /// Wall clock minus true time.
    skew: Arc<AtomicI64>,
}

impl SimClock {
    /// A clock without skew. Must be created on the runtime that provides its time.
    pub fn new() -> Self {
        SimClock { begin: Instant::now(), skew: Arc::default() }
    }

    /// Another wall clock on the same time, correct until its [skew](SimClock::set_skew) is set.
    pub fn another(&self) -> SimClock {
        SimClock { begin: self.begin, skew: Arc::default() }
    }

    /// The true time.
    pub fn millis(&self) -> Ms {
        START + self.begin.elapsed().as_millis() as Ms
    }

    /// Sets the error of the wall clock, in milliseconds.
    pub fn set_skew(&self, millis: Ms) {
        self.skew.store(millis, Ordering::Relaxed);
    }

    /// Error of the wall clock.
    pub fn skew(&self) -> Ms {
        self.skew.load(Ordering::Relaxed)
    }
}

impl Default for SimClock {
    fn default() -> Self {
        SimClock::new()
    }
}

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.millis() + self.skew())
    }

    fn monotonic(&self) -> Duration {
        self.begin.elapsed()
    }

    fn sleep(&self, length: Duration) -> Sleep {
        Box::pin(tokio::time::sleep(length))
    }
}
