//! Due fires that are not claimed when a schedule changes.

use std::collections::{BTreeMap, BTreeSet};

use engine::{Disposition, Job, JobId, NextFire, Plan, Planner, Trouble, Unsent};
use timer::Timestamp;

use crate::alerts::{self, About};
use crate::database::Tables;
use crate::jobs;
use crate::runs::{self, Entry, IS_SCHEDULED, Opening};
use crate::session::{Lock, Row, Session, SessionError, Value};

/// Handling of due fires that are not claimed when the schedule changes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Unclaimed {
    /// They wait to be claimed.
    Sent,
    /// They are recorded as cancelled.
    Cancelled,
}

/// Handles the fires up to `at` that are not claimed, so that none is lost when the next times of the jobs are
/// overwritten. Returns the new numbers of fires of jobs with a maximum.
pub async fn settle<'a>(
    s: &mut dyn Session,
    tables: &Tables,
    jobs: impl Iterator<Item = &'a Job> + Send,
    at: Timestamp,
    unclaimed: Unclaimed,
    planner: &dyn Planner,
) -> Result<BTreeMap<i64, u64>, SessionError> {
    let is_due =
        |job: &&Job| job.enabled && job.problem.is_none() && job.next_fire_at.is_some_and(|next| next <= at);
    let due: Vec<&Job> = jobs.filter(is_due).collect();
    let mut rows = Rows { open: open_until(s, &due, at).await?, ..Rows::default() };
    let mut counted = BTreeMap::new();
    for job in due {
        let mut next = job.next_fire_at;
        let mut fires = job.fires;
        for _ in 0..PLANS_MAX {
            if next.is_none_or(|next| next > at) {
                break;
            }
            let plan = planner.settle(&Job { next_fire_at: next, fires, ..job.clone() }, at);
            if job.spec.max_fires.is_some() && matches!(unclaimed, Unclaimed::Sent) {
                fires += plan.fires.len() as u64;
                counted.insert(job.id.0, fires);
            }
            next = match plan.next {
                NextFire::At { fire_at, .. } => Some(fire_at),
                NextFire::AfterRun | NextFire::Never => None,
            };
            rows.add(job, plan, at, unclaimed);
            if rows.len() >= ROWS_MAX {
                let open = std::mem::take(&mut rows.open);
                std::mem::replace(&mut rows, Rows { open, ..Rows::default() }).write(s, tables, at).await?;
            }
        }
    }
    rows.write(s, tables, at).await?;
    jobs::set_fires(s, &counted.iter().map(|(job, fires)| (JobId(*job), *fires)).collect::<Vec<_>>()).await?;
    Ok(counted)
}

/// Maximum plans per job: each covers tens of thousands of fires.
const PLANS_MAX: usize = 1000;

/// Rows held in memory before they are written.
const ROWS_MAX: usize = 10_000;

/// Jobs and scheduled times of open runs up to `until`. They are not opened again, which would happen if others had
/// set the next time back.
async fn open_until(
    s: &mut dyn Session,
    jobs: &[&Job],
    until: Timestamp,
) -> Result<BTreeSet<(JobId, Timestamp)>, SessionError> {
    if jobs.is_empty() {
        return Ok(BTreeSet::new());
    }
    let sql = format!(
        "SELECT job_id, scheduled_ms FROM tw_run WHERE job_id IN ? AND {IS_SCHEDULED} AND scheduled_ms <= ?"
    );
    let ids = Value::Ids(jobs.iter().map(|job| job.id.0).collect());
    let rows = s.query(&sql, &[ids, until.into()], Lock::None).await?;
    let key = |row: Row| {
        let mut row = row.read();
        Ok((JobId(row.int()?), row.instant()?))
    };
    rows.into_iter().map(key).collect()
}

/// Rows to write.
#[derive(Default)]
struct Rows<'a> {
    open: BTreeSet<(JobId, Timestamp)>,
    openings: Vec<Opening<'a>>,
    entries: Vec<Entry>,
    troubles: Vec<About>,
}

impl<'a> Rows<'a> {
    fn add(&mut self, job: &'a Job, plan: Plan, at: Timestamp, unclaimed: Unclaimed) {
        let mut unsent = plan.unsent;
        for fire in plan.fires {
            if self.open.contains(&(job.id, fire.scheduled_at)) {
                continue;
            }
            match unclaimed {
                Unclaimed::Sent => {
                    let run = runs::waiting(job.id, fire.origin, fire.scheduled_at, fire.due_at);
                    self.openings.push(Opening { run, job });
                }
                Unclaimed::Cancelled => unsent.push(Unsent {
                    disposition: Disposition::Cancelled,
                    first: fire.scheduled_at,
                    last: fire.scheduled_at,
                    count: 1,
                    reason: "the job was stopped or deleted before the run was claimed".into(),
                }),
            }
        }
        let told = |unsent: &Unsent| Some((job.id, None, Trouble::of_unsent(job, unsent)?));
        self.troubles.extend(unsent.iter().filter_map(told));
        let entry = |unsent| Entry { job: job.id, unsent, run: None, fire: None, at, superseded: runs::LOST };
        self.entries.extend(unsent.into_iter().map(entry));
    }

    fn len(&self) -> usize {
        self.openings.len() + self.entries.len()
    }

    async fn write(self, s: &mut dyn Session, tables: &Tables, at: Timestamp) -> Result<(), SessionError> {
        runs::open(s, tables, self.openings).await?;
        alerts::raise(s, tables, at, self.troubles).await?;
        runs::record(s, self.entries).await
    }
}
