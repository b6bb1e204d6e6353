//! Live change notifications: `GET /v1/events`, as server-sent events.

use serde::{Deserialize, Serialize};

/// A hint that data has changed; the client reads that data again. Under load the stream may drop hints, but never
/// the last one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Event {
    /// Runs started or finished.
    Runs,
    /// Jobs were created, changed, started, stopped or deleted.
    Jobs,
    /// Executors registered or disappeared, or apps were changed.
    Executors,
    /// Alerts were raised or notified.
    Alerts,
}
