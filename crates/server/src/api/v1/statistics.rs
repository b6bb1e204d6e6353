//! `/v1/statistics` and `/v1/calendar`: past runs and future fires over time.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use cron::{Schedule, Zone};
use engine::{Job, StoreError};
use protocol::v1::{Calendar, CalendarBucket, ProblemCode, RunCounts, Statistics, StatisticsBucket};
use store::{Database, DayReport, JobFilter, JobMark, JobOrder, RunFilter, RunTally};
use timer::Timestamp;

use super::authorise::{Authorised, Seen, find_job};
use super::call::{Call, instant};
use super::reply::Reply;
use super::schedules;
use crate::request_error::RequestError;

/// A time range, split into steps of equal length.
#[derive(Clone, Copy, Debug)]
struct Span {
    from: Timestamp,
    until: Timestamp,
    step: Duration,
}

impl Span {
    /// Range given by the query. If omitted, `from` and `until` are these defaults, but at least a day apart.
    fn read(call: &Call, default_from: Timestamp, default_until: Timestamp) -> Result<Span, RequestError> {
        let from = call.query.instant("from")?.unwrap_or(default_from);
        let until = call.query.instant("until")?.unwrap_or(default_until.max(from + DAY));
        if until <= from {
            return Err(RequestError::field("until", "must be after `from`"));
        }
        let length = until.duration_since(from);
        let step = match call.query.number("step_ms")? {
            Some(step) => Duration::from_millis(step),
            None => whole_minutes(length / STEPS),
        };
        let steps = length.as_millis().div_ceil(step.as_millis().max(1));
        if step.is_zero() || steps > u128::from(STEPS_MAX) {
            return Err(RequestError::field(
                "step_ms",
                format!("must give at most {STEPS_MAX} buckets; use a longer step"),
            ));
        }
        Ok(Span { from, until, step })
    }

    fn step_ms(&self) -> u64 {
        u64::try_from(self.step.as_millis()).unwrap_or(u64::MAX)
    }

    fn start(&self, part: u32) -> Timestamp {
        self.from + self.step * part
    }

    /// Start and end of each step.
    fn parts(&self) -> impl Iterator<Item = (Timestamp, Timestamp)> {
        let starts = (0..STEPS_MAX).map(|part| self.start(part)).take_while(|start| *start < self.until);
        starts.map(|start| (start, (start + self.step).min(self.until)))
    }
}

/// The shortest round step that is not shorter than `length`.
fn whole_minutes(length: Duration) -> Duration {
    let minutes = length.as_secs().div_ceil(60).max(1);
    let round = ROUND_MINUTES.iter().copied().find(|round| *round >= minutes);
    Duration::from_secs(60 * round.unwrap_or_else(|| minutes.next_multiple_of(24 * 60)))
}

/// In minutes, from one minute to one day.
const ROUND_MINUTES: [u64; 10] = [1, 2, 5, 10, 15, 30, 60, 3 * 60, 6 * 60, 24 * 60];

/// Number of steps if the query does not set their length.
const STEPS: u32 = 100;

/// Maximum number of steps.
const STEPS_MAX: u32 = 400;

pub const DAY: Duration = Duration::from_secs(24 * 60 * 60);

// ── Past runs ───────────────────────────────────────────────────────────────────────────────────────────────────

pub async fn runs(call: Call, seen: Authorised<Seen>) -> Result<Reply, RequestError> {
    let now = call.state.engine.now();
    // Run times have a resolution of one second; include the current second.
    let span = Span::read(&call, now - DAY, now + Duration::from_secs(1))?;
    let job = match call.query.text("job") {
        None => None,
        Some(name) => Some(find_job(&call, name).await?.map_or(engine::JobId(0), |job| job.id)),
    };
    let filter = RunFilter { apps: seen.apps.clone(), job, ..RunFilter::default() };
    let state = &call.state;
    let days = days(&state.database, &filter, span).await?;
    let counting =
        Counting { database: &state.database, zone: &state.zone, now, filter, days, left: RUNS_MAX };
    let Counted { parts, counted_from } = counting.all(span).await?;
    let bucket = |((from, until), runs): ((Timestamp, Timestamp), RunCounts)| {
        let (lateness_p50_ms, lateness_p99_ms) = state.lateness.between(from, until);
        StatisticsBucket { at: instant(from), runs, lateness_p50_ms, lateness_p99_ms }
    };
    Ok(Reply::json(&Statistics {
        step_ms: span.step_ms(),
        buckets: parts.into_iter().map(bucket).collect(),
        complete: counted_from.is_none(),
        counted_from: counted_from.map(instant),
    }))
}

