//! Converts jobs to and from API types. Errors are reported per field, all at once.

use std::collections::BTreeMap;
use std::time::Duration;

use cron::{Cron, Dialect, DstRule, Language, Rule, Timetable, Workdays, Zone};
use engine::{AppId, Job, JobId, JobSpec, JobWorkdays, Script, WorkflowId};
use protocol::v1::{
    CronDialect, FieldProblem, Instant, JobBody, JobView, Misfire, Named, OnDays, Right, Schedule,
    ScriptBody, Shift, Word, WorkflowBody,
};
use store::{JobName, JobRow};
use timer::Timestamp;

use super::call::instant;
use crate::jobs::source;

// ── From API types ──────────────────────────────────────────────────────────────────────────────────────────────

/// Context for parsing a body.
pub struct Reading<'a> {
    /// Default time zone.
    pub zone: &'a Zone,
    /// Current time.
    pub now: Timestamp,
    /// Definition before the edit; `None` for a new job.
    pub before: Option<&'a JobSpec>,
    /// Work calendar that the body names.
    pub workdays: Option<JobWorkdays>,
}

impl<'a> Reading<'a> {
    /// With the work calendar that the body names.
    pub fn on(self, workdays: Option<JobWorkdays>) -> Reading<'a> {
        Reading { workdays, ..self }
    }

    /// Converts a body to the definition of a job with that app, those children and that workflow.
    pub fn spec(
        &self,
        body: &JobBody,
        app: AppId,
        children: Vec<JobId>,
        workflow: Option<WorkflowId>,
    ) -> Result<JobSpec, Vec<FieldProblem>> {
        let mut wrong = Wrong::default();
        let schedule = wrong.take(self.schedule(&body.schedule), cron::Schedule::Never);
        let is_by_clock = matches!(schedule, cron::Schedule::Cron { .. } | cron::Schedule::Timetable(_));
        wrong.check("workdays", self.workdays.is_none() || is_by_clock, || {
            "requires a cron schedule or a timetable".into()
        });
        wrong.check("name", !body.name.trim().is_empty(), || "must not be empty".into());
        let script = body.script.as_ref().map(|script| self.script(script));
        wrong.check(
            "script.source",
            script.as_ref().is_none_or(|script| !script.source.trim().is_empty()),
            || "must not be empty".into(),
        );
        // An omitted script or workflow stays unchanged.
        let has_handler = !body.handler.trim().is_empty();
        let is_other = has_handler || script.is_some();
        let workflow = workflow.or_else(|| self.before.filter(|_| !is_other)?.workflow);
        let before = self.before.filter(|_| workflow.is_none());
        let script = script.or_else(|| before.and_then(|before| before.script.clone()));
        wrong.check("handler", script.is_some() || workflow.is_some() || has_handler, || {
            "must name a handler, or the job must have a script or a workflow".into()
        });
        wrong.check("workflow", workflow.is_none() || !is_other, || {
            "a job with a workflow has neither a handler nor a script".into()
        });
        wrong.check("timeout_ms", workflow.is_none() || body.timeout_ms.is_none(), || {
            "the timeout of a workflow is `workflow.timeout_ms`".into()
        });
        let route = wrong.word("route", &body.route);
        let block = wrong.word("block", &body.block);
        self.check_numbers(body, &mut wrong);
        check_texts(body, &mut wrong);
        wrong.none()?;
        let mut spec = JobSpec::new(app, body.name.trim(), schedule, body.handler.trim());
        spec.key = self.before.and_then(|before| before.key.clone());
        spec.workdays.clone_from(&self.workdays);
        spec.valid_from = body.valid_from.map(timestamp);
        spec.valid_until = body.valid_until.map(timestamp);
        spec.max_fires = body.max_fires;
        spec.jitter = Duration::from_millis(body.jitter_ms);
        spec.misfire = body.misfire;
        spec.overlap = body.overlap;
        spec.retry = body.retry;
        spec.delivery = body.delivery;
        spec.timeout = body.timeout_ms.map(Duration::from_millis);
        spec.script = script;
        spec.workflow = workflow;
        spec.param.clone_from(&body.param);
        spec.route = route.into();
        spec.block = block.into();
        spec.children = children;
        spec.children_mode = body.children_mode;
        spec.alert = body.alert;
        spec.alert_to = body.alert_to.join(",");
        spec.author.clone_from(&body.author);
        Ok(spec)
    }

    /// Parses and checks a schedule.
    pub fn schedule(&self, schedule: &Schedule) -> Result<cron::Schedule, FieldProblem> {
        let wrong = |field: &str, error: cron::Error| problem(field, error.to_string());
        Ok(match schedule {
            Schedule::None => cron::Schedule::Never,
            Schedule::Once { at } => cron::Schedule::once(timestamp(*at)),
            Schedule::FixedDelay { delay_ms } => {
                cron::Schedule::fixed_delay(Duration::from_millis(*delay_ms))
                    .map_err(|error| wrong("schedule.delay_ms", error))?
            }
            Schedule::FixedRate { every_ms, anchor } => {
                let period = Duration::from_millis(*every_ms);
                let before = match self.before.map(|before| &before.schedule) {
                    Some(cron::Schedule::FixedRate { anchor, period: same }) if *same == period => {
                        Some(*anchor)
                    }
                    _ => None,
                };
                let anchor = anchor.map(timestamp).or(before).unwrap_or(self.now);
                cron::Schedule::fixed_rate(anchor, period)
                    .map_err(|error| wrong("schedule.every_ms", error))?
            }
            Schedule::Cron { expression, dialect, zone, dst } => {
                let read = match dialect {
                    CronDialect::Quartz => Cron::parse(expression),
                    CronDialect::Unix => Cron::parse_in(Dialect::Unix, expression),
                };
                let cron = read.map_err(|error| wrong("schedule.expression", error))?;
                let natural = if zone.is_some() { DstRule::NATURAL } else { DstRule::QUARTZ };
                let dst = dst.as_deref().map(str::parse).transpose();
                let dst = dst.map_err(|error| wrong("schedule.dst", error))?.unwrap_or(natural);
                let zone = zone.as_deref().map(Zone::parse).transpose();
                let zone = zone.map_err(|error| wrong("schedule.zone", error))?;
                cron::Schedule::cron(cron, zone.unwrap_or_else(|| self.zone.clone()), dst)
            }
            Schedule::Timetable { rules, zone, dst } => {
                let zone = zone.as_deref().map(Zone::parse).transpose();
                let zone = zone.map_err(|error| wrong("schedule.zone", error))?;
                let dst = dst.as_deref().map(str::parse).transpose();
                let dst = dst.map_err(|error| wrong("schedule.dst", error))?.unwrap_or(DstRule::NATURAL);
                let timetable = Timetable::parse(rules, zone.as_ref().unwrap_or(self.zone), dst);
                cron::Schedule::Timetable(timetable.map_err(|error| wrong("schedule.rules", error))?)
            }
        })
    }

    fn script(&self, body: &ScriptBody) -> Script {
        let language = body.language;
        Script { language, source: source(language, &body.source), edited_at: self.now }
    }

    fn check_numbers(&self, body: &JobBody, wrong: &mut Wrong) {
        let most = |field: &'static str, value: u64, max: u64| (field, value, max);
        for (field, value, max) in [
            most("jitter_ms", body.jitter_ms, DAY_MS),
            most("timeout_ms", body.timeout_ms.unwrap_or(0), YEAR_MS),
            most("retry.count", body.retry.count.into(), RETRIES_MAX),
            most("retry.backoff", millis(body.retry.backoff.longest()), DAY_MS),
        ] {
            wrong.check(field, value <= max, || format!("must be at most {max}"));
        }
        wrong.check("max_fires", body.max_fires.is_none_or(|max| (1..=FIRES_MAX).contains(&max)), || {
            format!("must be 1 to {FIRES_MAX}; omit it for no limit")
        });
        wrong.check("timeout_ms", body.timeout_ms != Some(0), || {
            "must be 1 or more; omit it for no limit".into()
        });
        if let Misfire::FireAll { window, max } = body.misfire {
            wrong.check("misfire.max", (1..=Misfire::MAX_CATCH_UP).contains(&max), || {
                format!("must be 1 to {}", Misfire::MAX_CATCH_UP)
            });
            wrong.check("misfire.window_ms", (1..=YEAR_MS).contains(&millis(window)), || {
                format!("must be 1 to {YEAR_MS}")
            });
        }
        let in_order = body.valid_from.zip(body.valid_until).is_none_or(|(from, until)| from <= until);
        wrong.check("valid_until", in_order, || "must be after valid_from".into());
    }
}

