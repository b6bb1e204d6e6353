//! Runs that scheduled times of a job already have, whatever started them.

use std::collections::BTreeMap;

use engine::{EarlierRun, JobId, RunId, RunState};
use timer::Timestamp;

use crate::database::Tables;
use crate::read::state_of;
use crate::session::{Lock, Session, SessionError, Value};

/// Runs of the job by scheduled time: open ones, and those in the log, which has whole seconds.
pub async fn earlier_runs(
    s: &mut dyn Session,
    tables: &Tables,
    job: JobId,
    times: &[Timestamp],
) -> Result<BTreeMap<Timestamp, Vec<EarlierRun>>, SessionError> {
    let mut found: BTreeMap<Timestamp, Vec<EarlierRun>> = BTreeMap::new();
    for times in times.chunks(TIMES_AT_ONCE) {
        open(s, job, times, &mut found).await?;
        finished(s, tables, job, times, &mut found).await?;
    }
    Ok(found)
}

/// Scheduled times per query: each is a point in an index.
const TIMES_AT_ONCE: usize = 100;

async fn open(
    s: &mut dyn Session,
    job: JobId,
    times: &[Timestamp],
    found: &mut BTreeMap<Timestamp, Vec<EarlierRun>>,
) -> Result<(), SessionError> {
    let sql = "SELECT scheduled_ms, run_id FROM tw_run WHERE job_id = ? AND scheduled_ms IN ?";
    let millis = Value::Ids(times.iter().map(|at| at.as_millis()).collect());
    for row in s.query(sql, &[job.into(), millis], Lock::None).await? {
        let mut row = row.read();
        let (at, id) = (row.instant()?, RunId(row.int()?));
        found.entry(at).or_default().push(EarlierRun { id, shard: String::new(), state: RunState::Running });
    }
    Ok(())
}

async fn finished(
    s: &mut dyn Session,
    tables: &Tables,
    job: JobId,
    times: &[Timestamp],
    found: &mut BTreeMap<Timestamp, Vec<EarlierRun>>,
) -> Result<(), SessionError> {
    let mut by_text: BTreeMap<String, Vec<Timestamp>> = BTreeMap::new();
    let mut params = vec![Value::from(job)];
    for at in times {
        let written = tables.wall.time(*at);
        if let Value::Time(text) = &written {
            by_text.entry(text.clone()).or_default().push(*at);
        }
        params.push(written);
    }
    let any = vec!["l.trigger_time = ?"; times.len()].join(" OR ");
    let sql = format!(
        "SELECT l.id, l.trigger_time, l.executor_sharding_param, l.trigger_code, l.handle_code, l.handle_time \
         FROM xxl_job_log l WHERE l.job_id = ? AND ({any}) \
         AND NOT EXISTS (SELECT 1 FROM tw_run r WHERE r.run_id = l.id)"
    );
    for row in s.query(&sql, &params, Lock::None).await? {
        let mut row = row.read();
        let (id, text, shard) = (RunId(row.int()?), row.text()?, row.text()?);
        let codes = (row.int()?, row.int()?);
        let state = match state_of(codes, row.maybe_text()?.is_some()) {
            over if over.is_over() => over,
            // A run of another program that has not reported yet, or never will.
            _ => RunState::Lost,
        };
        for at in by_text.get(&text).into_iter().flatten() {
            found.entry(*at).or_default().push(EarlierRun { id, shard: shard.clone(), state });
        }
    }
    Ok(())
}
