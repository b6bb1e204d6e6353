//! Telemetry: the one subscriber of the engine's step events. Passes each to the metrics, the traces of runs, the
//! hints for live pages, and the readers of run logs.
//!
//! A new metric is a field and an arm in [`Metrics`]; a change that is no step of a run, for example an edited job,
//! is announced with [`Hints::announce`].

mod hints;
mod lateness;
mod metrics;

use std::sync::Arc;

use engine::{Outcome, Receipt, StepEvent};
use protocol::v1::Event;
use timer::Clock;

use crate::runs::{Ended, Following, TraceRecorder};

pub use hints::Hints;
pub use lateness::Lateness;
pub use metrics::Metrics;

/// Subscriber of the engine's step events. It only changes memory, so it never waits.
pub struct Telemetry {
    pub clock: Arc<dyn Clock>,
    pub metrics: Arc<Metrics>,
    pub hints: Arc<Hints>,
    pub lateness: Arc<Lateness>,
    pub traces: Arc<TraceRecorder>,
    /// Runs with logs that are read while they run.
    pub following: Arc<Following>,
    /// Runs with logs that are stored now that they have finished.
    pub ended: Ended,
}

impl engine::Telemetry for Telemetry {
    fn on(&self, event: &StepEvent<'_>) {
        self.metrics.on(event);
        let now = self.clock.now();
        match *event {
            StepEvent::Claimed { orders, .. } => {
                self.traces.claimed(orders, now);
                self.hints.announce(Event::Runs);
            }
            StepEvent::Dispatched { order, late } => {
                self.traces.leaves(order, now);
                self.lateness.note(now, late);
            }
            StepEvent::Answered { order, receipt } => {
                self.traces.answered(order.run.id, receipt, now);
                if let Receipt::Accepted { address } = receipt {
                    self.following.begin(order, address, self.clock.monotonic());
                }
            }
            StepEvent::Reported { run, .. } => self.traces.reported(run, now),
            StepEvent::Stored { .. } => self.hints.announce(Event::Runs),
            StepEvent::Completed { run, outcome } => {
                let is_good = matches!(outcome, Outcome::Succeeded(_) | Outcome::Cancelled(_));
                self.traces.recorded_end(run, is_good, now);
                let app = self.traces.app_of(run).or_else(|| self.following.app_of(run));
                self.following.over(run);
                if !self.ended.tell(run, app, outcome) {
                    self.metrics.log_kept("too_many", 1);
                }
            }
        }
    }
}
