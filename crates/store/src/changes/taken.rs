//! Fires that a Java admin on the same database has taken ahead.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use engine::{Job, JobSpec, Origin};
use timer::Timestamp;

use crate::control;
use crate::database::Tables;
use crate::runs::{self, IS_SCHEDULED, Opening};
use crate::session::{Columns, Lock, Session, SessionError, Value};

/// Scheduled times of a job that a Java admin may have taken ahead. It takes fires up to [`JAVA_READ_AHEAD`] before
/// their time and sends them whatever happens to the job, so they must not fire again when the job's next time is
/// set. The last fire that was taken, by a Java admin or by us, is in `trigger_last_time`.
pub struct Taken {
    by_java: BTreeSet<Timestamp>,
    last: Timestamp,
}

impl Taken {
    /// The times after `at`, by the definitions in force until now, and by those before them. Jobs without any are
    /// omitted.
    pub async fn read(
        s: &mut dyn Session,
        tables: &Tables,
        jobs: &[&Job],
        at: Timestamp,
    ) -> Result<BTreeMap<i64, Taken>, SessionError> {
        let started: Vec<i64> = jobs.iter().filter(|job| job.enabled).map(|job| job.id.0).collect();
        if !tables.sees_taken || started.is_empty() {
            return Ok(BTreeMap::new());
        }
        let last = last_taken(s, &started).await?;
        let earlier = remembered(s, &started).await?;
        let ours = open_after(s, &started, at).await?;
        let none = BTreeSet::new();
        let taken = jobs.iter().filter_map(|job| {
            let last = (*last.get(&job.id.0)?).min(at + JAVA_READ_AHEAD);
            let ours = ours.get(&job.id.0).unwrap_or(&none);
            let earlier = earlier.get(&job.id.0).into_iter().flatten().copied().filter(|time| *time > at);
            let times = times_between(&job.spec, at, last).chain(earlier);
            let by_java: BTreeSet<Timestamp> = times.filter(|time| !ours.contains(time)).collect();
            let last = by_java.last().copied()?;
            Some((job.id.0, Taken { by_java, last }))
        });
        Ok(taken.collect())
    }
}

/// Opens the fires of changed jobs that come before the last one taken, except those that are taken. Returns, for jobs
/// with taken fires, the time after which their schedule continues. A fire whose earlier run is still being taken back
/// is opened when its node has answered.
pub async fn fire_around(
    s: &mut dyn Session,
    tables: &Tables,
    changed: &[&Job],
    taken: &BTreeMap<i64, Taken>,
    at: Timestamp,
) -> Result<BTreeMap<i64, Timestamp>, SessionError> {
    let around = changed.iter().filter_map(|job| Some((*job, taken.get(&job.id.0)?)));
    let around: Vec<(&Job, &Taken)> = around.collect();
    let open = open_after(s, &around.iter().map(|(job, _)| job.id.0).collect::<Vec<_>>(), at).await?;
    let none = BTreeSet::new();
    let mut openings = Vec::new();
    for (job, taken) in &around {
        let open = open.get(&job.id.0).unwrap_or(&none);
        let is_free = |time: &Timestamp| !taken.by_java.contains(time) && !open.contains(time);
        let times = times_between(&job.spec, at, taken.last).filter(is_free);
        let run = |time| runs::waiting(job.id, Origin::Schedule, time, time);
        openings.extend(times.map(|time| Opening { run: run(time), job }));
    }
    runs::open(s, tables, openings).await?;
    for (job, taken) in &around {
        control::reopen_released(s, job.id, at, taken.last).await?;
    }
    Ok(around.into_iter().map(|(job, taken)| (job.id.0, taken.last)).collect())
}

/// Resets the last fires of jobs that are after `at`: they are those of runs of ours that were withdrawn.
/// [`remember`] then stores those that a Java admin has taken.
pub async fn forget_ahead(s: &mut dyn Session, changed: &[i64], at: Timestamp) -> Result<(), SessionError> {
    let sql = "UPDATE xxl_job_info SET trigger_last_time = ? WHERE id IN ? AND trigger_last_time > ?";
    s.execute(sql, &[at.into(), Value::Ids(changed.to_vec()), at.into()]).await?;
    Ok(())
}

