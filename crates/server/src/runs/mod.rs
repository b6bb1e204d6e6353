//! What there is to know about runs beyond their rows: their logs, read from executors and kept by us.

mod keep;
pub mod log;

pub use keep::{Ended, LogKeeper, ended};
