//! The handle of a scheduled task.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cron::Timestamp;
use tokio::sync::{Notify, mpsc};

use crate::driver::Command;
use crate::when::{Due, Now, Run};
use crate::{Clock, TaskId};

/// A scheduled task: read its state, or cancel it. Dropping the handle leaves the task scheduled.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
/// use tickwright_timer::testing::ManualClock;
/// use tickwright_timer::{Scheduler, Timestamp, When};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let clock = ManualClock::new(Timestamp::from_millis(0));
/// let scheduler = Scheduler::builder().clock(Arc::new(clock.clone())).start();
/// let hourly = When::cron("0 0 * * * ?", "UTC").unwrap();
/// let task = scheduler.spawn("task", hourly, || async {});
/// assert_eq!(task.next_at().unwrap().to_string(), "1970-01-01T01:00:00Z");
///
/// clock.sleepers(1).await; // the scheduler has nothing to do
/// clock.advance(Duration::from_secs(3_600));
/// while task.count() < 1 {
///     tokio::task::yield_now().await;
/// }
/// assert_eq!(task.last_run().unwrap().scheduled_at, Timestamp::from_millis(3_600_000));
/// assert_eq!(task.next_at().unwrap().to_string(), "1970-01-01T02:00:00Z");
///
/// assert!(task.cancel());
/// assert_eq!(task.next_at(), None);
/// task.over().await;
/// # }
/// ```
#[derive(Clone)]
pub struct Handle {
    pub(crate) id: TaskId,
    pub(crate) shared: Arc<Shared>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Weak, so that a stored handle does not keep the scheduler alive.
    pub(crate) commands: mpsc::WeakUnboundedSender<Command>,
}

impl Handle {
    /// The task's name.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// When the next run is due, if known: with a fixed delay or a custom trigger it is known when the current run
    /// ends. `None` if the task will not run again.
    pub fn next_at(&self) -> Option<Timestamp> {
        let status = self.shared.status();
        let next = status.next.filter(|_| !status.is_cancelled)?;
        Some(next.at(Now::read(&*self.clock)))
    }

    /// The last run that ended.
    pub fn last_run(&self) -> Option<Run> {
        self.shared.status().last_run
    }

    /// Number of runs that ended, including failed ones.
    pub fn count(&self) -> u64 {
        self.shared.status().count
    }

    /// Number of runs that failed.
    pub fn failures(&self) -> u64 {
        self.shared.status().failures
    }

    /// Number of ticks that passed without a run of their own.
    pub fn missed(&self) -> u64 {
        self.shared.status().missed
    }

    /// Whether the task is running now.
    pub fn is_running(&self) -> bool {
        self.shared.status().is_running
    }

    /// Whether the task is not running and will never run again.
    pub fn is_over(&self) -> bool {
        self.shared.status().is_over
    }

    /// Starts no further run; the current run continues to its end. Returns whether there was anything left to
    /// cancel.
    pub fn cancel(&self) -> bool {
        let mut status = self.shared.status();
        let had_more = !status.is_over && !status.is_cancelled;
        status.is_cancelled = true;
        drop(status);
        if had_more && let Some(commands) = self.commands.upgrade() {
            // If the driver is gone, every task is cancelled already.
            let _ = commands.send(Command::Cancel(self.id));
        }
        had_more
    }

    /// Waits until the task is over: its last run ended, it was cancelled, or the scheduler is gone.
    pub async fn over(&self) {
        let mut notified = std::pin::pin!(self.shared.over.notified());
        // Registered before the check, or a notification in between would be lost.
        notified.as_mut().enable();
        if !self.is_over() {
            notified.await;
        }
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle")
            .field("name", &self.shared.name)
            .field("status", &*self.shared.status())
            .finish()
    }
}

/// State that the driver writes and handles read.
pub(crate) struct Shared {
    pub name: Arc<str>,
    status: Mutex<Status>,
    over: Notify,
}

#[derive(Debug, Default)]
pub(crate) struct Status {
    pub next: Option<Due>,
    pub last_run: Option<Run>,
    pub count: u64,
    pub failures: u64,
    pub missed: u64,
    pub is_running: bool,
    pub is_cancelled: bool,
    pub is_over: bool,
}

impl Shared {
    pub fn new(name: Arc<str>, next: Option<Due>) -> Self {
        let status = Status { next, ..Status::default() };
        Shared { name, status: Mutex::new(status), over: Notify::new() }
    }

    pub fn status(&self) -> MutexGuard<'_, Status> {
        // No user code runs under the lock, so the state is consistent even after a panic.
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn end(&self) {
        let mut status = self.status();
        (status.next, status.is_running, status.is_over) = (None, false, true);
        drop(status);
        self.over.notify_waiters();
    }
}
