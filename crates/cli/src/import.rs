//! `tickwright import`: creates or updates jobs from a file, by key. Idempotent.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use ::cron::{Cron, Dialect, DstRule, Zone};
use anyhow::{Context, Result, bail};
use clap::Args;
use protocol::v1::{CronDialect, JobBody, JobView, Me, ProblemCode, Schedule, ScriptBody, ScriptLanguage};
use serde::Serialize;
use serde_json::Value;

use crate::api::{Call, Client, Output, Remote, path};
use crate::terminal::{self, Mood, Paint};
use crate::trouble::Trouble;
use crate::yaml::Jobs;

/// Options of `tickwright import`.
#[derive(Args)]
pub struct Import {
    /// File in the format of `tickwright export`; - for standard input.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print the changes without applying them.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    remote: Remote,
}

/// Imports a file. A rejected job does not prevent the import of the others.
pub async fn run(options: Import) -> Result<()> {
    let jobs = Jobs::read(&text(&options.file)?).with_context(|| options.file.display().to_string())?;
    let client = Client::of(&options.remote)?;
    let me: Me = client.fetch(Call::get("/v1/me")).await?;
    let mut steps = Vec::with_capacity(jobs.jobs.len());
    let bar = terminal::progress(if options.dry_run { "comparing" } else { "importing" }, jobs.jobs.len());
    for key in jobs.in_order() {
        let step = match Step::plan(&client, key, &jobs.jobs[key], &me.zone).await {
            Ok(step) if options.dry_run => step,
            Ok(step) => step.take(&client, &jobs.jobs[key]).await,
            Err(trouble) if stops(&trouble) => return Err(trouble.into()),
            Err(trouble) => Step::refused(key, &trouble),
        };
        steps.push(step);
        bar.inc(1);
    }
    bar.finish_and_clear();
    report(&steps, &options)?;
    match steps.iter().filter(|step| step.problem.is_some()).count() {
        0 => Ok(()),
        refused => {
            bail!("{refused} of {} jobs were rejected; correct them and import the file again", steps.len())
        }
    }
}

fn text(file: &Path) -> Result<String> {
    let text = if file == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        fs::read_to_string(file)
    };
    text.with_context(|| format!("failed to read {}", file.display()))
}

/// Whether the next job would fail with the same error.
fn stops(trouble: &Trouble) -> bool {
    trouble.exit_code() == 5 || trouble.is(ProblemCode::NotSignedIn)
}

/// Planned change of one job.
#[derive(Serialize)]
struct Step {
    job: String,
    change: Change,
    /// Fields that change in an existing job.
    fields: Vec<String>,
    /// Why the change failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    /// Revision the plan is based on; the change fails if the job was changed since.
    #[serde(skip)]
    revision: Option<String>,
    /// Whether the script is unchanged and need not be sent.
    #[serde(skip)]
    keeps_script: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Change {
    Add,
    Edit,
    None,
}

impl Step {
    /// Compares the file with the scheduling centre.
    async fn plan(client: &Client, key: &str, body: &JobBody, zone: &str) -> Result<Step, Trouble> {
        let mut step = Step {
            job: key.to_owned(),
            change: Change::Add,
            fields: Vec::new(),
            problem: None,
            revision: None,
            keeps_script: false,
        };
        let answer = match client.send(Call::get(path("/v1/jobs/", key, ""))).await {
            Err(trouble) if trouble.is(ProblemCode::NotFound) => return Ok(step),
            answer => answer?,
        };
        let now = answer.read::<JobView>()?.body;
        step.fields = differences(body, &now, zone);
        step.change = if step.fields.is_empty() { Change::None } else { Change::Edit };
        step.revision = answer.header("etag").map(str::to_owned);
        step.keeps_script = !step.fields.iter().any(|field| field == "script");
        Ok(step)
    }

    /// Applies the change.
    async fn take(mut self, client: &Client, body: &JobBody) -> Step {
        if self.change == Change::None {
            return self;
        }
        let script = body.script.clone().filter(|_| !self.keeps_script);
        let mut call = Call::put(path("/v1/jobs/", &self.job, "")).json(&JobBody { script, ..body.clone() });
        if let Some(revision) = &self.revision {
            call = call.header("if-match", revision);
        }
        self.problem = client.send(call).await.err().map(|trouble| trouble.to_string());
        self
    }

