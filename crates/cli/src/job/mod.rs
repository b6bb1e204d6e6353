//! `tickwright job`: list, edit and trigger jobs.

mod definition;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use protocol::v1::{
    AppView, Bulk, BulkAction, BulkResult, IDEMPOTENCY_KEY, JobBody, JobFilter, JobView, Page, Preview,
    ProblemCode, Trigger, Triggered,
};

use crate::api::{Call, Client, Most, Output, Remote, path};
use crate::duration;
use crate::log::{self, Ending};
use crate::terminal::{self, Mood, Paint, is_sure};

use definition::Definition;

/// Jobs.
#[derive(Args)]
pub struct Job {
    #[command(flatten)]
    remote: Remote,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List jobs.
    List(List),
    /// Show a job.
    Show {
        /// Key of the job, or its id as id:42.
        job: String,
    },
    /// Add a job.
    Add {
        /// Key that identifies the job from now on, for example orders/sync.
        key: String,
        #[command(flatten)]
        definition: Box<Definition>,
        /// Start its schedule immediately.
        #[arg(long)]
        start: bool,
    },
    /// Change the given options of a job and keep the others.
    Edit {
        /// Key of the job, or its id as id:42.
        job: String,
        #[command(flatten)]
        definition: Box<Definition>,
    },
    /// Delete jobs.
    Rm {
        #[command(flatten)]
        which: Which,
    },
    /// Start the schedules of jobs.
    Start {
        #[command(flatten)]
        which: Which,
    },
    /// Stop the schedules of jobs; active runs continue.
    Stop {
        #[command(flatten)]
        which: Which,
    },
    /// Run a job now.
    Trigger {
        /// Key of the job, or its id as id:42.
        job: String,
        /// Parameter for this run instead of the job's.
        #[arg(long, allow_hyphen_values = true)]
        param: Option<String>,
        /// Executor to run on.
        #[arg(long, value_name = "URL")]
        address: Option<String>,
        /// Print the log as it is written; exit with an error if the run fails.
        #[arg(long, short)]
        follow: bool,
    },
    /// Show when a job fires next.
    Next {
        /// Key of the job, or its id as id:42.
        job: String,
        /// Number of fires to list.
        #[arg(short = 'n', long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
        count: u16,
    },
}

/// Maximum number of rejected jobs that are printed; `--output json` prints all.
const SHOWN_MAX: usize = 20;

/// Jobs by name, or all that match the options.
#[derive(Args)]
struct Which {
    /// Keys of the jobs, or their ids as id:42.
    #[arg(required_unless_present_any = ["all", "app", "tag", "text", "handler"], conflicts_with_all = ["all", "app", "tag", "text", "handler"])]
    jobs: Vec<String>,
    /// All jobs.
    #[arg(long)]
    all: bool,
    /// Jobs of this app.
    #[arg(long)]
    app: Option<String>,
    /// Jobs with this tag.
    #[arg(long)]
    tag: Option<String>,
    /// Jobs with this text in their name or key.
    #[arg(long)]
    text: Option<String>,
    /// Jobs that call this handler.
    #[arg(long)]
    handler: Option<String>,
    /// Do not ask for confirmation.
    #[arg(long, short)]
    yes: bool,
}

#[derive(Args)]
struct List {
    /// Only jobs of this app.
    #[arg(long)]
    app: Option<String>,
    /// Only jobs with an active schedule.
    #[arg(long, conflicts_with = "stopped")]
    started: bool,
    /// Only jobs without an active schedule.
    #[arg(long)]
    stopped: bool,
    /// Only jobs with this text in their name or key.
    #[arg(long)]
    text: Option<String>,
    /// Only jobs with this tag.
    #[arg(long)]
    tag: Option<String>,
    /// Only jobs that call this handler.
    #[arg(long)]
    handler: Option<String>,
    #[command(flatten)]
    most: Most,
}

/// Runs the command.
pub async fn run(Job { remote, command }: Job) -> Result<()> {
    let client = Client::of(&remote)?;
    let jobs = Jobs { client, output: remote.output };
    match command {
        Command::List(list) => jobs.list(list).await,
        Command::Show { job } => jobs.show(&job).await,
        Command::Add { key, definition, start } => jobs.add(&key, &definition, start).await,
        Command::Edit { job, definition } => jobs.edit(&job, &definition).await,
        Command::Rm { which } if which.jobs.is_empty() => jobs.bulk(which, BulkAction::Delete).await,
        Command::Rm { which } => jobs.remove(&which.jobs, which.yes).await,
        Command::Start { which } if which.jobs.is_empty() => jobs.bulk(which, BulkAction::Start).await,
        Command::Start { which } => jobs.switch(&which.jobs, "/start", "started").await,
        Command::Stop { which } if which.jobs.is_empty() => jobs.bulk(which, BulkAction::Stop).await,
        Command::Stop { which } => jobs.switch(&which.jobs, "/stop", "stopped").await,
        Command::Trigger { job, param, address, follow } => {
            jobs.trigger(&job, Trigger { param, address }, follow).await
        }
        Command::Next { job, count } => jobs.next(&job, count).await,
    }
}

