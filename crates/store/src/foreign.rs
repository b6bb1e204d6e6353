//! Results that a Java admin stored for runs of ours.
//!
//! While both run on one database, an executor reports to either. A Java admin writes the result to the log row, and
//! starts the children of a run that succeeded; our open row does not change. So no conclusion about an open run is
//! drawn before its log row is read.

use std::collections::BTreeMap;

use engine::{Outcome, RunId};

use crate::database::Tables;
use crate::runs::codes;
use crate::session::{Lock, Row, Session, SessionError, Value};

/// Results of open runs that are in the log already, earliest run first, at most `max`.
pub async fn results(s: &mut dyn Session, max: usize) -> Result<Vec<(RunId, Outcome)>, SessionError> {
    let sql = format!(
        "SELECT l.id, l.handle_code, l.handle_msg FROM tw_run r JOIN xxl_job_log l ON l.id = r.run_id \
         WHERE l.handle_code <> {} ORDER BY l.id LIMIT ?",
        codes::NONE
    );
    let max = i64::try_from(max).unwrap_or(i64::MAX);
    s.query(&sql, &[max.into()], Lock::None)
        .await?
        .into_iter()
        .filter_map(|row| read(row).transpose())
        .collect()
}

/// The same for some runs. With `Lock::Wait` a Java admin cannot add one until the transaction ends.
pub async fn results_of(
    s: &mut dyn Session,
    tables: &Tables,
    ids: Vec<i64>,
    lock: Lock,
) -> Result<BTreeMap<RunId, Outcome>, SessionError> {
    if !tables.sees_results || ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    // The result is compared here and not in SQL, because a condition would leave the other rows unlocked.
    let sql = "SELECT id, handle_code, handle_msg FROM xxl_job_log WHERE id IN ? ORDER BY id";
    s.query(sql, &[Value::Ids(ids)], lock)
        .await?
        .into_iter()
        .filter_map(|row| read(row).transpose())
        .collect()
}

/// Condition on `tw_run` for runs without a result in the log.
pub fn without_result(tables: &Tables) -> String {
    match tables.sees_results {
        true => {
            let none = codes::NONE;
            format!(
                " AND NOT EXISTS (SELECT 1 FROM xxl_job_log l WHERE l.id = run_id AND l.handle_code <> {none})"
            )
        }
        false => String::new(),
    }
}

/// `None` if the log has no result yet.
fn read(row: Row) -> Result<Option<(RunId, Outcome)>, SessionError> {
    let mut row = row.read();
    let (run, code, message) = (RunId(row.int()?), row.int()?, row.maybe_text()?.unwrap_or_default());
    let outcome = match code {
        codes::NONE => return Ok(None),
        codes::OK => Outcome::Succeeded(message),
        codes::FAILED => Outcome::Failed(message),
        codes::TIMED_OUT => Outcome::TimedOut(message),
        code => Outcome::FailedWith(i32::try_from(code).unwrap_or(i32::MAX), message),
    };
    Ok(Some((run, outcome)))
}
