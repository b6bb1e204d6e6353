//! Traces of runs: rows of `tw_trace`, one for each node that handled the run.

use std::collections::{BTreeMap, BTreeSet};

use engine::policy::{Named, Route};
use engine::{Origin, Receipt, RunId, StoreError};
use timer::Timestamp;

use crate::database::{Database, transaction};
use crate::runs;
use crate::session::{Lock, Session, SessionError, Value};
use crate::table::table;

impl Database {
    /// Stores a node's traces of runs; fields that the node no longer has keep their stored values.
    pub async fn keep_traces(&self, node: &str, traces: &[NodeTrace]) -> Result<(), StoreError> {
        transaction!(self, s => keep_traces(s, node, traces))
    }

    /// Returns the traces of runs: for each run the nodes that dispatched it first, in the order they did.
    pub async fn traces_of(&self, runs: &[RunId]) -> Result<Vec<NodeTrace>, StoreError> {
        transaction!(self, s => traces_of(s, runs))
    }
}

/// Trace of a run on one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeTrace {
    /// Id of the run.
    pub run: RunId,
    /// Name of the node.
    pub node: String,
    /// How this node dispatched the run, if it did.
    pub sending: Option<Sending>,
    /// When this node received the result.
    pub reported_at: Option<Timestamp>,
    /// When this node stored the result.
    pub recorded_at: Option<Timestamp>,
}

/// How a run was dispatched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sending {
    /// Scheduled time of the run.
    pub scheduled_at: Timestamp,
    /// Why the run exists.
    pub origin: Origin,
    /// Number of the attempt.
    pub attempt: u32,
    /// The run that this attempt retries, if any.
    pub retry_of: Option<RunId>,
    /// Route strategy that chose the executor.
    pub route: Named<Route>,
    /// When the node claimed the run.
    pub claimed_at: Option<Timestamp>,
    /// When the node sent the request.
    pub left_at: Timestamp,
    /// When the executor answered, and its answer.
    pub answer: Option<(Timestamp, Receipt)>,
}

// ── Writing ─────────────────────────────────────────────────────────────────────────────────────────────────────

/// Stores a node's traces of runs. Fields that the node no longer has keep their stored values. A run may occur more
/// than once, for example one that was lost and reported later.
pub async fn keep_traces(s: &mut dyn Session, node: &str, traces: &[NodeTrace]) -> Result<(), SessionError> {
    if traces.is_empty() {
        return Ok(());
    }
    let traces = once_each(traces);
    let ids = Value::Ids(traces.iter().map(|trace| trace.run.0).collect());
    let sql = "SELECT run_id FROM tw_trace WHERE node = ? AND run_id IN ?";
    let known = s.query(sql, &[node.into(), ids], Lock::None).await?;
    let known = known.into_iter().map(|row| row.read().int()).collect::<Result<BTreeSet<_>, _>>()?;
    let is_known = |trace: &&NodeTrace| known.contains(&trace.run.0);
    let ends = traces.iter().filter(is_known).filter(|trace| trace.sending.is_none());
    let (set, row) = TraceRow::END;
    let now = s.now().await?;
    let ends: Vec<Vec<Value>> = ends.map(|trace| row(Kept { trace, node, now })).collect();
    if !ends.is_empty() {
        s.update(set, ends).await?;
    }
    let again = traces.iter().filter(is_known).filter(|trace| trace.sending.is_some());
    let again: Vec<i64> = again.map(|trace| trace.run.0).collect();
    if !again.is_empty() {
        let sql = "DELETE FROM tw_trace WHERE node = ? AND run_id IN ?";
        s.execute(sql, &[node.into(), Value::Ids(again)]).await?;
    }
    let new = traces.iter().filter(|trace| trace.sending.is_some() || !is_known(trace));
    let (into, row) = TraceRow::INSERT;
    let rows: Vec<Vec<Value>> = new.map(|trace| row(Kept { trace, node, now })).collect();
    if rows.is_empty() {
        return Ok(());
    }
    s.insert(into, rows).await
}

fn once_each(traces: &[NodeTrace]) -> Vec<NodeTrace> {
    let mut runs: BTreeMap<i64, NodeTrace> = BTreeMap::new();
    for trace in traces {
        match runs.get_mut(&trace.run.0) {
            Some(known) => known.learn(trace),
            None => {
                runs.insert(trace.run.0, trace.clone());
            }
        }
    }
    runs.into_values().collect()
}

impl NodeTrace {
    /// Merges a later trace of the same run.
    fn learn(&mut self, later: &NodeTrace) {
        if later.sending.is_some() {
            self.sending.clone_from(&later.sending);
        }
        self.reported_at = later.reported_at.or(self.reported_at);
        self.recorded_at = later.recorded_at.or(self.recorded_at);
    }
}

/// A trace to store.
#[derive(Clone, Copy)]
struct Kept<'a> {
    trace: &'a NodeTrace,
    node: &'a str,
    now: Timestamp,
}

