//! A notification: an alert with the names that make it readable.

use engine::{Alert, Job};
use protocol::v1::AlertKind;
use serde::Serialize;
use store::{App, RunRow};

/// An alert, ready to be sent to people and programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub struct Notice {
    /// Kind of alert.
    pub kind: AlertKind,
    /// Id of the job.
    pub job: i64,
    /// Name of the job; empty once the job is deleted.
    pub job_name: String,
    /// Name of the job's app.
    pub app: String,
    /// Id of the run, if there was one.
    pub run: Option<i64>,
    /// Scheduled time, in milliseconds since 1970.
    pub scheduled_at_ms: Option<i64>,
    /// Address of the executor, if the run was sent.
    pub executor: Option<String>,
    /// Error message.
    pub message: String,
    /// Number of similar alerts since the last notification that were not notified.
    #[serde(skip_serializing_if = "is_zero")]
    pub earlier: u64,
    /// Email recipients.
    #[serde(skip)]
    pub mail_to: Vec<String>,
}

impl Notice {
    /// Builds a notification from the alert and its rows.
    pub fn new(
        alert: &Alert,
        earlier: u64,
        job: Option<&Job>,
        app: Option<&App>,
        run: Option<&RunRow>,
    ) -> Notice {
        let mail_to = job.map_or("", |job| job.spec.alert_to.as_str());
        Notice {
            kind: alert.trouble.kind,
            job: alert.job.0,
            job_name: job.map(|job| job.spec.name.clone()).unwrap_or_default(),
            app: app.map(|app| app.spec.name.clone()).unwrap_or_default(),
            run: alert.run.map(|run| run.0),
            scheduled_at_ms: run.and_then(|run| run.triggered_at).map(|at| at.as_millis()),
            executor: run.and_then(|run| run.address.clone()),
            message: alert.trouble.message.clone(),
            earlier,
            mail_to: mail_to
                .split(',')
                .map(str::trim)
                .filter(|to| !to.is_empty())
                .map(str::to_owned)
                .collect(),
        }
    }

    /// One line, for example the subject of a mail. Line breaks and other control characters of the job's name become
    /// spaces.
    pub fn title(&self) -> String {
        let name = if self.job_name.is_empty() { "a deleted job" } else { &self.job_name };
        let name = name.replace(char::is_control, " ");
        let happened = match self.kind {
            AlertKind::TimedOut => "timed out",
            AlertKind::Lost => "was lost",
            AlertKind::Late => "started late",
            AlertKind::NotRun => "did not run",
            AlertKind::Failed => "failed",
            AlertKind::HistoryLost if self.job == 0 => {
                return "Tickwright: the database has lost commits".into();
            }
            AlertKind::HistoryLost => "has runs that the database has lost",
        };
        format!("Tickwright: {name} (job {}) {happened}", self.job)
    }

    /// Plain text: the title, then the details.
    pub fn text(&self) -> String {
        let mut lines = vec![self.title(), self.message.clone()];
        if self.earlier > 0 {
            lines.push(format!("{} more alerts like this since the last notification", self.earlier));
        }
        lines.push(String::new());
        let run = self.run.map(|run| format!(", run {run}")).unwrap_or_default();
        lines.push(format!("app {}, job {}{run}", self.app, self.job));
        if let Some(at) = self.scheduled_at_ms.and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok()) {
            lines.push(format!("scheduled for {at}"));
        }
        if let Some(executor) = &self.executor {
            lines.push(format!("executor {executor}"));
        }
        lines.join("\n")
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