/// Counts of whole past days, for queries that are not limited to one job. They were stored while the days passed.
async fn days(
    database: &Database,
    filter: &RunFilter,
    span: Span,
) -> Result<BTreeMap<String, RunCounts>, StoreError> {
    if filter.job.is_some() || span.step < SHORTEST_DAY {
        return Ok(BTreeMap::new());
    }
    let days = database.report((span.from, span.until), filter.apps.as_deref()).await?;
    let counts =
        |day: &DayReport| RunCounts { running: day.running, succeeded: day.succeeded, failed: day.failed };
    // A day with unfinished runs, including today, is counted again.
    let is_over = days.into_iter().filter(|day| day.running == 0);
    Ok(is_over.map(|day| (day.day.clone(), counts(&day))).collect())
}

/// Counts runs, at most `left` of them for one response.
struct Counting<'a> {
    database: &'a Database,
    zone: &'a Zone,
    now: Timestamp,
    filter: RunFilter,
    days: BTreeMap<String, RunCounts>,
    left: usize,
}

/// Result of counting.
struct Counted {
    /// Steps that have runs, in order.
    parts: Vec<((Timestamp, Timestamp), RunCounts)>,
    /// If not all runs could be counted: the time from which on they were.
    counted_from: Option<Timestamp>,
}

impl Counting<'_> {
    /// Counts the runs of all steps, newest first, because users look at those; stops when the limit is reached.
    async fn all(mut self, span: Span) -> Result<Counted, StoreError> {
        let all: Vec<_> = span.parts().collect();
        let (mut parts, mut counted_from) = (Vec::new(), None);
        for (from, until) in all.into_iter().rev() {
            match self.count(from, until).await? {
                Some(runs) if runs == RunCounts::default() => {}
                Some(runs) => parts.push(((from, until), runs)),
                None => {
                    counted_from = Some(until);
                    break;
                }
            }
        }
        parts.reverse();
        Ok(Counted { parts, counted_from })
    }

    /// Counts the runs between two times; `None` if there are too many.
    async fn count(&mut self, from: Timestamp, until: Timestamp) -> Result<Option<RunCounts>, StoreError> {
        if let Some(counts) = self.whole_day(from, until) {
            return Ok(Some(counts));
        }
        let mut sum = RunCounts::default();
        let mut spans = vec![(from, until)];
        while let Some((from, until)) = spans.pop() {
            let filter = RunFilter { from: Some(from), until: Some(until), ..self.filter.clone() };
            let tally = self.database.run_tally(&filter, AT_ONCE.min(self.left)).await?;
            self.left -= tally.read.min(self.left);
            if tally.is_all {
                add(&mut sum, &tally);
                continue;
            }
            let half = until.duration_since(from) / 2;
            if self.left == 0 || half < SHORTEST {
                return Ok(None);
            }
            spans.extend([(from, from + half), (from + half, until)]);
        }
        Ok(Some(sum))
    }

    fn whole_day(&self, from: Timestamp, until: Timestamp) -> Option<RunCounts> {
        let day = schedules::local(from, self.zone);
        let is_whole = |first: &jiff::Zoned, next: jiff::Zoned| {
            (first.timestamp().as_millisecond(), next.timestamp().as_millisecond())
                == (from.as_millis(), until.as_millis())
        };
        let (first, next) = (day.start_of_day().ok()?, day.tomorrow().ok()?.start_of_day().ok()?);
        let is_over = until + COUNTED_AFTER <= self.now;
        (is_over && is_whole(&first, next)).then(|| self.days.get(&day.date().to_string()).copied())?
    }
}

/// Adds the counts of a tally.
pub fn add(counts: &mut RunCounts, tally: &RunTally) {
    counts.running += tally.running;
    counts.succeeded += tally.succeeded;
    counts.failed += tally.failed;
}

/// Runs counted for one response: about half a second of reading.
const RUNS_MAX: usize = 400_000;

/// Runs counted by one query: a few dozen milliseconds, so that fires do not wait for it.
const AT_ONCE: usize = 50_000;

/// Run times have a resolution of one second, so a shorter range is not split further.
const SHORTEST: Duration = Duration::from_secs(1);

/// Time after the end of a day at which its stored counts are final. They are updated each minute, or less often
/// if counting takes long.
const COUNTED_AFTER: Duration = Duration::from_secs(60 * 60);

/// Length of the shortest possible day, when clocks go forward.
const SHORTEST_DAY: Duration = Duration::from_secs(21 * 60 * 60);

