//! Claims fires and runs that are due soon, as rows first, and puts them into the outbox.
//!
//! Any number of nodes may claim at once: the store gives each scheduled time of a job to exactly one.

use std::collections::BTreeSet;
use std::time::Duration;

use cron::Timestamp;
use futures_util::future::join_all;

use crate::engine::{Engine, RETRY};
use crate::plan::Tick;
use crate::ports::{Claim, StoreError};
use crate::run::Node;
use crate::sabotage::Sabotage;
use crate::telemetry::StepEvent;
use crate::workflow::Advanced;

/// What the claim loop is woken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wake {
    Claims,
    Workflows,
}

impl Engine {
    pub(crate) async fn claim_loop(&self) {
        // If the response to a commit was lost, its effect is read before anything else is claimed.
        let mut in_doubt = false;
        let mut wakes = BTreeSet::new();
        let mut looked_at = self.inner.clock.monotonic();
        loop {
            // Polling guarantees correctness: it finds runs that this node owns but does not hold in the outbox.
            if self.inner.clock.monotonic() - looked_at > OWNED_EVERY {
                looked_at = self.inner.clock.monotonic();
                in_doubt |= self.has_work(|agenda| agenda.has_claimed);
            }
            let wait = match self.claim_all(&mut in_doubt, &mut wakes).await {
                Ok(wait) => wait,
                Err(error) => {
                    self.complain(&error, "failed to claim", RETRY);
                    if error.is_outage() {
                        self.doubt_database();
                    }
                    in_doubt = true;
                    RETRY
                }
            };
            let end = self.inner.clock.monotonic() + wait;
            // Most events of workflow runs are followed by steps only, which need no claim.
            while self.await_claims(end, looked_at + OWNED_EVERY).await == Wake::Workflows
                && self.only_advances(&mut in_doubt).await
            {}
        }
    }

    /// Waits until there may be something to claim: until `end` at most, or until another loop or the agenda finds
    /// some. Without an agenda it waits for one poll only. Also returns when, after `owned_at`, this node may own runs
    /// that it does not hold.
    async fn await_claims(&self, end: Duration, owned_at: Duration) -> Wake {
        loop {
            let left = end.saturating_sub(self.inner.clock.monotonic());
            tokio::select! {
                biased;
                () = self.inner.claim_now.notified() => return Wake::Claims,
                () = self.inner.advance_now.notified() => {}
                () = self.inner.clock.sleep(left.min(POLL_MAX)) => {}
            }
            let now = self.inner.clock.monotonic();
            let may_own = self.has_work(|agenda| agenda.has_claimed && now > owned_at);
            if now >= end || may_own || self.has_backfill_events() {
                return Wake::Claims;
            }
            if self.has_workflow_events() {
                return Wake::Workflows;
            }
        }
    }

    /// Applies all events of workflow runs; returns whether nothing else is to be claimed now.
    async fn only_advances(&self, in_doubt: &mut bool) -> bool {
        if *in_doubt || !self.may_claim() {
            return false;
        }
        let node = self.node();
        loop {
            match self.advance_workflows(&node).await {
                Ok(Advanced { waiting: true, .. }) => return false,
                Ok(Advanced { more: true, .. }) => {}
                Ok(_) => return true,
                Err(error) => {
                    self.complain(&error, "failed to advance workflow runs", RETRY);
                    *in_doubt = true;
                    self.inner.clock.sleep(RETRY).await;
                    return false;
                }
            }
        }
    }

    /// Claims until nothing more is due; returns the time to wait before the next call. `wakes` are the times at
    /// which a claim must happen to the millisecond.
    async fn claim_all(
        &self,
        in_doubt: &mut bool,
        wakes: &mut BTreeSet<Timestamp>,
    ) -> Result<Duration, StoreError> {
        if !self.may_claim() {
            return Ok(HELD_BACK);
        }
        let node = self.node();
        if std::mem::take(in_doubt) {
            self.find_owned(&node).await.inspect_err(|_| *in_doubt = true)?;
        }
        let mut next_at = None;
        // Number of claims of jobs in a row that left some for the next one.
        let mut full = 0;
        loop {
            // Steps before all else: runs that follow others are due since these ended.
            let mut more = false;
            if self.has_workflow_events() {
                let advanced = self.advance_workflows(&node).await?;
                more = advanced.more | advanced.waiting;
            }
            more |= self.has_backfill_events() && self.advance_backfills().await?;
            for what in [Due::Runs, Due::Jobs] {
                // Runs first: those of a job are older than new fires of its schedule. Checked each time: a claim
                // may take long, and the clock may be found wrong meanwhile.
                if !self.may_claim() {
                    return Ok(HELD_BACK);
                }
                self.recount_if_reached().await?;
                self.outbox().begin_claim();
                let is_behind = what == Due::Jobs && full >= BEHIND && !self.inner.store.has_one_writer();
                let at_once = if is_behind { 2 } else { 1 };
                let claims = join_all((0..at_once).map(|_| self.claim(&node, what))).await;
                let mut failed = None;
                let mut is_full = false;
                for claimed in claims {
                    match claimed {
                        Ok((claim, found)) => {
                            is_full |= claim.more;
                            next_at = [next_at, claim.next_at].into_iter().flatten().min();
                            wakes.extend(found);
                            self.put_into_outbox(claim);
                        }
                        Err(error) => failed = Some(error),
                    }
                }
                if let Some(error) = failed {
                    return Err(error);
                }
                more |= is_full;
                if what == Due::Jobs {
                    full = if is_full { full + 1 } else { 0 };
                }
            }
            if !more {
                let now = self.now();
                *wakes = wakes.split_off(&(now + Duration::from_millis(1)));
                while wakes.len() > WAKES_MAX {
                    wakes.pop_last();
                }
                let next = next_at.map_or(WAIT_MAX, |at| at.duration_since(now).clamp(POLL_MIN, WAIT_MAX));
                return Ok(wakes.first().map_or(next, |at| at.duration_since(now).min(next)));
            }
        }
    }