struct Jobs {
    client: Client,
    output: Output,
}

impl Jobs {
    async fn list(&self, list: List) -> Result<()> {
        let enabled = if list.started { Some(true) } else { list.stopped.then_some(false) };
        let call = Call::get("/v1/jobs")
            .query("app", list.app)
            .query("enabled", enabled)
            .query("text", list.text)
            .query("tag", list.tag)
            .query("handler", list.handler);
        let (jobs, more) = self.client.list::<JobView>(call, list.most.rows()).await?;
        if self.output == Output::Json {
            return terminal::say_json(&jobs);
        }
        let paint = Paint::stdout();
        let row = |job: &JobView| {
            let (state, mood) = state(job);
            vec![
                paint.cell(name(job), Mood::Plain),
                paint.cell(&job.body.app, Mood::Plain),
                paint.cell(&job.body.name, Mood::Plain),
                paint.cell(&job.schedule_text, Mood::Quiet),
                paint.cell(state, mood),
                paint.cell(terminal::local_or_dash(job.next_fire_at), Mood::Plain),
            ]
        };
        let heads = ["JOB", "APP", "NAME", "SCHEDULE", "STATE", "NEXT FIRE"];
        terminal::say(&terminal::table(&heads, jobs.iter().map(row)))?;
        list.most.hint(more);
        Ok(())
    }

    async fn show(&self, job: &str) -> Result<()> {
        let view = self.view(job).await?.0;
        match self.output {
            Output::Json => terminal::say_json(&view),
            Output::Table => terminal::say(&facts(&view)),
        }
    }

    /// Fetches a job and its revision.
    async fn view(&self, job: &str) -> Result<(JobView, String)> {
        let answer = self.client.send(Call::get(path("/v1/jobs/", job, ""))).await;
        let answer = answer.with_context(|| about(job))?;
        let revision = answer.header("etag").unwrap_or_default().to_owned();
        Ok((answer.read()?, revision))
    }

    async fn add(&self, key: &str, definition: &Definition, start: bool) -> Result<()> {
        let body = JobBody { enabled: Some(start), ..definition.body(key)? };
        match self.client.send(Call::get(path("/v1/jobs/", key, ""))).await {
            Ok(_) => bail!(
                "the job `{key}` already exists; change it with `tickwright job edit`, or choose another key"
            ),
            Err(trouble) if trouble.is(ProblemCode::NotFound) => {}
            Err(trouble) => return Err(trouble.into()),
        }
        let call = Call::put(path("/v1/jobs/", key, "")).json(&body);
        let view: JobView = self.client.fetch(call).await.with_context(|| about(key))?;
        let hint = if start {
            String::new()
        } else {
            format!("; start its schedule with: tickwright job start {key}")
        };
        self.done(&view, &format!("added{hint}"))?;
        self.look_for_handler(&view).await;
        Ok(())
    }

    /// Warns if no executor of the app is known to have the job's handler, which may be a typo. It is not an error,
    /// because a job may be created before its program is deployed.
    async fn look_for_handler(&self, job: &JobView) {
        let JobBody { app, handler, .. } = &job.body;
        let Ok(view) = self.client.fetch::<AppView>(Call::get(path("/v1/apps/", app, ""))).await else {
            return;
        };
        let mut known: Vec<_> = view.executors.iter().flat_map(|executor| &executor.handlers).collect();
        known.sort();
        known.dedup();
        if handler.is_empty() || known.is_empty() || known.contains(&handler) {
            return;
        }
        let known = known.iter().map(|known| format!("`{known}`")).collect::<Vec<_>>().join(", ");
        eprintln!(
            "note: no executor of {app} has reported a handler `{handler}`; reported handlers: {known}"
        );
    }

