//! I23: one of two nodes is stopped gracefully while it is working.

use std::collections::BTreeSet;
use std::sync::Arc;

use cron::{Schedule, Timestamp};
use engine::{AppId, Bugs, JobId, JobSpec};

use super::check::instants;
use super::clock::{Ms, START};
use super::dice::Dice;
use super::evidence::Evidence;
use super::plan::{Plan, handlers, routes};
use super::world::World;
use super::{Cluster, in_virtual_time};

/// Result of the simulation.
#[derive(Debug, Default)]
pub struct GracefulStop {
    /// Time from the request until the node has ended, in milliseconds.
    pub took: i64,
    /// Runs that it had claimed and the other node then claimed.
    pub handed_back: usize,
    /// Lateness of the latest fire, in milliseconds.
    pub latest: i64,
    /// Violations.
    pub broken: Vec<String>,
}

/// Runs the simulation. The seed decides the jobs, the time, the node, and whether handlers run inside the nodes.
pub fn graceful_stop(seed: u64) -> GracefulStop {
    in_virtual_time(async {
        let mut dice = Dice::new(seed, "farewell", 0);
        let mut plan = Plan::calm(seed, 2);
        plan.embedded = dice.chance(0.3);
        plan.executors = if plan.embedded { 2 } else { 3 };
        // In half of the seeds responses are slow, so that there is something to wait for.
        plan.levels.late = if dice.chance(0.5) { 0.2 } else { 0.0 };
        plan.levels.latency = dice.number(1, 20);
        let world = Arc::new(World::new(plan, false));
        let cluster = Cluster::new(&world, Bugs::default()).await;
        let jobs = cluster.start(&world, specs(cluster.app, &mut dice)).await;
        world.sleep_until(START + dice.number(12_000, 16_000)).await;
        let (leaving, asked) = (dice.number(0, 1) as usize, world.now());
        cluster.hosts[leaving].gate.stop_for_good();
        world.sleep_until(END + 5_000).await;
        judge(&world, &jobs, leaving, asked)
    })
}

/// Range of the fires that are checked.
const BEGIN: Ms = START + 8_000;
const END: Ms = START + 25_000;

fn specs(app: AppId, dice: &mut Dice) -> Vec<JobSpec> {
    (0..24).map(|number| spec(app, dice, number)).collect()
}

fn spec(app: AppId, dice: &mut Dice, number: usize) -> JobSpec {
    let anchor = Timestamp::from_millis(START + dice.number(0, 5_000));
    // Long enough intervals that a slow response to one fire never delays the next.
    let schedule = Schedule::fixed_rate(anchor, dice.millis(1_000, 4_000)).expect("whole milliseconds");
    let handler = dice.pick(&[handlers::QUICK, handlers::QUICK, handlers::FLAKY, handlers::LONG]);
    let mut spec = JobSpec::new(app, format!("job {number}"), schedule, handler);
    spec.route = dice.pick(&[routes::FIRST, routes::HASH, routes::AT_SEND, routes::BROADCAST]).into();
    spec
}

fn judge(world: &World, jobs: &[JobId], leaving: usize, asked: Ms) -> GracefulStop {
    let evidence = world.evidence();
    let mut graceful_stop = GracefulStop::default();
    match evidence.stopped.iter().find(|(node, _)| *node == leaving) {
        Some((_, ended)) => graceful_stop.took = ended - asked,
        None => graceful_stop.broken.push("it never stopped".into()),
    }
    for attempt in evidence.attempts.iter().filter(|attempt| attempt.node == leaving) {
        if attempt.answered.is_none() {
            graceful_stop
                .broken
                .push(format!("run {} was being sent and never answered for", attempt.run.id));
        }
        // Where a run is marked before its handler is called, the mark may have been in progress.
        if attempt.at > asked && !world.plan.embedded {
            graceful_stop.broken.push(format!(
                "run {} left {} ms after it was asked to stop",
                attempt.run.id,
                attempt.at - asked
            ));
        }
    }
    for entry in evidence.ledger.values() {
        let run = entry.facts.id;
        let by_it = |claim: &&super::evidence::ClaimSeen| claim.node == leaving;
        // A claim in progress may still be stored.
        if entry.claims.iter().filter(by_it).any(|claim| claim.at > asked + world.plan.levels.latency) {
            graceful_stop.broken.push(format!("run {run} was claimed by it after it was asked to stop"));
        }
        let claimers: BTreeSet<usize> = entry.claims.iter().map(|claim| claim.node).collect();
        graceful_stop.handed_back += usize::from(claimers.len() > 1);
    }
    for job in jobs {
        in_time(&evidence, *job, &mut graceful_stop);
    }
    graceful_stop
}

/// Every fire of the job arrives within a second, from either node.
fn in_time(evidence: &Evidence, job: JobId, graceful_stop: &mut GracefulStop) {
    for instant in instants(&evidence.jobs[&job], BEGIN, END) {
        let arrival = |received: &&super::evidence::Received| {
            received.run.job == job && received.run.scheduled_at == instant && received.run.attempt == 1
        };
        match evidence.received.iter().filter(arrival).map(|received| received.at).max() {
            Some(at) => graceful_stop.latest = graceful_stop.latest.max(at - instant),
            None => {
                graceful_stop.broken.push(format!("job {job}, instant {} never arrived", instant - START))
            }
        }
    }
}
