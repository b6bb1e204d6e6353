//! Completes runs, and opens retries and children in the same transaction.

mod late;

use std::collections::{BTreeMap, BTreeSet};

use engine::{
    AppId, ChildrenMode, Disposition, Ender, Ending, FollowUps, Job, JobId, NextFire, Origin, Outcome, Run,
    RunId, RunState, Trouble, Unsent, Verdict,
};
use timer::Timestamp;

use crate::addresses;
use crate::database::Tables;
use crate::jobs::{self, Stored};
use crate::runs::{self, Closing, Entry, FireEnd, Opening};
use crate::session::{Lock, Session, SessionError};
use crate::{alerts, control, foreign, workflows};

pub async fn complete(
    s: &mut dyn Session,
    tables: &Tables,
    now: Timestamp,
    endings: &[Ending],
    ender: &dyn Ender,
) -> Result<Vec<Verdict>, SessionError> {
    let jobs = lock_jobs(s, tables, endings).await?;
    let mut open = runs::lock(s, &ids_of(endings)).await?;
    let mut stored = foreign::results_of(s, tables, open.keys().copied().collect(), Lock::Wait).await?;

    let mut verdicts = Vec::with_capacity(endings.len());
    let mut ended = Vec::new();
    for ending in endings {
        let verdict = match open.get(&ending.run.0) {
            Some(run) if is_stale(run, ending) => Verdict::Stale,
            Some(_) => {
                let mut run = open.remove(&ending.run.0).expect("it was found just now");
                run.address = ending.address.clone().or(run.address);
                match stored.remove(&run.id) {
                    Some(outcome) => {
                        ended.push(end_stored(run, &outcome, &jobs, ender));
                        Verdict::Stored
                    }
                    None => {
                        ended.push(end(run, &ending.outcome, &jobs, ender));
                        Verdict::Applied
                    }
                }
            }
            // The run was not open, or was closed by an earlier result of this batch.
            None if ended.iter().any(|ended| ended.closing.run.id == ending.run) => Verdict::Duplicate,
            None => Verdict::Missing,
        };
        verdicts.push(verdict);
    }
    follow(s, tables, now, &jobs, ended, ender).await?;

    late::complete(s, tables, now, endings, ender, &mut verdicts).await?;
    let is_over = endings.iter().zip(&verdicts).filter(|(_, verdict)| **verdict == Verdict::Duplicate);
    let sent = is_over.filter_map(|(ending, _)| Some((ending.run, ending.address.as_deref()?)));
    addresses::keep(s, sent.collect()).await?;
    Ok(verdicts)
}

fn ids_of(endings: &[Ending]) -> Vec<i64> {
    let ids: BTreeSet<i64> = endings.iter().map(|ending| ending.run.0).collect();
    ids.into_iter().collect()
}

/// The jobs of the runs that end. A job is locked before its runs if the end changes more than the run.
async fn lock_jobs(
    s: &mut dyn Session,
    tables: &Tables,
    endings: &[Ending],
) -> Result<BTreeMap<i64, Stored>, SessionError> {
    if endings.is_empty() {
        return Ok(BTreeMap::new());
    }
    let mut found = jobs::load_of_runs(s, tables, ids_of(endings)).await?;
    let any_failed = endings.iter().any(|ending| !matches!(ending.outcome, Outcome::Succeeded(_)));
    let shared = found.values().filter(|stored| changes_what_follows(&stored.job, any_failed));
    let shared: Vec<i64> = shared.map(|stored| stored.job.id.0).collect();
    jobs::lock(s, &shared, Lock::Wait).await?;
    // Read again, because they could change until now: after a stop that came first no retry may be opened.
    found.retain(|id, _| !shared.contains(id));
    found.extend(jobs::load(s, tables, &shared).await?);
    Ok(found)
}

/// Whether the end of a run opens another run of the job, or changes when one is next claimed.
fn changes_what_follows(job: &Job, any_failed: bool) -> bool {
    let retries = any_failed && job.spec.retry.count > 0;
    retries || job.spec.overlap.is_exclusive() || (job.enabled && job.next_fire_at.is_none())
}

fn is_stale(run: &Run, ending: &Ending) -> bool {
    ending.version.is_some_and(|version| version != run.version)
        || run.state.after(ending.outcome.event()).is_err()
}

/// A run that ends now.
struct Ended {
    closing: Closing,
    follow: FollowUps,
}

fn end(run: Run, outcome: &Outcome, jobs: &BTreeMap<i64, Stored>, ender: &dyn Ender) -> Ended {
    let job = jobs.get(&run.job.0).map(|stored| &stored.job);
    let outcome = ender.recorded(&run, outcome);
    let follow = job.map(|job| ender.follow(job, &run, &outcome)).unwrap_or_default();
    let closing = Closing { run, outcome, retried: follow.retry_at.is_some(), stored: false };
    Ended { closing, follow }
}

/// Ends a run with the result that a Java admin stored. It has started the children, but retries no run of ours.
fn end_stored(run: Run, outcome: &Outcome, jobs: &BTreeMap<i64, Stored>, ender: &dyn Ender) -> Ended {
    let mut ended = end(run, outcome, jobs, ender);
    ended.closing.stored = true;
    ended.follow.children.clear();
    ended
}

