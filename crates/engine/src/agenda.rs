//! Reads the agenda: one statement that shows whether any loop of this node has work in the database.
//!
//! The loops check the last agenda in memory and query the database only if they have work, so at rest a node sends
//! two or three statements per second instead of one or more per loop. If the agenda cannot be read, each loop
//! queries for itself.

use std::time::Duration;

use cron::Timestamp;
use tokio::sync::watch;

use crate::engine::{Engine, HEARTBEAT, RETRY};
use crate::membership::Skew;
use crate::ports::{Agenda, StoreError};

impl Engine {
    pub(crate) async fn agenda_loop(&self) {
        loop {
            let wait = match self.read_agenda().await {
                Ok(pause) => pause,
                Err(error) => {
                    self.set_agenda(None);
                    self.complain(&error, "failed to read the nodes and the work that is due", RETRY);
                    RETRY
                }
            };
            self.inner.clock.sleep(wait).await;
        }
    }

    /// Reads the agenda and wakes the loops that have work now. Returns the time until the next read.
    async fn read_agenda(&self) -> Result<Duration, StoreError> {
        let sent = self.inner.clock.monotonic();
        let agenda = self.inner.store.agenda(self.inner.dispatch.marks_first()).await?;
        let beat = self.beat(sent, agenda.now);
        if let Some(life) = self.life().as_mut() {
            life.learn(&beat);
            life.peers.clone_from(&agenda.nodes);
            if life.skew.is_too_large() {
                tracing::error!(
                    skew_ms = life.skew.millis,
                    "this machine's clock differs from the database's by more than {} ms; claiming no runs until it is corrected",
                    Skew::MAX_MILLIS
                );
            }
        }
        self.inner.send_now.notify_one();
        if agenda.has_claims(self.now()) {
            self.inner.claim_now.notify_one();
        }
        if agenda.has_abandoned {
            self.inner.rescue_now.notify_one();
        }
        let read_at = beat.received;
        let registry = RegistryState { revision: agenda.registry, now: agenda.now, read_at };
        self.inner.registry.send_replace(Some(registry));
        let pause = pause_after(&agenda);
        self.set_agenda(Some(agenda));
        Ok(pause)
    }

    /// Whether the last agenda has this work. True before the first one, and while none can be read.
    pub(crate) fn has_work(&self, is_due: impl FnOnce(&Agenda) -> bool) -> bool {
        let agenda = self.inner.agenda.lock().expect("no holder of this lock panics");
        agenda.as_ref().is_none_or(is_due)
    }

    pub(crate) fn set_agenda(&self, agenda: Option<Agenda>) {
        *self.inner.agenda.lock().expect("no holder of this lock panics") = agenda;
    }

    /// States of the registry: a new one about twice per second, once per second at rest.
    pub fn registry_states(&self) -> watch::Receiver<Option<RegistryState>> {
        self.inner.registry.subscribe()
    }
}

/// State of the registry of apps, their executors and their tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegistryState {
    /// Counter of changes.
    pub revision: i64,
    /// The database's time when it was read.
    pub now: Timestamp,
    /// Monotonic time when the database's answer arrived. A subscriber may see the state later.
    pub read_at: Duration,
}

/// Time until the agenda is read again. The only node of an idle database reads it less often: all work that other
/// programs may add is found by [`adopt`](crate::adopt), and a second node is found after one heartbeat anyway.
fn pause_after(agenda: &Agenda) -> Duration {
    let is_alone = agenda.nodes.len() <= 1;
    let is_idle = !agenda.has_open_runs() && agenda.claim_at.is_none_or(|at| at > agenda.now + IDLE_PAUSE);
    if is_alone && is_idle { IDLE_PAUSE } else { PAUSE }
}

/// Interval of reads. Claims look 1.5 s ahead, so this is in time for everything that other nodes add.
pub(crate) const PAUSE: Duration = Duration::from_millis(500);

/// Interval while this is the only node and nothing is due.
const IDLE_PAUSE: Duration = HEARTBEAT;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::Peer;
    use crate::run::Node;
    use crate::testing::ms;

    #[test]
    fn only_a_single_node_without_work_reads_less_often() {
        let peer = |name: &str| Peer { node: Node { name: name.into(), epoch: 1 }, lease_until: ms(9_000) };
        let idle = Agenda {
            now: ms(5_000),
            nodes: vec![peer("a")],
            claim_at: Some(ms(60_000)),
            ..Agenda::default()
        };
        assert_eq!(pause_after(&idle), IDLE_PAUSE);
        let check = |busy: Agenda| assert_eq!(pause_after(&busy), PAUSE, "{busy:?}");
        check(Agenda { nodes: vec![peer("a"), peer("b")], ..idle.clone() });
        check(Agenda { claim_at: Some(ms(5_900)), ..idle.clone() });
        check(Agenda { waiting_at: Some(ms(60_000)), ..idle.clone() });
        check(Agenda { check_at: Some(ms(60_000)), ..idle.clone() });
        check(Agenda { has_claimed: true, ..idle.clone() });
        check(Agenda { has_cancelling: true, ..idle });
    }
}