fn check_texts(body: &JobBody, wrong: &mut Wrong) {
    let is_word = |text: &String| !text.trim().is_empty() && !text.contains(',');
    wrong.check("alert_to", body.alert_to.iter().all(is_word), || {
        "must have one mail address per entry".into()
    });
    let fits = |tag: &String| is_word(tag) && tag.trim() == tag && tag.chars().count() <= TAG_MAX;
    wrong.check("tags", body.tags.len() <= TAGS_MAX && body.tags.iter().all(fits), || {
        format!("must be at most {TAGS_MAX} tags of at most {TAG_MAX} characters, without commas")
    });
    let remark = body.script.as_ref().map_or("", |script| &script.remark);
    wrong.check("script.remark", remark.chars().count() <= REMARK_MAX && !remark.contains('\0'), || {
        format!("must have at most {REMARK_MAX} characters")
    });
}

/// Length of the remark column.
const REMARK_MAX: usize = 128;

/// Errors per field.
#[derive(Default)]
struct Wrong(Vec<FieldProblem>);

impl Wrong {
    fn check(&mut self, field: &str, is_right: bool, why: impl FnOnce() -> String) {
        if !is_right {
            self.0.push(problem(field, why()));
        }
    }

    fn take<T>(&mut self, read: Result<T, FieldProblem>, instead: T) -> T {
        read.unwrap_or_else(|wrong| {
            self.0.push(wrong);
            instead
        })
    }

