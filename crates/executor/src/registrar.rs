//! Keeps this executor registered with the centre, and declares its handlers and jobs when needed.

use std::sync::Arc;
use std::time::Duration;

use protocol::xxl::Registry;
use timer::Clock;
use tokio_util::sync::CancellationToken;

use crate::centre::{CallError, Centre};
use crate::declarer::Declarer;

pub(crate) struct Registrar {
    pub centre: Arc<Centre>,
    pub registry: Registry,
    pub declarer: Declarer,
    pub clock: Arc<dyn Clock>,
}

impl Registrar {
    /// Registers immediately and then every 30 s until `leave` is cancelled; then deregisters.
    pub async fn run(mut self, leave: CancellationToken) {
        let mut failures = 0;
        let mut is_known = false;
        loop {
            let wait = match self.visit(&leave).await {
                Ok(()) => {
                    if !is_known {
                        let Registry { registry_key: app, registry_value: address, .. } = &self.registry;
                        tracing::info!(app, address, "registered with the scheduling centre");
                    }
                    (failures, is_known) = (0, true);
                    PERIOD
                }
                Err((what, error)) => {
                    (failures, is_known) = (failures + 1, false);
                    let wait = after_failure(failures);
                    tracing::warn!(%error, "{what}; retrying in {} s", wait.as_secs());
                    wait
                }
            };
            tokio::select! {
                () = self.clock.sleep(wait) => {}
                () = leave.cancelled() => break,
            }
        }
        if let Err(error) = self.centre.deregister(&self.registry).await
            && is_known
        {
            tracing::warn!(%error, "failed to unregister; the scheduling centre removes this executor within 90 s");
        }
    }

    /// Registers, and sends the declaration if the centre may not have it. On failure returns the step and its error.
    async fn visit(&mut self, leave: &CancellationToken) -> Result<(), (&'static str, CallError)> {
        if let Err(error) = self.centre.register(&self.registry).await {
            // It may be a different centre when it answers again.
            self.declarer.forget();
            return Err(("failed to register", error));
        }
        tokio::select! {
            // Many jobs take many calls, and leaving does not wait for them.
            () = leave.cancelled() => Ok(()),
            declared = self.declarer.declare(&self.centre) => declared.map_err(|error| ("failed to declare handlers and jobs", error)),
        }
    }
}

/// Centres drop an executor after three periods without a registration.
const PERIOD: Duration = Duration::from_secs(30);

/// Exponential backoff that starts short, so that a centre that restarts does not miss this executor for 30 s.
fn after_failure(failures: u32) -> Duration {
    Duration::from_secs(1 << failures.saturating_sub(1).min(5)).min(PERIOD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_grows_to_the_usual_period() {
        let waits = [1, 2, 3, 4, 5, 6, 7, u32::MAX].map(|failures| after_failure(failures).as_secs());
        assert_eq!(waits, [1, 2, 4, 8, 16, 30, 30, 30]);
    }
}
