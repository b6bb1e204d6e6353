//! W1 to W9, W13 and W14: workflow runs in simulated clusters with all faults.

use std::sync::Mutex;

use engine::Bugs;
use tickwright_tests::for_each;
use tickwright_tests::sim::workflow_runs;

#[test]
fn every_step_runs_once_and_in_order_and_every_run_ends() {
    let (failures, counts) = (Mutex::new(Vec::new()), Mutex::new((0, 0, 0, 0)));
    for_each(0, SEEDS, |seed| {
        let result = workflow_runs(seed, Bugs::default());
        let mut counts = counts.lock().unwrap();
        counts.0 += result.runs;
        counts.1 += result.steps;
        counts.2 += result.resumed;
        counts.3 += result.depended;
        if !result.broken.is_empty() {
            failures.lock().unwrap().push((seed, result.broken));
        }
        true
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} seeds, first {:#?}", failures.len(), failures[0]);
    let (runs, steps, resumed, depended) = counts.into_inner().unwrap();
    println!("{runs} workflow runs, {resumed} of them resumed, {steps} steps, {depended} dependencies met");
    assert!(steps > runs, "{runs} workflow runs with {steps} steps: too little was simulated");
    assert!(depended > SEEDS as usize, "{depended} dependencies met: too little was simulated");
    assert!(resumed > SEEDS as usize, "{resumed} resumed runs: too little was simulated");
}

/// Number of simulated clusters.
const SEEDS: u64 = 200;
