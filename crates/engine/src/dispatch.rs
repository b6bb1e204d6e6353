//! Dispatch: sends due runs that this node still owns.
//!
//! Between the due time and the network there is no SQL (unless the dispatch requires marking first). The response
//! is a receipt, not a result: the executor accepted the run, rejected it, or it is unknown.

use std::future::Future;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use cron::Timestamp;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};

use crate::complete::{REPLACED, WORKFLOW_CANCELLED};
use crate::engine::{Engine, RETRY};
use crate::job::Job;
use crate::lanes::{Lane, Lanes};
use crate::lifeline::LIFELINE_LOOK;
use crate::outbox::{QueueKey, queue_of};
use crate::plan::{self, TOO_LATE};
use crate::policy::Delivery;
use crate::ports::{Ending, KillAnswer, Moved, Receipt, To};
use crate::run::{Order, Outcome, Run, RunId};
use crate::sabotage::Sabotage;
use crate::telemetry::StepEvent;
use crate::watch;

impl Engine {
    pub(crate) async fn send_loop(&self) {
        let mut in_flight = FuturesUnordered::new();
        let mut lanes = Lanes::new(!self.inner.dispatch.marks_first());
        let mut kills = FuturesUnordered::new();
        let mut looked_at = self.now();
        let mut sent_at = Duration::ZERO;
        let mut is_herd = false;
        loop {
            let now = self.now();
            if !self.may_leave() || now.duration_since(looked_at) > PAUSED {
                self.hold(now);
            }
            looked_at = now;
            let replaced = self.outbox().take_replaced();
            kills.extend(replaced.into_iter().map(|order| self.end_replaced(order)));
            let due = self.take_due();
            if !due.is_empty() {
                sent_at = self.inner.clock.monotonic();
                in_flight.extend(lanes.enter_all(due, sent_at).map(|(order, lane)| self.pass(order, lane)));
            }
            self.recognise_herd(&mut is_herd, in_flight.len() + lanes.waiting());
            tokio::select! {
                biased;
                Some(passed) = in_flight.next(), if !in_flight.is_empty() => {
                    let mut passed = Some(passed);
                    let mut answered = 0;
                    while let Some(Passed { queue, fire, lane }) = passed {
                        let now = self.inner.clock.monotonic();
                        let next = lanes.leave(&lane, now);
                        in_flight.extend(next.send.map(|order| self.pass(order, lane)));
                        in_flight.extend(next.held_up.into_iter().map(|order| self.pass(order, Lane::HeldUp)));
                        let ready = self.outbox().answered(queue, fire);
                        in_flight.extend(lanes.enter_all(ready, now).map(|(order, lane)| self.pass(order, lane)));
                        answered += 1;
                        passed = match answered < ANSWERS_MAX {
                            true => in_flight.next().now_or_never().flatten(),
                            false => None,
                        };
                    }
                }
                Some(queue) = kills.next(), if !kills.is_empty() => self.outbox().ended_replaced(queue),
                () = self.inner.send_now.notified() => {}
                () = self.inner.clock.sleep(self.until_due(sent_at)) => {}
            }
        }
    }

    /// Recognises that many runs are due at the same time, so that other work leaves them the processor. Runs that are
    /// marked before they are sent wait for notes themselves.
    fn recognise_herd(&self, is_herd: &mut bool, in_flight: usize) {
        let enough = if *is_herd { HERD / 4 } else { HERD };
        let is_now = in_flight > enough && !self.inner.dispatch.marks_first();
        if std::mem::replace(is_herd, is_now) != is_now {
            let until = if is_now { self.inner.clock.monotonic() + HERD_MAX } else { Duration::ZERO };
            *self.inner.herd_until.lock().expect("no holder of this lock panics") = until;
        }
    }

    /// Waits for a herd to leave, for a bounded time. Results and notes are not urgent: their runs have been sent.
    pub(crate) async fn let_herd_leave(&self) {
        loop {
            let until = *self.inner.herd_until.lock().expect("no holder of this lock panics");
            let left = until.saturating_sub(self.inner.clock.monotonic());
            if left.is_zero() {
                return;
            }
            self.inner.clock.sleep(left.min(HERD_LOOK)).await;
        }
    }

