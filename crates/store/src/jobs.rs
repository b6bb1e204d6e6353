//! Jobs: rows of `xxl_job_info` with our own of `tw_job`.
//!
//! XXL-JOB's names for the parts of a job are used only here. Its row is authoritative; ours adds fields that its
//! columns cannot hold, and an indexed copy of the next time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cron::{Cron, Dialect, DstRule, Rule, Schedule, Timetable, Zone};
use engine::policy::{Backoff, Delivery, Misfire, Named, Overlap, Retry, Word};
use engine::{
    AppId, BackfillId, ChildrenMode, Job, JobId, JobSpec, NextFire, Origin, Run, RunId, Script,
    ScriptLanguage, StoreError, WorkflowId,
};
use timer::Timestamp;

use crate::calendars::{self, WorkdaysColumns};
use crate::database::Tables;
use crate::foreign;
use crate::runs::{IS_SCHEDULED, REPLACED, WAITING};
use crate::schema::{self, Schema, check_text};
use crate::session::{Columns, Lock, Row, Session, SessionError, Value};
use crate::table::table;

/// A stored job.
pub struct Stored {
    pub job: Job,
    /// Next time in our row; `None` if there is no such row yet.
    pub shadow: Option<Option<Timestamp>>,
    /// Fire of its current run, if the job is exclusive.
    pub holder_fire: Option<RunId>,
    /// Its `trigger_status`: [`STOPPED`], [`STARTED`] or [`STARTED_HERE`].
    pub status: i64,
    /// Its `trigger_next_time`.
    pub next_time: i64,
    /// Schedule in XXL-JOB's columns, as one text.
    pub written: String,
    /// The same text when our row was written; `None` if our row does not have it.
    pub seen: Option<String>,
    /// Columns of its work calendar, if it has one.
    pub workdays: Option<WorkdaysColumns>,
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

    /// Whether others have started the job without a next time. Only jobs of kinds that Java admins do not support
    /// may be started and wait for a time, and these have another status.
    pub fn is_idle(&self) -> bool {
        self.status == STARTED && self.job.next_fire_at.is_none() && self.job.problem.is_none()
    }

    /// Whether its work calendar was changed after the next fire was computed.
    pub fn is_outdated(&self) -> bool {
        let current = self.job.spec.workdays.as_ref().map(|workdays| workdays.revision);
        self.workdays.as_ref().is_some_and(|columns| Some(columns.revision) != current)
    }

