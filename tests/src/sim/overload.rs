//! I16: for a minute twice as many fires are due as the database can write, then an eighth of that.

use std::sync::Arc;
use std::time::Duration;

use cron::{Schedule, Timestamp};
use engine::{AppId, Bugs, JobId, JobSpec};

use super::clock::{Ms, START};
use super::plan::{Plan, handlers, routes};
use super::world::World;
use super::{Cluster, collect, in_virtual_time};

/// Result for one job.
#[derive(Debug)]
pub struct Served {
    /// Id of the job.
    pub job: JobId,
    /// Interval of the job.
    pub period: Duration,
    /// Number of its fires, computed from its schedule alone.
    pub due: u64,
    /// Number of fires recorded in the history as not sent.
    pub unsent: u64,
    /// Fires that arrived at an executor: scheduled time and lateness, both in milliseconds.
    pub arrived: Vec<(i64, i64)>,
}

/// End of most jobs, on the time scale of [`Served::arrived`].
pub const LOAD_DROPS_AT: Ms = START + 70_000;

/// Runs the simulation. The seed decides only how long handlers take.
pub fn overload(seed: u64) -> Vec<Served> {
    in_virtual_time(async {
        let plan = Plan { row_cost: ROW_COST, ..Plan::calm(seed, 2) };
        let world = Arc::new(World::new(plan, false));
        world.clear_up();
        let cluster = Cluster::new(&world, Bugs::default()).await;
        let jobs = cluster.start(&world, specs(cluster.app)).await;
        assert!(world.now() < BEGIN, "all jobs are started before they first fire");
        world.sleep_until(LAST + SETTLED).await;
        collect(&world, &*cluster.store, &jobs).await;
        jobs.into_iter().map(|job| served(&world, job)).collect()
    })
}

/// A fire takes three rows (claim, acceptance, result): the database can process about 333 fires per second.
const ROW_COST: Duration = Duration::from_millis(1);

/// Jobs that fire every second, and as many that fire every two: 666 fires per second.
const JOBS_OF_EACH: u64 = 444;

/// First fire of all jobs, and the last one checked.
const BEGIN: Ms = START + 10_000;
const LAST: Ms = START + 90_000;

/// By then every due fire is decided.
const SETTLED: Ms = 8_000;

fn specs(app: AppId) -> Vec<JobSpec> {
    let each = |period: u64, number: u64| {
        // Distributed over the interval by the golden ratio, so that the offset does not depend on the id.
        let phase = period * (number * 317 % JOBS_OF_EACH) / JOBS_OF_EACH;
        let anchor = Timestamp::from_millis(BEGIN + phase as Ms);
        let schedule =
            Schedule::fixed_rate(anchor, Duration::from_millis(period)).expect("whole milliseconds");
        let mut spec =
            JobSpec::new(app, format!("each {period} ms, number {number}"), schedule, handlers::QUICK);
        spec.route = routes::HASH.into();
        spec.valid_from = Some(Timestamp::from_millis(BEGIN));
        if !number.is_multiple_of(16) {
            spec.valid_until = Some(Timestamp::from_millis(LOAD_DROPS_AT));
        }
        spec
    };
    // Alternating, so that neither kind has the lower ids.
    (0..JOBS_OF_EACH).flat_map(|number| [each(1_000, number), each(2_000, number)]).collect()
}

fn served(world: &World, job: JobId) -> Served {
    let evidence = world.evidence();
    let spec = &evidence.jobs[&job];
    let next = |after| spec.next_after(after).filter(|at| at.as_millis() <= LAST);
    let due = std::iter::successors(next(Timestamp::from_millis(BEGIN - 1)), |at| next(*at)).count() as u64;
    let unsent = evidence.history[&job].iter().map(|entry| entry.unsent.count).sum();
    let journal = evidence.received.iter().filter(|received| received.run.job == job);
    let arrived = journal
        .filter(|received| received.run.scheduled_at <= LAST)
        .map(|received| (received.run.scheduled_at, received.at - received.run.scheduled_at))
        .collect();
    let Schedule::FixedRate { period, .. } = spec.schedule else { unreachable!("all have a rate") };
    Served { job, period, due, unsent, arrived }
}
