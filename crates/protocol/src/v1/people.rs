//! People, their sessions and their keys: `/v1/session`, `/v1/users`, `/v1/keys`.

use serde::{Deserialize, Serialize};

use super::Instant;

/// Who wants to sign in.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct SignIn {
    /// The name.
    pub user: String,
    /// The password.
    pub password: String,
}

/// Who is signed in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Me {
    /// The name.
    pub user: String,
    /// May do everything.
    pub admin: bool,
    /// Otherwise: what, with which app.
    pub grants: Vec<Grant>,
    /// The session's second secret, to be sent with every change from a browser. Absent for API keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub csrf: Option<String>,
    /// The centre's zone, as an IANA name.
    pub zone: String,
}

/// What somebody may do with an app.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// The app, by name.
    pub app: String,
    /// What.
    pub rights: Vec<Right>,
}

/// What can be allowed for an app.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Right {
    /// See jobs, runs and logs.
    View,
    /// Start, stop and trigger jobs, and end runs.
    Operate,
    /// Create, change and delete jobs.
    Edit,
    /// Write scripts.
    Script,
}

/// What an administrator writes about a user. `PUT /v1/users/{name}` makes the user be so.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct UserBody {
    /// A new password; needed for a new user, and left out to keep the old one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// May do everything.
    #[serde(default)]
    pub admin: bool,
    /// May do nothing, until this is taken back.
    #[serde(default)]
    pub disabled: bool,
    /// Otherwise: what, with which app.
    #[serde(default)]
    pub grants: Vec<Grant>,
}

/// A user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UserView {
    /// The number.
    pub id: i64,
    /// The name.
    pub name: String,
    /// May do everything.
    pub admin: bool,
    /// May do nothing.
    pub disabled: bool,
    /// Otherwise: what, with which app.
    pub grants: Vec<Grant>,
    /// When password or rights were last changed.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub changed_at: Option<Instant>,
}

/// A new password for whoever is signed in.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct PasswordChange {
    /// The one that counts now.
    pub old: String,
    /// The one to come.
    pub new: String,
}

/// A session of somebody.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SessionView {
    /// Names it, without opening it.
    pub id: String,
    /// From where it was opened.
    pub ip: String,
    /// With which program.
    pub agent: String,
    /// When it was opened,
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub opened_at: Instant,
    /// last used,
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub seen_at: Instant,
    /// and whether it is the one that asks.
    pub current: bool,
}

/// A key to be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ApiKeyBody {
    /// For people.
    pub name: String,
    /// The apps it opens, by name; all of its owner's if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apps: Option<Vec<String>>,
    /// At most these of the owner's rights.
    pub rights: Vec<Right>,
    /// It counts until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub expires_at: Option<Instant>,
}

/// A key, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ApiKeyView {
    /// Its number.
    pub id: i64,
    /// In whose place it acts.
    pub user: String,
    /// What was written about it.
    #[serde(flatten)]
    pub body: ApiKeyBody,
    /// When it was made.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub created_at: Instant,
    /// When it was last used, to the minute.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub used_at: Option<Instant>,
}

/// A key that was just made, to be shown once.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NewApiKey {
    /// Its number.
    pub id: i64,
    /// What programs send as `Authorization: Bearer …`.
    pub key: String,
}
