//! Steps that depend on runs of other jobs.
//!
//! A step that opens is registered in `tw_dependency`, and looks at the runs in a later transaction. The transaction that
//! closes a run reads the registrations of its job, after it has locked the run, and stores an event for each step that
//! waits for that scheduled time. The step, in turn, locks the open runs before it looks: it either sees the end of a run,
//! or its registration is seen by the transaction that ends the run.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cron::{Day, Schedule};
use engine::{EarlierRun, Existing, Job, JobId, Origin, Planner, RunId, Turn, turn};
use timer::Timestamp;
use workflow::definition::{Action, IfMissing};
use workflow::dependency::{Dates, Found, Rules, Verdict, decide};
use workflow::{StepNo, date};

use super::rows::WorkflowRun;
use super::{Event, Kind, zone_of};
use crate::backfills::earlier_runs;
use crate::control;
use crate::database::{BrokenRule, Tables};
use crate::jobs;
use crate::runs::{self, Opening};
use crate::session::{Lock, Session, SessionError, Value};
use crate::table::table;

// ── Registrations ───────────────────────────────────────────────────────────────────────────────────────────────

/// A step that waits for runs of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// Id of the workflow run.
    pub run: RunId,
    /// The step.
    pub step: StepNo,
    /// The job.
    pub job: JobId,
    /// Its scheduled times: from the first, inclusive, to the second, exclusive.
    pub range: (Timestamp, Timestamp),
}

table! {
    /// Row of `tw_dependency`.
    struct DependencyRow in "tw_dependency" of dependency: &Dependency {
        run_id: RunId = dependency.run,
        step: StepNo = dependency.step,
        job_id: JobId = dependency.job,
        from_ms: Timestamp = dependency.range.0,
        until_ms: Timestamp = dependency.range.1,
    }
}

/// Registers steps that begin to wait.
pub async fn register(s: &mut dyn Session, dependencies: &[Dependency]) -> Result<(), SessionError> {
    if dependencies.is_empty() {
        return Ok(());
    }
    let (into, row) = DependencyRow::INSERT;
    s.insert(into, dependencies.iter().map(row).collect()).await
}

/// Deletes the registrations of steps that have ended.
pub async fn forget(s: &mut dyn Session, steps: &[(RunId, StepNo)]) -> Result<(), SessionError> {
    for (run, step) in steps {
        let sql = "DELETE FROM tw_dependency WHERE run_id = ? AND step = ?";
        s.execute(sql, &[(*run).into(), (*step).into()]).await?;
    }
    Ok(())
}

/// Events for the steps that wait for one of these runs, which are closed and locked.
pub async fn events(s: &mut dyn Session, ended: &[(JobId, Timestamp)]) -> Result<Vec<Event>, SessionError> {
    if ended.is_empty() {
        return Ok(Vec::new());
    }
    let jobs: BTreeSet<i64> = ended.iter().map(|(job, _)| job.0).collect();
    let sql = format!("SELECT {} FROM tw_dependency WHERE job_id IN ?", DependencyRow::LIST);
    let mut events = Vec::new();
    for row in s.query(&sql, &[Value::Ids(jobs.into_iter().collect())], Lock::None).await? {
        let row = DependencyRow::read(&mut row.read())?;
        let is_meant =
            |(job, at): &(JobId, Timestamp)| *job == row.job_id && (row.from_ms..row.until_ms).contains(at);
        if ended.iter().any(is_meant) {
            events.push(Event { run: row.run_id, kind: Kind::Look, step: Some(row.step), body: None });
        }
    }
    Ok(events)
}

// ── Scheduled times ─────────────────────────────────────────────────────────────────────────────────────────────

/// Scheduled times that a step needs.
#[derive(Debug, PartialEq, Eq)]
struct Wanted {
    /// Ranges, of which each needs a run: a scheduled time, or a day for a job without scheduled times of its own.
    ranges: Vec<(Timestamp, Timestamp)>,
}

impl Wanted {
    /// From the first to the last.
    fn range(&self, run: &WorkflowRun) -> (Timestamp, Timestamp) {
        match (self.ranges.first(), self.ranges.last()) {
            (Some(first), Some(last)) => (first.0, last.1),
            _ => (run.scheduled_at, run.scheduled_at),
        }
    }
}