    /// Whether others have changed the schedule since our row was written.
    pub fn is_reworded(&self) -> bool {
        self.seen.as_ref().is_some_and(|seen| *seen != self.written)
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

/// Reads the jobs of open runs.
pub async fn load_of_runs(
    s: &mut dyn Session,
    tables: &Tables,
    runs: Vec<i64>,
) -> Result<BTreeMap<i64, Stored>, SessionError> {
    let tail = "WHERE j.id IN (SELECT job_id FROM tw_run WHERE run_id IN ?)";
    let found = select(s, tables, tail, &[Value::Ids(runs)]).await?;
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
    let rows = s.query(&format!("{} {tail}", tables.select_jobs), params, Lock::None).await?;
    let mut found = rows.into_iter().map(|row| stored(tables, row)).collect::<Result<Vec<_>, _>>()?;
    find_places(s, tables, &mut found).await?;
    calendars::attach(s, tables, &mut found).await?;
    Ok(found)
}

/// The query for jobs, before its conditions. The script of a job that does not run it is not read.
pub fn select_from(schema: &Schema) -> String {
    format!(
        "SELECT {}, {}, CASE WHEN j.glue_type = '{HANDLER}' THEN NULL ELSE j.glue_source END \
         FROM xxl_job_info j LEFT JOIN tw_job t ON t.job_id = j.id",
        schema.list("xxl_job_info", "j", InfoRow::NAMES),
        OwnRow::list_of("t")
    )
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
        "SELECT job_id, run_id, fire_id, state, kind FROM tw_run WHERE job_id IN ? AND recalled <> {REPLACED}{open} \
         ORDER BY job_id, run_id"
    );
    let (backfill, _) = Origin::Backfill { of: BackfillId(0) }.to_numbers();
    let mut open: BTreeMap<i64, Vec<(RunId, RunId, bool)>> = BTreeMap::new();
    for row in s.query(&sql, &[Value::Ids(exclusive)], Lock::None).await? {
        let mut row = row.read();
        let job = row.int()?;
        let (run, fire, waits) = (RunId(row.int()?), RunId(row.int()?), row.int()? == WAITING);
        // A backfill that waits keeps no fire of the schedule waiting.
        if !waits || row.int()? != backfill {
            open.entry(job).or_default().push((run, fire, waits));
        }
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
    let (info, own) = (InfoRow::read(&mut row)?, OwnRow::read_joined(&mut row)?);
    let source = row.text()?;
    let shadow = own.as_ref().map(|own| own.next_ms);
    let own = own.unwrap_or_default();
    let text = written_text(tables, info.schedule_type.as_deref(), &info.schedule_conf);

    let enabled = info.trigger_status != STOPPED;
    let next = info.trigger_next_time;
    let next_fire_at = (enabled && next > NO_TIME).then(|| Timestamp::from_millis(next));
    let written = Written {
        xxl_type: info.schedule_type.unwrap_or_else(|| CRON.to_owned()),
        xxl_conf: info.schedule_conf,
        next,
        anchor: own.anchor_ms,
        words: ScheduleWords {
            kind: own.schedule_kind,
            text: own.schedule_text,
            zone: own.zone,
            dst_rule: own.dst_rule,
        },
    };
    let (schedule, problem) = match written.schedule(tables) {
        Ok(schedule) => (schedule, None),
        Err(problem) => (Schedule::Never, Some(problem)),
    };
    let edited_at = info.glue_updatetime.and_then(|text| tables.wall.instant(&text)).unwrap_or_default();
    // A job of any other type has a handler.
    let script = ScriptLanguage::from_stored(&info.glue_type);
    let backoff = own.retry.as_deref().and_then(Backoff::from_stored).unwrap_or_default();

    let spec = JobSpec {
        key: own.job_key,
        app: info.job_group,
        name: info.job_desc,
        schedule,
        // Read by `calendars::attach`.
        workdays: None,
        valid_from: own.valid_from_ms,
        valid_until: own.valid_until_ms,
        max_fires: own.max_fires.map(i64::unsigned_abs),
        jitter: millis(own.jitter_ms),
        misfire: misfire_of(&info.misfire_strategy, own.misfire.as_deref()),
        overlap: value_of(own.overlap.as_deref(), Overlap::Allow),
        retry: Retry { count: u32::try_from(info.executor_fail_retry_count).unwrap_or(0), backoff },
        delivery: value_of(own.delivery.as_deref(), Delivery::Probe),
        timeout: timeout_of(info.executor_timeout, own.timeout_ms),
        handler: info.executor_handler,
        script: script.map(|language| Script { language, source, edited_at }),
        workflow: own.workflow_id,
        param: info.executor_param,
        route: Named::from_stored(&info.executor_route_strategy),
        block: Named::from_stored(&info.executor_block_strategy),
        children: children_of(&info.child_jobid, info.id),
        children_mode: value_of(own.children_mode.as_deref(), ChildrenMode::Each),
        alert: own.alert.unwrap_or_else(|| !info.alarm_email.trim().is_empty()),
        alert_to: info.alarm_email,
        author: info.author,
    };
    let job = Job {
        id: info.id,
        spec,
        enabled,
        next_fire_at,
        revision: own.revision,
        fires: own.fires.unsigned_abs(),
        running: None,
        waiting: 0,
        problem,
    };
    let (status, seen) = (info.trigger_status, own.written);
    let workdays = own.calendar_id.map(|calendar| WorkdaysColumns {
        calendar,
        revision: own.calendar_revision.unwrap_or_default(),
        on: own.on_days,
        shift: own.day_shift,
    });
    Ok(Stored { job, shadow, holder_fire: None, status, next_time: next, written: text, seen, workdays })
}

// ── Columns ─────────────────────────────────────────────────────────────────────────────────────────────────────

/// A job to write into XXL-JOB's row.
#[derive(Clone, Copy)]
struct Info<'a> {
    id: JobId,
    spec: &'a JobSpec,
    wording: &'a Wording,
    now: &'a Value,
    next: NextFire,
    remark: &'a str,
}

table! {
    /// Row of `xxl_job_info`.
    struct InfoRow in "xxl_job_info" of job: Info<'_> {
        glue_type: String = job.spec.script.as_ref().map_or(HANDLER, |script| script.language.stored()),
        glue_updatetime: Option<String> = job.now.clone(),
        trigger_status: i64 = status(job.next, job.wording),
        trigger_next_time: i64 = next_time(job.next),
    }
    edited by id with update_time {
        job_group: AppId = job.spec.app,
        job_desc: String = job.spec.name.as_str(),
        schedule_type: Option<String> = job.wording.xxl_type,
        schedule_conf: String = job.wording.xxl_conf.as_str(),
        misfire_strategy: String = misfire_words(job.spec.misfire).0,
        executor_route_strategy: String = job.spec.route.stored(),
        executor_handler: String = job.spec.handler.as_str(),
        executor_param: String = job.spec.param.as_str(),
        executor_block_strategy: String = job.spec.block.stored(),
        executor_timeout: i64 = job.spec.timeout.map_or(0, whole_seconds).min(i32::MAX.into()),
        executor_fail_retry_count: i64 = i64::from(job.spec.retry.count.min(i32::MAX.unsigned_abs())),
        child_jobid: String = children_text(&job.spec.children),
        alarm_email: String = job.spec.alert_to.as_str(),
        author: String = job.spec.author.as_str(),
    }
    not inserted { id: JobId = job.id }
    not read {
        glue_source = job.spec.script.as_ref().map_or("", |script| script.source.as_str()),
        glue_remark = job.remark,
        add_time = job.now.clone(),
        update_time = job.now.clone(),
        trigger_last_time = NO_TIME,
    }
}

