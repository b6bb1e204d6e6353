//! Executors that refuse to end a run, with handlers that exceed their timeout and then succeed.

use std::sync::Arc;
use std::time::Duration;

use cron::{Schedule, Timestamp};
use engine::{Bugs, JobSpec, Outcome, RunState, TroubleKind};

use super::clock::{Ms, START};
use super::plan::{Kills, Plan, handlers, routes};
use super::world::World;
use super::{Cluster, collect, in_virtual_time};

/// Runs that exceeded their timeout and then succeeded.
#[derive(Debug, Default)]
pub struct Overdue {
    /// Number of them.
    pub runs: usize,
    /// Those that were still open before their handlers ended.
    pub open: usize,
    /// Those with an alert about the timeout.
    pub told: usize,
    /// Those that are stored as succeeded at the end.
    pub succeeded: usize,
}

/// Runs the simulation. The seed decides which executors enforce timeouts themselves.
pub fn overdue(seed: u64) -> Overdue {
    in_virtual_time(async {
        let world = Arc::new(World::new(Plan { kills: Kills::Refused, ..Plan::calm(seed, 1) }, false));
        world.clear_up();
        let cluster = Cluster::new(&world, Bugs::default()).await;
        let spec = |number: usize| {
            let at = Schedule::once(Timestamp::from_millis(FIRE));
            let mut spec = JobSpec::new(cluster.app, format!("job {number}"), at, handlers::OVERDUE);
            spec.route = routes::HASH.into();
            spec.timeout = Some(Duration::from_secs(2));
            spec.alert = true;
            spec
        };
        let jobs = cluster.start(&world, (0..JOBS).map(spec).collect()).await;
        world.sleep_until(FIRE + handlers::OVERDUE_TAKES.as_millis() as Ms - 1_000).await;
        collect(&world, &*cluster.store, &jobs).await;
        let before = world.evidence().records.clone();
        world.sleep_until(FIRE + handlers::OVERDUE_TAKES.as_millis() as Ms + 10_000).await;
        collect(&world, &*cluster.store, &jobs).await;

        let evidence = world.evidence();
        let mut seen = Overdue::default();
        for result in evidence.results.iter().filter(|result| matches!(result.outcome, Outcome::Succeeded(_)))
        {
            seen.runs += 1;
            seen.open += usize::from(before[&result.run].state == RunState::Running);
            seen.succeeded += usize::from(evidence.records[&result.run].state == RunState::Succeeded);
            let is_told = |(_, run, kind): &&(Ms, engine::RunId, TroubleKind)| {
                *run == result.run && *kind == TroubleKind::TimedOut
            };
            seen.told += evidence.alarms.iter().filter(is_told).count();
        }
        seen
    })
}

const JOBS: usize = 12;

/// The one fire of all jobs.
const FIRE: Ms = START + 10_000;
