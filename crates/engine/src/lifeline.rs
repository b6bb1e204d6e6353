//! Lifelines detect after 0.2 to 0.3 s that another node's process has died.
//!
//! Each process has a database connection that holds a lock (its lifeline). When the process dies, its socket
//! closes and the database releases the lock; the other nodes poll the locks. To make a released lock prove that
//! the node no longer sends, an incarnation with peers announces that it depends on its lifeline: it sends only if
//! the lifeline was confirmed within [`LIFELINE_GRACE`], and the peers wait as long before they act. If the
//! database responds too slowly for that, the node withdraws the announcement, and the lease alone decides.

use std::time::Duration;

use crate::engine::Engine;
use crate::ports::{LIFELINE_GRACE, LifelineId, Lifelines, StoreError};

impl Engine {
    pub(crate) async fn lifeline_loop(&self) {
        let mut prompt_looks = 0;
        let mut next = None;
        loop {
            self.await_lifeline_look(next.take()).await;
            if !self.is_watched() {
                // A single node has no peers that would poll, so it sends no queries.
                prompt_looks = 0;
                continue;
            }
            let asked = self.inner.clock.monotonic();
            let wanted = match self.inner.store.lifelines().await {
                Ok(None) => return std::future::pending().await,
                Ok(Some(lifelines)) => {
                    let is_prompt = self.inner.clock.monotonic() - asked <= PROMPT;
                    prompt_looks = if is_prompt { prompt_looks + 1 } else { 0 };
                    self.take_in(&lifelines, asked).await;
                    next = lifelines.next;
                    let is_steady =
                        prompt_looks >= STEADY_LOOKS || is_prompt && self.is_told(Some(lifelines.own));
                    (is_steady && self.has_peers()).then_some(lifelines.own)
                }
                Err(error) => {
                    prompt_looks = 0;
                    self.complain(
                        &error,
                        "the lifeline to the database is broken; runs wait until it or the lease is renewed",
                        LIFELINE_LOOK,
                    );
                    None
                }
            };
            self.depend_on(wanted).await;
        }
    }

    /// Waits until the lifelines are to be polled again: until one that was seen broken is certain to be so, or for
    /// the usual interval. While no node has anything to send, a death is not urgent, and polls are rare.
    async fn await_lifeline_look(&self, next: Option<Duration>) {
        let soon = self.now() + 2 * IDLE_LOOK;
        let is_idle = self.outbox().len() == 0 && !self.has_work(|agenda| agenda.has_sends_by(soon));
        let usual = if is_idle { IDLE_LOOK } else { LIFELINE_LOOK };
        tokio::select! {
            biased;
            () = self.inner.lifeline_now.notified(), if is_idle => {}
            () = self.inner.clock.sleep(next.map_or(usual, |next| next.min(usual))) => {}
        }
    }

    async fn take_in(&self, lifelines: &Lifelines, asked: Duration) {
        if let Some(life) = self.life().as_mut() {
            life.confirm(lifelines.own, asked);
        }
        self.inner.send_now.notify_one();
        if lifelines.broken.is_empty() {
            return;
        }
        match self.inner.store.fence_broken(&lifelines.broken).await {
            Ok(dead) if dead.is_empty() => {}
            Ok(dead) => {
                for node in &dead {
                    tracing::warn!(%node, "a node's process has ended; taking over its runs");
                }
                if let Some(life) = self.life().as_mut() {
                    life.peers.retain(|peer| !dead.contains(&peer.node));
                }
                self.look_early();
                self.inner.rescue_now.notify_one();
                self.inner.claim_now.notify_one();
            }
            Err(error) => self.complain(&error, "failed to declare a node dead", LIFELINE_LOOK),
        }
    }

    /// Announces to the peers which lifeline this incarnation depends on, if they do not know it yet.
    async fn depend_on(&self, lifeline: Option<LifelineId>) {
        let node = match self.life().as_mut() {
            Some(life) if !life.is_told(lifeline) => {
                life.begin_depending(lifeline);
                life.node.clone()
            }
            _ => return,
        };
        match self.inner.store.depend_on(&node, lifeline).await {
            Ok(()) => {
                if let Some(life) = self.life().as_mut() {
                    life.depends_only_on(lifeline);
                }
                self.inner.send_now.notify_one();
            }
            Err(StoreError::Fenced(_)) => self.inner.beat_now.notify_one(),
            Err(error) => self.complain(&error, "failed to store the lifelines of this node", LIFELINE_LOOK),
        }
    }

    /// Whether peers poll this node's lifeline, or may assume that it depends on one.
    fn is_watched(&self) -> bool {
        self.has_peers() || !self.is_told(None)
    }

    fn has_peers(&self) -> bool {
        self.life().as_ref().is_some_and(|life| life.has_peers())
    }

    fn is_told(&self, lifeline: Option<LifelineId>) -> bool {
        self.life().as_ref().is_some_and(|life| life.is_told(lifeline))
    }
}

/// Polling interval of a node with peers: four times within the time after which it would stop sending.
pub(crate) const LIFELINE_LOOK: Duration = LIFELINE_GRACE.checked_div(4).expect("four is not zero");

/// The same while no node has anything to send.
const IDLE_LOOK: Duration = Duration::from_secs(1);

/// A slower response could delay due fires.
const PROMPT: Duration = Duration::from_millis(100);

/// Number of consecutive prompt responses, about a second, after which a node depends on its lifeline.
const STEADY_LOOKS: u32 = 20;
