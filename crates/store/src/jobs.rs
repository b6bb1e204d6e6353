//! Jobs: rows of `xxl_job_info` with our own of `tw_job`.
//!
//! XXL-JOB's names for the parts of a job are used only here. Its row is authoritative; ours adds fields that its
//! columns cannot hold, and an indexed copy of the next time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cron::{Cron, Dialect, DstRule, Schedule, Zone};
use engine::policy::{Backoff, Delivery, Misfire, Named, Overlap, Retry, Word};
use engine::{
    AppId, ChildrenMode, Job, JobId, JobSpec, LOOK_AHEAD, NextFire, Run, RunId, Script, ScriptLanguage,
    StoreError,
};
use timer::Timestamp;

use crate::database::Tables;
use crate::foreign;
use crate::runs::{IS_SCHEDULED, WAITING};
use crate::session::{Columns, Lock, Reader, Row, Session, SessionError, Value};

/// A stored job.
pub struct Stored {
    pub job: Job,
    /// Next time in our row; `None` if there is no such row yet.
    pub shadow: Option<Option<Timestamp>>,
    /// Fire of its current run, if the job is exclusive.
    pub holder_fire: Option<RunId>,
    /// Its `trigger_status`: [`STOPPED`], [`STARTED`] or [`STARTED_HERE`].
    pub status: i64,
}

/// The job's schedule does not fire.
pub const STOPPED: i64 = 0;

/// The job's schedule fires.
pub const STARTED: i64 = 1;

/// The job's schedule fires, but is of a kind that Java admins do not support. Java admins neither fire nor stop
/// such a job; they show it as stopped.
pub const STARTED_HERE: i64 = 2;

impl Stored {
    /// Whether our row matches XXL-JOB's.
    pub fn is_in_line(&self) -> bool {
        self.shadow == Some(self.job.next_fire_at)
    }
}

/// Reads jobs by their ids. Jobs that do not exist are omitted.
pub async fn load(
    s: &mut dyn Session,
    tables: &Tables,
    ids: &[i64],
) -> Result<BTreeMap<i64, Stored>, SessionError> {
    if ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    let found = select(s, tables, "WHERE j.id IN ?", &[Value::Ids(ids.to_vec())]).await?;
    Ok(found.into_iter().map(|stored| (stored.job.id.0, stored)).collect())
}

pub async fn load_one(
    s: &mut dyn Session,
    tables: &Tables,
    id: JobId,
) -> Result<Option<Stored>, SessionError> {
    Ok(load(s, tables, &[id.0]).await?.remove(&id.0))
}

/// Reads the jobs that match `tail`.
pub async fn select(
    s: &mut dyn Session,
    tables: &Tables,
    tail: &str,
    params: &[Value],
) -> Result<Vec<Stored>, SessionError> {
    let description = tables.schema.description_column();
    let when = match tables.schema.has_schedule_type() {
        true => "j.schedule_type, j.schedule_conf, j.misfire_strategy",
        false => "'CRON', j.job_cron, 'DO_NOTHING'",
    };
    let sql = format!(
        "SELECT j.id, j.job_group, j.{description}, {when}, j.executor_route_strategy, j.executor_handler, \
         j.executor_param, j.executor_block_strategy, j.executor_timeout, j.executor_fail_retry_count, \
         j.child_jobid, j.alarm_email, j.author, j.glue_type, \
         CASE WHEN j.glue_type = 'BEAN' THEN NULL ELSE j.glue_source END, j.glue_updatetime, j.trigger_status, j.trigger_next_time, t.job_id, t.job_key, t.next_ms, t.zone, t.dst_rule, \
         t.anchor_ms, t.schedule_kind, t.schedule_text, t.valid_from_ms, t.valid_until_ms, t.jitter_ms, \
         t.timeout_ms, t.misfire, t.overlap, t.retry, t.delivery, t.children_mode, t.alert, t.revision \
         FROM xxl_job_info j LEFT JOIN tw_job t ON t.job_id = j.id {tail}"
    );
    let rows = s.query(&sql, params, Lock::None).await?;
    let mut found = rows.into_iter().map(|row| stored(tables, row)).collect::<Result<Vec<_>, _>>()?;
    find_places(s, tables, &mut found).await?;
    Ok(found)
}

