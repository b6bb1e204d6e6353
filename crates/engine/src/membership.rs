//! One life of this node: whether it may still send, and what time the database has.
//!
//! The database's clock decides everything that nodes must agree upon. A node never asks its own wall clock when to
//! fire: it counts on from the database's time with its monotonic clock. The wall clock is only compared with it,
//! since a machine whose clock is wrong should not take work.
//!
//! Two things bind a life: its lease, and the lifeline it has promised the others to depend on, if any.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use cron::Timestamp;

use crate::ports::{LIFELINE_GRACE, LifelineId, Peer, Slots};
use crate::run::Node;

/// One life of this node.
#[derive(Clone, Debug)]
pub(crate) struct Membership {
    pub(crate) node: Node,
    /// Until when, by the monotonic clock, it may send. Counted from before the heartbeat left, so that it ends no
    /// later than what the database believes.
    lease_end: Duration,
    time: DatabaseTime,
    /// The lifelines without which it may not send: those the others may believe that it depends on.
    depends_on: BTreeSet<LifelineId>,
    /// The lifeline that was last confirmed, and until when, by the monotonic clock, that counts.
    lifeline: Option<(LifelineId, Duration)>,
    /// Everyone who is not fenced.
    pub(crate) peers: Vec<Peer>,
    /// How far the wall clock is off.
    pub(crate) skew: Skew,
}

/// How far this machine's wall clock is from the database's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skew {
    /// Wall clock minus database, in milliseconds.
    pub millis: i64,
}

impl Skew {
    /// A node whose clock is further off than this claims nothing (I18).
    pub const MAX_MILLIS: i64 = 500;

    /// Whether the clock is too wrong to take work.
    pub fn is_too_large(self) -> bool {
        self.millis.abs() > Skew::MAX_MILLIS
    }
}

/// A heartbeat, as it was seen from here.
pub(crate) struct Beat {
    /// Monotonic time before it left,
    pub(crate) sent: Duration,
    /// and when its answer was in.
    pub(crate) received: Duration,
    /// What the database's clock said in between.
    pub(crate) database: Timestamp,
    /// What the wall clock said when the answer was in.
    pub(crate) wall: Timestamp,
}

impl Membership {
    pub(crate) fn new(node: Node, lease: Duration, beat: &Beat) -> Self {
        let mut membership = Membership {
            node,
            lease_end: Duration::ZERO,
            time: DatabaseTime::default(),
            depends_on: BTreeSet::new(),
            lifeline: None,
            peers: Vec::new(),
            skew: Skew { millis: 0 },
        };
        membership.renew(lease, beat);
        membership
    }

    /// Takes in a heartbeat that the database accepted.
    pub(crate) fn renew(&mut self, lease: Duration, beat: &Beat) {
        self.lease_end = beat.sent + lease;
        self.time.learn(beat);
        self.skew = Skew { millis: beat.wall.as_millis() - self.time.at(beat.received).as_millis() };
    }

    /// It is over: nothing may be sent.
    pub(crate) fn end(&mut self) {
        self.lease_end = Duration::ZERO;
    }

    /// How long it may still send.
    pub(crate) fn lease_left(&self, monotonic: Duration) -> Duration {
        self.lease_end.saturating_sub(monotonic)
    }

    /// Whether nothing that it depends on may have broken.
    pub(crate) fn lifeline_holds(&self, monotonic: Duration) -> bool {
        self.depends_on
            .iter()
            .all(|needed| self.lifeline.is_some_and(|(held, until)| held == *needed && monotonic < until))
    }

    /// Takes in that the lifeline held at some moment after `asked`.
    pub(crate) fn confirm(&mut self, lifeline: LifelineId, asked: Duration) {
        self.lifeline = Some((lifeline, asked + LIFELINE_GRACE));
    }

    /// The others are about to be told that it depends on this one: from now on it does.
    pub(crate) fn begin_depending(&mut self, lifeline: Option<LifelineId>) {
        self.depends_on.extend(lifeline);
    }

