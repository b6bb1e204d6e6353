//! `tickwright workflow`: checks of definitions, steps of workflow runs, and decisions about them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use protocol::v1::{Decision, FieldProblem, StepState, StepView, WorkflowRunView};

use crate::api::{Call, Client, Output, Remote, path};
use crate::duration;
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
    /// List the steps of a workflow run, or show one with its output.
    Steps {
        /// Id of the workflow run.
        run: i64,
        /// Name of a step.
        step: Option<String>,
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
    if let Command::Check { file } = &command {
        return check(file);
    }
    let client = Client::of(&remote)?;
    match command {
        Command::Check { file } => check(&file),
        Command::Steps { run, step: None } => steps(&client, run, remote.output).await,
        Command::Steps { run, step: Some(step) } => show(&client, run, &step, remote.output).await,
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
    let mut count = 0;
    for (key, workflow) in &workflows {
        for FieldProblem { field, detail } in server::workflow_problems(workflow) {
            count += 1;
            terminal::say(&format!("{key}: {field}: {detail}"))?;
        }
    }
    match count {
        0 => terminal::say(&format!("{} workflows, no problems", workflows.len())),
        count => bail!("{count} problems in {}", file.display()),
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
            paint.cell(terminal::word(&step.state), mood(step.state)),
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
        ("state", terminal::word(&view.state)),
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