/// Adds the current run and the number of waiting runs to exclusive jobs.
async fn find_places(s: &mut dyn Session, tables: &Tables, found: &mut [Stored]) -> Result<(), SessionError> {
    let exclusive: Vec<i64> =
        found.iter().filter(|s| s.job.spec.overlap.is_exclusive()).map(|s| s.job.id.0).collect();
    if exclusive.is_empty() {
        return Ok(());
    }
    let open = foreign::without_result(tables);
    let sql = format!(
        "SELECT job_id, log_id, fire_id, state FROM tw_fire WHERE job_id IN ?{open} ORDER BY job_id, log_id"
    );
    let mut open: BTreeMap<i64, Vec<(RunId, RunId, bool)>> = BTreeMap::new();
    for row in s.query(&sql, &[Value::Ids(exclusive)], Lock::None).await? {
        let mut row = row.read();
        let job = row.int()?;
        let run = (RunId(row.int()?), RunId(row.int()?), row.int()? == WAITING);
        open.entry(job).or_default().push(run);
    }
    for stored in found {
        let runs = open.remove(&stored.job.id.0).unwrap_or_default();
        if let Some((run, fire, _)) = runs.iter().find(|(_, _, waits)| !waits) {
            stored.job.running = Some(*run);
            stored.holder_fire = Some(*fire);
        }
        stored.job.waiting = runs.iter().filter(|(_, _, waits)| *waits).count() as u64;
    }
    Ok(())
}

fn stored(tables: &Tables, row: Row) -> Result<Stored, SessionError> {
    let mut row = row.read();
    let id = JobId(row.int()?);
    let app = AppId(row.int()?);
    let name = row.text()?;
    let (xxl_type, xxl_conf, xxl_misfire) = (row.text()?, row.text()?, row.text()?);
    let route = Named::from_stored(&row.text()?);
    let handler = row.text()?;
    let param = row.text()?;
    let block = Named::from_stored(&row.text()?);
    let timeout_seconds = row.int()?;
    let retries = row.int()?;
    let children = children_of(&row.text()?, id);
    let alert_to = row.text()?;
    let author = row.text()?;
    let (glue_type, glue_source) = (row.text()?, row.text()?);
    let edited_at = row.maybe_text()?.and_then(|text| tables.wall.instant(&text)).unwrap_or_default();
    let status = row.int()?;
    let enabled = status != STOPPED;
    let next = row.int()?;
    let next_fire_at = (enabled && next > 0).then(|| Timestamp::from_millis(next));

    let has_own_row = row.maybe_int()?.is_some();
    let key = row.maybe_text()?;
    let shadow = row.maybe_instant()?;
    let written = Written { xxl_type, xxl_conf, next, own: Own::read(&mut row)? };
    let (schedule, problem) = match written.schedule(tables) {
        Ok(schedule) => (schedule, None),
        Err(problem) => (Schedule::Never, Some(problem)),
    };
    let script = ScriptLanguage::from_stored(&glue_type);
    // A job of any other type has a handler.
    let script = script.map(|language| Script { language, source: glue_source, edited_at });
    let valid_from = row.maybe_instant()?;
    let valid_until = row.maybe_instant()?;
    let jitter = millis(row.maybe_int()?.unwrap_or(0));
    let timeout = timeout_of(timeout_seconds, row.maybe_int()?);
    let misfire = misfire_of(&xxl_misfire, row.maybe_text()?.as_deref());
    let overlap = value_of(row.maybe_text()?.as_deref(), Overlap::Allow);
    let backoff = row.maybe_text()?.as_deref().and_then(backoff_of).unwrap_or(Retry::NONE.backoff);
    let delivery = value_of(row.maybe_text()?.as_deref(), Delivery::Probe);
    let children_mode = value_of(row.maybe_text()?.as_deref(), ChildrenMode::Each);
    let alert = row.maybe_int()?.map_or(!alert_to.trim().is_empty(), |alert| alert != 0);
    let revision = row.maybe_int()?.unwrap_or(0);

    let spec = JobSpec {
        key,
        app,
        name,
        schedule,
        valid_from,
        valid_until,
        jitter,
        misfire,
        overlap,
        retry: Retry { count: u32::try_from(retries).unwrap_or(0), backoff },
        delivery,
        timeout,
        handler,
        script,
        param,
        route,
        block,
        children,
        children_mode,
        alert,
        alert_to,
        author,
    };
    let job = Job { id, spec, enabled, next_fire_at, revision, running: None, waiting: 0, problem };
    Ok(Stored { job, shadow: has_own_row.then_some(shadow), holder_fire: None, status })
}

