//! Runs claimed by this node: waiting for their time, being sent, or sent and not yet noted.
//!
//! Everything in here is also a row, so all of it may be lost. The outbox keeps the order: the fires of one job are
//! sent one after the other, the next when the previous one is answered, or has been unanswered for so long that
//! the request must have arrived. A run that replaces another waits until the executor was asked to end the other:
//! XXL-JOB's executors end runs by job, so a later request would end the new run.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use cron::Timestamp;
use timer::{Key, Wheel};

use crate::job::JobId;
use crate::run::{Order, Origin, Run, RunId};

/// Claimed runs of this node.
#[derive(Debug)]
pub(crate) struct Outbox {
    wheel: Wheel<Order>,
    /// Position of each run, and the version in which it was claimed: the same run may be claimed again while a
    /// response for the previous claim is still in flight.
    positions: HashMap<RunId, (Position, i64)>,
    queues: HashMap<QueueKey, JobQueue>,
    /// Times at which the next fire of a job may be sent even if the previous one is unanswered, for jobs with a
    /// waiting fire. May be too early, never too late.
    turns: BTreeSet<(Timestamp, QueueKey)>,
    /// Runs released since the claim in flight began, with their version: its response may still contain them.
    gone: HashMap<RunId, i64>,
    /// Replaced runs that their executors are still to be asked to end.
    replaced: Vec<Order>,
}

/// Position of a claimed run.
#[derive(Debug, Clone, Copy)]
enum Position {
    /// In the timing wheel.
    Waiting(Key),
    /// Due, but behind an earlier fire of its job.
    Behind,
    /// Handed to the dispatch, until the result is written to the row.
    Sent,
}

/// Key of a queue: the job, and the fire of a step or backfill. Steps of workflows do not wait for each other, also if they
/// run the same job; nor do fires of a schedule wait for a backfill.
pub(crate) type QueueKey = (JobId, Option<RunId>);

/// The queue of a run.
pub(crate) fn queue_of(run: &Run) -> QueueKey {
    let is_apart = matches!(run.origin, Origin::Step { .. } | Origin::Backfill { .. });
    (run.job, is_apart.then_some(run.fire))
}

/// Due fires of one job.
#[derive(Debug, Default)]
struct JobQueue {
    sending: Option<Sending>,
    /// Number of replaced runs that their executors are being asked to end; nothing is sent meanwhile.
    ending: usize,
    /// Ordered by scheduled time, however late each became due again, so that the shards of one fire are together.
    /// A map, because a stop removes thousands of them one by one.
    behind: BTreeMap<Turn, Order>,
}

/// Sort key of a run among the due ones of its job: scheduled time, fire, run.
type Turn = (Timestamp, RunId, RunId);

fn turn(run: &Run) -> Turn {
    (run.scheduled_at, run.fire, run.id)
}

/// The fire that is being sent.
#[derive(Debug)]
struct Sending {
    fire: RunId,
    /// Number of shards without an answer.
    unanswered: usize,
    /// Number of shards not sent yet.
    unsent: usize,
    /// Time when the last shard was sent.
    left_at: Option<Timestamp>,
}

impl Outbox {
    pub(crate) fn new(now: Timestamp) -> Self {
        Outbox {
            wheel: Wheel::new(now),
            positions: HashMap::new(),
            queues: HashMap::new(),
            turns: BTreeSet::new(),
            gone: HashMap::new(),
            replaced: Vec::new(),
        }
    }

    /// Number of claimed runs.
    pub(crate) fn len(&self) -> usize {
        self.positions.len()
    }

    /// Whether everything handed to the dispatch is noted, and all executors of replaced runs were asked to end them.
    pub(crate) fn is_settled(&self) -> bool {
        !self.positions.values().any(|(position, _)| matches!(position, Position::Sent))
            && self.queues.values().all(|queue| queue.ending == 0)
    }

    /// Marks the start of a claim; none is in flight.
    pub(crate) fn begin_claim(&mut self) {
        self.gone.clear();
    }

