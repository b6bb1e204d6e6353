//! Incarnations of nodes: rows of `tw_node`.

use std::time::{Duration, Instant};

use engine::{Heartbeat, Joined, LifelineId, Node, Outcome, Peer, RunState, StoreError};
use timer::Timestamp;

use crate::database::Tables;
use crate::jobs;
use crate::runs::{self, CANCELLING, CLAIMED, Closing};
use crate::session::{Columns, Lock, Session, SessionError, Value};

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
    let columns =
        ["name", "epoch", "lease_until_ms", "fenced", "lifeline", "depends", "joined_ms", "version_text"];
    let row = vec![
        name.into(),
        epoch.into(),
        (now + lease).into(),
        Value::Int(0),
        lifeline.map(|lifeline| lifeline.0).into(),
        Value::Int(0),
        now.into(),
        env!("CARGO_PKG_VERSION").into(),
    ];
    s.insert(Columns { table: "tw_node", keys: &[], columns: &columns }, vec![row]).await?;
    Ok(Joined { node: Node { name: name.to_owned(), epoch }, now })
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

/// Also returns the local time when the database's clock was read.
pub async fn heartbeat(
    s: &mut dyn Session,
    node: &Node,
    lease: Duration,
) -> Result<(Heartbeat, Instant), SessionError> {
    let now = s.now().await?;
    let known = Instant::now();
    let sql = "UPDATE tw_node SET lease_until_ms = ? WHERE name = ? AND epoch = ? AND fenced = 0";
    let extended =
        s.execute(sql, &[(now + lease).into(), node.name.as_str().into(), node.epoch.into()]).await?;
    if extended == 0 {
        return Err(StoreError::Fenced(node.clone()).into());
    }
    let sql = "SELECT name, epoch, lease_until_ms FROM tw_node WHERE fenced = 0 ORDER BY name, epoch";
    let rows = s.query(sql, &[], Lock::None).await?;
    let peer = |row: crate::session::Row| -> Result<Peer, SessionError> {
        let mut row = row.read();
        let node = Node { name: row.text()?, epoch: row.int()? };
        Ok(Peer { node, lease_until: row.instant()? })
    };
    Ok((Heartbeat { now, nodes: rows.into_iter().map(peer).collect::<Result<_, _>>()? }, known))
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
    let sql = "SELECT name, epoch FROM tw_node WHERE fenced = 1 AND depends = 1 AND lifeline IN ?";
    let rows = s.query(sql, &[ids(broken)], Lock::None).await?;
    let node = |row: crate::session::Row| {
        let mut row = row.read();
        Ok(Node { name: row.text()?, epoch: row.int()? })
    };
    rows.into_iter().map(node).collect()
}

pub async fn leave(s: &mut dyn Session, tables: &Tables, node: &Node) -> Result<(), SessionError> {
    let now = s.now().await?;
    let here = [node.name.as_str().into(), node.epoch.into()];
    let tail = format!("WHERE state IN ({CLAIMED}, {CANCELLING}) AND node = ? AND epoch = ? ORDER BY log_id");
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
