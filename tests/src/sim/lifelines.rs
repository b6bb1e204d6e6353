//! The database's session locks held by processes; released when the process or its connection ends.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use engine::{LIFELINE_GRACE, LifelineId, Lifelines};

use super::clock::Ms;

/// The locks that are held according to the database.
#[derive(Debug, Default)]
pub struct Locks {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    last: i64,
    held: BTreeSet<LifelineId>,
}

impl Locks {
    fn take(&self) -> LifelineId {
        let mut state = self.lock();
        state.last += 1;
        let id = LifelineId(state.last);
        state.held.insert(id);
        id
    }

    /// Called when the database has noticed that a connection is gone.
    pub fn release(&self, id: LifelineId) {
        self.lock().held.remove(&id);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of this lock panics")
    }
}

/// The lifeline of one process, and the others it has observed.
#[derive(Debug)]
pub struct Lifeline {
    /// Id of the lifeline.
    pub id: LifelineId,
    /// Other lifelines that were seen held, and since when they are not.
    seen: BTreeMap<LifelineId, Option<Ms>>,
}

impl Lifeline {
    /// Connects and acquires the lock.
    pub fn new(locks: &Locks) -> Self {
        Lifeline { id: locks.take(), seen: BTreeMap::new() }
    }

    /// Observes the other lifelines.
    pub fn look(&mut self, locks: &Locks, now: Ms) -> Lifelines {
        let held = locks.lock().held.clone();
        for other in held.iter().filter(|other| **other != self.id) {
            self.seen.entry(*other).or_default();
        }
        let (mut broken, mut next) = (Vec::new(), None::<Ms>);
        self.seen.retain(|other, since| {
            if held.contains(other) {
                return true;
            }
            let gone_for = now - *since.get_or_insert(now);
            match LIFELINE_GRACE.as_millis() as Ms - gone_for {
                left if left > 0 => next = Some(next.map_or(left, |next| next.min(left))),
                _ => broken.push(*other),
            }
            gone_for < REMEMBERED
        });
        let next = next.map(|left| Duration::from_millis(left as u64));
        Lifelines { own: self.id, broken, next }
    }
}

/// How long a broken lifeline is returned: by then the observers have stored its effect, or are in trouble themselves.
const REMEMBERED: Ms = 5_000;