/// A job to write into our row.
#[derive(Clone, Copy)]
struct Own<'a> {
    job: &'a Job,
    wording: &'a Wording,
    /// Schedule in XXL-JOB's columns, as one text.
    written: &'a str,
    claim_at: Option<Timestamp>,
}

table! {
    /// Row of `tw_job`.
    #[derive(Default)]
    struct OwnRow in "tw_job" of own: Own<'_> {
        revision: i64 = own.job.revision,
        fires: i64 = i64::try_from(own.job.fires).unwrap_or(i64::MAX),
        next_ms: Option<Timestamp> = own.job.next_fire_at,
    }
    edited by job_id with revision, problem {
        job_key: Option<String> = own.job.spec.key.as_deref(),
        zone: Option<String> = own.wording.zone.as_deref(),
        dst_rule: Option<String> = own.wording.dst_rule.as_deref(),
        anchor_ms: Option<Timestamp> = own.wording.anchor,
        schedule_kind: Option<String> = own.wording.kind,
        schedule_text: Option<String> = own.wording.text.as_deref(),
        written: Option<String> = own.written,
        valid_from_ms: Option<Timestamp> = own.job.spec.valid_from,
        valid_until_ms: Option<Timestamp> = own.job.spec.valid_until,
        max_fires: Option<i64> =
            own.job.spec.max_fires.map(|max| i64::try_from(max).unwrap_or(i64::MAX)),
        jitter_ms: i64 = whole_millis(own.job.spec.jitter),
        timeout_ms: Option<i64> = own.job.spec.timeout.map(whole_millis),
        misfire: Option<String> = misfire_words(own.job.spec.misfire).1,
        overlap: Option<String> = own.job.spec.overlap.stored(),
        retry: Option<String> = own.job.spec.retry.backoff.stored(),
        delivery: Option<String> = own.job.spec.delivery.stored(),
        children_mode: Option<String> = own.job.spec.children_mode.stored(),
        alert: Option<bool> = own.job.spec.alert,
        workflow_id: Option<WorkflowId> = own.job.spec.workflow,
        calendar_id: Option<i64> = own.job.spec.workdays.as_ref().map(|workdays| workdays.calendar.0),
        calendar_revision: Option<i64> = own.job.spec.workdays.as_ref().map(|workdays| workdays.revision),
        on_days: Option<String> = own.job.spec.workdays.as_ref().map(|workdays| workdays.rule.on.to_string()),
        day_shift: Option<String> =
            own.job.spec.workdays.as_ref().map(|workdays| workdays.rule.shift.to_string()),
    }
    not read {
        job_id = own.job.id,
        claim_ms = own.claim_at,
        problem = own.job.problem.as_deref(),
    }
}

