//! How late this node's runs left, minute by minute, for the last day. Kept in memory: it is for looking at.

use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::time::Duration;

use timer::Timestamp;

/// Counts of runs by how late they left.
pub struct Lateness {
    minutes: Vec<Minute>,
}

struct Minute {
    /// Which one, since 1970.
    number: AtomicI64,
    /// Runs that were no later than each of [`EDGES_MS`], and later than all.
    counts: [AtomicU32; EDGES_MS.len() + 1],
}

impl Lateness {
    /// Nothing has left yet.
    pub fn new() -> Lateness {
        let empty = || Minute { number: AtomicI64::new(i64::MIN), counts: Default::default() };
        Lateness { minutes: (0..MINUTES).map(|_| empty()).collect() }
    }

    /// A run leaves. Called for every run, so it waits for nobody: of two that begin a minute at once, one may go uncounted.
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

    /// What half of the runs of some time, and 99 of 100, were not later than, in milliseconds. None where none left.
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

/// The first edge that so many of 100 are not beyond.
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

/// A day.
const MINUTES: usize = 24 * 60;

/// Milliseconds are our promise, seconds are trouble.
const EDGES_MS: [u32; 12] = [1, 2, 5, 10, 20, 50, 100, 250, 500, 1_000, 5_000, 60_000];

/// Later than all edges: hours may be meant, an hour is shown.
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
        // A day later the same place is another minute.
        lateness.note(at(10 + 24 * 60), Duration::from_millis(2));
        assert_eq!(lateness.between(at(10), at(11)), (None, None));
    }
}
