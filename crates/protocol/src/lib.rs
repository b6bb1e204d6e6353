//! Wire types between the scheduling centre, executors and tools.
//!
//! Types and pure functions only: no I/O, no clock. [`v1`] holds the types of our own API, [`xxl`] those of
//! XXL-JOB's protocol, [`declare`] the one call that our executors add to it. Every crate converts them to its own
//! types where it receives them.

pub mod declare;
pub mod v1;
pub mod xxl;

/// Request header with the attempt number of a run, counted from 1. Only Tickwright's own scheduling centre sends
/// it.
///
/// It is a header because some executors reject a trigger request with an unknown field.
pub const ATTEMPT_HEADER: &str = "Tickwright-Attempt";
