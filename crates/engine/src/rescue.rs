//! Rescue: take over what dead nodes left.
//!
//! A life is over when its lease has ended by the database's clock and somebody has fenced it; from then on nothing it
//! writes is accepted. What it had claimed is one of three things: certainly unsent, perhaps sent, or (where runs are
//! marked before they are sent) running in a process that is gone.

use std::collections::BTreeMap;
use std::time::Duration;

use cron::Timestamp;

use crate::engine::Engine;
use crate::job::{Job, JobId};
use crate::policy::{Delivery, Misfire};
use crate::ports::{Abandoned, CancelAnswer, Ending, Move, StoreError, To};
use crate::run::{Disposition, Outcome, RunId, RunState};
use crate::sabotage::Sabotage;

impl Engine {
    pub(crate) async fn rescue_loop(&self) {
        loop {
            self.inner.clock.sleep(LOOK).await;
            if let Err(error) = self.rescue().await {
                tracing::warn!(%error, "could not look for what dead nodes left; trying again in {LOOK:?}");
            }
        }
    }

    async fn rescue(&self) -> Result<(), StoreError> {
        let now = self.now();
        let peers = self.life().as_ref().map_or_else(Vec::new, |life| life.peers.clone());
        for peer in peers.into_iter().filter(|peer| peer.lease_until < now) {
            if self.inner.store.fence(&peer.node).await? {
                tracing::warn!(node = %peer.node, "its lease has ended; taking over what it had");
            }
        }
        loop {
            let marks_first = self.inner.dispatch.marks_first();
            let abandoned = self.inner.store.abandoned(marks_first, BATCH_MAX).await?;
            let more = abandoned.len() == BATCH_MAX;
            self.take_over(abandoned, marks_first).await?;
            if !more {
                return Ok(());
            }
        }
    }

    async fn take_over(&self, abandoned: Vec<Abandoned>, marks_first: bool) -> Result<(), StoreError> {
        let now = self.now();
        let latest = latest_of_each_job(&abandoned);
        let (mut moves, mut answers) = (Vec::new(), Vec::new());
        for left in abandoned {
            let mut unsent = is_certainly_unsent(&left, now, marks_first);
            if self.sabotaged(Sabotage::RescueWithoutProbe) {
                unsent = true;
            }
            let is_latest = latest.get(&left.run.job) == Some(&left.run.id);
            let (run, version) = (left.run.id, left.run.version);
            match fate(&left, unsent, is_latest, now) {
                Fate::Move(to) => moves.push(Move { run, version, to }),
                Fate::Answer(sent) => answers.push(CancelAnswer { run, version, sent }),
                Fate::End(outcome) => self.conclude(Ending { run, outcome, version: Some(version) }).await,
            }
        }
        if !moves.is_empty() {
            self.inner.store.move_runs(&moves).await?;
            self.inner.claim_now.notify_one();
        }
        if !answers.is_empty() {
            self.answer_cancel(&answers).await;
        }
        Ok(())
    }
}

/// What becomes of an abandoned run.
#[derive(Debug, PartialEq)]
enum Fate {
    Move(To),
    Answer(Option<To>),
    End(Outcome),
}

/// Its owner cannot have sent it: it was due after the owner's last possible send, or had to be marked first.
fn is_certainly_unsent(left: &Abandoned, now: Timestamp, marks_first: bool) -> bool {
    let last_send = left.lease_until.unwrap_or(now);
    match left.run.state {
        RunState::Running => false,
        _ => marks_first || left.run.due_at > last_send,
    }
}

fn fate(left: &Abandoned, unsent: bool, is_latest: bool, now: Timestamp) -> Fate {
    let run = &left.run;
    let ask = To::Unknown { address: None, check_at: now, doubt_since: None };
    let Some(job) = &left.job else {
        return match run.state {
            RunState::Cancelling => Fate::Answer(if unsent { None } else { Some(ask) }),
            _ if unsent => Fate::End(Outcome::Dropped(Disposition::Cancelled, "its job was deleted".into())),
            _ => Fate::Move(ask),
        };
    };
    match run.state {
        RunState::Running => Fate::End(Outcome::Lost("the process it ran in died".into())),
        RunState::Cancelling => Fate::Answer(if unsent { None } else { Some(ask) }),
        _ if unsent => late(left, job, is_latest, now),
        _ => match job.spec.delivery {
            Delivery::AtMostOnce => Fate::End(Outcome::Ambiguous(
                "the node that had it died when it was due; the job wants it sent at most once".into(),
            )),
            Delivery::Probe => Fate::Move(ask),
            Delivery::AtLeastOnce => Fate::Move(To::Waiting { due_at: run.due_at }),
        },
    }
}

/// A run that was certainly not sent: as if its instant had only now been seen.
fn late(left: &Abandoned, job: &Job, is_latest: bool, now: Timestamp) -> Fate {
    let run = &left.run;
    let wait = Fate::Move(To::Waiting { due_at: run.due_at });
    let in_time = now.duration_since(run.due_at) <= Misfire::GRACE;
    if in_time || !run.origin.is_scheduled() || run.attempt > 1 {
        return wait;
    }
    let skip = |disposition| {
        Fate::End(Outcome::Dropped(disposition, "its node died and nobody else could send it in time".into()))
    };
    // The job's next instant is missed too: the make-up of these is still to come, and one is enough.
    let make_up_to_come =
        job.enabled && job.next_fire_at.is_some_and(|next| now.duration_since(next) > Misfire::GRACE);
    match job.spec.misfire {
        Misfire::Skip => skip(Disposition::MisfireSkipped),
        Misfire::FireOnce if make_up_to_come || !is_latest => skip(Disposition::Coalesced),
        Misfire::FireOnce => wait,
        Misfire::FireAll { window, .. } if run.scheduled_at >= now - window => wait,
        Misfire::FireAll { .. } => skip(Disposition::MisfireSkipped),
    }
}

/// The last scheduled fire of each job among them.
fn latest_of_each_job(abandoned: &[Abandoned]) -> BTreeMap<JobId, RunId> {
    let mut latest: BTreeMap<JobId, (Timestamp, RunId)> = BTreeMap::new();
    for left in abandoned.iter().filter(|left| left.run.origin.is_scheduled() && left.run.attempt == 1) {
        let fire = (left.run.scheduled_at, left.run.id);
        latest.entry(left.run.job).and_modify(|seen| *seen = fire.max(*seen)).or_insert(fire);
    }
    latest.into_iter().map(|(job, (_, run))| (job, run)).collect()
}

/// How often each node looks. A dead node is found at most this long after its lease has ended.
const LOOK: Duration = Duration::from_millis(500);

/// Runs per transaction.
const BATCH_MAX: usize = 500;
