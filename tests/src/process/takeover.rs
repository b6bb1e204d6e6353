//! A node takes over the database of a Java admin, with many started jobs. Later, other programs change some of these
//! jobs with SQL while they fire.

use std::collections::HashMap;
use std::fmt;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::cluster::{Cluster, Nodes};
use super::journal::{Entry, micros_now};
use super::{stalls, until_each};
use crate::database::{Database, Home};

/// Fires of a takeover, compared with the schedules.
#[derive(Debug, Default)]
pub struct Takeover {
    /// Time from the start of the node until it was ready.
    pub ready: Duration,
    /// Fires that must arrive: those due since the node was ready, except around a change of their job.
    pub due: usize,
    /// Of these, never accepted, and skipped by the misfire policy according to the database.
    pub skipped: usize,
    /// Of these, never accepted; the database records no reason.
    pub lost: usize,
    /// Fires that were due while no node was running.
    pub missed: usize,
    /// Of these, neither accepted nor on record.
    pub silent: usize,
    /// Accepted more than once.
    pub doubled: usize,
    /// Accepted before the scheduled time.
    pub early: usize,
    /// Accepted, but demanded neither by the old nor by the new schedule of the job.
    pub phantoms: usize,
    /// Jobs that other programs changed.
    pub changed: usize,
    /// Fires of old schedules that were sent too long after the commit of their change.
    pub disobeyed: usize,
    /// Longest time from the commit of a change to the last scheduled time of the old schedule that was sent.
    pub obeyed_after: Duration,
    /// Lateness of the latest fire since the node was ready.
    pub latest: Duration,
    /// How long the machine kept the test from running.
    pub stalled: Duration,
    /// Descriptions of the first problems.
    pub findings: Vec<String>,
}

/// Starts a node on a database in which a Java admin has left this many started jobs. Then starts, stops, edits and
/// deletes a quarter of them with SQL, and adds some. Fires of old schedules count as disobedience if they are sent
/// later than `obeyed_within` after the change.
pub async fn take_over(database: &Database, jobs: i64, obeyed_within: Duration) -> Result<Takeover> {
    let left_ms = micros_now() / 1_000 - ABSENCE.as_millis() as i64;
    let story = Story { jobs, left_ms };
    let home = database.create().await?;
    home.create_xxl_tables().await?;
    let nodes = Nodes { centres: 1, executors: 2, lead: Duration::ZERO, length: Duration::ZERO };
    let cluster = Cluster::without_jobs(home, nodes).await?;
    cluster.home.commit(story.rows(cluster.app.0)).await?;
    cluster.home.count().await?;
    cluster.register_as_java_admin().await?;

    let told = async {
        let started = Instant::now();
        let centre = cluster.start(0).await?;
        let (took, ready_ms) = (started.elapsed(), micros_now() / 1_000);
        cluster.register_executors().await?;
        tokio::time::sleep(STEADY).await;
        let changes = story.change(&cluster.home, cluster.app.0).await?;
        tokio::time::sleep(OBSERVED).await;
        anyhow::Ok((centre, took, ready_ms, changes))
    };
    let (told, stalled) = stalls(told).await;
    let (centre, ready, ready_ms, changes) = told?;
    let until_ms = micros_now() / 1_000;
    let ledger = Ledger { story, changes, ready_ms, until_ms, allowed: obeyed_within + stalled };
    let is_complete = async || ledger.missing(&cluster.journal.entries()).is_empty().then_some(());
    // If fires are missing after this, the check reports them.
    let _ = until_each(Duration::from_millis(500), "all fires have arrived", PATIENCE, is_complete).await;
    centre.stop().await?;
    let records = cluster.home.numbers("SELECT job_id, first_ms, last_ms FROM tw_history").await?;
    let mut found = ledger.check(&cluster.journal.entries(), &records);
    (found.ready, found.stalled) = (ready, stalled);
    cluster.remove().await?;
    Ok(found)
}

/// How long ago the Java admin was shut down.
const ABSENCE: Duration = Duration::from_secs(20);

/// How long the jobs fire before they are changed.
const STEADY: Duration = Duration::from_secs(5);

/// How long they fire afterwards: more than the interval of edited jobs.
const OBSERVED: Duration = Duration::from_secs(14);

const PATIENCE: Duration = Duration::from_secs(20);

// ── Jobs and their changes ──────────────────────────────────────────────────────────────────────────────────────

/// A schedule of XXL-JOB: fires at the times with this remainder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Every {
    period_ms: i64,
    offset_ms: i64,
}

impl Every {
    fn seconds(period: i64, offset: i64) -> Every {
        Every { period_ms: period * 1_000, offset_ms: offset.rem_euclid(period) * 1_000 }
    }

