//! Lanes: at most some runs are on their way to one address at a time; the others wait as orders.
//!
//! In a herd thousands of runs are due for a few executors. A run that waits for its turn at the executor as a started
//! request takes kilobytes and a timer; as an order it takes neither. An executor that does not respond holds up its own
//! lane only.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::run::Order;

/// One lane for each address with runs on their way.
#[derive(Debug)]
pub(crate) struct Lanes {
    lanes: HashMap<Arc<str>, Traffic>,
    /// Maximum number of runs on their way to one address.
    sending_max: usize,
    waiting: usize,
}

/// The lane of a run that is passed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// It has no address: its executor is chosen when it is sent.
    None,
    /// The lane of its address.
    At(Arc<str>),
    /// It has waited in its lane for too long, and is not to be sent there.
    HeldUp,
}

/// The runs of one lane.
#[derive(Debug, Default)]
struct Traffic {
    /// Number of runs on their way.
    sending: usize,
    /// Orders with the time when they began to wait, on the monotonic clock.
    waiting: VecDeque<(Order, Duration)>,
}

/// The next runs of a lane.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Next {
    /// To be sent now.
    pub(crate) send: Option<Order>,
    /// Waited for too long; another executor may be free.
    pub(crate) held_up: Vec<Order>,
}

impl Lanes {
    /// Lanes of [`SENDING_MAX`] runs each, or of any number if the runs do not leave this process.
    pub(crate) fn new(are_limited: bool) -> Self {
        let sending_max = if are_limited { SENDING_MAX } else { usize::MAX };
        Lanes { lanes: HashMap::new(), sending_max, waiting: 0 }
    }

    /// Number of orders that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Adds runs. Returns those that may be sent now, with their lanes.
    pub(crate) fn enter_all(
        &mut self,
        orders: Vec<Order>,
        now: Duration,
    ) -> impl Iterator<Item = (Order, Lane)> {
        orders.into_iter().filter_map(move |order| self.enter(order, now))
    }

    fn enter(&mut self, order: Order, now: Duration) -> Option<(Order, Lane)> {
        let Some(address) = order.run.address.as_deref() else { return Some((order, Lane::None)) };
        let key = match self.lanes.get_key_value(address) {
            Some((key, _)) => Arc::clone(key),
            None => Arc::from(address),
        };
        let traffic = self.lanes.entry(Arc::clone(&key)).or_default();
        if traffic.sending < self.sending_max {
            traffic.sending += 1;
            return Some((order, Lane::At(key)));
        }
        traffic.waiting.push_back((order, now));
        self.waiting += 1;
        None
    }

    /// Records that a run of the lane is answered; returns the runs whose turn it is.
    pub(crate) fn leave(&mut self, lane: &Lane, now: Duration) -> Next {
        let mut next = Next::default();
        let Lane::At(key) = lane else { return next };
        let Some(traffic) = self.lanes.get_mut(key) else { return next };
        while let Some((order, since)) = traffic.waiting.pop_front() {
            self.waiting -= 1;
            if now.saturating_sub(since) <= WAIT_MAX {
                next.send = Some(order);
                return next;
            }
            next.held_up.push(order);
        }
        traffic.sending -= 1;
        if traffic.sending == 0 {
            self.lanes.remove(key);
        }
        next
    }
}

/// Maximum number of runs on their way to one address. With hundreds an executor answers fewer per second, and the slowest
/// answers take 60 ms.
const SENDING_MAX: usize = 64;

/// Maximum time that a run waits for its turn: as long as an executor may take to answer.
const WAIT_MAX: Duration = Duration::from_secs(3);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{Run, RunId, RunState};
    use crate::testing::{each_second, run};

    fn order(id: i64, address: Option<&str>) -> Order {
        let run = Run { address: address.map(str::to_owned), ..run(id, RunState::Claimed, 10) };
        Order { run, job: Arc::new(each_second(0)) }
    }

    fn id_of(order: Option<Order>) -> Option<RunId> {
        order.map(|order| order.run.id)
    }

    fn at(address: &str) -> Lane {
        Lane::At(Arc::from(address))
    }

    #[test]
    fn a_full_lane_holds_up_no_other_and_goes_on_in_order() {
        let mut lanes = Lanes::new(true);
        let second = Duration::from_secs(1);
        for id in 0..SENDING_MAX as i64 {
            assert!(lanes.enter(order(id, Some("a")), second).is_some());
        }
        assert!(lanes.enter(order(100, Some("a")), second).is_none());
        assert!(lanes.enter(order(101, Some("a")), second).is_none());
        assert!(lanes.enter(order(102, Some("b")), second).is_some_and(|(_, lane)| lane == at("b")));
        assert!(lanes.enter(order(103, None), second).is_some_and(|(_, lane)| lane == Lane::None));
        assert_eq!(lanes.waiting(), 2);
        assert_eq!(id_of(lanes.leave(&at("a"), second).send), Some(RunId(100)));
        assert_eq!(id_of(lanes.leave(&at("a"), second).send), Some(RunId(101)));
        assert_eq!(lanes.leave(&Lane::None, second), Next::default());
        for _ in 0..SENDING_MAX {
            assert_eq!(lanes.leave(&at("a"), second), Next::default());
        }
        assert_eq!(lanes.leave(&at("b"), second), Next::default());
        assert!(lanes.lanes.is_empty() && lanes.waiting() == 0);
    }

    #[test]
    fn a_run_that_waited_too_long_may_go_elsewhere() {
        let mut lanes = Lanes::new(true);
        for id in 0..SENDING_MAX as i64 {
            lanes.enter(order(id, Some("a")), Duration::ZERO);
        }
        lanes.enter(order(100, Some("a")), Duration::ZERO);
        lanes.enter(order(101, Some("a")), WAIT_MAX);
        let next = lanes.leave(&at("a"), WAIT_MAX + Duration::from_millis(1));
        let held_up: Vec<RunId> = next.held_up.iter().map(|order| order.run.id).collect();
        assert_eq!((id_of(next.send), held_up), (Some(RunId(101)), vec![RunId(100)]));
    }
}
