//! What time it is, and how to wait: the one door to the system clock.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use cron::Timestamp;

/// A wait in progress.
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Tells the time and waits. Everything that needs either is handed one of these.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// The wall clock. It may be wrong and it may jump; people's schedules are written in it.
    fn now(&self) -> Timestamp;

    /// Time since an arbitrary start: never goes back, never jumps. For measuring and for leases.
    fn monotonic(&self) -> Duration;

    /// Ends when `length` has passed on the monotonic clock, not before.
    fn sleep(&self, length: Duration) -> Sleep;
}

/// The clock of this machine. Its waits need a tokio runtime.
#[derive(Debug, Clone)]
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// A clock whose monotonic time starts now.
    pub fn new() -> Self {
        SystemClock { start: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        SystemClock::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the system clock")]
        let now = SystemTime::now();
        match now.duration_since(UNIX_EPOCH) {
            Ok(since) => Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX)),
            Err(before) => Timestamp::from_millis(0) - before.duration(),
        }
    }

    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }

    fn sleep(&self, length: Duration) -> Sleep {
        Box::pin(tokio::time::sleep(length))
    }
}
