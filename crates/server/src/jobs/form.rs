//! Converts XXL-JOB's form to a definition and back. Checks run in XXL-JOB's order, so that users see the same
//! first error.

use std::time::Duration;

use cron::{Cron, Dialect, DstRule, Schedule, Timestamp, Zone};
use engine::policy::{Block, Misfire, Retry, Route, Word};
use engine::{AppId, ChildrenMode, JobSpec, Script, ScriptLanguage};
use protocol::xxl::{GlueType, JobForm};

use crate::request_error::RequestError;

/// Definition of a new job. Settings that the form does not have get XXL-JOB's behaviour.
pub fn new_spec(form: &JobForm, app: AppId, zone: &Zone, now: Timestamp) -> Result<JobSpec, RequestError> {
    check_people(form)?;
    let schedule = schedule(form, None, zone, now)?;
    let script = script(form, now)?;
    if script.is_none() && form.handler.is_empty() {
        return Err(RequestError::invalid("executorHandler: enter the name of the handler (JobHandler)"));
    }
    let mut spec = JobSpec::new(app, &form.name, schedule, &form.handler);
    spec.children_mode = ChildrenMode::Each;
    spec.script = script;
    fill(&mut spec, form)?;
    Ok(spec)
}

/// Definition of a job after an edit. Settings that the form does not have stay unchanged, as does the script,
/// which is edited separately. Without a job the form is only checked.
pub fn edited_spec(
    form: &JobForm,
    before: Option<&JobSpec>,
    zone: &Zone,
    now: Timestamp,
) -> Result<JobSpec, RequestError> {
    check_people(form)?;
    let schedule = schedule(form, before.map(|spec| &spec.schedule), zone, now)?;
    let mut spec =
        before.cloned().unwrap_or_else(|| JobSpec::new(AppId(0), &form.name, Schedule::Never, &form.handler));
    spec.schedule = schedule;
    fill(&mut spec, form)?;
    Ok(spec)
}

fn check_people(form: &JobForm) -> Result<(), RequestError> {
    if form.name.is_empty() {
        return Err(RequestError::invalid("jobDesc: enter a description (name)"));
    }
    if form.author.is_empty() {
        return Err(RequestError::invalid("author: enter the person responsible for the job"));
    }
    Ok(())
}

/// Sets everything except schedule and script.
fn fill(spec: &mut JobSpec, form: &JobForm) -> Result<(), RequestError> {
    let route = foreign::<Route>("executorRouteStrategy", &form.route)?;
    spec.misfire = misfire(form, spec.misfire)?;
    let block = foreign::<Block>("executorBlockStrategy", &form.block)?;
    spec.name = form.name.clone();
    spec.author = form.author.clone();
    if spec.alert_to != form.alarm_email {
        spec.alert = !form.alarm_email.is_empty();
        spec.alert_to = form.alarm_email.clone();
    }
    spec.route = route.into();
    spec.handler = form.handler.clone();
    spec.param = form.param.clone();
    spec.block = block.into();
    spec.timeout = timeout(form.timeout, spec.timeout);
    spec.retry = Retry { count: form.retries, ..spec.retry };
    Ok(())
}

/// Value of XXL-JOB's word in a field.
fn foreign<T: Word>(field: &str, word: &str) -> Result<T, RequestError> {
    let known = || T::stored_words().collect::<Vec<_>>().join(", ");
    T::from_stored(word).ok_or_else(|| unknown(field, word, &known()))
}

fn unknown(field: &str, word: &str, known: &str) -> RequestError {
    let word: String = word.chars().take(40).collect();
    RequestError::invalid(format!("{field}: unknown value `{word}`; use one of {known}"))
}

/// The form has two misfire policies. Our third one is shown there as "do nothing", and stays if that is sent
/// back.
fn misfire(form: &JobForm, before: Misfire) -> Result<Misfire, RequestError> {
    match form.misfire.as_deref() {
        None => Ok(before),
        Some(word) if word == before.stored() => Ok(before),
        Some(word) => Misfire::from_stored(word)
            .ok_or_else(|| unknown("misfireStrategy", word, &Misfire::STORED_WORDS.join(", "))),
    }
}