    /// Claims one batch. Returns it with the times at which the next claim must happen to the millisecond.
    async fn claim(&self, node: &Node, what: Due) -> Result<(Claim, Vec<Timestamp>), StoreError> {
        let now = self.now();
        let slots = self.life().as_ref().expect("loops run only after joining").slots(now);
        let tick = Tick::new(now, &*self.inner.router, self.inner.options.bugs).within(&self.inner.quota);
        let store = &self.inner.store;
        let asked = self.inner.clock.monotonic();
        let max = self.inner.paces.claims.size();
        let claim = match what {
            Due::Jobs => store.claim_due(node, now, slots, max, &tick).await?,
            Due::Runs => store.claim_waiting(node, now, slots, max, &tick).await?,
        };
        if !claim.orders.is_empty() {
            let took = self.inner.clock.monotonic() - asked;
            self.inner.paces.claims.took(claim.orders.len(), took);
            self.emit(StepEvent::Claimed { orders: &claim.orders, took });
            self.inner.quota.took(&claim.orders);
        }
        Ok((claim, tick.into_wakes()))
    }

    /// Puts all runs into the outbox that this incarnation owns according to their rows.
    async fn find_owned(&self, node: &Node) -> Result<(), StoreError> {
        self.outbox().begin_claim();
        let mut after = None;
        loop {
            let (orders, next) = self.inner.store.owned(node, after, OWNED_MAX).await?;
            self.put_into_outbox(Claim { orders, ..Claim::default() });
            match next {
                Some(next) => after = Some(next),
                None => return Ok(()),
            }
        }
    }

    fn may_claim(&self) -> bool {
        self.status().may_claim && self.outbox().len() < HELD_MAX && self.trusts_database()
    }

    pub(crate) fn put_into_outbox(&self, claim: Claim) {
        self.history().claimed(&claim.orders, self.now());
        let mut outbox = self.outbox();
        for replaced in claim.replaced {
            outbox.add_replaced(replaced);
        }
        for mut order in claim.orders {
            if self.sabotaged(Sabotage::SendEarly) {
                order.run.due_at = Timestamp::from_millis(0);
            }
            outbox.add(order);
        }
        self.inner.holds_now.notify_one();
        self.inner.lifeline_now.notify_one();
        self.inner.send_now.notify_one();
    }
}

/// Kind of due work to claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    Jobs,
    Runs,
}

/// Maximum number of held runs; above it nothing more is claimed, so that other nodes can take them.
const HELD_MAX: usize = 50_000;

/// Number of full batches of jobs in a row after which two are claimed at a time, where the database commits several
/// transactions at a time: one connection uses one core of such a server, and waits for each of its commits.
const BEHIND: u32 = 2;

/// Time to wait when nothing may be claimed for now.
const HELD_BACK: Duration = Duration::from_millis(50);

/// Claims look far enough ahead that a short delay makes nothing late, and lets one transaction claim more.
const POLL_MIN: Duration = Duration::from_millis(100);

/// Interval of claims while the agenda cannot be read. Claims look 1.5 s ahead, so this is in time for everything that
/// other nodes add.
const POLL_MAX: Duration = Duration::from_millis(500);

/// Maximum time between two claims. The agenda shows earlier work.
const WAIT_MAX: Duration = Duration::from_secs(60 * 60);

/// Maximum number of wakes stored. Any more within seconds are covered by polling.
const WAKES_MAX: usize = 10_000;

/// Interval at which a node compares its outbox with the rows it owns.
const OWNED_EVERY: Duration = Duration::from_secs(10);

/// Number of runs compared at a time: reading them takes some milliseconds.
const OWNED_MAX: usize = 1_000;
