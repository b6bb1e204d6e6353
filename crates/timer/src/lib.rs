//! A scheduler for one process.
//!
//! The counterpart of Java's `Timer`, `ScheduledExecutorService` and Spring's `@Scheduled`: run a function once, at
//! a fixed rate, with a fixed delay, by cron in a time zone, or by a custom trigger. It needs no database and no
//! server, holds millions of timers, and has a manual clock for tests.
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
//! # Overview
//!
//! | you want | write |
//! |---|---|
//! | once, at a given time | [`When::at`] |
//! | once, after a delay | [`When::after`] |
//! | every five seconds, from start to start | [`When::fixed_rate`] |
//! | five seconds of rest between runs | [`When::fixed_delay`] |
//! | weekdays at nine in Shanghai | [`When::cron`] |
//! | workdays of a work calendar, time windows, calendar intervals, several schedules | [`When::timetable`] |
//! | a custom trigger | [`When::trigger`] |
//! | an attribute on a function | [`#[scheduled]`](scheduled) |
//! | code that blocks or computes | [`Scheduler::spawn_blocking`] |
//! | be notified of errors, panics, delays | [`Builder::on_error`], [`Builder::on_late`] |
//! | query or cancel a task | [`Handle`] |
//! | shut down gracefully | [`Scheduler::shutdown`] |
//! | test without waiting | [`testing::ManualClock`] |
//! | only the timer queue | [`Wheel`] |
//!
//! # Guarantees
//!
//! * **Never early.** Nothing runs before its time, even if the clocks jump.
//! * **Never concurrent with itself.** A task is not started again while its last run continues.
//! * **Isolated.** A task that is slow, fails or panics neither delays nor stops another, up to
//!   [`Builder::max_running`] concurrent runs; beyond that, due tasks are queued and reported.
//! * **Never silently late.** After a pause, a long run or a wait in the queue, a task runs once and reports the
//!   ticks it missed; [`When::catch_up`] runs them too, one after the other.
//! * **Two clocks.** [`When::at`], [`When::cron`], [`When::timetable`] and [`When::trigger`] follow the wall clock: if it is set forward,
//!   tasks that became due run at once; if it is set back, nothing runs twice. [`When::after`], [`When::fixed_rate`]
//!   and [`When::fixed_delay`] follow the monotonic clock and are not affected.
//!
//! The resolution is one millisecond. On an idle machine 99 of 100 runs start within 1.2 ms of their time;
//! `cargo bench -p tickwright-timer` measures it.

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guides/from-quartz.md")]
struct FromQuartz;

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
pub use cron::{
    Beyond, CalendarFormat, CalendarInterval, Cron, DailyWindow, Day, DayEntry, DstRule, Error as CronError,
    IntervalUnit, NthWorkday, OnDays, Rule, Shift, Span, TimeOfDay, Timestamp, Timetable, Weekdays,
    WorkCalendar, Workdays, Zone,
};
pub use driver::Shutdown;
pub use handle::Handle;
pub use hooks::{Failure, FailureCause, Late};
/// Runs a function on a schedule. [`Scheduler::start_scheduled`] finds and starts all of them.
///
/// The function has no arguments, is async or not (then each run has a thread of its own), and returns nothing or a
/// `Result<(), E>` with an error that implements `Display`. Exactly one of these sets the schedule:
///
/// * `cron = "0 30 2 * * ?"`, in the time zone `zone = "Europe/London"`; the default is the machine's zone;
/// * `fixed_rate = "5s"`, from start to start;
/// * `fixed_delay = "5s"`, from end to start.
///
/// Optional:
///
/// * `initial_delay = "1m"`: nothing is due before; a rate or a delay starts then and not at once;
/// * `catch_up`: run missed ticks too, one by one;
/// * `name = "cleanup"`: name in logs and hooks; the default is the function's path;
/// * `crate = "path"`: path of `tickwright_timer`, if it was renamed.
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
/// Invalid arguments do not compile:
///
/// ```compile_fail
/// #[tickwright_timer::scheduled(cron = "0 30 25 * * ?")]
/// async fn at_25_o_clock() {}
/// ```
///
/// The linker drops functions of a library crate that is never referenced; `use jobs as _;` keeps them.
pub use macros::scheduled;
pub use run::Outcome;
pub use scheduled::Scheduled;
pub use scheduler::{Builder, Load, Scheduler};
pub use wheel::{Key, Wheel};
pub use when::{Past, Run, Trigger, When};

/// Used by the expansion of `#[scheduled]` only.
#[doc(hidden)]
pub mod __private {
    pub use inventory;
}

/// Identifies a task within its scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TaskId(u64);
