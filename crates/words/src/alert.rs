//! Alerts and their notifications.

use crate::word::words;

words! {
    "kind of alert";
    /// Kind of problem that raised an alert.
    pub enum AlertKind {
        /// A run failed and has no retries left.
        Failed: "failed",
        /// A run exceeded its timeout.
        TimedOut: "timed_out",
        /// The result of a run is unknown.
        Lost: "lost",
        /// A run started long after its scheduled time.
        Late: "late",
        /// A scheduled time passed without a run.
        NotRun: "not_run",
        /// The database has lost committed changes.
        HistoryLost: "history_lost",
    }
}

words! {
    "state of an alert";
    /// State of an alert's notifications.
    pub enum AlertState {
        /// At least one notification is not delivered yet and will be retried.
        Waiting: "waiting",
        /// All notifications were delivered.
        Delivered: "delivered",
        /// At least one notification was not delivered, and there are no more retries.
        GivenUp: "given_up",
        /// No notification channel is configured for this alert.
        Nobody: "nobody",
    }
}
