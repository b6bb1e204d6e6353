//! Routing: the interface to the directory of executors.

use cron::Timestamp;

use crate::job::Job;

/// Selects executors. It is called inside the claim's transaction, so it answers from memory and never waits.
pub trait Router: Send + Sync {
    /// Targets of one fire, one for each shard: several for a broadcast, none if no executor is registered (the run
    /// is created anyway, and fails when it cannot be sent).
    fn targets(&self, job: &Job, scheduled_at: Timestamp) -> Vec<Target>;

    /// Number of targets that a fire of the job would have, without selecting any. Default: one.
    fn shards(&self, _job: &Job) -> usize {
        1
    }
}

/// Target of a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The executor at this address.
    Address(String),
    /// Selected by the dispatch when it sends, for routing strategies that ask the executors first.
    AtSend,
}

impl Target {
    /// Address, if it is already known.
    pub fn address(&self) -> Option<&str> {
        match self {
            Target::Address(address) => Some(address),
            Target::AtSend => None,
        }
    }
}