async fn follow(
    s: &mut dyn Session,
    tables: &Tables,
    now: Timestamp,
    jobs: &BTreeMap<i64, Stored>,
    ended: Vec<Ended>,
    ender: &dyn Ender,
) -> Result<(), SessionError> {
    let (closings, follows): (Vec<Closing>, Vec<FollowUps>) =
        ended.into_iter().map(|ended| (ended.closing, ended.follow)).unzip();
    let ends = runs::close(s, tables, now, &closings).await?;

    let mut next = Opened::default();
    let mut raised = Vec::new();
    for ((closing, follow), end) in closings.iter().zip(follows).zip(&ends) {
        let run = &closing.run;
        let Some(stored) = jobs.get(&run.job.0) else {
            continue;
        };
        if let Some(due_at) = follow.retry_at {
            next.retries.push(retry_of(run, due_at));
        }
        if let Some(of) = parent_for_children(&stored.job, run, &closing.outcome, *end) {
            next.children.extend(follow.children.iter().map(|child| child_of(*child, of, run, now)));
        }
        if let Some(trouble) = follow.trouble {
            raised.push((run.job, closing.row(), trouble));
        }
        if let Some(next) = follow.rearm.filter(|_| end.over) {
            jobs::rearm(s, run.job, next).await?;
        }
        if run.state == RunState::Cancelling {
            // It was dispatched after all, so its scheduled time must not fire again under the new schedule.
            let next = NextFire::at_or_never(stored.job.spec.next_after(run.scheduled_at));
            control::move_past(s, tables, &stored.job, run, next).await?;
        }
    }
    next.write(s, tables, jobs, now, ender).await?;
    alerts::raise(s, tables, now, raised).await?;
    wake_next(s, now, jobs, &closings).await
}

/// Another attempt of the same fire and shard.
fn retry_of(run: &Run, due_at: Timestamp) -> Run {
    Run {
        fire: run.fire,
        shard: run.shard,
        attempt: run.attempt + 1,
        retry_of: Some(run.id),
        depth: run.depth,
        param: run.param.clone(),
        ..runs::waiting(run.job, run.origin, run.scheduled_at, due_at)
    }
}

/// The run that is the parent of the children to open now, if any are to be opened.
fn parent_for_children(job: &Job, run: &Run, outcome: &Outcome, end: FireEnd) -> Option<RunId> {
    match job.spec.children_mode {
        ChildrenMode::Once if run.shard.total > 1 => end.succeeded.then_some(run.fire),
        _ => matches!(outcome, Outcome::Succeeded(_)).then_some(run.id),
    }
}

fn child_of(child: JobId, of: RunId, parent: &Run, now: Timestamp) -> Run {
    Run { depth: parent.depth + 1, ..runs::waiting(child, Origin::Child { of }, now, now) }
}

/// Runs that are opened when runs end.
#[derive(Default)]
struct Opened {
    retries: Vec<Run>,
    children: Vec<Run>,
}

impl Opened {
    /// Skips children that do not exist, and records those that `ender` blocks.
    async fn write(
        self,
        s: &mut dyn Session,
        tables: &Tables,
        jobs: &BTreeMap<i64, Stored>,
        now: Timestamp,
        ender: &dyn Ender,
    ) -> Result<(), SessionError> {
        let unknown: BTreeSet<i64> =
            self.children.iter().map(|run| run.job.0).filter(|id| !jobs.contains_key(id)).collect();
        let loaded = jobs::load(s, tables, &unknown.into_iter().collect::<Vec<_>>()).await?;
        let job_of =
            |run: &Run| jobs.get(&run.job.0).or_else(|| loaded.get(&run.job.0)).map(|found| &found.job);
        let retries = self.retries.into_iter().filter_map(|run| Some(Opening { job: job_of(&run)?, run }));
        let mut openings: Vec<Opening<'_>> = retries.collect();
        let mut opened: BTreeMap<AppId, u64> = BTreeMap::new();
        let (mut blocked, mut raised) = (Vec::new(), Vec::new());
        for run in self.children {
            let Some(job) = job_of(&run) else { continue };
            let opened = opened.entry(job.spec.app).or_default();
            match ender.blocks(job, *opened) {
                None => {
                    *opened += 1;
                    openings.push(Opening { job, run });
                }
                Some(reason) => {
                    let (disposition, at) = (Disposition::Blocked, run.scheduled_at);
                    let unsent = Unsent { disposition, first: at, last: at, count: 1, reason };
                    let trouble = Trouble::of_unsent(job, &unsent);
                    raised.extend(trouble.map(|trouble| (job.id, None, trouble)));
                    let superseded = runs::LOST;
                    blocked.push(Entry { job: job.id, unsent, run: None, fire: None, at: now, superseded });
                }
            }
        }
        let is_workflow =
            |opening: &Opening<'_>| opening.run.retry_of.is_some() && opening.job.spec.workflow.is_some();
        let workflows: BTreeSet<usize> = openings
            .iter()
            .enumerate()
            .filter(|(_, opening)| is_workflow(opening))
            .map(|(at, _)| at)
            .collect();
        let opened = runs::open(s, tables, openings).await?;
        let retried = opened.into_iter().enumerate().filter(|(at, _)| workflows.contains(at));
        workflows::resume::retry(s, tables, now, &retried.map(|(_, run)| run).collect::<Vec<_>>()).await?;
        runs::record(s, blocked).await?;
        alerts::raise(s, tables, now, raised).await
    }
}

/// Lets the next waiting run of each exclusive job start.
async fn wake_next(
    s: &mut dyn Session,
    now: Timestamp,
    jobs: &BTreeMap<i64, Stored>,
    closings: &[Closing],
) -> Result<(), SessionError> {
    let freed = closings.iter().map(|closing| closing.run.job.0);
    let is_exclusive = |id: &i64| jobs.get(id).is_some_and(|stored| stored.job.spec.overlap.is_exclusive());
    let freed: BTreeSet<i64> = freed.filter(is_exclusive).collect();
    runs::wake(s, &freed.into_iter().collect::<Vec<_>>(), now).await
}
