//! The agenda: when each kind of work is due next, read from indexes in one statement.

use engine::Agenda;
use timer::Timestamp;

use crate::nodes::NodeRow;
use crate::read;
use crate::records::counters::REGISTRY;
use crate::runs::{CANCELLING, CLAIMED, RUNNING, UNKNOWN, WAITING};
use crate::session::{Lock, Session, SessionError, Value};

pub async fn agenda(s: &mut dyn Session, running: bool) -> Result<Agenda, SessionError> {
    let (clock, now) = s.clock();
    let of_state = |state: i64| format!("(SELECT MIN(check_ms) FROM tw_run WHERE state = {state})");
    let sql = format!(
        "SELECT {clock}, (SELECT MIN(claim_ms) FROM tw_job WHERE claim_ms > 0), {}, {}, {}, {}, {}, \
         (SELECT MIN(run_id) FROM tw_run WHERE {}), \
         (SELECT MIN(CASE WHEN leased_until_ms > due_ms THEN leased_until_ms ELSE due_ms END) FROM tw_pending_alert), \
         (SELECT MIN(at_ms) FROM tw_withdrawal), \
         (SELECT MIN(id) FROM tw_workflow_event), \
         (SELECT MIN(due_ms) FROM tw_backfill_event), \
         (SELECT value FROM tw_counter WHERE name = '{REGISTRY}'), {} \
         FROM (SELECT 1 AS one) AS always LEFT JOIN tw_node n ON n.fenced = 0 ORDER BY n.name, n.epoch",
        of_state(WAITING),
        of_state(UNKNOWN),
        of_state(RUNNING),
        of_state(CLAIMED),
        of_state(CANCELLING),
        read::is_abandoned(running),
        NodeRow::list_of("n"),
    );
    let params: Vec<Value> = now.into_iter().collect();
    let mut agenda = Agenda::default();
    // Each row has the same agenda, and one node.
    for row in s.query(&sql, &params, Lock::None).await? {
        let mut row = row.read();
        agenda.now = row.instant()?;
        agenda.claim_at = row.maybe_instant()?;
        agenda.waiting_at = row.maybe_instant()?;
        agenda.check_at = earliest(row.maybe_instant()?, row.maybe_instant()?);
        agenda.has_claimed = row.maybe_int()?.is_some();
        agenda.has_cancelling = row.maybe_int()?.is_some();
        agenda.has_abandoned = row.maybe_int()?.is_some();
        agenda.alert_at = row.maybe_instant()?;
        agenda.withdrawal_at = row.maybe_instant()?;
        agenda.has_workflow_events = row.maybe_int()?.is_some();
        agenda.backfill_at = row.maybe_instant()?;
        agenda.registry = row.maybe_int()?.unwrap_or(0);
        agenda.nodes.extend(NodeRow::read_joined(&mut row)?.map(Into::into));
    }
    Ok(agenda)
}

fn earliest(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    one.into_iter().chain(other).min()
}
