//! Incarnations of nodes: rows of `tw_node`.

use std::time::Duration;

use engine::{Heartbeat, Joined, LifelineId, Node, Outcome, Peer, Pulse, RunState, StoreError};
use timer::Timestamp;

use crate::database::Tables;
use crate::jobs;
use crate::runs::{self, CANCELLING, CLAIMED, Closing};
use crate::session::{Lock, Session, SessionError, Value};
use crate::table::table;

pub async fn join(
    s: &mut dyn Session,
    name: &str,
    lease: Duration,
    lifeline: Option<LifelineId>,
) -> Result<Joined, SessionError> {
    if name.is_empty() || name.chars().count() > NAME_MAX || name.contains('\0') {
        return Err(
            StoreError::Invalid(format!("the name of a node must have 1 to {NAME_MAX} characters")).into()
        );
    }
    // If several incarnations of one name start together, only the last may stay, so they start one after the other.
    s.query("SELECT version FROM tw_schema WHERE version = 1", &[], Lock::Wait).await?;
    let now = s.now().await?;
    let earlier =
        s.query("SELECT MAX(epoch) FROM tw_node WHERE name = ?", &[name.into()], Lock::None).await?;
    let earlier = earlier.into_iter().next().map(|row| row.read().maybe_int()).transpose()?.flatten();
    // Rows of incarnations that left are deleted, but those all started earlier.
    let epoch = earlier.map_or(now.as_millis(), |epoch| now.as_millis().max(epoch + 1));
    s.execute("UPDATE tw_node SET fenced = 1 WHERE name = ?", &[name.into()]).await?;
    let node = Node { name: name.to_owned(), epoch };
    let (into, row) = NodeRow::INSERT;
    s.insert(into, vec![row(NewNode { node: &node, now, lease, lifeline })]).await?;
    Ok(Joined { node, now })
}

/// An incarnation to write.
#[derive(Clone, Copy)]
struct NewNode<'a> {
    node: &'a Node,
    now: Timestamp,
    lease: Duration,
    lifeline: Option<LifelineId>,
}

table! {
    /// Row of `tw_node`.
    struct NodeRow in "tw_node" of new: NewNode<'_> {
        name: String = new.node.name.as_str(),
        epoch: i64 = new.node.epoch,
        lease_until_ms: Timestamp = new.now + new.lease,
    }
    not read {
        fenced = false,
        lifeline = new.lifeline.map(|lifeline| lifeline.0),
        depends = false,
        joined_ms = new.now,
        version_text = env!("CARGO_PKG_VERSION"),
    }
}

/// The incarnations that match `tail`, with their leases.
pub async fn select(s: &mut dyn Session, tail: &str, params: &[Value]) -> Result<Vec<Peer>, SessionError> {
    let rows = s.query(&format!("SELECT {} FROM tw_node {tail}", NodeRow::LIST), params, Lock::None).await?;
    rows.into_iter().map(|row| NodeRow::read(&mut row.read()).map(Peer::from)).collect()
}

impl From<NodeRow> for Peer {
    fn from(row: NodeRow) -> Peer {
        Peer { node: Node { name: row.name, epoch: row.epoch }, lease_until: row.lease_until_ms }
    }
}

/// Lifelines of earlier incarnations of this name that have an unexpired lease.
pub async fn earlier_lifelines(s: &mut dyn Session, name: &str) -> Result<Vec<LifelineId>, SessionError> {
    let now = s.now().await?;
    let sql = "SELECT lifeline FROM tw_node WHERE name = ? AND lifeline IS NOT NULL AND lease_until_ms > ?";
    let rows = s.query(sql, &[name.into(), now.into()], Lock::None).await?;
    rows.into_iter().map(|row| row.read().int().map(LifelineId)).collect()
}

/// Ends the leases of earlier incarnations of this name, because their processes have ended.
pub async fn end_leases(s: &mut dyn Session, name: &str, broken: &[LifelineId]) -> Result<(), SessionError> {
    let now = s.now().await?;
    let sql = "UPDATE tw_node SET lease_until_ms = ? WHERE name = ? AND lifeline IN ? AND lease_until_ms > ?";
    s.execute(sql, &[now.into(), name.into(), ids(broken), now.into()]).await?;
    Ok(())
}

fn ids(lifelines: &[LifelineId]) -> Value {
    Value::Ids(lifelines.iter().map(|lifeline| lifeline.0).collect())
}

/// Width of the column.
const NAME_MAX: usize = 190;

