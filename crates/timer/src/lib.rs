//! Wake me then: a scheduler for one process.
//!
//! What `Timer`, `ScheduledExecutorService` and Spring's `@Scheduled` are to Java: run a function once, at a fixed
//! rate, with a fixed delay, by cron in a time zone, or by a rule of your own. No database, no server; millions of
//! timers, and a clock set by hand to test with.
//!
//! ```
//! use std::time::Duration;
//! use tickwright_timer::{Scheduler, When};
//!
//! # tokio::runtime::Builder::new_multi_thread().enable_time().build().unwrap().block_on(async {
//! let scheduler = Scheduler::new();
//! let hello = scheduler.spawn("hello", When::fixed_rate(Duration::from_millis(5)), || async {
//!     println!("hello");
//! });
//! let backup = scheduler.spawn("backup", When::cron("0 30 2 * * ?", "Europe/London")?, || async {
//!     Err("no disk") // reported to a hook; the task stays scheduled
//! });
//! println!("the next backup is at {:?}", backup.next_at());
//! # while hello.count() < 2 { tokio::task::yield_now().await; }
//! scheduler.shutdown(Duration::from_secs(10)).await;
//! # Ok::<(), tickwright_timer::CronError>(()) }).unwrap();
//! ```
//!
//! # What to use for what
//!
//! | you want | write |
//! |---|---|
//! | once, at an instant | [`When::at`] |
//! | once, after a while | [`When::after`] |
//! | every five seconds, from start to start | [`When::fixed_rate`] |
//! | five seconds of rest between runs | [`When::fixed_delay`] |
//! | weekdays at nine in Shanghai | [`When::cron`] |
//! | a rule of your own | [`When::trigger`] |
//! | all that as an attribute on a function | [`#[scheduled]`](scheduled) |
//! | code that blocks or computes | [`Scheduler::spawn_blocking`] |
//! | to know of errors, panics, delays | [`Builder::on_error`], [`Builder::on_late`] |
//! | to ask or cancel a task | [`Handle`] |
//! | to stop without losing work | [`Scheduler::shutdown`] |
//! | to test it without waiting | [`testing::ManualClock`] |
//! | only the queue of instants | [`Wheel`] |
//!
//! # What is promised
//!
//! * **Never early.** Whatever the clocks do, nothing runs before its time.
//! * **Never beside itself.** A task whose last run goes on is not started again.
//! * **Never in another's way.** A task that is slow, fails or panics neither delays nor stops another, up to
//!   [`Builder::max_running`] runs at once; beyond that, due tasks wait in line and are reported.
//! * **Never silently late.** After a pause, a long run or a wait in line, a task runs once and reports the ticks
//!   it missed; [`When::catch_up`] makes up for them, one after the other.
//! * **Two clocks.** [`When::at`], [`When::cron`] and [`When::trigger`] follow the wall clock: set forward, what
//!   became due runs at once; set back, nothing that ran runs again. [`When::after`], [`When::fixed_rate`] and
//!   [`When::fixed_delay`] follow the monotonic clock and notice neither.
//!
//! Time has a resolution of a millisecond. On an idle machine 99 of 100 runs start within 1.2 ms of their time;
//! `cargo bench -p tickwright-timer` measures it.

mod clock;
mod driver;
mod handle;
mod hooks;
mod run;
mod scheduled;
mod scheduler;
mod sleepers;
pub mod testing;
mod wheel;
mod when;

pub use clock::{Clock, Sleep, SystemClock};
pub use cron::{Cron, DstRule, Error as CronError, Timestamp, Zone};
pub use driver::Shutdown;
pub use handle::Handle;
pub use hooks::{Failure, Fault, Late};
/// Runs a function on a schedule, once [`Scheduler::start_scheduled`] was called; no list of functions is kept.
///
/// The function takes nothing, may be async or not (then its runs have a thread of their own), and returns nothing
/// or a `Result<(), E>` whose error can be shown. Exactly one of these says when:
///
/// * `cron = "0 30 2 * * ?"`, in the time of `zone = "Europe/London"`; without a zone, in that of the machine;
/// * `fixed_rate = "5s"`, from start to start;
/// * `fixed_delay = "5s"`, from end to start.
///
/// And, if wanted:
///
/// * `initial_delay = "1m"`: nothing is due before; a rate or a delay starts then and not at once;
/// * `catch_up`: make up for missed ticks, one by one;
/// * `name = "cleanup"`: a name for logs and hooks, instead of the function's path;
/// * `crate = "path"`: where `tickwright_timer` is found, if it was renamed.
///
/// Durations are written as `500ms`, `5s`, `2m`, `1h`, `1d` or several of these: `1h30m`.
///
/// ```
/// use tickwright_timer::{Scheduler, scheduled};
///
/// #[scheduled(cron = "0 30 2 * * ?", zone = "Europe/London")]
/// async fn nightly() -> Result<(), String> {
///     Err("no backup disk".into())
/// }
///
/// #[scheduled(fixed_delay = "500ms", initial_delay = "1m", name = "sweep")]
/// fn sweep() {}
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let tasks = Scheduler::new().start_scheduled();
/// assert_eq!(tasks.len(), 2);
/// assert_eq!(tasks[1].name(), "sweep");
/// # });
/// ```
///
/// What cannot be right does not compile:
///
/// ```compile_fail
/// #[tickwright_timer::scheduled(cron = "0 30 25 * * ?")]
/// async fn at_25_o_clock() {}
/// ```
///
/// Functions in a library that nothing refers to are left out by the linker; `use jobs as _;` keeps them.
pub use macros::scheduled;
pub use run::Outcome;
pub use scheduled::Scheduled;
pub use scheduler::{Builder, Load, Scheduler};
pub use wheel::{Key, Wheel};
pub use when::{Past, Run, Trigger, When};

/// What `#[scheduled]` expands to needs these; nothing else should.
#[doc(hidden)]
pub mod __private {
    pub use inventory;
}

/// Names a task within its scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TaskId(u64);
