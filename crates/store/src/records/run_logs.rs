//! Logs of runs, stored so that they outlive the executors that wrote them.

use std::collections::{BTreeMap, BTreeSet};

use engine::{RunId, StoreError};
use timer::Timestamp;

use crate::database::{Database, transaction};
use crate::session::{Lock, Session, SessionError, Value};
use crate::table::table;

impl Database {
    /// Stores the logs of runs, replacing stored ones; returns how many of the runs exist.
    pub async fn keep_run_logs(&self, logs: &[(RunId, RunLog)]) -> Result<usize, StoreError> {
        transaction!(self, s => keep_run_logs(s, logs))
    }

    /// Returns the stored log of a run.
    pub async fn kept_run_log(&self, run: RunId) -> Result<Option<RunLog>, StoreError> {
        transaction!(self, s => kept_run_log(s, run))
    }
}

/// Stored log of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunLog {
    /// The text.
    pub text: String,
    /// Whether the text is the complete log.
    pub complete: bool,
}

impl RunLog {
    /// Maximum bytes stored per log: enough to read, and far below the statement size limits of databases.
    pub const MAX: usize = 1024 * 1024;
}

pub async fn keep_run_logs(s: &mut dyn Session, logs: &[(RunId, RunLog)]) -> Result<usize, SessionError> {
    if let Some((run, log)) = logs.iter().find(|(_, log)| log.text.len() > RunLog::MAX) {
        return Err(StoreError::Invalid(format!(
            "the log of run {run} has {} bytes; at most {} are stored",
            log.text.len(),
            RunLog::MAX
        ))
        .into());
    }
    let known = known(s, logs).await?;
    let logs: BTreeMap<i64, &RunLog> =
        logs.iter().filter(|(run, _)| known.contains(&run.0)).map(|(run, log)| (run.0, log)).collect();
    if logs.is_empty() {
        return Ok(0);
    }
    let now = s.now().await?;
    s.delete("tw_run_log", "run_id", &logs.keys().copied().collect::<Vec<_>>()).await?;
    let (into, row) = PartRow::INSERT;
    let mut rows: Vec<Vec<Value>> = Vec::new();
    for (run, log) in &logs {
        let text = log.text.replace('\0', "\u{fffd}");
        for (content, part) in parts(&text).into_iter().zip(0_i64..) {
            rows.push(row(Part { run: *run, part, complete: log.complete, now, content }));
        }
    }
    s.insert(into, rows).await?;
    Ok(logs.len())
}

/// A part of a log to write.
#[derive(Clone, Copy)]
struct Part<'a> {
    run: i64,
    part: i64,
    complete: bool,
    now: Timestamp,
    content: &'a str,
}

table! {
    /// Row of `tw_run_log`.
    struct PartRow in "tw_run_log" of part: Part<'_> {
        complete: bool = part.complete,
        content: String = part.content,
    }
    not read { run_id = part.run, part = part.part, kept_ms = part.now }
}

/// The ids of those runs that exist.
async fn known(s: &mut dyn Session, logs: &[(RunId, RunLog)]) -> Result<BTreeSet<i64>, SessionError> {
    if logs.is_empty() {
        return Ok(BTreeSet::new());
    }
    let ids = Value::Ids(logs.iter().map(|(run, _)| run.0).collect());
    let rows = s.query("SELECT id FROM xxl_job_log WHERE id IN ?", &[ids], Lock::None).await?;
    rows.into_iter().map(|row| row.read().int()).collect()
}

pub async fn kept_run_log(s: &mut dyn Session, run: RunId) -> Result<Option<RunLog>, SessionError> {
    let sql = format!("SELECT {} FROM tw_run_log WHERE run_id = ? ORDER BY part", PartRow::LIST);
    let mut log: Option<RunLog> = None;
    for row in s.query(&sql, &[run.into()], Lock::None).await? {
        let row = PartRow::read(&mut row.read())?;
        let log = log.get_or_insert(RunLog { text: String::new(), complete: row.complete });
        log.text.push_str(&row.content);
    }
    Ok(log)
}

/// Splits the text into rows of bounded size; an empty text is one row.
fn parts(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while rest.len() > PART {
        let (part, after) = rest.split_at(rest.floor_char_boundary(PART));
        parts.push(part);
        rest = after;
    }
    parts.push(rest);
    parts
}

/// Bytes per row: few rows per log, and no statement of megabytes.
const PART: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_letters() {
        assert_eq!(parts(""), [""]);
        let text = "字".repeat(PART);
        let parts = parts(&text);
        assert_eq!(parts.len(), 4);
        assert!(parts.iter().all(|part| part.len() <= PART));
        assert_eq!(parts.concat(), text);
    }
}
