//! What people were told of, or should have been: `/v1/alerts`.

use serde::{Deserialize, Serialize};

use super::Instant;

/// An alert: trouble with a job that wants it told.
///
/// What happens to the same job in the same way again soon afterwards joins the alert instead of being told anew.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AlertView {
    /// Its number; later ones are greater.
    pub id: i64,
    /// When it happened first,
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub at: Instant,
    /// when last,
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub last_at: Instant,
    /// and how often.
    pub count: u64,
    /// What happened.
    pub kind: AlertKind,
    /// The app of its job then, by name; empty if that was deleted.
    pub app: String,
    /// Its job's number,
    pub job: i64,
    /// key
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_key: Option<String>,
    /// and name, while the job is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_name: Option<String>,
    /// The run that it happened to first, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<i64>,
    /// What there is to say about it.
    pub message: String,
    /// Whether people were told.
    pub state: AlertState,
    /// How often it was tried to tell them.
    pub tries: u32,
    /// Who was told, or could not be: the last try of each.
    pub deliveries: Vec<DeliveryView>,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum AlertKind {
    /// A run failed, and is not tried again.
    Failed,
    /// It took longer than its job allows.
    TimedOut,
    /// Nobody knows what became of it.
    Lost,
    /// It began long after its instant.
    Late,
    /// An instant came and nothing ran.
    NotRun,
}

/// Whether people were told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum AlertState {
    /// Not all of them yet; it is tried again.
    Waiting,
    /// All of them.
    Delivered,
    /// Not all of them, and it is not tried any more.
    GivenUp,
    /// There is nobody to tell: no channel is configured for it.
    Nobody,
}

/// Somebody who is told of an alert.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DeliveryView {
    /// By what: `mail`, `webhook`, `dingtalk`, `wecom`, `feishu` or `slack`.
    pub channel: String,
    /// Who: a mail address, or the host of a webhook, whose URL is mostly a secret.
    pub to: String,
    /// When that was last tried.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub at: Instant,
    /// Why it did not work, if it did not, in the channel's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// How many alerts there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AlertCounts {
    /// In the last 24 hours,
    pub last_day: u64,
    /// and those of them of which not everybody was told, or not yet.
    pub undelivered: u64,
}
