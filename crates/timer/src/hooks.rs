//! Hooks that a scheduler calls for failed and late runs.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use cron::Timestamp;

/// A run that failed. The task stays scheduled, unless its custom trigger failed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The task's name.
    pub task: Arc<str>,
    /// When the run was due.
    pub scheduled_at: Timestamp,
    /// Cause of the failure.
    pub cause: FailureCause,
}

/// Cause of a failed run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FailureCause {
    /// The task returned this error.
    #[error("{0}")]
    Error(String),
    /// The task panicked with this message.
    #[error("panicked: {0}")]
    Panic(String),
    /// The task's custom trigger panicked with this message, and the task is over because its next time is unknown.
    #[error("its trigger panicked: {0}; the task ends")]
    Trigger(String),
}

/// A run that is not on time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Late {
    /// The run is due but queued, because the maximum number of tasks is running. Ticks that pass meanwhile are
    /// merged into it.
    Held {
        /// The task's name.
        task: Arc<str>,
        /// When the run was due.
        scheduled_at: Timestamp,
        /// Number of tasks queued before it.
        ahead: usize,
    },
    /// The run starts late, or later ticks were missed and merged into it.
    Started {
        /// The task's name.
        task: Arc<str>,
        /// When the run was due.
        scheduled_at: Timestamp,
        /// How late the run starts.
        by: Duration,
        /// Missed ticks between the scheduled time and now. For a calendar at most 10,000 are counted.
        missed: u64,
    },
}

pub(crate) struct Hooks {
    pub on_error: Box<dyn Fn(&Failure) + Send + Sync>,
    pub on_late: Box<dyn Fn(&Late) + Send + Sync>,
    /// A start that is late by less than this counts as on time.
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

/// More than the delay of a busy machine, less than a user notices.
const LATE_AFTER: Duration = Duration::from_secs(1);

/// Calls a hook and logs its panic, so that the run is not affected.
fn guard(hook: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(hook)).is_err() {
        tracing::error!("a scheduler hook panicked; the schedule continues");
    }
}

fn log_failure(Failure { task, scheduled_at, cause }: &Failure) {
    tracing::error!(%task, %scheduled_at, "run failed: {cause}");
}

fn log_late(late: &Late) {
    match late {
        Late::Held { task, scheduled_at, ahead } => {
            tracing::warn!(%task, %scheduled_at, ahead, "task is due, but the maximum number of tasks is running; waiting");
        }
        Late::Started { task, scheduled_at, by, missed } => {
            tracing::warn!(%task, %scheduled_at, ?by, missed, "started late; missed ticks are skipped");
        }
    }
}