    /// The others have been told, and know of no other.
    pub(crate) fn depends_only_on(&mut self, lifeline: Option<LifelineId>) {
        self.depends_on = lifeline.into_iter().collect();
    }

    /// Whether it certainly depends on this one and no other.
    pub(crate) fn is_told(&self, lifeline: Option<LifelineId>) -> bool {
        self.depends_on.iter().copied().eq(lifeline)
    }

    /// Whether there is anybody else to see that it is alive.
    pub(crate) fn has_peers(&self) -> bool {
        self.peers.iter().any(|peer| peer.node != self.node)
    }

    /// The database's clock, never ahead of it.
    pub(crate) fn now(&self, monotonic: Duration) -> Timestamp {
        self.time.at(monotonic)
    }

    /// The jobs this node claims: its share of the slots, and what others have left lying.
    pub(crate) fn slots(&self, now: Timestamp) -> Slots {
        let alive: Vec<&Node> =
            self.peers.iter().filter(|peer| peer.lease_until >= now).map(|peer| &peer.node).collect();
        let mut mask = 0;
        for slot in 0..64u64 {
            let owner = alive.iter().max_by_key(|node| weight(&node.name, slot));
            if owner.is_none_or(|owner| **owner == self.node) {
                mask |= 1 << slot;
            }
        }
        Slots { mask, others_before: now - OTHERS_AFTER }
    }
}

/// Rendezvous hashing (FNV-1a): each slot goes to the node that weighs most for it, so a node that comes or goes moves
/// only its own share.
fn weight(name: &str, slot: u64) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for byte in name.bytes().chain(slot.to_le_bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    }
    hash ^ (hash >> 31)
}

/// What the database's clock certainly shows by now.
///
/// Its answer was true at some moment before we had it, so counting on from when we had it can only be behind. Of the
/// last few answers the one that was quickest is the closest.
#[derive(Clone, Debug, Default)]
struct DatabaseTime {
    /// Database milliseconds minus monotonic nanoseconds, at the arrival of each of the last answers.
    offsets: VecDeque<i128>,
}

impl DatabaseTime {
    fn learn(&mut self, beat: &Beat) {
        let database = i128::from(beat.database.as_millis()) * NANOS_PER_MILLI;
        let at_most = database + NANOS_PER_MILLI - beat.sent.as_nanos() as i128;
        // The database's clock went back: what was learned before is from another time.
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

/// Heartbeats that are remembered for the time: long enough to hold a quick one, short enough that a drift between the
/// clocks (at most 0.5 ms in a second) stays below the millisecond we count in.
const OFFSETS_KEPT: usize = 8;

/// A node takes jobs of another's slots when they are this late for being claimed. They are claimed so far ahead that
/// even then they are in time.
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
        // Asked at 100, answered at 140, when the database showed 5000 to 5040.
        time.learn(&beat(100, 140, 5000));
        assert_eq!(time.at(Duration::from_millis(140)).as_millis(), 5000);
        // A quicker answer brings it closer,
        time.learn(&beat(1100, 1102, 6038));
        assert_eq!(time.at(Duration::from_millis(1102)).as_millis(), 6038);
        // a slower one not further away,
        time.learn(&beat(2100, 2900, 7040));
        assert_eq!(time.at(Duration::from_millis(2900)).as_millis(), 7836);
        // and when the database's clock is set back, we follow at once.
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
        assert!(holds(&life, 349) && !holds(&life, 350), "it counts from before it was asked for");

        // The connection broke. Until the others know of the new one, nothing leaves; then it does.
        life.confirm(second, Duration::from_millis(400));
        life.begin_depending(Some(second));
        assert!(!holds(&life, 401) && !life.is_told(Some(second)));
        life.depends_only_on(Some(second));
        assert!(holds(&life, 401) && life.is_told(Some(second)));
        life.depends_only_on(None);
        assert!(holds(&life, 9_999) && life.is_told(None));
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
