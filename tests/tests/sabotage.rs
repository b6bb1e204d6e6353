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
    all_are_caught(&BUGS, |seed, bugs| {
        let outcome = simulate(Setup { seed, bugs, ..Setup::default() });
        outcome.violations.iter().map(|found| format!("{}: {}", found.promise, found.evidence)).collect()
    });
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
    all_are_caught(&WORKFLOW_BUGS, |seed, bugs| workflow_runs(seed, bugs).broken);
}

const LOSS_BUGS: [Sabotage; 3] = [Sabotage::TrustDatabase, Sabotage::ReuseRunIds, Sabotage::ForgetResults];

#[test]
fn every_deliberate_bug_about_lost_commits_is_caught() {
    all_are_caught(&LOSS_BUGS, |seed, bugs| lost_commits(seed, bugs).broken);
}

/// Simulates clusters with each bug until one breaks a promise.
fn all_are_caught(bugs: &[Sabotage], broken: impl Fn(u64, Bugs) -> Vec<String> + Sync) {
    let escaped = Mutex::new(Vec::new());
    for_each(0, bugs.len() as u64, |number| {
        let bug = bugs[number as usize];
        let caught = (0..WITHIN).find_map(|seed| {
            let violation = broken(seed, Bugs::with(bug)).into_iter().next()?;
            Some((seed, violation))
        });
        match caught {
            Some((seed, violation)) => println!("caught {bug:?} at seed #{seed} ({violation})"),
            None => escaped.lock().expect("no holder panics").push(bug),
        }
        true
    });
    let escaped = escaped.into_inner().expect("no holder panics");
    assert!(escaped.is_empty(), "not caught: {escaped:?}");
}
