//! A database full of started jobs.

use std::time::Duration;

use anyhow::Result;
use cron::{Cron, DstRule, Schedule, Zone};
use engine::{AppId, JobSpec, Store as _};
use timer::Timestamp;

use crate::database::{Database, Home};

/// Creates a database with `jobs` started jobs. Those of the first `blocks` blocks are due [`BLOCK_STEP`] apart;
/// the others much later.
pub async fn create(database: &Database, jobs: u64, blocks: u64) -> Result<Home> {
    let home = database.create().await?;
    let store = home.open().await?;
    let app = store.ensure_app("bench").await?;
    store.create_job(&a_job(app)?).await?;
    drop(store);
    home.run(&fill(jobs, blocks)).await?;
    home.count().await?;
    Ok(home)
}

/// Number of jobs that are due together.
pub const BLOCK: u64 = 1_000;
/// Time between the fires of two blocks.
pub const BLOCK_STEP: Duration = Duration::from_secs(60);

/// Time of the first block's fire.
pub const FIRST_FIRE: Timestamp = Timestamp::from_millis(1_782_000_000_000);

fn a_job(app: AppId) -> Result<JobSpec> {
    let schedule = Schedule::cron(Cron::parse("0 */5 * * * ?")?, Zone::utc(), DstRule::QUARTZ);
    let mut spec =
        JobSpec::new(app, "synchronize the orders of the last five minutes", schedule, "syncOrders");
    spec.param = r#"{"source":"shop","target":"warehouse","limit":1000,"dryRun":false}"#.into();
    Ok(spec)
}

/// SQL that copies the first job repeatedly, doubling each time, and starts all jobs.
fn fill(jobs: u64, blocks: u64) -> Vec<String> {
    let mut sql = Vec::new();
    let mut count = 1;
    while count < jobs {
        let copied = format!("id <= {count} AND id + {count} <= {jobs}");
        sql.push(format!(
            "INSERT INTO xxl_job_info (id, {JOB}) SELECT id + {count}, {JOB} FROM xxl_job_info WHERE {copied}"
        ));
        let copied = copied.replace("id", "job_id");
        sql.push(format!(
            "INSERT INTO tw_job (job_id, {OWN}) SELECT job_id + {count}, {OWN} FROM tw_job WHERE {copied}"
        ));
        count *= 2;
    }
    let fire = |id: &str| {
        let (first, step) = (FIRST_FIRE.as_millis(), BLOCK_STEP.as_millis() / u128::from(BLOCK));
        let later = FIRST_FIRE.as_millis() + 30 * 86_400_000;
        format!(
            "CASE WHEN {id} <= {} THEN {first} + ({id} - 1 - ({id} - 1) % {BLOCK}) * {step} ELSE {later} + {id} END",
            blocks * BLOCK.min(jobs)
        )
    };
    sql.push(format!("UPDATE xxl_job_info SET trigger_status = 1, trigger_next_time = {}", fire("id")));
    let own = fire("job_id");
    sql.push(format!("UPDATE tw_job SET next_ms = {own}, claim_ms = {own} - 1500"));
    sql
}

const JOB: &str = "job_group, job_desc, add_time, update_time, author, alarm_email, schedule_type, schedule_conf, \
     misfire_strategy, executor_route_strategy, executor_handler, executor_param, executor_block_strategy, \
     executor_timeout, executor_fail_retry_count, glue_type, glue_source, glue_remark, glue_updatetime, child_jobid, \
     trigger_status, trigger_last_time, trigger_next_time";
const OWN: &str = "zone, dst_rule, anchor_ms, schedule_kind, schedule_text, jitter_ms, timeout_ms, misfire, overlap, \
     retry, delivery, children_mode, alert, revision";
