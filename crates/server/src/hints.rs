//! That something is new, for those who look on. What it is, they read themselves.
//!
//! A hint is a number that grows, so nothing is ever queued: whoever looks late sees that it has grown, once, however
//! often it did.

use protocol::v1::Event;
use tokio::sync::watch;

/// Hints of one node.
pub struct Hints {
    kinds: [(Event, watch::Sender<u64>); KINDS],
}

impl Default for Hints {
    fn default() -> Self {
        Hints::new()
    }
}

impl Hints {
    /// Nothing has happened yet.
    pub fn new() -> Hints {
        let kind = |event| (event, watch::Sender::new(0));
        Hints { kinds: [kind(Event::Runs), kind(Event::Jobs), kind(Event::Executors), kind(Event::Alerts)] }
    }

    /// Runs began or ended.
    pub fn runs(&self) {
        self.raise(0);
    }

    /// Jobs were changed.
    pub fn jobs(&self) {
        self.raise(1);
    }

    /// Executors came or went, or apps were changed.
    pub fn executors(&self) {
        self.raise(2);
    }

    /// An alert arose, or somebody was told of one.
    pub fn alerts(&self) {
        self.raise(3);
    }

    fn raise(&self, kind: usize) {
        self.kinds[kind].1.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Looks on, from now.
    pub fn watch(&self) -> [(Event, watch::Receiver<u64>); KINDS] {
        self.kinds.each_ref().map(|(event, kind)| (event.clone(), kind.subscribe()))
    }
}

/// One for each kind of [`Event`].
const KINDS: usize = 4;
