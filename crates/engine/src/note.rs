//! Note: write down, many at a time, what became of runs that were sent.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

use tokio::sync::{Notify, oneshot};

use crate::engine::{Engine, RETRY};
use crate::ports::{CancelAnswer, Move, Moved, StoreError, To};
use crate::run::{Order, RunId, RunState};
use crate::trouble::Trouble;

/// What is still to be written.
#[derive(Default)]
pub(crate) struct Notes {
    waiting: Mutex<VecDeque<Note>>,
    added: Notify,
}

struct Note {
    run: RunId,
    /// The version in which it was sent.
    version: i64,
    to: To,
    trouble: Option<Trouble>,
    /// The sender waits for it: the run has not been sent yet.
    reply: Option<oneshot::Sender<Moved>>,
}

impl Notes {
    fn push(&self, note: Note) {
        self.waiting.lock().expect("no holder of this lock panics").push_back(note);
        self.added.notify_one();
    }

    fn take(&self, max: usize) -> Vec<Note> {
        let mut waiting = self.waiting.lock().expect("no holder of this lock panics");
        let count = waiting.len().min(max);
        let mut notes: Vec<Note> = waiting.drain(..count).collect();
        // Always in the order of the ids: two writers that overlap must not lock each other out.
        notes.sort_by_key(|note| note.run);
        notes
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.lock().expect("no holder of this lock panics").len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// While the store does not keep up, nothing more is sent.
    pub(crate) fn has_room(&self) -> bool {
        self.len() < NOTES_MAX
    }

    pub(crate) fn clear(&self) {
        self.waiting.lock().expect("no holder of this lock panics").clear();
    }
}

impl Engine {
    /// Has it written soon.
    pub(crate) fn note(&self, order: &Order, to: To) {
        let trouble = self.late(order, &to);
        let (run, version) = (order.run.id, order.run.version);
        self.inner.notes.push(Note { run, version, to, trouble, reply: None });
    }

    /// Has it written, and waits until it is. `None` if this life ended meanwhile.
    pub(crate) async fn note_and_wait(&self, order: &Order, to: To) -> Option<Moved> {
        let (reply, written) = oneshot::channel();
        let trouble = self.late(order, &to);
        let (run, version) = (order.run.id, order.run.version);
        self.inner.notes.push(Note { run, version, to, trouble, reply: Some(reply) });
        written.await.ok()
    }

    /// What is to be told of a run that begins too late.
    fn late(&self, order: &Order, to: &To) -> Option<Trouble> {
        let late_after = self.inner.options.late_after.filter(|_| matches!(to, To::Running { .. }))?;
        Trouble::of_start(&order.job, &order.run, self.now(), late_after)
    }

    pub(crate) async fn note_loop(&self) {
        loop {
            if self.inner.notes.is_empty() {
                self.inner.notes.added.notified().await;
            }
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
            // Whoever waits for nothing can wait a little, so that one commit holds more.
            if self.inner.notes.len_waited_for() == 0 {
                self.inner.clock.sleep(LINGER).await;
            }
        }
    }

    /// Writes until it is written. A repeated write may find its own first one, which a lost commit hid.
    async fn write(&self, moves: &[Move]) -> Vec<Moved> {
        let mut repeated = false;
        loop {
            match self.inner.store.move_runs(moves).await {
                Ok(moved) if repeated => match self.recognise(moves, moved).await {
                    Ok(moved) => return moved,
                    Err(error) => tracing::warn!(%error, "could not read back; trying again in {RETRY:?}"),
                },
                Ok(moved) => return moved,
                Err(error) => {
                    repeated |= matches!(error, StoreError::CommitUnknown(_));
                    self.complain(&error, "could not note what was sent", RETRY);
                }
            }
            self.inner.clock.sleep(RETRY).await;
        }
    }

    /// Finds among the refused moves those that an earlier try has made: the row is where we wanted it, one version on,
    /// and still names this node.
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
                // Not sent yet if the sender still waits or gives it back; otherwise the cancellation came too late.
                let was_sent = note.reply.is_none() && note.to.state() != RunState::Waiting;
                let sent = was_sent.then(|| note.to.clone());
                answers.push(CancelAnswer { run: note.run, version: note.version, sent });
            } else if !is_marked {
                self.outbox().forget(note.run, note.version);
            }
            // What is marked stays in hand until the dispatch has it.
            if let Some(reply) = note.reply {
                // Nobody waits any more if the life ended.
                let _ = reply.send(moved);
            }
        }
        if !answers.is_empty() {
            self.answer_cancel(&answers).await;
            // Only now: while it is in hand nobody else answers for it.
            for answer in &answers {
                self.outbox().forget(answer.run, answer.version);
            }
        }
    }
}

impl Notes {
    fn len_waited_for(&self) -> usize {
        let waiting = self.waiting.lock().expect("no holder of this lock panics");
        waiting.iter().filter(|note| note.reply.is_some()).count()
    }
}

/// Notes waiting, above which nothing more is sent.
const NOTES_MAX: usize = 20_000;

/// How long a note may wait for others to join it.
const LINGER: Duration = Duration::from_millis(10);
