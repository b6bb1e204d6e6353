//! A hierarchical timing wheel with a tick of one millisecond, for millions of timers.
//!
//! A time is a number of eight bytes. An entry is stored at the level of the highest byte in which its time differs
//! from the wheel's present, in the slot with the number of that byte. So level 0 holds the next milliseconds, one
//! time per slot, and each level above is 256 times coarser; eight levels cover every possible time. When the
//! present enters a coarse slot, its entries move to finer ones: at most seven times per entry, three times for a
//! timer of one day.
//!
//! Moving entries is the main cost of a wheel, because each move loads the entry from memory. With 256 slots per
//! level instead of 64 a million timers fire in two thirds of the time.
//!
//! The wheel never reads a clock. Its owner passes the current time, and the wheel returns the due entries.

use std::collections::BTreeMap;

use cron::Timestamp;

/// A queue of values, each due at a given time.
///
/// [`advance`](Wheel::advance) yields due entries, never early, ordered by time and for equal times by insertion.
/// Inserting and cancelling take constant time, an entry needs about 32 bytes in addition to its value, and a jump
/// over years visits only occupied slots.
///
/// ```
/// use std::time::Duration;
/// use tickwright_timer::{Timestamp, Wheel};
///
/// let start = Timestamp::from_millis(0);
/// let mut wheel = Wheel::new(start);
/// wheel.insert(start + Duration::from_secs(60), "tea is ready");
/// let nap = wheel.insert(start + Duration::from_secs(5), "wake up");
/// assert_eq!(wheel.cancel(nap), Some("wake up"));
/// assert_eq!(wheel.cancel(nap), None);
///
/// let mut due = Vec::new();
/// wheel.advance(start + Duration::from_millis(59_999), &mut due);
/// assert!(due.is_empty());
/// wheel.advance(start + Duration::from_secs(60), &mut due);
/// assert_eq!(due, [(start + Duration::from_secs(60), "tea is ready")]);
/// ```
#[derive(Debug)]
pub struct Wheel<T> {
    /// The latest tick ever advanced to. Entries in slots are after it, entries in `behind` are not.
    elapsed: u64,
    /// All slots, level by level.
    slots: Vec<List>,
    /// One bit per occupied slot.
    occupied: [u64; LEVELS * SLOTS / WORD],
    /// Entries inserted at or before `elapsed`: overdue, or not yet due because the clock was set back.
    behind: BTreeMap<u64, List>,
    nodes: Vec<Node<T>>,
    /// Head of the chain of vacant nodes.
    vacant: u32,
    len: usize,
}

/// Identifies an entry of a [`Wheel`], to cancel it.
///
/// A key may outlive its entry: once the entry fired or was cancelled, the key is invalid, even if its node is
/// reused by another entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    index: u32,
    generation: u32,
}

impl<T> Wheel<T> {
    /// Creates an empty wheel with `now` as its present.
    pub fn new(now: Timestamp) -> Self {
        Wheel {
            elapsed: tick(now),
            slots: vec![List::EMPTY; LEVELS * SLOTS],
            occupied: [0; LEVELS * SLOTS / WORD],
            behind: BTreeMap::new(),
            nodes: Vec::new(),
            vacant: NONE,
            len: 0,
        }
    }

    /// Adds a value due at `at`. A time in the past is due at the next [`advance`](Wheel::advance).
    ///
    /// # Panics
    ///
    /// When the wheel already holds 2³² − 1 entries.
    pub fn insert(&mut self, at: Timestamp, value: T) -> Key {
        let index = self.occupy(tick(at), value);
        self.link(index);
        self.len += 1;
        Key { index, generation: self.nodes[index as usize].generation }
    }

    /// Removes an entry before its time; returns `None` if it has fired or been cancelled already.
    pub fn cancel(&mut self, key: Key) -> Option<T> {
        let node = self.nodes.get(key.index as usize)?;
        if node.generation != key.generation || node.value.is_none() {
            return None;
        }
        self.unlink(key.index);
        Some(self.vacate(key.index))
    }

    /// Moves the present to `now` and appends all entries due by then to `due`, in order.
    ///
    /// If `now` is before an earlier one, only entries due by `now` are appended.
    pub fn advance(&mut self, now: Timestamp, due: &mut Vec<(Timestamp, T)>) {
        let now = tick(now);
        while let Some(first) = self.behind.first_entry()
            && *first.key() <= now
        {
            let list = first.remove();
            self.settle(list, due);
        }
        while let Some((slot, start)) = self.first_slot()
            && start <= now
        {
            // From here on the slot's entries are due or differ in a lower digit.
            self.elapsed = start;
            let list = self.take_slot(slot);
            self.settle(list, due);
        }
        self.elapsed = self.elapsed.max(now);
    }

