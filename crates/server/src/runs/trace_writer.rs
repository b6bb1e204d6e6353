//! Stores the traces of runs once a second, apart from dispatch.

use std::sync::Arc;
use std::time::Duration;

use store::{Database, NodeTrace};
use timer::Clock;

use super::TraceRecorder;

use crate::warn::warn_store;

/// Stores the traces of runs that this node has recorded.
pub struct TraceWriter {
    /// Clock.
    pub clock: Arc<dyn Clock>,
    /// Database to write to.
    pub database: Arc<Database>,
    /// Recorded traces.
    pub traces: Arc<TraceRecorder>,
}

impl TraceWriter {
    /// Stores traces, forever.
    pub async fn run(self) {
        let mut waiting = Vec::new();
        loop {
            self.clock.sleep(EVERY).await;
            // While the database fails, no more are taken: they wait in `traces`, or are dropped there.
            if waiting.is_empty() {
                waiting = self.traces.take(self.clock.now());
            }
            if self.write(&waiting).await {
                waiting.clear();
            }
        }
    }

    /// Stores the remaining traces when the node stops.
    pub async fn finish(self) {
        let left = self.traces.take(self.clock.now());
        tokio::select! {
            _ = self.write(&left) => {}
            () = self.clock.sleep(FINISH_MAX) => {}
        }
    }

    /// Returns false if the write should be retried.
    async fn write(&self, traces: &[NodeTrace]) -> bool {
        if traces.is_empty() {
            return true;
        }
        match self.database.keep_traces(self.traces.node(), traces).await {
            Ok(()) => true,
            Err(error) if error.is_transient() => {
                warn_store!(
                    error,
                    traces = traces.len(),
                    "failed to store traces of runs; retrying in {EVERY:?}"
                );
                false
            }
            Err(error) => {
                tracing::error!(%error, "failed to store traces of runs; they are kept in the memory of this node only");
                true
            }
        }
    }
}

/// The traces of one second are a batch that commits in milliseconds.
const EVERY: Duration = Duration::from_secs(1);

/// A node that stops waits at most this long for the write.
const FINISH_MAX: Duration = Duration::from_secs(1);