    /// `schedule_type` and `schedule_conf`.
    fn columns(self) -> (&'static str, String) {
        let (period, offset) = (self.period_ms / 1_000, self.offset_ms / 1_000);
        match period {
            1 => ("CRON", "* * * * * ?".into()),
            60 if self.offset_ms % 1_000 == 0 => ("CRON", format!("{offset} * * * * ?")),
            _ if self.offset_ms % 1_000 == 0 => ("CRON", format!("{offset}/{period} * * * * ?")),
            _ => ("FIX_RATE", period.to_string()),
        }
    }

    fn has(self, time_ms: i64) -> bool {
        time_ms.rem_euclid(self.period_ms) == self.offset_ms
    }

    fn next(self, after_ms: i64) -> i64 {
        after_ms + self.period_ms - (after_ms - self.offset_ms).rem_euclid(self.period_ms)
    }

    fn times(self, after_ms: i64, until_ms: i64) -> impl Iterator<Item = i64> {
        (self.next(after_ms)..=until_ms).step_by(self.period_ms.unsigned_abs() as usize)
    }
}

/// What other programs do to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Change {
    Stop,
    Edit,
    Delete,
    Start,
    Insert,
}

/// A change and the time of the database around its commit, in milliseconds.
#[derive(Clone, Copy, Debug)]
struct Committed {
    before_ms: i64,
    after_ms: i64,
    /// First fire of changed jobs whose next time is set by the change, as a Java admin does.
    first_ms: i64,
}

type Changes = HashMap<Change, Committed>;

/// The jobs: `1..=jobs` are started, the next few are stopped, and as many follow later.
#[derive(Clone, Copy)]
struct Story {
    jobs: i64,
    /// When the Java admin was shut down.
    left_ms: i64,
}

impl Story {
    fn more(self) -> i64 {
        self.jobs / 100
    }

    fn ids(self) -> impl Iterator<Item = i64> {
        1..=self.jobs + 2 * self.more()
    }

    /// Most jobs fire once per minute, so that a development build can carry them.
    fn first_schedule(self, job: i64) -> Every {
        match job % 199 {
            _ if job > self.jobs => Every::seconds(10, job),
            0 => Every::seconds(1, 0),
            1..=4 => Every::seconds(10, job),
            _ if job % 2 == 0 => Every::seconds(60, job),
            _ => Every { period_ms: 60_000, offset_ms: (job * 37 % 60_000) | 1 },
        }
    }

    fn change_of(self, job: i64) -> Option<Change> {
        match job % 12 {
            _ if job > self.jobs + self.more() => Some(Change::Insert),
            _ if job > self.jobs => Some(Change::Start),
            0 => Some(Change::Stop),
            4 => Some(Change::Edit),
            8 => Some(Change::Delete),
            _ => None,
        }
    }

    /// Half of the changes are made as by a Java admin, which sets the next time five seconds ahead or more; the others
    /// as by a person who changes no more than necessary.
    fn by_java(job: i64) -> bool {
        job % 24 >= 12
    }

    fn edited_schedule(job: i64) -> Every {
        Every::seconds(10, job / 24)
    }

    /// The schedules before and after the change of a job.
    fn schedules(self, job: i64) -> (Option<Every>, Option<Every>) {
        let first = self.first_schedule(job);
        match self.change_of(job) {
            None => (Some(first), Some(first)),
            Some(Change::Stop | Change::Delete) => (Some(first), None),
            Some(Change::Edit) => (Some(first), Some(Story::edited_schedule(job))),
            Some(Change::Start | Change::Insert) => (None, Some(first)),
        }
    }

    /// The jobs that the Java admin left.
    fn rows(self, app: i64) -> Vec<String> {
        let row = |job: i64| match job <= self.jobs {
            true => self.row(app, job, Some(self.first_schedule(job).next(self.left_ms))),
            false => self.row(app, job, None),
        };
        inserts((1..=self.jobs + self.more()).map(row).collect())
    }

    /// A row of `xxl_job_info`; a started one has a next time.
    fn row(self, app: i64, job: i64, next_ms: Option<i64>) -> String {
        let (kind, conf) = self.first_schedule(job).columns();
        let (status, next) = (i64::from(next_ms.is_some()), next_ms.unwrap_or(0));
        format!(
            "({job}, {app}, 'job {job}', '2024-05-01 10:00:00', '2024-05-01 10:00:00', 'anna', '', '{kind}', '{conf}', \
             'DO_NOTHING', 'ROUND', 'journal', 'limit=1000', 'SERIAL_EXECUTION', 0, 0, 'BEAN', '', '', \
             '2024-05-01 10:00:00', '', {status}, 0, {next})"
        )
    }

