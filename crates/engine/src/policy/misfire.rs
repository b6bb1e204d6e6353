//! What to do with fires that could not be sent in time.

use std::time::Duration;

/// What to do with instants that are more than [`GRACE`](Misfire::GRACE) late when a node first sees them,
/// after an outage of all nodes, say. What is less late is always sent, each instant, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Misfire {
    /// Send none; each is recorded as skipped.
    #[default]
    Skip,
    /// Send one for all of them; the others are recorded as coalesced into it.
    FireOnce,
    /// Send those of the last `window`, oldest first, at most `max`; the rest are recorded as skipped.
    FireAll {
        /// How far back.
        window: Duration,
        /// How many at most; 1000 is the most there can be.
        max: u32,
    },
}

impl Misfire {
    /// What is no more late than this is sent as if nothing had happened. XXL-JOB's value.
    pub const GRACE: Duration = Duration::from_secs(5);
}