/// Extends the lease, in one statement if nothing is wrong. A heartbeat that a later one has overtaken changes nothing.
pub async fn heartbeat(
    s: &mut dyn Session,
    node: &Node,
    lease: Duration,
    beat: Heartbeat,
) -> Result<Pulse, SessionError> {
    let (clock, now) = s.clock();
    let lease = i64::try_from(lease.as_millis()).unwrap_or(i64::MAX);
    let sql = format!(
        "UPDATE tw_node SET lease_until_ms = {clock} + ?, beats = ? \
         WHERE name = ? AND epoch = ? AND fenced = 0 AND beats >= ? AND beats < ?"
    );
    let here = [node.name.as_str().into(), node.epoch.into()];
    let mut params: Vec<Value> = now.into_iter().collect();
    params.extend([lease.into(), beat.number.into()]);
    params.extend(here.clone());
    params.extend([beat.acknowledged.into(), beat.number.into()]);
    if s.execute(&sql, &params).await? > 0 {
        return Ok(Pulse::Renewed);
    }
    let sql = "SELECT fenced, beats, lease_until_ms FROM tw_node WHERE name = ? AND epoch = ?";
    let Some(row) = s.query(sql, &here, Lock::None).await?.into_iter().next() else {
        return Ok(Pulse::Older(None));
    };
    let mut row = row.read();
    let (is_fenced, beats, lease_until) = (row.int()? != 0, row.int()?, row.instant()?);
    if beats < beat.acknowledged {
        Ok(Pulse::Older(Some(lease_until)))
    } else if is_fenced {
        Err(StoreError::Fenced(node.clone()).into())
    } else {
        // The same heartbeat was sent again over another connection.
        Ok(Pulse::Renewed)
    }
}

pub async fn fence(s: &mut dyn Session, node: &Node) -> Result<bool, SessionError> {
    let now = s.now().await?;
    let sql =
        "UPDATE tw_node SET fenced = 1 WHERE name = ? AND epoch = ? AND fenced = 0 AND lease_until_ms <= ?";
    s.execute(sql, &[node.name.as_str().into(), node.epoch.into(), now.into()]).await?;
    let sql = "SELECT fenced FROM tw_node WHERE name = ? AND epoch = ?";
    let rows = s.query(sql, &[node.name.as_str().into(), node.epoch.into()], Lock::None).await?;
    match rows.into_iter().next() {
        Some(row) => Ok(row.read().int()? != 0),
        None => Ok(true),
    }
}

pub async fn depend_on(
    s: &mut dyn Session,
    node: &Node,
    lifeline: Option<LifelineId>,
) -> Result<(), SessionError> {
    let sql = "UPDATE tw_node SET lifeline = COALESCE(?, lifeline), depends = ? \
               WHERE name = ? AND epoch = ? AND fenced = 0";
    let depends = i64::from(lifeline.is_some());
    let lifeline = lifeline.map(|lifeline| lifeline.0);
    let life = [lifeline.into(), depends.into(), node.name.as_str().into(), node.epoch.into()];
    match s.execute(sql, &life).await? {
        0 => Err(StoreError::Fenced(node.clone()).into()),
        _ => Ok(()),
    }
}

pub async fn fence_broken(s: &mut dyn Session, broken: &[LifelineId]) -> Result<Vec<Node>, SessionError> {
    if broken.is_empty() {
        return Ok(Vec::new());
    }
    let now = s.now().await?;
    // An expired lease keeps its end.
    let sql = "UPDATE tw_node SET fenced = 1, \
               lease_until_ms = CASE WHEN lease_until_ms > ? THEN ? ELSE lease_until_ms END \
               WHERE fenced = 0 AND depends = 1 AND lifeline IN ?";
    s.execute(sql, &[now.into(), now.into(), ids(broken)]).await?;
    let fenced = select(s, "WHERE fenced = 1 AND depends = 1 AND lifeline IN ?", &[ids(broken)]).await?;
    Ok(fenced.into_iter().map(|peer| peer.node).collect())
}

pub async fn leave(s: &mut dyn Session, tables: &Tables, node: &Node) -> Result<(), SessionError> {
    let now = s.now().await?;
    let here = [node.name.as_str().into(), node.epoch.into()];
    let tail = format!("WHERE state IN ({CLAIMED}, {CANCELLING}) AND node = ? AND epoch = ? ORDER BY run_id");
    let (claimed, cancelling): (Vec<_>, Vec<_>) = runs::select(s, &tail, &here, Lock::Wait)
        .await?
        .into_iter()
        .partition(|run| run.state == RunState::Claimed);

    let waiting = claimed.into_iter().map(runs::released).collect::<Vec<_>>();
    runs::save(s, &waiting).await?;
    let outcome = Outcome::Cancelled("cancelled before it was sent".into());
    let closings = cancelling.into_iter().map(|run| Closing::last(run, outcome.clone())).collect::<Vec<_>>();
    runs::close(s, tables, now, &closings).await?;
    jobs::rearm_after(s, tables, now, closings.iter().map(|closing| &closing.run)).await?;

    s.execute("DELETE FROM tw_node WHERE name = ? AND epoch = ?", &here).await?;
    Ok(())
}

/// Rejects requests of an incarnation that is fenced or expired.
pub async fn check_alive(s: &mut dyn Session, node: &Node, now: Timestamp) -> Result<(), SessionError> {
    let sql = "SELECT 1 FROM tw_node WHERE name = ? AND epoch = ? AND fenced = 0 AND lease_until_ms > ?";
    let params = [node.name.as_str().into(), node.epoch.into(), now.into()];
    match s.query(sql, &params, Lock::None).await?.is_empty() {
        false => Ok(()),
        true => Err(StoreError::Fenced(node.clone()).into()),
    }
}

pub async fn end_all_lives(s: &mut dyn Session) -> Result<(), SessionError> {
    let now = s.now().await?;
    s.execute("UPDATE tw_node SET lease_until_ms = ? WHERE lease_until_ms > ?", &[now.into(), now.into()])
        .await?;
    s.execute("UPDATE tw_node SET fenced = 1", &[]).await?;
    Ok(())
}
