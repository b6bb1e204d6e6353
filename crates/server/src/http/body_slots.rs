//! Limits how many large request bodies are held in memory at a time.
//!
//! Each kind of caller has its own share, and each caller a part of that share, so that slow uploads of one caller
//! cannot block others. Unauthenticated callers get no slot: their bodies must be small.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use engine::AppId;
use store::{User, UserId};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::executors::Scope;

/// Caller that holds a large body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Holder {
    /// A program with a token of this app.
    App(AppId),
    /// A program with the token for all apps, at this address.
    EveryApp(IpAddr),
    /// A program without a token, where none is needed, at this address.
    Anonymous(IpAddr),
    /// A user, with a session or an API key.
    User(UserId),
    /// A user who is an administrator.
    Admin(UserId),
}

impl Holder {
    /// Holder for a caller of the executor API.
    pub fn executor(scope: Scope, from: IpAddr) -> Holder {
        match scope {
            Scope::App(app) => Holder::App(app),
            Scope::Every => Holder::EveryApp(from),
            Scope::Anonymous(_) => Holder::Anonymous(from),
        }
    }

    /// Holder for a user.
    pub fn user(user: &User) -> Holder {
        if user.access.admin { Holder::Admin(user.id) } else { Holder::User(user.id) }
    }

    /// Index of the kind of caller, and the number of slots that one caller of this kind may have.
    fn share(self) -> (usize, usize) {
        match self {
            Holder::App(_) | Holder::EveryApp(_) => (0, 2),
            Holder::Anonymous(_) => (1, 1),
            Holder::User(_) => (2, 1),
            Holder::Admin(_) => (3, 1),
        }
    }
}

/// Slots per kind of caller: executors with a token, executors without, users, administrators. A slot may hold a
/// body of 5 MiB and its parsed form, and all of them must fit into memory.
const SHARES: [usize; 4] = [3, 2, 2, 1];

/// Slots of a node.
pub struct BodySlots {
    kinds: [Arc<Semaphore>; 4],
    /// Callers that hold or wait for a slot.
    each: Mutex<HashMap<Holder, Arc<Semaphore>>>,
}

/// A slot; freed when dropped.
pub struct BodySlot {
    slots: Arc<BodySlots>,
    holder: Holder,
    permits: Option<[OwnedSemaphorePermit; 2]>,
}

impl Default for BodySlots {
    fn default() -> BodySlots {
        BodySlots { kinds: SHARES.map(|slots| Arc::new(Semaphore::new(slots))), each: Mutex::default() }
    }
}

impl BodySlots {
    /// Waits for a free slot; `None` if that takes longer than [`SLOT_WAIT`].
    pub async fn take(self: &Arc<Self>, holder: Holder) -> Option<BodySlot> {
        let by = Instant::now() + SLOT_WAIT;
        let (kind, most) = holder.share();
        let own = self.each().entry(holder).or_insert_with(|| Arc::new(Semaphore::new(most))).clone();
        // From here on, dropping `slot` removes the entry when it is no longer used.
        let mut slot = BodySlot { slots: self.clone(), holder, permits: None };
        let own = timeout_at(by, own.acquire_owned()).await.ok()?.ok()?;
        let shared = timeout_at(by, self.kinds[kind].clone().acquire_owned()).await.ok()?.ok()?;
        slot.permits = Some([own, shared]);
        Some(slot)
    }

    fn each(&self) -> MutexGuard<'_, HashMap<Holder, Arc<Semaphore>>> {
        self.each.lock().expect("no holder of this lock panics")
    }
}

impl Drop for BodySlot {
    fn drop(&mut self) {
        let mut each = self.slots.each();
        drop(self.permits.take());
        // A caller that waits for or holds another slot has a clone too.
        if each.get(&self.holder).is_some_and(|own| Arc::strong_count(own) == 1) {
            each.remove(&self.holder);
        }
    }
}

/// How long a request waits for a slot.
pub const SLOT_WAIT: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn no_caller_and_no_kind_of_caller_takes_the_places_of_others() {
        let slots = Arc::new(BodySlots::default());
        let app = |id| Holder::App(AppId(id));
        let mut held = Vec::new();
        for holder in [app(1), app(1), app(2)] {
            held.push(slots.take(holder).await.expect("there is a place"));
        }
        assert!(slots.take(app(1)).await.is_none(), "an app has its part");
        assert!(slots.take(app(3)).await.is_none(), "and executors have their share");
        let others = [
            Holder::Anonymous([10, 0, 0, 1].into()),
            Holder::User(UserId(1)),
            Holder::User(UserId(2)),
            Holder::Admin(UserId(3)),
        ];
        for holder in others {
            held.push(slots.take(holder).await.expect("there is a place"));
        }
        assert!(slots.take(Holder::Anonymous([10, 0, 0, 1].into())).await.is_none());
        held.remove(0);
        held.push(slots.take(app(3)).await.expect("one is free again"));
        let (waiting, ()) = tokio::join!(slots.take(app(4)), async {
            tokio::time::sleep(SLOT_WAIT / 2).await;
            held.clear();
        });
        assert!(waiting.is_some(), "who waits gets the next");
        drop(waiting);
        assert!(slots.each().is_empty(), "nothing is remembered");
    }
}