// ── Schedules ───────────────────────────────────────────────────────────────────────────────────────────────────

/// A schedule as stored in the columns.
struct Written {
    xxl_type: String,
    xxl_conf: String,
    next: i64,
    own: Own,
}

/// Our columns of a schedule.
struct Own {
    zone: Option<String>,
    dst_rule: Option<String>,
    anchor: Option<Timestamp>,
    kind: Option<String>,
    text: Option<String>,
}

impl Own {
    fn read(row: &mut Reader) -> Result<Own, SessionError> {
        Ok(Own {
            zone: row.maybe_text()?,
            dst_rule: row.maybe_text()?,
            anchor: row.maybe_instant()?,
            kind: row.maybe_text()?,
            text: row.maybe_text()?,
        })
    }
}

impl Written {
    /// Parses the schedule, or returns the problem. Our own columns count only where XXL-JOB's are empty, so that an
    /// edit by a Java admin takes effect.
    fn schedule(&self, tables: &Tables) -> Result<Schedule, String> {
        match self.xxl_type.as_str() {
            "CRON" if !self.xxl_conf.is_empty() => {
                let (cron, _) = Cron::parse_lenient(&self.xxl_conf).map_err(|error| error.to_string())?;
                self.cron(tables, cron)
            }
            "FIX_RATE" => {
                let seconds = self.xxl_conf.trim().parse().map_err(|_| {
                    format!("`{}` is not a number of seconds for a fixed rate", self.xxl_conf)
                })?;
                let anchor = self.own.anchor.unwrap_or(Timestamp::from_millis(self.next));
                Schedule::fixed_rate(anchor, Duration::from_secs(seconds)).map_err(|error| error.to_string())
            }
            // In a database without schedule types, an empty expression means no schedule.
            "NONE" | "CRON" => self.own_schedule(tables),
            other => Err(format!("unknown kind of schedule `{other}`")),
        }
    }

    fn own_schedule(&self, tables: &Tables) -> Result<Schedule, String> {
        let text = self.own.text.as_deref().unwrap_or_default();
        let number =
            || text.parse().map_err(|_| format!("`{text}` is not a number of milliseconds in a schedule"));
        let read = match self.own.kind.as_deref() {
            None => return Ok(Schedule::Never),
            Some("quartz") => {
                return self.cron(tables, Cron::parse(text).map_err(|error| error.to_string())?);
            }
            Some("unix") => {
                let cron = Cron::parse_in(Dialect::Unix, text).map_err(|error| error.to_string())?;
                return self.cron(tables, cron);
            }
            Some("rate") => Schedule::fixed_rate(self.own.anchor.unwrap_or_default(), millis(number()?)),
            Some("delay") => Schedule::fixed_delay(millis(number()?)),
            Some("once") => Ok(Schedule::once(Timestamp::from_millis(number()?))),
            Some(other) => return Err(format!("unknown kind of schedule `{other}`")),
        };
        read.map_err(|error| error.to_string())
    }