/// `glue_type` of a job with a handler.
pub const HANDLER: &str = "BEAN";

/// Value of XXL-JOB's columns for a time that does not exist.
pub const NO_TIME: i64 = 0;

// ── Schedules ───────────────────────────────────────────────────────────────────────────────────────────────────

/// A schedule as stored in the columns.
struct Written {
    xxl_type: String,
    xxl_conf: String,
    next: i64,
    anchor: Option<Timestamp>,
    words: ScheduleWords,
}

/// Our own columns of a schedule, without the anchor of a fixed rate.
#[derive(Default)]
pub struct ScheduleWords {
    pub kind: Option<String>,
    pub text: Option<String>,
    pub zone: Option<String>,
    pub dst_rule: Option<String>,
}

impl Written {
    /// Parses the schedule, or returns the problem. Our own columns count only where XXL-JOB's are empty, so that an
    /// edit by a Java admin takes effect.
    fn schedule(&self, tables: &Tables) -> Result<Schedule, String> {
        match self.xxl_type.as_str() {
            CRON if !self.xxl_conf.is_empty() => {
                let (cron, _) = Cron::parse_lenient(&self.xxl_conf).map_err(|error| error.to_string())?;
                self.cron(tables, cron)
            }
            FIX_RATE => {
                let seconds = self.xxl_conf.trim().parse().map_err(|_| {
                    format!("`{}` is not a number of seconds for a fixed rate", self.xxl_conf)
                })?;
                let anchor = self.anchor.unwrap_or(Timestamp::from_millis(self.next));
                Schedule::fixed_rate(anchor, Duration::from_secs(seconds)).map_err(|error| error.to_string())
            }
            // In a database without schedule types, an empty expression means no schedule.
            NONE | CRON => self.own_schedule(tables),
            other => Err(format!("unknown kind of schedule `{other}`")),
        }
    }

    fn own_schedule(&self, tables: &Tables) -> Result<Schedule, String> {
        let text = self.words.text.as_deref().unwrap_or_default();
        let number =
            || text.parse().map_err(|_| format!("`{text}` is not a number of milliseconds in a schedule"));
        let read = match self.words.kind.as_deref() {
            None => return Ok(Schedule::Never),
            Some("quartz") => {
                return self.cron(tables, Cron::parse(text).map_err(|error| error.to_string())?);
            }
            Some("unix") => {
                let cron = Cron::parse_in(Dialect::Unix, text).map_err(|error| error.to_string())?;
                return self.cron(tables, cron);
            }
            Some("timetable") => {
                let (zone, dst) = self.zone_and_dst(tables)?;
                let rules: Vec<&str> = text.lines().collect();
                Timetable::parse(&rules, &zone, dst).map(Schedule::Timetable)
            }
            Some("rate") => Schedule::fixed_rate(self.anchor.unwrap_or_default(), millis(number()?)),
            Some("delay") => Schedule::fixed_delay(millis(number()?)),
            Some("once") => Ok(Schedule::once(Timestamp::from_millis(number()?))),
            Some(other) => return Err(format!("unknown kind of schedule `{other}`")),
        };
        read.map_err(|error| error.to_string())
    }

    fn cron(&self, tables: &Tables, cron: Cron) -> Result<Schedule, String> {
        let (zone, dst) = self.zone_and_dst(tables)?;
        Ok(Schedule::cron(cron, zone, dst))
    }

    fn zone_and_dst(&self, tables: &Tables) -> Result<(Zone, DstRule), String> {
        let zone = match self.words.zone.as_deref() {
            Some(name) => Zone::parse(name).map_err(|error| error.to_string())?,
            None => tables.zone.clone(),
        };
        let dst = match self.words.dst_rule.as_deref() {
            Some(word) => word.parse().map_err(|error: cron::Error| error.to_string())?,
            None => DstRule::QUARTZ,
        };
        Ok((zone, dst))
    }
}

/// Values of `schedule_type`. Before XXL-JOB 2.3 there was no such column, and only cron.
pub const CRON: &str = "CRON";
const FIX_RATE: &str = "FIX_RATE";
/// There is no schedule in XXL-JOB's columns.
const NONE: &str = "NONE";

