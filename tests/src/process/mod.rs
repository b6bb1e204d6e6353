//! Real processes: centres that are killed and paused, databases that are cut off, executors that misbehave.
//!
//! The executors' journals are the only witness. They live in the process of the test, outside of everything that is
//! broken, and what they hold is compared with schedules computed apart from the centre.

mod centre;
mod checker;
mod database_server;
mod disk;
mod executor;
pub(crate) mod http;
mod journal;
mod output;
mod proxy;
mod reporter;
mod sickness;
mod town;
mod workload;

pub use centre::{Centre, Usage, binary, signal};
pub use checker::{Check, Timing, percentile};
pub use database_server::DatabaseServer;
pub use disk::Disk;
pub use executor::{JournalExecutor, Mood};
pub use http::{Message, Wire};
pub use journal::{Entry, Journal, micros_now};
pub use output::Output;
pub use proxy::{Proxy, Weather};
pub use sickness::{Illness, Sickness};
pub use town::{Nodes, Town, free_address};
pub use workload::{Phases, Template, Workload};

use std::time::Duration;

use anyhow::{Result, bail};

/// Waits for something to be so, looking often; an error names what did not come.
pub async fn until<T>(what: &str, within: Duration, look: impl AsyncFnMut() -> Option<T>) -> Result<T> {
    until_each(LOOK, what, within, look).await
}

/// The same, for what costs more to look at.
pub async fn until_each<T>(
    pause: Duration,
    what: &str,
    within: Duration,
    mut look: impl AsyncFnMut() -> Option<T>,
) -> Result<T> {
    let deadline = tokio::time::Instant::now() + within;
    loop {
        if let Some(found) = look().await {
            return Ok(found);
        }
        if tokio::time::Instant::now() >= deadline {
            bail!("waited {within:?} until {what}");
        }
        tokio::time::sleep(pause).await;
    }
}

const LOOK: Duration = Duration::from_millis(10);
