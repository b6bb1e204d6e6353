//! Keeps the logs of runs that are over, so that they outlive the executors that wrote them.
//!
//! The engine says which runs are over; it never waits for us. A moment later the log is fetched page by page, a few at
//! a time and no more than [`PER_SECOND`], and written down with others in one transaction. What cannot be kept stays
//! where it is: with its executor.

use std::sync::Arc;
use std::time::Duration;

use engine::{Outcome, RunId};
use store::{Database, RunLog, RunRow};
use timer::Clock;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

use super::log::{LogPage, Source, left_out_line};
use crate::executors::Directory;
use crate::metrics::Metrics;
use crate::outbound::Outbound;
use crate::refusal::Refusal;

/// Where runs that are over are told.
#[derive(Clone)]
pub struct Ended(mpsc::Sender<RunId>);

/// Runs that are over, on their way to the keeper.
pub fn ended() -> (Ended, mpsc::Receiver<RunId>) {
    let (sender, receiver) = mpsc::channel(WAITING_MAX);
    (Ended(sender), receiver)
}

impl Ended {
    /// A run is over. Never waits: when there are too many, the logs of failed runs are the last to be given up. False
    /// if this one is.
    pub fn tell(&self, run: RunId, outcome: &Outcome) -> bool {
        let has_log = !matches!(outcome, Outcome::Refused(_) | Outcome::Dropped(..));
        let is_wanted = match outcome {
            Outcome::Succeeded(_) => self.0.capacity() > WAITING_MAX / 2,
            _ => true,
        };
        !has_log || is_wanted && self.0.try_send(run).is_ok()
    }
}

/// Fetches logs and keeps them.
#[derive(Clone)]
pub struct LogKeeper {
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Remembers.
    pub database: Arc<dyn Database>,
    /// Who is there.
    pub directory: Arc<Directory>,
    /// Reaches them.
    pub outbound: Outbound,
    /// Counts.
    pub metrics: Arc<Metrics>,
}

impl LogKeeper {
    /// Keeps the logs of runs as they end, for ever.
    pub async fn run(self, mut ended: mpsc::Receiver<RunId>) {
        let (fetched, waiting) = mpsc::channel(AT_ONCE);
        let writer = self.clone();
        let (calls, mut tasks) = (Arc::new(Semaphore::new(AT_ONCE)), JoinSet::new());
        tasks.spawn(async move { writer.write_loop(waiting).await });
        while let Some(run) = ended.recv().await {
            if tasks.len() > WAITING_MAX {
                tasks.join_next().await;
            }
            while tasks.try_join_next().is_some() {}
            let (keeper, calls, fetched) = (self.clone(), Arc::clone(&calls), fetched.clone());
            tasks.spawn(async move {
                match keeper.fetch(run, &calls).await {
                    Ok(Some(log)) => drop(fetched.send((run, log)).await),
                    Ok(None) => {}
                    Err(why) => {
                        keeper.metrics.log_kept("unreachable", 1);
                        tracing::debug!(%run, %why, "the log of a run is not kept; it stays with its executor");
                    }
                }
            });
            self.clock.sleep(Duration::from_secs(1) / PER_SECOND).await;
        }
    }

