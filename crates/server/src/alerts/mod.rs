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
use futures_util::future::join_all;
use store::Database;
use tokio::runtime::Handle;

pub use mail::{Mail, MailError};
pub use notice::Notice;
pub use webhook::{Webhook, WebhookError};

/// All channels by which people are told.
pub struct Alerts {
    shared: Arc<Shared>,
    /// Where telling is done: not on the thread that fires.
    runtime: Handle,
}

struct Shared {
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
    /// Alerts go to all of these. To none: then the log is where they are seen. To be called where tasks can be spawned.
    pub fn new(database: Arc<dyn Database>, channels: Vec<Arc<dyn Channel>>) -> Self {
        let shared = Arc::new(Shared { database, channels, delivered: Mutex::default() });
        Alerts { shared, runtime: Handle::current() }
    }
}

#[async_trait]
impl Alarms for Alerts {
    async fn raise(&self, alert: &Alert) -> Result<(), String> {
        let run = alert.run.map(|run| run.0);
        tracing::error!(job = %alert.job, run, kind = alert.trouble.kind.word(), "{}", alert.trouble.message);
        if self.shared.channels.is_empty() {
            return Ok(());
        }
        let (shared, alert) = (Arc::clone(&self.shared), alert.clone());
        let told = self.runtime.spawn(async move { shared.tell(&alert).await });
        told.await.unwrap_or_else(|_| Err("the centre is stopping".into()))
    }
}

impl Shared {
    async fn tell(&self, alert: &Alert) -> Result<(), String> {
        let notice = self.notice(alert).await?;
        let channels = self.channels.iter().enumerate();
        let told =
            join_all(channels.map(|(position, channel)| self.tell_one(alert, &notice, position, channel)));
        let failures: Vec<String> = told.await.into_iter().filter_map(Result::err).collect();
        if !failures.is_empty() {
            return Err(failures.join("; "));
        }
        self.delivered().retain(|(id, _)| *id != alert.id);
        Ok(())
    }

    async fn tell_one(
        &self,
        alert: &Alert,
        notice: &Notice,
        position: usize,
        channel: &Arc<dyn Channel>,
    ) -> Result<(), String> {
        let delivery = (alert.id, position);
        if self.delivered().contains(&delivery) {
            return Ok(());
        }
        channel.deliver(notice).await.map_err(|why| format!("{}: {why}", channel.name()))?;
        let mut delivered = self.delivered();
        // Alerts that another node has delivered in the end are not forgotten here one by one.
        if delivered.len() >= DELIVERED_MAX {
            delivered.clear();
        }
        delivered.insert(delivery);
        Ok(())
    }

    async fn notice(&self, alert: &Alert) -> Result<Notice, String> {
        let read = async {
            let job = self.database.job(alert.job).await?;
            let app = match &job {
                Some(job) => self.database.app(job.spec.app).await?,
                None => None,
            };
            let run = match alert.run {
                Some(run) => self.database.run(run).await?,
                None => None,
            };
            Ok::<_, engine::StoreError>(Notice::new(alert, job.as_ref(), app.as_ref(), run.as_ref()))
        };
        read.await.map_err(|error| format!("could not read what it is about: {error}"))
    }

    fn delivered(&self) -> MutexGuard<'_, HashSet<(i64, usize)>> {
        self.delivered.lock().expect("no holder of this lock panics")
    }
}

/// Deliveries that are remembered. Forgetting them means that somebody may be told twice.
const DELIVERED_MAX: usize = 10_000;
