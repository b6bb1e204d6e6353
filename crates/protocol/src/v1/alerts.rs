//! Alerts and their notifications: `/v1/alerts`.

use serde::{Deserialize, Serialize};

use super::{AlertKind, AlertState, Instant};

/// An alert: a problem with a job that has alerting enabled.
///
/// A repeat of the same problem of the same job within the grouping interval is counted in this alert and not
/// notified separately.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AlertView {
    /// Id of the alert; later alerts have greater ids.
    pub id: i64,
    /// Time of the first occurrence.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub at: Instant,
    /// Time of the last occurrence.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub last_at: Instant,
    /// Number of occurrences.
    pub count: u64,
    /// Kind of problem.
    pub kind: AlertKind,
    /// Name of the app that the job belonged to at that time; empty if the app is deleted.
    pub app: String,
    /// Id of the job.
    pub job: i64,
    /// Key of the job, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_key: Option<String>,
    /// Name of the job; absent once the job is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_name: Option<String>,
    /// Id of the run of the first occurrence, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<i64>,
    /// Description of the problem.
    pub message: String,
    /// State of the notifications.
    pub state: AlertState,
    /// Number of attempts to send the notifications.
    pub tries: u32,
    /// Recipients, each with the result of the last attempt.
    pub deliveries: Vec<DeliveryView>,
}

/// A recipient of an alert, with the result of the last attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DeliveryView {
    /// Channel: `mail`, `webhook`, `dingtalk`, `wecom`, `feishu` or `slack`.
    pub channel: String,
    /// Mail address, or host of the webhook; the URL of a webhook usually contains a secret.
    pub to: String,
    /// Time of the last attempt.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub at: Instant,
    /// Error of the last attempt as reported by the channel; absent if it succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// Numbers of alerts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AlertCounts {
    /// Alerts of the last 24 hours.
    pub last_day: u64,
    /// Alerts of the last 24 hours that are not delivered to all recipients.
    pub undelivered: u64,
}
