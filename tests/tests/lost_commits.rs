//! I24: a database that loses commits, in hundreds of simulated clusters.

use std::sync::Mutex;

use engine::Bugs;
use tickwright_tests::for_each;
use tickwright_tests::sim::lost_commits;

#[test]
fn runs_that_the_database_loses_are_named_and_their_ids_are_not_given_again() {
    let (failures, all) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    for_each(0, SEEDS, |seed| {
        let seen = lost_commits(seed, Bugs::default());
        if seen.broken.is_empty() {
            all.lock().unwrap().push(seen);
        } else {
            failures.lock().unwrap().push((seed, seen));
        }
        true
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} seeds, first {:?}", failures.len(), failures[0]);
    let all = all.into_inner().unwrap();
    let lost: usize = all.iter().map(|seen| seen.lost).sum();
    let reopened: usize = all.iter().map(|seen| seen.reopened).sum();
    println!("{lost} runs lost, {reopened} results stored again");
    assert!(lost > 100 && reopened > 10, "there was something to lose: {lost} runs, {reopened} results");
}

const SEEDS: u64 = 200;
