//! What do we say? The words between the scheduling centre, executors and tools.
//!
//! Types and pure functions; nobody here opens a socket or reads a clock. [`v1`] holds the words of our own
//! API, [`xxl`] those of XXL-JOB's protocol, [`declare`] what our executors tell our centre beyond that; every crate
//! turns them into its own at the door.

pub mod declare;
pub mod v1;
pub mod xxl;

/// Request header in which Tickwright's own centre says which attempt of a fire this is, counted from 1.
///
/// The trigger request itself has no room for it: some executors refuse a field they do not know.
pub const ATTEMPT_HEADER: &str = "Tickwright-Attempt";
