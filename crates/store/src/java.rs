//! A Java admin for tests: XXL-JOB's statements on the tables that it shares with us.

use std::time::Duration;

use engine::{Job, JobId, Outcome, RunId, StoreError};
use timer::Timestamp;

use crate::database::{Database, Tables, transaction};
use crate::jobs;
use crate::runs;
use crate::session::{Columns, Lock, Session, SessionError, Value};

impl Database {
    /// Takes the fires of the next seconds, one of each wanted job, and moves the jobs to their next times. A Java
    /// admin keeps such fires in memory, and sends each at its time whatever happens to the job.
    pub async fn java_takes_fires(
        &self,
        ahead: Duration,
        wanted: &(dyn Fn(&Job) -> bool + Sync),
    ) -> Result<Vec<(Job, Timestamp)>, StoreError> {
        transaction!(self, s => take_fires(s, &self.tables, ahead, wanted))
    }

    /// Adds the log row of a run.
    pub async fn java_opens_run(&self, job: &Job) -> Result<RunId, StoreError> {
        transaction!(self, s => open_run(s, &self.tables, job))
    }

    /// Stores that an executor accepted the run.
    pub async fn java_sent(&self, run: RunId) -> Result<(), StoreError> {
        transaction!(self, s => sent(s, run))
    }

    /// Stores a result. Returns the children to start if the run succeeded; `None` if the log has a result already.
    pub async fn java_receives(
        &self,
        run: RunId,
        outcome: &Outcome,
    ) -> Result<Option<Vec<JobId>>, StoreError> {
        transaction!(self, s => receive(s, &self.tables, run, outcome))
    }
}

async fn take_fires(
    s: &mut dyn Session,
    tables: &Tables,
    ahead: Duration,
    wanted: &(dyn Fn(&Job) -> bool + Sync),
) -> Result<Vec<(Job, Timestamp)>, SessionError> {
    let sql = "SELECT lock_name FROM xxl_job_lock WHERE lock_name = 'schedule_lock'";
    s.query(sql, &[], Lock::Wait).await?;
    let now = s.now().await?;
    // Late fires are left to our nodes: a Java admin would skip most of them without a record.
    let sql = "SELECT id FROM xxl_job_info WHERE trigger_status = 1 AND trigger_next_time > ? \
               AND trigger_next_time <= ? ORDER BY id";
    let rows = s.query(sql, &[now.into(), (now + ahead).into()], Lock::Wait).await?;
    let ids = rows.into_iter().map(|row| row.read().int()).collect::<Result<Vec<_>, _>>()?;
    let mut taken = Vec::new();
    for stored in jobs::load(s, tables, &ids).await?.into_values() {
        let job = stored.job;
        let Some(at) = job.next_fire_at.filter(|_| wanted(&job)) else { continue };
        let next = job.spec.next_after(at).unwrap_or_default();
        let sql = "UPDATE xxl_job_info SET trigger_last_time = ?, trigger_next_time = ?, trigger_status = ? WHERE id = ?";
        let status = i64::from(next.as_millis() > 0);
        s.execute(sql, &[at.into(), next.into(), status.into(), job.id.0.into()]).await?;
        taken.push((job, at));
    }
    Ok(taken)
}

async fn open_run(s: &mut dyn Session, tables: &Tables, job: &Job) -> Result<RunId, SessionError> {
    let now = s.now().await?;
    let columns = [
        "job_group",
        "job_id",
        "executor_handler",
        "executor_param",
        "executor_fail_retry_count",
        "trigger_time",
        "trigger_code",
        "handle_code",
        "alarm_status",
    ];
    let row: Vec<Value> = vec![
        job.spec.app.0.into(),
        job.id.0.into(),
        job.spec.handler.as_str().into(),
        job.spec.param.as_str().into(),
        i64::from(job.spec.retry.count).into(),
        tables.wall.time(now),
        0.into(),
        0.into(),
        0.into(),
    ];
    let into = Columns { table: "xxl_job_log", keys: &[], columns: &columns };
    Ok(RunId(s.insert_numbered(into, vec![row]).await?[0]))
}

async fn sent(s: &mut dyn Session, run: RunId) -> Result<(), SessionError> {
    s.execute("UPDATE xxl_job_log SET trigger_code = 200 WHERE id = ?", &[run.0.into()]).await?;
    Ok(())
}

async fn receive(
    s: &mut dyn Session,
    tables: &Tables,
    run: RunId,
    outcome: &Outcome,
) -> Result<Option<Vec<JobId>>, SessionError> {
    let sql = "SELECT job_id FROM xxl_job_log WHERE id = ? AND handle_code = 0";
    let Some(row) = s.query(sql, &[run.0.into()], Lock::Wait).await?.into_iter().next() else {
        return Ok(None);
    };
    let job = JobId(row.read().int()?);
    let now = s.now().await?;
    let sql = "UPDATE xxl_job_log SET handle_time = ?, handle_code = ?, handle_msg = ? WHERE id = ?";
    let message = runs::message_text(outcome.message());
    let code = runs::handle_code(outcome);
    s.execute(sql, &[tables.wall.time(now), code.into(), message.into(), run.0.into()]).await?;
    let found = jobs::load_one(s, tables, job).await?.filter(|_| matches!(outcome, Outcome::Succeeded(_)));
    let children = found.map_or_else(Vec::new, |stored| stored.job.spec.children);
    Ok(Some(children.into_iter().filter(|child| *child != job).collect()))
}
