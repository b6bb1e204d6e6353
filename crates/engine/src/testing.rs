//! Jobs and runs for unit tests.

use std::time::Duration;

use cron::{Schedule, Timestamp};

use crate::job::{AppId, Job, JobId, JobSpec};
use crate::run::{Origin, Run, RunId, RunState, Shard};

pub(crate) fn ms(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

/// A job that fires every second, next at `next`.
pub(crate) fn each_second(next: i64) -> Job {
    job(Schedule::fixed_rate(ms(0), Duration::from_secs(1)).unwrap(), next)
}

pub(crate) fn job(schedule: Schedule, next: i64) -> Job {
    Job {
        id: JobId(7),
        spec: JobSpec::new(AppId(1), "a job", schedule, "handler"),
        enabled: true,
        next_fire_at: Some(ms(next)),
        revision: 1,
        fires: 0,
        running: None,
        waiting: 0,
        problem: None,
    }
}

/// A scheduled run of the job, due at `due`.
pub(crate) fn run(id: i64, state: RunState, due: i64) -> Run {
    Run {
        id: RunId(id),
        fire: RunId(id),
        job: JobId(7),
        scheduled_at: ms(due),
        origin: Origin::Schedule,
        shard: Shard::WHOLE,
        attempt: 1,
        retry_of: None,
        depth: 0,
        state,
        version: 1,
        node: None,
        due_at: ms(due),
        check_at: ms(due),
        doubt_since: None,
        recalled: false,
        cancel: false,
        replaced: false,
        address: None,
        param: None,
    }
}
