//! Who did what, and who was refused, on a record that is only added to.
//!
//! What somebody does who was recognised is always on it. Of refused strangers and of results for foreign runs a bounded
//! number is, because a flood of them would fill the database. The next entry says how many were left out.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use store::{AuditEntry, Database};
use timer::Clock;

/// The record.
pub struct Audit {
    clock: Arc<dyn Clock>,
    database: Arc<dyn Database>,
    strangers: Mutex<Budget>,
    /// A budget of its own, so that strangers cannot use up the room for what the holder of a token does.
    foreign_results: Mutex<Budget>,
}

/// How many more entries of a kind may be recorded.
#[derive(Default)]
struct Budget {
    /// Entries made ahead of their time, if one came each [`EVERY`].
    next: Duration,
    /// Left out since the last that was not.
    left_out: u64,
}

impl Audit {
    /// The record of a database.
    pub fn new(clock: Arc<dyn Clock>, database: Arc<dyn Database>) -> Audit {
        Audit { clock, database, strangers: Mutex::default(), foreign_results: Mutex::default() }
    }

    /// Puts on record what somebody did who was recognised, or was refused.
    pub async fn record(&self, entry: AuditEntry) {
        self.record_all(&[entry]).await;
    }

    /// The same for all that one request did.
    pub async fn record_all(&self, entries: &[AuditEntry]) {
        let Some(first) = entries.first() else { return };
        if let Err(error) = self.database.append_audit(entries).await {
            let AuditEntry { principal: who, action, .. } = first;
            tracing::error!(%error, who, action, "could not put on record what was done");
        }
    }

    /// Records that a stranger was refused, within the budget for strangers.
    pub async fn refused(&self, entry: AuditEntry) {
        self.record_within(&self.strangers, entry).await;
    }

    /// Records results that an executor reported for runs of a foreign app, within a budget of their own.
    pub async fn foreign_results(&self, entry: AuditEntry) {
        self.record_within(&self.foreign_results, entry).await;
    }

    async fn record_within(&self, budget: &Mutex<Budget>, mut entry: AuditEntry) {
        let admitted = budget.lock().expect("no holder of this lock panics").admit(self.clock.monotonic());
        let Some(left_out) = admitted else { return };
        if left_out > 0 {
            entry.after = Some(format!("{left_out} refusals before this one are not on record"));
        }
        self.record(entry).await;
    }
}

impl Budget {
    /// Whether there is room for one more, and how many there was none for since the last.
    fn admit(&mut self, now: Duration) -> Option<u64> {
        // As if there had been a quiet time before the clock began.
        let now = now + EVERY * BURST;
        let next = self.next.max(now.saturating_sub(EVERY * BURST));
        if next > now {
            self.left_out += 1;
            return None;
        }
        self.next = next + EVERY;
        Some(std::mem::take(&mut self.left_out))
    }
}

/// What came of something that somebody asked for, through which door and from where.
pub fn entry(
    plane: &str,
    who: &str,
    from: IpAddr,
    action: impl Into<String>,
    result: impl Into<String>,
) -> AuditEntry {
    AuditEntry {
        principal: who.into(),
        plane: plane.into(),
        ip: from.to_string(),
        action: action.into(),
        result: result.into(),
        ..AuditEntry::default()
    }
}

/// One entry of a budget is recorded in this time.
const EVERY: Duration = Duration::from_secs(1);

/// Entries recorded at once after a quiet time: enough to see what a caller tries.
const BURST: u32 = 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_counted_and_not_kept() {
        let mut budget = Budget::default();
        let now = Duration::ZERO;
        let kept = (0..1_000).filter(|_| budget.admit(now).is_some()).count();
        assert_eq!(kept, BURST as usize + 1);
        assert_eq!(budget.admit(now + EVERY), Some(1_000 - u64::from(BURST) - 1));
        assert_eq!(budget.admit(now + EVERY), None);
        assert_eq!(budget.admit(now + EVERY * 3), Some(1));
    }
}
