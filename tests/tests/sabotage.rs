//! Shows that the simulation detects bugs: each deliberate bug is caught.
#![cfg(feature = "sabotage")]

use std::sync::Mutex;

use engine::{Bugs, Sabotage};
use tickwright_tests::for_each;
use tickwright_tests::sim::{Setup, lost_commits, simulate, workflow_runs};

const BUGS: [Sabotage; 21] = [
    Sabotage::AdvanceWithoutRow,
    Sabotage::AckBeforeCommit,
    Sabotage::NoFencing,
    Sabotage::ResendWithNewId,
    Sabotage::OwnClock,
    Sabotage::RescueWithoutProbe,
    Sabotage::StopWithoutConfirm,
    Sabotage::ConfirmFirstStep,
    Sabotage::SilentMisfire,
    Sabotage::NextFromNow,
    Sabotage::SendEarly,
    Sabotage::OneRetryTooMany,
    Sabotage::SendHoweverLate,
    Sabotage::ResendHoweverLate,
    Sabotage::ClaimBeforeAdopting,
    Sabotage::KeepAmbiguous,
    Sabotage::DropJavaResults,
    Sabotage::BlindToStoredResults,
    Sabotage::BlindToTakenFires,
    Sabotage::CircuitStaysOpen,
    Sabotage::BlindToRegistrations,
];

/// Every bug is caught within this many seeds.
const WITHIN: u64 = 300;

#[test]
fn every_deliberate_bug_is_caught() {
    let escaped = Mutex::new(Vec::new());
    for_each(0, BUGS.len() as u64, |number| {
        let bug = BUGS[number as usize];
        let caught = (0..WITHIN).find_map(|seed| {
            let outcome = simulate(Setup { seed, bugs: Bugs::with(bug), ..Setup::default() });
            outcome.violations.into_iter().next().map(|violation| (seed, violation))
        });
        match caught {
            Some((seed, violation)) => {
                println!("caught {bug:?} at seed #{seed} ({}: {})", violation.promise, violation.evidence);
            }
            None => escaped.lock().unwrap().push(bug),
        }
        true
    });
    let escaped = escaped.into_inner().unwrap();
    assert!(escaped.is_empty(), "not caught: {escaped:?}");
}

const WORKFLOW_BUGS: [Sabotage; 9] = [
    Sabotage::KeepFailedSteps,
    Sabotage::OpenAtFirstEnd,
    Sabotage::CountEndsTwice,
    Sabotage::StopAtSkips,
    Sabotage::ReadLatestDefinition,
    Sabotage::LeaveUnreached,
    Sabotage::DecideTwice,
    Sabotage::TakeAnySuccess,
    Sabotage::LookBeforeRegistering,
];

#[test]
fn every_deliberate_bug_of_workflows_is_caught() {
    let escaped = Mutex::new(Vec::new());
    for_each(0, WORKFLOW_BUGS.len() as u64, |number| {
        let bug = WORKFLOW_BUGS[number as usize];
        let caught = (0..WITHIN).find_map(|seed| {
            let found = workflow_runs(seed, Bugs::with(bug)).broken;
            found.into_iter().next().map(|violation| (seed, violation))
        });
        match caught {
            Some((seed, violation)) => println!("caught {bug:?} at seed #{seed} ({violation})"),
            None => escaped.lock().unwrap().push(bug),
        }
        true
    });
    let escaped = escaped.into_inner().unwrap();
    assert!(escaped.is_empty(), "not caught: {escaped:?}");
}

const LOSS_BUGS: [Sabotage; 3] = [Sabotage::TrustDatabase, Sabotage::ReuseRunIds, Sabotage::ForgetResults];

#[test]
fn every_deliberate_bug_about_lost_commits_is_caught() {
    let escaped = Mutex::new(Vec::new());
    for_each(0, LOSS_BUGS.len() as u64, |number| {
        let bug = LOSS_BUGS[number as usize];
        let caught = (0..WITHIN).find_map(|seed| {
            let found = lost_commits(seed, Bugs::with(bug)).broken;
            found.into_iter().next().map(|violation| (seed, violation))
        });
        match caught {
            Some((seed, violation)) => println!("caught {bug:?} at seed #{seed} ({violation})"),
            None => escaped.lock().unwrap().push(bug),
        }
        true
    });
    let escaped = escaped.into_inner().unwrap();
    assert!(escaped.is_empty(), "not caught: {escaped:?}");
}
