//! Logs when the database stops responding and when it responds again.
//!
//! Every call of the store ends here, so that an outage is one message, however many loops of the centre encounter it.
//! Those log such errors only at the level `debug`.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use engine::StoreError;
use tokio::time::Instant;

/// Whether calls to the database succeed.
#[derive(Default)]
pub struct Health {
    /// Checked after every call, and only written when it changes.
    is_out: AtomicBool,
    outage: Mutex<Option<Outage>>,
}

struct Outage {
    since: Instant,
    failed_calls: u64,
    logged_at: Instant,
}

impl Health {
    /// Takes note of the result of a call.
    pub fn note<T>(&self, result: &Result<T, StoreError>) {
        match result {
            Err(error @ (StoreError::Unavailable(_) | StoreError::CommitUnknown(_))) => self.failed(error),
            // Any other error is an answer of the database.
            Ok(_) | Err(_) => self.answered(),
        }
    }

    fn failed(&self, error: &StoreError) {
        let now = Instant::now();
        let mut outage = self.outage.lock().expect("no holder of this lock panics");
        self.is_out.store(true, Ordering::Relaxed);
        let Some(outage) = &mut *outage else {
            tracing::warn!("{error}; retrying until the database responds");
            *outage = Some(Outage { since: now, failed_calls: 1, logged_at: now });
            return;
        };
        outage.failed_calls += 1;
        if now - outage.logged_at >= LOG_AGAIN {
            outage.logged_at = now;
            let (seconds, calls) = ((now - outage.since).as_secs(), outage.failed_calls);
            tracing::warn!("the database has not responded for {seconds} s ({calls} failed calls): {error}");
        }
    }

    fn answered(&self) {
        if !self.is_out.load(Ordering::Relaxed) {
            return;
        }
        let mut outage = self.outage.lock().expect("no holder of this lock panics");
        self.is_out.store(false, Ordering::Relaxed);
        if let Some(outage) = outage.take() {
            let (seconds, calls) = (outage.since.elapsed().as_secs_f64(), outage.failed_calls);
            tracing::info!("the database responds again after {seconds:.1} s ({calls} failed calls)");
        }
    }
}

/// Interval of the messages during an outage.
const LOG_AGAIN: Duration = Duration::from_secs(60);