    /// When to [`advance`](Wheel::advance) next; `None` while the wheel is empty.
    ///
    /// Exact for entries up to 256 ms away, a lower bound for later ones: nothing is due before it. Advancing to it
    /// yields an entry or brings the bound closer, at most seven times before the entry is due.
    pub fn next_at(&self) -> Option<Timestamp> {
        let behind = self.behind.first_key_value().map(|(at, _)| *at);
        let next = behind.or_else(|| self.first_slot().map(|(_, start)| start));
        next.map(instant)
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the wheel has no entry.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Removes all entries, due or not, in the order they would have fired. The present does not change.
    pub fn drain(&mut self) -> Vec<(Timestamp, T)> {
        let present = self.elapsed;
        let mut all = Vec::with_capacity(self.len);
        self.advance(Timestamp::from_millis(i64::MAX), &mut all);
        self.elapsed = present;
        all
    }

    /// Drops all entries.
    pub fn clear(&mut self) {
        drop(self.drain());
    }

    /// Yields the entries of a list that are due by `elapsed` and moves the others to their new slots.
    fn settle(&mut self, list: List, due: &mut Vec<(Timestamp, T)>) {
        let mut index = list.head;
        while index != NONE {
            let node = &self.nodes[index as usize];
            let (at, next) = (node.at, node.next);
            if at <= self.elapsed {
                due.push((instant(at), self.vacate(index)));
            } else {
                self.link(index);
            }
            index = next;
        }
    }

    /// The occupied slot that starts first, with its start.
    fn first_slot(&self) -> Option<(usize, u64)> {
        // All entries of a level agree with the present in all higher digits, so the lowest level is the earliest.
        let word = self.occupied.iter().position(|slots| *slots != 0)?;
        let slot = word * WORD + self.occupied[word].trailing_zeros() as usize;
        let (level, digit) = (slot / SLOTS, (slot % SLOTS) as u64);
        let shift = level as u32 * DIGIT_BITS;
        let lower = u64::MAX >> (u64::BITS - DIGIT_BITS - shift);
        Some((slot, self.elapsed & !lower | digit << shift))
    }

    fn take_slot(&mut self, slot: usize) -> List {
        self.occupied[slot / WORD] &= !(1 << (slot % WORD));
        std::mem::replace(&mut self.slots[slot], List::EMPTY)
    }

    /// Appends a node to the list of its time.
    fn link(&mut self, index: u32) {
        let at = self.nodes[index as usize].at;
        let list = if at <= self.elapsed {
            self.behind.entry(at).or_insert(List::EMPTY)
        } else {
            let slot = slot_of(self.elapsed, at);
            self.occupied[slot / WORD] |= 1 << (slot % WORD);
            &mut self.slots[slot]
        };
        let last = list.tail;
        list.tail = index;
        if last == NONE {
            list.head = index;
        } else {
            self.nodes[last as usize].next = index;
        }
        let node = &mut self.nodes[index as usize];
        (node.prev, node.next) = (last, NONE);
    }

    /// Removes a node from the list of its time.
    fn unlink(&mut self, index: u32) {
        let Node { at, prev, next, .. } = self.nodes[index as usize];
        if prev != NONE {
            self.nodes[prev as usize].next = next;
        }
        if next != NONE {
            self.nodes[next as usize].prev = prev;
        }
        if prev != NONE && next != NONE {
            return;
        }
        if at <= self.elapsed {
            let list =
                self.behind.get_mut(&at).expect("a node that is not ahead hangs in its instant's list");
            if list.shrink(prev, next) {
                self.behind.remove(&at);
            }
        } else {
            let slot = slot_of(self.elapsed, at);
            if self.slots[slot].shrink(prev, next) {
                self.occupied[slot / WORD] &= !(1 << (slot % WORD));
            }
        }
    }

    /// Stores a value in a vacant node, or a new one.
    fn occupy(&mut self, at: u64, value: T) -> u32 {
        if self.vacant == NONE {
            let index = u32::try_from(self.nodes.len()).ok().filter(|index| *index != NONE);
            let index = index.expect("a wheel holds fewer than 2^32 entries");
            self.nodes.push(Node { at, prev: NONE, next: NONE, generation: 0, value: Some(value) });
            return index;
        }
        let index = self.vacant;
        let node = &mut self.nodes[index as usize];
        self.vacant = node.next;
        node.at = at;
        node.value = Some(value);
        index
    }

    /// Empties a node that is in no list any more.
    fn vacate(&mut self, index: u32) -> T {
        let node = &mut self.nodes[index as usize];
        node.generation = node.generation.wrapping_add(1);
        node.next = self.vacant;
        self.vacant = index;
        self.len -= 1;
        node.value.take().expect("only occupied nodes hang in lists")
    }
}

const DIGIT_BITS: u32 = 8;
const SLOTS: usize = 1 << DIGIT_BITS;
const LEVELS: usize = (u64::BITS / DIGIT_BITS) as usize;
/// Number of slots per bitmap word.
const WORD: usize = u64::BITS as usize;
/// Index that stands for no node.
const NONE: u32 = u32::MAX;

#[derive(Debug)]
struct Node<T> {
    at: u64,
    prev: u32,
    /// The next node in the same list; of a vacant node, the next vacant one.
    next: u32,
    /// Number of times this node was vacated; distinguishes a stale key from a valid one.
    generation: u32,
    value: Option<T>,
}

#[derive(Clone, Copy, Debug)]
struct List {
    head: u32,
    tail: u32,
}

impl List {
    const EMPTY: List = List { head: NONE, tail: NONE };