// ── Future fires ────────────────────────────────────────────────────────────────────────────────────────────────

pub async fn calendar(call: Call, seen: Authorised<Seen>) -> Result<Reply, RequestError> {
    let now = call.state.engine.now();
    let span = Span::read(&call, now, now + DAY)?;
    let filter = JobFilter { apps: seen.apps.clone(), enabled: Some(true), ..JobFilter::default() };
    let (fires, complete) = fires(&call.state.database, &filter, span, JOBS_MAX).await?;
    let (buckets, jobs) = (fires.buckets(), fires.jobs);
    Ok(Reply::json(&Calendar { step_ms: span.step_ms(), buckets, complete, jobs }))
}

/// Fires of at most `most` jobs, and whether these are all jobs.
async fn fires(
    database: &Database,
    filter: &JobFilter,
    span: Span,
    most: usize,
) -> Result<(Fires, bool), RequestError> {
    let mut fires = Fires::new(span);
    let mut after: Option<JobMark> = None;
    let mut left = most;
    while left > 0 {
        let (order, max) = (JobOrder::default(), left.min(store::Page::MAX));
        let found = database.job_list(filter, order, after.as_ref(), max).await?;
        left -= found.rows.len().min(left);
        // Counting uses much CPU, so it must not block the threads that serve requests.
        let counted = tokio::task::spawn_blocking(move || {
            let enough = found.rows.iter().any(|row| !fires.add(&row.job));
            (fires, enough)
        });
        let too_many;
        (fires, too_many) = counted.await.map_err(|_| too_much())?;
        if too_many {
            return Err(too_much());
        }
        after = found.next;
        if after.is_none() {
            break;
        }
    }
    let is_all = match &after {
        None => true,
        // A full page does not show whether more rows follow.
        Some(_) => database.job_list(filter, JobOrder::default(), after.as_ref(), 1).await?.rows.is_empty(),
    };
    Ok((fires, is_all))
}

fn too_much() -> RequestError {
    let why = format!("there are more than {FIRES_MAX} fires; request a shorter period, or one app");
    RequestError::new(ProblemCode::InvalidFields, why)
}

/// Jobs read for one response, page by page: a few seconds of reading. If there are more, the response is marked
/// as not complete.
const JOBS_MAX: usize = 100_000;

/// Fires counted for one response: about one second of CPU time.
const FIRES_MAX: usize = 1_000_000;

/// Number of fires in each step of a range.
struct Fires {
    span: Span,
    counts: Vec<u64>,
    /// Counts per schedule: jobs with the same schedule fire together, so each schedule is evaluated once.
    known: HashMap<String, Vec<u64>>,
    found: usize,
    jobs: u64,
}

impl Fires {
    fn new(span: Span) -> Fires {
        Fires { counts: vec![0; span.parts().count()], span, known: HashMap::new(), found: 0, jobs: 0 }
    }

    /// Adds the fires of a job. Returns false if there are too many to count.
    fn add(&mut self, job: &Job) -> bool {
        self.jobs += 1;
        let days = job.spec.workdays.as_ref().map(|own| (own.calendar, own.rule.on, own.rule.shift));
        let (schedule, validity) = (&job.spec.schedule, (job.spec.valid_from, job.spec.valid_until));
        let name = format!("{schedule:?} {days:?} {validity:?}");
        if !self.known.contains_key(&name) {
            let counted = self.count(job);
            self.known.insert(name.clone(), counted);
        }
        for (sum, count) in self.counts.iter_mut().zip(&self.known[&name]) {
            *sum += count;
        }
        self.found <= FIRES_MAX
    }

    fn count(&mut self, job: &Job) -> Vec<u64> {
        let before = |at: Timestamp| Timestamp::from_millis(at.as_millis() - 1);
        if let (Schedule::FixedRate { .. }, None, None) =
            (&job.spec.schedule, job.spec.valid_from, job.spec.valid_until)
        {
            let part = |(from, until)| job.spec.schedule.count_between(before(from), before(until), u64::MAX);
            return self.span.parts().map(part).collect();
        }
        let mut counts = vec![0; self.counts.len()];
        let first = job.spec.next_after(before(self.span.from));
        let fires = std::iter::successors(first, |last| job.spec.next_after(*last));
        for at in fires.take_while(|at| *at < self.span.until).take(FIRES_MAX) {
            let part = at.duration_since(self.span.from).as_millis() / self.span.step.as_millis().max(1);
            if let Some(count) = usize::try_from(part).ok().and_then(|part| counts.get_mut(part)) {
                *count += 1;
            }
            self.found += 1;
        }
        counts
    }

