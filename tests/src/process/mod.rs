//! Real processes: centres that are killed and paused, databases that are cut off, executors that misbehave.
//!
//! Only the executors' journals count as evidence. They are kept in the test process, outside of everything that is
//! broken, and compared with schedules computed independently of the centre.

mod at_rest;
mod centre;
mod checker;
mod cluster;
mod database_server;
mod degraded;
mod disk;
mod executor;
mod flows;
pub(crate) mod http;
mod journal;
mod members;
mod moving;
mod output;
mod proxy;
mod reporter;
mod stalls;
mod standby;
mod takeover;
mod workload;

pub use at_rest::{AtRest, Resting};
pub use centre::{Centre, Usage, binary, signal};
pub use checker::{Check, Timing, percentile};
pub use cluster::{Cluster, Nodes, free_address};
pub use database_server::DatabaseServer;
pub use degraded::{Degradation, DegradedServer};
pub use disk::Disk;
pub use executor::{JournalExecutor, Mood};
pub use flows::Flow;
pub use http::{Message, Wire};
pub use journal::{Entry, Journal, micros_now};
pub use members::{Members, Replicated};
pub use moving::{MoveIn, Others, import_at_once, move_in, plain_rows};
pub use output::Output;
pub use proxy::{NetworkCondition, Proxy};
pub use stalls::{STOP_GUARANTEED, stalls};
pub use takeover::{Takeover, take_over};
pub use workload::{Phases, Template, Workload};

use std::time::Duration;

use anyhow::{Result, bail};

/// Polls frequently until a condition holds; the error names the condition.
pub async fn until<T>(what: &str, within: Duration, look: impl AsyncFnMut() -> Option<T>) -> Result<T> {
    until_each(LOOK, what, within, look).await
}

/// The same with a longer interval, for expensive conditions.
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
