//! The families of releases that speak alike.

use super::CallbackShape;

/// A family of XXL-JOB releases with one wire.
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
    /// What comes after 3.4.2; unreleased, may still move.
    Next,
}

impl Lineage {
    /// All of them, the oldest first.
    pub const ALL: [Lineage; 5] = [Lineage::L22, Lineage::L23, Lineage::L32, Lineage::L33, Lineage::Next];

    /// Where its executors take a run.
    pub fn trigger_path(self) -> &'static str {
        if self == Lineage::Next { "/trigger" } else { "/run" }
    }

    /// The one field in which it looks for a payload.
    pub fn payload_field(self) -> &'static str {
        if self >= Lineage::L33 { "data" } else { "content" }
    }

    /// How its centre wants results.
    pub fn callback_shape(self) -> CallbackShape {
        if self == Lineage::Next { CallbackShape::Object } else { CallbackShape::Array }
    }
}