/// The form has whole seconds; a timeout that rounds to the same number keeps its milliseconds.
fn timeout(seconds: u32, before: Option<Duration>) -> Option<Duration> {
    match before {
        Some(before) if before.as_millis().div_ceil(1_000) == u128::from(seconds) => Some(before),
        _ => (seconds > 0).then(|| Duration::from_secs(seconds.into())),
    }
}

// ── Schedules ───────────────────────────────────────────────────────────────────────────────────────────────────

/// Schedule in the form. If it equals the old schedule in XXL-JOB's notation, the old one is kept, with its time
/// zone and other settings that the notation does not have.
fn schedule(
    form: &JobForm,
    before: Option<&Schedule>,
    zone: &Zone,
    now: Timestamp,
) -> Result<Schedule, RequestError> {
    match form.schedule_type.as_str() {
        "NONE" => match before {
            Some(before) if written_schedule(before).0 == "NONE" => Ok(before.clone()),
            _ => Ok(Schedule::Never),
        },
        "CRON" => {
            let (cron, _) = Cron::parse_lenient(&form.schedule_conf).map_err(|error| {
                RequestError::invalid(format!("scheduleConf: invalid cron expression: {error}"))
            })?;
            let (zone, dst) = match before {
                Some(Schedule::Cron { zone, dst, .. }) => (zone.clone(), *dst),
                _ => (zone.clone(), DstRule::QUARTZ),
            };
            Ok(Schedule::cron(cron, zone, dst))
        }
        "FIX_RATE" => {
            let seconds = form.schedule_conf.parse().ok().filter(|seconds| (1..=i32::MAX).contains(seconds));
            let seconds: i32 = seconds.ok_or_else(|| {
                RequestError::invalid(
                    "scheduleConf: a fixed rate (scheduleType FIX_RATE) must be a whole number of seconds, \
                     1 or more",
                )
            })?;
            let period = Duration::from_secs(seconds.unsigned_abs().into());
            let anchor = match before {
                Some(Schedule::FixedRate { anchor, period: same }) if *same == period => *anchor,
                _ => now,
            };
            Schedule::fixed_rate(anchor, period)
                .map_err(|error| RequestError::invalid(format!("scheduleConf: {error}")))
        }
        word => Err(unknown("scheduleType", word, "NONE, CRON, FIX_RATE")),
    }
}

/// A schedule in XXL-JOB's notation; `NONE` if it cannot be expressed.
pub fn written_schedule(schedule: &Schedule) -> (&'static str, String) {
    match schedule {
        Schedule::Cron { cron, .. } if cron.dialect() == Dialect::Quartz => ("CRON", cron.to_string()),
        Schedule::FixedRate { period, .. } if period.subsec_nanos() == 0 => {
            ("FIX_RATE", period.as_secs().to_string())
        }
        _ => ("NONE", String::new()),
    }
}

/// Next fires of a schedule in XXL-JOB's notation.
pub fn preview(form: &JobForm, zone: &Zone, now: Timestamp) -> Result<Vec<Timestamp>, RequestError> {
    Ok(schedule(form, None, zone, now)?.iter_from(now).take(PREVIEW).collect())
}

/// Same number as XXL-JOB shows.
const PREVIEW: usize = 5;

// ── Scripts ─────────────────────────────────────────────────────────────────────────────────────────────────────

fn script(form: &JobForm, now: Timestamp) -> Result<Option<Script>, RequestError> {
    let Some(glue) = GlueType::read(&form.glue_type) else {
        let known = GlueType::all().map(GlueType::word).collect::<Vec<_>>().join(", ");
        return Err(unknown("glueType", &form.glue_type, &known));
    };
    let GlueType::Script(language) = glue else { return Ok(None) };
    Ok(Some(Script { language, source: source(language, &form.glue_source), edited_at: now }))
}

