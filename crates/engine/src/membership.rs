//! One incarnation of this node: whether it may still send, and the time of the database.
//!
//! The database's clock decides everything that nodes must agree on. A node never uses its own wall clock to fire:
//! it extrapolates the database's time with its monotonic clock. The wall clock is only compared with it, because a
//! machine with a wrong clock should not take work.
//!
//! An incarnation may send only within its lease, and only while the lifeline that it has announced to depend on
//! holds, if any.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use cron::Timestamp;

use crate::ports::{LIFELINE_GRACE, LifelineId, Peer, Slots};
use crate::run::Node;

/// One incarnation of this node.
#[derive(Clone, Debug)]
pub(crate) struct Membership {
    pub(crate) node: Node,
    /// Monotonic time until which it may send. Counted from before the heartbeat was sent, so that it ends no later
    /// than the lease in the database.
    lease_end: Duration,
    time: DatabaseTime,
    /// Lifelines without which it may not send: those that the peers may assume it depends on.
    depends_on: BTreeSet<LifelineId>,
    /// Lifeline that was last confirmed, and the monotonic time until which the confirmation is valid.
    lifeline: Option<(LifelineId, Duration)>,
    /// All nodes that are not fenced.
    pub(crate) peers: Vec<Peer>,
    /// Difference of the wall clock.
    pub(crate) skew: Skew,
}

/// Difference between this machine's wall clock and the database's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skew {
    /// Wall clock minus database clock, in milliseconds.
    pub millis: i64,
}

impl Skew {
    /// A node with a larger difference claims nothing (I18).
    pub const MAX_MILLIS: i64 = 500;

    /// Whether the difference is too large to take work.
    pub fn is_too_large(self) -> bool {
        self.millis.abs() > Skew::MAX_MILLIS
    }
}

/// An answer of the database with its time and our local times.
pub(crate) struct Beat {
    /// Monotonic time before the query was sent.
    pub(crate) sent: Duration,
    /// Monotonic time when the answer arrived.
    pub(crate) received: Duration,
    /// Time of the database's clock in between.
    pub(crate) database: Timestamp,
    /// Time of the wall clock when the answer arrived.
    pub(crate) wall: Timestamp,
}

impl Membership {
    pub(crate) fn new(node: Node, lease: Duration, beat: &Beat) -> Self {
        let mut membership = Membership {
            node,
            lease_end: beat.sent + lease,
            time: DatabaseTime::default(),
            depends_on: BTreeSet::new(),
            lifeline: None,
            peers: Vec::new(),
            skew: Skew { millis: 0 },
        };
        membership.learn(beat);
        membership
    }

    /// Processes a heartbeat, sent at this monotonic time, that the database accepted.
    pub(crate) fn renew(&mut self, lease: Duration, sent: Duration) {
        self.lease_end = sent + lease;
    }

    /// Processes the time that the database returned.
    pub(crate) fn learn(&mut self, beat: &Beat) {
        self.time.learn(beat);
        self.skew = Skew { millis: beat.wall.as_millis() - self.time.at(beat.received).as_millis() };
    }

    /// Ends the incarnation: nothing may be sent any more.
    pub(crate) fn end(&mut self) {
        self.lease_end = Duration::ZERO;
    }

    /// Time for which it may still send.
    pub(crate) fn lease_left(&self, monotonic: Duration) -> Duration {
        self.lease_end.saturating_sub(monotonic)
    }

    /// Whether all lifelines that it depends on are confirmed.
    pub(crate) fn lifeline_holds(&self, monotonic: Duration) -> bool {
        self.depends_on
            .iter()
            .all(|needed| self.lifeline.is_some_and(|(held, until)| held == *needed && monotonic < until))
    }

    /// Processes a confirmation that the lifeline held at some moment after `asked`.
    pub(crate) fn confirm(&mut self, lifeline: LifelineId, asked: Duration) {
        self.lifeline = Some((lifeline, asked + LIFELINE_GRACE));
    }

    /// Depends on this lifeline from now on; called before the dependency is announced.
    pub(crate) fn begin_depending(&mut self, lifeline: Option<LifelineId>) {
        self.depends_on.extend(lifeline);
    }

