//! Lineages: ranges of XXL-JOB releases with the same protocol.

use super::CallbackShape;

/// A range of XXL-JOB releases with the same protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lineage {
    /// 2.2.0.
    L22,
    /// 2.3.0 to 3.1.1.
    L23,
    /// 3.2.0.
    L32,
    /// 3.3.0 to 3.4.2.
    L33,
    /// After 3.4.2; unreleased, may still change.
    Next,
}

impl Lineage {
    /// All lineages, oldest first.
    pub const ALL: [Lineage; 5] = [Lineage::L22, Lineage::L23, Lineage::L32, Lineage::L33, Lineage::Next];

    /// Path of the executor's trigger endpoint.
    pub fn trigger_path(self) -> &'static str {
        if self == Lineage::Next { "/trigger" } else { "/run" }
    }

    /// Name of the only field from which it reads a payload.
    pub fn payload_field(self) -> &'static str {
        if self >= Lineage::L33 { "data" } else { "content" }
    }

    /// Callback format that its scheduling centre expects.
    pub fn callback_shape(self) -> CallbackShape {
        if self == Lineage::Next { CallbackShape::Object } else { CallbackShape::Array }
    }
}