table! {
    /// Row of `tw_trace`.
    struct TraceRow in "tw_trace" of kept: Kept<'_> {
        run_id: RunId = kept.trace.run,
        node: String = kept.node,
        reported_ms: Option<Timestamp> = kept.trace.reported_at,
        recorded_ms: Option<Timestamp> = kept.trace.recorded_at,
        scheduled_ms: Option<Timestamp> = kept.sent(|sending| sending.scheduled_at),
        kind: Option<i64> = kept.sent(|sending| sending.origin.to_numbers().0),
        cause: Option<i64> = kept.sent(|sending| sending.origin.to_numbers().1),
        attempt: Option<u32> = kept.sent(|sending| i64::from(sending.attempt)),
        retry_of: Option<RunId> = kept.sent(|sending| sending.retry_of).flatten(),
        route: Option<String> = kept.sent(|sending| short(sending.route.stored(), ROUTE_MAX)),
        claimed_ms: Option<Timestamp> = kept.sent(|sending| sending.claimed_at).flatten(),
        left_ms: Option<Timestamp> = kept.sent(|sending| sending.left_at),
        answered_ms: Option<Timestamp> = kept.answer().map(|(at, _)| *at),
        answer: Option<i64> = kept.answer().map(|(_, receipt)| number_of(receipt)),
        address: Option<String> = kept.answer().and_then(|(_, receipt)| address_of(receipt)),
        reason: Option<String> = kept.answer().and_then(|(_, receipt)| reason_of(receipt)),
    }
    not read { saved_ms = kept.now }
    update END by run_id, node { reported_ms, recorded_ms }
}

impl<'a> Kept<'a> {
    fn sent<T>(self, field: impl Fn(&'a Sending) -> T) -> Option<T> {
        self.trace.sending.as_ref().map(field)
    }

    fn answer(self) -> Option<&'a (Timestamp, Receipt)> {
        self.trace.sending.as_ref()?.answer.as_ref()
    }
}

fn number_of(receipt: &Receipt) -> i64 {
    match receipt {
        Receipt::Accepted { .. } => ACCEPTED,
        Receipt::Refused { .. } | Receipt::Deferred { .. } => REFUSED,
        Receipt::Unknown { .. } => UNKNOWN,
    }
}

fn address_of(receipt: &Receipt) -> Option<String> {
    match receipt {
        Receipt::Accepted { address } | Receipt::Unknown { address: Some(address), .. } => {
            Some(short(address, ADDRESS_MAX))
        }
        _ => None,
    }
}

fn reason_of(receipt: &Receipt) -> Option<String> {
    match receipt {
        Receipt::Accepted { .. } => None,
        Receipt::Refused { reason } | Receipt::Deferred { reason } | Receipt::Unknown { reason, .. } => {
            Some(runs::message_text(reason))
        }
    }
}

const ACCEPTED: i64 = 1;
const REFUSED: i64 = 2;
const UNKNOWN: i64 = 3;

/// Widths of the columns. Longer values are invalid anyway, and are stored in full in the run's row.
const ROUTE_MAX: usize = 64;
const ADDRESS_MAX: usize = 255;

fn short(text: &str, most: usize) -> String {
    text.chars().filter(|letter| *letter != '\0').take(most).collect()
}

// ── Reading ─────────────────────────────────────────────────────────────────────────────────────────────────────

/// Traces of runs: for each run the nodes that dispatched it first, in the order they did.
pub async fn traces_of(s: &mut dyn Session, runs: &[RunId]) -> Result<Vec<NodeTrace>, SessionError> {
    if runs.is_empty() {
        return Ok(Vec::new());
    }
    let sql = format!("SELECT {} FROM tw_trace WHERE run_id IN ?", TraceRow::LIST);
    let ids = Value::Ids(runs.iter().map(|run| run.0).collect());
    let rows = s.query(&sql, &[ids], Lock::None).await?;
    let traces = rows.into_iter().map(|row| TraceRow::read(&mut row.read()).map(NodeTrace::from));
    let mut traces = traces.collect::<Result<Vec<_>, _>>()?;
    let left_at = |trace: &NodeTrace| trace.sending.as_ref().map(|sending| sending.left_at);
    traces.sort_by_key(|trace| (trace.run, left_at(trace).is_none(), left_at(trace)));
    Ok(traces)
}

impl From<TraceRow> for NodeTrace {
    fn from(row: TraceRow) -> NodeTrace {
        let origin = row.kind.zip(row.cause).and_then(|(kind, cause)| Origin::from_numbers(kind, cause));
        let reason = row.reason.unwrap_or_default();
        let receipt = match row.answer {
            Some(ACCEPTED) => Some(Receipt::Accepted { address: row.address.unwrap_or_default() }),
            Some(REFUSED) => Some(Receipt::Refused { reason }),
            Some(UNKNOWN) => Some(Receipt::Unknown { address: row.address, reason }),
            _ => None,
        };
        let sending = match (row.scheduled_ms, origin, row.left_ms) {
            (Some(scheduled_at), Some(origin), Some(left_at)) => Some(Sending {
                scheduled_at,
                origin,
                attempt: row.attempt.unwrap_or(1),
                retry_of: row.retry_of,
                route: Named::from_stored(&row.route.unwrap_or_default()),
                claimed_at: row.claimed_ms,
                left_at,
                answer: row.answered_ms.zip(receipt),
            }),
            _ => None,
        };
        NodeTrace {
            run: row.run_id,
            node: row.node,
            sending,
            reported_at: row.reported_ms,
            recorded_at: row.recorded_ms,
        }
    }
}