    /// Makes all changes, one transaction for each kind.
    async fn change(self, home: &Home, app: i64) -> Result<Changes> {
        let mut changes = HashMap::new();
        for change in [Change::Stop, Change::Edit, Change::Delete, Change::Start, Change::Insert] {
            let first_ms = micros_now() / 1_000 + JAVA_LEAD_MS;
            let (before_ms, after_ms) = home.commit(self.statements(change, app, first_ms)).await?;
            changes.insert(change, Committed { before_ms, after_ms, first_ms });
        }
        Ok(changes)
    }

    fn statements(self, change: Change, app: i64, first_ms: i64) -> Vec<String> {
        let among = |remainder: i64| format!("id <= {} AND id % 24 = {remainder}", self.jobs);
        let set = |columns: &str, jobs: &str| format!("UPDATE xxl_job_info SET {columns} WHERE {jobs}");
        let more: Vec<i64> = match change {
            Change::Start => (self.jobs + 1..=self.jobs + self.more()).collect(),
            Change::Insert => (self.jobs + self.more() + 1..=self.jobs + 2 * self.more()).collect(),
            _ => Vec::new(),
        };
        let next =
            |job: &i64| if Story::by_java(*job) { self.first_schedule(*job).next(first_ms) } else { 0 };
        match change {
            Change::Stop => vec![
                set("trigger_status = 0", &among(0)),
                set("trigger_status = 0, trigger_last_time = 0, trigger_next_time = 0", &among(12)),
            ],
            Change::Delete => {
                vec![format!("DELETE FROM xxl_job_info WHERE id <= {} AND id % 12 = 8", self.jobs)]
            }
            Change::Edit => {
                // Ten schedules, in turn for each twenty-fourth job.
                let edit = |turn: i64| {
                    let jobs =
                        |first: i64| format!("id <= {} AND id % 240 = {}", self.jobs, first + 24 * turn);
                    let schedule = Story::edited_schedule(24 * turn);
                    let (kind, conf) = schedule.columns();
                    let by_person = format!("schedule_type = '{kind}', schedule_conf = '{conf}'");
                    let by_java = format!("{by_person}, trigger_next_time = {}", schedule.next(first_ms));
                    [set(&by_person, &jobs(4)), set(&by_java, &jobs(16))]
                };
                (0..10).flat_map(edit).collect()
            }
            Change::Start => more
                .iter()
                .map(|job| {
                    set(
                        &format!("trigger_status = 1, trigger_next_time = {}", next(job)),
                        &format!("id = {job}"),
                    )
                })
                .collect(),
            Change::Insert => inserts(more.iter().map(|job| self.row(app, *job, Some(next(job)))).collect()),
        }
    }
}

/// A Java admin starts and edits jobs with a next time at least this far ahead.
const JAVA_LEAD_MS: i64 = 5_000;

/// Statements that insert rows, some hundred each.
fn inserts(rows: Vec<String>) -> Vec<String> {
    let insert = |rows: &[String]| {
        format!(
            "INSERT INTO xxl_job_info (id, job_group, job_desc, add_time, update_time, author, alarm_email, \
             schedule_type, schedule_conf, misfire_strategy, executor_route_strategy, executor_handler, \
             executor_param, executor_block_strategy, executor_timeout, executor_fail_retry_count, glue_type, \
             glue_source, glue_remark, glue_updatetime, child_jobid, trigger_status, trigger_last_time, \
             trigger_next_time) VALUES {}",
            rows.join(", ")
        )
    };
    rows.chunks(500).map(insert).collect()
}

// ── The check ───────────────────────────────────────────────────────────────────────────────────────────────────

struct Ledger {
    story: Story,
    changes: Changes,
    ready_ms: i64,
    until_ms: i64,
    /// Time within which a change is obeyed.
    allowed: Duration,
}

impl Ledger {
    fn committed(&self, job: i64) -> Option<Committed> {
        self.story.change_of(job).and_then(|change| self.changes.get(&change).copied())
    }

    /// Scheduled times of a job that must arrive. Around a change of the job, the old and the new schedule may fire.
    fn must_fire(&self, job: i64) -> Vec<i64> {
        let (old, new) = self.story.schedules(job);
        let Some(committed) = self.committed(job) else {
            let all = old.map(|every| every.times(self.ready_ms, self.until_ms));
            return all.into_iter().flatten().collect();
        };
        let allowed = self.allowed.as_millis() as i64;
        let first = if Story::by_java(job) { committed.first_ms } else { 0 };
        let before = old.map(|every| every.times(self.ready_ms, committed.before_ms - allowed));
        let after = new.map(|every| every.times((committed.after_ms + allowed).max(first), self.until_ms));
        before.into_iter().flatten().chain(after.into_iter().flatten()).collect()
    }

