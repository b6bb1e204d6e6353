//! `tickwright backfill`: runs of a job for scheduled times of the past.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use protocol::v1::{
    BackfillBody, BackfillOrder, BackfillPlan, BackfillStarted, BackfillState, BackfillTime, BackfillView,
    CancelBackfill, Existing, IDEMPOTENCY_KEY, InstantState, OnFailure, PlannedAction, PlannedTime,
};

use crate::api::{Call, Client, Most, Output, Remote, path};
use crate::terminal::{self, Mood, Paint};

/// Backfills: a job and a range start one.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Backfill {
    #[command(flatten)]
    remote: Remote,
    #[command(flatten)]
    start: Start,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Args)]
struct Start {
    /// Key of the job, or its id as id:42.
    #[arg(required = true)]
    job: Option<String>,
    /// Start of the range: a date in the job's time zone, for example 2026-06-21, or a time, for example
    /// 2026-06-21T08:00:00Z.
    #[arg(long, value_name = "DATE", required_unless_present = "dates")]
    from: Option<String>,
    /// End of the range, inclusive [default: now].
    #[arg(long, value_name = "DATE")]
    to: Option<String>,
    /// Dates instead of a range, separated by commas.
    #[arg(long, value_name = "DATES", value_delimiter = ',', conflicts_with_all = ["from", "to"])]
    dates: Vec<String>,
    /// Which scheduled times run first: oldest or newest.
    #[arg(long, default_value_t)]
    order: BackfillOrder,
    /// Maximum number of scheduled times with open runs, up to 100.
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    parallel: u32,
    /// Scheduled times that already have runs: skip those that succeeded, run all again, or only those whose newest run
    /// failed.
    #[arg(long, value_name = "skip|again|failed", default_value_t)]
    existing: Existing,
    /// After a run failed for good: continue with the others, or stop until it is continued.
    #[arg(long, value_name = "continue|stop", default_value_t)]
    on_failure: OnFailure,
    /// Parameter of the runs instead of the job's.
    #[arg(long, allow_hyphen_values = true)]
    param: Option<String>,
    /// Start nothing; list the scheduled times and what would happen to each.
    #[arg(long)]
    dry_run: bool,
    /// Print the progress until the backfill has ended; exit with an error unless everything succeeded.
    #[arg(long, short, conflicts_with = "dry_run")]
    follow: bool,
}

#[derive(Subcommand)]
enum Command {
    /// List backfills, newest first.
    List {
        /// Key of a job, or its id as id:42.
        #[arg(long)]
        job: Option<String>,
        /// Name of an app.
        #[arg(long)]
        app: Option<String>,
        #[command(flatten)]
        most: Most,
    },
    /// Show a backfill and its scheduled times.
    Show {
        /// Id of the backfill.
        id: i64,
        /// Only scheduled times in this state, for example failed.
        #[arg(long)]
        state: Option<InstantState>,
        #[command(flatten)]
        most: Most,
    },
    /// Print the progress of a backfill until it has ended.
    Follow {
        /// Id of the backfill.
        id: i64,
    },
    /// Pause a backfill: no runs open until it is continued.
    Pause {
        /// Id of the backfill.
        id: i64,
    },
    /// Continue a paused backfill.
    Continue {
        /// Id of the backfill.
        id: i64,
    },
    /// Cancel a backfill: no more runs open.
    Cancel {
        /// Id of the backfill.
        id: i64,
        /// Also cancel its open runs.
        #[arg(long)]
        kill: bool,
    },
    /// Run the failed scheduled times of a backfill again.
    Retry {
        /// Id of the backfill.
        id: i64,
    },
}

/// Runs the command.
pub async fn run(Backfill { remote, start, command }: Backfill) -> Result<()> {
    let backfills = Backfills { client: Client::of(&remote)?, output: remote.output };
    match command {
        None => backfills.start(start).await,
        Some(Command::List { job, app, most }) => backfills.list(job, app, most).await,
        Some(Command::Show { id, state, most }) => backfills.show(id, state, most).await,
        Some(Command::Follow { id }) => backfills.follow(id).await,
        Some(Command::Pause { id }) => backfills.change(id, Call::post(at(id, "/pause"))).await,
        Some(Command::Continue { id }) => backfills.change(id, Call::post(at(id, "/continue"))).await,
        Some(Command::Retry { id }) => backfills.change(id, Call::post(at(id, "/retry"))).await,
        Some(Command::Cancel { id, kill }) => {
            let call = Call::post(at(id, "/cancel")).json(&CancelBackfill { kill });
            backfills.change(id, call).await
        }
    }
}

