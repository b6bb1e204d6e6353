//! Stores the traces of runs once a second, apart from dispatch.

use std::sync::Arc;
use std::time::Duration;

use store::{Database, Flight};
use timer::Clock;

use super::Flights;

/// Stores the traces of runs that this node has recorded.
pub struct FlightKeeper {
    /// Clock.
    pub clock: Arc<dyn Clock>,
    /// Database to write to.
    pub database: Arc<dyn Database>,
    /// Recorded traces.
    pub flights: Arc<Flights>,
}

impl FlightKeeper {
    /// Stores traces, forever.
    pub async fn run(self) {
        let mut waiting = Vec::new();
        loop {
            self.clock.sleep(EVERY).await;
            // While the database fails, no more are taken: they wait in `flights`, or are dropped there.
            if waiting.is_empty() {
                waiting = self.flights.take(self.clock.now());
            }
            if self.write(&waiting).await {
                waiting.clear();
            }
        }
    }

    /// Stores the remaining traces when the node stops.
    pub async fn finish(self) {
        let left = self.flights.take(self.clock.now());
        tokio::select! {
            _ = self.write(&left) => {}
            () = self.clock.sleep(FINISH_MAX) => {}
        }
    }

    /// Returns false if the write should be retried.
    async fn write(&self, flights: &[Flight]) -> bool {
        if flights.is_empty() {
            return true;
        }
        match self.database.keep_flights(self.flights.node(), flights).await {
            Ok(()) => true,
            Err(error) if error.is_transient() => {
                tracing::warn!(%error, flights = flights.len(), "could not write down how runs went; trying again in {EVERY:?}");
                false
            }
            Err(error) => {
                tracing::error!(%error, "could not write down how runs went; only this node knows it");
                true
            }
        }
    }
}

/// The traces of one second are a batch that commits in milliseconds.
const EVERY: Duration = Duration::from_secs(1);

/// A node that stops waits at most this long for the write.
const FINISH_MAX: Duration = Duration::from_secs(1);
