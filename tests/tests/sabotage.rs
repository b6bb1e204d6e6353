//! Shows that the simulation finds what it is there to find: each deliberate bug is caught.
#![cfg(feature = "sabotage")]

use engine::{Bugs, Sabotage};
use tickwright_tests::sim::{Setup, simulate};

/// The bugs that are caught, and within how many seeds.
const BUGS: [(Sabotage, u64); 11] = [
    (Sabotage::AdvanceWithoutRow, 300),
    (Sabotage::AckBeforeCommit, 300),
    (Sabotage::NoFencing, 300),
    (Sabotage::ResendWithNewId, 300),
    (Sabotage::OwnClock, 300),
    (Sabotage::RescueWithoutProbe, 300),
    (Sabotage::StopWithoutConfirm, 300),
    (Sabotage::SilentMisfire, 300),
    (Sabotage::NextFromNow, 300),
    (Sabotage::SendEarly, 300),
    (Sabotage::OneRetryTooMany, 300),
];

#[test]
fn every_deliberate_bug_is_caught() {
    let mut escaped = Vec::new();
    for (bug, within) in BUGS {
        let bugs = Bugs::with(bug);
        let caught = (0..within).find_map(|seed| {
            let outcome = simulate(Setup { seed, bugs, ..Setup::default() });
            outcome.violations.into_iter().next().map(|violation| (seed, violation))
        });
        match caught {
            Some((seed, violation)) => {
                println!("caught {bug:?} at seed #{seed} ({}: {})", violation.promise, violation.evidence);
            }
            None => escaped.push(bug),
        }
    }
    assert!(escaped.is_empty(), "not caught: {escaped:?}");
}
