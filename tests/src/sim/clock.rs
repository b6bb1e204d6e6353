//! Clocks: one true time, and for each node a wall clock that may be wrong.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use timer::{Clock, Sleep, Timestamp};
use tokio::time::Instant;

/// Milliseconds since 1970, as all records of a simulation count.
pub type Ms = i64;

/// When every simulation begins: 2026-06-21T00:00:00Z.
pub const START: Ms = 1_782_000_000_000;

/// A clock on the runtime's virtual time. Clones show the same.
#[derive(Clone, Debug)]
pub struct SimClock {
    begin: Instant,
    /// Wall clock minus true time.
    skew: Arc<AtomicI64>,
}

impl SimClock {
    /// A true clock. Needs the runtime whose time it shows.
    pub fn new() -> Self {
        SimClock { begin: Instant::now(), skew: Arc::default() }
    }

    /// Another wall clock over the same time, right until it is [set](SimClock::set_skew) wrong.
    pub fn another(&self) -> SimClock {
        SimClock { begin: self.begin, skew: Arc::default() }
    }

    /// The true time.
    pub fn millis(&self) -> Ms {
        START + self.begin.elapsed().as_millis() as Ms
    }

    /// Sets the wall clock wrong by this much.
    pub fn set_skew(&self, millis: Ms) {
        self.skew.store(millis, Ordering::Relaxed);
    }

    /// How wrong the wall clock is.
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
