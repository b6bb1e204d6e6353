//! Options that define a job, for `job add` and `job edit`.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use protocol::v1::{
    Backoff, CronDialect, Delivery, Instant, JobBody, Misfire, Overlap, Schedule, ScriptBody, ScriptLanguage,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

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
    #[arg(long, requires = "script", value_parser = words::<ScriptLanguage>(&["shell", "python", "python2", "php", "node", "powershell", "groovy"]))]
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
    #[arg(long, requires = "cron", value_parser = words::<CronDialect>(&["quartz", "unix"]))]
    dialect: Option<CronDialect>,
    /// Time zone of the expression, for example Asia/Shanghai [default: the scheduling centre's].
    #[arg(long, requires = "cron")]
    zone: Option<String>,
    /// Rule for times that daylight saving skips or repeats: quartz, natural, skip-first, ….
    #[arg(long, requires = "cron", value_name = "RULE")]
    dst: Option<String>,
    /// Fixed interval, for example 30s.
    #[arg(long, group = "schedule", value_name = "DURATION", value_parser = duration::parse)]
    every: Option<Duration>,
    /// Fixed delay after the end of the last run, for example 30s.
    #[arg(long, group = "schedule", value_name = "DURATION", value_parser = duration::parse)]
    delay: Option<Duration>,
    /// Time of a single fire, for example 2026-06-21T08:00:00Z.
    #[arg(long, group = "schedule", value_name = "INSTANT")]
    at: Option<Instant>,
    /// No schedule: only manual triggers and parent jobs start it.
    #[arg(long, group = "schedule")]
    manual: bool,
    /// Time from which the schedule fires.
    #[arg(long, value_name = "INSTANT")]
    valid_from: Option<Instant>,
    /// Time up to which the schedule fires.
    #[arg(long, value_name = "INSTANT")]
    valid_until: Option<Instant>,
    /// Maximum random delay of each fire.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    jitter: Option<Duration>,

    /// Misfire policy, for fires that could not be dispatched in time [default: skip].
    #[arg(long, value_parser = PossibleValuesParser::new(["skip", "fire-once"]).map(|word| misfire(&word)))]
    misfire: Option<Misfire>,
    /// Overlap policy, for fires while another run of the job is active on any executor [default: allow].
    #[arg(long, value_parser = words::<Overlap>(&["allow", "skip", "wait", "replace"]))]
    overlap: Option<Overlap>,
    /// Delivery policy, if it is unknown whether an executor received a request [default: probe].
    #[arg(long, value_parser = words::<Delivery>(&["at-most-once", "probe", "at-least-once"]))]
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
    /// Routing strategy: FIRST, ROUND, RANDOM, FAILOVER, SHARDING_BROADCAST, ….
    #[arg(long)]
    route: Option<String>,
    /// Block strategy for a second run on the same executor: SERIAL_EXECUTION, DISCARD_LATER, COVER_EARLY.
    #[arg(long)]
    block: Option<String>,

    /// Job to run when this one succeeds; may be repeated.
    #[arg(long = "child", value_name = "JOB")]
    children: Vec<String>,
    /// Whether a failed run raises an alert.
    #[arg(long, num_args = 0..=1, default_missing_value = "true", value_name = "YES")]
    alert: Option<bool>,
    /// Mail address to notify of alerts; may be repeated.
    #[arg(long, value_name = "ADDRESS")]
    alert_to: Vec<String>,
    /// Person responsible for the job.
    #[arg(long, value_name = "NAME")]
    author: Option<String>,
    /// Tag to search by; may be repeated.
    #[arg(long = "tag", value_name = "WORD")]
    tags: Vec<String>,
}

impl Definition {
    /// Creates the definition of a new job.
    pub fn body(&self, key: &str) -> Result<JobBody> {
        let Some(app) = &self.app else {
            bail!("say which app runs it with --app; `tickwright app list` shows them");
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
        set(&mut body.app, &self.app);
        set(&mut body.name, &self.name);
        set(&mut body.handler, &self.handler);
        set(&mut body.param, &self.param);
        set(&mut body.schedule, &self.schedule());
        set(&mut body.misfire, &self.misfire);
        set(&mut body.overlap, &self.overlap);
        set(&mut body.delivery, &self.delivery);
        set(&mut body.retry.count, &self.retries);
        set(&mut body.retry.backoff, &self.retry_wait.map(|wait| Backoff::Fixed { delay_ms: millis(wait) }));
        set(&mut body.route, &self.route);
        set(&mut body.block, &self.block);
        set(&mut body.author, &self.author);
        set(&mut body.alert, &self.alert);
        set(&mut body.jitter_ms, &self.jitter.map(millis));
        body.timeout_ms = self.timeout.map(millis).or(body.timeout_ms);
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

    fn schedule(&self) -> Option<Schedule> {
        if let Some(expression) = self.cron.clone() {
            let dialect = self.dialect.unwrap_or_default();
            return Some(Schedule::Cron {
                expression,
                dialect,
                zone: self.zone.clone(),
                dst: self.dst.clone(),
            });
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

    fn script(&self) -> Result<Option<ScriptBody>> {
        let Some(path) = &self.script else { return Ok(None) };
        let language = self.language.or_else(|| by_ending(path));
        let unknown = || format!("cannot tell the language of {}; say it with --language", path.display());
        let language = language.with_context(unknown)?;
        let source = if path == Path::new("-") {
            let mut source = String::new();
            std::io::stdin().read_to_string(&mut source).map(|_| source)
        } else {
            fs::read_to_string(path)
        };
        let source = source.with_context(|| format!("cannot read the script in {}", path.display()))?;
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

fn misfire(word: &str) -> Misfire {
    if word == "skip" { Misfire::Skip } else { Misfire::FireOnce }
}

/// Parser for enum values of the API, with dashes for underscores.
fn words<T: DeserializeOwned + Clone + Send + Sync + 'static>(
    known: &'static [&'static str],
) -> impl TypedValueParser<Value = T> {
    let value = |word: String| serde_json::from_value(Value::String(word.replace('-', "_")));
    PossibleValuesParser::new(known).map(move |word| value(word).expect("these are the words of the API"))
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, FromArgMatches};
    use serde_json::json;

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
        check("--delay 1m", "schedule", json!({ "kind": "fixed_delay", "delay_ms": 60_000 }));
        check(
            "--at 2026-06-21T08:00:00Z",
            "schedule",
            json!({ "kind": "once", "at": "2026-06-21T08:00:00.000Z" }),
        );
        let cron = json!({ "kind": "cron", "expression": "@x", "dialect": "unix", "zone": "Asia/Tokyo" });
        check("--cron @x --dialect unix --zone Asia/Tokyo", "schedule", cron);
        check("--delivery at-least-once", "delivery", json!("at_least_once"));
        check("--misfire fire-once", "misfire", json!({ "kind": "fire_once" }));
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
    fn what_does_not_go_together_is_refused() {
        for line in
            ["--every 30s --delay 30s", "--zone UTC", "--language shell", "--every soon", "--overlap x"]
        {
            assert!(definition(line).is_err(), "{line}");
        }
    }
}
