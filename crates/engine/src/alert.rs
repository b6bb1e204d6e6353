//! Alert: tell people of failed runs, at least once, never stuck.
//!
//! An alert is a row, written with the end of its run. Whoever takes it has it for a while; if it dies meanwhile, the
//! next one takes it (I13).

use std::time::Duration;

use crate::engine::Engine;
use crate::ports::StoreError;

impl Engine {
    pub(crate) async fn alert_loop(&self) {
        loop {
            self.inner.clock.sleep(LOOK).await;
            if let Err(error) = self.alert().await {
                tracing::warn!(%error, "could not look for alerts; trying again in {LOOK:?}");
            }
        }
    }

    async fn alert(&self) -> Result<(), StoreError> {
        for alert in self.inner.store.take_alerts(self.now(), TAKEN_FOR, BATCH_MAX).await? {
            match self.inner.alarms.raise(&alert).await {
                Ok(()) => self.inner.store.forget_alerts(&[alert.id]).await?,
                Err(error) => {
                    tracing::warn!(run = %alert.run, error, "could not deliver an alert; trying again in {TAKEN_FOR:?}");
                }
            }
        }
        Ok(())
    }
}

const LOOK: Duration = Duration::from_secs(1);

/// How long one node has an alert to itself.
const TAKEN_FOR: Duration = Duration::from_secs(30);

const BATCH_MAX: usize = 20;
