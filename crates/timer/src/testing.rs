//! A clock that tests advance by hand.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use cron::Timestamp;

use crate::sleepers::{Bed, Sleepers};
use crate::{Clock, Sleep};

/// A manual clock: tests and simulations of hours take milliseconds, and nothing waits for real.
///
/// Clones share one time. It works with any runtime and does not use tokio's paused time.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
/// use tickwright_timer::testing::ManualClock;
/// use tickwright_timer::{Clock, Timestamp};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let clock = ManualClock::new(Timestamp::from_millis(0));
/// let nap = tokio::spawn(clock.sleep(Duration::from_secs(3_600)));
/// clock.sleepers(1).await;
/// clock.advance(Duration::from_secs(3_600));
/// nap.await.unwrap();
/// assert_eq!(clock.now(), Timestamp::from_millis(3_600_000));
/// # });
/// ```
#[derive(Clone, Debug)]
pub struct ManualClock {
    time: Arc<Mutex<Time>>,
}

impl ManualClock {
    /// Creates a clock with `now` as its wall time; its monotonic time is zero.
    pub fn new(now: Timestamp) -> Self {
        let time = Time {
            started_at: now,
            monotonic: Duration::ZERO,
            sleepers: Sleepers::default(),
            observers: Vec::new(),
        };
        ManualClock { time: Arc::new(Mutex::new(time)) }
    }

    /// Advances both clocks by `length` and wakes every due sleeper, the earliest first.
    ///
    /// Sleepers are woken, not run: a woken task sees the time after the whole advance. To stop at each sleeper on
    /// the way, advance by [`until_next_wake`](ManualClock::until_next_wake).
    pub fn advance(&self, length: Duration) {
        let woken = {
            let mut time = self.time();
            time.monotonic = time.monotonic.saturating_add(length);
            let now = time.monotonic;
            time.sleepers.take_due(now)
        };
        woken.for_each(Waker::wake);
    }

    /// Sets the wall clock forward or, with a negative number, back. Monotonic time and sleepers are not affected.
    pub fn step_wall(&self, millis: i64) {
        let mut time = self.time();
        time.started_at = Timestamp::from_millis(time.started_at.as_millis().saturating_add(millis));
    }

    /// Time until the earliest sleeper is due; `None` without sleepers.
    pub fn until_next_wake(&self) -> Option<Duration> {
        let time = self.time();
        Some(time.sleepers.first_due()?.saturating_sub(time.monotonic))
    }

    /// Waits, without advancing the time, until at least `count` sleeps are in progress.
    ///
    /// A task that has gone to sleep has done its work, so this is the moment to advance.
    pub async fn sleepers(&self, count: usize) {
        poll_fn(|context| {
            let mut time = self.time();
            if time.sleepers.len() >= count {
                return Poll::Ready(());
            }
            time.observers.push(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn time(&self) -> MutexGuard<'_, Time> {
        // The lock is never held over user code, so the state is consistent even after a panic.
        self.time.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        let time = self.time();
        time.started_at + time.monotonic
    }

    fn monotonic(&self) -> Duration {
        self.time().monotonic
    }

    fn sleep(&self, length: Duration) -> Sleep {
        let mut time = self.time();
        let due = time.monotonic.saturating_add(length);
        let bed = time.sleepers.bed(due);
        drop(time);
        Box::pin(Sleeper { clock: self.clone(), bed })
    }
}

#[derive(Debug)]
struct Time {
    /// Wall time at monotonic zero; [`ManualClock::step_wall`] shifts it.
    started_at: Timestamp,
    monotonic: Duration,
    sleepers: Sleepers,
    /// Wakers of tasks waiting in [`ManualClock::sleepers`].
    observers: Vec<Waker>,
}

struct Sleeper {
    clock: ManualClock,
    bed: Bed,
}

impl Future for Sleeper {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut time = self.clock.time();
        if time.monotonic >= self.bed.0 {
            return Poll::Ready(());
        }
        time.sleepers.sleep(self.bed, context.waker());
        let observers = std::mem::take(&mut time.observers);
        drop(time);
        observers.into_iter().for_each(Waker::wake);
        Poll::Pending
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        self.clock.time().sleepers.leave(self.bed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn sleepers_wake_when_due_and_not_before() {
        let clock = ManualClock::new(Timestamp::from_millis(0));
        let (woke, awake) = mpsc::channel();
        for length in [5, 1, 3] {
            let (woke, clock) = (woke.clone(), clock.clone());
            tokio::spawn(async move {
                clock.sleep(Duration::from_millis(length)).await;
                woke.send((length, clock.now().as_millis())).unwrap();
            });
        }
        clock.sleepers(3).await;
        let mut steps = Vec::new();
        while let Some(length) = clock.until_next_wake() {
            steps.push(length.as_millis());
            clock.advance(length - Duration::from_nanos(1));
            tokio::task::yield_now().await;
            assert!(awake.try_recv().is_err());
            clock.advance(Duration::from_nanos(1));
            tokio::task::yield_now().await;
            let (length, now) = awake.try_recv().unwrap();
            assert_eq!(now, length as i64);
        }
        assert_eq!(steps, [1, 2, 2]);
    }

    #[tokio::test]
    async fn a_step_of_the_wall_wakes_nobody() {
        let clock = ManualClock::new(Timestamp::from_millis(1_000));
        let nap = tokio::spawn(clock.sleep(Duration::from_secs(1)));
        clock.sleepers(1).await;
        clock.step_wall(1_000_000);
        clock.step_wall(-2_000);
        assert_eq!(clock.now(), Timestamp::from_millis(999_000));
        assert_eq!(clock.monotonic(), Duration::ZERO);
        tokio::task::yield_now().await;
        assert!(!nap.is_finished());
        clock.advance(Duration::from_secs(1));
        nap.await.unwrap();
    }

    #[tokio::test]
    async fn a_dropped_sleep_leaves_nothing_behind() {
        let clock = ManualClock::new(Timestamp::from_millis(0));
        let mut nap = clock.sleep(Duration::from_secs(1));
        tokio::select! { biased; () = &mut nap => unreachable!(), () = clock.sleepers(1) => {} }
        assert_eq!(clock.until_next_wake(), Some(Duration::from_secs(1)));
        drop(nap);
        assert_eq!(clock.until_next_wake(), None);
    }
}
