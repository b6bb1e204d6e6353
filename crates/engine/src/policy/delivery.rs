//! Delivery policy: how to continue when it is unknown whether a request arrived.

/// How to continue when a request was, or may have been, sent but no response arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Delivery {
    /// Never send again: the run fails as ambiguous, and a retry is a new attempt.
    AtMostOnce,
    /// Ask the executor. If it has the run, watch it. If it denies knowing the run twice, at least
    /// [`DENIAL_GAP`](crate::watch::DENIAL_GAP) apart, send the same run again. Without a response for
    /// [`PROBE_WINDOW`](crate::watch::PROBE_WINDOW), the run fails as ambiguous.
    #[default]
    Probe,
    /// Send the same run again until an executor accepts it. For executors that remember accepted runs, or
    /// idempotent handlers.
    AtLeastOnce,
}