    /// Removes a node at an end, given its neighbours; returns whether the list is now empty.
    fn shrink(&mut self, prev: u32, next: u32) -> bool {
        if prev == NONE {
            self.head = next;
        }
        if next == NONE {
            self.tail = prev;
        }
        self.head == NONE
    }
}

/// The slot of a time after `elapsed`.
fn slot_of(elapsed: u64, at: u64) -> usize {
    let level = (elapsed ^ at).ilog2() / DIGIT_BITS;
    let digit = (at >> (level * DIGIT_BITS)) as usize % SLOTS;
    level as usize * SLOTS + digit
}

/// Times as unsigned numbers in the same order.
fn tick(at: Timestamp) -> u64 {
    at.as_millis() as u64 ^ SIGN
}

fn instant(tick: u64) -> Timestamp {
    Timestamp::from_millis((tick ^ SIGN) as i64)
}

const SIGN: u64 = 1 << 63;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn fires_by_instant_and_then_by_insertion() {
        check(0, &[5, 3, 5, 3, 4], &[(2, ""), (3, "bd"), (5, "eac")]);
        check(0, &[256, 255, 257, 65_536, 65_535], &[(254, ""), (256, "ba"), (65_535, "ce"), (65_536, "d")]);
        // Equal times keep their order although the second was closer when it was inserted.
        check(0, &[1_000_000; 3], &[(999_999, ""), (1_000_000, "abc")]);
    }

    #[test]
    fn the_past_and_the_far_future_are_ordinary() {
        check(1_000, &[999, i64::MIN, 1_000, 1_001], &[(1_000, "bac"), (1_001, "d")]);
        check(0, &[i64::MAX, i64::MAX - 1, -1], &[(0, "c"), (i64::MAX - 1, "b"), (i64::MAX, "a")]);
        check(i64::MIN, &[i64::MAX, 0, i64::MIN + 1], &[(-1, "c"), (0, "b"), (i64::MAX, "a")]);
    }

    #[test]
    fn a_clock_set_back_fires_nothing_early_and_loses_nothing() {
        check(0, &[50, 150], &[(100, "a"), (20, ""), (150, "b")]);
        let mut wheel = Wheel::new(at(1_000));
        wheel.advance(at(500), &mut Vec::new());
        wheel.insert(at(700), 'a');
        wheel.insert(at(600), 'b');
        assert_eq!(wheel.next_at(), Some(at(600)));
        assert_eq!(advance(&mut wheel, 599), "");
        assert_eq!(advance(&mut wheel, 600), "b");
        assert_eq!(advance(&mut wheel, 5_000), "a");
    }

    #[test]
    fn a_key_dies_with_its_entry() {
        let mut wheel = Wheel::new(at(0));
        let fired = wheel.insert(at(1), 'a');
        assert_eq!(advance(&mut wheel, 1), "a");
        let reused = wheel.insert(at(2), 'b');
        assert_eq!(fired.index, reused.index);
        assert_eq!(wheel.cancel(fired), None);
        assert_eq!(wheel.cancel(reused), Some('b'));
        assert_eq!(wheel.cancel(reused), None);
        assert!(wheel.is_empty());
        assert_eq!(wheel.next_at(), None);
    }

    #[test]
    fn draining_empties_in_order_and_leaves_a_working_wheel() {
        let mut wheel = Wheel::new(at(0));
        let keys = [9, 7, 1 << 40].map(|millis| wheel.insert(at(millis), millis));
        assert_eq!(wheel.drain(), [(at(7), 7), (at(9), 9), (at(1 << 40), 1 << 40)]);
        assert_eq!(keys.map(|key| wheel.cancel(key)), [None; 3]);
        wheel.insert(at(3), 3);
        assert_eq!((wheel.len(), wheel.next_at()), (1, Some(at(3))));
        wheel.clear();
        assert!(wheel.is_empty());
    }

