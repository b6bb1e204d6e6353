//! Complaints about the database: each failed call is logged, except that a full disk, which every call meets until a
//! person makes room, is logged once in a while.

use std::time::Duration;

use crate::engine::Engine;
use crate::ports::StoreError;

/// When the database was found to have no room.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Full {
    seen_at: Duration,
    told_at: Duration,
}

impl Engine {
    /// Logs that a call has failed, and when it is tried again.
    pub(crate) fn complain(&self, error: &StoreError, what: &str, again: Duration) {
        let StoreError::DiskFull(reason) = error else {
            tracing::warn!(%error, "{what}; trying again in {again:?}");
            return;
        };
        let now = self.inner.clock.monotonic();
        let mut full = self.inner.full.lock().expect("no holder of this lock panics");
        let told_at = full.filter(|full| now - full.told_at < TELL_AGAIN && now - full.seen_at < FULL_FOR);
        if told_at.is_none() {
            tracing::error!(
                reason,
                "the disk of the database is full: nothing is scheduled or recorded until there is room"
            );
        }
        *full = Some(Full { seen_at: now, told_at: told_at.map_or(now, |full| full.told_at) });
    }

    /// Whether the database had no room a moment ago.
    pub(crate) fn is_disk_full(&self) -> bool {
        let full = *self.inner.full.lock().expect("no holder of this lock panics");
        full.is_some_and(|full| self.inner.clock.monotonic() - full.seen_at < FULL_FOR)
    }
}

/// A full disk is met by each heartbeat, so one that was not met for so long has room again.
const FULL_FOR: Duration = Duration::from_secs(3);

/// How often it is logged while it lasts.
const TELL_AGAIN: Duration = Duration::from_secs(60);
