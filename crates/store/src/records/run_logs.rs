//! Logs of runs, kept so that they outlive the executors that wrote them.

use engine::{RunId, StoreError};

use crate::session::{Columns, Lock, Session, SessionError};

/// What is kept of a run's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunLog {
    /// The text.
    pub text: String,
    /// Whether that is all of it.
    pub complete: bool,
}

impl RunLog {
    /// The most bytes that are kept of one: enough to read, and a small part of what a database can take at once.
    pub const MAX: usize = 1024 * 1024;
}

pub async fn keep_run_log(s: &mut dyn Session, run: RunId, log: &RunLog) -> Result<bool, SessionError> {
    if log.text.len() > RunLog::MAX {
        return Err(StoreError::Invalid(format!(
            "a run's log of {} bytes is more than the {} that are kept; cut it first",
            log.text.len(),
            RunLog::MAX
        ))
        .into());
    }
    let known = s.query("SELECT id FROM xxl_job_log WHERE id = ?", &[run.0.into()], Lock::None).await?;
    if known.is_empty() {
        return Ok(false);
    }
    let now = s.now().await?;
    s.delete("tw_run_log", "log_id", &[run.0]).await?;
    let columns = ["log_id", "part", "complete", "kept_ms", "content"];
    let complete = i64::from(log.complete);
    let text = log.text.replace('\0', "\u{fffd}");
    let rows = parts(&text)
        .into_iter()
        .zip(0_i64..)
        .map(|(content, part)| vec![run.0.into(), part.into(), complete.into(), now.into(), content.into()]);
    s.insert(Columns { table: "tw_run_log", keys: &[], columns: &columns }, rows.collect()).await?;
    Ok(true)
}

pub async fn kept_run_log(s: &mut dyn Session, run: RunId) -> Result<Option<RunLog>, SessionError> {
    let sql = "SELECT complete, content FROM tw_run_log WHERE log_id = ? ORDER BY part";
    let mut log: Option<RunLog> = None;
    for row in s.query(sql, &[run.0.into()], Lock::None).await? {
        let mut row = row.read();
        let complete = row.int()? != 0;
        let log = log.get_or_insert(RunLog { text: String::new(), complete });
        log.text.push_str(&row.text()?);
    }
    Ok(log)
}

/// The text in rows of bounded size; an empty one is a row too.
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

/// Bytes of a row: few rows for a log, and no statement of megabytes.
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
