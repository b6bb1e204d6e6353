//! `tickwright run`: runs, their results and logs.

use anyhow::{Context, Result, bail};
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use protocol::v1::{Instant, Kill, Origin, RunState, RunStatus, RunView, TraceStep, Word};

use crate::api::{Call, Client, Most, Output, Remote};
use crate::terminal::{self, Mood, Paint};
use crate::{duration, log};

/// Runs.
#[derive(Args)]
pub struct Run {
    #[command(flatten)]
    remote: Remote,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List runs, newest first.
    List(List),
    /// Show a run and its trace.
    Show {
        /// Id of the run.
        run: i64,
    },
    /// Print the log of a run.
    Logs {
        /// Id of a run, or a job for its newest run.
        #[arg(value_name = "RUN|JOB")]
        run: String,
        /// Print lines as they are written, until the run is finished; wait for the job's first run if there is
        /// none.
        #[arg(long, short)]
        follow: bool,
        /// First line to print.
        #[arg(long, value_name = "LINE", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
        from: u64,
    },
    /// Cancel a run: ask its executor to end it.
    #[command(visible_alias = "kill")]
    Cancel {
        /// Id of the run.
        run: i64,
        /// Close the run even if its executor refuses or cannot be reached; a later result is discarded.
        #[arg(long)]
        force: bool,
    },
}

#[derive(Args)]
struct List {
    /// Only runs of this app.
    #[arg(long)]
    app: Option<String>,
    /// Only runs of this job: its key, or its id as id:42.
    #[arg(long)]
    job: Option<String>,
    /// Only runs in this state.
    #[arg(long, value_parser = PossibleValuesParser::new(RunStatus::WORDS))]
    state: Option<String>,
    /// Only runs scheduled at or after this time.
    #[arg(long, value_name = "TIME")]
    from: Option<Instant>,
    /// Only runs scheduled before this time.
    #[arg(long, value_name = "TIME")]
    until: Option<Instant>,
    #[command(flatten)]
    most: Most,
}

/// Runs the command.
pub async fn run(Run { remote, command }: Run) -> Result<()> {
    let client = Client::of(&remote)?;
    match command {
        Command::List(options) => list(&client, options, remote.output).await,
        Command::Show { run } => show(&client, run, remote.output).await,
        Command::Logs { run, follow, from } => logs(&client, &run, follow, from).await,
        Command::Cancel { run, force } => cancel(&client, run, force, remote.output).await,
    }
}

async fn list(client: &Client, options: List, output: Output) -> Result<()> {
    let call = Call::get("/v1/runs")
        .query("app", options.app)
        .query("job", options.job)
        .query("state", options.state)
        .query("from", options.from)
        .query("until", options.until);
    let (runs, more) = client.list::<RunView>(call, options.most.rows()).await?;
    if output == Output::Json {
        return terminal::say_json(&runs);
    }
    let paint = Paint::stdout();
    let row = |run: &RunView| {
        vec![
            paint.cell(run.id, Mood::Plain),
            paint.cell(job(run), Mood::Plain),
            paint.cell(terminal::word(&run.state), mood(run.state)),
            paint.cell(terminal::local_or_dash(run.scheduled_at), Mood::Plain),
            paint.cell(run.took_ms.map_or_else(|| "-".into(), duration::in_words), Mood::Plain),
            paint.cell(run.address.as_deref().unwrap_or("-"), Mood::Quiet),
            paint.cell(message(run).lines().next().unwrap_or_default(), Mood::Quiet),
        ]
    };
    let heads = ["RUN", "JOB", "STATE", "SCHEDULED", "TOOK", "EXECUTOR", "MESSAGE"];
    terminal::say(&terminal::table(&heads, runs.iter().map(row)))?;
    options.most.hint(more);
    Ok(())
}

async fn show(client: &Client, run: i64, output: Output) -> Result<()> {
    let view: RunView = fetch(client, run).await?;
    match output {
        Output::Json => terminal::say_json(&view),
        Output::Table => terminal::say(&facts(&view)),
    }
}

