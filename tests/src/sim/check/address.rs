//! A run that an executor took keeps its address, whatever order the answer, the report and the notes came in: without it
//! nobody can read its log.

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
    for (run, takers) in takers {
        let Some(record) = case.evidence.records.get(&run) else { continue };
        case.checked("address");
        let is_right = record.address.as_ref().is_some_and(|address| takers.contains(address));
        if !is_right && !sender_was_lost(case, run) {
            let text = format!("run {run} was taken by {takers:?}, and its address is {:?}", record.address);
            case.broken("I21", text);
        }
    }
}

/// Whether the only witness of where a run went, the node that sent it, was lost before it could write that down.
fn sender_was_lost(case: &Case<'_>, run: RunId) -> bool {
    case.attempts(run).iter().any(|attempt| {
        case.evidence.is_troubled(attempt.node, attempt.at - LEASE, attempt.at + WRITTEN_WITHIN, false)
    })
}

/// A node whose lease was in danger before it sent may be given up right after.
const LEASE: Ms = engine::LEASE.as_millis() as Ms;

/// By when the note of a sent run is written, with the longest wait for an answer.
const WRITTEN_WITHIN: Ms = 3_000;