fn at(id: i64, action: &str) -> String {
    format!("/v1/backfills/{id}{action}")
}

struct Backfills {
    client: Client,
    output: Output,
}

impl Backfills {
    async fn start(&self, start: Start) -> Result<()> {
        let job = start.job.context("a job is required")?;
        let body = BackfillBody {
            from: start.from,
            to: start.to,
            dates: start.dates,
            order: start.order,
            parallel: Some(start.parallel),
            existing: start.existing,
            on_failure: start.on_failure,
            param: start.param,
            dry_run: start.dry_run,
        };
        // If the response is lost, a repeated request returns the same backfill.
        let key = format!("{:016x}", fastrand::u64(..));
        let call =
            Call::post(path("/v1/jobs/", &job, "/backfills")).json(&body).header(IDEMPOTENCY_KEY, &key);
        let started: BackfillStarted = self.client.fetch(call).await.with_context(|| format!("job {job}"))?;
        match (started.backfill, started.plan) {
            (Some(backfill), _) if start.follow => self.follow(backfill.id).await,
            (Some(backfill), _) if self.output == Output::Json => terminal::say_json(&backfill),
            (Some(BackfillView { id, total, .. }), _) => terminal::say(&format!(
                "backfill {id} of {job} started: {}; follow it with: tickwright backfill follow {id}",
                scheduled_times(total)
            )),
            (None, Some(plan)) if self.output == Output::Json => terminal::say_json(&plan),
            (None, Some(plan)) => say_plan(&plan),
            (None, None) => bail!("the scheduling centre returned neither a backfill nor a plan"),
        }
    }

    async fn list(&self, job: Option<String>, app: Option<String>, most: Most) -> Result<()> {
        let call = Call::get("/v1/backfills").query("job", job).query("app", app);
        let (backfills, more) = self.client.list::<BackfillView>(call, most.rows()).await?;
        if self.output == Output::Json {
            return terminal::say_json(&backfills);
        }
        let paint = Paint::stdout();
        let row = |backfill: &BackfillView| {
            vec![
                paint.cell(backfill.id, Mood::Plain),
                paint.cell(job_of(backfill), Mood::Plain),
                paint.cell(terminal::word(&backfill.state), mood(backfill.state)),
                paint.cell(
                    format!("{}/{}", backfill.total - backfill.pending - backfill.open, backfill.total),
                    Mood::Plain,
                ),
                paint.cell(backfill.failed, if backfill.failed > 0 { Mood::Bad } else { Mood::Quiet }),
                paint.cell(terminal::local(backfill.from), Mood::Quiet),
                paint.cell(terminal::local(backfill.until), Mood::Quiet),
                paint.cell(&backfill.by, Mood::Quiet),
            ]
        };
        let heads = ["ID", "JOB", "STATE", "DONE", "FAILED", "FROM", "UNTIL", "BY"];
        terminal::say(&terminal::table(&heads, backfills.iter().map(row)))?;
        most.hint(more);
        Ok(())
    }

    async fn show(&self, id: i64, state: Option<InstantState>, most: Most) -> Result<()> {
        let backfill = self.find(id).await?;
        let call = Call::get(at(id, "/times")).query("state", state);
        let (times, more) = self.client.list::<BackfillTime>(call, most.rows()).await?;
        if self.output == Output::Json {
            return terminal::say_json(&serde_json::json!({ "backfill": backfill, "times": times }));
        }
        terminal::say(&terminal::facts([
            ("backfill", id.to_string()),
            ("job", job_of(&backfill)),
            ("state", terminal::word(&backfill.state)),
            ("progress", progress(&backfill)),
            ("from", terminal::local(backfill.from)),
            ("until", terminal::local(backfill.until)),
            ("order", terminal::word(&backfill.order)),
            ("parallel", backfill.parallel.to_string()),
            ("existing", terminal::word(&backfill.existing)),
            ("on failure", terminal::word(&backfill.on_failure)),
            ("param", backfill.param.clone().unwrap_or_default()),
            ("started", format!("{} by {}", terminal::local(backfill.started_at), backfill.by)),
            ("ended", backfill.ended_at.map(terminal::local).unwrap_or_default()),
        ]))?;
        let paint = Paint::stdout();
        let row = |time: &BackfillTime| {
            let message = time.message.as_deref().unwrap_or_default();
            vec![
                paint.cell(terminal::local(time.scheduled_at), Mood::Plain),
                paint.cell(terminal::word(&time.state), time_mood(time.state)),
                paint.cell(time.run.map_or_else(|| "-".into(), |run| run.to_string()), Mood::Plain),
                paint.cell(message.lines().next().unwrap_or_default(), Mood::Quiet),
            ]
        };
        terminal::say(&terminal::table(&["SCHEDULED", "STATE", "RUN", "MESSAGE"], times.iter().map(row)))?;
        most.hint(more);
        Ok(())
    }