/// Column values of a schedule.
struct Wording {
    xxl_type: &'static str,
    xxl_conf: String,
    zone: Option<String>,
    dst_rule: Option<String>,
    anchor: Option<Timestamp>,
    kind: Option<&'static str>,
    text: Option<String>,
    /// XXL-JOB's columns as one text.
    written: String,
}

impl Wording {
    const NONE: Wording = Wording {
        written: String::new(),
        xxl_type: NONE,
        xxl_conf: String::new(),
        zone: None,
        dst_rule: None,
        anchor: None,
        kind: None,
        text: None,
    };

    /// XXL-JOB has neither workflows, nor work calendars, nor limits of fires: the schedules of such jobs are only in our
    /// columns, so that Java admins leave them alone.
    fn of_job(spec: &JobSpec, tables: &Tables) -> Result<Wording, StoreError> {
        let wording = Wording::of(&spec.schedule, tables)?;
        let is_foreign = spec.workflow.is_some() || spec.workdays.is_some() || spec.max_fires.is_some();
        if !is_foreign || wording.kind.is_some() {
            return Ok(wording);
        }
        let (kind, text) = own_words(&spec.schedule);
        let written = written_text(tables, Some(NONE), "");
        Ok(Wording { xxl_type: NONE, xxl_conf: String::new(), kind, text, written, ..wording })
    }

    fn of(schedule: &Schedule, tables: &Tables) -> Result<Wording, StoreError> {
        let own = |kind, text| Wording { kind: Some(kind), text: Some(text), ..Wording::NONE };
        let wording = match schedule {
            Schedule::Cron { cron, zone, dst } => {
                let text = cron.to_string();
                let wording = match cron.dialect() {
                    Dialect::Quartz if text.len() <= CONF_MAX => {
                        Wording { xxl_type: CRON, xxl_conf: text, ..Wording::NONE }
                    }
                    Dialect::Quartz => own("quartz", text),
                    Dialect::Unix => own("unix", text),
                };
                Wording { zone: zone_name(zone, tables)?, dst_rule: Some(dst.to_string()), ..wording }
            }
            Schedule::Timetable(timetable) => {
                let first = timetable.rules().first();
                let is_alike = |rule: &Rule| {
                    first.is_some_and(|first| {
                        rule.zone() == first.zone() && rule.dst_rule() == first.dst_rule()
                    })
                };
                let (Some(first), Some(texts), true) =
                    (first, timetable.to_texts(), timetable.rules().iter().all(is_alike))
                else {
                    return Err(StoreError::Invalid(
                        "a stored timetable has one time zone and daylight saving rule, and no work calendars"
                            .into(),
                    ));
                };
                Wording {
                    zone: zone_name(first.zone(), tables)?,
                    dst_rule: Some(first.dst_rule().to_string()),
                    ..own("timetable", texts.join("\n"))
                }
            }
            // Before XXL-JOB 2.3 there was only cron.
            Schedule::FixedRate { anchor, period }
                if period.subsec_millis() == 0 && tables.schema.has_schedule_type() =>
            {
                Wording {
                    xxl_type: FIX_RATE,
                    xxl_conf: period.as_secs().to_string(),
                    anchor: Some(*anchor),
                    ..Wording::NONE
                }
            }
            Schedule::FixedRate { anchor, period } => {
                Wording { anchor: Some(*anchor), ..own("rate", period.as_millis().to_string()) }
            }
            Schedule::FixedDelay { delay } => own("delay", delay.as_millis().to_string()),
            Schedule::Once { at } => own("once", at.as_millis().to_string()),
            Schedule::Never => Wording::NONE,
        };
        let written = written_text(tables, Some(wording.xxl_type), &wording.xxl_conf);
        Ok(Wording { written, ..wording })
    }
}

/// XXL-JOB's columns of a schedule as one text; [`written_sql`] is the same in SQL.
fn written_text(tables: &Tables, xxl_type: Option<&str>, xxl_conf: &str) -> String {
    match xxl_type.filter(|_| tables.schema.has_schedule_type()) {
        Some(kind) => format!("{kind} {xxl_conf}"),
        None => xxl_conf.to_owned(),
    }
}