/// Scheduled times of a job that `dates` means for a run; the reason if they cannot be computed.
fn wanted(job: &Job, tables: &Tables, run: &WorkflowRun, dates: Dates) -> Result<Wanted, String> {
    let zone = zone_of(job, tables);
    let today = date::parse(&run.day)?;
    let days = |from: i32, until: i32| -> Result<Vec<Day>, String> {
        let day = |days| date::shifted(today, days).to_string().parse();
        (from..=until).map(day).collect::<Result<_, cron::Error>>().map_err(|error| error.to_string())
    };
    let bounds = |day: &Day| (zone.start_of(*day), zone.start_of(day.next()));
    // Neither fires at times that can be computed, so a day needs one run.
    let by_day = matches!(job.spec.schedule, Schedule::Never | Schedule::FixedDelay { .. });
    let ranges: Vec<_> = match dates {
        Dates::Previous if by_day => days(-1, -1)?.iter().map(bounds).collect(),
        Dates::Previous => previous(job, run.scheduled_at).map(point).into_iter().collect(),
        Dates::Days { from, until } if by_day => days(from, until)?.iter().map(bounds).collect(),
        Dates::Days { from, until } => {
            let days = days(from, until)?;
            let (Some(first), Some(last)) = (days.first(), days.last()) else {
                return Ok(Wanted { ranges: Vec::new() });
            };
            times(job, bounds(first).0, bounds(last).1).take(TIMES_MAX + 1).map(point).collect()
        }
    };
    match ranges.len() {
        0..=TIMES_MAX => Ok(Wanted { ranges }),
        _ => Err(format!("the days have more than {TIMES_MAX} scheduled times; name fewer days")),
    }
}

fn point(at: Timestamp) -> (Timestamp, Timestamp) {
    (at, at + Duration::from_millis(1))
}

/// Scheduled times of a job, from one time to another.
fn times(job: &Job, from: Timestamp, until: Timestamp) -> impl Iterator<Item = Timestamp> + '_ {
    let first = job.spec.next_after(from - Duration::from_millis(1));
    std::iter::successors(first, move |last| job.spec.next_after(*last)).take_while(move |at| *at < until)
}

/// The last scheduled time of a job before another time.
fn previous(job: &Job, before: Timestamp) -> Option<Timestamp> {
    let back = |days: u64| before - Duration::from_secs(days * 86_400);
    // A schedule that fires often is found in the shortest one.
    let mut windows = [(1, 0), (8, 1), (40, 8), (400, 40)].into_iter();
    let last = |(from, until)| times(job, back(from), back(until)).take(86_400).last();
    windows.find_map(last)
}

/// Maximum number of scheduled times that a step depends on.
const TIMES_MAX: usize = 1_000;

// ── Looking ─────────────────────────────────────────────────────────────────────────────────────────────────────

/// What a step that opens is to wait for; the reason if it cannot wait.
pub async fn prepare(
    s: &mut dyn Session,
    tables: &Tables,
    run: &WorkflowRun,
    step: StepNo,
    action: &Action,
) -> Result<Result<Dependency, String>, SessionError> {
    let Action::Depends { job, dates, .. } = action else {
        return Ok(Err("the step depends on nothing".to_owned()));
    };
    let job = JobId(*job);
    let Some(stored) = jobs::load_one(s, tables, job).await? else {
        return Ok(Err(missing(job)));
    };
    let range = wanted(&stored.job, tables, run, *dates).map(|wanted| wanted.range(run));
    Ok(range.map(|range| Dependency { run: run.id, step, job, range }))
}

fn missing(job: JobId) -> String {
    format!("job {job}, on which it depends, does not exist any more")
}

/// What a step has found.
pub enum Look {
    /// The step has succeeded, with this output.
    Met(serde_json::Value),
    /// The step has failed.
    Failed(String),
    /// The step waits, for what the message says. `started` runs were opened for it.
    Waits {
        /// What it waits for.
        message: String,
        /// Number of runs that were opened.
        started: usize,
    },
}

