//! `tickwright workflow`: checks of definitions, workflow runs, their steps, and decisions about them.

mod follow;
mod from_children;
mod graph;
mod versions;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use protocol::v1::{
    Decision, FieldProblem, IDEMPOTENCY_KEY, Resume, ResumeVersion, Resumed, StepState, StepView, Trigger,
    Triggered, WorkflowRunView,
};

use self::graph::Form;
use crate::api::{Call, Client, Output, Remote, path};
use crate::duration;
use crate::import::{self, Import};
use crate::places::place;
use crate::terminal::{self, Mood, Paint};
use crate::yaml::Jobs;

/// Workflow runs.
#[derive(Args)]
pub struct Workflow {
    #[command(flatten)]
    remote: Remote,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Check the workflows in a file of `tickwright import`, without a scheduling centre.
    Check {
        /// The file.
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Create or update the jobs and workflows of a file, and print the changes. The same as `tickwright import`.
    Apply {
        /// The file; - for standard input.
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Print the changes without applying them.
        #[arg(long)]
        dry_run: bool,
    },
    /// Print the steps of a workflow, as text or as a diagram.
    Graph {
        /// Key of the workflow, or its id as id:42.
        workflow: String,
        /// Read it from this file, without a scheduling centre.
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
        /// Form of the graph.
        #[arg(long, value_enum, default_value_t = Form::Text)]
        form: Form,
    },
    /// Print a job and its child jobs as one workflow, as a file for `tickwright import`. Changes nothing.
    FromChildren {
        /// Key of the first job, or its id as id:42.
        job: String,
        /// Key of the workflow, for example sales/daily.
        key: String,
    },
    /// Run a workflow now.
    Run {
        /// Key of the workflow, or its id as id:42.
        workflow: String,
        /// Inputs of the run, as a JSON object.
        #[arg(long, value_name = "JSON")]
        inputs: Option<String>,
        /// Print the steps as they end; exit with an error if the run fails.
        #[arg(long, short)]
        follow: bool,
    },
    /// Resume a workflow run that has ended: a new run keeps the steps that succeeded and runs the others.
    Resume {
        /// Id of the workflow run.
        run: i64,
        /// Step that runs again although it succeeded. Can be repeated.
        #[arg(long, value_name = "STEP")]
        again: Vec<String>,
        /// Output of a failed step, which then counts as succeeded, for example `load={"rows":5}`. Can be repeated.
        #[arg(long, value_name = "STEP=JSON", value_parser = output_of)]
        set: Vec<(String, serde_json::Value)>,
        /// Use the current definition of the workflow. Steps that were changed run again.
        #[arg(long)]
        latest: bool,
        /// Only print which steps would be kept and which would run.
        #[arg(long)]
        dry_run: bool,
        /// Print the steps of the new run as they end; exit with an error if it fails.
        #[arg(long, short, conflicts_with = "dry_run")]
        follow: bool,
    },
    /// List the steps of a workflow run, or show one with its output.
    Steps {
        /// Id of the workflow run.
        run: i64,
        /// Name of a step.
        step: Option<String>,
    },
    /// List the versions of a workflow, newest first, or print the definition of one as YAML.
    Versions {
        /// Key of the workflow, or its id as id:42.
        workflow: String,
        /// Number of a version.
        version: Option<u32>,
    },
    /// Save the definition of an earlier version again, as a new version. The rest of the job stays unchanged.
    Restore {
        /// Key of the workflow, or its id as id:42.
        workflow: String,
        /// Number of the version.
        version: u32,
        /// Description of the change, for the list of versions.
        #[arg(long, value_name = "TEXT", default_value = "")]
        remark: String,
    },
    /// Approve a step that asks people.
    Approve(Decide),
    /// Refuse a step that asks people: the step fails.
    Refuse(Decide),
    /// Pause a workflow run: no steps open until it is continued.
    Pause {
        /// Id of the workflow run.
        run: i64,
    },
    /// Continue a paused workflow run.
    Continue {
        /// Id of the workflow run.
        run: i64,
    },
}

#[derive(Args)]
struct Decide {
    /// Id of the workflow run.
    run: i64,
    /// Name of the step.
    step: String,
    /// Remark on the decision.
    #[arg(long, value_name = "TEXT", default_value = "")]
    remark: String,
}

/// Runs the command.
pub async fn run(Workflow { remote, command }: Workflow) -> Result<()> {
    match &command {
        Command::Check { file } => return check(file),
        Command::Graph { workflow, file: Some(file), form } => {
            return graph::print(&graph::of_file(file, workflow)?, *form);
        }
        _ => {}
    }
    if let Command::Apply { file, dry_run } = command {
        return import::run(Import::of(file, dry_run, remote)).await;
    }
    let client = Client::of(&remote)?;
    match command {
        Command::Check { file } => check(&file),
        // Done above: it creates its own client.
        Command::Apply { .. } => Ok(()),
        Command::Graph { workflow, form, .. } => {
            graph::print(&graph::of_centre(&client, &workflow).await?, form)
        }
        Command::FromChildren { job, key } => from_children::from_children(&client, &job, &key).await,
        Command::Run { workflow, inputs, follow } => {
            start(&client, &workflow, inputs, follow, remote.output).await
        }
        Command::Resume { run, again, set, latest, dry_run, follow } => {
            let version = if latest { ResumeVersion::Latest } else { ResumeVersion::Same };
            let asked = Resume { again, set: set.into_iter().collect(), version, dry_run };
            resume(&client, run, &asked, follow, remote.output).await
        }
        Command::Steps { run, step: None } => steps(&client, run, remote.output).await,
        Command::Steps { run, step: Some(step) } => show(&client, run, &step, remote.output).await,
        Command::Versions { workflow, version } => {
            versions::show(&client, &workflow, version, remote.output).await
        }
        Command::Restore { workflow, version, remark } => {
            versions::restore(&client, &workflow, version, remark, remote.output).await
        }
        Command::Approve(options) => decide(&client, options, true, remote.output).await,
        Command::Refuse(options) => decide(&client, options, false, remote.output).await,
        Command::Pause { run } => pause(&client, run, true, remote.output).await,
        Command::Continue { run } => pause(&client, run, false, remote.output).await,
    }
}

/// Prints all problems; fails if there are any.
fn check(file: &Path) -> Result<()> {
    let text = fs::read_to_string(file).with_context(|| format!("failed to read {}", file.display()))?;
    let jobs = Jobs::read(&text).with_context(|| file.display().to_string())?;
    let workflows: Vec<_> =
        jobs.jobs.iter().filter_map(|(key, job)| Some((key, job.workflow.as_ref()?))).collect();
    let (mut count, mut places) = (0, None);
    for (key, workflow) in &workflows {
        for FieldProblem { field, detail } in server::workflow_problems(workflow) {
            count += 1;
            let places = places.get_or_insert_with(|| server::Places::read(&text, crate::yaml::options()));
            let place = places.as_ref().and_then(|places| place(places, key, &field));
            let place = place.map(|(line, column)| format!(":{line}:{column}")).unwrap_or_default();
            terminal::say(&format!("{}{place}: {key}: {field}: {detail}", file.display()))?;
        }
    }
    match count {
        0 => terminal::say(&format!("{} workflows, no problems", workflows.len())),
        count => bail!("{count} problems in {}", file.display()),
    }
}

/// Parses `STEP=JSON`.
fn output_of(text: &str) -> Result<(String, serde_json::Value)> {
    let (step, output) = text.split_once('=').context("write STEP=JSON, for example load={\"rows\":5}")?;
    let output =
        serde_json::from_str(output).with_context(|| format!("the output of step {step} is no JSON"))?;
    Ok((step.to_owned(), output))
}

/// Key that makes a repeated request return the same run, if the first response was lost.
fn request_key() -> String {
    format!("{:016x}", fastrand::u64(..))
}

async fn start(
    client: &Client,
    workflow: &str,
    inputs: Option<String>,
    follow: bool,
    output: Output,
) -> Result<()> {
    let trigger = Trigger { param: inputs, address: None };
    let call = Call::post(path("/v1/jobs/", workflow, "/trigger")).json(&trigger);
    let triggered = client.fetch(call.header(IDEMPOTENCY_KEY, &request_key())).await;
    let triggered: Triggered = triggered.with_context(|| format!("job `{workflow}`"))?;
    let run = triggered.run;
    match output {
        _ if follow => follow::follow(client, run).await,
        Output::Json => terminal::say_json(&triggered),
        Output::Table => terminal::say(&format!(
            "{workflow} triggered as run {run}; list its steps with: tickwright workflow steps {run}"
        )),
    }
}

async fn resume(client: &Client, run: i64, asked: &Resume, follow: bool, output: Output) -> Result<()> {
    let call = Call::post(format!("/v1/runs/{run}/resume")).json(asked);
    let resumed = client.fetch(call.header(IDEMPOTENCY_KEY, &request_key())).await;
    let resumed: Resumed = resumed.with_context(|| format!("run {run}"))?;
    if output == Output::Json && !follow {
        return terminal::say_json(&resumed);
    }
    let list = |names: &[String]| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    terminal::say(&format!("kept: {}", list(&resumed.kept)))?;
    terminal::say(&format!("runs: {}", list(&resumed.to_run)))?;
    match resumed.run {
        None => Ok(()),
        Some(new) if follow => follow::follow(client, new).await,
        Some(new) => terminal::say(&format!("run {run} resumed as run {new}")),
    }
}

async fn steps(client: &Client, run: i64, output: Output) -> Result<()> {
    let view = client.fetch(Call::get(format!("/v1/runs/{run}/steps"))).await;
    let view: WorkflowRunView = view.with_context(|| format!("run {run}"))?;
    if output == Output::Json {
        return terminal::say_json(&view);
    }
    let paint = Paint::stdout();
    let row = |step: &StepView| {
        vec![
            paint.cell(&step.name, Mood::Plain),
            paint.cell(state_word(step), mood(step.state)),
            paint.cell(terminal::local_or_dash(step.opened_at), Mood::Plain),
            paint.cell(took(step), Mood::Plain),
            paint.cell(step.run.map_or_else(|| "-".into(), |run| run.to_string()), Mood::Plain),
            paint.cell(step.needs.join(", "), Mood::Quiet),
            paint.cell(first_line(step), Mood::Quiet),
        ]
    };
    let heads = ["STEP", "STATE", "OPENED", "TOOK", "RUN", "NEEDS", "MESSAGE"];
    terminal::say(&terminal::table(&heads, view.steps.iter().map(row)))?;
    if view.paused {
        eprintln!("the run is paused; `tickwright workflow continue {run}` lets it go on");
    }
    Ok(())
}

async fn show(client: &Client, run: i64, step: &str, output: Output) -> Result<()> {
    let path = path(&format!("/v1/runs/{run}/steps/"), step, "");
    let view = client.fetch(Call::get(path)).await;
    let view: StepView = view.with_context(|| format!("step {step} of run {run}"))?;
    if output == Output::Json {
        return terminal::say_json(&view);
    }
    let decision = view.decision.as_ref().map(|decision| {
        let verb = if decision.approved { "approved" } else { "refused" };
        format!("{verb} by {} {}", decision.by, decision.remark).trim_end().to_owned()
    });
    terminal::say(&terminal::facts([
        ("step", view.name.clone()),
        ("state", state_word(&view)),
        ("needs", view.needs.join(", ")),
        ("run", view.run.map(|run| run.to_string()).unwrap_or_default()),
        ("opened", view.opened_at.map(terminal::local).unwrap_or_default()),
        ("ended", view.ended_at.map(terminal::local).unwrap_or_default()),
        ("took", took(&view)),
        ("message", view.message.clone().unwrap_or_default()),
        ("decision", decision.unwrap_or_default()),
        ("output", view.output.map(|output| output.to_string()).unwrap_or_default()),
    ]))
}

async fn decide(client: &Client, options: Decide, approved: bool, output: Output) -> Result<()> {
    let Decide { run, step, remark } = options;
    let path = path(&format!("/v1/runs/{run}/steps/"), &step, "/decide");
    client.send(Call::post(path).json(&Decision { approved, remark })).await?;
    match output {
        Output::Json => Ok(()),
        Output::Table => {
            let verb = if approved { "approved" } else { "refused" };
            terminal::say(&format!("step {step} of run {run} {verb}"))
        }
    }
}

async fn pause(client: &Client, run: i64, paused: bool, output: Output) -> Result<()> {
    let verb = if paused { "pause" } else { "continue" };
    client.send(Call::post(format!("/v1/runs/{run}/{verb}"))).await?;
    match output {
        Output::Json => Ok(()),
        Output::Table => terminal::say(&format!("run {run} {}", if paused { "paused" } else { "continued" })),
    }
}

fn state_word(step: &StepView) -> String {
    let word = terminal::word(&step.state);
    if step.kept { format!("{word} (kept)") } else { word }
}

fn took(step: &StepView) -> String {
    match step.opened_at.zip(step.ended_at) {
        Some((from, until)) => duration::in_words(until.millis() - from.millis()),
        None => String::new(),
    }
}

fn first_line(step: &StepView) -> String {
    step.message.as_deref().unwrap_or_default().lines().next().unwrap_or_default().to_owned()
}

fn mood(state: StepState) -> Mood {
    match state {
        StepState::Succeeded => Mood::Good,
        StepState::Failed => Mood::Bad,
        StepState::Open | StepState::Waiting => Mood::Busy,
        StepState::Blocked
        | StepState::Held
        | StepState::Skipped
        | StepState::Unreached
        | StepState::Cancelled => Mood::Quiet,
    }
}
