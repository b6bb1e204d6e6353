//! I7: acknowledged operations take effect.

use engine::{Origin, Outcome};

use super::Case;
use super::firing::since;
use crate::sim::clock::Ms;
use crate::sim::evidence::{Done, Operation, OperationRecord};

pub(super) fn check(case: &mut Case<'_>) {
    let ops = &case.evidence.ops;
    for (number, op) in ops.iter().enumerate() {
        let Some(done) = op.done else { continue };
        match op.operation {
            Operation::Stop | Operation::Delete => {
                let next = ops[number + 1..]
                    .iter()
                    .find(|next| next.job == op.job && matches!(next.operation, Operation::Start));
                nothing_after(case, op, done, next.map_or(Ms::MAX, |next| next.asked));
            }
            Operation::Trigger(key) => dispatched_once(case, op, done, key),
            Operation::Start | Operation::Edit(_) => {}
        }
    }
}

/// After a stop no scheduled run is sent; after a deletion no run at all.
fn nothing_after(case: &mut Case<'_>, op: &OperationRecord, done: Done, until: Ms) {
    case.checked("I7");
    let deleted = matches!(op.operation, Operation::Delete);
    for attempt in &case.evidence.attempts {
        let facts = &attempt.run;
        let concerned = facts.job == op.job && (deleted || facts.origin.is_scheduled());
        if concerned && attempt.at > done.acked + STILL && attempt.at < until {
            let text = format!(
                "run {} of job {} left at {}, {} ms after the {} was acknowledged",
                facts.id,
                op.job,
                since(attempt.at),
                attempt.at - done.acked,
                if deleted { "deletion" } else { "stop" }
            );
            case.broken("I7", text);
            return;
        }
    }
}

/// Tolerance for requests sent just after an acknowledgement.
const STILL: Ms = 100;

/// An acknowledged trigger is sent, unless the job's own policies end it first; never twice.
fn dispatched_once(case: &mut Case<'_>, op: &OperationRecord, done: Done, key: i64) {
    case.checked("I7");
    let asked = |origin: Origin| origin == Origin::Manual { key };
    let first_tries = case.evidence.ledger.values().map(|entry| &entry.facts);
    let mut fires: Vec<_> = first_tries
        .filter(|facts| facts.job == op.job && asked(facts.origin) && facts.attempt == 1)
        .map(|facts| facts.fire)
        .collect();
    fires.dedup();
    if fires.len() > 1 {
        case.broken("I7", format!("trigger {key} of job {} became the fires {fires:?}", op.job));
    }
    let Some(run) = done.run else { return };
    let was_sent = !case.attempts(run).is_empty();
    let was_ended = case.evidence.own_history(run).is_some()
        || case.endings(run).iter().any(|ended| matches!(ended.outcome, Outcome::Ambiguous(_)));
    let was_deleted = case.timelines[&op.job].deleted.is_some();
    if !was_sent && !was_ended && !was_deleted {
        case.broken(
            "I7",
            format!("trigger {key} of job {} was acknowledged as run {run} and never sent", op.job),
        );
    }
}
