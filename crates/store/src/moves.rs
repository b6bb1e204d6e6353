//! State changes of open runs: accepted, unknown, released.

use std::collections::{BTreeMap, BTreeSet};

use engine::{Move, Moved, Run, RunState, To};

use crate::addresses;
use crate::database::Tables;
use crate::session::{Lock, Session, SessionError};
use crate::{alerts, foreign, runs};

pub async fn move_runs(
    s: &mut dyn Session,
    tables: &Tables,
    moves: &[Move],
) -> Result<Vec<Moved>, SessionError> {
    let mut ids: Vec<i64> = moves.iter().map(|wanted| wanted.run.0).collect();
    ids.sort_unstable();
    ids.dedup();
    let mut found = runs::lock(s, &ids).await?;
    // A run that has a result is never sent again.
    let returned = moves.iter().filter(|wanted| wanted.to.state() == RunState::Waiting);
    let returned = returned.map(|wanted| wanted.run.0).collect();
    let over = foreign::results_of(s, tables, returned, Lock::Wait).await?;
    let mut changed = BTreeSet::new();
    let (mut moved, mut raised) = (Vec::with_capacity(moves.len()), Vec::new());
    let mut too_late = BTreeMap::new();
    for wanted in moves {
        if !found.contains_key(&wanted.run.0) {
            too_late.extend(wanted.to.address().map(|address| (wanted.run, address)));
        }
        moved.push(match over.contains_key(&wanted.run) && wanted.to.state() == RunState::Waiting {
            true => Moved::Stale,
            false => move_one(&mut found, &mut changed, wanted),
        });
        if let (Some(Moved::Done(_)), Some(trouble)) = (moved.last(), &wanted.trouble)
            && let Some(run) = found.get(&wanted.run.0)
        {
            raised.push((run.job, Some(run.id), trouble.clone()));
        }
    }
    let changed = changed.into_iter().filter_map(|id| found.remove(&id));
    let (given_back, sent): (Vec<Run>, Vec<Run>) = changed.partition(|run| run.state == RunState::Waiting);
    runs::save_sent(s, &sent).await?;
    runs::save(s, &given_back).await?;
    addresses::keep(s, too_late).await?;
    if !raised.is_empty() {
        let now = s.now().await?;
        alerts::raise(s, tables, now, raised).await?;
    }
    Ok(moved)
}

fn move_one(found: &mut BTreeMap<i64, Run>, changed: &mut BTreeSet<i64>, wanted: &Move) -> Moved {
    let Some(run) = found.get_mut(&wanted.run.0) else {
        return Moved::Stale;
    };
    if run.version == wanted.version && run.state == RunState::Cancelling {
        return Moved::Cancelling;
    }
    if run.version != wanted.version || !wanted.to.from_states().contains(&run.state) {
        // Another transaction changed it without knowing the address.
        if let Some(address) = wanted.to.address()
            && run.address.is_none()
            && matches!(run.state, RunState::Running | RunState::Unknown)
        {
            run.address = Some(address.to_owned());
            changed.insert(run.id.0);
        }
        return Moved::Stale;
    }
    go(run, &wanted.to);
    changed.insert(run.id.0);
    Moved::Done(run.version)
}

/// Applies the state change to the run. The caller checks whether it is allowed.
pub fn go(run: &mut Run, to: &To) {
    match to {
        To::Waiting { due_at } => {
            run.due_at = *due_at;
            *run = runs::released(run.clone());
        }
        To::Deferred { until, since } => {
            run.due_at = *until;
            *run = runs::released(run.clone());
            run.doubt_since = Some(*since);
        }
        To::Running { address, check_at, doubt_since } | To::Unknown { address, check_at, doubt_since } => {
            run.state = to.state();
            run.version += 1;
            run.check_at = *check_at;
            run.doubt_since = *doubt_since;
            if let Some(address) = address {
                run.address = Some(address.clone());
            }
        }
    }
}
