//! Step events: what an engine reports about the runs that pass through it, for metrics, traces and live pages.

use std::time::Duration;

use crate::engine::Engine;
use crate::ports::Receipt;
use crate::run::{Order, Outcome, RunId};

/// Subscriber of an engine's step events.
pub trait Telemetry: Send + Sync {
    /// Receives an event, at the moment of the step. It is called for every run, partly between the due time and
    /// the network, so it must not block. The engine's decisions do not depend on it.
    fn on(&self, event: &StepEvent<'_>);
}

/// Ignores all events.
impl Telemetry for () {
    fn on(&self, _: &StepEvent<'_>) {}
}

/// One step of runs, in the order in which a run takes them. An event borrows from the engine, so that it costs
/// nothing if it is ignored.
#[derive(Clone, Copy, Debug)]
pub enum StepEvent<'a> {
    /// This node has claimed runs.
    Claimed {
        /// The claimed runs; at least one.
        orders: &'a [Order],
        /// Duration of the claim, including its commit.
        took: Duration,
    },
    /// A run is dispatched: the next thing that happens is the request to its executor.
    Dispatched {
        /// The run.
        order: &'a Order,
        /// Time since the run was due.
        late: Duration,
    },
    /// A dispatch ended: the executor accepted or rejected the run, the dispatch was deferred, or its effect is
    /// unknown.
    Answered {
        /// The run.
        order: &'a Order,
        /// The response.
        receipt: &'a Receipt,
    },
    /// An executor has reported a result, which is not stored yet. Any node may have dispatched the run.
    Reported {
        /// The run.
        run: RunId,
        /// The reported result.
        outcome: &'a Outcome,
    },
    /// Results of runs were stored in one transaction; [`Completed`](StepEvent::Completed) follows for each run that
    /// ended with it.
    Stored {
        /// Duration of the transaction, including its commit.
        took: Duration,
    },
    /// A run has ended, and its result is stored: reported, lost, cancelled, or skipped.
    Completed {
        /// The run.
        run: RunId,
        /// The result.
        outcome: &'a Outcome,
    },
}

impl Engine {
    pub(crate) fn emit(&self, event: StepEvent<'_>) {
        self.inner.telemetry.on(&event);
    }
}
