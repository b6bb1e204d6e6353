//! Three processes share one database, without a server: each is its own scheduling centre, and one is killed.
//!
//! ```text
//! cargo run --release -p tickwright-examples --example embedded [DATABASE]
//! ```
//!
//! DATABASE is `sqlite:FILE?shared=true` (default: a new file), `postgres://…` or `mysql://…`. Twenty jobs fire
//! five times per second each. Every run appends one line to a journal when it begins. After a while one process is
//! killed with SIGKILL; at the end the journal alone shows which runs were executed, lost or duplicated.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use cron::{Schedule, Timestamp};
use engine::embedded::{Context, Handlers};
use engine::policy::{Backoff, Misfire, Retry};
use engine::{JobId, JobSpec, Store};
use timer::SystemClock;

const JOBS: usize = 20;
const PERIOD: Duration = Duration::from_millis(200);
const BEFORE_THE_KILL: Duration = Duration::from_secs(5);
const AFTER_THE_KILL: Duration = Duration::from_secs(7);

#[tokio::main]
async fn main() -> Result<()> {
    tracing_subscriber::fmt()
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "error".into()),
        )
        .with_writer(std::io::stderr)
        .init();
    if let Ok(name) = std::env::var("TICKWRIGHT_EXAMPLE_WORKER") {
        return work(&name).await;
    }
    let folder = std::env::temp_dir().join(format!("tickwright-embedded-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let outcome = supervise(&folder).await;
    std::fs::remove_dir_all(&folder)?;
    outcome
}

/// One of the three processes: handlers and scheduling centre in one. Ends when its standard input is closed.
async fn work(name: &str) -> Result<()> {
    let journal = PathBuf::from(std::env::var("TICKWRIGHT_EXAMPLE_JOURNAL")?);
    let store = open(&std::env::var("TICKWRIGHT_EXAMPLE_DATABASE")?).await?;
    let centre = Handlers::new().with("count", move |context| count(journal.clone(), context)).into_centre(
        name,
        Arc::new(SystemClock::new()),
        store,
    );
    centre
        .run(async {
            let _ =
                tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink()))
                    .await;
        })
        .await;
    Ok(())
}

/// The handler: appends a line to the journal in one write, then works for a short time.
async fn count(journal: PathBuf, context: Context) -> Result<String, String> {
    let line = format!("{} {} {}\n", context.param, context.scheduled_at.as_millis(), context.attempt);
    let written = OpenOptions::new()
        .append(true)
        .create(true)
        .open(&journal)
        .and_then(|mut file| file.write_all(line.as_bytes()));
    written.map_err(|error| error.to_string())?;
    tokio::time::sleep(Duration::from_millis(100)).await;
    Ok("counted".into())
}

async fn supervise(folder: &Path) -> Result<()> {
    let url = match std::env::args().nth(1) {
        Some(url) => url,
        None => format!("sqlite:{}?shared=true", folder.join("embedded.db").display()),
    };
    let journal = folder.join("journal");
    let store = open(&url).await?;
    // An engine that is not run: it only adds, starts and stops jobs.
    let control =
        Handlers::new().into_centre("supervisor", Arc::new(SystemClock::new()), store.clone()).engine();

    let app = store.ensure_app("embedded-example").await?;
    let mut started: BTreeMap<JobId, Timestamp> = BTreeMap::new();
    let mut workers = vec![
        worker("one", &url, &journal)?,
        worker("two", &url, &journal)?,
        worker("three", &url, &journal)?,
    ];
    for number in 0..JOBS {
        let anchor = Timestamp::from_millis(number as i64 * 10);
        let mut spec =
            JobSpec::new(app, format!("count {number}"), Schedule::fixed_rate(anchor, PERIOD)?, "count");
        // Runs that the killed process had begun are retried; those it had not begun are executed late.
        spec.retry = Retry { count: 3, backoff: Backoff::Fixed { delay: Duration::ZERO } };
        spec.misfire = Misfire::FireAll { window: Duration::from_secs(60), max: 1000 };
        let job = control.create(&spec).await?;
        spec.param = job.to_string();
        control.edit(job, spec, None).await?;
        started.insert(job, control.start(job).await?.at);
    }
    println!("{JOBS} jobs fire every {PERIOD:?} on three processes, which share {}", without_password(&url));

    tokio::time::sleep(BEFORE_THE_KILL).await;
    let mut killed = workers.swap_remove(1);
    println!("process two (pid {}) is killed with SIGKILL", killed.id());
    let killing = killed.kill();
    killed.wait()?;
    killing?;
    tokio::time::sleep(AFTER_THE_KILL).await;

    let mut due: BTreeMap<(JobId, i64), Seen> = BTreeMap::new();
    for (job, from) in &started {
        let until = control.stop(*job).await?.at;
        let schedule = store.job(*job).await?.context("the job is there")?.spec.schedule;
        due.extend(
            schedule
                .iter_from(*from)
                .take_while(|at| *at <= until)
                .map(|at| ((*job, at.as_millis()), Seen::default())),
        );
    }
    until_over(&*store, started.keys().copied()).await?;
    for mut worker in workers {
        drop(worker.stdin.take());
        worker.wait()?;
    }
    let unexpected = read_journal(&journal, &mut due)?;
    report(&due, unexpected)
}

