//! Writes flights down, once a second, beside everything that fires.

use std::sync::Arc;
use std::time::Duration;

use store::{Database, Flight};
use timer::Clock;

use super::Flights;

/// Writes down what this node knows of runs' ways.
pub struct FlightKeeper {
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Remembers.
    pub database: Arc<dyn Database>,
    /// What is to be written down.
    pub flights: Arc<Flights>,
}

impl FlightKeeper {
    /// Keeps at it for ever.
    pub async fn run(self) {
        let mut waiting = Vec::new();
        loop {
            self.clock.sleep(EVERY).await;
            // While the database does not take them no more are asked for: they wait, or are passed over, where they are.
            if waiting.is_empty() {
                waiting = self.flights.take(self.clock.now());
            }
            if self.write(&waiting).await {
                waiting.clear();
            }
        }
    }

    /// Writes down what is left, when the node stops.
    pub async fn finish(self) {
        let left = self.flights.take(self.clock.now());
        tokio::select! {
            _ = self.write(&left) => {}
            () = self.clock.sleep(FINISH_MAX) => {}
        }
    }

    /// Whether they need not be tried again.
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

/// A second of flights is a batch that commits in milliseconds.
const EVERY: Duration = Duration::from_secs(1);

/// A node that stops waits no longer for this.
const FINISH_MAX: Duration = Duration::from_secs(1);
