//! Sends notifications of alerts, by mail and webhook.
//!
//! The engine passes each alert at least once, and again until it is delivered, also after a crash. A retry skips
//! channels that have already accepted the notification. The result per recipient is stored with the alert.

mod mail;
mod notice;
mod webhook;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use engine::policy::Word;
use engine::{Alarms, Alert, Store as _};
use futures_util::future::join_all;
use protocol::v1::Event;
use store::{Database, Delivery};
use timer::{Clock, Timestamp};
use tokio::runtime::Handle;

use crate::telemetry::Hints;

pub use mail::{Mail, MailError};
pub use notice::Notice;
pub use webhook::{Webhook, WebhookError};

/// All configured notification channels.
pub struct Alerts {
    shared: Arc<Shared>,
    /// Runtime for sending notifications, so that it does not delay fires.
    runtime: Handle,
}

struct Shared {
    clock: Arc<dyn Clock>,
    database: Arc<Database>,
    channels: Vec<Arc<dyn Channel>>,
    hints: Arc<Hints>,
    /// Recipients that a retry of an alert skips, by alert id and position of the channel.
    settled: Mutex<HashMap<i64, Vec<Settled>>>,
}

/// A recipient that was notified, or that can never be notified.
#[derive(Clone)]
struct Settled {
    channel: usize,
    to: String,
    at: Timestamp,
    trouble: Option<String>,
}

/// A notification channel.
#[async_trait]
pub trait Channel: Send + Sync {
    /// Kind of channel: `mail`, `webhook`, `dingtalk`, `wecom`, `feishu` or `slack`.
    fn kind(&self) -> &'static str;

    /// Recipients of this notification, without secrets; empty if it has none on this channel.
    fn addressees(&self, notice: &Notice) -> Vec<String>;

    /// Notifies one recipient, within a bounded time.
    async fn deliver(&self, notice: &Notice, to: &str) -> Result<(), Undelivered>;

    /// Checks that the channel can deliver, without delivering anything. `None` for channels that have no such check.
    async fn check(&self) -> Option<Result<(), String>> {
        None
    }
}

/// Why a recipient was not notified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undelivered {
    /// Temporary error: retry later.
    Now(String),
    /// Permanent error: do not retry.
    Ever(String),
}

impl Alerts {
    /// Sends alerts to all of these channels. Without any, alerts appear only in the log and in the list of
    /// alerts. Must be called inside a Tokio runtime.
    pub fn new(
        clock: Arc<dyn Clock>,
        database: Arc<Database>,
        channels: Vec<Arc<dyn Channel>>,
        hints: Arc<Hints>,
    ) -> Self {
        let shared = Arc::new(Shared { clock, database, channels, hints, settled: Mutex::default() });
        Alerts { shared, runtime: Handle::current() }
    }
}

#[async_trait]
impl Alarms for Alerts {
    async fn raise(&self, alert: &Alert) -> Result<(), String> {
        let run = alert.run.map(|run| run.0);
        let (kind, message) = (alert.trouble.kind.word(), &alert.trouble.message);
        match self.shared.channels.len() {
            0 => {
                tracing::error!(job = %alert.job, run, kind, message, "alert raised; not notified, because no channel is configured")
            }
            channels => {
                tracing::error!(job = %alert.job, run, kind, message, channels, "alert raised; sending notifications")
            }
        }
        let (shared, alert) = (Arc::clone(&self.shared), alert.clone());
        let told = self.runtime.spawn(async move {
            shared.hints.announce(Event::Alerts);
            let told = shared.tell(&alert).await;
            if told.is_ok() {
                tokio::spawn(async move { shared.hint_when_settled(alert.id).await });
            }
            told
        });
        told.await.unwrap_or_else(|_| Err("the scheduling centre is stopping".into()))
    }
}

