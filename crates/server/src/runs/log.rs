//! Reads a run's log by lines: from its executor while that answers, else from the stored copy.
//!
//! Lines keep the numbers that the executor gave them in both cases. So a client that reads page by page gets every
//! line once and in order, even if the executor disappears between two pages.

use std::sync::Arc;

use engine::{AppId, RunId};
use protocol::v1::ProblemCode;
use protocol::xxl::{self, texts};
use store::{Database, RunLog, RunRow};
use timer::Timestamp;

use super::follow::Following;
use crate::centre::ServerState;
use crate::executors::Directory;
use crate::outbound::{CallError, Callee, Calls, Outbound};
use crate::request_error::RequestError;

/// A page of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogPage {
    /// The first line requested, counted from 1.
    pub from: u32,
    /// The last line returned; less than `from` if there is none yet. The next page begins after it.
    pub to: u32,
    /// The lines, each with its line ending.
    pub text: String,
    /// Whether this is the end of the log: the run has finished, and its executor has no more lines or marks these
    /// as the last.
    pub end: bool,
}

/// Reads logs for clients.
#[derive(Clone)]
pub struct LogReader {
    database: Arc<Database>,
    directory: Arc<Directory>,
    outbound: Outbound,
    following: Arc<Following>,
}

impl LogReader {
    /// Reader of the logs that a node can reach.
    pub fn of(node: &ServerState) -> LogReader {
        LogReader {
            database: node.database.clone(),
            directory: node.directory.clone(),
            outbound: node.outbound.clone(),
            following: node.following.clone(),
        }
    }

    /// Returns a run's log from a line on: from its executor, or as far as it was read while the executor answered.
    pub async fn page(&self, run: &RunRow, from: u32) -> Result<LogPage, RequestError> {
        let from = from.max(1);
        let over = run.state.is_over();
        if over
            && let Some(kept) = self.database.kept_run_log(run.id).await?
            && kept.complete
        {
            return Ok(kept_page(&kept, from));
        }
        let location = location_of(run);
        let source = Source { directory: &self.directory, outbound: &self.outbound, location: &location };
        let why = match source.page(from).await {
            Ok(page) => return Ok(LogPage { end: over && (page.end || page.to < from), ..page }),
            Err(why) => why,
        };
        let read = match self.following.read_so_far(run.id).await {
            None => self.database.kept_run_log(run.id).await?,
            read => read,
        };
        let read = read.ok_or(why)?;
        Ok(LogPage { end: over, ..kept_page(&read, from) })
    }
}

/// Location of a run's log.
#[derive(Clone, Debug)]
pub struct LogLocation {
    /// Id of the run.
    pub run: RunId,
    /// App that the executor is registered for.
    pub app: AppId,
    /// Address of the executor, if the run was sent to one.
    pub address: Option<String>,
    /// The time that was sent to the executor with the run.
    pub triggered_at: Timestamp,
}

impl LogLocation {
    /// Address of the executor; empty if the run was sent to none.
    pub fn executor(&self) -> &str {
        self.address.as_deref().unwrap_or_default()
    }
}

/// Returns the location of a run's log according to its row.
pub fn location_of(run: &RunRow) -> LogLocation {
    let exact = run.open.as_ref().map(|open| open.scheduled_at);
    LogLocation {
        run: run.id,
        app: run.app,
        address: run.address.clone(),
        triggered_at: exact.or(run.triggered_at).unwrap_or_default(),
    }
}

/// The executor that has a run's log.
pub struct Source<'a> {
    /// Registry of executors.
    pub directory: &'a Directory,
    /// Client for executors.
    pub outbound: &'a Outbound,
    /// Location of the log.
    pub location: &'a LogLocation,
}

