//! Who did what, and who was refused, on a record that is only added to.
//!
//! What somebody does who was recognised is always on it. Of strangers a bounded number is: else whoever can reach us
//! could fill the database. How many are not is said by the next that is.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use store::{AuditEntry, Database};
use timer::Clock;

/// The record.
pub struct Audit {
    clock: Arc<dyn Clock>,
    database: Arc<dyn Database>,
    strangers: Mutex<Strangers>,
}

/// What of strangers may still be put on record.
#[derive(Default)]
struct Strangers {
    /// Entries made ahead of their time, if one came each [`EVERY`].
    next: Duration,
    /// Left out since the last that was not.
    left_out: u64,
}

impl Audit {
    /// The record of a database.
    pub fn new(clock: Arc<dyn Clock>, database: Arc<dyn Database>) -> Audit {
        Audit { clock, database, strangers: Mutex::default() }
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

    /// Puts on record that somebody was refused whom nobody knows.
    pub async fn refused(&self, mut entry: AuditEntry) {
        let Some(left_out) = self.admit(self.clock.monotonic()) else { return };
        if left_out > 0 {
            entry.after = Some(format!("{left_out} refusals before this one are not on record"));
        }
        self.record(entry).await;
    }

    /// Whether there is room for one more, and how many there was none for since the last.
    fn admit(&self, now: Duration) -> Option<u64> {
        // As if there had been a quiet time before the clock began.
        let now = now + EVERY * BURST;
        let mut strangers = self.strangers.lock().expect("no holder of this lock panics");
        let next = strangers.next.max(now.saturating_sub(EVERY * BURST));
        if next > now {
            strangers.left_out += 1;
            return None;
        }
        strangers.next = next + EVERY;
        Some(std::mem::take(&mut strangers.left_out))
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

/// One refusal of a stranger is put on record in this time,
const EVERY: Duration = Duration::from_secs(1);

/// and so many at once after a quiet time: enough to see what somebody tries.
const BURST: u32 = 60;

#[cfg(test)]
mod tests {
    use super::*;
    use timer::SystemClock;

    #[test]
    fn a_flood_of_strangers_is_counted_and_not_kept() {
        let clock = Arc::new(SystemClock::new());
        let database = Arc::new(store::SqliteStore::in_memory(clock.clone()).unwrap());
        let audit = Audit::new(clock, database);
        let now = Duration::ZERO;
        let kept = (0..1_000).filter(|_| audit.admit(now).is_some()).count();
        assert_eq!(kept, BURST as usize + 1);
        assert_eq!(audit.admit(now + EVERY), Some(1_000 - u64::from(BURST) - 1));
        assert_eq!(audit.admit(now + EVERY), None);
        assert_eq!(audit.admit(now + EVERY * 3), Some(1));
    }
}
