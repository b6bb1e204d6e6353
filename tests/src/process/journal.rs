//! What executors were asked to do, and when: the witness.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use protocol::xxl::TriggerRequest;

/// One request to run that an executor took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The run.
    pub run: i64,
    /// Its job.
    pub job: i64,
    /// The instant it stands for, in milliseconds.
    pub scheduled_ms: i64,
    /// Which shard it is.
    pub shard: i32,
    /// When the whole request was there, in microseconds by the system's clock.
    pub arrived_us: i64,
}

impl Entry {
    pub(super) fn new(request: &TriggerRequest, arrived_us: i64) -> Entry {
        Entry {
            run: request.log_id,
            job: request.job_id,
            scheduled_ms: request.log_date_time,
            shard: request.broadcast_index,
            arrived_us,
        }
    }

    /// How late it came, in microseconds; negative if early.
    pub fn lateness_us(&self) -> i64 {
        self.arrived_us - self.scheduled_ms * 1_000
    }
}

/// What all executors of a test took, in the order of arrival. Clones are the same journal.
#[derive(Clone, Debug, Default)]
pub struct Journal(Arc<Mutex<Pages>>);

#[derive(Debug, Default)]
struct Pages {
    entries: Vec<Entry>,
    /// Runs whose result a centre has acknowledged.
    acknowledged: HashSet<i64>,
}

impl Journal {
    pub(super) fn take(&self, entry: Entry) {
        self.pages().entries.push(entry);
    }

    pub(super) fn acknowledge(&self, runs: impl IntoIterator<Item = i64>) {
        self.pages().acknowledged.extend(runs);
    }

    /// How many requests were taken.
    pub fn len(&self) -> usize {
        self.pages().entries.len()
    }

    /// Whether nothing was taken.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many results were acknowledged.
    pub fn acknowledged_count(&self) -> usize {
        self.pages().acknowledged.len()
    }

    /// The runs whose result was acknowledged.
    pub fn acknowledged(&self) -> HashSet<i64> {
        self.pages().acknowledged.clone()
    }

    /// Everything so far.
    pub fn entries(&self) -> Vec<Entry> {
        self.pages().entries.clone()
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The system's clock, in microseconds.
pub fn micros_now() -> i64 {
    #[expect(
        clippy::disallowed_methods,
        reason = "a witness has a clock of its own, finer than the one it is to judge"
    )]
    let now = SystemTime::now();
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
