//! Apps and their executors: `/v1/apps`.

use serde::{Deserialize, Serialize};

use super::{Instant, Right};

/// What people write about an app. `PUT /v1/apps/{name}` makes the app be so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct AppBody {
    /// For people.
    pub title: String,
    /// Where its executors are.
    #[serde(default)]
    pub addressing: Addressing,
}

/// Who says where an app's executors are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Addressing {
    /// They do, by registering.
    #[default]
    Registered,
    /// A person does.
    Manual {
        /// The addresses.
        addresses: Vec<String>,
    },
}

/// An app as it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AppView {
    /// Its number.
    pub id: i64,
    /// Its executors register under this name.
    pub name: String,
    /// What people wrote.
    #[serde(flatten)]
    pub body: AppBody,
    /// Its executors.
    pub executors: Vec<ExecutorView>,
    /// Those that were there within a day and are not any more, as far as the node that answers knows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gone: Vec<GoneExecutor>,
    /// How many jobs it has.
    pub jobs: u64,
    /// What the caller may do with it.
    pub rights: Vec<Right>,
}

/// An executor that is not there any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct GoneExecutor {
    /// Where it listened.
    pub address: String,
    /// When it was last heard of.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub seen_at: Instant,
}

/// An executor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ExecutorView {
    /// Where it listens.
    pub address: String,
    /// How it is.
    pub state: ExecutorState,
    /// When it last registered; absent for one that people entered by hand.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub seen_at: Option<Instant>,
    /// Since when it cannot be reached, if so.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub suspect_since: Option<Instant>,
    /// What was wrong when it was last called, if something was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<ExecutorTrouble>,
    /// The handlers that it says it has, and those that runs sent to it called, as far as is remembered.
    pub handlers: Vec<String>,
}

/// Why an executor could not be called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ExecutorTrouble {
    /// What was wrong.
    pub code: TroubleCode,
    /// More about it, for whoever looks into it: addresses, times, what the system or the executor said.
    pub detail: String,
}

/// What can be wrong with a call of an executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum TroubleCode {
    /// Nothing listens there.
    ConnectRefused,
    /// No connection came about in time.
    ConnectTimeout,
    /// The network knows no way there.
    NoRoute,
    /// The name of the host does not resolve.
    NameUnknown,
    /// The centre does not call such addresses.
    AddressForbidden,
    /// No encrypted connection could be agreed on.
    TlsFailed,
    /// The connection was closed or broke.
    ConnectionLost,
    /// It was reached and did not answer in time.
    NoAnswer,
    /// A gateway in between did not reach it.
    GatewayFailed,
    /// It, or whoever answers there, does not accept the app's token.
    BadToken,
    /// What answers there is no executor, or listens under another path.
    NotAnExecutor,
    /// It answered, and said no.
    Refused,
    /// Its last calls failed, so it was not called at all.
    Suspended,
    /// The centre has as many calls under way as it allows itself.
    TooManyCalls,
    /// Anything else.
    #[serde(other)]
    Other,
}

/// An executor to be asked whether it is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ExecutorCheck {
    /// Where it listens: one of the app's.
    pub address: String,
}

/// How an executor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ExecutorState {
    /// It registers and can be reached.
    Alive,
    /// It could not be reached lately.
    Suspect,
}

/// A token of an app. Its value is never shown again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TokenView {
    /// Its number.
    pub id: i64,
    /// When it was added.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub created_at: Option<Instant>,
    /// It counts until then.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub expires_at: Option<Instant>,
}

/// A token that was just made, to be shown once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NewToken {
    /// Its number.
    pub id: i64,
    /// What executors put into their settings.
    pub token: String,
}