    /// A run's log, once its executor has had the time to write the last lines. None if there is none.
    async fn fetch(&self, id: RunId, calls: &Semaphore) -> Result<Option<RunLog>, Refusal> {
        let mut tried = 0;
        loop {
            self.clock.sleep(PAUSES[tried]).await;
            let _call = calls.acquire().await.expect("the semaphore is never closed");
            let run = match self.database.run(id).await {
                Ok(Some(run)) if run.address.is_some() => run,
                Ok(_) => return Ok(None),
                Err(error) if error.is_transient() && tried + 1 < PAUSES.len() => {
                    tried += 1;
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            match self.collect(&run).await {
                Err(_) if tried + 1 < PAUSES.len() => tried += 1,
                done => return done,
            }
        }
    }

    /// Reads a log to its end. Of one that is too long, the end is what is wanted: lines in between are passed over.
    async fn collect(&self, run: &RunRow) -> Result<Option<RunLog>, Refusal> {
        let source = Source { directory: &self.directory, outbound: &self.outbound, run };
        let mut tail = Tail::default();
        for pages in 0..PAGES_MAX {
            let next = tail.last + 1;
            let page = source.page(next).await?;
            if page.to < next {
                return Ok((tail.last > 0).then(|| tail.into_log(true)));
            }
            tail.add(&page);
            if page.end {
                return Ok(Some(tail.into_log(true)));
            }
            if pages == 0 && tail.bytes_seen > KEPT_MAX / 4 {
                tail.skip_to(source.last_line().await?.unwrap_or_default());
            }
        }
        Ok(Some(tail.into_log(false)))
    }

    /// Writes logs down, those together that come together.
    async fn write_loop(&self, mut fetched: mpsc::Receiver<(RunId, RunLog)>) {
        while let Some(first) = fetched.recv().await {
            let (mut logs, mut bytes) = (vec![first], 0);
            bytes += logs[0].1.text.len();
            while bytes < BATCH_BYTES
                && let Ok(next) = fetched.try_recv()
            {
                bytes += next.1.text.len();
                logs.push(next);
            }
            self.write(&logs).await;
        }
    }

    async fn write(&self, logs: &[(RunId, RunLog)]) {
        for pause in PAUSES {
            match self.database.keep_run_logs(logs).await {
                Ok(kept) => return self.metrics.log_kept("kept", kept),
                Err(error) if error.is_transient() => {
                    tracing::warn!(%error, logs = logs.len(), "could not write down the logs of runs; trying again in {pause:?}");
                    self.clock.sleep(pause).await;
                }
                Err(error) => {
                    tracing::error!(%error, "could not write down the logs of runs; they stay with their executors");
                    break;
                }
            }
        }
        self.metrics.log_kept("not_written", logs.len());
    }
}

/// The last lines of a log, as it is read.
#[derive(Default)]
struct Tail {
    text: String,
    /// The number of the last line read,
    last: u32,
    /// and how many of the first are not here.
    left_out: u32,
    bytes_seen: usize,
}

impl Tail {
    /// Adds the page after the last.
    fn add(&mut self, page: &LogPage) {
        self.bytes_seen += page.text.len();
        self.text.push_str(&page.text);
        if !self.text.ends_with('\n') {
            self.text.push('\n');
        }
        self.last = page.to;
        self.cut();
    }

    /// Passes over lines that would be cut off anyway, judging by how long lines are so far.
    fn skip_to(&mut self, end: u32) {
        let line = (self.bytes_seen / self.last.max(1) as usize).max(1);
        let wanted = u32::try_from(2 * KEPT_MAX / line).unwrap_or(u32::MAX);
        let start = end.saturating_sub(wanted);
        if start > self.last {
            self.text.clear();
            (self.last, self.left_out) = (start, start);
        }
    }

    /// Whole lines go from the front until the rest is short enough.
    fn cut(&mut self) {
        let Some(beyond) = self.text.len().checked_sub(KEPT_MAX).filter(|beyond| *beyond > 0) else { return };
        let line_end = self.text.as_bytes()[beyond..].iter().position(|byte| *byte == b'\n');
        let mut cut = line_end.map_or(self.text.len(), |end| beyond + end + 1);
        if cut == self.text.len() {
            // The last line alone is too long: its end is kept in its place.
            cut = self.text.ceil_char_boundary(beyond);
            self.left_out = self.last - 1;
        } else {
            let lines = self.text.as_bytes()[..cut].iter().filter(|byte| **byte == b'\n').count();
            self.left_out += u32::try_from(lines).unwrap_or(u32::MAX);
        }
        self.text.drain(..cut);
    }

    fn into_log(self, at_its_end: bool) -> RunLog {
        let mark = if self.left_out > 0 { left_out_line(self.left_out) } else { String::new() };
        let rest = if at_its_end { "" } else { "[what follows is not kept]\n" };
        RunLog { complete: self.left_out == 0 && at_its_end, text: format!("{mark}{}{rest}", self.text) }
    }
}

/// Bytes that are kept of a log: some thousand lines, the last ones.
const KEPT_MAX: usize = 256 * 1024;

/// Runs whose logs wait to be fetched. Half of the place is for those that failed.
const WAITING_MAX: usize = 4_096;

/// Logs fetched at the same time.
const AT_ONCE: usize = 4;

/// Logs fetched each second: what is left of two processors goes to firing.
const PER_SECOND: u32 = 200;

/// Before the first try, since an executor may add a line after its result was taken, and before each other.
const PAUSES: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(30)];

/// Pages read of one log. With the lines in between passed over, even a log of gigabytes has fewer.
const PAGES_MAX: usize = 16;

/// Bytes of logs written in one transaction: it commits in milliseconds.
const BATCH_BYTES: usize = 512 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn page(from: u32, lines: u32, width: usize) -> LogPage {
        let text = (from..from + lines).map(|line| format!("{line:0width$}\n")).collect();
        LogPage { from, to: from + lines - 1, text, end: false }
    }

    #[test]
    fn a_short_log_is_kept_as_it_is() {
        let mut tail = Tail::default();
        tail.add(&page(1, 3, 1));
        tail.add(&LogPage { from: 4, to: 4, text: "no end".into(), end: false });
        assert_eq!(tail.into_log(true), RunLog { text: "1\n2\n3\nno end\n".into(), complete: true });
    }

    #[test]
    fn of_a_long_log_the_last_lines_are_kept_and_the_mark_counts_the_others() {
        let mut tail = Tail::default();
        let width = KEPT_MAX / 100;
        tail.add(&page(1, 60, width));
        tail.add(&page(61, 60, width));
        let log = tail.into_log(true);
        assert!(!log.complete && log.text.len() <= KEPT_MAX + 100);
        let mut lines = log.text.lines();
        assert_eq!(lines.next(), Some(left_out_line(21).trim_end()));
        let rest: Vec<u32> = lines.map(|line| line.parse().unwrap()).collect();
        assert_eq!(rest, (22..=120).collect::<Vec<_>>());
    }

    #[test]
    fn lines_that_would_be_cut_off_are_passed_over() {
        let mut tail = Tail::default();
        tail.add(&page(1, 100, 999));
        tail.skip_to(1_000_000);
        let next = tail.last + 1;
        assert!((999_000..1_000_000).contains(&next), "{next}");
        tail.add(&page(next, 5, 999));
        let log = tail.into_log(false);
        assert!(log.text.starts_with(&left_out_line(next - 1)), "{}", &log.text[..80]);
        assert!(log.text.ends_with("not kept]\n"));

        let mut short = Tail::default();
        short.add(&page(1, 100, 999));
        short.skip_to(150);
        assert_eq!((short.last, short.left_out), (100, 0), "there is nothing to pass over");
    }

    #[test]
    fn a_single_line_that_is_too_long_is_cut_between_letters() {
        let mut tail = Tail::default();
        tail.add(&page(1, 2, 1));
        tail.add(&LogPage { from: 3, to: 3, text: "字".repeat(KEPT_MAX), end: false });
        let log = tail.into_log(true);
        assert!(log.text.starts_with(&left_out_line(2)) && log.text.ends_with("字\n"));
    }
}
