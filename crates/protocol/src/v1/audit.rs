//! Who did what: `/v1/audit`.

use serde::{Deserialize, Serialize};

use super::Instant;

/// Something that was done, or refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AuditView {
    /// Its number: without gaps.
    pub id: i64,
    /// When.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub at: Instant,
    /// Who.
    pub principal: String,
    /// Through which door: `console`, `executor` or `api`.
    pub plane: String,
    /// From where.
    pub ip: String,
    /// What was done,
    pub action: String,
    /// and to what.
    pub object: String,
    /// How that was before, without secrets,
    pub before: Option<String>,
    /// and after.
    pub after: Option<String>,
    /// What came of it: `done`, or why not.
    pub result: String,
}