/// Looks at the runs that a registered step depends on.
pub async fn look(
    s: &mut dyn Session,
    tables: &Tables,
    now: Timestamp,
    run: &WorkflowRun,
    action: &Action,
    planner: &dyn Planner,
) -> Result<Look, SessionError> {
    let Action::Depends { job, dates, need, if_missing, on_failed, .. } = action else {
        return Ok(Look::Failed("the step depends on nothing".to_owned()));
    };
    let Some(stored) = jobs::load_one(s, tables, JobId(*job)).await? else {
        return Ok(Look::Failed(missing(JobId(*job))));
    };
    let job = &stored.job;
    let wanted = match wanted(job, tables, run, *dates) {
        Ok(wanted) => wanted,
        Err(reason) => return Ok(Look::Failed(reason)),
    };
    lock_open(s, job.id, wanted.range(run)).await?;
    let runs = runs_of(s, tables, job.id, &wanted).await?;
    let rule = match tables.broken_rule {
        Some(BrokenRule::NewestRuns) => Existing::Skip,
        _ => Existing::Failed,
    };
    let found: Vec<(Found, Option<RunId>)> = runs.iter().map(|runs| newest(rule, runs)).collect();
    let states: Vec<Found> = found.iter().map(|(found, _)| *found).collect();
    let rules = Rules { need: *need, if_missing: *if_missing, on_failed: *on_failed };
    let name = job.spec.key.clone().unwrap_or_else(|| format!("job {}", job.id));
    let shown = |position: usize| wanted.ranges[position].0;
    match decide(rules, &states) {
        Verdict::Met => {
            let runs: Vec<i64> = found.iter().filter_map(|(_, run)| run.map(|run| run.0)).collect();
            Ok(Look::Met(serde_json::json!({ "runs": runs })))
        }
        Verdict::Failed(None) => Ok(Look::Failed(format!("{name} has no scheduled time on these days"))),
        Verdict::Failed(Some(position)) => {
            let state = match states[position] {
                Found::Missing => "has no run",
                _ => "has failed",
            };
            Ok(Look::Failed(format!("{name} of {} {state}", shown(position))))
        }
        Verdict::Wait => {
            let mut started = 0;
            if *if_missing == IfMissing::Start {
                let missing =
                    states.iter().zip(&wanted.ranges).filter(|(found, _)| **found == Found::Missing);
                let at: Vec<_> = missing.map(|(_, range)| range.0).collect();
                started = start(s, tables, now, job, &at, planner).await?;
            }
            let done = states.iter().filter(|found| **found == Found::Succeeded).count();
            let first = states.iter().position(|found| *found != Found::Succeeded).unwrap_or_default();
            let state = match states.get(first) {
                Some(Found::Missing) if started > 0 => "was started",
                Some(Found::Missing) => "has no run yet",
                Some(Found::Failed) => "has failed",
                _ => "has not ended",
            };
            let message = format!(
                "waits for {name}: {done} of {} have succeeded; {} {state}",
                states.len(),
                wanted.ranges.get(first).map_or(run.scheduled_at, |range| range.0)
            );
            Ok(Look::Waits { message, started })
        }
    }
}

/// Waits for transactions that are closing runs of these scheduled times.
async fn lock_open(
    s: &mut dyn Session,
    job: JobId,
    (from, until): (Timestamp, Timestamp),
) -> Result<(), SessionError> {
    if !s.locks_alone() {
        jobs::lock(s, &[job.0], Lock::Wait).await?;
    }
    let sql = "SELECT run_id FROM tw_run WHERE job_id = ? AND scheduled_ms >= ? AND scheduled_ms < ? \
               ORDER BY run_id";
    s.query(sql, &[job.into(), from.into(), until.into()], Lock::Wait).await.map(|_| ())
}