    #[test]
    fn waking_at_the_bound_reaches_the_entry_in_a_few_steps() {
        for due in [1, 255, 256, 65_535, 86_400_000, 1 << 45, i64::MAX] {
            let mut wheel = Wheel::new(at(0));
            wheel.insert(at(due), ());
            let mut wakes = Vec::new();
            let mut fired = Vec::new();
            while let Some(next) = wheel.next_at() {
                wakes.push(next.as_millis());
                wheel.advance(next, &mut fired);
            }
            assert!(wakes.is_sorted_by(|a, b| a < b) && wakes.len() <= LEVELS, "{due}: woke at {wakes:?}");
            assert_eq!(wakes.last(), Some(&due));
        }
    }

    /// Inserts values `a`, `b`, … due at the given times, then advances step by step.
    fn check(start: i64, instants: &[i64], steps: &[(i64, &str)]) {
        let mut wheel = Wheel::new(at(start));
        for (value, millis) in ('a'..).zip(instants) {
            wheel.insert(at(*millis), value);
        }
        for (now, due) in steps {
            assert_eq!(advance(&mut wheel, *now), *due, "due by {now}");
        }
        assert!(wheel.is_empty());
    }

    fn advance(wheel: &mut Wheel<char>, now: i64) -> String {
        let mut due = Vec::new();
        wheel.advance(at(now), &mut due);
        due.into_iter().map(|(_, value)| value).collect()
    }

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[derive(Clone, Debug)]
    enum Step {
        Insert(i64),
        Cancel(usize),
        Advance(i64),
        /// Advances to the result of `next_at`.
        Wake,
        Drain,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        // Distances of every magnitude, so that every level is used, with many equal small ones.
        let distance = (0u32..40, any::<i64>()).prop_map(|(bits, random)| random % (1i64 << bits).max(2));
        let step = prop_oneof![
            6 => distance.clone().prop_map(Step::Insert),
            1 => prop_oneof![Just(i64::MAX), Just(i64::MIN)].prop_map(Step::Insert),
            3 => any::<usize>().prop_map(Step::Cancel),
            4 => distance.prop_map(Step::Advance),
            3 => Just(Step::Wake),
            1 => Just(Step::Drain),
        ];
        proptest::collection::vec(step, 1..200)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        /// The reference is a map ordered by (time, number); times in steps are relative to the clock, which moves
        /// both ways.
        #[test]
        fn behaves_like_an_ordered_map(start in -1_000_000i64..1_000_000, steps in steps()) {
            let mut now = start;
            let mut wheel = Wheel::new(at(now));
            let mut reference = BTreeMap::new();
            let mut keys = Vec::new();
            for step in steps {
                match step {
                    Step::Insert(distance) => {
                        let due = now.saturating_add(distance);
                        keys.push((wheel.insert(at(due), keys.len()), due));
                        reference.insert((due, keys.len() - 1), ());
                    }
                    Step::Cancel(pick) if !keys.is_empty() => {
                        let number = pick % keys.len();
                        let (key, due) = keys[number];
                        let expected = reference.remove(&(due, number)).map(|()| number);
                        prop_assert_eq!(wheel.cancel(key), expected);
                    }
                    Step::Cancel(_) => {}
                    Step::Advance(distance) => {
                        now = now.saturating_add(distance);
                        advance_both(&mut wheel, &mut reference, now)?;
                    }
                    Step::Wake => {
                        if let Some(next) = wheel.next_at() {
                            let ((first, _), ()) = reference.first_key_value().expect("the wheel is not empty");
                            prop_assert!(next <= at(*first), "a bound of {} would wake late for {}", next, first);
                            now = now.max(next.as_millis());
                            advance_both(&mut wheel, &mut reference, now)?;
                            prop_assert!(wheel.next_at().is_none_or(|later| later > at(now)), "no progress");
                        }
                    }
                    Step::Drain => {
                        let drained: Vec<_> = wheel.drain().into_iter().map(|(due, n)| (due.as_millis(), n)).collect();
                        let expected: Vec<_> = std::mem::take(&mut reference).into_keys().collect();
                        prop_assert_eq!(drained, expected);
                    }
                }
                prop_assert_eq!(wheel.len(), reference.len());
            }
        }
    }

    fn advance_both(
        wheel: &mut Wheel<usize>,
        reference: &mut BTreeMap<(i64, usize), ()>,
        now: i64,
    ) -> Result<(), TestCaseError> {
        let mut due = Vec::new();
        wheel.advance(at(now), &mut due);
        let due: Vec<_> = due.into_iter().map(|(due, number)| (due.as_millis(), number)).collect();
        let mut expected = Vec::new();
        while let Some(first) = reference.first_entry()
            && first.key().0 <= now
        {
            expected.push(first.remove_entry().0);
        }
        prop_assert_eq!(due, expected);
        Ok(())
    }
}