    fn cron(&self, tables: &Tables, cron: Cron) -> Result<Schedule, String> {
        let zone = match self.own.zone.as_deref() {
            Some(name) => Zone::parse(name).map_err(|error| error.to_string())?,
            None => tables.zone.clone(),
        };
        let dst = match self.own.dst_rule.as_deref() {
            Some(word) => word.parse().map_err(|error: cron::Error| error.to_string())?,
            None => DstRule::QUARTZ,
        };
        Ok(Schedule::cron(cron, zone, dst))
    }
}

/// Column values of a schedule.
#[derive(Default)]
struct Wording {
    /// Empty if there is no schedule in XXL-JOB's columns.
    xxl_type: &'static str,
    xxl_conf: String,
    zone: Option<String>,
    dst_rule: Option<String>,
    anchor: Option<Timestamp>,
    kind: Option<&'static str>,
    text: Option<String>,
}

impl Wording {
    fn of(schedule: &Schedule, tables: &Tables) -> Result<Wording, StoreError> {
        let none = Wording::default();
        let own = |kind, text| Wording { kind: Some(kind), text: Some(text), ..Wording::default() };
        Ok(match schedule {
            Schedule::Cron { cron, zone, dst } => {
                let text = cron.to_string();
                let wording = match cron.dialect() {
                    Dialect::Quartz if text.len() <= CONF_MAX => {
                        Wording { xxl_type: "CRON", xxl_conf: text, ..none }
                    }
                    Dialect::Quartz => own("quartz", text),
                    Dialect::Unix => own("unix", text),
                };
                Wording { zone: zone_name(zone, tables)?, dst_rule: Some(dst.to_string()), ..wording }
            }
            // Before XXL-JOB 2.3 there was only cron.
            Schedule::FixedRate { anchor, period }
                if period.subsec_millis() == 0 && tables.schema.has_schedule_type() =>
            {
                Wording {
                    xxl_type: "FIX_RATE",
                    xxl_conf: period.as_secs().to_string(),
                    anchor: Some(*anchor),
                    ..none
                }
            }
            Schedule::FixedRate { anchor, period } => {
                Wording { anchor: Some(*anchor), ..own("rate", period.as_millis().to_string()) }
            }
            Schedule::FixedDelay { delay } => own("delay", delay.as_millis().to_string()),
            Schedule::Once { at } => own("once", at.as_millis().to_string()),
            Schedule::Never => none,
        })
    }
}

/// A schedule in our own columns alone: kind, text, zone and daylight saving rule. The anchor of a fixed rate is not
/// included.
pub fn schedule_words(schedule: &Schedule, tables: &Tables) -> Result<[Value; 4], StoreError> {
    let Wording { kind, text, zone, dst_rule, .. } = Wording::of(schedule, tables)?;
    let (kind, text) = match schedule {
        Schedule::Cron { cron, .. } if kind.is_none() => (Some("quartz"), Some(cron.to_string())),
        Schedule::FixedRate { period, .. } => (Some("rate"), Some(period.as_millis().to_string())),
        _ => (kind, text),
    };
    Ok([kind.into(), text.into(), zone.into(), dst_rule.into()])
}

/// Reads the columns that [`schedule_words`] wrote. A schedule that cannot be parsed any more is `Never`.
pub fn schedule_of_words(row: &mut Reader, tables: &Tables) -> Result<Schedule, SessionError> {
    let (kind, text) = (row.maybe_text()?, row.maybe_text()?);
    let own = Own { zone: row.maybe_text()?, dst_rule: row.maybe_text()?, anchor: None, kind, text };
    let written = Written { xxl_type: "NONE".into(), xxl_conf: String::new(), next: 0, own };
    Ok(written.schedule(tables).unwrap_or(Schedule::Never))
}

/// The width of `schedule_conf`, and of `job_cron` before it.
const CONF_MAX: usize = 128;

/// Name of the zone; `None` if it is the default zone of the database's jobs.
fn zone_name(zone: &Zone, tables: &Tables) -> Result<Option<String>, StoreError> {
    if *zone == tables.zone {
        return Ok(None);
    }
    match Zone::parse(zone.name()) {
        Ok(found) if found == *zone => Ok(Some(zone.name().to_owned())),
        _ => Err(StoreError::Invalid(
            "the time zone of this machine has no IANA name; set one with --zone, for example `Europe/London`"
                .into(),
        )),
    }
}

