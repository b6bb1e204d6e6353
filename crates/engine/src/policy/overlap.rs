//! Whether runs of one job may overlap, across all executors and nodes.

/// What happens to a fire while another run of its job is going on anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Overlap {
    /// It is sent all the same.
    #[default]
    Allow,
    /// It is recorded as blocked.
    Skip,
    /// It waits for the other to end; at most [`MAX_WAITING`](Overlap::MAX_WAITING) do, the next are blocked.
    Wait,
    /// The other is ended, and it takes its place.
    Replace,
}

impl Overlap {
    /// How many runs of one job may wait for another to end.
    pub const MAX_WAITING: u64 = 100;

    /// Whether only one run of the job may be open at a time.
    pub fn is_exclusive(self) -> bool {
        self != Overlap::Allow
    }
}