    /// Adds a claimed run, unless it is held already, or was sent or taken back before the claim's response
    /// arrived.
    pub(crate) fn add(&mut self, order: Order) {
        let (id, version) = (order.run.id, order.run.version);
        let held = self.positions.get(&id).map(|(_, held)| held);
        if held.max(self.gone.get(&id)).is_none_or(|known| *known < version) {
            self.remove(&order.run);
            self.wait(order);
        }
    }

    /// Adds a run that later ones of its job replace; call it before they are [`add`](Outbox::add)ed.
    pub(crate) fn add_replaced(&mut self, order: Order) {
        self.queues.entry(queue_of(&order.run)).or_default().ending += 1;
        self.replaced.push(order);
    }

    /// Takes out the replaced runs that their executors are to be asked to end.
    pub(crate) fn take_replaced(&mut self) -> Vec<Order> {
        std::mem::take(&mut self.replaced)
    }

    /// Records that the executor of a replaced run was asked to end it: the next fire of the job may be sent.
    pub(crate) fn ended_replaced(&mut self, key: QueueKey) {
        let Some(queue) = self.queues.get_mut(&key) else { return };
        queue.ending -= 1;
        self.turns.extend(queue.next_turn().map(|at| (at, key)));
        if queue.is_empty() {
            self.queues.remove(&key);
        }
    }

    /// Puts back a run that could not be sent.
    pub(crate) fn put_back(&mut self, order: Order) {
        self.wait(order);
    }

    fn wait(&mut self, order: Order) {
        let (id, version, due_at) = (order.run.id, order.run.version, order.run.due_at);
        let key = self.wheel.insert(due_at, order);
        self.positions.insert(id, (Position::Waiting(key), version));
    }

    /// Time when the next run may be due or may be sent.
    pub(crate) fn next_at(&self) -> Option<Timestamp> {
        let turn = self.turns.first().map(|(at, _)| *at);
        [self.wheel.next_at(), turn].into_iter().flatten().min()
    }

    /// Takes out the runs that are due and may be sent now, in order. The others wait for
    /// [`answered`](Outbox::answered) or for their turn.
    pub(crate) fn take_due(&mut self, now: Timestamp) -> Vec<Order> {
        let mut due = Vec::new();
        self.wheel.advance(now, &mut due);
        let mut ready = Vec::with_capacity(due.len());
        for (_, order) in due {
            let key = queue_of(&order.run);
            self.positions.insert(order.run.id, (Position::Behind, order.run.version));
            let queue = self.queues.entry(key).or_default();
            queue.line_up(order);
            queue.release(&mut ready);
            self.turns.extend(queue.next_turn().map(|at| (at, key)));
        }
        while let Some((_, key)) = self.turns.first().copied().filter(|(at, _)| *at <= now) {
            self.turns.pop_first();
            let Some(queue) = self.queues.get_mut(&key) else { continue };
            if queue.next_turn().is_some_and(|at| at <= now) {
                queue.sending = None;
                queue.release(&mut ready);
            }
            self.turns.extend(queue.next_turn().map(|at| (at, key)));
        }
        self.mark_sent(&ready);
        ready
    }

    /// Records that the request of a run is sent.
    pub(crate) fn left(&mut self, run: &Run, now: Timestamp) {
        let key = queue_of(run);
        if let Some(queue) = self.queues.get_mut(&key) {
            if let Some(sending) = queue.sending.as_mut().filter(|sending| sending.fire == run.fire) {
                sending.unsent = sending.unsent.saturating_sub(1);
                sending.left_at = Some(now);
            }
            self.turns.extend(queue.next_turn().map(|at| (at, key)));
        }
    }

    /// Records that a run of the fire is answered or never will be; takes out the runs that may be sent now.
    pub(crate) fn answered(&mut self, key: QueueKey, fire: RunId) -> Vec<Order> {
        let mut ready = Vec::new();
        if let Some(queue) = self.queues.get_mut(&key) {
            if let Some(sending) = queue.sending.as_mut().filter(|sending| sending.fire == fire) {
                sending.unanswered -= 1;
                if sending.unanswered == 0 {
                    queue.sending = None;
                }
            }
            queue.release(&mut ready);
            self.turns.extend(queue.next_turn().map(|at| (at, key)));
            if queue.is_empty() {
                self.queues.remove(&key);
            }
        }
        self.mark_sent(&ready);
        ready
    }

