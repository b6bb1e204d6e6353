//! Options that define a job, for `job add` and `job edit`.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, StringValueParser, TypedValueParser};
use protocol::v1::{
    Backoff, Block, CronDialect, Delivery, Instant, JobBody, JobWorkdays, Misfire, Named, OnDays, Overlap,
    Route, Schedule, ScriptBody, ScriptLanguage, Shift, Word,
};

use crate::duration;

/// Definition of a job. An omitted option has its default in a new job and is unchanged in an edit.
#[derive(Args, Clone, Default, PartialEq)]
pub struct Definition {
    /// App whose executors run the job.
    #[arg(long)]
    app: Option<String>,
    /// Display name [default: the key].
    #[arg(long)]
    name: Option<String>,

    /// Handler to call.
    #[arg(long, conflicts_with = "script")]
    handler: Option<String>,
    /// File with a script to run instead of a handler; - for standard input.
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// Language of the script [default: by file extension].
    #[arg(long, requires = "script", value_parser = words::<ScriptLanguage>())]
    language: Option<ScriptLanguage>,
    /// Description of the change to the script.
    #[arg(long, requires = "script", value_name = "TEXT")]
    remark: Option<String>,
    /// Parameter of the handler or script.
    #[arg(long, allow_hyphen_values = true)]
    param: Option<String>,

    /// Cron expression, for example '0 0/5 * * * ?'.
    #[arg(long, group = "schedule", value_name = "EXPRESSION")]
    cron: Option<String>,
    /// Syntax of the expression [default: quartz].
    #[arg(long, value_parser = words::<CronDialect>())]
    dialect: Option<CronDialect>,
    /// Rule of a timetable, for example 'daily 09:00-17:30 every 30m on Mon-Fri', 'every 2 weeks at 09:00 from
    /// 2026-08-31' or 'workday -1 of month at 18:00'; may be repeated: the job fires when one of them does.
    #[arg(long = "rule", group = "schedule", value_name = "RULE")]
    rules: Option<Vec<String>>,
    /// Time zone of the expression or rules, for example Asia/Shanghai [default: the scheduling centre's].
    #[arg(long)]
    zone: Option<String>,
    /// Rule for times that daylight saving skips or repeats: quartz, natural, skip-first, ….
    #[arg(long, value_name = "RULE")]
    dst: Option<String>,
    /// Fixed interval, for example 30s.
    #[arg(long, group = "schedule", value_name = "DURATION", value_parser = duration::parse)]
    every: Option<Duration>,
    /// Fixed delay after the end of the last run, for example 30s.
    #[arg(long, group = "schedule", value_name = "DURATION", value_parser = duration::parse)]
    delay: Option<Duration>,
    /// Time of a single fire, for example 2026-06-21T08:00:00Z.
    #[arg(long, group = "schedule", value_name = "TIME")]
    at: Option<Instant>,
    /// No schedule: only manual triggers and parent jobs start it.
    #[arg(long, group = "schedule")]
    manual: bool,
    /// Work calendar that keeps, skips or moves the times of a cron expression or timetable.
    #[arg(long, value_name = "NAME")]
    calendar: Option<String>,
    /// Days of the work calendar on which the job fires [default: work].
    #[arg(long, value_parser = words::<OnDays>())]
    on: Option<OnDays>,
    /// How to handle scheduled times on other days [default: skip].
    #[arg(long, value_parser = words::<Shift>())]
    shift: Option<Shift>,
    /// Remove the work calendar.
    #[arg(long, conflicts_with_all = ["calendar", "on", "shift"])]
    no_calendar: bool,
    /// Time from which the schedule fires.
    #[arg(long, value_name = "TIME")]
    valid_from: Option<Instant>,
    /// Time up to which the schedule fires.
    #[arg(long, value_name = "TIME")]
    valid_until: Option<Instant>,
    /// Maximum number of fires; then the job is stopped.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    max_fires: Option<u64>,
    /// Maximum random delay of each fire.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    jitter: Option<Duration>,