// ── Words ───────────────────────────────────────────────────────────────────────────────────────────────────────

/// The value of one of our own columns. A job that XXL-JOB created has none, and behaves as it does there.
fn value_of<T: Word>(word: Option<&str>, in_xxl_job: T) -> T {
    word.and_then(T::from_stored).unwrap_or(in_xxl_job)
}

/// XXL-JOB has two policies; the third is ours, and is stored as its "do nothing".
fn misfire_of(xxl: &str, own: Option<&str>) -> Misfire {
    if xxl == "FIRE_ONCE_NOW" {
        return Misfire::FireOnce;
    }
    let mut words = own.unwrap_or_default().split(' ');
    match (words.next(), words.next().and_then(|w| w.parse().ok()), words.next().and_then(|w| w.parse().ok()))
    {
        (Some("fire-all"), Some(window), Some(max)) => Misfire::FireAll { window: millis(window), max },
        _ => Misfire::Skip,
    }
}

fn misfire_words(misfire: Misfire) -> (&'static str, Option<String>) {
    match misfire {
        Misfire::Skip => ("DO_NOTHING", None),
        Misfire::FireOnce => ("FIRE_ONCE_NOW", None),
        Misfire::FireAll { window, max } => {
            ("DO_NOTHING", Some(format!("fire-all {} {max}", window.as_millis())))
        }
    }
}

fn backoff_of(text: &str) -> Option<Backoff> {
    let mut words = text.split(' ');
    let (kind, first) = (words.next()?, millis(words.next()?.parse().ok()?));
    match kind {
        "fixed" => Some(Backoff::Fixed(first)),
        "exponential" => Some(Backoff::Exponential { first, max: millis(words.next()?.parse().ok()?) }),
        _ => None,
    }
}

fn backoff_words(backoff: Backoff) -> String {
    match backoff {
        Backoff::Fixed(delay) => format!("fixed {}", delay.as_millis()),
        Backoff::Exponential { first, max } => {
            format!("exponential {} {}", first.as_millis(), max.as_millis())
        }
    }
}

/// XXL-JOB stores seconds. Our column counts only while it matches, so that an edit by a Java admin takes effect.
fn timeout_of(seconds: i64, own_millis: Option<i64>) -> Option<Duration> {
    match own_millis.map(millis) {
        Some(own) if whole_seconds(own) == seconds => Some(own),
        _ => (seconds > 0).then(|| Duration::from_secs(seconds.unsigned_abs())),
    }
}

/// Rounded up, so that a timeout is never shorter than specified.
fn whole_seconds(length: Duration) -> i64 {
    i64::try_from(length.as_millis().div_ceil(1_000)).unwrap_or(i64::MAX)
}

pub fn millis(number: i64) -> Duration {
    Duration::from_millis(number.max(0).unsigned_abs())
}

/// Ids that are not numbers, and the job's own id, are skipped, as in XXL-JOB.
fn children_of(text: &str, own: JobId) -> Vec<JobId> {
    let ids = text.split(',').filter_map(|id| id.trim().parse().ok()).map(JobId);
    ids.filter(|id| id.0 > 0 && *id != own).collect()
}

/// A new job, stopped.
pub fn new(id: JobId, spec: JobSpec) -> Job {
    Job {
        id,
        spec,
        enabled: false,
        next_fire_at: None,
        revision: 0,
        running: None,
        waiting: 0,
        problem: None,
    }
}

// ── Writing ─────────────────────────────────────────────────────────────────────────────────────────────────────

/// Locks our rows of jobs, in the order of their ids. Jobs without such a row are not locked.
pub async fn lock(s: &mut dyn Session, ids: &[i64], lock: Lock) -> Result<Vec<i64>, SessionError> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let sql = "SELECT job_id FROM tw_job WHERE job_id IN ? ORDER BY job_id";
    let rows = s.query(sql, &[Value::Ids(ids.to_vec())], lock).await?;
    rows.into_iter().map(|row| row.read().int()).collect()
}

