//! How runs fared on their way, as all nodes know it.

use std::collections::BTreeMap;

use engine::RunId;
use store::{Flight, Sending};

use super::call::Call;
use super::problem::Refused;

/// What is known of one run's way: by node, the senders first, in the order they sent it.
#[derive(Clone, Debug, Default)]
pub struct Way(pub Vec<Flight>);

impl Way {
    /// How it was sent first.
    pub fn sending(&self) -> Option<&Sending> {
        self.0.iter().find_map(|flight| flight.sending.as_ref())
    }

    /// The node that sent it last.
    pub fn node(&self) -> Option<&str> {
        self.0.iter().rfind(|flight| flight.sending.is_some()).map(|flight| flight.node.as_str())
    }

    /// Adds what this node remembers, which may be more, or less, than it has written down.
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

/// The ways of runs, as nodes wrote them down and this one remembers them.
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