    /// Misfire policy, for fires that could not be dispatched in time [default: skip].
    #[arg(long, value_parser = PossibleValuesParser::new(misfires()).map(|word| misfire(&word)))]
    misfire: Option<Misfire>,
    /// Overlap policy, for fires while another run of the job is active on any executor [default: allow].
    #[arg(long, value_parser = words::<Overlap>())]
    overlap: Option<Overlap>,
    /// Delivery policy, if it is unknown whether an executor received a request [default: probe].
    #[arg(long, value_parser = words::<Delivery>())]
    delivery: Option<Delivery>,
    /// Maximum number of retries of a failed run.
    #[arg(long, value_name = "COUNT")]
    retries: Option<u32>,
    /// Delay before a retry, for example 30s.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    retry_wait: Option<Duration>,
    /// Timeout of a run, for example 10m; a run that takes longer is stopped.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    timeout: Option<Duration>,
    /// Routing strategy [default: first].
    #[arg(long, value_parser = words::<Route>())]
    route: Option<Route>,
    /// Block strategy for a second run on the same executor [default: serial].
    #[arg(long, value_parser = words::<Block>())]
    block: Option<Block>,

    /// Job to run when this one succeeds; may be repeated.
    #[arg(long = "child", value_name = "JOB")]
    children: Vec<String>,
    /// Whether a failed run raises an alert.
    #[arg(long, num_args = 0..=1, default_missing_value = "true", value_name = "true|false")]
    alert: Option<bool>,
    /// Mail address to notify of alerts; may be repeated.
    #[arg(long, value_name = "ADDRESS")]
    alert_to: Vec<String>,
    /// Person responsible for the job.
    #[arg(long, value_name = "NAME")]
    author: Option<String>,
    /// Tag to search by; may be repeated.
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
}

impl Definition {
    /// Creates the definition of a new job.
    pub fn body(&self, key: &str) -> Result<JobBody> {
        let Some(app) = &self.app else {
            bail!("missing --app; `tickwright app list` lists the apps");
        };
        let mut body = JobBody::new(app, key, Schedule::None);
        self.change(&mut body)?;
        Ok(body)
    }

    /// Applies these options to a definition; returns whether it changed.
    pub fn change(&self, body: &mut JobBody) -> Result<bool> {
        let before = body.clone();
        // An omitted script is unchanged and does not require the right for scripts.
        body.script = self.script()?;
        if self.handler.is_some() || body.script.is_some() {
            body.workflow = None;
        }
        set(&mut body.app, &self.app);
        set(&mut body.name, &self.name);
        set(&mut body.handler, &self.handler);
        set(&mut body.param, &self.param);
        set(&mut body.schedule, &self.schedule());
        self.change_cron(&mut body.schedule, &before.schedule)?;
        self.change_workdays(&mut body.workdays)?;
        set(&mut body.misfire, &self.misfire);
        set(&mut body.overlap, &self.overlap);
        set(&mut body.delivery, &self.delivery);
        set(&mut body.retry.count, &self.retries);
        set(&mut body.retry.backoff, &self.retry_wait.map(|delay| Backoff::Fixed { delay }));
        set(&mut body.route, &self.route.map(Named::Known));
        set(&mut body.block, &self.block.map(Named::Known));
        set(&mut body.author, &self.author);
        set(&mut body.alert, &self.alert);
        set(&mut body.jitter_ms, &self.jitter.map(millis));
        body.timeout_ms = self.timeout.map(millis).or(body.timeout_ms);
        body.max_fires = self.max_fires.or(body.max_fires);
        body.valid_from = self.valid_from.or(body.valid_from);
        body.valid_until = self.valid_until.or(body.valid_until);
        set_all(&mut body.children, &self.children);
        set_all(&mut body.alert_to, &self.alert_to);
        set_all(&mut body.tags, &self.tags);
        Ok(body.script.is_some() || JobBody { script: None, ..before } != *body)
    }

    /// Whether no option is given.
    pub fn is_empty(&self) -> bool {
        *self == Definition::default()
    }

    fn change_workdays(&self, workdays: &mut Option<JobWorkdays>) -> Result<()> {
        if self.no_calendar {
            *workdays = None;
        }
        if let Some(name) = &self.calendar {
            let new =
                || JobWorkdays { calendar: name.clone(), on: OnDays::default(), shift: Shift::default() };
            workdays.get_or_insert_with(new).calendar.clone_from(name);
        }
        match workdays {
            Some(workdays) => {
                set(&mut workdays.on, &self.on);
                set(&mut workdays.shift, &self.shift);
                Ok(())
            }
            None if self.on.is_some() || self.shift.is_some() => {
                bail!("--on and --shift require a work calendar; set one with --calendar")
            }
            None => Ok(()),
        }
    }