    async fn edit(&self, job: &str, definition: &Definition) -> Result<()> {
        if definition.is_empty() {
            bail!(
                "nothing to change; name a field, for example --cron '0 0/5 * * * ?'; `tickwright job edit \
                 --help` lists all fields"
            );
        }
        let (view, revision) = self.view(job).await?;
        let mut body = view.body.clone();
        if !definition.change(&mut body)? {
            return self.done(&view, "unchanged");
        }
        let call = Call::put(path("/v1/jobs/", job, "")).header("if-match", &revision).json(&body);
        let view: JobView = self.client.fetch(call).await.with_context(|| about(job))?;
        self.done(&view, "changed")?;
        self.look_for_handler(&view).await;
        Ok(())
    }

    async fn remove(&self, jobs: &[String], yes: bool) -> Result<()> {
        if !yes && !is_sure(&format!("delete {}?", jobs.join(", ")))? {
            bail!("nothing was deleted");
        }
        for job in jobs {
            let deleted = self.client.send(Call::delete(path("/v1/jobs/", job, ""))).await;
            deleted.with_context(|| about(job))?;
            if self.output == Output::Table {
                terminal::say(&format!("{job} deleted"))?;
            }
        }
        Ok(())
    }

    async fn switch(&self, jobs: &[String], verb: &str, done: &str) -> Result<()> {
        for job in jobs {
            let switched = self.client.fetch(Call::post(path("/v1/jobs/", job, verb))).await;
            let view: JobView = switched.with_context(|| about(job))?;
            self.done(&view, done)?;
        }
        Ok(())
    }

    /// Applies an action to all jobs that match, with one request.
    async fn bulk(&self, which: Which, action: BulkAction) -> Result<()> {
        let (verb, doing, done) = match action {
            BulkAction::Start => ("start", "starting", "started"),
            BulkAction::Stop => ("stop", "stopping", "stopped"),
            BulkAction::Delete | BulkAction::Move => ("delete", "deleting", "deleted"),
        };
        let Which { app, tag, text, handler, yes, .. } = which;
        let first = Call::get("/v1/jobs").query("limit", Some(1));
        let first = first.query("app", app.as_ref()).query("tag", tag.as_ref());
        let first = first.query("text", text.as_ref()).query("handler", handler.as_ref());
        let found: Page<JobView> = self.client.fetch(first).await?;
        let count = found.total.unwrap_or_default();
        if count == 0 {
            bail!("no job matches");
        }
        if !yes && !is_sure(&format!("{verb} {count} jobs?"))? {
            bail!("nothing was changed");
        }
        let filter = Some(JobFilter { app, tag, text, handler, ..JobFilter::default() });
        let bulk = Bulk { jobs: None, filter, action, app: None };
        let spinner = terminal::spinner(format!("{doing} {count} jobs"));
        let results: Vec<BulkResult> =
            self.client.fetch(Call::post("/v1/jobs/bulk").json(&bulk).patient()).await?;
        spinner.finish_and_clear();
        if self.output == Output::Json {
            return terminal::say_json(&results);
        }
        let rejected: Vec<_> =
            results.iter().filter_map(|result| Some((result.job, result.problem.as_ref()?))).collect();
        terminal::say(&format!("{} jobs {done}", results.len() - rejected.len()))?;
        for (job, problem) in rejected.iter().take(SHOWN_MAX) {
            eprintln!("id:{job} rejected: {}", problem.detail);
        }
        match rejected.len() {
            0 => Ok(()),
            rejected => bail!("{rejected} of {} jobs were rejected", results.len()),
        }
    }

    async fn trigger(&self, job: &str, trigger: Trigger, follow: bool) -> Result<()> {
        // If the response is lost, a repeated request returns the same run.
        let key = format!("{:016x}", fastrand::u64(..));
        let call = Call::post(path("/v1/jobs/", job, "/trigger")).json(&trigger);
        let call = call.header(IDEMPOTENCY_KEY, &key);
        let triggered: Triggered = self.client.fetch(call).await.with_context(|| about(job))?;
        if follow {
            return match log::follow(&self.client, triggered.run, 1).await? {
                Ending::Succeeded => Ok(()),
                Ending::Failed => bail!("run {} did not succeed", triggered.run),
            };
        }
        match self.output {
            Output::Json => terminal::say_json(&triggered),
            Output::Table => terminal::say(&format!(
                "{job} triggered as run {run}; follow its log with: tickwright run logs -f {run}",
                run = triggered.run
            )),
        }
    }

