//! I24: the database loses its last commits, as when an asynchronous standby is promoted or a backup is restored.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use cron::{Schedule, Timestamp};
use engine::{AppId, Bugs, JobId, JobSpec, Outcome, RunId, RunState, Sabotage};

use super::check::instants;
use super::clock::{Ms, START};
use super::dice::Dice;
use super::evidence::Evidence;
use super::plan::{Plan, handlers, routes};
use super::world::World;
use super::{Cluster, collect, in_virtual_time};

/// Result of the simulation.
#[derive(Debug, Default)]
pub struct LostCommits {
    /// Runs that an executor received, and that the database has lost.
    pub lost: usize,
    /// Runs with a result that the database had acknowledged and lost.
    pub reopened: usize,
    /// Violations.
    pub broken: Vec<String>,
}

/// Runs the simulation. The seed decides the jobs, the number of nodes, and how many commits are lost.
pub fn lost_commits(seed: u64, bugs: Bugs) -> LostCommits {
    in_virtual_time(async {
        let mut dice = Dice::new(seed, "lost commits", 0);
        let mut plan = Plan::calm(seed, dice.number(1, 3) as usize);
        plan.levels.latency = dice.number(1, 20);
        let world = Arc::new(World::new(plan, false));
        world.clear_up();
        let cluster = Cluster::new(&world, bugs).await;
        let jobs = cluster.start(&world, specs(cluster.app, &mut dice)).await;
        world.sleep_until(START + dice.number(10_000, 14_000)).await;
        cluster.database.begin_losing().await.expect("no transaction is open");
        // Shorter and longer than the interval of heartbeats.
        world.sleep(dice.millis(50, 4_000)).await;
        world.set_outage(true);
        cluster.database.lose_commits().await.expect("commits were to be lost");
        if !bugs.has(Sabotage::ReuseRunIds) {
            // A server with another timeline is not used before that.
            cluster.store.skip_run_ids(RunId(0)).await.expect("the store itself never fails");
        }
        world.change_server();
        world.sleep(dice.millis(50, 2_000)).await;
        world.set_outage(false);
        let back = world.now();
        world.sleep_until(back + RECOVERED + WATCHED).await;
        // All that was received until then has ended.
        let received = world.evidence().received.len();
        for job in &jobs {
            let _ = cluster
                .queues
                .ask(0, super::node::Request::Operation(*job, super::evidence::Operation::Stop))
                .await;
        }
        world.sleep(SETTLED).await;
        collect(&world, &*cluster.store, &jobs).await;
        judge(&world.evidence(), &jobs, back, received)
    })
}

fn specs(app: AppId, dice: &mut Dice) -> Vec<JobSpec> {
    let spec = |number| {
        let anchor = Timestamp::from_millis(START + dice.number(0, 5_000));
        let schedule = Schedule::fixed_rate(anchor, dice.millis(500, 3_000)).expect("whole milliseconds");
        let mut spec = JobSpec::new(app, format!("job {number}"), schedule, handlers::QUICK);
        spec.route = dice.pick(&[routes::FIRST, routes::HASH, routes::AT_SEND]).into();
        spec
    };
    (0..12).map(spec).collect()
}

fn judge(evidence: &Evidence, jobs: &[JobId], back: Ms, received: usize) -> LostCommits {
    let mut seen = LostCommits::default();
    let named: BTreeSet<RunId> = evidence.losses.iter().flat_map(|message| ids(message)).collect();
    let mut fires: BTreeMap<RunId, (JobId, Ms)> = BTreeMap::new();
    for received in &evidence.received[..received] {
        let (run, fire) = (received.run.id, (received.run.job, received.run.scheduled_at));
        let first = *fires.entry(run).or_insert(fire);
        if first != fire {
            seen.broken.push(format!("the id {run} was given to {first:?} and to {fire:?}"));
        }
    }
    for (run, (job, _)) in &fires {
        match evidence.records.get(run) {
            None => {
                seen.lost += 1;
                if !named.contains(run) {
                    seen.broken.push(format!("run {run} of job {job} is lost, and no alert names it"));
                }
            }
            Some(record) if !record.state.is_over() => {
                seen.broken.push(format!("run {run} of job {job} is still {:?}", record.state));
            }
            Some(record) => {
                // Twice in the order of commits: the first commit was lost.
                let ends = evidence.endings.iter().filter(|ended| ended.run == *run).count();
                seen.reopened += usize::from(ends > 1);
                let is_stored =
                    |ended: &&super::evidence::Ended| matches!(ended.outcome, Outcome::Succeeded(_));
                let succeeded =
                    evidence.endings.iter().filter(|ended| ended.run == *run).any(|ended| is_stored(&ended));
                if succeeded && record.state != RunState::Succeeded {
                    seen.broken.push(format!("run {run} has succeeded, and is stored as {:?}", record.state));
                }
            }
        }
    }
    for job in jobs {
        for instant in instants(&evidence.jobs[job], back + RECOVERED, back + RECOVERED + WATCHED - LATE_MAX)
        {
            let arrived = evidence.received.iter().any(|received| {
                received.run.job == *job
                    && received.run.scheduled_at == instant
                    && received.at <= instant + LATE_MAX
            });
            if !arrived {
                seen.broken.push(format!("job {job} did not fire at {} after the loss", instant - back));
            }
        }
    }
    seen
}

/// The ids of runs in a message: numbers between its first colon and the next semicolon.
fn ids(message: &str) -> impl Iterator<Item = RunId> {
    let list = message.split_once(": ").and_then(|(_, rest)| rest.split(';').next()).unwrap_or_default();
    list.split(", ").filter_map(|id| id.parse().ok().map(RunId)).collect::<Vec<_>>().into_iter()
}

/// By then all nodes have joined anew, and fires are in time.
const RECOVERED: Ms = 10_000;

/// How long fires are watched then.
const WATCHED: Ms = 6_000;

/// Maximum lateness of these fires.
const LATE_MAX: Ms = 1_000;

/// Alerts are delivered, and runs have ended, within this time after the last fire.
const SETTLED: Duration = Duration::from_secs(200);
