//! Logs database errors. Each failed call is logged, with two exceptions that affect every call: a database that does
//! not respond, which the store logs when it begins and ends, and a full disk, which is logged at intervals.

use std::time::Duration;

use crate::engine::Engine;
use crate::ports::StoreError;

/// Times of disk-full errors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Full {
    seen_at: Duration,
    told_at: Duration,
}

impl Engine {
    /// Logs that a call has failed, and when it is retried.
    pub(crate) fn complain(&self, error: &StoreError, what: &str, again: Duration) {
        let StoreError::DiskFull(reason) = error else {
            match error.is_outage() {
                true => tracing::debug!(%error, "{what}; retrying in {again:?}"),
                false => tracing::warn!(%error, "{what}; retrying in {again:?}"),
            }
            return;
        };
        let now = self.inner.clock.monotonic();
        let mut full = self.inner.full.lock().expect("no holder of this lock panics");
        let told_at = full.filter(|full| now - full.told_at < TELL_AGAIN && now - full.seen_at < FULL_FOR);
        if told_at.is_none() {
            tracing::error!(
                reason,
                "the disk of the database is full; no run is scheduled or stored until there is space"
            );
        }
        *full = Some(Full { seen_at: now, told_at: told_at.map_or(now, |full| full.told_at) });
    }

    /// Whether the database disk was full recently.
    pub(crate) fn is_disk_full(&self) -> bool {
        let full = *self.inner.full.lock().expect("no holder of this lock panics");
        full.is_some_and(|full| self.inner.clock.monotonic() - full.seen_at < FULL_FOR)
    }
}

/// Every heartbeat fails on a full disk, so without such an error for this long there is space again.
const FULL_FOR: Duration = Duration::from_secs(3);

/// Interval of log messages while the disk is full.
const TELL_AGAIN: Duration = Duration::from_secs(60);
