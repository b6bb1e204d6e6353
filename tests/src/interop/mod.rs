//! Third-party clients with a real centre: executors built on their libraries, and scripts that manage jobs.
//!
//! Their programs are in `tests/interop`; `scripts/interop` installs them. The centre is controlled through
//! XXL-JOB's web API only, as its users do.

mod client;
mod program;
mod script;
mod stage;

pub use client::Client;
pub use program::Program;
pub use script::{JobForm, Killed, Log, Run, Script};
pub use stage::Stage;

use std::time::Duration;

use anyhow::Result;

use crate::process::until_each;

/// Polls a centre or a program's output until a condition holds.
pub async fn patiently<T>(what: &str, look: impl AsyncFnMut() -> Option<T>) -> Result<T> {
    within(PATIENCE, what, look).await
}

/// The same with an explicit limit.
pub async fn within<T>(limit: Duration, what: &str, look: impl AsyncFnMut() -> Option<T>) -> Result<T> {
    until_each(LOOK, what, limit, look).await
}

/// Each poll is a request to a centre that shares two cores with the clients.
const LOOK: Duration = Duration::from_millis(100);

/// A client that keeps results retries every 30 s, and on a busy machine a program takes a minute to start.
const PATIENCE: Duration = Duration::from_secs(180);
