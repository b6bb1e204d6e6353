//! Executors that never respond to the request to end a run, while a few jobs replace theirs every second.

use std::sync::Arc;
use std::time::Duration;

use cron::{Schedule, Timestamp};
use engine::policy::Overlap;
use engine::{AppId, Bugs, JobId, JobSpec};

use super::check::instants;
use super::clock::{Ms, START};
use super::evidence::Evidence;
use super::plan::{Kills, Plan, handlers, routes};
use super::world::World;
use super::{Cluster, in_virtual_time};

/// Result of the simulation.
#[derive(Debug)]
pub struct Replacing {
    /// Fires of the other jobs that never arrived.
    pub missing: usize,
    /// Lateness of the latest fire of the other jobs, in milliseconds.
    pub latest: i64,
    /// Time from each request to end a run until the next run of the same job arrived, in milliseconds.
    pub waited: Vec<i64>,
}

/// Runs the simulation. The seed decides only how long handlers take.
pub fn replacing(seed: u64) -> Replacing {
    in_virtual_time(async {
        let plan = Plan { kills: Kills::Unanswered, ..Plan::calm(seed, 1) };
        let world = Arc::new(World::new(plan, false));
        world.clear_up();
        let cluster = Cluster::new(&world, Bugs::default()).await;
        let jobs = cluster.start(&world, specs(cluster.app)).await;
        assert!(world.now() < BEGIN, "all jobs are started before they are watched");
        world.sleep_until(END + 5_000).await;
        let evidence = world.evidence();
        let (replacing, others) = jobs.split_at(REPLACING);
        let mut seen = Replacing { missing: 0, latest: 0, waited: Vec::new() };
        for job in others {
            in_time(&evidence, *job, &mut seen);
        }
        for (at, job, _) in evidence.kills.iter().filter(|(_, job, _)| replacing.contains(job)) {
            let arrival =
                evidence.received.iter().find(|received| received.run.job == *job && received.at >= *at);
            seen.waited.extend(arrival.map(|received| received.at - at));
        }
        seen
    })
}

/// Jobs that replace their runs, and others.
const REPLACING: usize = 5;
const OTHERS: usize = 20;

/// Range of the fires that are checked.
const BEGIN: Ms = START + 8_000;
const END: Ms = START + 30_000;

fn specs(app: AppId) -> Vec<JobSpec> {
    let each_second = |number: usize, name: &str, handler: &str, overlap| {
        let anchor = Timestamp::from_millis(START + (number as Ms * 37) % 1_000);
        let schedule = Schedule::fixed_rate(anchor, Duration::from_secs(1)).expect("whole milliseconds");
        let mut spec = JobSpec::new(app, format!("{name} {number}"), schedule, handler);
        spec.route = routes::HASH.into();
        spec.overlap = overlap;
        spec
    };
    let replacing =
        (0..REPLACING).map(|number| each_second(number, "replaces", handlers::NEVER, Overlap::Replace));
    // Fires of an exclusive job are claimed when they are due, so they notice the shortest delay.
    let others = (0..OTHERS).map(|number| each_second(number, "other", handlers::QUICK, Overlap::Skip));
    replacing.chain(others).collect()
}

fn in_time(evidence: &Evidence, job: JobId, seen: &mut Replacing) {
    for instant in instants(&evidence.jobs[&job], BEGIN, END) {
        let mut arrivals = evidence
            .received
            .iter()
            .filter(|received| received.run.job == job && received.run.scheduled_at == instant);
        match arrivals.next() {
            Some(received) => seen.latest = seen.latest.max(received.at - instant),
            None => seen.missing += 1,
        }
    }
}
