//! Audit log: `/v1/audit`.

use serde::{Deserialize, Serialize};

use super::Instant;

/// An action that was performed or rejected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AuditView {
    /// Id of the entry; ids have no gaps.
    pub id: i64,
    /// Time of the action.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub at: Instant,
    /// User, API key or app that performed it.
    pub principal: String,
    /// API that was used: `api` (`/v1` and XXL-JOB's job calls), `executor` or `web` (XXL-JOB's web API).
    pub plane: String,
    /// IP address of the client.
    pub ip: String,
    /// Name of the action, for example `job.put`.
    pub action: String,
    /// Object of the action.
    pub object: String,
    /// State of the object before, without secrets.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub before: Option<String>,
    /// State of the object afterwards, without secrets.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub after: Option<String>,
    /// `done`, or the reason why it was rejected.
    pub result: String,
}