/// Journal entries of one scheduled time.
#[derive(Default)]
struct Seen {
    /// How often each attempt began, by attempt number.
    attempts: BTreeMap<u32, u32>,
}

fn read_journal(journal: &Path, due: &mut BTreeMap<(JobId, i64), Seen>) -> Result<usize> {
    let mut unexpected = 0;
    for line in std::fs::read_to_string(journal)?.lines() {
        let mut words = line.split(' ').map(str::parse::<i64>);
        let (Some(Ok(job)), Some(Ok(at)), Some(Ok(attempt))) = (words.next(), words.next(), words.next())
        else {
            bail!("the journal has a torn line: {line}");
        };
        match due.get_mut(&(JobId(job), at)) {
            Some(seen) => *seen.attempts.entry(attempt as u32).or_default() += 1,
            None => unexpected += 1,
        }
    }
    Ok(unexpected)
}

fn report(due: &BTreeMap<(JobId, i64), Seen>, unexpected: usize) -> Result<()> {
    let run = due.values().filter(|seen| !seen.attempts.is_empty()).count();
    let lost = due.len() - run;
    let doubled = due.values().filter(|seen| seen.attempts.values().any(|times| *times > 1)).count();
    let again = due.values().filter(|seen| seen.attempts.keys().any(|attempt| *attempt > 1)).count();
    println!(
        "fires due {}, run {run}, lost {lost}, doubled {doubled}, not due but run {unexpected}",
        due.len()
    );
    println!("({again} were under way in the killed process and were tried again elsewhere)");
    if lost + doubled + unexpected > 0 {
        bail!("this must never happen; please report it");
    }
    Ok(())
}

/// Waits until no run of the jobs is open: runs of the killed process are found within its lease of 3 s.
async fn until_over(store: &dyn Store, jobs: impl Iterator<Item = JobId>) -> Result<()> {
    for job in jobs {
        let mut tries = 0;
        while !all_over(store, job).await? {
            tries += 1;
            if tries > 300 {
                bail!("runs of job {job} are still open after 30 s");
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    Ok(())
}

async fn all_over(store: &dyn Store, job: JobId) -> Result<bool> {
    let mut after = None;
    loop {
        let runs = store.runs(job, after, 1000).await?;
        if runs.iter().any(|run| !run.state.is_over()) {
            return Ok(false);
        }
        match runs.last() {
            Some(last) => after = Some(last.id),
            None => return Ok(true),
        }
    }
}

async fn open(url: &str) -> Result<Arc<dyn Store>> {
    Ok(store::open(url, store::Options::default()).await?)
}

fn worker(name: &str, url: &str, journal: &Path) -> Result<Child> {
    Ok(Command::new(std::env::current_exe()?)
        .env("TICKWRIGHT_EXAMPLE_WORKER", name)
        .env("TICKWRIGHT_EXAMPLE_DATABASE", url)
        .env("TICKWRIGHT_EXAMPLE_JOURNAL", journal)
        .stdin(Stdio::piped())
        .spawn()?)
}

fn without_password(url: &str) -> &str {
    url.rsplit_once('@').map_or(url, |(_, rest)| rest)
}
