//! Fair shares: limits that many callers, apps or addresses share, so that no single one takes all of them.
//!
//! A holder may have at most three times as many as are still free (a dynamic threshold, as in switches that share
//! one buffer). Alone it gets three quarters of the limit, of ten greedy ones each gets a tenth less a little, and a
//! holder that has few always finds some free.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::Notify;

/// Whether a holder may have one more of a limited resource: `max` in total, of which all holders together have `all`
/// and this one has `own`.
pub fn has_room(max: usize, all: usize, own: usize) -> bool {
    own < max.saturating_sub(all).saturating_mul(TIMES_FREE)
}

/// How many times as many as are free a holder may have.
const TIMES_FREE: usize = 3;

/// A limited number of slots.
pub struct Shares<K> {
    max: usize,
    held: Mutex<Held<K>>,
}

struct Held<K> {
    by: HashMap<K, usize>,
    all: usize,
}

/// A slot; freed when dropped.
pub struct Share<K: Eq + Hash> {
    of: Arc<Shares<K>>,
    holder: K,
}

impl<K: Clone + Eq + Hash> Shares<K> {
    /// Creates the slots, all free.
    pub fn new(max: usize) -> Arc<Shares<K>> {
        Arc::new(Shares { max, held: Mutex::new(Held { by: HashMap::new(), all: 0 }) })
    }

    /// Takes a slot for a holder, if there is one for it.
    pub fn take(self: &Arc<Self>, holder: K) -> Option<Share<K>> {
        let mut held = self.held();
        let own = held.by.get(&holder).copied().unwrap_or(0);
        if !has_room(self.max, held.all, own) {
            return None;
        }
        held.all += 1;
        held.by.insert(holder.clone(), own + 1);
        drop(held);
        Some(Share { of: Arc::clone(self), holder })
    }

    /// Number of slots.
    pub fn max(&self) -> usize {
        self.max
    }
}

impl<K> Shares<K> {
    fn held(&self) -> MutexGuard<'_, Held<K>> {
        self.held.lock().expect("no holder of this lock panics")
    }
}

impl<K: Eq + Hash> Drop for Share<K> {
    fn drop(&mut self) {
        let mut held = self.of.held();
        held.all -= 1;
        match held.by.get_mut(&self.holder) {
            Some(own) if *own > 1 => *own -= 1,
            _ => drop(held.by.remove(&self.holder)),
        }
    }
}

/// A bounded queue that serves its keys in turn, however many items one key has.
pub struct FairQueue<K, T> {
    max: usize,
    lines: Mutex<Lines<K, T>>,
    added: Notify,
}

struct Lines<K, T> {
    by: HashMap<K, VecDeque<T>>,
    /// Keys with items, the next one first.
    turns: VecDeque<K>,
    all: usize,
}

impl<K: Clone + Eq + Hash, T> FairQueue<K, T> {
    /// Creates an empty queue for at most `max` items.
    pub fn new(max: usize) -> FairQueue<K, T> {
        let lines = Lines { by: HashMap::new(), turns: VecDeque::new(), all: 0 };
        FairQueue { max, lines: Mutex::new(lines), added: Notify::new() }
    }

    /// Adds an item, if there is room for one more of this key in the first `max` places of the queue. Returns false
    /// if not.
    pub fn push(&self, key: K, item: T, max: usize) -> bool {
        let mut lines = self.lines();
        let own = lines.by.get(&key).map_or(0, VecDeque::len);
        if !has_room(max.min(self.max), lines.all, own) {
            return false;
        }
        lines.all += 1;
        if own == 0 {
            lines.turns.push_back(key.clone());
        }
        lines.by.entry(key).or_default().push_back(item);
        drop(lines);
        self.added.notify_one();
        true
    }

    /// Waits for an item, and takes it.
    pub async fn pop(&self) -> (K, T) {
        loop {
            // A notification that comes before the wait is kept, so none is missed.
            if let Some(next) = self.lines().pop() {
                return next;
            }
            self.added.notified().await;
        }
    }

    fn lines(&self) -> MutexGuard<'_, Lines<K, T>> {
        self.lines.lock().expect("no holder of this lock panics")
    }
}

impl<K: Clone + Eq + Hash, T> Lines<K, T> {
    fn pop(&mut self) -> Option<(K, T)> {
        let key = self.turns.pop_front()?;
        let line = self.by.get_mut(&key)?;
        let item = line.pop_front()?;
        self.all -= 1;
        if line.is_empty() {
            self.by.remove(&key);
        } else {
            self.turns.push_back(key.clone());
        }
        Some((key, item))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greedy_holder_leaves_room_for_all_others() {
        let shares = Shares::new(1_024);
        let mut held: Vec<_> = (0..2_000).filter_map(|_| shares.take("greedy")).collect();
        assert_eq!(held.len(), 768, "three quarters");
        for (holder, most) in [("ann", 192), ("bob", 48), ("cleo", 12)] {
            let own: Vec<_> = (0..2_000).filter_map(|_| shares.take(holder)).collect();
            assert_eq!(own.len(), most, "{holder}");
            held.extend(own);
        }
        assert!(shares.take("greedy").is_none());
        held.clear();
        assert!(shares.held().by.is_empty(), "nothing is remembered");
        assert_eq!((0..2_000).filter_map(|_| shares.take("ann")).collect::<Vec<_>>().len(), 768);
    }

    #[test]
    fn a_holder_with_some_keeps_room_beside_a_greedy_one() {
        let shares = Shares::new(1_024);
        let held: Vec<_> = (0..300).filter_map(|_| shares.take("office")).collect();
        let greedy: Vec<_> = (0..2_000).filter_map(|_| shares.take("greedy")).collect();
        assert_eq!((held.len(), greedy.len()), (300, 543));
        assert!(shares.take("office").is_some());
    }

    #[test]
    fn a_small_limit_has_room_for_one_more_holder() {
        let shares = Shares::new(4);
        let greedy: Vec<_> = (0..10).filter_map(|_| shares.take(1)).collect();
        assert_eq!(greedy.len(), 3);
        let other = shares.take(2);
        assert!(other.is_some() && shares.take(3).is_none());
    }

    #[tokio::test]
    async fn the_keys_of_a_queue_are_served_in_turn() {
        let queue = FairQueue::new(64);
        let pushed = (0..100).filter(|item| queue.push("greedy", *item, 64)).count();
        assert_eq!(pushed, 48);
        assert!(queue.push("ann", 1_000, 64));
        assert!(!queue.push("greedy", 1_002, 64));
        assert_eq!(queue.pop().await, ("greedy", 0));
        assert_eq!(queue.pop().await, ("ann", 1_000));
        assert_eq!(queue.pop().await, ("greedy", 1));
        assert!(!queue.push("greedy", 1_003, 32), "it is more than half full");
        assert!(queue.push("bob", 1_004, 64));
    }
}
