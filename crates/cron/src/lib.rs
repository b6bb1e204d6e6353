//! When does it fire next?

mod timestamp;

pub use timestamp::Timestamp;
