//! Tells the centre that this executor is there, again and again.

use std::sync::Arc;
use std::time::Duration;

use protocol::xxl::Registry;
use timer::Clock;
use tokio_util::sync::CancellationToken;

use crate::centre::Centre;

pub(crate) struct Registrar {
    pub centre: Arc<Centre>,
    pub registry: Registry,
    pub clock: Arc<dyn Clock>,
}

impl Registrar {
    /// Registers at once and then every 30 s, until told to leave; then deregisters.
    pub async fn run(self, leave: CancellationToken) {
        let mut failures = 0;
        loop {
            let wait = match self.centre.register(&self.registry).await {
                Ok(()) => {
                    if failures > 0 {
                        tracing::info!(address = self.registry.registry_value, "registered again");
                    }
                    failures = 0;
                    PERIOD
                }
                Err(error) => {
                    failures += 1;
                    let wait = after_failure(failures);
                    tracing::warn!(%error, "not registered; trying again in {} s", wait.as_secs());
                    wait
                }
            };
            tokio::select! {
                () = self.clock.sleep(wait) => {}
                () = leave.cancelled() => break,
            }
        }
        if let Err(error) = self.centre.deregister(&self.registry).await {
            tracing::warn!(%error, "not deregistered; the centre will notice within 90 s");
        }
    }
}

/// Centres forget an executor after three times this.
const PERIOD: Duration = Duration::from_secs(30);

/// Soon at first: a centre that just restarts should not miss us for half a minute.
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
