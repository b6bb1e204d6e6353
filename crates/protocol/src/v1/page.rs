//! Long lists.

use serde::{Deserialize, Serialize};

/// Some rows of a long list, in its order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Page<T> {
    /// The rows.
    pub items: Vec<T>,
    /// What to send as `after` for the next page; absent on the last. A page may be short, or even empty, and still have a
    /// next one: the search went so far and can go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// How many there are in all, where that is known without counting for long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
}
