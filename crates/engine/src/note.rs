//! Notes: writes results of sent requests to the rows of their runs, in batches.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};

use crate::engine::{Engine, RETRY};
use crate::ports::{CancelAnswer, Move, Moved, StoreError, To};
use crate::run::{Order, RunId, RunState};
use crate::trouble::Trouble;

/// Notes to write.
#[derive(Default)]
pub(crate) struct Notes {
    queue: Mutex<Queue>,
    added: Notify,
    urgent_added: Notify,
}

/// Queued notes by run and version: written in the order of ids, so that overlapping writers do not deadlock.
#[derive(Default)]
struct Queue {
    notes: BTreeMap<(RunId, i64), Note>,
    /// Number of notes that a sender waits for.
    waited_for: usize,
    /// Number of urgent notes.
    urgent: usize,
}

struct Note {
    run: RunId,
    /// Version in which the run was sent.
    version: i64,
    to: To,
    /// Whether the row of the run has the executor's address already, so that the note is obsolete if the run has
    /// finished.
    is_address_known: bool,
    trouble: Option<Trouble>,
    /// Set if the sender waits for the write, because the run is not sent yet.
    reply: Option<oneshot::Sender<Moved>>,
}

impl Note {
    /// Whether its row lacks something that no result adds: the executor's address, a doubt, or a mark that the sender
    /// waits for.
    fn is_urgent(&self) -> bool {
        self.reply.is_some() || !self.is_address_known
    }
}

impl Notes {
    fn push(&self, note: Note) {
        let is_urgent = note.is_urgent();
        let mut queue = self.queue();
        queue.waited_for += usize::from(note.reply.is_some());
        queue.urgent += usize::from(is_urgent);
        queue.notes.insert((note.run, note.version), note);
        drop(queue);
        self.added.notify_one();
        if is_urgent {
            self.urgent_added.notify_one();
        }
    }

    fn take(&self, max: usize) -> Vec<Note> {
        let mut queue = self.queue();
        let mut taken = Vec::with_capacity(max.min(queue.notes.len()));
        while taken.len() < max
            && let Some((_, note)) = queue.notes.pop_first()
        {
            queue.waited_for -= usize::from(note.reply.is_some());
            queue.urgent -= usize::from(note.is_urgent());
            taken.push(note);
        }
        taken
    }

    /// Removes the notes of a finished run that have nothing to add to its row; returns their versions.
    fn take_obsolete(&self, run: RunId) -> Vec<i64> {
        let mut queue = self.queue();
        let obsolete = |note: &Note| note.is_address_known && note.trouble.is_none() && note.reply.is_none();
        let of_run = queue.notes.range((run, i64::MIN)..=(run, i64::MAX));
        let versions: Vec<i64> =
            of_run.filter(|(_, note)| obsolete(note)).map(|((_, version), _)| *version).collect();
        for version in &versions {
            queue.notes.remove(&(run, *version));
        }
        versions
    }

    pub(crate) fn len(&self) -> usize {
        self.queue().notes.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether more may be sent: not while the store cannot keep up.
    pub(crate) fn has_room(&self) -> bool {
        self.len() < NOTES_MAX
    }

    /// Whether the next commit may wait for more notes: no sender waits, and the next batch of `size` is not full.
    fn has_room_in(&self, size: usize) -> bool {
        let queue = self.queue();
        queue.waited_for == 0 && queue.notes.len() < size
    }

    /// The same for the first commit after a pause, which urgent notes do not wait for.
    fn may_linger(&self, size: usize) -> bool {
        self.has_room_in(size) && self.queue().urgent == 0
    }

    pub(crate) fn clear(&self) {
        *self.queue() = Queue::default();
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().expect("no holder of this lock panics")
    }
}

impl Engine {
    /// Queues a note.
    pub(crate) fn note(&self, order: &Order, to: To) {
        self.inner.notes.push(self.about(order, to, None));
    }

    /// Queues a note and waits until it is written. `None` if this incarnation ended meanwhile.
    pub(crate) async fn note_and_wait(&self, order: &Order, to: To) -> Option<Moved> {
        let (reply, written) = oneshot::channel();
        self.inner.notes.push(self.about(order, to, Some(reply)));
        written.await.ok()
    }

    fn about(&self, order: &Order, to: To, reply: Option<oneshot::Sender<Moved>>) -> Note {
        let run = &order.run;
        let is_running = matches!(to, To::Running { .. });
        let is_address_known =
            is_running && to.address().is_none_or(|sent| run.address.as_deref() == Some(sent));
        let trouble = self.late(order, &to);
        Note { run: run.id, version: run.version, to, is_address_known, trouble, reply }
    }

    /// Drops the notes of a finished run. Most runs are short: their results arrive before the responses of their
    /// executors are written, and one transaction per run is saved.
    pub(crate) fn drop_obsolete_notes(&self, run: RunId) {
        for version in self.inner.notes.take_obsolete(run) {
            self.outbox().forget(run, version);
        }
    }