    fn word<T: Word + Default>(&mut self, field: &str, word: &Named<T>) -> T {
        self.take(word.check().map_err(|error| problem(field, error.to_string())), T::default())
    }

    fn none(self) -> Result<(), Vec<FieldProblem>> {
        if self.0.is_empty() { Ok(()) } else { Err(self.0) }
    }
}

fn problem(field: &str, detail: String) -> FieldProblem {
    FieldProblem { field: field.into(), detail }
}

fn timestamp(at: Instant) -> Timestamp {
    Timestamp::from_millis(at.millis())
}

/// Rejects a key that is empty or too long, or has control characters or surrounding spaces.
pub fn check_key(key: &str) -> Result<(), FieldProblem> {
    let length = key.chars().count();
    let is_plain = key.trim() == key && !key.chars().any(char::is_control);
    match (1..=KEY_MAX).contains(&length) && is_plain {
        true => Ok(()),
        false => Err(problem(
            "key",
            format!("must have 1 to {KEY_MAX} characters, without leading or trailing spaces"),
        )),
    }
}

/// Length of the key column.
const KEY_MAX: usize = 190;

/// Maximum number of tags of a job, and of characters in a tag.
const TAGS_MAX: usize = 20;
const TAG_MAX: usize = 64;

/// Thirty years of a fire per second.
const FIRES_MAX: u64 = 1_000_000_000;

/// A run that fails this often will not succeed.
const RETRIES_MAX: u64 = 1_000;

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
pub const YEAR_MS: u64 = 366 * DAY_MS;

fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

// ── To API types ────────────────────────────────────────────────────────────────────────────────────────────────

/// Context for building a view.
pub struct Showing<'a> {
    /// Default time zone.
    pub zone: &'a Zone,
    /// Name of the app.
    pub app: String,
    /// Rights of the caller in the app.
    pub rights: Vec<Right>,
    /// Names of the children that may be shown.
    pub children: &'a [JobName],
    /// Whether children that are not in `children` are shown by id instead of being left out.
    pub all_children: bool,
    /// Whether to include the source of the script.
    pub with_source: bool,
    /// Workflows of the jobs.
    pub workflows: &'a BTreeMap<JobId, WorkflowBody>,
}