/// Stores the times that a Java admin has taken, for the next change of the jobs: by then their definitions are others.
pub async fn remember(
    s: &mut dyn Session,
    changed: &[i64],
    taken: &BTreeMap<i64, Taken>,
) -> Result<(), SessionError> {
    let with: Vec<(i64, &Taken)> = changed.iter().filter_map(|id| Some((*id, taken.get(id)?))).collect();
    if with.is_empty() {
        return Ok(());
    }
    let set = Columns { table: "xxl_job_info", keys: &["id"], columns: &["trigger_last_time"] };
    let row = |(id, taken): &(i64, &Taken)| vec![(*id).into(), taken.last.into()];
    s.update(set, with.iter().map(row).collect()).await?;
    let text = |times: &BTreeSet<Timestamp>| {
        times.iter().map(|time| time.as_millis().to_string()).collect::<Vec<_>>().join(",")
    };
    let set = Columns { table: "tw_job", keys: &["job_id"], columns: &["taken"] };
    let row = |(id, taken): &(i64, &Taken)| vec![(*id).into(), text(&taken.by_java).into()];
    s.update(set, with.iter().map(row).collect()).await?;
    Ok(())
}

/// The times that [`remember`] stored.
async fn remembered(
    s: &mut dyn Session,
    jobs: &[i64],
) -> Result<BTreeMap<i64, BTreeSet<Timestamp>>, SessionError> {
    let sql = "SELECT job_id, taken FROM tw_job WHERE job_id IN ? AND taken IS NOT NULL";
    let mut found = BTreeMap::new();
    for row in s.query(sql, &[Value::Ids(jobs.to_vec())], Lock::None).await? {
        let mut row = row.read();
        let (job, text) = (row.int()?, row.text()?);
        let times = text.split(',').filter_map(|time| time.parse().ok()).map(Timestamp::from_millis);
        found.insert(job, times.collect());
    }
    Ok(found)
}

/// The last taken fires of these jobs.
pub async fn last_taken(s: &mut dyn Session, jobs: &[i64]) -> Result<BTreeMap<i64, Timestamp>, SessionError> {
    if jobs.is_empty() {
        return Ok(BTreeMap::new());
    }
    let sql = "SELECT id, trigger_last_time FROM xxl_job_info WHERE id IN ? ORDER BY id";
    let mut found = BTreeMap::new();
    for row in s.query(sql, &[Value::Ids(jobs.to_vec())], Lock::Wait).await? {
        let mut row = row.read();
        found.insert(row.int()?, row.instant()?);
    }
    Ok(found)
}

/// Scheduled times of open runs after `after`, within the read-ahead of a Java admin.
async fn open_after(
    s: &mut dyn Session,
    jobs: &[i64],
    after: Timestamp,
) -> Result<BTreeMap<i64, BTreeSet<Timestamp>>, SessionError> {
    if jobs.is_empty() {
        return Ok(BTreeMap::new());
    }
    let sql = format!(
        "SELECT job_id, scheduled_ms FROM tw_run WHERE job_id IN ? AND {IS_SCHEDULED} \
         AND scheduled_ms > ? AND scheduled_ms <= ?"
    );
    let params = [Value::Ids(jobs.to_vec()), after.into(), (after + JAVA_READ_AHEAD).into()];
    let mut found: BTreeMap<i64, BTreeSet<Timestamp>> = BTreeMap::new();
    for row in s.query(&sql, &params, Lock::None).await? {
        let mut row = row.read();
        found.entry(row.int()?).or_default().insert(row.instant()?);
    }
    Ok(found)
}

/// The times that a definition fires after `after`, up to and including `until`.
fn times_between(spec: &JobSpec, after: Timestamp, until: Timestamp) -> impl Iterator<Item = Timestamp> {
    let times = std::iter::successors(spec.next_after(after), |last| spec.next_after(*last));
    times.take_while(move |time| *time <= until).take(TIMES_MAX)
}

/// How far ahead a Java admin takes fires.
pub const JAVA_READ_AHEAD: Duration = Duration::from_secs(5);

/// Bound of the fires within the read-ahead.
const TIMES_MAX: usize = 10_000;
