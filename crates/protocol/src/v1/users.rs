//! Users, sessions and API keys: `/v1/session`, `/v1/users`, `/v1/keys`.

use serde::{Deserialize, Serialize};

use super::Instant;

/// Credentials to sign in.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct SignIn {
    /// User name.
    pub user: String,
    /// Password.
    pub password: String,
}

/// The signed-in user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Me {
    /// User name.
    pub user: String,
    /// Whether the user is an administrator, with all rights for all apps.
    pub admin: bool,
    /// Rights by app, if the user is not an administrator.
    pub grants: Vec<Grant>,
    /// CSRF token of the session, to send with every change from a browser. Absent for API keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub csrf: Option<String>,
    /// Time zone of the scheduling centre, as an IANA name.
    pub zone: String,
}

/// Rights for one app.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// Name of the app.
    pub app: String,
    /// Rights for it.
    pub rights: Vec<Right>,
}

/// A right that can be granted for an app.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Right {
    /// View jobs, runs and logs.
    View,
    /// Start, stop and trigger jobs, and cancel runs.
    Operate,
    /// Create, change and delete jobs.
    Edit,
    /// Write scripts.
    Script,
}

/// Definition of a user, as sent to `PUT /v1/users/{name}` by an administrator.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct UserBody {
    /// New password. Required for a new user; omit it to keep the current one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// Whether the user is an administrator, with all rights for all apps.
    #[serde(default)]
    pub admin: bool,
    /// Whether the user is disabled; a disabled user has no rights.
    #[serde(default)]
    pub disabled: bool,
    /// Rights by app, if the user is not an administrator.
    #[serde(default)]
    pub grants: Vec<Grant>,
}

/// A user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UserView {
    /// Id of the user.
    pub id: i64,
    /// User name.
    pub name: String,
    /// Whether the user is an administrator, with all rights for all apps.
    pub admin: bool,
    /// Whether the user is disabled; a disabled user has no rights.
    pub disabled: bool,
    /// Rights by app, if the user is not an administrator.
    pub grants: Vec<Grant>,
    /// Time when the password or the rights were last changed.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime, required))]
    pub changed_at: Option<Instant>,
}

/// Request of a signed-in user to change their own password.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct PasswordChange {
    /// Current password.
    pub old: String,
    /// New password.
    pub new: String,
}

/// A session of a user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SessionView {
    /// Id of the session; it cannot be used to sign in.
    pub id: String,
    /// IP address that opened the session.
    pub ip: String,
    /// User agent that opened the session.
    pub agent: String,
    /// Time when the session was opened.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub opened_at: Instant,
    /// Time of its last request.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub seen_at: Instant,
    /// Whether it is the session of this request.
    pub current: bool,
}

/// Definition of a new API key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ApiKeyBody {
    /// Display name.
    pub name: String,
    /// Names of the apps it gives access to. Default: all apps of its owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apps: Option<Vec<String>>,
    /// Rights of the key; limited to the rights of its owner.
    pub rights: Vec<Right>,
    /// Time when it expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub expires_at: Option<Instant>,
}

/// An API key, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ApiKeyView {
    /// Id of the key.
    pub id: i64,
    /// Owner of the key; it acts on behalf of this user.
    pub user: String,
    /// Definition of the key.
    #[serde(flatten)]
    pub body: ApiKeyBody,
    /// Creation time.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub created_at: Instant,
    /// Time of its last use, to the minute.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime, required))]
    pub used_at: Option<Instant>,
}

/// A newly created API key. This is the only response with its secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NewApiKey {
    /// Id of the key.
    pub id: i64,
    /// Secret to send as `Authorization: Bearer …`.
    pub key: String,
}