impl Showing<'_> {
    /// Builds the view of a job, with descriptions in that language.
    pub fn view(self, row: JobRow, language: Language) -> JobView {
        let body = self.body(&row);
        let overridden = row.declaration.as_ref().map(|said| said.overridden(&row.job)).unwrap_or_default();
        let overridden = overridden.into_iter().map(str::to_owned).collect();
        let Job { id, spec, next_fire_at, revision, fires, problem, .. } = row.job;
        JobView {
            fires: spec.max_fires.map(|_| fires),
            id: id.0,
            key: spec.key,
            schedule_text: schedule_text(&spec.schedule, spec.workdays.as_ref(), language),
            body,
            next_fire_at: next_fire_at.map(instant),
            last_fire_at: row.last_fire_at.map(instant),
            created_at: row.created_at.map(instant),
            updated_at: row.updated_at.map(instant),
            revision,
            problem,
            overridden,
            rights: self.rights,
        }
    }

    /// Builds the editable definition of a job.
    pub fn body(&self, row: &JobRow) -> JobBody {
        let spec = &row.job.spec;
        let script = spec.script.as_ref().map(|script| ScriptBody {
            language: script.language,
            source: if self.with_source { script.source.clone() } else { String::new() },
            remark: row.script_remark.clone(),
        });
        let child = |id: &JobId| match self.children.iter().find(|name| name.job == *id) {
            Some(name) => Some(name.key.clone().unwrap_or_else(|| id.to_string())),
            None => self.all_children.then(|| id.to_string()),
        };
        let entries = spec.alert_to.split(',').map(str::trim).filter(|entry| !entry.is_empty());
        JobBody {
            app: self.app.clone(),
            name: spec.name.clone(),
            schedule: self.schedule(row),
            workdays: spec.workdays.as_ref().map(workdays_words),
            handler: spec.handler.clone(),
            param: spec.param.clone(),
            script,
            workflow: spec.workflow.map(|_| self.workflows.get(&row.job.id).cloned().unwrap_or_default()),
            enabled: Some(row.job.enabled),
            valid_from: spec.valid_from.map(instant),
            valid_until: spec.valid_until.map(instant),
            max_fires: spec.max_fires,
            jitter_ms: millis(spec.jitter),
            misfire: spec.misfire,
            overlap: spec.overlap,
            retry: spec.retry,
            delivery: spec.delivery,
            timeout_ms: spec.timeout.map(millis),
            route: spec.route.clone(),
            block: spec.block.clone(),
            children: spec.children.iter().filter_map(child).collect(),
            children_mode: spec.children_mode,
            alert: spec.alert,
            alert_to: entries.map(str::to_owned).collect(),
            author: spec.author.clone(),
            tags: row.tags.clone(),
        }
    }

    fn schedule(&self, row: &JobRow) -> Schedule {
        match &row.job.spec.schedule {
            // An invalid schedule is shown as stored, so that it can be corrected.
            cron::Schedule::Never if row.job.problem.is_some() => Schedule::Cron {
                expression: row.written_schedule.1.clone(),
                dialect: CronDialect::Quartz,
                zone: None,
                dst: None,
            },
            schedule => schedule_words(schedule, self.zone),
        }
    }
}

/// Work calendar of a job in an API type.
fn workdays_words(workdays: &JobWorkdays) -> protocol::v1::JobWorkdays {
    let Workdays { on, shift, .. } = workdays.rule;
    protocol::v1::JobWorkdays {
        calendar: workdays.name.clone(),
        on: match on {
            cron::OnDays::Work => OnDays::Work,
            cron::OnDays::Off => OnDays::Off,
            cron::OnDays::Any => OnDays::Any,
        },
        shift: match shift {
            cron::Shift::Skip => Shift::Skip,
            cron::Shift::Next => Shift::Next,
            cron::Shift::Previous => Shift::Previous,
            cron::Shift::Nearest => Shift::Nearest,
        },
    }
}

