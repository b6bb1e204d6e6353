//! A run as this crate knows it: what is to be done, and how it ended.

use std::fmt;
use std::time::Duration;

use timer::Timestamp;

use crate::scripts::Script;

/// One execution a centre asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub id: i64,
    pub job_id: i64,
    /// The handler's name; of a script, its kind.
    pub handler: String,
    /// The code that came along, if it is not a handler of ours.
    pub script: Option<Script>,
    pub param: String,
    pub overlap: Overlap,
    pub timeout: Option<Duration>,
    pub triggered_at: Timestamp,
    pub shard: Shard,
    pub attempt: Option<u32>,
}

/// What becomes of a run whose job is busy here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overlap {
    Wait,
    RefuseNew,
    StopOld,
}

/// Which part of the work this run does, where a centre gives every executor of the group its own.
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
    /// From 0.
    pub index: u32,
    /// How many there are; at least 1.
    pub total: u32,
}

impl Shard {
    /// All the work: one shard of one.
    pub const WHOLE: Shard = Shard { index: 0, total: 1 };

    /// Whether the thing with this number belongs to this shard. Of all shards, exactly one owns it.
    pub fn owns(self, number: u64) -> bool {
        number % u64::from(self.total.max(1)) == u64::from(self.index)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.total)
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Well, with or without something to say.
    Succeeded(Option<String>),
    /// Not well: an error, a panic, or it was stopped.
    Failed(String),
    /// It took longer than it may.
    TimedOut,
}

/// The outcome of a run, to be told to the centre.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    pub run_id: i64,
    pub triggered_at: Timestamp,
    pub outcome: Outcome,
}
