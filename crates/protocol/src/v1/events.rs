//! What happens, as it happens: `GET /v1/events`, server-sent.

use serde::{Deserialize, Serialize};

/// A hint that something is new; whoever shows it reads it again. The stream may leave out hints when there are many, but
/// the last one always comes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Event {
    /// Runs began or ended.
    Runs,
    /// Jobs were added, changed, started, stopped or deleted.
    Jobs,
    /// Executors came or went, or apps were changed.
    Executors,
    /// People were told of something, or should have been.
    Alerts,
}
