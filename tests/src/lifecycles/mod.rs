//! Complete lifecycles directly on the store, without an engine: a due job is claimed, its run accepted and completed.

mod jobs;

use std::time::Duration;

use anyhow::Result;
use engine::policy::Target;
use engine::{
    Assignment, Ender, Ending, Fire, FollowUps, Job, LOOK_AHEAD, Move, NextFire, Node, Order, Origin,
    Outcome, Plan, Planner, Run, Slots, Store, To,
};
use timer::Timestamp;

pub use jobs::{BLOCK, BLOCK_STEP, FIRST_FIRE, create};

/// Claims at most `max` due jobs, accepts their runs and completes them. Returns the number of runs.
pub async fn one_batch(
    store: &dyn Store,
    node: &Node,
    now: Timestamp,
    max: usize,
    planner: &Advance,
) -> Result<usize> {
    let runs = store.claim_due(node, now, Slots::ALL, max, planner).await?.orders;
    let moves: Vec<Move> = runs.iter().map(|order| accepted(order, now)).collect();
    store.move_runs(&moves).await?;
    let endings: Vec<Ending> = runs.iter().map(succeeded).collect();
    store.complete(now, &endings, &NothingFollows).await?;
    Ok(runs.len())
}

fn accepted(order: &Order, now: Timestamp) -> Move {
    let to = To::Running { address: None, check_at: now + Duration::from_secs(60), doubt_since: None };
    Move { run: order.run.id, version: order.run.version, to, trouble: None }
}

/// A successful ending for the run of an order.
pub fn succeeded(order: &Order) -> Ending {
    Ending { run: order.run.id, outcome: Outcome::Succeeded("done".into()), version: None, address: None }
}

/// A planner that sends every fire; the next one is a fixed step later.
pub struct Advance {
    /// Time from one fire to the next.
    pub step: Duration,
}

impl Planner for Advance {
    fn plan(&self, job: &Job) -> Plan {
        let at = job.next_fire_at.expect("only jobs with a next time are due");
        let fire = Fire {
            scheduled_at: at,
            due_at: at,
            origin: Origin::Schedule,
            targets: vec![Target::Address("http://10.0.0.7:9999/".into())],
            waits: false,
        };
        Plan { fires: vec![fire], unsent: Vec::new(), next: self.next_after(job, at), replace: false }
    }

    fn assign(&self, _: &Job, run: &Run) -> Assignment {
        Assignment::Leave(run.due_at)
    }

    fn next_after(&self, job: &Job, after: Timestamp) -> NextFire {
        let fire_at = after + self.step;
        NextFire::At { fire_at, claim_at: self.claim_at(job, fire_at) }
    }

    fn claim_at(&self, _: &Job, fire_at: Timestamp) -> Timestamp {
        fire_at - LOOK_AHEAD
    }
}

/// An ender without follow-ups: no retries, no child jobs.
pub struct NothingFollows;

impl Ender for NothingFollows {
    fn follow(&self, _: &Job, _: &Run, _: &Outcome) -> FollowUps {
        FollowUps::default()
    }
}
