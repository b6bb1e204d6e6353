//! Trouble that goes on: told at once, then less and less often.

use std::time::Duration;

/// For how long the same trouble of the same job joins an alert, instead of being told again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeats {
    /// The first alert,
    pub first: Duration,
    /// and any, however long it goes on.
    pub most: Duration,
}

impl Repeats {
    /// A minute, and while it goes on twice as long each time, up to an hour.
    pub const USUAL: Repeats = Repeats { first: Duration::from_secs(60), most: Duration::from_secs(60 * 60) };

    /// For how long others join the alert that is the `step`-th of a row without a break, from 0.
    pub fn window(&self, step: u32) -> Duration {
        self.first.saturating_mul(1 << step.min(16)).min(self.most)
    }

    /// Which step an alert is that comes `since` the last time the alert before it, of that step, happened: the next, if
    /// it goes on, and the first again after a break as long as the window was.
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
