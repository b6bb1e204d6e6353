//! Thousands of simulated clusters, one per seed.
//!
//! `SIM_FROM` is the first seed, `SIM_SEEDS` the number of seeds.

use std::sync::Mutex;

use tickwright_tests::for_each;
use tickwright_tests::sim::{Counts, Setup, simulate};

#[test]
fn whatever_goes_wrong_every_promise_holds() {
    let (from, seeds) = (setting("SIM_FROM", 0), setting("SIM_SEEDS", 2_000));
    let (total, failures) = (Mutex::new(Counts::default()), Mutex::new(Vec::new()));
    for_each(from, seeds, |seed| {
        let outcome = simulate(Setup { seed, ..Setup::default() });
        total.lock().unwrap().add(&outcome.counts);
        let mut failures = failures.lock().unwrap();
        if !outcome.violations.is_empty() {
            failures.push((seed, outcome.violations));
        }
        // Ten failed seeds are enough.
        failures.len() < 10
    });
    let total = total.into_inner().unwrap();
    println!(
        "{} seeds, {:?} simulated, {} fires: {:?}",
        total.seeds, total.lasted, total.fires, total.checked
    );
    let failures = failures.into_inner().unwrap();
    for (seed, violations) in &failures {
        println!("seed {seed}:");
        for violation in violations.iter().take(5) {
            println!("  {} is broken: {}", violation.promise, violation.evidence);
        }
        println!(
            "  replay: cargo run --release -p tickwright-tests --features programs --bin soak -- --seed {seed} --trace"
        );
    }
    assert!(failures.is_empty(), "{} seeds broke a promise", failures.len());
    if seeds >= 100 {
        let never_seen: Vec<_> =
            PROMISES.iter().filter(|promise| !total.checked.contains_key(**promise)).collect();
        assert!(never_seen.is_empty(), "nothing was checked of {never_seen:?}");
    }
}

/// Guarantees that must have been checked many times.
const PROMISES: [&str; 15] = [
    "I1",
    "I1 recovery",
    "I2",
    "I3",
    "I4",
    "I5",
    "I6",
    "I7",
    "I8",
    "I9",
    "I11",
    "I12",
    "I13",
    "I14",
    "address",
];

#[test]
fn a_seed_always_plays_the_same() {
    // The last is of a cluster whose executors register, and are chosen at random.
    for seed in [1, 2, 3, 65] {
        let play = || simulate(Setup { seed, traced: true, ..Setup::default() }).trace;
        let (once, again) = (play(), play());
        assert!(once.len() > 10_000, "a trace tells something");
        let differs = once.lines().zip(again.lines()).find(|(once, again)| once != again);
        assert_eq!(differs, None, "seed {seed}");
        assert_eq!(once.len(), again.len());
    }
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| value.parse().expect("a number"))
}