    fn missing(&self, entries: &[Entry]) -> Vec<(i64, i64)> {
        let arrived: HashMap<(i64, i64), ()> =
            entries.iter().map(|entry| ((entry.job, entry.scheduled_ms), ())).collect();
        let times = |job: i64| self.must_fire(job).into_iter().map(move |time| (job, time));
        self.story.ids().flat_map(times).filter(|fire| !arrived.contains_key(fire)).collect()
    }

    fn check(&self, entries: &[Entry], records: &[(i64, i64, i64)]) -> Takeover {
        let mut found = Takeover::default();
        let mut recorded: HashMap<i64, Vec<(i64, i64)>> = HashMap::new();
        for (job, first, last) in records {
            recorded.entry(*job).or_default().push((*first, *last));
        }
        let is_recorded = |job: i64, time: i64| {
            recorded.get(&job).is_some_and(|ranges| ranges.iter().any(|(a, b)| (*a..=*b).contains(&time)))
        };
        let mut arrived: HashMap<(i64, i64), usize> = HashMap::new();
        for entry in entries {
            *arrived.entry((entry.job, entry.scheduled_ms)).or_default() += 1;
            self.judge(entry, &mut found);
        }
        found.doubled = arrived.values().filter(|count| **count > 1).count();
        for (job, time) in self.missing(entries) {
            let text = match is_recorded(job, time) {
                true => {
                    found.skipped += 1;
                    "was skipped"
                }
                false => {
                    found.lost += 1;
                    "was never accepted, and no reason is recorded"
                }
            };
            found.find(|| format!("job {job} at {time} {text}: {}", self.describe(job)));
        }
        for job in self.story.ids() {
            found.due += self.must_fire(job).len();
            found.changed += usize::from(self.story.change_of(job).is_some());
            let (old, _) = self.story.schedules(job);
            let missed = old.map(|every| every.times(self.story.left_ms, self.ready_ms));
            for time in missed.into_iter().flatten() {
                found.missed += 1;
                if !arrived.contains_key(&(job, time)) && !is_recorded(job, time) {
                    found.silent += 1;
                    found.find(|| format!("job {job} was due at {time} before the start, without a record"));
                }
            }
        }
        found
    }

    /// Compares one accepted request with the schedules of its job.
    fn judge(&self, entry: &Entry, found: &mut Takeover) {
        found.early += usize::from(entry.lateness_us() < 0);
        if entry.scheduled_ms > self.ready_ms {
            let late = Duration::from_micros(u64::try_from(entry.lateness_us()).unwrap_or(0));
            found.latest = found.latest.max(late);
        }
        let (old, new) = self.story.schedules(entry.job);
        let is_of = |schedule: Option<Every>| schedule.is_some_and(|every| every.has(entry.scheduled_ms));
        let committed = self.committed(entry.job);
        if is_of(new) && committed.is_none_or(|committed| entry.scheduled_ms > committed.before_ms) {
            return;
        }
        if !is_of(old) {
            found.phantoms += 1;
            found.find(|| format!("no schedule demands {entry:?}: {}", self.describe(entry.job)));
            return;
        }
        let since_ms = committed.map_or(0, |committed| entry.scheduled_ms - committed.after_ms);
        let since = Duration::from_millis(u64::try_from(since_ms).unwrap_or(0));
        found.obeyed_after = found.obeyed_after.max(since);
        if since > self.allowed {
            found.disobeyed += 1;
            found.find(|| format!("{entry:?} was sent after the change: {}", self.describe(entry.job)));
        }
    }

    fn describe(&self, job: i64) -> String {
        let (old, new) = self.story.schedules(job);
        let (change, committed) = (self.story.change_of(job), self.committed(job));
        format!("{change:?} at {committed:?} from {old:?} to {new:?}, ready at {}", self.ready_ms)
    }
}

impl Takeover {
    fn find(&mut self, finding: impl FnOnce() -> String) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(finding());
        }
    }
}

impl fmt::Display for Takeover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "ready after {:.2} s; {} due, {} lost, {} skipped, latest {} ms; {} missed before, {} silent; {} doubled, \
             {} early, {} phantoms; {} jobs changed, obeyed after {} ms, {} disobeyed; stalled {} ms",
            self.ready.as_secs_f64(),
            self.due,
            self.lost,
            self.skipped,
            self.latest.as_millis(),
            self.missed,
            self.silent,
            self.doubled,
            self.early,
            self.phantoms,
            self.changed,
            self.obeyed_after.as_millis(),
            self.disobeyed,
            self.stalled.as_millis()
        )?;
        self.findings.iter().try_for_each(|finding| write!(f, "\n  {finding}"))
    }
}

const FINDINGS_MAX: usize = 10;
