//! I23: a node that is stopped gracefully ends soon, without any effect on fires.

use std::sync::Mutex;

use tickwright_tests::for_each;
use tickwright_tests::sim::graceful_stop;

#[test]
fn a_node_that_is_asked_to_stop_hands_back_its_claims_and_makes_nothing_late() {
    let (failures, all) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    for_each(0, SEEDS, |seed| {
        let seen = graceful_stop(seed);
        if !seen.broken.is_empty() || seen.took > 5_000 || seen.latest > 1_000 {
            failures.lock().unwrap().push((seed, seen));
        } else {
            all.lock().unwrap().push(seen);
        }
        true
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} seeds, first {:?}", failures.len(), failures[0]);
    let all = all.into_inner().unwrap();
    let handed_back: usize = all.iter().map(|seen| seen.handed_back).sum();
    let longest = all.iter().map(|seen| seen.took).max();
    let latest = all.iter().map(|seen| seen.latest).max();
    println!(
        "{handed_back} runs handed back; the longest stop took {longest:?} ms, the latest fire {latest:?} ms"
    );
    assert!(handed_back > 100, "there was something to hand back");
}

const SEEDS: u64 = 200;