impl Source<'_> {
    /// Returns lines from `from` on, as many as the executor sends at a time. Only the executor that the run was
    /// sent to is called, and only while it is registered for the app, because the request carries the app's token.
    pub async fn page(&self, from: u32) -> Result<LogPage, RequestError> {
        let callee = self.callee()?;
        let page = self.outbound.log(&callee, self.location.run.0, self.triggered_at(), from).await;
        let page = page.map_err(|error| self.not_given(&callee, &error))?;
        match page.log_content.trim() == texts::NO_LOG_FILE {
            true => Err(self.unread(format!("the executor {} has no log of this run", callee.address))),
            false => {
                let page = given(page, from);
                Ok(LogPage { text: self.directory.secrets().mask(page.text), ..page })
            }
        }
    }

    /// Returns the number of the last line, if the executor sends it.
    pub async fn last_line(&self) -> Result<Option<u32>, RequestError> {
        let callee = self.callee()?;
        let last = self.outbound.last_line(&callee, self.location.run.0, self.triggered_at()).await;
        last.map_err(|error| self.not_given(&callee, &error))
    }

    fn triggered_at(&self) -> i64 {
        self.location.triggered_at.as_millis()
    }

    fn callee(&self) -> Result<Callee, RequestError> {
        let LogLocation { app, address, .. } = self.location;
        let unsent = || RequestError::not_found("the run was not sent to an executor, so it has no log");
        let address = address.as_deref().ok_or_else(unsent)?;
        let is_there = self.directory.sightings(*app).iter().any(|seen| seen.address == address);
        let to = self.directory.destination(*app).filter(|_| is_there);
        let to = to.ok_or_else(|| {
            self.unread(format!("the executor {address}, which has the log, is no longer registered"))
        })?;
        to.callee(address)
            .ok_or_else(|| self.unread(format!("`{address}` is not the address of an executor")))
    }

    fn not_given(&self, callee: &Callee, error: &CallError) -> RequestError {
        self.unread(format!("failed to read the log from the executor {}: {error}", callee.address))
    }

    /// The executor of the run does not send the log.
    fn unread(&self, why: String) -> RequestError {
        let code = match self.directory.sightings(self.location.app).is_empty() {
            true => ProblemCode::AppOffline,
            false => ProblemCode::ExecutorUnreachable,
        };
        RequestError::new(code, why)
    }
}

/// Converts an executor's page. It counts as beginning at the requested line, regardless of the number in the reply.
fn given(page: xxl::LogPage, from: u32) -> LogPage {
    let to = u32::try_from(page.to_line_num).unwrap_or(0);
    LogPage { from, to, text: page.log_content, end: page.is_end }
}

/// Returns a stored log from a line on. It is all there is, so it is marked as the end.
fn kept_page(kept: &RunLog, from: u32) -> LogPage {
    let first = if kept.complete { 1 } else { left_out(&kept.text).unwrap_or(1) };
    let (mut text, mut last) = (String::new(), first.saturating_sub(1));
    for line in kept.text.split_terminator('\n') {
        last = last.saturating_add(1);
        if last >= from {
            text.push_str(line);
            text.push('\n');
        }
    }
    LogPage { from, to: last, text, end: true }
}

/// The line that replaces the first `lines` lines when they were dropped. It has the number of the last of them, so
/// that the lines after it keep theirs.
pub fn left_out_line(lines: u32) -> String {
    format!("{LEFT_OUT}{lines}]\n")
}

fn left_out(text: &str) -> Option<u32> {
    text.lines().next()?.strip_prefix(LEFT_OUT)?.strip_suffix(']')?.parse().ok()
}

const LEFT_OUT: &str = "[too long to be kept whole: left out are the lines up to ";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_log_is_read_from_a_line_on_and_then_is_at_its_end() {
        let check = |text: &str, complete, from, expected: &str, to| {
            let page = kept_page(&RunLog { text: text.into(), complete }, from);
            assert_eq!(page, LogPage { from, to, text: expected.into(), end: true }, "{text} from {from}");
        };
        check("one\ntwo\nthree\n", true, 1, "one\ntwo\nthree\n", 3);
        check("one\ntwo\nthree\n", true, 3, "three\n", 3);
        check("one\ntwo\nthree", true, 4, "", 3);
        check("", true, 1, "", 0);
        let cut = format!("{}six\nseven\n", left_out_line(5));
        check(&cut, false, 1, &cut, 7);
        check(&cut, false, 6, "six\nseven\n", 7);
        check(&cut, false, 7, "seven\n", 7);
        // A job may write that line itself.
        check(&cut, true, 2, "six\nseven\n", 3);
    }
}