    fn refused(key: &str, trouble: &Trouble) -> Step {
        let problem = Some(trouble.to_string());
        Step {
            job: key.into(),
            change: Change::None,
            fields: Vec::new(),
            problem,
            revision: None,
            keeps_script: false,
        }
    }
}

fn report(steps: &[Step], options: &Import) -> Result<()> {
    if options.remote.output == Output::Json {
        return terminal::say_json(&steps);
    }
    let paint = Paint::stdout();
    let shown = |step: &&Step| step.change != Change::None || step.problem.is_some();
    let row = |step: &Step| {
        let (sign, mood) = match (&step.problem, step.change) {
            (Some(_), _) => ("rejected", Mood::Bad),
            (None, Change::Add) => ("add", Mood::Good),
            (None, _) => ("change", Mood::Busy),
        };
        let what = step.problem.clone().unwrap_or_else(|| step.fields.join(", "));
        vec![paint.cell(sign, mood), paint.cell(&step.job, Mood::Plain), paint.cell(what, Mood::Quiet)]
    };
    let rows: Vec<_> = steps.iter().filter(shown).map(row).collect();
    let unchanged = steps.len() - rows.len();
    if !rows.is_empty() {
        terminal::say(&terminal::table(&["CHANGE", "JOB", "DETAILS"], rows))?;
    }
    let note = if options.dry_run { "; dry run, nothing was changed" } else { "" };
    eprintln!("{} jobs, {unchanged} of them unchanged{note}", steps.len());
    Ok(())
}

/// Fields in which a job differs from the file. A field that is omitted in the file and means "unchanged" is no
/// difference.
fn differences(file: &JobBody, now: &JobBody, zone: &str) -> Vec<String> {
    let mut wanted = file.clone();
    wanted.enabled = wanted.enabled.or(now.enabled);
    if file.script.as_ref().is_none_or(|script| now.script.as_ref().is_some_and(|now| is_same(script, now))) {
        wanted.script.clone_from(&now.script);
    }
    if let (
        Schedule::FixedRate { every_ms, anchor: anchor @ None },
        Schedule::FixedRate { every_ms: same, anchor: now },
    ) = (&mut wanted.schedule, &now.schedule)
        && every_ms == same
    {
        *anchor = *now;
    }
    wanted.schedule = settled(&wanted.schedule, zone);
    let now = JobBody { schedule: settled(&now.schedule, zone), ..now.clone() };
    let fields = |body: &JobBody| match serde_json::to_value(body) {
        Ok(Value::Object(fields)) => fields,
        _ => serde_json::Map::new(),
    };
    let (wanted, now) = (fields(&wanted), fields(&now));
    let names: BTreeSet<&String> = wanted.keys().chain(now.keys()).collect();
    names.into_iter().filter(|name| wanted.get(*name) != now.get(*name)).cloned().collect()
}

/// Whether two scripts are equivalent. The server removes carriage returns from shell scripts, because they break
/// shells.
fn is_same(a: &ScriptBody, b: &ScriptBody) -> bool {
    let source = |script: &ScriptBody| match script.language {
        ScriptLanguage::Shell => script.source.replace('\r', ""),
        _ => script.source.clone(),
    };
    a.language == b.language && source(a) == source(b)
}

/// Fills in all defaults of a schedule, so that equivalent schedules are equal.
fn settled(schedule: &Schedule, centre: &str) -> Schedule {
    let Schedule::Cron { expression, dialect, zone, dst } = schedule else { return schedule.clone() };
    let known = match dialect {
        CronDialect::Quartz => Dialect::Quartz,
        CronDialect::Unix => Dialect::Unix,
    };
    let expression =
        Cron::parse_in(known, expression).map_or_else(|_| expression.clone(), |cron| cron.to_string());
    let usual = if zone.is_some() { DstRule::NATURAL } else { DstRule::QUARTZ };
    let dst = dst.as_ref().map_or_else(|| usual.to_string(), Clone::clone);
    let zone = zone.as_deref().unwrap_or(centre);
    let zone = Zone::parse(zone).map_or_else(|_| zone.to_owned(), |zone| zone.name().to_owned());
    Schedule::Cron { expression, dialect: *dialect, zone: Some(zone), dst: Some(dst) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(change: impl FnOnce(&mut JobBody)) -> JobBody {
        let json = r#"{"app":"orders","name":"Sync","handler":"sync",
            "schedule":{"kind":"cron","expression":"0 0 2 * * ?"}}"#;
        let mut body = serde_json::from_str(json).unwrap();
        change(&mut body);
        body
    }

    fn schedule(json: &str) -> Schedule {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn what_a_file_leaves_out_is_no_difference() {
        let check = |file: JobBody, now: JobBody, expected: &[&str]| {
            assert_eq!(differences(&file, &now, "Europe/London"), expected);
        };
        let script = |source: &str, remark: &str| {
            Some(ScriptBody { language: ScriptLanguage::Shell, source: source.into(), remark: remark.into() })
        };
        check(body(|_| {}), body(|now| now.enabled = Some(true)), &[]);
        check(body(|file| file.enabled = Some(false)), body(|now| now.enabled = Some(true)), &["enabled"]);
        check(body(|_| {}), body(|now| now.param = "x".into()), &["param"]);
        check(body(|_| {}), body(|now| now.script = script("a", "")), &[]);
        check(
            body(|file| file.script = script("a\r\n", "")),
            body(|now| now.script = script("a\n", "b")),
            &[],
        );
        check(
            body(|file| file.script = script("b", "")),
            body(|now| now.script = script("a", "")),
            &["script"],
        );
    }

    #[test]
    fn schedules_that_mean_the_same_are_the_same() {
        let check = |file: &str, now: &str, is_same: bool| {
            let (file, now) =
                (body(|body| body.schedule = schedule(file)), body(|body| body.schedule = schedule(now)));
            assert_eq!(differences(&file, &now, "Europe/London").is_empty(), is_same);
        };
        let every = r#"{"kind":"fixed_rate","every_ms":1000}"#;
        let anchored = r#"{"kind":"fixed_rate","every_ms":1000,"anchor":"2026-06-21T08:00:00Z"}"#;
        check(every, anchored, true);
        check(anchored, every, false);
        let cron = |more: &str| format!(r#"{{"kind":"cron","expression":"0 0 2 * * ?"{more}}}"#);
        check(&cron(""), &cron(r#","zone":null"#), true);
        check(&cron(r#","zone":"europe/london""#), &cron(r#","dst":"natural""#), true);
        check(&cron(r#","zone":"Europe/London""#), &cron(""), false);
        check(&cron(r#","zone":"Asia/Tokyo""#), &cron(r#","zone":"Asia/Tokyo","dst":"natural""#), true);
    }
}