    /// Asks the executor of a replaced run to end it. Returns its queue, the next fire of which may be sent now: only
    /// that queue waits for an executor that does not respond. If the executor does not end the run, it stays open and
    /// its real result counts.
    async fn end_replaced(&self, replaced: Order) -> QueueKey {
        let Order { run, job } = replaced;
        match self.ask_to_end(&run, Some(&job)).await {
            KillAnswer::Ended => {
                let why = if run.replaced { REPLACED } else { WORKFLOW_CANCELLED };
                tracing::info!(run = %run.id, job = %run.job, "cancelled: {why}");
                let outcome = Outcome::Cancelled(why.into());
                self.conclude(Ending { run: run.id, outcome, version: None, address: None }).await;
            }
            answer => {
                let why = answer.problem().unwrap_or_default();
                tracing::warn!(run = %run.id, job = %run.job, "to be cancelled, but it goes on: {why}");
            }
        }
        queue_of(&run)
    }

    /// Asks the executor of a run to end it, and waits for its response for a bounded time.
    pub(crate) async fn ask_to_end(&self, run: &Run, job: Option<&Job>) -> KillAnswer {
        tokio::select! {
            biased;
            answer = self.inner.dispatch.kill(run, job) => answer,
            () = self.inner.clock.sleep(KILL_MAX) => KillAnswer::Unheard(format!("no response in {KILL_MAX:?}")),
        }
    }

    fn take_due(&self) -> Vec<Order> {
        let may_send = self.may_leave() && !self.is_stopping() && self.inner.notes.has_room();
        if may_send { self.outbox().take_due(self.now()) } else { Vec::new() }
    }

    /// Time until the next send. While fires are dense, those of a few milliseconds are sent together.
    fn until_due(&self, sent_at: Duration) -> Duration {
        if !self.may_leave() || self.is_stopping() || !self.inner.notes.has_room() {
            return LOOK_AGAIN;
        }
        let now = self.now();
        // The estimate of the database's time is in whole milliseconds, so the next one may be up to 1 ms away.
        match self.outbox().next_at() {
            Some(at) => {
                let gathering = GATHER.saturating_sub(self.inner.clock.monotonic() - sent_at);
                at.duration_since(now).clamp(SHORTEST.max(gathering), LOOK_AGAIN)
            }
            None => IDLE_LOOK,
        }
    }

    /// Sends one run, or returns it to waiting if its lane has held it up.
    async fn pass(&self, order: Order, lane: Lane) -> Passed {
        let (queue, fire) = (queue_of(&order.run), order.run.fire);
        match lane {
            Lane::HeldUp => Box::pin(self.defer(&order, HELD_UP.into())).await,
            Lane::None | Lane::At(_) => self.send(order).await,
        }
        Passed { queue, fire, lane }
    }

    /// Sends one run and processes its receipt.
    ///
    /// All steps but the request are rare and boxed, so that the many sends of a herd take little memory.
    async fn send(&self, mut order: Order) {
        if let Some(missed) = self.missed(&order) {
            Box::pin(self.end_unsent(&order, missed, None)).await;
            return;
        }
        if order.job.spec.workflow.is_some() {
            Box::pin(self.open_workflow(&order)).await;
            return;
        }
        let is_ours = match self.inner.dispatch.marks_first() {
            true => Box::pin(self.mark(&mut order)).await,
            false => self.may_leave(),
        };
        if !is_ours {
            if !self.inner.dispatch.marks_first() {
                self.outbox().put_back(order);
            }
            return;
        }
        if let Some(missed) = self.missed(&order) {
            Box::pin(self.end_unsent(&order, missed, None)).await;
            return;
        }
        let left = self.lease_left();
        let receipt = self.while_held(&order, self.inner.dispatch.send(&order, left)).await;
        self.emit(StepEvent::Answered { order: &order, receipt: &receipt });
        if matches!(receipt, Receipt::Refused { .. } | Receipt::Deferred { .. }) {
            self.history().sent(order.run.id, false);
        }
        match receipt {
            Receipt::Accepted { .. } if self.inner.dispatch.marks_first() => {
                self.outbox().forget(order.run.id, order.run.version)
            }
            Receipt::Accepted { address } => {
                let check_at = watch::first_check(&order.job, self.now());
                self.note(&order, To::Running { address: Some(address), check_at, doubt_since: None });
            }
            Receipt::Refused { reason } => {
                Box::pin(self.end_unsent(&order, Outcome::Refused(reason), None)).await
            }
            Receipt::Deferred { reason } => Box::pin(self.defer(&order, reason)).await,
            Receipt::Unknown { address, reason } => Box::pin(self.doubt(&order, address, reason)).await,
        }
    }

