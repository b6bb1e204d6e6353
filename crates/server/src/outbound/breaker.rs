//! Stops calling who does not answer, and asks now and then whether that has changed.
//!
//! A few failures in a row open the breaker; while it is open nobody is sent there. After a pause one call goes
//! through as a probe: its answer closes the breaker, its failure makes the pause longer.

use std::time::Duration;

use tokio::time::Instant;

/// What a breaker is about to do with the next call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerState {
    /// It lets all through.
    Closed,
    /// It lets none through.
    Open,
    /// It lets one through, or is waiting for the answer to that one.
    Probing,
}

/// The breaker of one address. Pure: the caller says what time it is.
#[derive(Debug, Default)]
pub(super) struct Breaker {
    /// Failures in a row.
    failures: u32,
    /// Until when nobody is let through, once there were enough of them.
    open_until: Option<Instant>,
    is_probing: bool,
}

/// How a call may go through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passage {
    Free,
    /// The one call that finds out; whoever holds it must say what came of it.
    Probe,
}

impl Breaker {
    /// Whether a call may pass; if not, for how long nobody may.
    pub(super) fn admit(&mut self, now: Instant) -> Result<Passage, Duration> {
        match self.open_until {
            None => Ok(Passage::Free),
            Some(until) if now < until => Err(until - now),
            Some(_) if self.is_probing => Err(PAUSE_MIN),
            Some(_) => {
                self.is_probing = true;
                Ok(Passage::Probe)
            }
        }
    }

    /// Somebody answered.
    pub(super) fn succeed(&mut self) {
        *self = Breaker::default();
    }

    /// Nobody answered. Calls that left before the breaker opened do not make the pause longer.
    pub(super) fn fail(&mut self, passage: Passage, now: Instant) {
        if passage == Passage::Free && self.open_until.is_some() {
            return;
        }
        self.is_probing = false;
        self.failures = self.failures.saturating_add(1);
        if let Some(beyond) = self.failures.checked_sub(FAILURES_MAX) {
            let pause = PAUSE_MIN * 2_u32.saturating_pow(beyond.min(PAUSE_DOUBLINGS_MAX));
            self.open_until = Some(now + pause);
        }
    }

    /// The probe ended without a verdict: somebody else may try.
    pub(super) fn give_back(&mut self, passage: Passage) {
        if passage == Passage::Probe {
            self.is_probing = false;
        }
    }

    /// There is a sign of life: no need to sit out the pause.
    pub(super) fn hope(&mut self, now: Instant) {
        self.open_until = self.open_until.map(|until| until.min(now));
    }

    pub(super) fn state(&self, now: Instant) -> BreakerState {
        match self.open_until {
            None => BreakerState::Closed,
            Some(until) if now < until => BreakerState::Open,
            Some(_) => BreakerState::Probing,
        }
    }
}

/// One lost packet is no outage; five calls in a row are.
const FAILURES_MAX: u32 = 5;
/// A restart takes a second or so; the first probe should not miss it by much.
const PAUSE_MIN: Duration = Duration::from_millis(500);
/// The longest pause is 16 times the shortest, 8 s: a probe of a dead address is cheap, a late recovery is not.
const PAUSE_DOUBLINGS_MAX: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_opens_after_failures_in_a_row_only() {
        let (mut breaker, now) = (Breaker::default(), Instant::now());
        for _ in 0..10 {
            fail(&mut breaker, FAILURES_MAX - 1, now);
            breaker.succeed();
        }
        assert_eq!(breaker.admit(now), Ok(Passage::Free));
        fail(&mut breaker, FAILURES_MAX, now);
        assert_eq!(breaker.admit(now), Err(PAUSE_MIN));
        assert_eq!(breaker.state(now), BreakerState::Open);
    }

    #[test]
    fn one_probe_at_a_time_decides() {
        let (mut breaker, opened) = (Breaker::default(), Instant::now());
        fail(&mut breaker, FAILURES_MAX, opened);
        let later = opened + PAUSE_MIN;
        assert_eq!(breaker.admit(later), Ok(Passage::Probe));
        assert_eq!(breaker.state(later), BreakerState::Probing);
        assert!(breaker.admit(later).is_err());
        breaker.give_back(Passage::Probe);
        assert_eq!(breaker.admit(later), Ok(Passage::Probe));
        breaker.fail(Passage::Probe, later);
        assert_eq!(breaker.admit(later), Err(PAUSE_MIN * 2));
        assert_eq!(breaker.admit(later + PAUSE_MIN * 2), Ok(Passage::Probe));
        breaker.succeed();
        assert_eq!(breaker.admit(later), Ok(Passage::Free));
    }

    #[test]
    fn pauses_grow_to_a_bound_and_old_failures_do_not_add_to_them() {
        let (mut breaker, now) = (Breaker::default(), Instant::now());
        fail(&mut breaker, 1_000, now);
        assert_eq!(breaker.admit(now), Err(PAUSE_MIN));
        for _ in 0..100 {
            breaker.hope(now);
            assert_eq!(breaker.admit(now), Ok(Passage::Probe));
            breaker.fail(Passage::Probe, now);
        }
        assert_eq!(breaker.admit(now), Err(PAUSE_MIN * 16));
    }

    fn fail(breaker: &mut Breaker, times: u32, now: Instant) {
        for _ in 0..times {
            breaker.fail(Passage::Free, now);
        }
    }
}