    async fn change(&self, id: i64, call: Call) -> Result<()> {
        let view = self.client.fetch(call).await;
        let view: BackfillView = view.with_context(|| format!("backfill {id}"))?;
        match self.output {
            Output::Json => terminal::say_json(&view),
            Output::Table => terminal::say(&format!("backfill {id} is {}: {}", view.state, progress(&view))),
        }
    }

    /// Prints the progress whenever it changes.
    async fn follow(&self, id: i64) -> Result<()> {
        let mut said = String::new();
        let backfill = loop {
            let backfill = self.find(id).await?;
            let now = format!("{}: {}", backfill.state, progress(&backfill));
            if now != said && self.output == Output::Table {
                terminal::say(&now)?;
            }
            said = now;
            if backfill.ended_at.is_some() {
                break backfill;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        };
        if self.output == Output::Json {
            terminal::say_json(&backfill)?;
        }
        let (bad, total) = (backfill.failed + backfill.cancelled, backfill.total);
        if bad > 0 {
            bail!(
                "{bad} of {total} scheduled times did not succeed; list them with: tickwright backfill show {id} --state failed"
            );
        }
        Ok(())
    }

    async fn find(&self, id: i64) -> Result<BackfillView> {
        self.client.fetch(Call::get(at(id, ""))).await.with_context(|| format!("backfill {id}"))
    }
}

/// Interval of questions about the progress.
const LOOK_EVERY: Duration = Duration::from_millis(500);

fn say_plan(plan: &BackfillPlan) -> Result<()> {
    let paint = Paint::stdout();
    let row = |time: &PlannedTime| {
        let (mood, why) = match (time.action, time.because_of) {
            (PlannedAction::Run, _) => (Mood::Plain, String::new()),
            (PlannedAction::Skip, Some(run)) => (Mood::Quiet, format!("run {run} succeeded")),
            (PlannedAction::Wait, Some(run)) => (Mood::Busy, format!("run {run} is open")),
            (_, None) => (Mood::Quiet, String::new()),
        };
        vec![
            paint.cell(terminal::local(time.scheduled_at), Mood::Plain),
            paint.cell(terminal::word(&time.action), mood),
            paint.cell(why, Mood::Quiet),
        ]
    };
    terminal::say(&terminal::table(&["SCHEDULED", "ACTION", "REASON"], plan.times.iter().map(row)))?;
    let shown = u32::try_from(plan.times.len()).unwrap_or(u32::MAX);
    if shown < plan.total {
        terminal::say(&format!(
            "(the first and last of {}; {shown} are shown)",
            scheduled_times(plan.total)
        ))?;
    }
    terminal::say(&format!(
        "{}: {} would run, {} would be left out, {} would wait for an open run",
        scheduled_times(plan.total),
        plan.run,
        plan.skip,
        plan.wait
    ))
}

fn scheduled_times(count: u32) -> String {
    if count == 1 { "1 scheduled time".into() } else { format!("{count} scheduled times") }
}

fn job_of(backfill: &BackfillView) -> String {
    backfill.job_key.clone().unwrap_or_else(|| format!("id:{}", backfill.job))
}

/// Counts that are not zero, for example `12 of 30 succeeded, 1 failed, 2 open`.
fn progress(backfill: &BackfillView) -> String {
    let counts = [
        (backfill.failed, "failed"),
        (backfill.skipped, "left out"),
        (backfill.cancelled, "cancelled"),
        (backfill.open, "open"),
        (backfill.pending, "pending"),
    ];
    let mut text = format!("{} of {} succeeded", backfill.succeeded, backfill.total);
    for (count, what) in counts.into_iter().filter(|(count, _)| *count > 0) {
        text.push_str(&format!(", {count} {what}"));
    }
    text
}

fn mood(state: BackfillState) -> Mood {
    match state {
        BackfillState::Running => Mood::Busy,
        BackfillState::Finished => Mood::Good,
        BackfillState::Paused | BackfillState::Cancelled => Mood::Quiet,
    }
}

fn time_mood(state: InstantState) -> Mood {
    match state {
        InstantState::Succeeded => Mood::Good,
        InstantState::Failed => Mood::Bad,
        InstantState::Open => Mood::Busy,
        InstantState::Pending | InstantState::Skipped | InstantState::Cancelled => Mood::Quiet,
    }
}
