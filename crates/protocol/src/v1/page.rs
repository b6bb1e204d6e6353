//! Pagination of lists.

use serde::{Deserialize, Serialize};

/// One page of a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Page<T> {
    /// Items of this page, in the order of the list.
    pub items: Vec<T>,
    /// Cursor to send as `after` for the next page; absent on the last page. A page may be short or even empty and
    /// still have a next one, because each request scans a limited number of rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Total number of items; absent where counting would be slow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
}
