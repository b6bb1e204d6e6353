//! Sends notifications of alerts, at least once.
//!
//! An alert is a row, written in the same transaction as the event it reports. A node takes it for a limited time;
//! if the node dies meanwhile, another one takes it (I13). A failed notification is retried with increasing delays
//! for about a day.

use std::time::Duration;

use futures_util::future::join_all;

use crate::engine::Engine;
use crate::ports::{Alert, StoreError};

impl Engine {
    pub(crate) async fn alert_loop(&self) {
        loop {
            self.inner.clock.sleep(LOOK).await;
            let now = self.now();
            if !self.has_work(|agenda| agenda.alert_at.is_some_and(|at| at <= now)) {
                continue;
            }
            if let Err(error) = self.alert().await {
                self.complain(&error, "failed to list alerts", LOOK);
            }
        }
    }

    async fn alert(&self) -> Result<(), StoreError> {
        let alerts = self.inner.store.take_alerts(self.now(), TAKEN_FOR, BATCH_MAX).await?;
        // Concurrently, so that a slow notification does not delay others until another node takes them too.
        let told = join_all(alerts.iter().map(|alert| self.tell(alert))).await;
        told.into_iter().collect()
    }

    async fn tell(&self, alert: &Alert) -> Result<(), StoreError> {
        let told = tokio::select! {
            biased;
            told = self.inner.alarms.raise(alert) => told,
            () = self.inner.clock.sleep(TELL_MAX) => Err(format!("it took longer than {TELL_MAX:?}")),
        };
        match told {
            Ok(()) => self.inner.store.forget_alerts(&[alert.id]).await,
            Err(error) if alert.tries >= TRIES_MAX => {
                tracing::error!(job = %alert.job, error, message = alert.trouble.message, "failed to send notifications of an alert after {TRIES_MAX} tries; giving up");
                self.inner.store.forget_alerts(&[alert.id]).await
            }
            Err(error) => {
                let wait = wait_after(alert.tries);
                tracing::warn!(job = %alert.job, error, "failed to send notifications of an alert; retrying in {wait:?}");
                self.inner.store.delay_alert(alert.id, self.now() + wait).await
            }
        }
    }
}

/// Delay after the given number of attempts. It doubles each time, because most outages of recipients are short.
fn wait_after(tries: u32) -> Duration {
    WAIT_MIN.saturating_mul(1 << tries.saturating_sub(1).min(16)).min(WAIT_MAX)
}

/// Interval at which each node looks whether alerts are to be sent; the agenda is up to a second old.
const LOOK: Duration = Duration::from_millis(500);

/// Time for which one node has an alert to itself.
const TAKEN_FOR: Duration = Duration::from_secs(30);

/// Timeout of a notification. Shorter than the above, so that no other node starts meanwhile.
const TELL_MAX: Duration = Duration::from_secs(25);

const BATCH_MAX: usize = 20;

const WAIT_MIN: Duration = Duration::from_secs(2);
const WAIT_MAX: Duration = Duration::from_secs(5 * 60);

/// Maximum number of attempts, about a day.
const TRIES_MAX: u32 = 300;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alert_is_tried_less_and_less_often_for_a_day() {
        let waits: Vec<u64> = (1..=9).map(|tries| wait_after(tries).as_secs()).collect();
        assert_eq!(waits, [2, 4, 8, 16, 32, 64, 128, 256, 300]);
        assert_eq!(wait_after(u32::MAX), WAIT_MAX);
        let all: u64 = (1..TRIES_MAX).map(|tries| wait_after(tries).as_secs()).sum();
        assert!((20..30).contains(&(all / 3_600)), "{all}");
    }
}
