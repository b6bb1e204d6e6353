//! B1 to B5: backfills in simulated clusters with all faults, beside the users and schedules of the other simulations.

use std::sync::Mutex;

use tickwright_tests::for_each;
use tickwright_tests::sim::{Counts, Setup, simulate};

#[test]
fn every_scheduled_time_runs_once_and_every_backfill_ends() {
    let (failures, counts) = (Mutex::new(Vec::new()), Mutex::new(Counts::default()));
    for_each(0, SEEDS, |seed| {
        let outcome = simulate(Setup { seed, backfills: true, ..Setup::default() });
        counts.lock().unwrap().add(&outcome.counts);
        if !outcome.violations.is_empty() {
            failures.lock().unwrap().push((seed, outcome.violations));
        }
        true
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} seeds, first {:#?}", failures.len(), failures[0]);
    let counts = counts.into_inner().unwrap();
    let checked = |promise: &str| counts.checked.get(promise).copied().unwrap_or(0);
    println!("{} backfills, {} scheduled times", checked("B5"), checked("B1"));
    assert!(checked("B1") > 10 * SEEDS, "{} scheduled times: too little was simulated", checked("B1"));
}

#[test]
#[cfg(feature = "sabotage")]
fn a_place_that_is_given_twice_is_noticed() {
    use engine::{Bugs, Sabotage};
    let bugs = Bugs::with(Sabotage::PlaceGivenTwice);
    let caught = (0..WITHIN).find_map(|seed| {
        let outcome = simulate(Setup { seed, bugs, backfills: true, ..Setup::default() });
        outcome.violations.into_iter().next().map(|violation| (seed, violation))
    });
    let (seed, violation) = caught.expect("the bug escapes");
    println!("caught at seed #{seed} ({}: {})", violation.promise, violation.evidence);
    assert!(violation.promise.starts_with('B'), "{violation:?}");
}

/// Number of simulated clusters.
const SEEDS: u64 = 200;

/// The deliberate bug is caught within this many seeds.
#[cfg(feature = "sabotage")]
const WITHIN: u64 = 300;
