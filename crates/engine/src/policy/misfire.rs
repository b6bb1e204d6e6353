//! Misfire policy: how to handle fires that could not be dispatched in time.

use std::time::Duration;

/// How to handle scheduled times that are more than [`GRACE`](Misfire::GRACE) late when a node first sees them, for
/// example after an outage of all nodes. Less late ones are always sent, each of them, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Misfire {
    /// Send none; each is recorded as skipped.
    #[default]
    Skip,
    /// Send one run for all of them; the others are recorded as coalesced into it.
    FireOnce,
    /// Send those of the last `window`, oldest first, at most `max`; the rest are recorded as skipped.
    FireAll {
        /// Length of the period to catch up.
        window: Duration,
        /// Maximum number of runs, limited to 1000.
        max: u32,
    },
}

impl Misfire {
    /// Fires that are at most this late are sent normally. The same value as in XXL-JOB.
    pub const GRACE: Duration = Duration::from_secs(5);
}
