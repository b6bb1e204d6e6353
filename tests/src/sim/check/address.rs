//! An accepted run keeps the address of its executor, in any order of response, report and notes: without it its
//! log cannot be read.

use std::collections::{BTreeMap, BTreeSet};

use engine::RunId;

use super::Case;
use crate::sim::clock::Ms;
use crate::sim::executor::Executors;

pub(super) fn check(case: &mut Case<'_>) {
    let mut takers: BTreeMap<RunId, BTreeSet<String>> = BTreeMap::new();
    for received in case.evidence.received.iter().filter(|received| received.accepted) {
        takers.entry(received.run.id).or_default().insert(Executors::address(received.executor));
    }
    for (run, takers) in takers.into_iter().filter(|(run, _)| !case.evidence.java_runs.contains(run)) {
        let Some(record) = case.evidence.records.get(&run) else { continue };
        case.checked("address");
        let is_right = record.address.as_ref().is_some_and(|address| takers.contains(address));
        if !is_right && !sender_was_lost(case, run) {
            let text = format!("run {run} was taken by {takers:?}, and its address is {:?}", record.address);
            case.broken("I21", text);
        }
    }
}

/// Whether the node that sent the run, the only one that knows its target, was lost before it could store the address.
fn sender_was_lost(case: &Case<'_>, run: RunId) -> bool {
    case.attempts(run).iter().any(|attempt| {
        case.evidence.is_troubled(attempt.node, attempt.at - LEASE, attempt.at + WRITTEN_WITHIN, false)
    })
}

/// A node that was at risk of losing its lease before it sent may be declared dead right after.
const LEASE: Ms = engine::LEASE.as_millis() as Ms;

/// By then the note of a sent run is stored, including the longest wait for a response.
const WRITTEN_WITHIN: Ms = 3_000;
