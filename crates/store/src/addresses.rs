//! Stores the executor address of runs that finished before it was known.
//!
//! The result of a run may arrive before the executor's answer to the dispatch request. The run is finished then,
//! and only its log row is left; reading the run's log needs the address in that row.

use std::collections::BTreeMap;

use engine::RunId;

use crate::session::{Columns, Lock, Session, SessionError, Value};

/// Stores the executor address of finished runs in log rows that lack it: rows without an address, or with that of
/// an executor that did not accept the run.
pub async fn keep(s: &mut dyn Session, sent: BTreeMap<RunId, &str>) -> Result<(), SessionError> {
    if sent.is_empty() {
        return Ok(());
    }
    let sql = "SELECT id, executor_address FROM xxl_job_log WHERE id IN ?";
    let ids = Value::Ids(sent.keys().map(|run| run.0).collect());
    let mut rows: Vec<Vec<Value>> = Vec::new();
    for row in s.query(sql, &[ids], Lock::None).await? {
        let mut row = row.read();
        let (id, known) = (row.int()?, row.maybe_text()?);
        let address = sent.get(&RunId(id)).copied().filter(|address| known.as_deref() != Some(*address));
        rows.extend(address.map(|address| vec![id.into(), address.into()]));
    }
    if !rows.is_empty() {
        let set = Columns { table: "xxl_job_log", keys: &["id"], columns: &["executor_address"] };
        s.update(set, rows).await?;
    }
    Ok(())
}
