//! Dispatch delay of this node's runs per minute, for the last day. Held in memory, for display only.

use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::time::Duration;

use timer::Timestamp;

/// Counts of runs by dispatch delay.
pub struct Lateness {
    minutes: Vec<Minute>,
}

struct Minute {
    /// Number of the minute since 1970.
    number: AtomicI64,
    /// Runs not later than each of [`EDGES_MS`]; the last counts those later than all.
    counts: [AtomicU32; EDGES_MS.len() + 1],
}

impl Lateness {
    /// Creates empty counts.
    pub fn new() -> Lateness {
        let empty = || Minute { number: AtomicI64::new(i64::MIN), counts: Default::default() };
        Lateness { minutes: (0..MINUTES).map(|_| empty()).collect() }
    }

    /// Records the dispatch of a run. Called for every run, so it takes no lock: if two runs begin a minute at once,
    /// one may not be counted.
    pub fn note(&self, now: Timestamp, late: Duration) {
        let number = minute_of(now);
        let minute = &self.minutes[usize::try_from(number.rem_euclid(MINUTES as i64)).unwrap_or(0)];
        if minute.number.swap(number, Ordering::Relaxed) != number {
            minute.counts.iter().for_each(|count| count.store(0, Ordering::Relaxed));
        }
        let millis = late.as_millis();
        let bin = EDGES_MS.iter().position(|edge| millis <= u128::from(*edge)).unwrap_or(EDGES_MS.len());
        minute.counts[bin].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the 50th and 99th percentile of the delay in a time range, in milliseconds. `None` without runs.
    pub fn between(&self, from: Timestamp, until: Timestamp) -> (Option<f64>, Option<f64>) {
        let last = minute_of(Timestamp::from_millis(until.as_millis() - 1));
        let wanted = minute_of(from)..=last.max(minute_of(from));
        let mut sums = [0_u64; EDGES_MS.len() + 1];
        for minute in self.minutes.iter().filter(|m| wanted.contains(&m.number.load(Ordering::Relaxed))) {
            for (sum, count) in sums.iter_mut().zip(&minute.counts) {
                *sum += u64::from(count.load(Ordering::Relaxed));
            }
        }
        (quantile(&sums, 50), quantile(&sums, 99))
    }
}

fn minute_of(at: Timestamp) -> i64 {
    at.as_millis().div_euclid(60_000)
}

/// Returns the first edge that covers this percentage of runs.
fn quantile(sums: &[u64], percent: u64) -> Option<f64> {
    let all: u64 = sums.iter().sum();
    let wanted = (all * percent).div_ceil(100);
    let mut seen = 0;
    let bin = sums.iter().position(|sum| {
        seen += sum;
        all > 0 && seen >= wanted
    })?;
    Some(EDGES_MS.get(bin).map_or(BEYOND_MS, |edge| f64::from(*edge)))
}

/// One day.
const MINUTES: usize = 24 * 60;

/// We guarantee milliseconds; seconds are trouble.
const EDGES_MS: [u32; 12] = [1, 2, 5, 10, 20, 50, 100, 250, 500, 1_000, 5_000, 60_000];

/// Shown for runs later than all edges, even if it was hours.
const BEYOND_MS: f64 = 3_600_000.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_is_told_for_each_time_apart() {
        let lateness = Lateness::new();
        let at = |minute: i64| Timestamp::from_millis(minute * 60_000);
        for _ in 0..99 {
            lateness.note(at(10), Duration::from_micros(700));
        }
        lateness.note(at(10), Duration::from_millis(30));
        lateness.note(at(11), Duration::from_secs(7_200));
        assert_eq!(lateness.between(at(10), at(11)), (Some(1.0), Some(1.0)));
        assert_eq!(lateness.between(at(10), at(12)), (Some(1.0), Some(50.0)));
        assert_eq!(lateness.between(at(11), at(11)), (Some(BEYOND_MS), Some(BEYOND_MS)));
        assert_eq!(lateness.between(at(12), at(20)), (None, None));
        // A day later the same slot is another minute.
        lateness.note(at(10 + 24 * 60), Duration::from_millis(2));
        assert_eq!(lateness.between(at(10), at(11)), (None, None));
    }
}
