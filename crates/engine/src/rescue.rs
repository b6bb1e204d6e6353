//! Rescue: takes over runs of dead nodes.
//!
//! An incarnation ends when its lease has expired by the database's clock, or the lifeline it depends on has
//! broken, and another node has fenced it; from then on its writes are rejected. A run it had claimed is certainly
//! unsent, possibly sent, or (if runs are marked before they are sent) running in a process that is gone.

use std::collections::BTreeMap;
use std::time::Duration;

use cron::Timestamp;

use crate::engine::Engine;
use crate::job::{Job, JobId};
use crate::plan;
use crate::policy::Delivery;
use crate::ports::{Abandoned, CancelAnswer, Ending, Move, StoreError, To};
use crate::run::{Disposition, Outcome, RunId, RunState};
use crate::sabotage::Sabotage;

impl Engine {
    pub(crate) async fn rescue_loop(&self) {
        // The first look is not left to the agenda: an earlier incarnation of this node may have just died.
        let mut looks = true;
        loop {
            tokio::select! {
                biased;
                () = self.inner.rescue_now.notified() => looks = true,
                () = self.inner.clock.sleep(LOOK) => {}
            }
            looks |= self.has_work(|agenda| agenda.has_abandoned);
            match self.rescue(looks).await {
                Ok(()) => looks = false,
                Err(error) => {
                    looks = true;
                    self.complain(&error, "failed to list runs of dead nodes", LOOK);
                }
            }
        }
    }

    /// Fences nodes whose leases have ended. Then, or if it `looks`, takes over runs of fenced nodes.
    async fn rescue(&self, mut looks: bool) -> Result<(), StoreError> {
        let now = self.now();
        let peers = self.life().as_ref().map_or_else(Vec::new, |life| life.peers.clone());
        for peer in peers.into_iter().filter(|peer| peer.lease_until < now) {
            if self.inner.store.fence(&peer.node).await? {
                tracing::warn!(node = %peer.node, "a node's lease has ended; taking over its runs");
                self.look_early();
                looks = true;
            }
        }
        while looks {
            let marks_first = self.inner.dispatch.marks_first();
            let mut abandoned = self.inner.store.abandoned(marks_first, BATCH_MAX).await?;
            let more = abandoned.len() == BATCH_MAX;
            // An incarnation that was replaced by a new one of the same name may still send until its lease has
            // expired.
            let now = self.now();
            abandoned.retain(|left| left.lease_until.is_none_or(|until| until <= now));
            let progress = !abandoned.is_empty();
            self.take_over(abandoned, marks_first).await?;
            looks = more && progress;
        }
        Ok(())
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
                Fate::Move(to) => moves.push(Move { run, version, to, trouble: None }),
                Fate::Answer(sent) => answers.push(CancelAnswer { run, version, sent }),
                Fate::End(outcome) => {
                    self.conclude(Ending { run, outcome, version: Some(version), address: None }).await
                }
            }
        }
        if !moves.is_empty() {
            self.inner.store.move_runs(&moves).await?;
            self.inner.claim_now.notify_one();
            self.inner.watch_now.notify_one();
        }
        if !answers.is_empty() {
            self.answer_cancel(&answers).await;
        }
        Ok(())
    }
}

/// Decision about an abandoned run.
#[derive(Debug, PartialEq)]
enum Fate {
    Move(To),
    Answer(Option<To>),
    End(Outcome),
}

/// Whether its owner cannot have sent it: it was due after the owner's last possible send, or had to be marked
/// first.
fn is_certainly_unsent(left: &Abandoned, now: Timestamp, marks_first: bool) -> bool {
    let last_send = left.lease_until.unwrap_or(now);
    // It is running from the moment it is opened.
    let is_workflow = left.job.as_ref().is_some_and(|job| job.spec.workflow.is_some());
    match left.run.state {
        RunState::Running => false,
        _ => marks_first || is_workflow || left.run.due_at > last_send,
    }
}

fn fate(left: &Abandoned, unsent: bool, is_latest: bool, now: Timestamp) -> Fate {
    let run = &left.run;
    let ask = To::Unknown { address: None, check_at: now, doubt_since: None };
    let Some(job) = &left.job else {
        return match run.state {
            RunState::Running => Fate::End(Outcome::Lost("its process died".into())),
            RunState::Cancelling => Fate::Answer(if unsent { None } else { Some(ask) }),
            _ if unsent => Fate::End(Outcome::Dropped(Disposition::Cancelled, "its job was deleted".into())),
            _ => Fate::Move(ask),
        };
    };
    match run.state {
        RunState::Running => Fate::End(Outcome::Lost("its process died".into())),
        RunState::Cancelling => Fate::Answer(if unsent { None } else { Some(ask) }),
        _ if unsent => late(left, job, is_latest, now),
        _ => match job.spec.delivery {
            Delivery::AtMostOnce => Fate::End(Outcome::Ambiguous(
                "its node died at the scheduled time; the delivery policy is at most once".into(),
            )),
            Delivery::Probe => Fate::Move(ask),
            Delivery::AtLeastOnce => Fate::Move(To::Waiting { due_at: run.due_at }),
        },
    }
}

/// Handles a run that was certainly not sent like a scheduled time that is seen only now.
fn late(left: &Abandoned, job: &Job, is_latest: bool, now: Timestamp) -> Fate {
    match plan::too_late(job, &left.run, is_latest, now) {
        None => Fate::Move(To::Waiting { due_at: left.run.due_at }),
        Some(disposition) => {
            let reason = "its node died and no other node could send it in time";
            Fate::End(Outcome::Dropped(disposition, reason.into()))
        }
    }
}

