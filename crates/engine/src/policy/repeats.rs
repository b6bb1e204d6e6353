//! Grouping of repeated alerts: the first is notified immediately, repeats with increasing intervals.

use std::time::Duration;

/// Grouping windows: within one, the same problem of the same job is added to the existing alert and not notified
/// again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeats {
    /// Window of the first alert.
    pub first: Duration,
    /// Maximum window.
    pub most: Duration,
}

impl Repeats {
    /// One minute, doubling with each consecutive alert up to one hour.
    pub const USUAL: Repeats = Repeats { first: Duration::from_secs(60), most: Duration::from_secs(60 * 60) };

    /// Window of the `step`-th consecutive alert, from 0.
    pub fn window(&self, step: u32) -> Duration {
        self.first.saturating_mul(1 << step.min(16)).min(self.most)
    }

    /// Step of a new alert that occurs `since` the last occurrence of the previous one, which had step `step`: the
    /// next step while the problem continues, 0 after a pause longer than the window.
    pub fn next_step(&self, step: u32, since: Duration) -> u32 {
        if since <= self.window(step) { step.saturating_add(1) } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_on_is_told_less_and_less_often() {
        let minutes: Vec<u64> = (0..8).map(|step| Repeats::USUAL.window(step).as_secs() / 60).collect();
        assert_eq!(minutes, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(Repeats::USUAL.window(u32::MAX), Repeats::USUAL.most);
    }

    #[test]
    fn a_break_begins_a_new_row() {
        let check = |step, seconds, expected| {
            assert_eq!(Repeats::USUAL.next_step(step, Duration::from_secs(seconds)), expected);
        };
        check(0, 60, 1);
        check(0, 61, 0);
        check(2, 240, 3);
        check(2, 241, 0);
        check(u32::MAX, 1, u32::MAX);
    }
}
