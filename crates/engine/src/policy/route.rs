//! Who runs it: the interface to whatever knows the executors.

use cron::Timestamp;

use crate::job::Job;

/// Chooses executors. Asked inside the claim's transaction, so it answers from memory and never waits.
pub trait Router: Send + Sync {
    /// The targets of one fire, one for each shard: more than one for a broadcast, none if nobody is there
    /// (the run is then opened all the same, and fails when it cannot be sent).
    fn targets(&self, job: &Job, scheduled_at: Timestamp) -> Vec<Target>;

    /// How many targets a fire of the job would have, without choosing any. As it stands here, one.
    fn shards(&self, _job: &Job) -> usize {
        1
    }
}

/// Where a shard goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// To this address.
    Address(String),
    /// To whom the dispatch chooses when it is sent, for routes that ask the executors first.
    AtSend,
}

impl Target {
    /// The address, if it is known already.
    pub fn address(&self) -> Option<&str> {
        match self {
            Target::Address(address) => Some(address),
            Target::AtSend => None,
        }
    }
}