impl Shared {
    async fn tell(&self, alert: &Alert) -> Result<(), String> {
        let notice = self.notice(alert).await?;
        let known = self.settled().get(&alert.id).cloned().unwrap_or_default();
        let mut telling = Vec::new();
        for (position, channel) in self.channels.iter().enumerate() {
            let addressees = channel.addressees(&notice).into_iter();
            telling.extend(addressees.map(|to| self.tell_one(&known, &notice, position, to)));
        }
        let told = join_all(telling).await;
        let failures: Vec<String> = told.iter().filter_map(|(_, later)| later.clone()).collect();
        let settled = |(told, later): &(Settled, Option<String>)| later.is_none().then(|| told.clone());
        self.settle(alert.id, told.iter().filter_map(settled).collect());
        let delivery = |(told, _): (Settled, Option<String>)| Delivery {
            channel: self.channels[told.channel].kind().into(),
            to: told.to,
            at: told.at,
            trouble: told.trouble,
        };
        let deliveries: Vec<Delivery> = told.into_iter().map(delivery).collect();
        let noted = self.database.note_told(alert.id, alert.tries, &deliveries).await;
        self.hints.announce(Event::Alerts);
        // Notified recipients stay in memory until the database has stored them.
        noted.map_err(|error| format!("failed to store the notifications: {error}"))?;
        if !failures.is_empty() {
            return Err(failures.join("; "));
        }
        self.settled().remove(&alert.id);
        Ok(())
    }

    /// Waits until the engine has removed a delivered alert from the outbox, then hints clients to reload.
    async fn hint_when_settled(&self, alert: i64) {
        for _ in 0..LOOKS {
            self.clock.sleep(LOOK).await;
            if let Ok(None) = self.database.alert_to_tell(alert).await {
                return self.hints.announce(Event::Alerts);
            }
        }
    }

    /// Notifies one recipient, unless that is settled. Returns the reason for a retry, if one is needed.
    async fn tell_one(
        &self,
        known: &[Settled],
        notice: &Notice,
        position: usize,
        to: String,
    ) -> (Settled, Option<String>) {
        if let Some(settled) = known.iter().find(|settled| settled.channel == position && settled.to == to) {
            return (settled.clone(), None);
        }
        let channel = &self.channels[position];
        let told = channel.deliver(notice, &to).await;
        let (trouble, later) = match told {
            Ok(()) => (None, None),
            Err(Undelivered::Ever(why)) => (Some(why), None),
            Err(Undelivered::Now(why)) => {
                let later = format!("{} to {to}: {why}", channel.kind());
                (Some(why), Some(later))
            }
        };
        let trouble = trouble.map(|why| why.chars().take(TROUBLE_MAX).collect());
        (Settled { channel: position, to, at: self.clock.now(), trouble }, later)
    }

    fn settle(&self, alert: i64, settled: Vec<Settled>) {
        let mut all = self.settled();
        // Entries for alerts that another node has delivered are not removed one by one.
        if all.len() >= SETTLED_MAX {
            all.clear();
        }
        all.insert(alert, settled);
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
            let row = self.database.alert_to_tell(alert.id).await?;
            let earlier = row.map_or(0, |row| row.earlier);
            Ok::<_, engine::StoreError>(Notice::new(alert, earlier, job.as_ref(), app.as_ref(), run.as_ref()))
        };
        read.await.map_err(|error| format!("failed to read the job and the run: {error}"))
    }

    fn settled(&self) -> MutexGuard<'_, HashMap<i64, Vec<Settled>>> {
        self.settled.lock().expect("no holder of this lock panics")
    }
}

/// Partly delivered alerts held in memory. Clearing them means that a recipient may be notified twice.
const SETTLED_MAX: usize = 10_000;

/// Characters stored of a delivery error.
const TROUBLE_MAX: usize = 500;

/// How often a delivered alert is looked up in the outbox; it leaves with the next commit.
const LOOK: Duration = Duration::from_millis(200);

/// Number of lookups. If the alert is still there then, it will be sent again, and looked up again after that.
const LOOKS: usize = 10;
