//! `tickwright import`: creates or updates jobs from a file, by key. Idempotent.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use protocol::v1::{JobBody, KeyedJob, Problem, ProblemCode, PutJobs, PutOutcome, PutResult};
use serde::Serialize;

use crate::api::{Call, Client, Output, Remote};
use crate::terminal::{self, Mood, Paint};
use crate::yaml::{Jobs, step_jobs};

/// Options of `tickwright import`.
#[derive(Args)]
pub struct Import {
    /// File in the format of `tickwright export`; - for standard input.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print the changes without applying them.
    #[arg(long)]
    dry_run: bool,
    /// Change no job if one of them is rejected; for at most 1000 jobs.
    #[arg(long)]
    atomic: bool,
    #[command(flatten)]
    remote: Remote,
}

impl Import {
    /// An import of a file, each job by itself.
    pub fn of(file: PathBuf, dry_run: bool, remote: Remote) -> Import {
        Import { file, dry_run, atomic: false, remote }
    }
}

/// Imports a file, some jobs per request. A rejected job does not prevent the import of the others, unless all or none
/// are wanted. An interrupted import is completed by the next one.
pub async fn run(options: Import) -> Result<()> {
    let mut jobs = Jobs::read(&text(&options.file)?).with_context(|| options.file.display().to_string())?;
    let client = Client::of(&options.remote)?;
    let order: Vec<String> = jobs.in_order().into_iter().map(str::to_owned).collect();
    if options.atomic && order.len() > REQUEST_MAX {
        bail!("--atomic supports at most {REQUEST_MAX} jobs; the file has {}", order.len());
    }
    let mut steps = Vec::with_capacity(order.len());
    let bar = terminal::progress(if options.dry_run { "comparing" } else { "importing" }, order.len());
    let mut left = order.into_iter().filter_map(|key| jobs.jobs.remove_entry(&key)).peekable();
    while left.peek().is_some() {
        let request = request(&mut left, &options);
        let sent = client.fetch(Call::put("/v1/jobs").json(&request).patient());
        let results: Vec<PutResult> = tokio::select! {
            results = sent => results?,
            _ = tokio::signal::ctrl_c() => bail!(
                "interrupted after {} of {} jobs; import the file again to complete it",
                steps.len(),
                bar.length().unwrap_or_default()
            ),
        };
        steps.extend(results.into_iter().map(Step::from));
        bar.set_position(steps.len() as u64);
        if let Some(problem) =
            steps.iter().filter_map(|step| step.trouble.as_ref()).find(|problem| stops(problem))
        {
            bail!("{}; import the file again to complete it", problem.detail);
        }
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

/// Takes the jobs of one request.
fn request(
    left: &mut std::iter::Peekable<impl Iterator<Item = (String, JobBody)>>,
    options: &Import,
) -> PutJobs {
    let (mut jobs, mut size) = (Vec::<KeyedJob>::new(), 0);
    while let Some((_, job)) = left.peek() {
        // The jobs of its steps must exist before a workflow is saved.
        if step_jobs(job).any(|named| jobs.iter().any(|job| job.key == *named)) {
            break;
        }
        let source = job.script.as_ref().map_or(0, |script| script.source.len());
        size += JOB_SIZE + 2 * (source + job.param.len());
        if !jobs.is_empty() && size > SIZE_MAX || jobs.len() == REQUEST_MAX {
            break;
        }
        let next = left.next();
        jobs.extend(next.map(|(key, job)| KeyedJob { key, job, revision: None, create_only: false }));
    }
    PutJobs { jobs, atomic: options.atomic, dry_run: options.dry_run }
}

/// Maximum number of jobs of one request: that of the API.
const REQUEST_MAX: usize = 1_000;

/// Approximate maximum length of a request; the API accepts 4 MiB.
const SIZE_MAX: usize = 2 * 1024 * 1024;

/// Approximate length of a definition, without script and parameter.
const JOB_SIZE: usize = 1024;

fn text(file: &Path) -> Result<String> {
    let text = if file == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        fs::read_to_string(file)
    };
    text.with_context(|| format!("failed to read {}", file.display()))
}

/// Whether the next request would fail with the same error.
fn stops(problem: &Problem) -> bool {
    matches!(problem.code, ProblemCode::DatabaseUnavailable | ProblemCode::DatabaseBroken)
}

/// Change of one job.
#[derive(Serialize)]
struct Step {
    job: String,
    change: Change,
    /// Fields that change in an existing job.
    fields: Vec<String>,
    /// Why the change failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    #[serde(skip)]
    trouble: Option<Problem>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Change {
    Add,
    Edit,
    None,
}

impl From<PutResult> for Step {
    fn from(result: PutResult) -> Step {
        let change = match result.outcome {
            PutOutcome::Created => Change::Add,
            PutOutcome::Replaced => Change::Edit,
            PutOutcome::Unchanged | PutOutcome::Rejected => Change::None,
        };
        let problem = result.problem.as_ref().map(|problem| problem.detail.clone());
        Step { job: result.key, change, fields: result.fields, problem, trouble: result.problem }
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