/// SQL expression for [`Stored::written`] of a job `j`.
pub fn written_sql(schema: &Schema) -> String {
    let conf = schema.list("xxl_job_info", "j", &["schedule_conf"]);
    match (schema.has_schedule_type(), schema.dialect()) {
        (true, schema::Dialect::MySql) => format!("CONCAT(j.schedule_type, ' ', COALESCE({conf}, ''))"),
        // On PostgreSQL, comparing all jobs takes a third less than with `CONCAT`.
        (true, schema::Dialect::Sqlite | schema::Dialect::Postgres) => {
            format!("j.schedule_type || ' ' || COALESCE({conf}, '')")
        }
        (false, _) => format!("COALESCE({conf}, '')"),
    }
}

/// A schedule in our own columns alone. The anchor of a fixed rate is not included.
pub fn schedule_words(schedule: &Schedule, tables: &Tables) -> Result<ScheduleWords, StoreError> {
    let Wording { kind, text, zone, dst_rule, .. } = Wording::of(schedule, tables)?;
    let (kind, text) = if kind.is_none() { own_words(schedule) } else { (kind, text) };
    Ok(ScheduleWords { kind: kind.map(str::to_owned), text, zone, dst_rule })
}

/// Our own columns for a schedule that XXL-JOB's could hold.
fn own_words(schedule: &Schedule) -> (Option<&'static str>, Option<String>) {
    match schedule {
        Schedule::Cron { cron, .. } => (Some("quartz"), Some(cron.to_string())),
        Schedule::FixedRate { period, .. } => (Some("rate"), Some(period.as_millis().to_string())),
        _ => (None, None),
    }
}