    async fn next(&self, job: &str, count: u16) -> Result<()> {
        let call = Call::get(path("/v1/jobs/", job, "/fires")).query("count", Some(count));
        let preview: Preview = self.client.fetch(call).await.with_context(|| about(job))?;
        if self.output == Output::Json {
            return terminal::say_json(&preview);
        }
        let Preview { schedule_text, zone, .. } = &preview;
        // A description that depends on the zone already contains its name.
        let place =
            if schedule_text.contains(zone.as_str()) { String::new() } else { format!(", time zone {zone}") };
        terminal::say(&format!("{schedule_text}{place}"))?;
        for fire in &preview.fires {
            let changed = if fire.clock_changed { "  (after a daylight saving change)" } else { "" };
            let holiday = fire.holiday.as_ref().map(|name| format!("  {name}")).unwrap_or_default();
            let assumed = if fire.is_assumed { "  (after the data of the work calendar)" } else { "" };
            terminal::say(&format!("  {}{holiday}{changed}{assumed}", fire.local))?;
        }
        if preview.fires.is_empty() {
            terminal::say("  no future fires")?;
        }
        if !preview.excluded.is_empty() {
            terminal::say("not on these times, because of the work calendar:")?;
        }
        for time in &preview.excluded {
            let holiday = time.holiday.as_ref().map(|name| format!("  {name}")).unwrap_or_default();
            let moved = time.moved_to.map(|at| format!("  (moved to {})", terminal::local(at)));
            terminal::say(&format!("  {}{holiday}{}", time.local, moved.unwrap_or_default()))?;
        }
        Ok(())
    }

    fn done(&self, view: &JobView, what: &str) -> Result<()> {
        match self.output {
            Output::Json => terminal::say_json(view),
            Output::Table => terminal::say(&format!("{} {what}", name(view))),
        }
    }
}

/// Context of an error message.
fn about(job: &str) -> String {
    format!("job `{job}`")
}

/// Key of a job, or `id:` and its id.
pub fn name(job: &JobView) -> String {
    job.key.clone().unwrap_or_else(|| format!("id:{}", job.id))
}

fn state(job: &JobView) -> (&'static str, Mood) {
    match (&job.problem, job.body.enabled) {
        (Some(_), _) => ("broken", Mood::Bad),
        (None, Some(true)) => ("started", Mood::Good),
        (None, _) => ("stopped", Mood::Quiet),
    }
}

/// Maximum number of fires, and how many of them have taken place.
fn fires(job: &JobView) -> String {
    match (job.body.max_fires, job.fires.unwrap_or_default()) {
        (None, _) => String::new(),
        (Some(max), fires) if fires >= max => format!("{max}, all of them have taken place"),
        (Some(max), fires) => format!("{max}, so far {fires}"),
    }
}

fn facts(job: &JobView) -> String {
    let JobBody { retry, timeout_ms, jitter_ms, .. } = job.body;
    let body = &job.body;
    let millis = |millis: u64| duration::in_words(i64::try_from(millis).unwrap_or(i64::MAX));
    let instant = |at: Option<_>| at.map(terminal::local).unwrap_or_default();
    let script = body.script.as_ref();
    let retries = if retry.count == 0 { String::new() } else { retry.count.to_string() };
    terminal::facts([
        ("job", name(job)),
        ("id", job.id.to_string()),
        ("app", body.app.clone()),
        ("name", body.name.clone()),
        ("state", state(job).0.into()),
        ("problem", job.problem.clone().unwrap_or_default()),
        ("schedule", job.schedule_text.clone()),
        ("next fire", instant(job.next_fire_at)),
        ("last fire", instant(job.last_fire_at)),
        ("valid from", instant(body.valid_from)),
        ("valid until", instant(body.valid_until)),
        ("max fires", fires(job)),
        ("handler", body.handler.clone()),
        ("param", body.param.clone()),
        ("language", script.map(|script| terminal::word(&script.language)).unwrap_or_default()),
        ("script", script.map(|script| script.source.clone()).unwrap_or_default()),
        ("route", body.route.to_string()),
        ("block", body.block.to_string()),
        ("overlap", terminal::word(&body.overlap)),
        ("delivery", terminal::word(&body.delivery)),
        ("retries", retries),
        ("timeout", timeout_ms.map(millis).unwrap_or_default()),
        ("jitter", if jitter_ms == 0 { String::new() } else { millis(jitter_ms) }),
        ("children", body.children.join(", ")),
        ("alert", if body.alert { "yes".into() } else { String::new() }),
        ("alert to", body.alert_to.join(", ")),
        ("author", body.author.clone()),
        ("tags", body.tags.join(", ")),
        ("overridden", job.overridden.join(", ")),
        ("changed", instant(job.updated_at)),
    ])
}
