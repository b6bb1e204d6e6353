//! A scheduler on a manual clock, and a record of its runs.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tickwright_timer::testing::ManualClock;
use tickwright_timer::{Clock, Failure, FailureCause, Handle, Late, Scheduler, Timestamp, When};

/// 2026-06-21T00:00:00Z. Tests count from here.
pub const START: i64 = 1_782_000_000_000;

pub fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(START + millis)
}

pub fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub struct Kit {
    pub clock: ManualClock,
    pub scheduler: Arc<Scheduler>,
    failures: Log<Failure>,
    /// Every start, because the threshold is zero.
    lates: Log<Late>,
}

type Log<T> = Arc<Mutex<Vec<T>>>;

impl Kit {
    pub fn new() -> Kit {
        Kit::limited(100)
    }

    pub fn limited(max_running: usize) -> Kit {
        let clock = ManualClock::new(at(0));
        let (failures, lates) = (Log::default(), Log::default());
        let (on_error, on_late) = (Arc::clone(&failures), Arc::clone(&lates));
        let scheduler = Scheduler::builder()
            .clock(Arc::new(clock.clone()))
            .max_running(max_running)
            .late_after(Duration::ZERO)
            .on_error(move |failure: &Failure| on_error.lock().unwrap().push(failure.clone()))
            .on_late(move |late: &Late| on_late.lock().unwrap().push(late.clone()))
            .start();
        Kit { clock, scheduler: Arc::new(scheduler), failures, lates }
    }

    /// Schedules a task that takes this long; its runs are listed by [`Kit::runs`].
    pub fn spawn(&self, name: &str, when: When, length: Duration) -> Handle {
        let clock = self.clock.clone();
        self.scheduler.spawn(name, when, move || clock.sleep(length))
    }

    /// Advances the clock in one step and lets all async work that follows from it finish.
    pub async fn pass(&self, millis: u64) {
        settle().await;
        self.clock.advance(ms(millis));
        settle().await;
    }

    /// All starts so far, as `name due` or `name due@start`, in milliseconds since the beginning.
    pub fn runs(&self) -> Vec<String> {
        let lates = self.lates.lock().unwrap();
        let started = lates.iter().filter_map(|late| match late {
            Late::Started { task, scheduled_at, by, .. } => {
                let due = scheduled_at.as_millis() - START;
                let late = by.as_millis();
                Some(if late == 0 {
                    format!("{task} {due}")
                } else {
                    format!("{task} {due}@{}", due + late as i64)
                })
            }
            Late::Held { .. } => None,
        });
        started.collect()
    }

    /// Scheduled times of the runs of one task, in the order of their starts.
    pub fn due_instants(&self, name: &str) -> Vec<i64> {
        let lates = self.lates.lock().unwrap();
        let due = lates.iter().filter_map(|late| match late {
            Late::Started { task, scheduled_at, .. } => {
                (**task == *name).then(|| scheduled_at.as_millis() - START)
            }
            Late::Held { .. } => None,
        });
        due.collect()
    }

    /// Runs that were late by a millisecond or more, or missed a tick.
    pub fn lates(&self) -> Vec<Late> {
        let mut lates = self.lates.lock().unwrap().clone();
        lates.retain(|late| !matches!(late, Late::Started { by: Duration::ZERO, missed: 0, .. }));
        lates
    }

    pub fn causes(&self) -> Vec<(String, FailureCause)> {
        let failures = self.failures.lock().unwrap();
        failures.iter().map(|failure| (failure.task.to_string(), failure.cause.clone())).collect()
    }
}

/// Lets every ready task of this one-threaded runtime run until none is ready.
pub async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

/// Waits for other threads.
pub async fn eventually(condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !condition() {
        assert!(Instant::now() < deadline, "waited long enough");
        tokio::task::yield_now().await;
    }
}
