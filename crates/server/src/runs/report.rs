//! Counts the runs of each day, so that the console's chart does not have to.
//!
//! Every node does it at its own times: counting twice changes nothing.

use std::sync::Arc;
use std::time::Duration;

use engine::{Engine, StoreError};
use store::Database;
use timer::Clock;

use crate::warn::warn_store;

/// Counts, forever.
pub async fn count_loop(clock: Arc<dyn Clock>, database: Arc<Database>, engine: Engine) {
    loop {
        let started = clock.monotonic();
        if let Err(error) = count(&database, &engine).await {
            warn_store!(error, "failed to count the runs of the last days; retrying in {EVERY:?}");
        }
        // With very many runs counting takes long; then it is done less often, to remain a small load.
        let took = clock.monotonic() - started;
        let apart = EVERY.mul_f64(fastrand::f64() / 10.0);
        clock.sleep(apart + EVERY.max(took * SHARE)).await;
    }
}

async fn count(database: &Database, engine: &Engine) -> Result<(), StoreError> {
    for days_ago in 0..DAYS {
        database.refresh_report(engine.now() - DAY * days_ago).await?;
    }
    Ok(())
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Same as XXL-JOB.
const EVERY: Duration = Duration::from_secs(60);

/// At most this share (one in …) of the time is spent counting.
const SHARE: u32 = 20;

/// A run may finish days after its start; XXL-JOB looks back as far. A day without open runs is not counted again.
const DAYS: u32 = 3;
