//! Overlap policy: whether runs of one job may overlap, across all executors and nodes.

/// How to handle a fire while another run of the job is active on any executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Overlap {
    /// Send it anyway.
    #[default]
    Allow,
    /// Skip it; it is recorded as blocked.
    Skip,
    /// Wait until the other run has finished. At most [`MAX_WAITING`](Overlap::MAX_WAITING) runs wait; further ones
    /// are blocked.
    Wait,
    /// Cancel the other run, then send it.
    Replace,
}

impl Overlap {
    /// Maximum number of runs of one job that may wait for another to finish.
    pub const MAX_WAITING: u64 = 100;

    /// Whether only one run of the job may be open at a time.
    pub fn is_exclusive(self) -> bool {
        self != Overlap::Allow
    }
}