    fn schedule(&self) -> Option<Schedule> {
        if let Some(expression) = self.cron.clone() {
            return Some(Schedule::Cron {
                expression,
                dialect: CronDialect::default(),
                zone: None,
                dst: None,
            });
        }
        if let Some(rules) = self.rules.clone() {
            return Some(Schedule::Timetable { rules, zone: None, dst: None });
        }
        if let Some(every) = self.every {
            return Some(Schedule::FixedRate { every_ms: millis(every), anchor: None });
        }
        if let Some(delay) = self.delay {
            return Some(Schedule::FixedDelay { delay_ms: millis(delay) });
        }
        if let Some(at) = self.at {
            return Some(Schedule::Once { at });
        }
        self.manual.then_some(Schedule::None)
    }

    /// Sets syntax, zone and daylight saving rule of a cron schedule or timetable. An omitted one stays as it was.
    fn change_cron(&self, schedule: &mut Schedule, before: &Schedule) -> Result<()> {
        if let (Schedule::Cron { dialect, .. }, Schedule::Cron { dialect: old, .. }) =
            (&mut *schedule, before)
        {
            *dialect = *old;
        }
        match schedule {
            Schedule::Cron { dialect, .. } => set(dialect, &self.dialect),
            _ if self.dialect.is_some() => bail!("--dialect requires a cron schedule; set one with --cron"),
            _ => {}
        }
        let (old_zone, old_dst) = match before {
            Schedule::Cron { zone, dst, .. } | Schedule::Timetable { zone, dst, .. } => {
                (zone.clone(), dst.clone())
            }
            _ => (None, None),
        };
        match schedule {
            Schedule::Cron { zone, dst, .. } | Schedule::Timetable { zone, dst, .. } => {
                *zone = self.zone.clone().or(old_zone);
                *dst = self.dst.clone().or(old_dst);
            }
            _ if self.zone.is_some() || self.dst.is_some() => {
                bail!(
                    "--zone and --dst require a cron schedule or a timetable; set one with --cron or --rule"
                )
            }
            _ => {}
        }
        Ok(())
    }

    fn script(&self) -> Result<Option<ScriptBody>> {
        let Some(path) = &self.script else { return Ok(None) };
        let language = self.language.or_else(|| by_ending(path));
        let unknown = || format!("the language of {} is unknown; set it with --language", path.display());
        let language = language.with_context(unknown)?;
        let source = if path == Path::new("-") {
            let mut source = String::new();
            std::io::stdin().read_to_string(&mut source).map(|_| source)
        } else {
            fs::read_to_string(path)
        };
        let source = source.with_context(|| format!("failed to read the script {}", path.display()))?;
        Ok(Some(ScriptBody { language, source, remark: self.remark.clone().unwrap_or_default() }))
    }
}

fn by_ending(path: &Path) -> Option<ScriptLanguage> {
    Some(match path.extension()?.to_str()? {
        "sh" => ScriptLanguage::Shell,
        "py" => ScriptLanguage::Python,
        "php" => ScriptLanguage::Php,
        "js" => ScriptLanguage::Node,
        "ps1" => ScriptLanguage::PowerShell,
        "groovy" => ScriptLanguage::Groovy,
        _ => return None,
    })
}

fn set<T: Clone>(field: &mut T, said: &Option<T>) {
    if let Some(said) = said {
        field.clone_from(said);
    }
}

fn set_all(field: &mut Vec<String>, said: &[String]) {
    if !said.is_empty() {
        *field = said.to_vec();
    }
}

fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

/// Policies without fields, which is all that an option can express.
fn misfires() -> [PossibleValue; 2] {
    [PossibleValue::new("skip"), PossibleValue::new("fire_once").alias("fire-once")]
}

fn misfire(word: &str) -> Misfire {
    if word == "skip" { Misfire::Skip } else { Misfire::FireOnce }
}

/// Parser for a word of the API; dashes count as underscores.
#[derive(Clone)]
struct Words<T>(PhantomData<T>);

fn words<T>() -> Words<T> {
    Words(PhantomData)
}