/// Sets when a job is next to fire and to be claimed, in XXL-JOB's row and ours. `Never` stops it.
pub async fn set_next(s: &mut dyn Session, id: JobId, next: NextFire) -> Result<(), SessionError> {
    let (fire_at, claim_at) = next_columns(next);
    let (status, status_here) = match next {
        NextFire::Never => (STOPPED, STOPPED),
        NextFire::At { .. } | NextFire::AfterRun => (STARTED, STARTED_HERE),
    };
    let sql = "UPDATE xxl_job_info SET trigger_status = CASE WHEN EXISTS (SELECT 1 FROM tw_job t \
               WHERE t.job_id = xxl_job_info.id AND t.schedule_kind IS NOT NULL) THEN ? ELSE ? END, \
               trigger_next_time = ? WHERE id = ?";
    s.execute(sql, &[status_here.into(), status.into(), fire_at.map_or(0.into(), Value::from), id.0.into()])
        .await?;
    let sql = "UPDATE tw_job SET next_ms = ?, claim_ms = ? WHERE job_id = ?";
    s.execute(sql, &[fire_at.into(), claim_at.into(), id.0.into()]).await?;
    Ok(())
}

/// Sets the next time of a job with a fixed delay, or stops it if there is none; only if it is enabled and waiting
/// for that.
pub async fn rearm(s: &mut dyn Session, job: JobId, next: NextFire) -> Result<(), SessionError> {
    let sql = format!(
        "SELECT id FROM xxl_job_info WHERE id = ? AND trigger_status <> {STOPPED} AND trigger_next_time = 0"
    );
    match s.query(&sql, &[job.0.into()], Lock::Wait).await?.is_empty() {
        true => Ok(()),
        false => set_next(s, job, next).await,
    }
}

/// The same for jobs of runs that ended without a report: their delay counts from now.
pub async fn rearm_after(
    s: &mut dyn Session,
    tables: &Tables,
    now: Timestamp,
    ended: impl Iterator<Item = &Run>,
) -> Result<(), SessionError> {
    let ids: BTreeSet<i64> = ended.filter(|run| run.origin.is_scheduled()).map(|run| run.job.0).collect();
    for stored in load(s, tables, &ids.into_iter().collect::<Vec<_>>()).await?.into_values() {
        let job = stored.job;
        if let Schedule::FixedDelay { .. } = job.spec.schedule
            && !has_scheduled_run(s, job.id).await?
        {
            // No later than any planner would claim it; an early claim does no harm.
            let at = |fire_at| NextFire::At { fire_at, claim_at: fire_at - LOOK_AHEAD };
            rearm(s, job.id, job.spec.next_after_end(now).map_or(NextFire::Never, at)).await?;
        }
    }
    Ok(())
}

pub async fn has_scheduled_run(s: &mut dyn Session, job: JobId) -> Result<bool, SessionError> {
    let sql = format!("SELECT log_id FROM tw_fire WHERE job_id = ? AND {IS_SCHEDULED} LIMIT 1");
    Ok(!s.query(&sql, &[job.0.into()], Lock::None).await?.is_empty())
}

/// Time of the fire, and time of its claim.
pub fn next_columns(next: NextFire) -> (Option<Timestamp>, Option<Timestamp>) {
    match next {
        NextFire::At { fire_at, claim_at } => (Some(fire_at), Some(claim_at)),
        NextFire::AfterRun | NextFire::Never => (None, None),
    }
}