/// Removes carriage returns from shell scripts: browsers send CRLF line ends, which shells do not accept.
pub fn source(language: ScriptLanguage, written: &str) -> String {
    if language == ScriptLanguage::Shell { written.replace('\r', "") } else { written.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form() -> JobForm {
        JobForm {
            name: "nightly".into(),
            author: "ann".into(),
            schedule_type: "CRON".into(),
            schedule_conf: "0 0 2 * * ?".into(),
            misfire: Some("DO_NOTHING".into()),
            route: "FIRST".into(),
            handler: "nightly".into(),
            block: "SERIAL_EXECUTION".into(),
            glue_type: "BEAN".into(),
            ..JobForm::default()
        }
    }

    fn now() -> Timestamp {
        Timestamp::from_millis(1_782_000_000_000)
    }

    #[test]
    fn the_first_complaint_is_the_one_that_xxl_jobs_users_know() {
        let check = |change: fn(&mut JobForm), field: &str| {
            let mut form = form();
            change(&mut form);
            let RequestError { message: why, .. } =
                new_spec(&form, AppId(1), &Zone::utc(), now()).unwrap_err();
            assert!(why.starts_with(&format!("{field}: ")), "{field}: {why}");
        };
        check(|form| (form.name, form.author) = (String::new(), String::new()), "jobDesc");
        check(|form| (form.author, form.schedule_type) = (String::new(), "x".into()), "author");
        check(|form| (form.schedule_type, form.glue_type) = ("FIX_DELAY".into(), "x".into()), "scheduleType");
        check(
            |form| (form.schedule_conf, form.glue_type) = ("0 0 24 * * ?".into(), "x".into()),
            "scheduleConf",
        );
        check(
            |form| (form.schedule_type, form.schedule_conf) = ("FIX_RATE".into(), "0".into()),
            "scheduleConf",
        );
        check(|form| (form.glue_type, form.handler) = ("x".into(), String::new()), "glueType");
        check(|form| (form.handler, form.route) = (String::new(), "x".into()), "executorHandler");
        check(|form| (form.route, form.block) = ("x".into(), "x".into()), "executorRouteStrategy");
        check(|form| (form.misfire, form.block) = (Some("x".into()), "x".into()), "misfireStrategy");
        check(|form| form.block = "x".into(), "executorBlockStrategy");
    }

    #[test]
    fn an_edit_keeps_what_the_form_cannot_say() {
        let zone = Zone::parse("Europe/London").unwrap();
        let cron = Cron::parse("0 0 1 * * ?").unwrap();
        let mut before =
            JobSpec::new(AppId(1), "a", Schedule::cron(cron, zone.clone(), DstRule::NATURAL), "h");
        before.overlap = engine::policy::Overlap::Skip;
        before.timeout = Some(Duration::from_millis(1_500));
        before.misfire = Misfire::FireAll { window: Duration::from_secs(60), max: 3 };
        let edited = JobForm { timeout: 2, retries: 4, ..form() };
        let spec = edited_spec(&edited, Some(&before), &Zone::utc(), now()).unwrap();
        assert_eq!(spec.timeout, before.timeout);
        assert_eq!(spec.misfire, before.misfire);
        assert_eq!(spec.overlap, before.overlap);
        assert_eq!(spec.retry.count, 4);
        let cron = Cron::parse("0 0 2 * * ?").unwrap();
        assert_eq!(spec.schedule, Schedule::cron(cron, zone, DstRule::NATURAL));
        before.schedule = Schedule::fixed_delay(Duration::from_secs(7)).unwrap();
        let unsaid = JobForm { schedule_type: "NONE".into(), ..form() };
        let spec = edited_spec(&unsaid, Some(&before), &Zone::utc(), now()).unwrap();
        assert_eq!(spec.schedule, before.schedule);
    }

    #[test]
    fn a_schedule_comes_back_in_the_words_it_came_in() {
        let check = |kind: &str, conf: &str| {
            let form = JobForm { schedule_type: kind.into(), schedule_conf: conf.into(), ..form() };
            let spec = new_spec(&form, AppId(1), &Zone::utc(), now()).unwrap();
            let (written, text) = written_schedule(&spec.schedule);
            assert_eq!((written, text.as_str()), (kind, conf));
        };
        check("CRON", "0 0/5 * * * ?");
        check("FIX_RATE", "90");
        check("NONE", "");
    }
}
