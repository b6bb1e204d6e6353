//! Traces of runs: rows of `tw_flight`, one for each node that handled the run.

use std::collections::{BTreeMap, BTreeSet};

use engine::policy::{Named, Route};
use engine::{Origin, Receipt, RunId, StoreError};
use timer::Timestamp;

use crate::database::{Database, transaction};
use crate::runs;
use crate::session::{Columns, Lock, Row, Session, SessionError, Value};

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
    let sql = "SELECT log_id FROM tw_flight WHERE node = ? AND log_id IN ?";
    let known = s.query(sql, &[node.into(), ids], Lock::None).await?;
    let known = known.into_iter().map(|row| row.read().int()).collect::<Result<BTreeSet<_>, _>>()?;
    let is_known = |trace: &&NodeTrace| known.contains(&trace.run.0);
    let ends = traces.iter().filter(is_known).filter(|trace| trace.sending.is_none());
    let ends: Vec<Vec<Value>> = ends
        .map(|end| vec![end.run.0.into(), node.into(), end.reported_at.into(), end.recorded_at.into()])
        .collect();
    if !ends.is_empty() {
        let columns = ["reported_ms", "recorded_ms"];
        s.update(Columns { table: "tw_flight", keys: &["log_id", "node"], columns: &columns }, ends).await?;
    }
    let again = traces.iter().filter(is_known).filter(|trace| trace.sending.is_some());
    let again: Vec<i64> = again.map(|trace| trace.run.0).collect();
    if !again.is_empty() {
        let sql = "DELETE FROM tw_flight WHERE node = ? AND log_id IN ?";
        s.execute(sql, &[node.into(), Value::Ids(again)]).await?;
    }
    let now = s.now().await?;
    let new = traces.iter().filter(|trace| trace.sending.is_some() || !is_known(trace));
    let rows: Vec<Vec<Value>> = new.map(|trace| row(trace, node, now)).collect();
    if rows.is_empty() {
        return Ok(());
    }
    s.insert(Columns { table: "tw_flight", keys: &[], columns: &COLUMNS }, rows).await
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

const COLUMNS: [&str; 17] = [
    "log_id",
    "node",
    "reported_ms",
    "recorded_ms",
    "scheduled_ms",
    "kind",
    "cause",
    "attempt",
    "retry_of",
    "route",
    "claimed_ms",
    "left_ms",
    "answered_ms",
    "answer",
    "address",
    "reason",
    "saved_ms",
];

fn row(trace: &NodeTrace, node: &str, now: Timestamp) -> Vec<Value> {
    let mut row: Vec<Value> =
        vec![trace.run.0.into(), node.into(), trace.reported_at.into(), trace.recorded_at.into()];
    match &trace.sending {
        Some(sending) => row.extend(sent(sending)),
        None => row.extend(std::iter::repeat_n(Value::Null, COLUMNS.len() - row.len() - 1)),
    }
    row.push(now.into());
    row
}

fn sent(sending: &Sending) -> [Value; 12] {
    let (kind, cause) = sending.origin.to_numbers();
    let (answer, address, reason) = match sending.answer.as_ref().map(|(_, receipt)| receipt) {
        None => (None, None, None),
        Some(Receipt::Accepted { address }) => (Some(ACCEPTED), Some(address.as_str()), None),
        Some(Receipt::Refused { reason } | Receipt::Deferred { reason }) => {
            (Some(REFUSED), None, Some(reason))
        }
        Some(Receipt::Unknown { address, reason }) => (Some(UNKNOWN), address.as_deref(), Some(reason)),
    };
    [
        sending.scheduled_at.into(),
        kind.into(),
        cause.into(),
        i64::from(sending.attempt).into(),
        sending.retry_of.map(|run| run.0).into(),
        short(sending.route.stored(), ROUTE_MAX).into(),
        sending.claimed_at.into(),
        sending.left_at.into(),
        sending.answer.as_ref().map(|(at, _)| *at).into(),
        answer.into(),
        address.map(|address| short(address, ADDRESS_MAX)).into(),
        reason.map(|reason| runs::message_text(reason)).into(),
    ]
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
    let sql = format!("SELECT {} FROM tw_flight WHERE log_id IN ?", COLUMNS.join(", "));
    let ids = Value::Ids(runs.iter().map(|run| run.0).collect());
    let rows = s.query(&sql, &[ids], Lock::None).await?;
    let mut traces = rows.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let left_at = |trace: &NodeTrace| trace.sending.as_ref().map(|sending| sending.left_at);
    traces.sort_by_key(|trace| (trace.run, left_at(trace).is_none(), left_at(trace)));
    Ok(traces)
}

fn read(row: Row) -> Result<NodeTrace, SessionError> {
    let mut row = row.read();
    let (run, node) = (RunId(row.int()?), row.text()?);
    let (reported_at, recorded_at) = (row.maybe_instant()?, row.maybe_instant()?);
    let scheduled_at = row.maybe_instant()?;
    let origin = row.maybe_int()?.zip(row.maybe_int()?);
    let origin = origin.and_then(|(kind, cause)| Origin::from_numbers(kind, cause));
    let attempt = row.maybe_int()?.and_then(|attempt| u32::try_from(attempt).ok()).unwrap_or(1);
    let (retry_of, route) = (row.maybe_int()?.map(RunId), Named::from_stored(&row.text()?));
    let (claimed_at, left_at) = (row.maybe_instant()?, row.maybe_instant()?);
    let (answered_at, answer) = (row.maybe_instant()?, row.maybe_int()?);
    let (address, reason) = (row.maybe_text()?, row.text()?);
    let receipt = match answer {
        Some(ACCEPTED) => Some(Receipt::Accepted { address: address.unwrap_or_default() }),
        Some(REFUSED) => Some(Receipt::Refused { reason }),
        Some(UNKNOWN) => Some(Receipt::Unknown { address, reason }),
        _ => None,
    };
    let answer = answered_at.zip(receipt);
    let sending = match (scheduled_at, origin, left_at) {
        (Some(scheduled_at), Some(origin), Some(left_at)) => {
            Some(Sending { scheduled_at, origin, attempt, retry_of, route, claimed_at, left_at, answer })
        }
        _ => None,
    };
    Ok(NodeTrace { run, node, sending, reported_at, recorded_at })
}