    /// Marks a run as running before it is sent. Returns whether it may be sent: not if it was taken over or cancelled,
    /// or this incarnation is fenced.
    async fn mark(&self, order: &mut Order) -> bool {
        let mut known_at = self.inner.clock.monotonic();
        let check_at = watch::first_check(&order.job, self.now());
        match self.note_and_wait(order, To::Running { address: None, check_at, doubt_since: None }).await {
            Some(Moved::Done(version)) => order.run.version = version,
            _ => return false,
        }
        // Last check of ownership before the network: the process may have been paused anywhere above.
        let mut looks = 0;
        loop {
            if !self.may_leave() {
                // Marked as running here, so no other node sends it during this incarnation. If that ends, this
                // loop ends with it.
                self.hold(self.now());
                self.inner.clock.sleep(LOOK_AGAIN).await;
                continue;
            }
            let now = self.inner.clock.monotonic();
            if now - known_at <= MARK_FRESH || looks == MARK_LOOKS {
                return true;
            }
            (known_at, looks) = (now, looks + 1);
            if !self.is_still_wanted(order).await {
                return false;
            }
        }
    }

    /// Records that nothing could be sent until `now`.
    fn hold(&self, now: Timestamp) {
        self.inner.held_until.store(now.as_millis(), Ordering::Relaxed);
    }

    /// The end of a run that the misfire policy forbids to send by now, because it was held through a pause or an
    /// outage, or is sent again. A run that is late because of load was claimed late, and that was decided by its claim.
    fn missed(&self, order: &Order) -> Option<Outcome> {
        let is_resent = order.run.version > plan::FIRST_CLAIM;
        if !is_resent && order.run.due_at.as_millis() > self.inner.held_until.load(Ordering::Relaxed) {
            return None;
        }
        if is_resent && self.sabotaged(Sabotage::ResendHoweverLate)
            || self.sabotaged(Sabotage::SendHoweverLate)
        {
            return None;
        }
        let disposition = plan::missed_in_hand(&order.job, &order.run, self.now())?;
        Some(Outcome::Dropped(disposition, TOO_LATE.into()))
    }

    fn may_leave(&self) -> bool {
        self.lease_left() > SEND_MARGIN && self.lifeline_holds()
    }

    /// Polls the request only while the lifeline holds: a request that is not polled is not sent.
    async fn while_held<T>(&self, order: &Order, request: impl Future<Output = T>) -> T {
        let mut request = std::pin::pin!(request);
        let mut has_left = false;
        loop {
            let step = std::future::poll_fn(|context| {
                if !self.lifeline_holds() {
                    return Poll::Ready(None);
                }
                if !std::mem::replace(&mut has_left, true) {
                    let now = self.now();
                    self.outbox().left(&order.run, now);
                    self.history().sent(order.run.id, true);
                    let late = now.duration_since(order.run.due_at);
                    self.emit(StepEvent::Dispatched { order, late });
                }
                request.as_mut().poll(context).map(Some)
            });
            match step.await {
                Some(answer) => return answer,
                None => self.inner.clock.sleep(LIFELINE_LOOK).await,
            }
        }
    }