/// The schedule that [`schedule_words`] wrote. A schedule that cannot be parsed any more is `Never`.
pub fn schedule_of_words(words: ScheduleWords, tables: &Tables) -> Schedule {
    let written =
        Written { xxl_type: NONE.to_owned(), xxl_conf: String::new(), next: NO_TIME, anchor: None, words };
    written.schedule(tables).unwrap_or(Schedule::Never)
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
    if Misfire::from_stored(xxl) == Some(Misfire::FireOnce) {
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
    let own = match misfire {
        Misfire::FireAll { window, max } => Some(format!("fire-all {} {max}", window.as_millis())),
        Misfire::Skip | Misfire::FireOnce => None,
    };
    (misfire.stored(), own)
}

/// XXL-JOB stores seconds. Our column counts only while it matches, so that an edit by a Java admin takes effect.
fn timeout_of(seconds: i64, own_millis: Option<i64>) -> Option<Duration> {
    match own_millis.map(millis) {
        Some(own) if whole_seconds(own) == seconds => Some(own),
        _ => (seconds > 0).then(|| Duration::from_secs(seconds.unsigned_abs())),
    }
}

pub fn whole_millis(length: Duration) -> i64 {
    i64::try_from(length.as_millis()).unwrap_or(i64::MAX)
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
        fires: 0,
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
    let locked: Vec<i64> = rows.into_iter().map(|row| row.read().int()).collect::<Result<_, _>>()?;
    if !s.locks_alone() && !locked.is_empty() {
        let sql = "UPDATE tw_job SET guard = guard + 1 WHERE job_id IN ?";
        s.execute(sql, &[Value::Ids(locked.clone())]).await?;
    }
    Ok(locked)
}

/// `trigger_status` of a job with this next fire.
fn status(next: NextFire, wording: &Wording) -> i64 {
    match next {
        NextFire::Never => STOPPED,
        NextFire::At { .. } | NextFire::AfterRun if wording.kind.is_some() => STARTED_HERE,
        NextFire::At { .. } | NextFire::AfterRun => STARTED,
    }
}

/// `trigger_status` of a started job.
pub fn started_status(spec: &JobSpec, tables: &Tables) -> Result<i64, StoreError> {
    let is_ours = Wording::of_job(spec, tables)?.kind.is_some();
    Ok(if is_ours { STARTED_HERE } else { STARTED })
}

/// `trigger_next_time` of a job with this next fire.
fn next_time(next: NextFire) -> Value {
    next_columns(next).0.map_or(NO_TIME.into(), Value::from)
}

/// Sets when jobs with these definitions are next to fire and to be claimed, in XXL-JOB's rows and ours. `Never` stops
/// a job.
pub async fn set_next_times(
    s: &mut dyn Session,
    tables: &Tables,
    jobs: &[(JobId, &JobSpec, NextFire)],
) -> Result<(), SessionError> {
    if jobs.is_empty() {
        return Ok(());
    }
    let (mut infos, mut owns) = (Vec::with_capacity(jobs.len()), Vec::with_capacity(jobs.len()));
    for (id, spec, next) in jobs {
        let wording = Wording::of_job(spec, tables)?;
        infos.push(vec![id.0.into(), status(*next, &wording).into(), next_time(*next)]);
        let (fire_at, claim_at) = next_columns(*next);
        owns.push(vec![id.0.into(), fire_at.into(), claim_at.into()]);
    }
    let columns = ["trigger_status", "trigger_next_time"];
    s.update(Columns { table: "xxl_job_info", keys: &["id"], columns: &columns }, infos).await?;
    let columns = ["next_ms", "claim_ms"];
    s.update(Columns { table: "tw_job", keys: &["job_id"], columns: &columns }, owns).await?;
    Ok(())
}

/// Sets the number of counted fires of jobs.
pub async fn set_fires(s: &mut dyn Session, fires: &[(JobId, u64)]) -> Result<(), SessionError> {
    if fires.is_empty() {
        return Ok(());
    }
    let row =
        |(job, fires): &(JobId, u64)| vec![job.0.into(), i64::try_from(*fires).unwrap_or(i64::MAX).into()];
    let set = Columns { table: "tw_job", keys: &["job_id"], columns: &["fires"] };
    s.update(set, fires.iter().map(row).collect()).await
}

/// Stops jobs: they have no next fire, and a last fire after `at` is that of a run that is withdrawn. For a job that is
/// stopped already, it is one that a Java admin has taken, and stays.
pub async fn stop(s: &mut dyn Session, jobs: &[i64], at: Timestamp) -> Result<(), SessionError> {
    // MySQL assigns from left to right, so the status comes last.
    let sql = format!(
        "UPDATE xxl_job_info SET trigger_last_time = CASE WHEN trigger_last_time > ? AND trigger_status <> {STOPPED} \
         THEN ? ELSE trigger_last_time END, trigger_next_time = {NO_TIME}, trigger_status = {STOPPED} WHERE id IN ?"
    );
    s.execute(&sql, &[at.into(), at.into(), Value::Ids(jobs.to_vec())]).await?;
    let sql = "UPDATE tw_job SET next_ms = NULL, claim_ms = NULL WHERE job_id IN ?";
    s.execute(sql, &[Value::Ids(jobs.to_vec())]).await?;
    Ok(())
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
    s.execute(
        sql,
        &[status_here.into(), status.into(), fire_at.map_or(NO_TIME.into(), Value::from), id.0.into()],
    )
    .await?;
    let sql = "UPDATE tw_job SET next_ms = ?, claim_ms = ? WHERE job_id = ?";
    s.execute(sql, &[fire_at.into(), claim_at.into(), id.0.into()]).await?;
    Ok(())
}

/// Sets the next time of a job with a fixed delay, or stops it if there is none; only if it is enabled and waiting
/// for that.
pub async fn rearm(s: &mut dyn Session, job: JobId, next: NextFire) -> Result<(), SessionError> {
    let sql = format!(
        "SELECT id FROM xxl_job_info WHERE id = ? AND trigger_status <> {STOPPED} AND trigger_next_time = {NO_TIME}"
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
            rearm(s, job.id, NextFire::at_or_never(job.spec.next_after_end(now))).await?;
        }
    }
    Ok(())
}

/// Those of the jobs that have open runs of their schedules.
pub async fn with_scheduled_runs(s: &mut dyn Session, jobs: &[i64]) -> Result<BTreeSet<i64>, SessionError> {
    if jobs.is_empty() {
        return Ok(BTreeSet::new());
    }
    let sql = format!("SELECT DISTINCT job_id FROM tw_run WHERE job_id IN ? AND {IS_SCHEDULED}");
    let rows = s.query(&sql, &[Value::Ids(jobs.to_vec())], Lock::None).await?;
    rows.into_iter().map(|row| row.read().int()).collect()
}