    fn mark_sent(&mut self, orders: &[Order]) {
        for order in orders {
            self.positions.insert(order.run.id, (Position::Sent, order.run.version));
        }
    }

    /// Removes a run claimed in this version, because its result is in the row.
    pub(crate) fn forget(&mut self, id: RunId, version: i64) {
        if self.positions.get(&id).is_some_and(|(_, held)| *held <= version) {
            self.positions.remove(&id);
        }
        self.gone.insert(id, version);
    }

    /// Takes a run back before it is sent. False if it was already handed to the dispatch.
    pub(crate) fn take_back(&mut self, run: &Run) -> bool {
        if let Some((Position::Sent, held)) = self.positions.get(&run.id)
            && *held >= run.version
        {
            return false;
        }
        self.remove(run);
        self.gone.insert(run.id, run.version);
        true
    }

    /// Removes runs without rows before they are sent. Returns whether one of them was already handed to the dispatch.
    pub(crate) fn drop_unsent(&mut self, runs: &[RunId]) -> bool {
        let mut is_any_sent = false;
        for id in runs {
            if let Some((Position::Sent, _)) = self.positions.get(id) {
                is_any_sent = true;
                continue;
            }
            match self.positions.remove(id) {
                Some((Position::Waiting(key), _)) => _ = self.wheel.cancel(key),
                Some((Position::Behind, _)) => {
                    for queue in self.queues.values_mut() {
                        queue.behind.retain(|_, order| order.run.id != *id);
                    }
                }
                _ => {}
            }
        }
        is_any_sent
    }

    /// Takes back all runs that were not handed to the dispatch, except those of jobs with a replaced run: another
    /// node would send them before the executor has ended that.
    pub(crate) fn take_all_back(&mut self) -> Vec<Run> {
        let waiting = self.wheel.drain().into_iter().map(|(_, order)| order);
        let behind =
            self.queues.values_mut().flat_map(|queue| std::mem::take(&mut queue.behind).into_values());
        let orders: Vec<Order> = waiting.chain(behind).collect();
        let is_held =
            |order: &Order| self.queues.get(&queue_of(&order.run)).is_some_and(|queue| queue.ending > 0);
        let (held, free): (Vec<Order>, Vec<Order>) = orders.into_iter().partition(is_held);
        held.into_iter().for_each(|order| self.wait(order));
        let runs: Vec<Run> = free.into_iter().map(|order| order.run).collect();
        for run in &runs {
            self.positions.remove(&run.id);
            self.gone.insert(run.id, run.version);
        }
        runs
    }

    /// Removes a run from its position.
    fn remove(&mut self, run: &Run) {
        match self.positions.remove(&run.id) {
            Some((Position::Waiting(key), _)) => {
                self.wheel.cancel(key);
            }
            Some((Position::Behind, _)) => {
                if let Some(queue) = self.queues.get_mut(&queue_of(run)) {
                    queue.behind.remove(&turn(run));
                }
            }
            Some((Position::Sent, _)) | None => {}
        }
    }
}

impl JobQueue {
    fn line_up(&mut self, order: Order) {
        self.behind.insert(turn(&order.run), order);
    }

    fn is_empty(&self) -> bool {
        self.sending.is_none() && self.ending == 0 && self.behind.is_empty()
    }

    /// Takes out the shards of the fire that may be sent now.
    fn release(&mut self, ready: &mut Vec<Order>) {
        if self.ending > 0 {
            return;
        }
        while let Some(((_, fire, _), _)) = self.behind.first_key_value() {
            let fire = *fire;
            match &mut self.sending {
                None => self.sending = Some(Sending { fire, unanswered: 1, unsent: 1, left_at: None }),
                Some(sending) if sending.fire == fire => {
                    sending.unanswered += 1;
                    sending.unsent += 1;
                }
                Some(_) => return,
            }
            ready.extend(self.behind.pop_first().map(|(_, order)| order));
        }
    }