    /// Whether a marked run may still be started. A stop or delete that finds it marked does not wait for us, so
    /// after a delay the row is read again: it may have been recalled.
    async fn is_still_wanted(&self, order: &Order) -> bool {
        let (id, version) = (order.run.id, order.run.version);
        match self.inner.store.open_runs(&[id]).await {
            Ok(found) => match found.first() {
                Some(run) if run.version == version && run.recalled => {
                    let outcome = Outcome::Cancelled("recalled before it started".into());
                    self.conclude(Ending { run: id, outcome, version: Some(version), address: None }).await;
                    false
                }
                found => found.is_some_and(|run| run.version == version),
            },
            Err(error) => {
                tracing::warn!(run = %id, %error, "failed to check whether a run was cancelled; retrying");
                self.inner.clock.sleep(RETRY).await;
                true
            }
        }
    }

    /// Applies the job's delivery policy, because it is unknown whether the request arrived.
    async fn doubt(&self, order: &Order, address: Option<String>, reason: String) {
        tracing::warn!(run = %order.run.id, job = %order.run.job, reason, delivery = ?order.job.spec.delivery, "no response from the executor");
        if self.sabotaged(Sabotage::ResendWithNewId) {
            let mut again = order.clone();
            again.run.id.0 += 1 << 40;
            self.inner.dispatch.send(&again, self.lease_left()).await;
        }
        match order.job.spec.delivery {
            Delivery::AtMostOnce => self.end_unsent(order, Outcome::Ambiguous(reason), address).await,
            Delivery::Probe | Delivery::AtLeastOnce => {
                let check_at = self.now() + watch::FIRST_PROBE;
                self.note(order, To::Unknown { address, check_at, doubt_since: None });
            }
        }
    }

    /// Returns the run to waiting because no executor was asked; it fails once it has waited for too long.
    async fn defer(&self, order: &Order, reason: String) {
        let now = self.now();
        let since = order.run.doubt_since.unwrap_or(now);
        match plan::deferred_until(&order.job, &order.run, since, now) {
            Some(until) => self.note(order, To::Deferred { until, since }),
            None => self.end_unsent(order, Outcome::Refused(reason), None).await,
        }
    }

    async fn end_unsent(&self, order: &Order, outcome: Outcome, address: Option<String>) {
        // It stays in the outbox until that is written, because its row still belongs to this node.
        let (run, version) = (order.run.id, Some(order.run.version));
        self.conclude(Ending { run, outcome, version, address }).await;
    }
}

/// A run that was sent, or is not to be sent now.
struct Passed {
    queue: QueueKey,
    /// The next fire of the queue may be sent.
    fire: RunId,
    lane: Lane,
}

/// Maximum number of answers that are processed before the outbox is looked at again.
const ANSWERS_MAX: usize = 64;

/// Why a run is returned to waiting by its lane.
const HELD_UP: &str = "the executor has answered too few of the runs before it";

/// Maximum time to wait for an executor's response to the request to end a run.
const KILL_MAX: Duration = Duration::from_secs(3);

/// Nothing is sent in the last moments of a lease: the request must be sent before it expires.
const SEND_MARGIN: Duration = Duration::from_millis(100);

/// Maximum time between checks of the outbox, in case a notification of a change is missed.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// The same while the outbox is empty. Shorter than [`PAUSED`].
const IDLE_LOOK: Duration = Duration::from_millis(500);

/// A pause between two looks at the outbox that is longer than this means that the process did not run.
const PAUSED: Duration = Duration::from_secs(1);

const SHORTEST: Duration = Duration::from_micros(200);

/// Minimum time between two looks for due runs of which the first found some. Waking up for each of a thousand fires
/// per second would cost more than sending them; a fire that follows no other closely is not delayed.
const GATHER: Duration = Duration::from_millis(2);

/// Number of runs in flight from which they are a herd.
const HERD: usize = 400;

/// Maximum time for which other work waits for a herd: an executor that does not respond keeps its runs in flight for
/// seconds.
const HERD_MAX: Duration = Duration::from_millis(200);

/// Interval of checks whether a herd has left.
const HERD_LOOK: Duration = Duration::from_millis(5);

/// Age up to which a mark counts as current: within the promise of a stop (100 ms).
const MARK_FRESH: Duration = Duration::from_millis(60);

/// Number of checks of a marked run before it is started anyway: a database slower than that every time cannot
/// answer.
const MARK_LOOKS: usize = 4;
