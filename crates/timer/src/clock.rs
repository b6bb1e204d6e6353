//! What time it is, and how to wait: the one door to the system clock.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use cron::Timestamp;

use crate::sleepers::{Bed, Sleepers};

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

/// The clock of this machine.
///
/// Its waits need no runtime: a thread of the clock's own wakes sleepers, about a tenth of a millisecond after
/// their time. (Runtimes count in milliseconds and wake up to two late.)
#[derive(Debug, Clone)]
pub struct SystemClock {
    alarm: Arc<Alarm>,
}

impl SystemClock {
    /// A clock whose monotonic time starts now.
    pub fn new() -> Self {
        let alarm = Alarm { start: Instant::now(), state: Mutex::default(), changed: Condvar::new() };
        SystemClock { alarm: Arc::new(alarm) }
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
        self.alarm.start.elapsed()
    }

    fn sleep(&self, length: Duration) -> Sleep {
        let bed = self.alarm.state().sleepers.bed(self.monotonic().saturating_add(length));
        Box::pin(Sleeper { alarm: Arc::clone(&self.alarm), bed })
    }
}

/// Wakes sleepers from a thread that lives while there are any.
#[derive(Debug)]
struct Alarm {
    start: Instant,
    state: Mutex<State>,
    /// Told when somebody is due before all others.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    sleepers: Sleepers,
    has_thread: bool,
}

impl Alarm {
    fn run(&self) {
        let mut state = self.state();
        loop {
            let now = self.start.elapsed();
            let due: Vec<Waker> = state.sleepers.take_due(now).collect();
            if !due.is_empty() {
                drop(state);
                due.into_iter().for_each(Waker::wake);
                state = self.state();
                continue;
            }
            let next = state.sleepers.first_due();
            let wait = next.map_or(THREAD_LINGERS, |due| due - now);
            let (woken, timeout) =
                self.changed.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner);
            state = woken;
            if next.is_none() && timeout.timed_out() && state.sleepers.len() == 0 {
                state.has_thread = false;
                return;
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No foreign code runs under the lock, so whoever panicked left it whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Most sleeps follow closely upon others, and starting a thread takes longer than a short sleep.
const THREAD_LINGERS: Duration = Duration::from_secs(2);

struct Sleeper {
    alarm: Arc<Alarm>,
    bed: Bed,
}

impl Future for Sleeper {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.alarm.state();
        if self.alarm.start.elapsed() >= self.bed.0 {
            return Poll::Ready(());
        }
        let is_first = state.sleepers.sleep(self.bed, context.waker());
        if !state.has_thread {
            let alarm = Arc::clone(&self.alarm);
            thread::spawn(move || alarm.run());
            state.has_thread = true;
        } else if is_first {
            self.alarm.changed.notify_one();
        }
        Poll::Pending
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        self.alarm.state().sleepers.leave(self.bed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_is_not_shorter_than_asked_for() {
        let clock = SystemClock::new();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for micros in [0, 1, 700, 1_500, 3_000] {
            let length = Duration::from_micros(micros);
            let started = clock.monotonic();
            runtime.block_on(clock.sleep(length));
            assert!(clock.monotonic() - started >= length);
        }
    }

    #[test]
    fn an_earlier_sleep_is_not_held_up_by_a_longer_one() {
        let clock = SystemClock::new();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let long = tokio::spawn(clock.sleep(Duration::MAX));
            tokio::task::yield_now().await;
            clock.sleep(Duration::from_millis(1)).await;
            assert!(!long.is_finished());
            long.abort();
            assert!(long.await.is_err());
        });
        assert_eq!(clock.alarm.state().sleepers.len(), 0);
    }
}
