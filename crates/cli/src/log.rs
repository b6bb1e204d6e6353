//! Prints a run's log: the lines written so far, or live until the run ends.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use protocol::v1::{LogPage, Page, RunState, RunView};

use crate::api::{Call, Client};
use crate::duration;
use crate::run;
use crate::terminal;

/// Result of a run that was followed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The run succeeded.
    Succeeded,
    /// The run did not succeed.
    Failed,
}

/// Prints the existing lines of a log, starting at line `from`.
pub async fn print(client: &Client, run: i64, mut from: u64) -> Result<()> {
    for _ in 0..PAGES_MAX {
        let call = Call::get(format!("/v1/runs/{run}/log")).query("from", Some(from));
        let page: LogPage = client.fetch(call).await.with_context(|| format!("run {run}"))?;
        if let Some(problem) = page.problem {
            bail!("run {run} has no log: {}", problem.detail);
        }
        show(&page.text)?;
        // For a run that is still active, these are all lines so far.
        if page.end || page.next <= from {
            return Ok(());
        }
        from = page.next;
    }
    bail!("the log of run {run} has more lines; continue with: tickwright run logs {run} --from {from}")
}

/// Maximum number of pages printed: a bound for an executor with an endless log.
const PAGES_MAX: u32 = 10_000;

/// Prints a log while it is written, until the run is finished, and returns its result.
pub async fn follow(client: &Client, run: i64, from: u64) -> Result<Ending> {
    let mut tail = Tail { next: from, is_over: false, in_vain: 0, told: None };
    let live = |next| Call::get(format!("/v1/runs/{run}/log/live")).query("from", Some(next));
    let first = client.open(live(from)).await.with_context(|| format!("run {run}"))?;
    tail.read(first).await?;
    let mut in_vain = 0;
    while !tail.is_over {
        if in_vain == RECONNECTS {
            bail!(
                "lost the connection to the log of run {run}; continue with: tickwright run logs -f {run} \
                 --from {}",
                tail.next
            );
        }
        tokio::time::sleep(RECONNECT_AFTER).await;
        in_vain = match client.open(live(tail.next)).await {
            Ok(more) => {
                tail.read(more).await?;
                0
            }
            Err(_) => in_vain + 1,
        };
    }
    let view = over(client, run).await?;
    let took = view.took_ms.map(|took| format!(" after {}", duration::in_words(took))).unwrap_or_default();
    let message = run::message(&view).lines().next().unwrap_or_default();
    let message = if message.is_empty() { String::new() } else { format!(": {message}") };
    eprintln!("run {run} {}{took}{message}", terminal::word(&view.state).replace('_', " "));
    Ok(if view.state == RunState::Succeeded { Ending::Succeeded } else { Ending::Failed })
}

/// Enough reconnects for a restart of the scheduling centre.
const RECONNECTS: u32 = 10;
const RECONNECT_AFTER: Duration = Duration::from_secs(1);

/// Read position in a log.
struct Tail {
    next: u64,
    is_over: bool,
    /// Number of consecutive pages with an error instead of lines.
    in_vain: u32,
    /// Last error printed, so that it is not repeated.
    told: Option<String>,
}

impl Tail {
    /// Reads server-sent pages until there are no more or the connection breaks.
    async fn read(&mut self, mut body: Incoming) -> Result<()> {
        let mut rest = Vec::new();
        while let Ok(Some(Ok(frame))) = tokio::time::timeout(SILENCE, body.frame()).await {
            let Ok(data) = frame.into_data() else { continue };
            rest.extend_from_slice(&data);
            while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = rest.drain(..=end).collect();
                self.line(&line)?;
            }
            if rest.len() > LINE_MAX {
                bail!("the scheduling centre sent a log line that is too long");
            }
        }
        Ok(())
    }

    fn line(&mut self, line: &[u8]) -> Result<()> {
        let Some(json) = line.strip_prefix(b"data:") else { return Ok(()) };
        let page: LogPage =
            serde_json::from_slice(json).context("the scheduling centre sent an invalid log page")?;
        show(&page.text)?;
        self.next = self.next.max(page.next);
        self.is_over = page.end;
        let Some(problem) = page.problem.map(|problem| problem.detail) else {
            self.in_vain = 0;
            return Ok(());
        };
        self.in_vain += 1;
        // A run that never started has no log; its result explains why.
        let is_lasting = self.in_vain > NOT_YET && !self.is_over;
        if is_lasting && self.told.as_ref() != Some(&problem) {
            eprintln!("no log lines yet: {problem}");
            self.told = Some(problem);
        }
        Ok(())
    }
}

/// A run exists up to two seconds before its executor receives it, and the server polls for lines every second.
const NOT_YET: u32 = 3;

/// The server sends keep-alive messages more often than this.
const SILENCE: Duration = Duration::from_secs(60);

/// Larger than any page of a log.
const LINE_MAX: usize = 64 * 1024 * 1024;

/// Prints lines and adds a missing final line break.
fn show(text: &str) -> Result<()> {
    match text {
        "" => Ok(()),
        text if text.ends_with('\n') => terminal::write(text),
        text => terminal::say(text),
    }
}

/// Fetches a run once its end is recorded, shortly after the end of its log.
async fn over(client: &Client, run: i64) -> Result<RunView> {
    for _ in 0..RECORD_LOOKS {
        let view = run::fetch(client, run).await?;
        if view.ended_at.is_some() || is_over(view.state) {
            return Ok(view);
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    run::fetch(client, run).await
}

/// Whether a run in this state has ended.
pub fn is_over(state: RunState) -> bool {
    use RunState::{Cancelled, Failed, Lost, Succeeded, TimedOut};
    matches!(state, Succeeded | Failed | TimedOut | Lost | Cancelled)
}

/// An executor that cannot reach the scheduling centre reports later than this limit.
const RECORD_LOOKS: u32 = 40;
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// Returns the newest run of a job; waits for the first one until interrupted.
pub async fn newest(client: &Client, job: &str) -> Result<i64> {
    let mut told = false;
    loop {
        if let Some(run) = latest(client, job).await?.first() {
            return Ok(run.id);
        }
        if !told {
            eprintln!("job `{job}` has no runs yet; waiting for the first one");
            told = true;
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// Returns the newest run of a job that has started, if any.
pub async fn newest_begun(client: &Client, job: &str) -> Result<Option<i64>> {
    let runs = latest(client, job).await?;
    let is_ahead = |run: &&RunView| matches!(run.state, RunState::Waiting | RunState::Claimed);
    Ok(runs.iter().find(|run| !is_ahead(run)).map(|run| run.id))
}

/// Returns the latest runs of a job, newest first.
async fn latest(client: &Client, job: &str) -> Result<Vec<RunView>> {
    let call = Call::get("/v1/runs").query("job", Some(job)).query("limit", Some(LATEST));
    let page: Page<RunView> = client.fetch(call).await?;
    if page.items.is_empty() {
        // An empty list may also mean that the job does not exist.
        let call = Call::get(crate::api::path("/v1/jobs/", job, ""));
        client.send(call).await.with_context(|| format!("job `{job}`"))?;
    }
    Ok(page.items)
}

/// More than the runs claimed ahead of time, even for a job that fires ten times a second.
const LATEST: usize = 50;