/// Rejects a definition that the columns cannot hold, before anything is written.
pub fn check(tables: &Tables, spec: &JobSpec) -> Result<(), StoreError> {
    let texts = [
        ("xxl_job_info", tables.schema.description_column(), spec.name.as_str()),
        ("xxl_job_info", "executor_handler", &spec.handler),
        ("xxl_job_info", "executor_param", &spec.param),
        ("xxl_job_info", "executor_route_strategy", spec.route.stored()),
        ("xxl_job_info", "executor_block_strategy", spec.block.stored()),
        ("xxl_job_info", "child_jobid", &children_text(&spec.children)),
        ("xxl_job_info", "alarm_email", &spec.alert_to),
        ("xxl_job_info", "author", &spec.author),
        ("tw_job", "job_key", spec.key.as_deref().unwrap_or_default()),
    ];
    for (table, column, text) in texts {
        check_text(text)?;
        tables.schema.check_fits(table, column, text)?;
    }
    check_source(tables, spec.script.as_ref().map_or("", |script| &script.source))?;
    Wording::of(&spec.schedule, tables).map(|_| ())
}

/// Rejects a script that its column cannot hold.
pub fn check_source(tables: &Tables, source: &str) -> Result<(), StoreError> {
    check_text(source)?;
    tables.schema.check_fits("xxl_job_info", "glue_source", source)
}

/// Rejects U+0000 on all databases, because PostgreSQL cannot store it.
pub fn check_text(text: &str) -> Result<(), StoreError> {
    match text.contains('\0') {
        true => Err(StoreError::Invalid("a text with the character U+0000 cannot be stored".into())),
        false => Ok(()),
    }
}

/// Adds XXL-JOB's rows for new jobs, stopped. [`insert_own`] adds ours.
pub async fn insert(
    s: &mut dyn Session,
    tables: &Tables,
    specs: &[&JobSpec],
    now: Timestamp,
) -> Result<Vec<JobId>, SessionError> {
    let fixed: [(&'static str, Value); 7] = [
        ("add_time", tables.wall.time(now)),
        ("update_time", tables.wall.time(now)),
        ("glue_remark", "".into()),
        ("glue_updatetime", tables.wall.time(now)),
        ("trigger_status", 0.into()),
        ("trigger_last_time", 0.into()),
        ("trigger_next_time", 0.into()),
    ];
    let mut columns = spec_columns(tables);
    columns.extend(["glue_type", "glue_source"]);
    columns.extend(fixed.iter().map(|(column, _)| *column));
    let row = |spec: &&JobSpec| {
        let mut row = spec_values(tables, spec)?;
        row.extend(match &spec.script {
            Some(script) => [script.language.stored().into(), script.source.as_str().into()],
            None => ["BEAN".into(), "".into()],
        });
        row.extend(fixed.iter().map(|(_, value)| value.clone()));
        Ok(row)
    };
    let rows = specs.iter().map(row).collect::<Result<Vec<_>, StoreError>>()?;
    let ids =
        s.insert_numbered(Columns { table: "xxl_job_info", keys: &[], columns: &columns }, rows).await?;
    Ok(ids.into_iter().map(JobId).collect())
}

/// Writes a new definition into XXL-JOB's row.
pub async fn update(
    s: &mut dyn Session,
    tables: &Tables,
    id: JobId,
    spec: &JobSpec,
    now: Timestamp,
) -> Result<(), SessionError> {
    let mut columns = spec_columns(tables);
    let mut row = vec![id.0.into()];
    row.extend(spec_values(tables, spec)?);
    columns.push("update_time");
    row.push(tables.wall.time(now));
    s.update(Columns { table: "xxl_job_info", keys: &["id"], columns: &columns }, vec![row]).await?;
    Ok(())
}

/// The columns of `xxl_job_info` that hold a definition, in the order of [`spec_values`].
fn spec_columns(tables: &Tables) -> Vec<&'static str> {
    let mut columns = vec![
        "job_group",
        tables.schema.description_column(),
        "executor_route_strategy",
        "executor_handler",
        "executor_param",
        "executor_block_strategy",
        "executor_timeout",
        "executor_fail_retry_count",
        "child_jobid",
        "alarm_email",
        "author",
    ];
    match tables.schema.has_schedule_type() {
        true => columns.extend(["schedule_conf", "schedule_type", "misfire_strategy"]),
        false => columns.push("job_cron"),
    }
    columns
}