/// Runs of each range.
async fn runs_of(
    s: &mut dyn Session,
    tables: &Tables,
    job: JobId,
    wanted: &Wanted,
) -> Result<Vec<Vec<EarlierRun>>, SessionError> {
    let is_point = |range: &(Timestamp, Timestamp)| range.1 == point(range.0).1;
    if wanted.ranges.iter().all(is_point) {
        let at: Vec<Timestamp> = wanted.ranges.iter().map(|range| range.0).collect();
        let mut found = earlier_runs(s, tables, job, &at).await?;
        return Ok(at.iter().map(|at| found.remove(at).unwrap_or_default()).collect());
    }
    let mut found = Vec::with_capacity(wanted.ranges.len());
    for range in &wanted.ranges {
        found.push(latest_of(s, tables, job, *range).await?);
    }
    Ok(found)
}

/// The runs of the newest scheduled time within a range, of a job without scheduled times that can be computed.
async fn latest_of(
    s: &mut dyn Session,
    tables: &Tables,
    job: JobId,
    (from, until): (Timestamp, Timestamp),
) -> Result<Vec<EarlierRun>, SessionError> {
    let sql =
        "SELECT MAX(scheduled_ms) FROM tw_run WHERE job_id = ? AND scheduled_ms >= ? AND scheduled_ms < ?";
    let params = [job.into(), from.into(), until.into()];
    let open = s.query(sql, &params, Lock::None).await?.into_iter().next();
    let open = open.map(|row| row.read().maybe_instant()).transpose()?.flatten();
    let sql = "SELECT MAX(trigger_time) FROM xxl_job_log WHERE job_id = ? AND trigger_time >= ? AND trigger_time < ?";
    let params = [job.into(), tables.wall.first_from(from), tables.wall.first_from(until)];
    let logged = s.query(sql, &params, Lock::None).await?.into_iter().next();
    let logged = logged.map(|row| row.read().maybe_text()).transpose()?.flatten();
    let logged = logged.and_then(|text| tables.wall.instant(&text));
    let Some(at) = open.max(logged) else { return Ok(Vec::new()) };
    let mut times = vec![at];
    // The log has whole seconds.
    times.extend(open.filter(|open| *open != at));
    let found = earlier_runs(s, tables, job, &times).await?;
    let each_once: BTreeMap<RunId, EarlierRun> =
        found.into_values().flatten().map(|run| (run.id, run)).collect();
    Ok(each_once.into_values().collect())
}

/// What the runs of a scheduled time mean, with the run that succeeded.
fn newest(rule: Existing, runs: &[EarlierRun]) -> (Found, Option<RunId>) {
    match turn(rule, runs) {
        Turn::Wait(_) => (Found::Open, None),
        Turn::LeaveOut(run) => (Found::Succeeded, Some(run)),
        Turn::Run if runs.is_empty() => (Found::Missing, None),
        Turn::Run => (Found::Failed, None),
    }
}

/// Opens runs for scheduled times that have passed without one, each once, whatever steps ask for it.
async fn start(
    s: &mut dyn Session,
    tables: &Tables,
    now: Timestamp,
    job: &Job,
    times: &[Timestamp],
    planner: &dyn Planner,
) -> Result<usize, SessionError> {
    let is_past = |at: &Timestamp| *at <= now && job.next_fire_at.is_none_or(|next| next > *at);
    let past: Vec<Timestamp> = times.iter().copied().filter(is_past).collect();
    // Read again: its schedule may have opened some, before it went on to the next one.
    let existing = earlier_runs(s, tables, job.id, &past).await?;
    let mut started = 0;
    for at in past.into_iter().filter(|at| !existing.contains_key(at)) {
        let key = START_KEY ^ at.as_millis();
        if control::triggered(s, job.id, key).await?.is_some() {
            continue;
        }
        if planner.blocks(job, started as u64).is_some() {
            break;
        }
        // Due now: it is not late, it was asked for just now.
        let run = runs::waiting(job.id, Origin::Manual { key }, at, now);
        let opened = runs::open(s, tables, vec![Opening { run, job }]).await?;
        control::remember_trigger(s, job.id, key, opened[0].id, now).await?;
        started += 1;
    }
    Ok(started)
}

/// Makes the idempotency key of a scheduled time that a step starts; requests of users have other ones.
const START_KEY: i64 = 0x5d65_7065_6e64_0000_u64.cast_signed();
