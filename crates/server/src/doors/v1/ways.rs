//! Traces of runs, merged from all nodes.

use std::collections::BTreeMap;

use engine::RunId;
use store::{Flight, Sending};

use super::call::Call;
use super::problem::Refused;

/// Trace of one run, one entry per node: first the nodes that sent it, in the order of sending.
#[derive(Clone, Debug, Default)]
pub struct Way(pub Vec<Flight>);

impl Way {
    /// First dispatch of the run.
    pub fn sending(&self) -> Option<&Sending> {
        self.0.iter().find_map(|flight| flight.sending.as_ref())
    }

    /// Node that sent it last.
    pub fn node(&self) -> Option<&str> {
        self.0.iter().rfind(|flight| flight.sending.is_some()).map(|flight| flight.node.as_str())
    }

    /// Merges this node's trace from memory, which may hold more, or less, than its stored one.
    fn add(&mut self, own: Flight) {
        match self.0.iter_mut().find(|flight| flight.node == own.node) {
            Some(written) => {
                written.reported_at = own.reported_at.or(written.reported_at);
                written.recorded_at = own.recorded_at.or(written.recorded_at);
                written.sending = own.sending.or(written.sending.take());
            }
            None => self.0.push(own),
        }
        let left_at = |flight: &Flight| flight.sending.as_ref().map(|sending| sending.left_at);
        self.0.sort_by_key(|flight| (left_at(flight).is_none(), left_at(flight)));
    }
}

/// Traces of runs: those stored by all nodes, merged with this node's memory.
pub async fn of(call: &Call, runs: &[RunId]) -> Result<BTreeMap<RunId, Way>, Refused> {
    let mut ways: BTreeMap<RunId, Way> = BTreeMap::new();
    for flight in call.inside.database.flights_of(runs).await? {
        ways.entry(flight.run).or_default().0.push(flight);
    }
    for run in runs {
        if let Some(own) = call.inside.flights.of(*run) {
            ways.entry(*run).or_default().add(own);
        }
    }
    Ok(ways)
}
