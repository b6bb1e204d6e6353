//! Deletes finished runs for a request, in several transactions.

use engine::StoreError;
use store::{ClearPosition, Clearing, Database};

/// Result of a deletion.
pub struct Cleared {
    /// Number of deleted runs.
    pub deleted: usize,
    /// Whether there may be more to delete.
    pub more: bool,
    /// Why it ended early. The runs of earlier transactions are deleted, so responses and audit records include them.
    pub failed: Option<StoreError>,
}

/// Deletes runs in at most so many transactions, because the client waits. An error means that none is deleted.
pub async fn clear(database: &Database, what: &Clearing, rounds: usize) -> Result<Cleared, StoreError> {
    let mut cleared = Cleared { deleted: 0, more: true, failed: None };
    let mut position = ClearPosition::default();
    for _ in 0..rounds {
        match database.clear_runs(what, &mut position, AT_ONCE).await {
            Err(error) if cleared.deleted == 0 => return Err(error),
            Err(error) => {
                cleared.failed = Some(error);
                break;
            }
            Ok(deleted) => {
                cleared.deleted += deleted;
                cleared.more = deleted == AT_ONCE;
            }
        }
        if !cleared.more {
            break;
        }
    }
    Ok(cleared)
}

/// Runs deleted per transaction: as many as one step of a stop or deletion of a job changes, so that the fires of
/// others wait no longer.
const AT_ONCE: usize = 200;
