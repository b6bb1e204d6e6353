//! A run inside the executor: the request and the outcome.

use std::fmt;
use std::time::Duration;

use timer::Timestamp;

use crate::scripts::Script;

/// A run requested by the centre.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub id: i64,
    pub job_id: i64,
    /// Name of the handler; for a script, its kind.
    pub handler: String,
    /// The script sent with the request, if the run is not for a handler.
    pub script: Option<Script>,
    pub param: String,
    pub overlap: Overlap,
    pub timeout: Option<Duration>,
    pub triggered_at: Timestamp,
    pub shard: Shard,
    pub attempt: Option<u32>,
}

/// Overlap policy: how to treat a new run while its job is busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overlap {
    Wait,
    RefuseNew,
    StopOld,
}

/// The part of the work a run should do, when the centre sends the job to every executor of the app.
///
/// ```
/// use tickwright_executor::Shard;
///
/// let shard = Shard { index: 1, total: 3 };
/// let mine: Vec<u64> = (0..8).filter(|id| shard.owns(*id)).collect();
/// assert_eq!(mine, [1, 4, 7]);
/// assert_eq!(shard.to_string(), "1/3");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Index of the shard, from 0.
    pub index: u32,
    /// Number of shards, at least 1.
    pub total: u32,
}

impl Shard {
    /// The only shard: all the work.
    pub const WHOLE: Shard = Shard { index: 0, total: 1 };

    /// Whether the item with this number belongs to this shard. Each number belongs to exactly one shard.
    pub fn owns(self, number: u64) -> bool {
        number % u64::from(self.total.max(1)) == u64::from(self.index)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.total)
    }
}

/// Outcome of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The run succeeded, with an optional message.
    Succeeded(Option<String>),
    /// The run failed: an error, a panic, or it was stopped.
    Failed(String),
    /// The run exceeded its timeout.
    TimedOut,
}

/// Outcome of a run, to be reported to the centre.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    pub run_id: i64,
    pub triggered_at: Timestamp,
    pub outcome: Outcome,
}
