//! Where a run was sent, when that becomes known only after its result.
//!
//! The result of a run may overtake the answer to the request. The run is over then, and its log row is all that is left of
//! it: whoever reads the run's log needs its address there.

use std::collections::BTreeMap;

use engine::RunId;

use crate::session::{Columns, Lock, Session, SessionError, Value};

/// Writes where runs that are over were sent, for log rows that do not say so: they have no address, or the one where
/// the run was to go and was not taken.
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