    /// Problem of a run that starts too late, if any.
    fn late(&self, order: &Order, to: &To) -> Option<Trouble> {
        let late_after = self.inner.options.late_after.filter(|_| matches!(to, To::Running { .. }))?;
        Trouble::of_start(&order.job, &order.run, self.now(), late_after)
    }

    pub(crate) async fn note_loop(&self) {
        loop {
            if self.inner.notes.is_empty() {
                self.inner.notes.added.notified().await;
            }
            self.linger().await;
            self.let_herd_leave().await;
            let notes = self.inner.notes.take(self.inner.paces.notes.size());
            let moves: Vec<Move> = notes
                .iter()
                .map(|note| Move {
                    run: note.run,
                    version: note.version,
                    to: note.to.clone(),
                    trouble: note.trouble.clone(),
                })
                .collect();
            if moves.is_empty() {
                continue;
            }
            let asked = self.inner.clock.monotonic();
            let moved = self.write(&moves).await;
            self.inner.paces.notes.took(moves.len(), self.inner.clock.monotonic() - asked);
            self.settle(notes, moved).await;
            if self.inner.notes.has_room_in(self.inner.paces.notes.size()) {
                self.inner.clock.sleep(LINGER).await;
            }
        }
    }

    /// Waits for more notes to share the next commit (group commit), or for results that make them obsolete.
    async fn linger(&self) {
        let mut end = self.inner.clock.sleep(LINGER);
        while self.inner.notes.may_linger(self.inner.paces.notes.size()) {
            tokio::select! {
                biased;
                // It may be older than the last commit.
                () = self.inner.notes.urgent_added.notified() => {}
                () = &mut end => return,
            }
        }
    }

    /// Writes with retries. A repeated write may find its own first one, if only the response to the commit was
    /// lost.
    async fn write(&self, moves: &[Move]) -> Vec<Moved> {
        let mut repeated = false;
        loop {
            match self.inner.store.move_runs(moves).await {
                Ok(moved) if repeated => match self.recognise(moves, moved).await {
                    Ok(moved) => return moved,
                    Err(error) => tracing::warn!(%error, "failed to read runs back; retrying in {RETRY:?}"),
                },
                Ok(moved) => return moved,
                Err(error) => {
                    repeated |= matches!(error, StoreError::CommitUnknown(_));
                    self.complain(&error, "failed to store responses of executors", RETRY);
                }
            }
            self.inner.clock.sleep(RETRY).await;
        }
    }

    /// Finds among the rejected moves those made by an earlier attempt: the row has the wanted state, its version
    /// is one higher, and it still belongs to this node.
    async fn recognise(&self, moves: &[Move], mut moved: Vec<Moved>) -> Result<Vec<Moved>, StoreError> {
        let refused: Vec<_> = moves
            .iter()
            .zip(&moved)
            .filter(|(_, moved)| **moved == Moved::Stale)
            .map(|(asked, _)| asked.run)
            .collect();
        if refused.is_empty() {
            return Ok(moved);
        }
        let node = self.node();
        for run in self.inner.store.open_runs(&refused).await? {
            for (asked, moved) in moves.iter().zip(&mut moved) {
                let ours = run.node.as_ref() == Some(&node) && run.state == asked.to.state();
                if asked.run == run.id && run.version == asked.version + 1 && ours {
                    *moved = Moved::Done(run.version);
                }
            }
        }
        Ok(moved)
    }

    async fn settle(&self, notes: Vec<Note>, moved: Vec<Moved>) {
        let mut answers = Vec::new();
        for (note, moved) in notes.into_iter().zip(moved) {
            let is_marked = note.reply.is_some() && matches!(moved, Moved::Done(_));
            if moved == Moved::Cancelling {
                // Not sent yet if the sender still waits or returns it; otherwise the cancellation came too late.
                let was_sent = note.reply.is_none() && note.to.state() != RunState::Waiting;
                let sent = was_sent.then(|| note.to.clone());
                answers.push(CancelAnswer { run: note.run, version: note.version, sent });
            } else if !is_marked {
                self.outbox().forget(note.run, note.version);
            }
            // A marked run stays in the outbox until the dispatch has it.
            if let Some(reply) = note.reply {
                // If the incarnation ended, the receiver is gone.
                let _ = reply.send(moved);
            }
        }
        if !answers.is_empty() {
            self.answer_cancel(&answers).await;
            // Only now: while it is in the outbox, no other loop answers for it.
            for answer in &answers {
                self.outbox().forget(answer.run, answer.version);
            }
        }
    }
}

/// Maximum number of queued notes; above it nothing more is sent.
const NOTES_MAX: usize = 20_000;

/// Time that notes wait for others to join their commit, and for results that make them obsolete: before the first
/// commit, and between two. If the node dies meanwhile, another one has to ask the executors about their runs.
const LINGER: Duration = Duration::from_millis(10);
