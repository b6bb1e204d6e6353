//! The scheduler of one process.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use crate::driver::{Command, Driver, Gauges, Shutdown};
use crate::handle::{Handle, Shared};
use crate::hooks::{Failure, Hooks, Late};
use crate::run::{Body, Outcome, Work};
use crate::scheduled::Scheduled;
use crate::when::{Now, When};
use crate::{Clock, SystemClock, TaskId};

/// Runs tasks when they are due.
///
/// * A task never runs concurrently with itself, and a slow, failing or panicking task neither delays nor stops
///   another.
/// * At most [`max_running`](Builder::max_running) tasks run at once. Further due tasks are queued in order, each at
///   most once, and reported as [`Late::Held`].
/// * Nothing fires early, even if the clocks jump. After a pause of the process a task fires once and reports its
///   missed ticks; see [`When::catch_up`].
/// * Tasks that follow the wall clock notice within 250 ms that it was set. If it was set forward, tasks that became
///   due fire at once. If it was set back, no time fires twice: a calendar does not fire again until its last fired
///   time has passed.
///
/// Dropping a scheduler ends it: nothing fires any more and async runs are dropped at their next `.await`. For a
/// graceful end use [`shutdown`](Scheduler::shutdown).
pub struct Scheduler {
    clock: Arc<dyn Clock>,
    gauges: Arc<Gauges>,
    /// Unbounded, because each command belongs to a task that takes memory anyway.
    commands: mpsc::UnboundedSender<Command>,
    next_id: AtomicU64,
}

impl Scheduler {
    /// Creates a scheduler on the system clock, with the defaults of [`Builder`].
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub fn new() -> Self {
        Scheduler::builder().start()
    }

    /// Configures clock, limits and hooks.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Schedules an async task. It returns nothing or a `Result<(), E>`; errors go to
    /// [`on_error`](Builder::on_error), and the task stays scheduled.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwright_timer::{Scheduler, When};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let scheduler = Scheduler::new();
    /// let count = scheduler.spawn("count", When::fixed_rate(Duration::from_millis(1)), {
    ///     let mut runs = 0;
    ///     move || {
    ///         runs += 1;
    ///         async move { if runs < 3 { Ok(()) } else { Err(format!("{runs} is enough")) } }
    ///     }
    /// });
    /// # while count.failures() == 0 { tokio::task::yield_now().await; }
    /// assert!(count.last_run().is_some());
    /// # }
    /// ```
    pub fn spawn<F, R>(&self, name: impl Into<Arc<str>>, when: When, task: F) -> Handle
    where
        F: FnMut() -> R + Send + 'static,
        R: Future<Output: Outcome> + Send + 'static,
    {
        self.add(name.into(), when, Work::of_async(task))
    }

    /// Schedules a task that blocks or computes. Its runs have a thread of their own.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwright_timer::{Scheduler, When};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let scheduler = Scheduler::new();
    /// let read = scheduler.spawn_blocking("read", When::after(Duration::ZERO), || {
    ///     std::fs::read_to_string("/no/such/file").map(drop)
    /// });
    /// read.over().await;
    /// assert_eq!(read.failures(), 1);
    /// # }
    /// ```
    pub fn spawn_blocking<F, R>(&self, name: impl Into<Arc<str>>, when: When, task: F) -> Handle
    where
        F: FnMut() -> R + Send + 'static,
        R: Outcome,
    {
        self.add(name.into(), when, Work::of_blocking(task))
    }

    /// Schedules every function marked [`#[scheduled]`](crate::scheduled) in this program, ordered by name, and logs
    /// them: a function missing from the log was dropped by the linker.
    pub fn start_scheduled(&self) -> Vec<Handle> {
        let mut found: Vec<_> = inventory::iter::<Scheduled>().collect();
        found.sort_by_key(|scheduled| scheduled.name);
        let handles: Vec<_> = found.iter().map(|found| (found.start)(self, found.name)).collect();
        for handle in &handles {
            tracing::info!(task = handle.name(), next_at = ?handle.next_at(), "scheduled");
        }
        handles
    }

    /// Current load, updated each time the scheduler wakes.
    pub fn load(&self) -> Load {
        Load {
            tasks: self.gauges.tasks.load(Ordering::Relaxed),
            held: self.gauges.held.load(Ordering::Relaxed),
            running: self.gauges.running.load(Ordering::Relaxed),
        }
    }

