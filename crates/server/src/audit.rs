//! Append-only audit log of actions and rejected requests.
//!
//! Actions of authenticated callers are always recorded. For rejected strangers and for results of foreign runs
//! the number is bounded, because a flood of them would fill the database: in total, and for each network, so that a
//! flood from one does not hide what others do. The next entry contains the number of omitted ones.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use store::{AuditEntry, Database};
use timer::Clock;

use crate::rate::{Bucket, Rates};
use crate::users::network;

/// The audit log.
pub struct Audit {
    clock: Arc<dyn Clock>,
    database: Arc<Database>,
    strangers: Mutex<Budget>,
    /// Separate budget, so that strangers cannot use up the entries for callers with a token.
    foreign_results: Mutex<Budget>,
}

/// Limits the number of entries of one kind.
struct Budget {
    /// Entries of each network.
    each: Rates,
    /// Entries of all networks.
    entries: Bucket,
    /// Entries omitted since the last recorded one.
    left_out: u64,
}

impl Audit {
    /// Audit log in a database.
    pub fn new(clock: Arc<dyn Clock>, database: Arc<Database>) -> Audit {
        Audit { clock, database, strangers: Budget::new(), foreign_results: Budget::new() }
    }

    /// Records an action of an authenticated caller, successful or rejected.
    pub async fn record(&self, entry: AuditEntry) {
        self.record_all(&[entry]).await;
    }

    /// Records all actions of one request.
    pub async fn record_all(&self, entries: &[AuditEntry]) {
        for entries in entries.chunks(ENTRIES_MAX) {
            let Some(first) = entries.first() else { return };
            if let Err(error) = self.database.append_audit(entries).await {
                let (AuditEntry { principal: who, action, .. }, lost) = (first, entries.len());
                tracing::error!(%error, who, action, lost, "failed to write the audit log; these entries are lost");
            }
        }
    }

    /// Records a rejected request of a stranger, within the budget for strangers.
    pub async fn refused(&self, entry: AuditEntry) {
        self.record_within(&self.strangers, entry).await;
    }

    /// Records results that an executor reported for runs of a foreign app, within their own budget.
    pub async fn foreign_results(&self, entry: AuditEntry) {
        self.record_within(&self.foreign_results, entry).await;
    }

    async fn record_within(&self, budget: &Mutex<Budget>, mut entry: AuditEntry) {
        let from = entry.ip.parse().ok();
        let admitted =
            budget.lock().expect("no holder of this lock panics").admit(from, self.clock.monotonic());
        let Some(left_out) = admitted else { return };
        if left_out > 0 {
            entry.after = Some(format!("{left_out} refused requests before this one were not recorded"));
        }
        self.record(entry).await;
    }
}

impl Budget {
    fn new() -> Mutex<Budget> {
        let entries = Bucket::new(EVERY, EVERY * BURST, Duration::ZERO);
        let each = Rates::of(Bucket::new(EACH_EVERY, EACH_EVERY * EACH_BURST, Duration::ZERO));
        Mutex::new(Budget { each, entries, left_out: 0 })
    }

    /// Whether one more entry about this address fits; if so, returns the number omitted since the last one.
    fn admit(&mut self, from: Option<IpAddr>, now: Duration) -> Option<u64> {
        if self.each.turn(from.map(network), now).is_none() || self.entries.take(now).is_none() {
            self.left_out += 1;
            return None;
        }
        Some(std::mem::take(&mut self.left_out))
    }
}

/// Builds an audit entry: API, caller, address, action and result.
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

/// Entries written per transaction, so that a request about many jobs does not delay others.
const ENTRIES_MAX: usize = 500;

/// Interval at which a budget admits one entry.
const EVERY: Duration = Duration::from_secs(1);

/// Entries admitted at once after a quiet time: enough to see an attacker's attempts.
const BURST: u32 = 60;

/// Interval at which the budget of one network admits one entry.
const EACH_EVERY: Duration = Duration::from_secs(5);

/// Entries of one network admitted at once: a third, so that others have the rest.
const EACH_BURST: u32 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_counted_and_not_kept() {
        let budget = Budget::new();
        let mut budget = budget.lock().unwrap();
        let now = Duration::ZERO;
        let mut last = 0_u32;
        // Each from a network of its own.
        let mut next = || {
            last += 1;
            Some(IpAddr::from((last << 8).to_be_bytes()))
        };
        // Of a thousand networks some share a budget by chance, but not with twenty others.
        let kept = (0..1_000).filter(|_| budget.admit(next(), now).is_some()).count();
        assert_eq!(kept, BURST as usize + 1);
        assert_eq!(budget.admit(next(), now + EVERY), Some(1_000 - u64::from(BURST) - 1));
        assert_eq!(budget.admit(next(), now + EVERY), None);
        assert_eq!(budget.admit(next(), now + EVERY * 3), Some(1));
    }

    #[test]
    fn a_flood_from_one_network_leaves_the_entries_of_others() {
        let budget = Budget::new();
        let mut budget = budget.lock().unwrap();
        let flood = |budget: &mut Budget, now| {
            (0..1_000).filter(|_| budget.admit(Some([203, 0, 113, 1].into()), now).is_some()).count()
        };
        assert_eq!(flood(&mut budget, Duration::ZERO), EACH_BURST as usize + 1);
        for minute in 1..10 {
            let now = Duration::from_secs(60 * minute);
            assert!(flood(&mut budget, now) <= EACH_BURST as usize + 1);
            assert!(budget.admit(Some([198, 51, 100, 1].into()), now).is_some());
        }
    }
}