    /// Depends on this lifeline only; called after the announcement is stored.
    pub(crate) fn depends_only_on(&mut self, lifeline: Option<LifelineId>) {
        self.depends_on = lifeline.into_iter().collect();
    }

    /// Whether it depends on this lifeline and no other.
    pub(crate) fn is_told(&self, lifeline: Option<LifelineId>) -> bool {
        self.depends_on.iter().copied().eq(lifeline)
    }

    /// Whether there are other nodes to observe this one.
    pub(crate) fn has_peers(&self) -> bool {
        self.peers.iter().any(|peer| peer.node != self.node)
    }

    /// Time of the database's clock, never ahead of it.
    pub(crate) fn now(&self, monotonic: Duration) -> Timestamp {
        self.time.at(monotonic)
    }

    /// Jobs that this node claims: its share of the slots, and jobs of other slots that are overdue.
    pub(crate) fn slots(&self, now: Timestamp) -> Slots {
        let alive = self.peers.iter().filter(|peer| peer.lease_until >= now);
        let alive: Vec<(u64, &Node)> = alive.map(|peer| (hash(&peer.node.name), &peer.node)).collect();
        let mut mask = 0;
        for slot in 0..64u8 {
            let owner = alive.iter().max_by_key(|(name, _)| weight(*name, slot));
            if owner.is_none_or(|(_, owner)| **owner == self.node) {
                mask |= 1 << slot;
            }
        }
        Slots { mask, others_before: now - OTHERS_AFTER }
    }
}

/// Rendezvous hashing: each slot belongs to the node with the highest weight, so a node that joins or leaves moves
/// only its own share. The weight is the FNV-1a hash of the node's name and of the slot as eight bytes, little-endian.
/// Seven of these are zero, so they only multiply.
fn weight(name: u64, slot: u8) -> u64 {
    let hash = (name ^ u64::from(slot)).wrapping_mul(FNV_PRIME.wrapping_pow(8));
    hash ^ (hash >> 31)
}

/// FNV-1a.
fn hash(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME))
}

const FNV_PRIME: u64 = 0x100_0000_01b3;

/// Lower bound of the database's current time.
///
/// A response was true at some moment before it arrived, so extrapolating from its arrival can only be behind. Of
/// the last few responses the fastest is the most accurate.
#[derive(Clone, Debug, Default)]
struct DatabaseTime {
    /// Database time minus monotonic time in nanoseconds, at the arrival of each of the last responses.
    offsets: VecDeque<i128>,
}

impl DatabaseTime {
    fn learn(&mut self, beat: &Beat) {
        let database = i128::from(beat.database.as_millis()) * NANOS_PER_MILLI;
        let at_most = database + NANOS_PER_MILLI - beat.sent.as_nanos() as i128;
        // The database's clock was set back: earlier offsets are invalid.
        if self.offsets.iter().any(|offset| *offset > at_most) {
            self.offsets.clear();
        }
        if self.offsets.len() == OFFSETS_KEPT {
            self.offsets.pop_front();
        }
        self.offsets.push_back(database - beat.received.as_nanos() as i128);
    }

    fn at(&self, monotonic: Duration) -> Timestamp {
        let offset = self.offsets.iter().max().copied().unwrap_or_default();
        Timestamp::from_millis(((offset + monotonic.as_nanos() as i128) / NANOS_PER_MILLI) as i64)
    }
}

const NANOS_PER_MILLI: i128 = 1_000_000;

/// Number of answers kept for the time: enough to contain a fast one, few enough that a drift between the clocks
/// (at most 0.5 ms per second) stays below the millisecond we count in.
const OFFSETS_KEPT: usize = 8;

/// A node claims jobs of other nodes' slots when their claim is this overdue. The look-ahead is so long that they
/// are still in time.
const OTHERS_AFTER: Duration = Duration::from_millis(400);

#[cfg(test)]
mod tests {
    use super::*;

    fn beat(sent: u64, received: u64, database: i64) -> Beat {
        Beat {
            sent: Duration::from_millis(sent),
            received: Duration::from_millis(received),
            database: Timestamp::from_millis(database),
            wall: Timestamp::from_millis(database),
        }
    }

