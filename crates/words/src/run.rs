//! Runs.

use crate::word::words;

words! {
    "status of a run";
    /// Status of a run, to filter by: a group of its states.
    pub enum RunStatus {
        /// The run is not finished.
        Running: "running",
        /// The run succeeded.
        Succeeded: "succeeded",
        /// The run finished without success.
        Failed: "failed",
    }
}