    /// Starts nothing more, waits up to `grace` for current runs, and returns which of them finished.
    ///
    /// Tasks added later are over at once. A second shutdown returns an empty report.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwright_timer::{Scheduler, When};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let scheduler = Scheduler::new();
    /// let endless = When::after(Duration::ZERO);
    /// let endless = scheduler.spawn("endless", endless, || std::future::pending::<()>());
    /// while !endless.is_running() {
    ///     tokio::task::yield_now().await;
    /// }
    /// let report = scheduler.shutdown(Duration::from_millis(1)).await;
    /// assert_eq!(&*report.abandoned[0], "endless");
    /// assert!(report.finished.is_empty());
    /// # }
    /// ```
    pub async fn shutdown(&self, grace: Duration) -> Shutdown {
        let (reply, report) = oneshot::channel();
        // If the driver is gone, sending fails and the report is empty.
        let _ = self.commands.send(Command::Shutdown { grace, reply });
        report.await.unwrap_or_default()
    }

    fn add(&self, name: Arc<str>, mut when: When, work: Work) -> Handle {
        let id = TaskId(self.next_id.fetch_add(1, Ordering::Relaxed));
        let due = when.first(Now::read(&*self.clock));
        let shared = Arc::new(Shared::new(name, due));
        let added = due.map(|due| {
            let shared = Arc::clone(&shared);
            self.commands.send(Command::Add { id, shared, due, body: Body { when, work } })
        });
        if !matches!(added, Some(Ok(()))) {
            shared.end();
        }
        Handle { id, shared, clock: Arc::clone(&self.clock), commands: self.commands.downgrade() }
    }
}

impl Default for Scheduler {
    fn default() -> Self {
        Scheduler::new()
    }
}

impl fmt::Debug for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scheduler").field("load", &self.load()).finish_non_exhaustive()
    }
}

/// Load of a [`Scheduler`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Tasks that may run again or are running.
    pub tasks: usize,
    /// Tasks that are due and queued.
    pub held: usize,
    /// Tasks that are running.
    pub running: usize,
}

/// Configures a [`Scheduler`].
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU32, Ordering};
/// use std::time::Duration;
/// use tickwright_timer::{Scheduler, When};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let failures = Arc::new(AtomicU32::new(0));
/// let count = Arc::clone(&failures);
/// let scheduler = Scheduler::builder()
///     .max_running(16)
///     .late_after(Duration::from_millis(100))
///     .on_error(move |failure| {
///         assert_eq!(failure.cause.to_string(), "panicked: out of tea");
///         count.fetch_add(1, Ordering::Relaxed);
///     })
///     .on_late(|late| eprintln!("{late:?}"))
///     .start();
/// let task = scheduler.spawn("task", When::after(Duration::ZERO), || async {
///     if true { panic!("out of tea") }
/// });
/// task.over().await;
/// assert_eq!(failures.load(Ordering::Relaxed), 1);
/// # }
/// ```
#[derive(Debug)]
pub struct Builder {
    clock: Arc<dyn Clock>,
    max_running: usize,
    hooks: Hooks,
}

impl Builder {
    /// Uses another clock than the system's.
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Builder { clock, ..self }
    }

    /// Maximum concurrent runs; default 256, at least one.
    pub fn max_running(self, max_running: usize) -> Self {
        Builder { max_running: max_running.max(1), ..self }
    }

    /// Called for every run that failed or panicked. By default they are logged as errors.
    pub fn on_error(mut self, hook: impl Fn(&Failure) + Send + Sync + 'static) -> Self {
        self.hooks.on_error = Box::new(hook);
        self
    }

    /// Called for runs that are queued, start late or missed ticks. By default they are logged as warnings.
    pub fn on_late(mut self, hook: impl Fn(&Late) + Send + Sync + 'static) -> Self {
        self.hooks.on_late = Box::new(hook);
        self
    }

    /// Minimum delay of a start that counts as late; default one second.
    pub fn late_after(mut self, late_after: Duration) -> Self {
        self.hooks.late_after = late_after;
        self
    }

    /// Starts the scheduler.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub fn start(self) -> Scheduler {
        let Builder { clock, max_running, hooks } = self;
        let (commands, received) = mpsc::unbounded_channel();
        let gauges = Arc::new(Gauges::default());
        let driver =
            Driver::new(Arc::clone(&clock), Arc::new(hooks), Arc::clone(&gauges), max_running, received);
        tokio::spawn(driver.run());
        Scheduler { clock, gauges, commands, next_id: AtomicU64::new(0) }
    }
}

impl Default for Builder {
    fn default() -> Self {
        Builder { clock: Arc::new(SystemClock::new()), max_running: MAX_RUNNING, hooks: Hooks::default() }
    }
}

/// Below the 512 threads tokio has for blocking work, so that a blocking run gets its thread at once.
const MAX_RUNNING: usize = 256;
