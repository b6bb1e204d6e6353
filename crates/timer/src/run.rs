//! One run of a task: calls it, catches panics, and computes when it is due again.
//!
//! All user code (the task, its custom trigger, the hooks) runs here, outside the driver, so it cannot stop or delay
//! another task.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;

use futures_util::FutureExt;

use crate::hooks::{Failure, FailureCause, Hooks, Late};
use crate::when::{Due, Next, Now, Run, When};
use crate::{Clock, TaskId};

/// Return type of a task: nothing, or a result with an error that implements `Display`.
#[diagnostic::on_unimplemented(
    message = "a task cannot return `{Self}`",
    label = "return nothing, or a `Result<(), E>` whose error implements `Display`"
)]
pub trait Outcome: Send + 'static {
    /// Returns the error as text, with its causes where its type shows them.
    fn into_result(self) -> Result<(), String>;
}

impl Outcome for () {
    fn into_result(self) -> Result<(), String> {
        Ok(())
    }
}

impl<E: fmt::Display + Send + 'static> Outcome for Result<(), E> {
    fn into_result(self) -> Result<(), String> {
        self.map_err(|error| format!("{error:#}"))
    }
}

/// The function of a task.
pub(crate) enum Work {
    Async(Box<dyn FnMut() -> BoxFuture + Send>),
    Blocking(Box<dyn FnMut() -> Result<(), String> + Send>),
}

type BoxFuture = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

impl Work {
    pub fn of_async<F, R>(mut task: F) -> Work
    where
        F: FnMut() -> R + Send + 'static,
        R: Future<Output: Outcome> + Send + 'static,
    {
        Work::Async(Box::new(move || Box::pin(task().map(Outcome::into_result))))
    }

    pub fn of_blocking<F, R>(mut task: F) -> Work
    where
        F: FnMut() -> R + Send + 'static,
        R: Outcome,
    {
        Work::Blocking(Box::new(move || task().into_result()))
    }

    /// Runs it to its end; the work is `None` if the runtime shut down meanwhile and dropped it.
    async fn call(self) -> (Option<Work>, Result<(), FailureCause>) {
        match self {
            Work::Async(mut task) => {
                let result = match catch_unwind(AssertUnwindSafe(&mut task)) {
                    Ok(future) => AssertUnwindSafe(future).catch_unwind().await,
                    Err(panic) => Err(panic),
                };
                (Some(Work::Async(task)), flatten(result))
            }
            Work::Blocking(mut task) => {
                let thread = tokio::task::spawn_blocking(move || {
                    let result = catch_unwind(AssertUnwindSafe(&mut task));
                    (task, result)
                });
                match thread.await {
                    Ok((task, result)) => (Some(Work::Blocking(task)), flatten(result)),
                    Err(_) => (None, Ok(())),
                }
            }
        }
    }
}

/// The schedule and the function of a task. They move with the run and return at its end.
pub(crate) struct Body {
    pub when: When,
    pub work: Work,
}

/// A run about to start.
pub(crate) struct Ticket {
    pub id: TaskId,
    pub task: Arc<str>,
    pub due: Due,
    pub started: Now,
    pub missed: u64,
    pub next: Next,
    pub clock: Arc<dyn Clock>,
    pub hooks: Arc<Hooks>,
}

/// A run that has ended.
pub(crate) struct Completion {
    pub id: TaskId,
    pub run: Run,
    pub failed: bool,
    /// Next due time and body, unless the task is over.
    pub again: Option<(Due, Body)>,
}

impl Ticket {
    pub async fn run(self, body: Body) -> Completion {
        let Body { mut when, work } = body;
        let scheduled_at = self.due.at(self.started);
        self.report_late(scheduled_at);
        let (work, result) = work.call().await;
        let now = Now::read(&*self.clock);
        let run = Run { scheduled_at, started_at: self.started.wall, completed_at: now.wall };
        let failed = result.is_err();
        if let Err(cause) = result {
            self.report(scheduled_at, cause);
        }
        let next = match self.next {
            Next::Never => None,
            // The wall clock was set back during the run, so the next time may be far away now.
            Next::Due(_) if when.is_calendar() && now.wall < self.started.wall => when.rewound(now),
            Next::Due(due) => Some(due),
            Next::AfterRun => match catch_unwind(AssertUnwindSafe(|| when.after_run(run, now))) {
                Ok(next) => next,
                Err(panic) => {
                    self.report(scheduled_at, FailureCause::Trigger(message(&*panic)));
                    None
                }
            },
        };
        let again = next.zip(work).map(|(due, work)| (due, Body { when, work }));
        Completion { id: self.id, run, failed, again }
    }

    fn report_late(&self, scheduled_at: cron::Timestamp) {
        let by = self.due.late_by(self.started);
        if self.missed > 0 || by >= self.hooks.late_after {
            let task = Arc::clone(&self.task);
            self.hooks.late(&Late::Started { task, scheduled_at, by, missed: self.missed });
        }
    }

    fn report(&self, scheduled_at: cron::Timestamp, cause: FailureCause) {
        self.hooks.failed(&Failure { task: Arc::clone(&self.task), scheduled_at, cause });
    }
}

type Panic = Box<dyn Any + Send>;

fn flatten(result: Result<Result<(), String>, Panic>) -> Result<(), FailureCause> {
    match result {
        Ok(result) => result.map_err(FailureCause::Error),
        Err(panic) => Err(FailureCause::Panic(message(&*panic))),
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| text.to_string());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "not a text".into())
}