    fn buckets(&self) -> Vec<CalendarBucket> {
        let bucket = |((at, _), fires): ((Timestamp, Timestamp), &u64)| CalendarBucket {
            at: instant(at),
            fires: *fires,
        };
        self.span.parts().zip(&self.counts).map(bucket).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use cron::{Cron, DstRule};
    use engine::{AppId, JobId, JobSpec, Store, Trigger};
    use store::SqliteStore;
    use timer::Clock;
    use timer::testing::ManualClock;

    fn job(schedule: Schedule) -> Job {
        let spec = JobSpec::new(AppId(1), "job", schedule, "handler");
        let (enabled, next_fire_at, problem) = (true, None, None);
        Job {
            id: JobId(1),
            spec,
            enabled,
            next_fire_at,
            revision: 0,
            fires: 0,
            running: None,
            waiting: 0,
            problem,
        }
    }

    #[test]
    fn fires_are_counted_in_the_part_they_fall_into() {
        let from = Timestamp::from_millis(1_782_000_000_000);
        let hour = Duration::from_secs(3_600);
        let mut fires = Fires::new(Span { from, until: from + hour, step: hour / 4 });
        let each_ten_minutes = Cron::parse("0 0/10 * * * ?").unwrap();
        let cron = job(Schedule::cron(each_ten_minutes, Zone::utc(), DstRule::NATURAL));
        assert!(fires.add(&cron) && fires.add(&cron));
        assert!(fires.add(&job(Schedule::fixed_rate(from, Duration::from_secs(60)).unwrap())));
        let sums: Vec<u64> = fires.buckets().iter().map(|bucket| bucket.fires).collect();
        let whole: u64 = sums.iter().sum();
        assert_eq!((sums.len(), whole), (4, 6 + 6 + 60), "{sums:?}");
    }
    const HOUR: Duration = Duration::from_secs(3_600);

    /// A database, its clock, and a job that fires every ten minutes.
    async fn database() -> (Database, Arc<ManualClock>, JobSpec) {
        let clock = Arc::new(ManualClock::new(Timestamp::from_millis(1_782_000_000_000)));
        let database = SqliteStore::in_memory(clock.clone()).unwrap();
        let app = database.ensure_app("orders").await.unwrap();
        let cron = Cron::parse("0 0/10 * * * ?").unwrap();
        let schedule = Schedule::cron(cron, Zone::utc(), DstRule::NATURAL);
        (database, clock, JobSpec::new(app, "job", schedule, "handler"))
    }

    #[tokio::test]
    async fn of_too_many_runs_the_newest_are_counted_and_the_answer_says_since_when() {
        let (database, clock, spec) = database().await;
        let job = database.create_job(&spec).await.unwrap();
        let from = clock.now();
        for key in 0..12 {
            // Three per hour.
            database
                .trigger(job, &Trigger { key, at: None, param: None, address: None, by: None })
                .await
                .unwrap();
            clock.advance(HOUR / 3);
        }
        let span = Span { from, until: clock.now(), step: HOUR };
        let check = async |left: usize, parts: usize, counted_from: Option<Timestamp>| {
            let (filter, days) = (RunFilter::default(), BTreeMap::new());
            let counting =
                Counting { database: &database, zone: &Zone::utc(), now: clock.now(), filter, days, left };
            let counted = counting.all(span).await.unwrap();
            assert!(counted.parts.iter().all(|(_, runs)| runs.running == 3), "{:?}", counted.parts);
            assert_eq!((counted.parts.len(), counted.counted_from), (parts, counted_from), "{left} at most");
        };
        check(100, 4, None).await;
        check(12, 4, None).await;
        check(11, 3, Some(from + HOUR)).await;
        check(7, 2, Some(from + HOUR * 2)).await;
        check(0, 0, Some(from + HOUR * 4)).await;
    }

    #[tokio::test]
    async fn of_too_many_jobs_some_are_looked_at_and_the_answer_says_how_many() {
        let (database, clock, spec) = database().await;
        for _ in 0..3 {
            database.create_job(&spec).await.unwrap();
        }
        let span = Span { from: clock.now(), until: clock.now() + HOUR, step: HOUR };
        let check = async |most: usize, jobs: u64, is_all: bool| {
            let Ok((fires, complete)) = fires(&database, &JobFilter::default(), span, most).await else {
                panic!("it is counted");
            };
            assert_eq!((fires.jobs, fires.buckets()[0].fires, complete), (jobs, 6 * jobs, is_all));
        };
        check(100, 3, true).await;
        check(3, 3, true).await;
        check(2, 2, false).await;
    }
}
