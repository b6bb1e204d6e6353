//! Traces of runs, merged from all nodes.

use std::collections::BTreeMap;

use engine::{Receipt, RunId};
use store::{NodeTrace, Sending};
use timer::Timestamp;

use super::call::Call;
use crate::request_error::RequestError;

/// Trace of one run, one entry per node: first the nodes that sent it, in the order of sending.
#[derive(Clone, Debug, Default)]
pub struct Trace(pub Vec<NodeTrace>);

impl Trace {
    /// First dispatch of the run.
    pub fn sending(&self) -> Option<&Sending> {
        self.0.iter().find_map(|trace| trace.sending.as_ref())
    }

    /// Time of the last dispatch that an executor did not reject: the run started then.
    pub fn sent_at(&self) -> Option<Timestamp> {
        let sendings = self.0.iter().rev().filter_map(|trace| trace.sending.as_ref());
        let was_refused = |sending: &&Sending| {
            let answer = sending.answer.as_ref().map(|(_, receipt)| receipt);
            matches!(answer, Some(Receipt::Refused { .. } | Receipt::Deferred { .. }))
        };
        sendings.filter(|sending| !was_refused(sending)).map(|sending| sending.left_at).next()
    }

    /// Node that sent it last.
    pub fn node(&self) -> Option<&str> {
        self.0.iter().rfind(|trace| trace.sending.is_some()).map(|trace| trace.node.as_str())
    }

    /// Merges this node's trace from memory, which may hold more, or less, than its stored one.
    fn add(&mut self, own: NodeTrace) {
        match self.0.iter_mut().find(|trace| trace.node == own.node) {
            Some(written) => {
                written.reported_at = own.reported_at.or(written.reported_at);
                written.recorded_at = own.recorded_at.or(written.recorded_at);
                written.sending = own.sending.or(written.sending.take());
            }
            None => self.0.push(own),
        }
        let left_at = |trace: &NodeTrace| trace.sending.as_ref().map(|sending| sending.left_at);
        self.0.sort_by_key(|trace| (left_at(trace).is_none(), left_at(trace)));
    }
}

/// Traces of runs: those stored by all nodes, merged with this node's memory.
pub async fn of(call: &Call, runs: &[RunId]) -> Result<BTreeMap<RunId, Trace>, RequestError> {
    let mut traces: BTreeMap<RunId, Trace> = BTreeMap::new();
    for trace in call.state.database.traces_of(runs).await? {
        traces.entry(trace.run).or_default().0.push(trace);
    }
    for run in runs {
        if let Some(own) = call.state.traces.of(*run) {
            traces.entry(*run).or_default().add(own);
        }
    }
    Ok(traces)
}

#[cfg(test)]
mod tests {
    use engine::Origin;
    use engine::policy::Route;

    use super::*;

    fn trace(left_at: i64, receipt: Option<Receipt>) -> NodeTrace {
        let sending = Sending {
            scheduled_at: Timestamp::from_millis(1_000),
            origin: Origin::Schedule,
            attempt: 1,
            retry_of: None,
            route: Route::First.into(),
            claimed_at: None,
            left_at: Timestamp::from_millis(left_at),
            answer: receipt.map(|receipt| (Timestamp::from_millis(left_at + 5), receipt)),
        };
        let node = format!("n{left_at}");
        NodeTrace { run: RunId(1), node, sending: Some(sending), reported_at: None, recorded_at: None }
    }

    #[test]
    fn a_run_starts_when_it_is_sent_and_not_rejected() {
        let accepted = || Some(Receipt::Accepted { address: "http://x".into() });
        let refused = || Some(Receipt::Refused { reason: "busy".into() });
        let check = |traces: Vec<NodeTrace>, expected: Option<i64>| {
            assert_eq!(Trace(traces).sent_at().map(|at| at.as_millis()), expected);
        };
        check(vec![], None);
        check(vec![trace(5_000, accepted())], Some(5_000));
        check(vec![trace(5_000, None)], Some(5_000));
        check(vec![trace(5_000, refused())], None);
        check(vec![trace(5_000, None), trace(9_000, accepted())], Some(9_000));
        check(vec![trace(5_000, accepted()), trace(9_000, refused())], Some(5_000));
    }
}