/// Last scheduled fire of each job among the runs.
fn latest_of_each_job(abandoned: &[Abandoned]) -> BTreeMap<JobId, RunId> {
    let mut latest: BTreeMap<JobId, (Timestamp, RunId)> = BTreeMap::new();
    for left in abandoned.iter().filter(|left| left.run.origin.is_scheduled() && left.run.attempt == 1) {
        let fire = (left.run.scheduled_at, left.run.id);
        latest.entry(left.run.job).and_modify(|seen| *seen = fire.max(*seen)).or_insert(fire);
    }
    latest.into_iter().map(|(job, (_, run))| (job, run)).collect()
}

/// Interval at which each node compares the leases of the others with the time. A dead node is found at most this long
/// after its lease has expired.
const LOOK: Duration = Duration::from_millis(250);

/// Runs per transaction.
const BATCH_MAX: usize = 500;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::policy::Misfire;
    use crate::testing::{each_second, ms, run};

    /// A run with the given due time; its node could send until 12 s.
    fn left(state: RunState, due: i64, change: impl Fn(&mut Job)) -> Abandoned {
        let mut job = each_second(14_000);
        change(&mut job);
        Abandoned { run: run(1, state, due), job: Some(Arc::new(job)), lease_until: Some(ms(12_000)) }
    }

    #[test]
    fn what_was_due_after_the_last_possible_send_is_certainly_unsent() {
        let check = |state, due, marks_first, unsent| {
            assert_eq!(
                is_certainly_unsent(&left(state, due, |_| {}), ms(13_000), marks_first),
                unsent,
                "{state:?} {due}"
            );
        };
        check(RunState::Claimed, 12_001, false, true);
        check(RunState::Claimed, 12_000, false, false);
        check(RunState::Claimed, 12_000, true, true);
        check(RunState::Cancelling, 12_001, false, true);
        check(RunState::Running, 12_001, true, false);
        let unknown = Abandoned { lease_until: None, ..left(RunState::Claimed, 12_500, |_| {}) };
        assert!(!is_certainly_unsent(&unknown, ms(13_000), false), "without a lease, until now");
    }

    #[test]
    fn what_may_have_been_sent_follows_the_delivery_policy() {
        let check = |delivery, expected: Fate| {
            let left = left(RunState::Claimed, 10_000, |job| job.spec.delivery = delivery);
            assert_eq!(fate(&left, false, true, ms(13_000)), expected, "{delivery:?}");
        };
        let ask = To::Unknown { address: None, check_at: ms(13_000), doubt_since: None };
        check(Delivery::Probe, Fate::Move(ask));
        check(Delivery::AtLeastOnce, Fate::Move(To::Waiting { due_at: ms(10_000) }));
        let at_most = fate(
            &left(RunState::Claimed, 10_000, |job| job.spec.delivery = Delivery::AtMostOnce),
            false,
            true,
            ms(13_000),
        );
        assert!(matches!(at_most, Fate::End(Outcome::Ambiguous(_))), "{at_most:?}");
    }

    #[test]
    fn what_was_not_sent_waits_if_in_time_and_misfires_if_not() {
        let check = |misfire, next, is_latest, now, expected: Option<Disposition>| {
            let left = left(RunState::Claimed, 12_500, |job| {
                job.spec.misfire = misfire;
                job.next_fire_at = Some(ms(next));
            });
            let dropped = match fate(&left, true, is_latest, ms(now)) {
                Fate::Move(To::Waiting { due_at }) if due_at == ms(12_500) => None,
                Fate::End(Outcome::Dropped(disposition, _)) => Some(disposition),
                other => panic!("{other:?}"),
            };
            assert_eq!(dropped, expected, "{misfire:?} at {now}");
        };
        use Disposition::{Coalesced, MisfireSkipped};
        check(Misfire::Skip, 14_000, true, 17_500, None);
        check(Misfire::Skip, 14_000, true, 17_501, Some(MisfireSkipped));
        check(Misfire::FireOnce, 99_000, true, 30_000, None);
        check(Misfire::FireOnce, 99_000, false, 30_000, Some(Coalesced));
        // The job's own next scheduled time is missed as well: its catch-up run covers this one too.
        check(Misfire::FireOnce, 14_000, true, 30_000, Some(Coalesced));
        let all = |secs| Misfire::FireAll { window: Duration::from_secs(secs), max: 9 };
        check(all(60), 14_000, false, 30_000, None);
        check(all(6), 14_000, false, 30_000, Some(MisfireSkipped));
    }

    #[test]
    fn a_run_of_a_dead_process_is_lost_and_a_cancelled_one_cancelled() {
        let lost = fate(&left(RunState::Running, 10_000, |_| {}), false, true, ms(13_000));
        assert!(matches!(lost, Fate::End(Outcome::Lost(_))), "{lost:?}");
        let orphan = Abandoned { job: None, ..left(RunState::Running, 10_000, |_| {}) };
        let lost = fate(&orphan, false, true, ms(13_000));
        assert!(matches!(lost, Fate::End(Outcome::Lost(_))), "its job was deleted meanwhile: {lost:?}");
        assert_eq!(
            fate(&left(RunState::Cancelling, 12_500, |_| {}), true, true, ms(13_000)),
            Fate::Answer(None)
        );
        let asked = fate(&left(RunState::Cancelling, 10_000, |_| {}), false, true, ms(13_000));
        assert!(matches!(asked, Fate::Answer(Some(To::Unknown { .. }))), "{asked:?}");
    }
}
