//! Checks the step events of an engine: metrics, traces and live pages rely on their order.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use engine::{Outcome, RunId, StepEvent, Telemetry};

use super::world::World;

/// Subscriber of one engine.
pub struct Steps {
    node: usize,
    world: Arc<World>,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    /// Dispatched runs without an answer yet.
    dispatched: BTreeSet<RunId>,
    /// Runs with a reported result.
    reported: BTreeSet<RunId>,
}

impl Steps {
    /// For the engine of this node.
    pub fn new(node: usize, world: Arc<World>) -> Steps {
        Steps { node, world, seen: Mutex::default() }
    }

    /// Whether the run is that of a workflow, which no executor reports.
    fn is_workflow(&self, run: RunId) -> bool {
        let evidence = self.world.evidence();
        let job = evidence.ledger.get(&run).and_then(|entry| evidence.jobs.get(&entry.facts.job));
        job.is_some_and(|spec| spec.workflow.is_some())
    }
}

impl Telemetry for Steps {
    fn on(&self, event: &StepEvent<'_>) {
        let mut seen = self.seen.lock().expect("no holder of this lock panics");
        let is_in_order = match *event {
            StepEvent::Claimed { orders, .. } => !orders.is_empty(),
            StepEvent::Dispatched { order, .. } => {
                // A fenced incarnation drops its dispatches, so a run may be dispatched again without an answer.
                seen.dispatched.insert(order.run.id);
                true
            }
            StepEvent::Answered { order, .. } => seen.dispatched.remove(&order.run.id),
            StepEvent::Reported { run, .. } => {
                seen.reported.insert(run);
                true
            }
            StepEvent::Stored { .. } => true,
            // Java admins store results themselves.
            StepEvent::Completed { run, outcome: Outcome::Succeeded(_) } if !self.world.plan.java => {
                seen.reported.contains(&run) || self.is_workflow(run)
            }
            StepEvent::Completed { .. } => true,
        };
        if !is_in_order {
            self.world.broken("steps", format!("n{} emits out of order: {event:?}", self.node));
        }
    }
}
