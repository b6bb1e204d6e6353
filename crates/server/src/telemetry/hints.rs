//! Change notifications: hints that something has changed. Subscribers read the new data themselves.
//!
//! A hint is a counter, so nothing is queued: a slow subscriber sees once that it has grown, however often it did.

use protocol::v1::Event;
use tokio::sync::watch;

/// Change notifications of one node.
pub struct Hints {
    kinds: [(Event, watch::Sender<u64>); KINDS],
}

impl Default for Hints {
    fn default() -> Self {
        Hints::new()
    }
}

impl Hints {
    /// Creates the counters, all at zero.
    pub fn new() -> Hints {
        let kind = |event| (event, watch::Sender::new(0));
        Hints { kinds: [kind(Event::Runs), kind(Event::Jobs), kind(Event::Executors), kind(Event::Alerts)] }
    }

    /// Notifies subscribers that something of this kind has changed.
    pub fn announce(&self, event: Event) {
        if let Some((_, count)) = self.kinds.iter().find(|(kind, _)| *kind == event) {
            count.send_modify(|count| *count = count.wrapping_add(1));
        }
    }

    /// Subscribes to changes from now on.
    pub fn watch(&self) -> [(Event, watch::Receiver<u64>); KINDS] {
        self.kinds.each_ref().map(|(event, kind)| (event.clone(), kind.subscribe()))
    }
}

/// One for each kind of [`Event`].
const KINDS: usize = 4;
