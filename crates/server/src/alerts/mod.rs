//! Alerts: tells people of what went wrong, by mail and by webhook.
//!
//! The engine hands over each alert at least once and again until it is delivered, after a crash too. What one channel has
//! taken is not sent to it again because another has not.

mod mail;
mod notice;
mod webhook;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use engine::{Alarms, Alert};
use store::Database;

pub use mail::{Mail, MailError};
pub use notice::Notice;
pub use webhook::{Webhook, WebhookError};

/// All channels by which people are told.
pub struct Alerts {
    database: Arc<dyn Database>,
    channels: Vec<Arc<dyn Channel>>,
    /// What was delivered while another channel failed: the alert's row and the channel's position.
    delivered: Mutex<HashSet<(i64, usize)>>,
}

/// A way to tell people.
#[async_trait]
pub trait Channel: Send + Sync {
    /// Delivers a notice, or says why it could not be. Bounded in time.
    async fn deliver(&self, notice: &Notice) -> Result<(), String>;

    /// What it is called in the log, without secrets.
    fn name(&self) -> String;
}

impl Alerts {
    /// Alerts go to all of these. To none: then the log is where they are seen.
    pub fn new(database: Arc<dyn Database>, channels: Vec<Arc<dyn Channel>>) -> Self {
        Alerts { database, channels, delivered: Mutex::default() }
    }

    async fn notice(&self, alert: &Alert) -> Result<Notice, String> {
        let read = async {
            let job = self.database.job(alert.job).await?;
            let app = match &job {
                Some(job) => self.database.app(job.spec.app).await?,
                None => None,
            };
            let run = self.database.run(alert.run).await?;
            Ok::<_, engine::StoreError>(Notice::new(alert, job.as_ref(), app.as_ref(), run.as_ref()))
        };
        read.await.map_err(|error| format!("could not read what it is about: {error}"))
    }

    fn delivered(&self) -> MutexGuard<'_, HashSet<(i64, usize)>> {
        self.delivered.lock().expect("no holder of this lock panics")
    }
}

#[async_trait]
impl Alarms for Alerts {
    async fn raise(&self, alert: &Alert) -> Result<(), String> {
        tracing::error!(job = %alert.job, run = %alert.run, "{}", alert.message);
        if self.channels.is_empty() {
            return Ok(());
        }
        let notice = self.notice(alert).await?;
        let mut failures = Vec::new();
        for (position, channel) in self.channels.iter().enumerate() {
            let delivery = (alert.id, position);
            if self.delivered().contains(&delivery) {
                continue;
            }
            match channel.deliver(&notice).await {
                Ok(()) => drop(self.delivered().insert(delivery)),
                Err(why) => failures.push(format!("{}: {why}", channel.name())),
            }
        }
        if !failures.is_empty() {
            return Err(failures.join("; "));
        }
        self.delivered().retain(|(id, _)| *id != alert.id);
        Ok(())
    }
}
