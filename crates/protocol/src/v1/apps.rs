//! Apps and their executors: `/v1/apps`.

use serde::{Deserialize, Serialize};

use super::{Instant, Right};

/// Definition of an app, as sent to `PUT /v1/apps/{app}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct AppBody {
    /// Display name.
    pub title: String,
    /// Source of the executors' addresses.
    #[serde(default)]
    pub addressing: Addressing,
}

/// Source of the addresses of an app's executors.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Addressing {
    /// Executors register themselves.
    #[default]
    Registered,
    /// A user enters the addresses.
    Manual {
        /// Addresses, for example `http://10.0.0.7:9999`.
        addresses: Vec<String>,
    },
}

/// An app.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AppView {
    /// Id of the app.
    pub id: i64,
    /// Name of the app; its executors register under this name.
    pub name: String,
    /// Definition of the app.
    #[serde(flatten)]
    pub body: AppBody,
    /// Executors of the app.
    pub executors: Vec<ExecutorView>,
    /// Executors that were registered within the last day and no longer are, as far as the responding node knows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gone: Vec<GoneExecutor>,
    /// Number of jobs of the app.
    pub jobs: u64,
    /// Rights of the caller for this app.
    pub rights: Vec<Right>,
}

/// An executor that is no longer registered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct GoneExecutor {
    /// Address of the executor.
    pub address: String,
    /// Time of its last registration or deregistration.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub seen_at: Instant,
}

/// An executor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ExecutorView {
    /// Address of the executor.
    pub address: String,
    /// State of the executor.
    pub state: ExecutorState,
    /// Time of its last registration; absent if a user entered the address.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime, required))]
    pub seen_at: Option<Instant>,
    /// Time since when it is unreachable; absent if it is reachable.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime, required))]
    pub suspect_since: Option<Instant>,
    /// Error of the last call to it; absent if that call succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<ExecutorTrouble>,
    /// Handlers that it declared, and handlers called by recent runs sent to it, as far as they are stored.
    pub handlers: Vec<String>,
}

/// Error of a call to an executor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ExecutorTrouble {
    /// Kind of error.
    pub code: TroubleCode,
    /// Details for troubleshooting: addresses, times, messages of the operating system or the executor.
    pub detail: String,
}

/// Kind of error of a call to an executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum TroubleCode {
    /// The connection was refused.
    ConnectRefused,
    /// The connection timed out.
    ConnectTimeout,
    /// There is no route to the host.
    NoRoute,
    /// The host name does not resolve.
    NameUnknown,
    /// The scheduling centre is configured not to call this address.
    AddressForbidden,
    /// The TLS handshake failed.
    TlsFailed,
    /// The connection was closed or reset.
    ConnectionLost,
    /// The connection was established, but the response timed out.
    NoAnswer,
    /// A gateway in between could not reach the executor.
    GatewayFailed,
    /// The token of the app was rejected.
    BadToken,
    /// The server at this address is not an executor, or listens under another path.
    NotAnExecutor,
    /// The executor rejected the call.
    Refused,
    /// The call was not made because the last calls to this executor failed (circuit breaker).
    Suspended,
    /// The scheduling centre's limit of concurrent calls is reached.
    TooManyCalls,
    /// Any other error.
    #[serde(other)]
    Other,
}

/// A secret to set.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct SecretBody {
    /// The value, at most 8 KiB. No answer contains it.
    pub value: String,
}

impl std::fmt::Debug for SecretBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretBody")
    }
}

/// A secret of an app, without its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SecretView {
    /// Name, unique in the app.
    pub name: String,
    /// User who set it last.
    pub set_by: String,
    /// Time when it was set last.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub set_at: Instant,
}

/// Request to check whether an executor is reachable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ExecutorCheck {
    /// Address of the executor; must be one of the app's.
    pub address: String,
}

/// State of an executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ExecutorState {
    /// It is registered and reachable.
    Alive,
    /// It was recently unreachable.
    Suspect,
}

/// A token of an app, without its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TokenView {
    /// Id of the token.
    pub id: i64,
    /// Creation time.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime, required))]
    pub created_at: Option<Instant>,
    /// Time when it expires.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime, required))]
    pub expires_at: Option<Instant>,
}

/// A newly created token. This is the only response with its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NewToken {
    /// Id of the token.
    pub id: i64,
    /// Value to put into the settings of the executors.
    pub token: String,
}