/// Fetches a run.
pub async fn fetch(client: &Client, run: i64) -> Result<RunView> {
    let view = client.fetch(Call::get(format!("/v1/runs/{run}"))).await;
    view.with_context(|| format!("run {run}"))
}

async fn logs(client: &Client, run: &str, follow: bool, from: u64) -> Result<()> {
    let run = match run.parse() {
        Ok(run) => run,
        Err(_) if follow => log::newest(client, run).await?,
        Err(_) => match log::newest_begun(client, run).await? {
            Some(run) => run,
            None => bail!("job `{run}` has no runs yet; add -f to wait for the first one"),
        },
    };
    match follow {
        true => log::follow(client, run, from).await.map(drop),
        false => log::print(client, run, from).await,
    }
}

async fn cancel(client: &Client, run: i64, force: bool, output: Output) -> Result<()> {
    let call = Call::post(format!("/v1/runs/{run}/kill")).json(&Kill { force });
    client.send(call).await?;
    match output {
        Output::Json => Ok(()),
        Output::Table => terminal::say(&format!("run {run} cancelled")),
    }
}

/// Key of the run's job, or `id:` and its id.
fn job(run: &RunView) -> String {
    run.job_key.clone().unwrap_or_else(|| format!("id:{}", run.job))
}

/// Message of the result, or of the dispatch if the run did not get further.
pub fn message(run: &RunView) -> &str {
    match run.result_message.as_str() {
        "" if is_bad(run.state) => &run.dispatch_message,
        result => result,
    }
}

fn is_bad(state: RunState) -> bool {
    mood(state) == Mood::Bad
}

fn mood(state: RunState) -> Mood {
    match state {
        RunState::Succeeded => Mood::Good,
        RunState::Failed | RunState::TimedOut | RunState::Lost => Mood::Bad,
        RunState::Running | RunState::Unknown => Mood::Busy,
        RunState::Waiting | RunState::Claimed | RunState::Cancelling | RunState::Cancelled => Mood::Quiet,
    }
}

/// State as text, with a pending cancellation request.
fn state(run: &RunView) -> String {
    let state = terminal::word(&run.state);
    if run.cancel_requested { format!("{state}, cancellation requested") } else { state }
}

fn facts(run: &RunView) -> String {
    let origin = run.origin.map(|origin| match origin {
        Origin::Schedule => "schedule".into(),
        Origin::Misfire => "catch-up of missed fires".into(),
        Origin::Manual => "manual trigger".into(),
        Origin::Child { of } => format!("success of run {of}"),
        Origin::Step { of } => format!("step of workflow run {of}"),
        Origin::Resume { of } => format!("resumption of run {of}"),
        Origin::Backfill { of } => format!("backfill {of}"),
        Origin::Retry { of } => format!("retry of run {of}"),
    });
    let shard = match run.shard_total {
        0 | 1 => String::new(),
        total => format!("{} of {total}", run.shard_index + 1),
    };
    let step = |step: &TraceStep| {
        let at = terminal::local_or_dash(step.at);
        format!("{at}  {}  {}", terminal::word(&step.kind), step.detail.replace('\n', " "))
            .trim_end()
            .to_owned()
    };
    terminal::facts([
        ("run", run.id.to_string()),
        ("job", job(run)),
        ("name", run.job_name.clone().unwrap_or_default()),
        ("app", run.app.clone()),
        ("state", state(run)),
        ("origin", origin.unwrap_or_default()),
        ("scheduled", run.scheduled_at.map(terminal::local).unwrap_or_default()),
        ("ended", run.ended_at.map(terminal::local).unwrap_or_default()),
        ("took", run.took_ms.map(duration::in_words).unwrap_or_default()),
        ("executor", run.address.clone().unwrap_or_default()),
        ("handler", run.handler.clone()),
        ("param", run.param.clone()),
        ("shard", shard),
        ("attempt", run.attempt.map(|attempt| attempt.to_string()).unwrap_or_default()),
        ("message", message(run).to_owned()),
        ("trace", run.timeline.iter().map(step).collect::<Vec<_>>().join("\n")),
    ])
}
