//! Reads the time and waits; the only code that reads the system clock.

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

/// Reads the time and waits. Code that needs either receives a `Clock`.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// Reads the wall clock. It may be wrong and it may jump; calendar schedules follow it.
    fn now(&self) -> Timestamp;

    /// Time since an arbitrary start: never goes back, never jumps. Used for measuring and for leases.
    fn monotonic(&self) -> Duration;

    /// Completes once `length` has passed on the monotonic clock, not before.
    fn sleep(&self, length: Duration) -> Sleep;
}

/// The clock of this machine.
///
/// Sleeps need no runtime: a thread of the clock wakes sleepers about 0.1 ms after their time. (Async runtimes count
/// in milliseconds and wake up to 2 ms late.)
#[derive(Debug, Clone)]
pub struct SystemClock {
    alarm: Arc<Alarm>,
}

impl SystemClock {
    /// Creates a clock; its monotonic time starts now.
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

/// Wakes sleepers from a thread that runs while there are any.
#[derive(Debug)]
struct Alarm {
    start: Instant,
    state: Mutex<State>,
    /// Notified when a new sleeper is due before the time that the thread waits for.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    sleepers: Sleepers,
    has_thread: bool,
    /// Time until which the thread waits; `None` while it waits for any sleeper. A sleeper that is due no earlier does
    /// not wake the thread: a loop that sleeps again until the same time would otherwise cost two context switches each
    /// time.
    wakes_at: Option<Duration>,
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
            state.wakes_at = next;
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
        // No user code runs under the lock, so the state is consistent even after a panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread stays for this long without sleepers: starting a thread takes longer than a short sleep, and most
/// sleeps follow closely upon others.
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
        state.sleepers.sleep(self.bed, context.waker());
        if !state.has_thread {
            let alarm = Arc::clone(&self.alarm);
            thread::spawn(move || alarm.run());
            state.has_thread = true;
            // Until it waits, the thread looks at all sleepers.
            state.wakes_at = Some(Duration::ZERO);
        } else if state.wakes_at.is_none_or(|at| self.bed.0 < at) {
            state.wakes_at = Some(self.bed.0);
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
