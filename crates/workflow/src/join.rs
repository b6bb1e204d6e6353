//! Join rules: when the ends of its needs open a step.

use crate::definition::Join;

/// Outcome of one connection, once its step has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arrival {
    /// The step succeeded, and the connection's condition is true.
    Taken,
    /// The step was skipped, or the connection's condition is false.
    Skipped,
    /// The step failed, was unreached or was cancelled.
    Failed,
}

/// Counts the connections of a step by their outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tally {
    /// Number of connections whose steps have not ended.
    pub waits: u32,
    /// Number of taken connections.
    pub taken: u32,
    /// Number of skipped connections.
    pub skipped: u32,
    /// Number of failed connections.
    pub failed: u32,
}

impl Tally {
    /// Tally of a step with `needs` connections, none of which has ended.
    pub fn new(needs: usize) -> Tally {
        Tally { waits: u32::try_from(needs).unwrap_or(u32::MAX), ..Tally::default() }
    }

    /// Counts the outcome of a connection.
    pub fn count(&mut self, arrival: Arrival) {
        self.waits = self.waits.saturating_sub(1);
        match arrival {
            Arrival::Taken => self.taken += 1,
            Arrival::Skipped => self.skipped += 1,
            Arrival::Failed => self.failed += 1,
        }
    }
}

/// Decision about a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Decision {
    /// It opens, if its own condition is true.
    Open,
    /// It is skipped.
    Skip,
    /// It can never open.
    Unreached,
}

/// Decides about a step by its join rule; `None` while that depends on connections that have not ended. A decision never
/// changes when more of them end.
pub fn decide(join: Join, tally: Tally) -> Option<Decision> {
    let Tally { waits, taken, skipped, failed } = tally;
    let all_ended = waits == 0;
    match join {
        // A step without needs opens when its phase begins.
        _ if waits + taken + skipped + failed == 0 => Some(Decision::Open),
        Join::Joined => match () {
            () if failed > 0 => Some(Decision::Unreached),
            () if !all_ended => None,
            () if taken > 0 => Some(Decision::Open),
            () => Some(Decision::Skip),
        },
        // A failure decides even if it comes after a skip, so the last end decides between the two.
        Join::AllSucceeded => match () {
            () if failed > 0 => Some(Decision::Unreached),
            () if !all_ended => None,
            () if skipped > 0 => Some(Decision::Skip),
            () => Some(Decision::Open),
        },
        Join::AllEnded => all_ended.then_some(Decision::Open),
        Join::AnySucceeded => match () {
            () if taken > 0 => Some(Decision::Open),
            () if !all_ended => None,
            () if failed > 0 => Some(Decision::Unreached),
            () => Some(Decision::Skip),
        },
        Join::AnyFailed => match () {
            () if failed > 0 => Some(Decision::Open),
            () => all_ended.then_some(Decision::Skip),
        },
        Join::AtLeast(count) => match () {
            () if taken >= count => Some(Decision::Open),
            () if taken + waits < count => Some(Decision::Unreached),
            () => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every rule with every combination of three ends: T taken, S skipped, F failed, - not ended yet.
    #[test]
    fn each_rule_decides_as_documented() {
        use Decision::{Open, Skip, Unreached};
        type Expected<'a> = &'a dyn Fn(usize, usize, usize) -> Option<Decision>;
        let rules: [(Join, Expected<'_>); 6] = [
            (Join::Joined, &|t, s, f| match (t, s, f) {
                (_, _, 1..) => Some(Unreached),
                (0, 3, 0) => Some(Skip),
                _ if t + s == 3 => Some(Open),
                _ => None,
            }),
            (Join::AllSucceeded, &|t, s, f| match (t, s, f) {
                (_, _, 1..) => Some(Unreached),
                (3, 0, 0) => Some(Open),
                _ if t + s == 3 => Some(Skip),
                _ => None,
            }),
            (Join::AllEnded, &|t, s, f| (t + s + f == 3).then_some(Open)),
            (Join::AnySucceeded, &|t, s, f| match (t, s, f) {
                (1.., ..) => Some(Open),
                (0, 3, 0) => Some(Skip),
                _ if s + f == 3 => Some(Unreached),
                _ => None,
            }),
            (Join::AnyFailed, &|t, s, f| match (t, s, f) {
                (_, _, 1..) => Some(Open),
                _ if t + s == 3 => Some(Skip),
                _ => None,
            }),
            (Join::AtLeast(2), &|t, s, f| match (t, s, f) {
                (2.., ..) => Some(Open),
                _ if s + f >= 2 => Some(Unreached),
                _ => None,
            }),
        ];
        let ends = [None, Some(Arrival::Taken), Some(Arrival::Skipped), Some(Arrival::Failed)];
        for (join, expected) in rules {
            for three in (0..64).map(|n| [ends[n % 4], ends[n / 4 % 4], ends[n / 16]]) {
                let mut tally = Tally::new(3);
                three.into_iter().flatten().for_each(|arrival| tally.count(arrival));
                let count = |arrival| three.iter().filter(|end| **end == Some(arrival)).count();
                let counts = (count(Arrival::Taken), count(Arrival::Skipped), count(Arrival::Failed));
                assert_eq!(decide(join, tally), expected(counts.0, counts.1, counts.2), "{join:?} {three:?}");
            }
        }
    }

    #[test]
    fn a_decision_stays_when_more_ends_arrive() {
        let joins = [Join::Joined, Join::AllSucceeded, Join::AllEnded, Join::AnySucceeded, Join::AnyFailed];
        for join in joins.into_iter().chain((1..=4).map(Join::AtLeast)) {
            for order in 0..81_usize {
                let mut tally = Tally::new(4);
                let mut decided = decide(join, tally);
                for place in 0..4_u32 {
                    let arrivals = [Arrival::Taken, Arrival::Skipped, Arrival::Failed];
                    tally.count(arrivals[order / 3_usize.pow(place) % 3]);
                    let now = decide(join, tally);
                    assert!(
                        decided.is_none() || decided == now,
                        "{join:?} {order} {tally:?}: {decided:?} → {now:?}"
                    );
                    decided = now;
                }
                assert!(decided.is_some(), "{join:?} stays undecided: {tally:?}");
            }
        }
    }

    #[test]
    fn a_step_without_needs_opens_at_once() {
        for join in [Join::Joined, Join::AllEnded, Join::AnyFailed, Join::AtLeast(1)] {
            assert_eq!(decide(join, Tally::new(0)), Some(Decision::Open));
        }
    }
}