impl<T: Word + Send + Sync> TypedValueParser for Words<T> {
    type Value = T;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<T, clap::Error> {
        let read = |word: String| {
            T::from_word(&word).or_else(|error| T::from_word(&word.replace('-', "_")).map_err(|_| error))
        };
        StringValueParser::new().try_map(read).parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(T::WORDS.iter().map(PossibleValue::new)))
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, FromArgMatches};
    use serde_json::{Value, json};

    use super::*;

    fn definition(line: &str) -> Result<Definition, clap::Error> {
        let command = Definition::augment_args(clap::Command::new("job").no_binary_name(true));
        Definition::from_arg_matches(&command.try_get_matches_from(line.split_whitespace())?)
    }

    #[test]
    fn options_become_the_api_s_words() {
        let check = |line: &str, field: &str, expected: Value| {
            let body = definition(&format!("--app orders {line}")).unwrap().body("k").unwrap();
            assert_eq!(serde_json::to_value(body).unwrap()[field], expected, "{line}");
        };
        check("", "name", json!("k"));
        check("", "schedule", json!({ "kind": "none" }));
        check("--every 30s", "schedule", json!({ "kind": "fixed_rate", "every_ms": 30_000 }));
        check("--every 1h30m", "schedule", json!({ "kind": "fixed_rate", "every_ms": 5_400_000 }));
        check("--delay 1m", "schedule", json!({ "kind": "fixed_delay", "delay_ms": 60_000 }));
        check(
            "--at 2026-06-21T08:00:00Z",
            "schedule",
            json!({ "kind": "once", "at": "2026-06-21T08:00:00.000Z" }),
        );
        let cron = json!({ "kind": "cron", "expression": "@x", "dialect": "unix", "zone": "Asia/Tokyo" });
        check("--cron @x --dialect unix --zone Asia/Tokyo", "schedule", cron);
        check("--delivery at-least-once", "delivery", json!("at_least_once"));
        check("--delivery at_least_once", "delivery", json!("at_least_once"));
        check("--route round_robin", "route", json!("round_robin"));
        check("--block cover_early", "block", json!("cover_early"));
        check("--misfire fire-once", "misfire", json!({ "kind": "fire_once" }));
        check("--misfire fire_once", "misfire", json!({ "kind": "fire_once" }));
        let retry = json!({ "count": 3, "backoff": { "kind": "fixed", "delay_ms": 5_000 } });
        check("--retries 3 --retry-wait 5s", "retry", retry);
        check("--tag a --tag b", "tags", json!(["a", "b"]));
        check("--alert", "alert", json!(true));
        check("--param -x", "param", json!("-x"));
    }

    #[test]
    fn an_edit_changes_what_is_said_and_nothing_else() {
        let mut body =
            definition("--app orders --every 30s --timeout 3s --handler sync").unwrap().body("k").unwrap();
        let before = body.clone();
        assert!(!definition("--app orders").unwrap().change(&mut body).unwrap(), "it is so already");
        assert!(definition("--param x").unwrap().change(&mut body).unwrap());
        assert_eq!(body, JobBody { param: "x".into(), ..before });
        assert!(definition("").unwrap().is_empty());
        assert!(!definition("--manual").unwrap().is_empty());
    }

    #[test]
    fn an_edit_of_the_zone_keeps_the_expression_and_the_other_way_round() {
        let mut body = definition("--app orders --cron @daily --dialect unix --zone UTC --dst natural")
            .unwrap()
            .body("k")
            .unwrap();
        let mut edited = |line: &str| {
            definition(line).unwrap().change(&mut body).unwrap();
            serde_json::to_value(&body.schedule).unwrap()
        };
        let cron = |expression: &str, zone: &str| json!({ "kind": "cron", "expression": expression, "dialect": "unix", "zone": zone, "dst": "natural" });
        assert_eq!(edited("--zone Asia/Tokyo"), cron("@daily", "Asia/Tokyo"));
        assert_eq!(edited("--cron @hourly"), cron("@hourly", "Asia/Tokyo"));
        assert_eq!(edited("--every 30s"), json!({ "kind": "fixed_rate", "every_ms": 30_000 }));
        // Nothing of the old schedule is left.
        let quartz = json!({ "kind": "cron", "expression": "@x", "dialect": "quartz" });
        assert_eq!(edited("--cron @x"), quartz);
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        for line in ["--every 30s --delay 30s", "--language shell", "--every soon", "--overlap x"] {
            assert!(definition(line).is_err(), "{line}");
        }
        // A job without a cron schedule has no expression to which these apply.
        for line in ["--zone UTC", "--every 30s --zone UTC", "--dialect unix", "--manual --dst natural"] {
            let error = definition(&format!("--app orders {line}")).unwrap().body("k").unwrap_err();
            assert!(error.to_string().contains("a cron schedule"), "{line}: {error}");
        }
        let Err(error) = definition("--route BUSYOVER") else { panic!("it is XXL-JOB's word") };
        assert!(error.to_string().contains("write `first_idle`"), "{error}");
    }
}
