//! Decides when executors that stopped sending heartbeats expire.
//!
//! While the database does not answer, heartbeats sent to other nodes cannot be read and ours cannot be stored. That
//! time does not count, or a database outage would expire healthy executors.

use std::time::Duration;

use timer::Timestamp;

/// An executor that has not registered for this long has expired: three heartbeats, as in XXL-JOB.
pub const SILENT_MAX: Duration = Duration::from_secs(90);

/// Time of the current database outage, if any, and the grace period after the last one.
#[derive(Debug, Default)]
pub struct Silence {
    deaf_since: Option<Timestamp>,
    spared: Option<Spared>,
}

/// Grace period after an outage: executors known when it began have until then to send a heartbeat.
#[derive(Debug)]
struct Spared {
    until: Timestamp,
    since: Timestamp,
}

impl Silence {
    /// Records that the database did not answer a query made at `asked_at`.
    pub fn is_deaf(&mut self, asked_at: Timestamp) {
        let since = self.limit(asked_at) + SILENT_MAX;
        self.deaf_since.get_or_insert(since);
    }

    /// Records that the database answered.
    pub fn hears(&mut self, now: Timestamp) {
        if let Some(since) = self.deaf_since.take() {
            self.spared = Some(Spared { until: now + SILENT_MAX, since });
        }
    }

    /// Returns the expiry limit: executors last seen before it have expired.
    pub fn limit(&self, now: Timestamp) -> Timestamp {
        let heard_until = match (self.deaf_since, &self.spared) {
            (Some(since), _) => since,
            (None, Some(spared)) if now < spared.until => spared.since,
            _ => now,
        };
        heard_until - SILENT_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_millis(second * 1_000)
    }

    #[test]
    fn an_outage_counts_for_nobodys_silence() {
        let mut silence = Silence::default();
        assert_eq!(silence.limit(at(1_000)), at(910));
        silence.is_deaf(at(1_000));
        silence.is_deaf(at(1_003));
        assert_eq!(silence.limit(at(1_200)), at(910), "nobody goes while it lasts");
        silence.hears(at(1_300));
        assert_eq!(silence.limit(at(1_389)), at(910), "nor before everybody could be heard again");
        silence.is_deaf(at(1_389));
        silence.hears(at(1_400));
        assert_eq!(silence.limit(at(1_489)), at(910), "one outage soon after another is like one");
        silence.hears(at(1_489));
        assert_eq!(silence.limit(at(1_490)), at(1_400));
    }
}