    /// Time when the next fire may be sent without an answer to the previous one, if there is one.
    fn next_turn(&self) -> Option<Timestamp> {
        if self.behind.is_empty() || self.ending > 0 {
            return None;
        }
        match &self.sending {
            None => Some(AT_ONCE),
            Some(sending) => sending.left_at.filter(|_| sending.unsent == 0).map(|at| at + TURN_MAX),
        }
    }
}

/// Maximum time that the next fire of a job waits for the answer to the previous one. A request sent that long ago
/// has arrived or never will.
const TURN_MAX: Duration = Duration::from_millis(100);

/// A time before all others.
const AT_ONCE: Timestamp = Timestamp::from_millis(0);

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::run::RunState;
    use crate::testing::{each_second, ms, run};

    fn order(id: i64, job: i64, due: i64) -> Order {
        let run = Run { job: JobId(job), ..run(id, RunState::Claimed, due) };
        Order { run, job: Arc::new(each_second(0)) }
    }

    fn ids(orders: &[Order]) -> Vec<i64> {
        orders.iter().map(|order| order.run.id.0).collect()
    }

    #[test]
    fn fires_of_one_job_leave_one_after_the_other_and_do_not_hold_up_others() {
        let mut outbox = Outbox::new(ms(0));
        for (id, job, due) in [(1, 7, 10), (2, 7, 20), (3, 7, 30), (4, 8, 20)] {
            outbox.add(order(id, job, due));
        }
        assert_eq!(ids(&outbox.take_due(ms(9))), [0_i64; 0]);
        assert_eq!(ids(&outbox.take_due(ms(25))), [1, 4]);
        assert_eq!(ids(&outbox.take_due(ms(40))), [0_i64; 0]);
        assert_eq!(ids(&outbox.answered((JobId(7), None), RunId(1))), [2]);
        assert_eq!(ids(&outbox.answered((JobId(8), None), RunId(4))), [0_i64; 0]);
        assert_eq!(ids(&outbox.answered((JobId(7), None), RunId(2))), [3]);
    }

    #[test]
    fn steps_of_workflows_do_not_wait_for_each_other() {
        let mut outbox = Outbox::new(ms(0));
        for id in [1, 2, 3] {
            let mut step = order(id, 7, 10);
            step.run.origin = Origin::Step { of: RunId(9), step: id as u32 };
            step.run.fire = RunId(id);
            outbox.add(step);
        }
        assert_eq!(ids(&outbox.take_due(ms(10))), [1, 2, 3]);
    }

    #[test]
    fn all_shards_of_a_fire_leave_together() {
        let mut outbox = Outbox::new(ms(0));
        for (id, fire, due) in [(1, 1, 10), (2, 1, 10), (3, 3, 11)] {
            let mut shard = order(id, 7, due);
            shard.run.fire = RunId(fire);
            outbox.add(shard);
        }
        assert_eq!(ids(&outbox.take_due(ms(20))), [1, 2]);
        assert_eq!(ids(&outbox.answered((JobId(7), None), RunId(1))), [0_i64; 0]);
        assert_eq!(ids(&outbox.answered((JobId(7), None), RunId(1))), [3]);
    }

    #[test]
    fn a_late_answer_to_a_claim_brings_nothing_back() {
        let mut outbox = Outbox::new(ms(0));
        outbox.begin_claim();
        assert!(outbox.take_back(&order(1, 7, 10).run), "cancelled before the answer was in");
        outbox.forget(RunId(2), 1);
        for id in [1, 2, 3] {
            outbox.add(order(id, 7, 10));
        }
        assert_eq!(ids(&outbox.take_due(ms(10))), [3]);
    }

    #[test]
    fn a_run_claimed_again_is_sent_again_whatever_is_still_said_about_the_first_time() {
        let mut outbox = Outbox::new(ms(0));
        outbox.add(order(1, 7, 10));
        assert_eq!(ids(&outbox.take_due(ms(10))), [1]);
        let mut again = order(1, 7, 20);
        again.run.version = 4;
        outbox.add(again);
        outbox.forget(RunId(1), 1);
        outbox.answered((JobId(7), None), RunId(1));
        assert_eq!(ids(&outbox.take_due(ms(20))), [1]);
    }

    #[test]
    fn a_run_can_be_taken_back_until_it_is_handed_on() {
        let mut outbox = Outbox::new(ms(0));
        for (id, due) in [(1, 10), (2, 10), (3, 99)] {
            outbox.add(order(id, 7, due));
            outbox.add(order(id, 7, due));
        }
        assert_eq!(outbox.len(), 3, "what is in hand is not taken in twice");
        assert_eq!(ids(&outbox.take_due(ms(10))), [1]);
        assert!(!outbox.take_back(&order(1, 7, 10).run), "sent");
        assert!(outbox.take_back(&order(2, 7, 10).run), "behind the first");
        assert!(outbox.take_back(&order(3, 7, 99).run), "waiting");
        assert!(outbox.take_back(&order(4, 7, 99).run), "never had it");
        assert!(!outbox.is_settled());
        outbox.forget(RunId(1), 1);
        assert!(outbox.is_settled());
        assert_eq!((outbox.len(), outbox.answered((JobId(7), None), RunId(1)).len()), (0, 0));
    }

    #[test]
    fn a_run_waits_until_the_executor_of_the_run_it_replaces_was_asked_and_others_do_not() {
        let mut outbox = Outbox::new(ms(0));
        let replaced = order(1, 7, 0);
        outbox.add_replaced(replaced.clone());
        for (id, job, due) in [(2, 7, 10), (3, 8, 10), (4, 7, 99)] {
            outbox.add(order(id, job, due));
        }
        assert_eq!(outbox.take_replaced(), [replaced]);
        assert_eq!((ids(&outbox.take_due(ms(10))), outbox.next_at()), (vec![3], Some(ms(99))));
        assert_eq!(outbox.take_all_back().len(), 0, "another node would send it too early");
        assert_eq!(ids(&outbox.take_due(ms(20))), [0_i64; 0]);
        assert!(!outbox.is_settled());
        outbox.ended_replaced((JobId(7), None));
        assert_eq!((outbox.next_at(), ids(&outbox.take_due(ms(20)))), (Some(ms(0)), vec![2]));
        assert!(outbox.take_back(&order(4, 7, 99).run));
    }

    #[test]
    fn a_run_can_be_taken_back_while_it_waits_for_the_end_of_another() {
        let mut outbox = Outbox::new(ms(0));
        outbox.add_replaced(order(1, 7, 0));
        outbox.add(order(2, 7, 10));
        assert_eq!(ids(&outbox.take_due(ms(10))), [0_i64; 0]);
        assert!(outbox.take_back(&order(2, 7, 10).run));
        assert!(!outbox.is_settled(), "the executor of the first is still to be asked");
        outbox.ended_replaced((JobId(7), None));
        assert!(outbox.is_settled() && outbox.queues.is_empty());
        assert_eq!((ids(&outbox.take_due(ms(20))), outbox.len()), (vec![], 0));
    }

    #[test]
    fn whoever_stops_takes_back_all_that_is_not_sent() {
        let mut outbox = Outbox::new(ms(0));
        for (id, due) in [(1, 10), (2, 10), (3, 99)] {
            outbox.add(order(id, 7, due));
        }
        assert_eq!(ids(&outbox.take_due(ms(10))), [1]);
        let back: Vec<i64> = outbox.take_all_back().iter().map(|run| run.id.0).collect();
        assert_eq!(back, [3, 2]);
        outbox.add(order(3, 7, 99));
        assert_eq!(
            (outbox.len(), outbox.answered((JobId(7), None), RunId(1)).len()),
            (1, 0),
            "what is being sent stays"
        );
    }
}