/// Description of a schedule with its work calendar.
pub fn schedule_text(
    schedule: &cron::Schedule,
    workdays: Option<&JobWorkdays>,
    language: Language,
) -> String {
    let text = schedule.describe(language);
    let Some(JobWorkdays { name, rule, .. }) = workdays else { return text };
    let (days, shift) = match language {
        Language::English => (
            match rule.on {
                cron::OnDays::Work => format!(", on workdays of {name}"),
                cron::OnDays::Off => format!(", on days off of {name}"),
                cron::OnDays::Any => format!(", within the data of {name}"),
            },
            match rule.shift {
                cron::Shift::Skip => "",
                cron::Shift::Next => ", else on the next one",
                cron::Shift::Previous => ", else on the previous one",
                cron::Shift::Nearest => ", else on the nearest one",
            },
        ),
        Language::Chinese => (
            match rule.on {
                cron::OnDays::Work => format!("，仅 {name} 的工作日"),
                cron::OnDays::Off => format!("，仅 {name} 的休息日"),
                cron::OnDays::Any => format!("，仅 {name} 的数据范围内"),
            },
            match rule.shift {
                cron::Shift::Skip => "",
                cron::Shift::Next => "，否则顺延到下一个",
                cron::Shift::Previous => "，否则提前到上一个",
                cron::Shift::Nearest => "，否则移到最近的一个",
            },
        ),
    };
    text + &days + shift
}

