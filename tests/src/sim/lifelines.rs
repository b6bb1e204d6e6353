//! The database's session locks, as processes hold them: gone with the process, or with the connection.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard};

use engine::{LIFELINE_GRACE, LifelineId, Lifelines};

use super::clock::Ms;

/// The locks that the database knows to be held.
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

    /// The database has noticed that a connection is gone.
    pub fn release(&self, id: LifelineId) {
        self.lock().held.remove(&id);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of this lock panics")
    }
}

/// One process's lifeline, and what was seen over it.
#[derive(Debug)]
pub struct Lifeline {
    /// Its name.
    pub id: LifelineId,
    /// The others that were seen holding, and since when they are not.
    seen: BTreeMap<LifelineId, Option<Ms>>,
}

impl Lifeline {
    /// Connects and takes the lock.
    pub fn new(locks: &Locks) -> Self {
        Lifeline { id: locks.take(), seen: BTreeMap::new() }
    }

    /// Looks who is there.
    pub fn look(&mut self, locks: &Locks, now: Ms) -> Lifelines {
        let held = locks.lock().held.clone();
        for other in held.iter().filter(|other| **other != self.id) {
            self.seen.entry(*other).or_default();
        }
        let mut broken = Vec::new();
        self.seen.retain(|other, since| {
            let gone_for = if held.contains(other) { 0 } else { now - *since.get_or_insert(now) };
            if gone_for >= LIFELINE_GRACE.as_millis() as Ms {
                broken.push(*other);
            }
            gone_for < REMEMBERED
        });
        Lifelines { own: self.id, broken }
    }
}

/// How long a broken lifeline is told about: by then those who look have written down what it means, or are in trouble.
const REMEMBERED: Ms = 5_000;
