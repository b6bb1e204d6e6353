//! What to do when nobody knows whether a request arrived.

/// What to do when a request was, or may have been, sent and no answer came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Delivery {
    /// Never send again: the run fails as ambiguous, and a retry is a new attempt.
    AtMostOnce,
    /// Ask the executor. It started: watch it. It twice denies knowing it, at least [`DENIAL_GAP`] apart: send
    /// the same run again. No answer for [`PROBE_WINDOW`]: the run fails as ambiguous.
    ///
    /// [`DENIAL_GAP`]: crate::watch::DENIAL_GAP
    /// [`PROBE_WINDOW`]: crate::watch::PROBE_WINDOW
    #[default]
    Probe,
    /// Send the same run again until somebody takes it. For executors that remember the runs they took, or
    /// handlers that may run twice.
    AtLeastOnce,
}