fn spec_values(tables: &Tables, spec: &JobSpec) -> Result<Vec<Value>, StoreError> {
    let wording = Wording::of(&spec.schedule, tables)?;
    let mut values: Vec<Value> = vec![
        spec.app.0.into(),
        spec.name.as_str().into(),
        spec.route.stored().into(),
        spec.handler.as_str().into(),
        spec.param.as_str().into(),
        spec.block.stored().into(),
        spec.timeout.map_or(0, whole_seconds).min(i64::from(i32::MAX)).into(),
        i64::from(spec.retry.count.min(i32::MAX.unsigned_abs())).into(),
        children_text(&spec.children).into(),
        spec.alert_to.as_str().into(),
        spec.author.as_str().into(),
        wording.xxl_conf.into(),
    ];
    if tables.schema.has_schedule_type() {
        let xxl_type = if wording.xxl_type.is_empty() { "NONE" } else { wording.xxl_type };
        values.extend([xxl_type.into(), misfire_words(spec.misfire).0.into()]);
    }
    Ok(values)
}

fn children_text(children: &[JobId]) -> String {
    children.iter().map(JobId::to_string).collect::<Vec<_>>().join(",")
}

/// Adds our rows for jobs that have none, each with its claim time.
pub async fn insert_own(
    s: &mut dyn Session,
    tables: &Tables,
    jobs: &[(&Job, Option<Timestamp>)],
) -> Result<(), SessionError> {
    let row = |(job, claim_at): &(&Job, Option<Timestamp>)| {
        let mut row = vec![job.id.0.into(), job.next_fire_at.into(), (*claim_at).into(), 0.into()];
        row.extend(own_values(tables, job)?);
        Ok(row)
    };
    let rows = jobs.iter().map(row).collect::<Result<Vec<_>, StoreError>>()?;
    let columns = [&["job_id", "next_ms", "claim_ms", "revision"], OWN_COLUMNS].concat();
    s.insert(Columns { table: "tw_job", keys: &[], columns: &columns }, rows).await
}

/// Writes a new definition into our row.
pub async fn update_own(s: &mut dyn Session, tables: &Tables, job: &Job) -> Result<(), SessionError> {
    let mut row = vec![job.id.0.into(), job.revision.into()];
    row.extend(own_values(tables, job)?);
    let columns = [&["revision"], OWN_COLUMNS].concat();
    s.update(Columns { table: "tw_job", keys: &["job_id"], columns: &columns }, vec![row]).await?;
    Ok(())
}

/// The columns of `tw_job` that hold a definition, in the order of [`own_values`].
const OWN_COLUMNS: &[&str] = &[
    "job_key",
    "zone",
    "dst_rule",
    "anchor_ms",
    "schedule_kind",
    "schedule_text",
    "valid_from_ms",
    "valid_until_ms",
    "jitter_ms",
    "timeout_ms",
    "misfire",
    "overlap",
    "retry",
    "delivery",
    "children_mode",
    "alert",
    "problem",
];

fn own_values(tables: &Tables, job: &Job) -> Result<Vec<Value>, StoreError> {
    let spec = &job.spec;
    let wording = Wording::of(&spec.schedule, tables)?;
    let whole_millis = |length: Duration| i64::try_from(length.as_millis()).unwrap_or(i64::MAX);
    Ok(vec![
        spec.key.as_deref().into(),
        wording.zone.into(),
        wording.dst_rule.into(),
        wording.anchor.into(),
        wording.kind.into(),
        wording.text.into(),
        spec.valid_from.into(),
        spec.valid_until.into(),
        whole_millis(spec.jitter).into(),
        spec.timeout.map(whole_millis).into(),
        misfire_words(spec.misfire).1.into(),
        spec.overlap.stored().into(),
        backoff_words(spec.retry.backoff).into(),
        spec.delivery.stored().into(),
        spec.children_mode.stored().into(),
        i64::from(spec.alert).into(),
        job.problem.as_deref().into(),
    ])
}
