//! What a scheduler tells its owner: failures, and runs that are late.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use cron::Timestamp;

/// A run that failed. The task stays scheduled, unless its own trigger is what failed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The task's name.
    pub task: Arc<str>,
    /// When the run was due.
    pub scheduled_at: Timestamp,
    /// What went wrong.
    pub fault: Fault,
}

/// What went wrong in a run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The task returned this error.
    #[error("{0}")]
    Error(String),
    /// The task panicked with this message.
    #[error("panicked: {0}")]
    Panic(String),
    /// The task's own trigger panicked with this message, and the task is over: nobody can say when it is due.
    #[error("its trigger panicked: {0}; the task is over")]
    Trigger(String),
}

/// A run that is not on time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Late {
    /// It is due, but as many tasks run as may; it waits in line. Ticks passing meanwhile join it.
    Held {
        /// The task's name.
        task: Arc<str>,
        /// When the run was due.
        scheduled_at: Timestamp,
        /// How many wait before it.
        ahead: usize,
    },
    /// It starts late, or it stands for later ticks that are past as well.
    Started {
        /// The task's name.
        task: Arc<str>,
        /// When the run was due.
        scheduled_at: Timestamp,
        /// How long ago that is.
        by: Duration,
        /// Ticks between then and now that will not run. Of a calendar at most 10,000 are counted.
        missed: u64,
    },
}

pub(crate) struct Hooks {
    pub on_error: Box<dyn Fn(&Failure) + Send + Sync>,
    pub on_late: Box<dyn Fn(&Late) + Send + Sync>,
    /// A start less late than this is on time.
    pub late_after: Duration,
}

impl Hooks {
    pub fn failed(&self, failure: &Failure) {
        guard(|| (self.on_error)(failure));
    }

    pub fn late(&self, late: &Late) {
        guard(|| (self.on_late)(late));
    }
}

impl Default for Hooks {
    /// Hooks that write to the log.
    fn default() -> Self {
        Hooks { on_error: Box::new(log_failure), on_late: Box::new(log_late), late_after: LATE_AFTER }
    }
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks").field("late_after", &self.late_after).finish_non_exhaustive()
    }
}

/// A busy machine is late by less, a person notices more.
const LATE_AFTER: Duration = Duration::from_secs(1);

/// A hook that panics has only itself to report to; the run it heard about must not suffer.
fn guard(hook: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(hook)).is_err() {
        tracing::error!("a scheduler hook panicked; the schedule goes on");
    }
}

fn log_failure(Failure { task, scheduled_at, fault }: &Failure) {
    tracing::error!(%task, %scheduled_at, "run failed: {fault}");
}

fn log_late(late: &Late) {
    match late {
        Late::Held { task, scheduled_at, ahead } => {
            tracing::warn!(%task, %scheduled_at, ahead, "due, but as many tasks run as may; waiting in line");
        }
        Late::Started { task, scheduled_at, by, missed } => {
            tracing::warn!(%task, %scheduled_at, ?by, missed, "started late; missed ticks will not run");
        }
    }
}