/// Converts a schedule to its API type.
pub fn schedule_words(schedule: &cron::Schedule, centre: &Zone) -> Schedule {
    match schedule {
        cron::Schedule::Never => Schedule::None,
        cron::Schedule::Once { at } => Schedule::Once { at: instant(*at) },
        cron::Schedule::FixedDelay { delay } => Schedule::FixedDelay { delay_ms: millis(*delay) },
        cron::Schedule::FixedRate { anchor, period } => {
            Schedule::FixedRate { every_ms: millis(*period), anchor: Some(instant(*anchor)) }
        }
        cron::Schedule::Timetable(timetable) => {
            let first = timetable.rules().first();
            let zone = first.map(Rule::zone).filter(|zone| *zone != centre);
            let dst = first.map(Rule::dst_rule).filter(|dst| *dst != DstRule::NATURAL);
            Schedule::Timetable {
                rules: timetable.to_texts().unwrap_or_default(),
                zone: zone.map(|zone| zone.name().to_owned()),
                dst: dst.map(|dst| dst.to_string()),
            }
        }
        cron::Schedule::Cron { cron, zone, dst } => {
            let own = zone != centre;
            let expected = if own { DstRule::NATURAL } else { DstRule::QUARTZ };
            Schedule::Cron {
                expression: cron.to_string(),
                dialect: match cron.dialect() {
                    Dialect::Quartz => CronDialect::Quartz,
                    Dialect::Unix => CronDialect::Unix,
                },
                zone: own.then(|| zone.name().to_owned()),
                dst: (*dst != expected).then(|| dst.to_string()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(zone: &Zone) -> Reading<'_> {
        Reading { zone, now: Timestamp::from_millis(1_782_000_000_000), before: None, workdays: None }
    }

    fn body(json: &str) -> JobBody {
        let text = format!(
            r#"{{"app":"orders","name":"Sync","schedule":{{"kind":"none"}},"handler":"sync"{json}}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    fn row(spec: JobSpec, tags: Vec<String>) -> JobRow {
        JobRow {
            job: Job {
                id: JobId(7),
                spec,
                enabled: false,
                next_fire_at: None,
                revision: 3,
                fires: 0,
                running: None,
                waiting: 0,
                problem: None,
            },
            written_schedule: (String::new(), String::new()),
            kind: "BEAN".into(),
            script_remark: String::new(),
            script_edited_at: None,
            created_at: None,
            updated_at: None,
            last_fire_at: None,
            tags,
            declaration: None,
        }
    }

    #[test]
    fn a_job_is_read_back_as_it_was_written() {
        let zone = Zone::utc();
        let full: JobBody = serde_json::from_str(
            r#"{"app":"orders","name":"Sync","handler":"sync",
              "schedule":{"kind":"cron","expression":"0 0 2 * * ?","zone":"Europe/London","dst":"next-both"},
              "param":"x","enabled":false,"valid_from":"2026-06-21T08:00:00Z","valid_until":"2027-06-21T08:00:00Z",
              "jitter_ms":5,"misfire":{"kind":"fire_all","window_ms":1000,"max":3},"overlap":"wait",
              "retry":{"count":2,"backoff":{"kind":"exponential","first_ms":1,"max_ms":9}},"delivery":"at_least_once",
              "timeout_ms":1500,"route":"round_robin","block":"discard_later","children":["8"],"children_mode":"each",
              "alert":true,"alert_to":["a@b.c","d@e.f"],"author":"ann","tags":["nightly"]}"#,
        )
        .unwrap();
        let spec = reading(&zone).spec(&full, AppId(1), vec![JobId(8)], None).unwrap();
        let showing = Showing {
            zone: &zone,
            app: "orders".into(),
            rights: Vec::new(),
            children: &[],
            all_children: true,
            with_source: true,
            workflows: &BTreeMap::new(),
        };
        assert_eq!(showing.body(&row(spec, full.tags.clone())), full);
    }

    #[test]
    fn each_wrong_field_is_named() {
        let zone = Zone::utc();
        let check = |json: &str, field: &str| {
            let wrong = reading(&zone).spec(&body(json), AppId(1), Vec::new(), None).unwrap_err();
            assert_eq!(wrong.iter().map(|wrong| wrong.field.as_str()).collect::<Vec<_>>(), [field], "{json}");
        };
        check(r#","route":"NEAREST""#, "route");
        check(r#","block":"x""#, "block");
        check(r#","timeout_ms":0"#, "timeout_ms");
        check(r#","retry":{"count":1001}"#, "retry.count");
        check(r#","misfire":{"kind":"fire_all","window_ms":1,"max":0}"#, "misfire.max");
        check(r#","valid_from":"2026-06-21T08:00:00Z","valid_until":"2026-06-20T08:00:00Z""#, "valid_until");
        check(r#","tags":["a,b"]"#, "tags");
        check(r#","alert_to":[""]"#, "alert_to");
        check(r#","script":{"language":"shell","source":" "}"#, "script.source");
        let long = "r".repeat(REMARK_MAX + 1);
        let script = format!(r#","script":{{"language":"shell","source":"date","remark":"{long}"}}"#);
        check(&script, "script.remark");
    }

    #[test]
    fn schedules_are_read_back_as_they_were_written() {
        let zone = Zone::utc();
        let check = |json: &str| {
            let written: Schedule = serde_json::from_str(json).unwrap();
            let schedule = reading(&zone).schedule(&written).unwrap();
            assert_eq!(schedule_words(&schedule, &zone), written, "{json}");
        };
        check(r#"{"kind":"none"}"#);
        check(r#"{"kind":"once","at":"2026-06-21T08:00:00Z"}"#);
        check(r#"{"kind":"fixed_delay","delay_ms":250}"#);
        check(r#"{"kind":"fixed_rate","every_ms":250,"anchor":"2026-06-21T08:00:00Z"}"#);
        check(r#"{"kind":"cron","expression":"*/5 * * * *","dialect":"unix"}"#);
        check(r#"{"kind":"cron","expression":"0 0 2 * * ?","zone":"Asia/Shanghai"}"#);
        check(
            r#"{"kind":"timetable","rules":["daily 09:00-17:30 every 30m on Mon-Fri","workday -1 of month at 18:00"]}"#,
        );
        check(r#"{"kind":"timetable","rules":["unix 0 12 * * 6"],"zone":"Asia/Shanghai","dst":"next-both"}"#);
        let wrong =
            |json: &str| reading(&zone).schedule(&serde_json::from_str(json).unwrap()).unwrap_err().field;
        assert_eq!(wrong(r#"{"kind":"cron","expression":"x"}"#), "schedule.expression");
        assert_eq!(wrong(r#"{"kind":"cron","expression":"0 0 2 * * ?","zone":"Mars"}"#), "schedule.zone");
        assert_eq!(wrong(r#"{"kind":"cron","expression":"0 0 2 * * ?","dst":"x"}"#), "schedule.dst");
        assert_eq!(wrong(r#"{"kind":"fixed_rate","every_ms":0}"#), "schedule.every_ms");
        assert_eq!(wrong(r#"{"kind":"timetable","rules":[]}"#), "schedule.rules");
        assert_eq!(wrong(r#"{"kind":"timetable","rules":["hourly"]}"#), "schedule.rules");
        assert_eq!(
            wrong(r#"{"kind":"timetable","rules":["unix 0 12 * * 6"],"zone":"Mars"}"#),
            "schedule.zone"
        );
    }
}