    fn node(name: &str) -> Node {
        Node { name: name.into(), epoch: 1 }
    }

    #[test]
    fn the_time_is_never_ahead_of_the_database() {
        let mut time = DatabaseTime::default();
        // Sent at 100, answered at 140, when the database showed 5000 to 5040.
        time.learn(&beat(100, 140, 5000));
        assert_eq!(time.at(Duration::from_millis(140)).as_millis(), 5000);
        // A faster response brings it closer.
        time.learn(&beat(1100, 1102, 6038));
        assert_eq!(time.at(Duration::from_millis(1102)).as_millis(), 6038);
        // A slower one does not move it away.
        time.learn(&beat(2100, 2900, 7040));
        assert_eq!(time.at(Duration::from_millis(2900)).as_millis(), 7836);
        // When the database's clock is set back, we follow at once.
        time.learn(&beat(3100, 3101, 1000));
        assert_eq!(time.at(Duration::from_millis(3101)).as_millis(), 1000);
    }

    #[test]
    fn the_lease_counts_from_before_the_heartbeat_left() {
        let membership = Membership::new(node("a"), Duration::from_secs(3), &beat(1000, 2500, 9000));
        assert_eq!(membership.lease_left(Duration::from_millis(2500)), Duration::from_millis(1500));
        assert_eq!(membership.lease_left(Duration::from_millis(4000)), Duration::ZERO);
    }

    #[test]
    fn a_life_sends_only_while_every_lifeline_it_may_depend_on_is_confirmed() {
        let mut life = Membership::new(node("a"), Duration::from_secs(3), &beat(0, 0, 0));
        let holds = |life: &Membership, at: u64| life.lifeline_holds(Duration::from_millis(at));
        let (first, second) = (LifelineId(1), LifelineId(2));
        assert!(holds(&life, 9_999), "who depends on none needs none");
        life.confirm(first, Duration::from_millis(100));
        life.begin_depending(Some(first));
        assert!(holds(&life, 299) && !holds(&life, 300), "it counts from before it was asked for");

        // The connection broke. Nothing is sent until the peers know of the new one.
        life.confirm(second, Duration::from_millis(400));
        life.begin_depending(Some(second));
        assert!(!holds(&life, 401) && !life.is_told(Some(second)));
        life.depends_only_on(Some(second));
        assert!(holds(&life, 401) && life.is_told(Some(second)));
        life.depends_only_on(None);
        assert!(holds(&life, 9_999) && life.is_told(None));
    }

    /// Nodes of different versions must agree about the owner of each slot.
    #[test]
    fn the_weight_of_a_slot_is_the_hash_of_all_its_bytes() {
        for name in ["", "a", "node-1", "centre.example.org:8080"] {
            for slot in 0..64u8 {
                let bytes: Vec<u8> = name.bytes().chain(u64::from(slot).to_le_bytes()).collect();
                let all = bytes.iter().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
                    (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
                });
                assert_eq!(weight(hash(name), slot), all ^ (all >> 31), "{name} {slot}");
            }
        }
    }

    #[test]
    fn every_slot_has_one_owner_among_the_living() {
        let now = Timestamp::from_millis(10_000);
        let peers: Vec<Peer> = [("a", 12_000), ("b", 12_000), ("c", 12_000), ("dead", 9_000)]
            .map(|(name, until)| Peer { node: node(name), lease_until: Timestamp::from_millis(until) })
            .into();
        let masks = ["a", "b", "c"].map(|name| {
            let mut membership = Membership::new(node(name), Duration::from_secs(3), &beat(0, 0, 10_000));
            membership.peers = peers.clone();
            membership.slots(now).mask
        });
        assert_eq!(masks[0] | masks[1] | masks[2], u64::MAX);
        assert_eq!(masks[0] & masks[1] | masks[1] & masks[2] | masks[0] & masks[2], 0);
        assert!(masks.iter().all(|mask| mask.count_ones() >= 8), "shares are fair: {masks:?}");
    }
}