pub async fn has_scheduled_run(s: &mut dyn Session, job: JobId) -> Result<bool, SessionError> {
    let sql = format!("SELECT run_id FROM tw_run WHERE job_id = ? AND {IS_SCHEDULED} LIMIT 1");
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
    let wording = &Wording::of_job(spec, tables)?;
    let job = &new(JobId(0), spec.clone());
    let (into, row) = InfoRow::INSERT;
    let info = Info { id: job.id, spec, wording, now: &Value::Null, next: NextFire::Never, remark: "" };
    tables.schema.check_row(into, &row(info))?;
    let (into, row) = OwnRow::INSERT;
    tables.schema.check_row(into, &row(Own { job, wording, written: &wording.written, claim_at: None }))
}

/// Rejects a script that its column cannot hold.
pub fn check_source(tables: &Tables, source: &str) -> Result<(), StoreError> {
    check_text(source)?;
    tables.schema.check_fits("xxl_job_info", "glue_source", source)
}

/// Adds XXL-JOB's rows for new jobs, each with its first fire (`Never` if it is stopped) and the remark on its script.
/// [`insert_own`] adds ours.
pub async fn insert(
    s: &mut dyn Session,
    tables: &Tables,
    jobs: &[(&JobSpec, NextFire, &str)],
    now: Timestamp,
) -> Result<Vec<JobId>, SessionError> {
    let now = &tables.wall.time(now);
    let (into, row) = InfoRow::INSERT;
    let row = |(spec, next, remark): &(&JobSpec, NextFire, &str)| {
        let wording = &Wording::of_job(spec, tables)?;
        Ok(row(Info { id: JobId(0), spec, wording, now, next: *next, remark }))
    };
    let rows = jobs.iter().map(row).collect::<Result<Vec<_>, StoreError>>()?;
    let (columns, rows) = tables.schema.existing(into, rows);
    let ids = s.insert_numbered(Columns { columns: &columns, ..into }, rows).await?;
    Ok(ids.into_iter().map(JobId).collect())
}

/// Writes new definitions into XXL-JOB's rows.
pub async fn update(
    s: &mut dyn Session,
    tables: &Tables,
    jobs: &[&Job],
    now: Timestamp,
) -> Result<(), SessionError> {
    let now = &tables.wall.time(now);
    let (set, row) = InfoRow::EDIT;
    let row = |job: &&Job| {
        let wording = &Wording::of_job(&job.spec, tables)?;
        Ok(row(Info { id: job.id, spec: &job.spec, wording, now, next: NextFire::Never, remark: "" }))
    };
    let rows = jobs.iter().map(row).collect::<Result<Vec<_>, StoreError>>()?;
    let (columns, rows) = tables.schema.existing(set, rows);
    s.update(Columns { columns: &columns, ..set }, rows).await?;
    Ok(())
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
    let (into, row) = OwnRow::INSERT;
    let row = |(job, claim_at): &(&Job, Option<Timestamp>)| {
        let wording = &Wording::of_job(&job.spec, tables)?;
        Ok(row(Own { job, wording, written: &wording.written, claim_at: *claim_at }))
    };
    s.insert(into, jobs.iter().map(row).collect::<Result<Vec<_>, StoreError>>()?).await
}

/// Adds our rows for jobs that others created, each with its claim time. Their schedules are stored as others wrote
/// them, for example with fewer or more spaces than we would write.
pub async fn insert_adopted(
    s: &mut dyn Session,
    tables: &Tables,
    jobs: &[(&Stored, Option<Timestamp>)],
) -> Result<(), SessionError> {
    let (into, row) = OwnRow::INSERT;
    let row = |(stored, claim_at): &(&Stored, Option<Timestamp>)| {
        let wording = &Wording::of_job(&stored.job.spec, tables)?;
        Ok(row(Own { job: &stored.job, wording, written: &stored.written, claim_at: *claim_at }))
    };
    s.insert(into, jobs.iter().map(row).collect::<Result<Vec<_>, StoreError>>()?).await
}

/// Writes new definitions into our rows.
pub async fn update_own(s: &mut dyn Session, tables: &Tables, jobs: &[&Job]) -> Result<(), SessionError> {
    let (set, row) = OwnRow::EDIT;
    let row = |job: &&Job| {
        let wording = &Wording::of_job(&job.spec, tables)?;
        Ok(row(Own { job, wording, written: &wording.written, claim_at: None }))
    };
    s.update(set, jobs.iter().map(row).collect::<Result<Vec<_>, StoreError>>()?).await?;
    Ok(())
}
