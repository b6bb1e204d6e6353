//! Record of all run requests that executors received, with times; tests check guarantees against it.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use protocol::xxl::TriggerRequest;

/// A run request that an executor accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Id of the run.
    pub run: i64,
    /// Id of the job.
    pub job: i64,
    /// Scheduled time, in milliseconds.
    pub scheduled_ms: i64,
    /// Index of the shard.
    pub shard: i32,
    /// Time at which the request had arrived completely, in microseconds of the system clock.
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

    /// Lateness in microseconds; negative if early.
    pub fn lateness_us(&self) -> i64 {
        self.arrived_us - self.scheduled_ms * 1_000
    }
}

/// Requests accepted by all executors of a test, in the order of arrival. Clones share the journal.
#[derive(Clone, Debug, Default)]
pub struct Journal(Arc<Mutex<Pages>>);

#[derive(Debug, Default)]
struct Pages {
    entries: Vec<Entry>,
    /// Runs with a result confirmed by a centre.
    acknowledged: HashSet<i64>,
}

impl Journal {
    pub(super) fn take(&self, entry: Entry) {
        self.pages().entries.push(entry);
    }

    pub(super) fn acknowledge(&self, runs: impl IntoIterator<Item = i64>) {
        self.pages().acknowledged.extend(runs);
    }

    /// Number of accepted requests.
    pub fn len(&self) -> usize {
        self.pages().entries.len()
    }

    /// Whether no request was accepted.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of confirmed results.
    pub fn acknowledged_count(&self) -> usize {
        self.pages().acknowledged.len()
    }

    /// Runs with a confirmed result.
    pub fn acknowledged(&self) -> HashSet<i64> {
        self.pages().acknowledged.clone()
    }

    /// All entries so far.
    pub fn entries(&self) -> Vec<Entry> {
        self.pages().entries.clone()
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Time of the system clock, in microseconds.
pub fn micros_now() -> i64 {
    #[expect(
        clippy::disallowed_methods,
        reason = "a witness has a clock of its own, finer than the one it is to judge"
    )]
    let now = SystemTime::now();
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
