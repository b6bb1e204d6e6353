//! Watch: asks executors about every open run that they have, or may have, until it is finished (I9).

use std::sync::atomic::Ordering;
use std::time::Duration;

use cron::Timestamp;
use futures_util::StreamExt;
use futures_util::stream;

use crate::engine::Engine;
use crate::job::Job;
use crate::plan::{self, TOO_LATE};
use crate::policy::Delivery;
use crate::ports::{Agenda, Ending, KillAnswer, Move, Moved, Probe, StoreError, To, Watched};
use crate::run::{Outcome, Run, RunState};
use crate::sabotage::Sabotage;
use crate::trouble::{Trouble, TroubleKind};

impl Engine {
    pub(crate) async fn watch_loop(&self) {
        let mut wait = LOOK;
        let mut looks = true;
        // Whether runs that this node has checked are to be checked again after the wait.
        let mut is_due = false;
        let mut stored_at = self.now();
        loop {
            tokio::select! {
                biased;
                () = self.inner.watch_now.notified() => looks = true,
                () = self.inner.clock.sleep(wait) => looks |= is_due,
            }
            is_due = false;
            if self.now().duration_since(stored_at) >= STORED_EVERY && self.has_work(Agenda::has_open_runs) {
                stored_at = self.now();
                if let Err(error) = self.take_stored_results().await {
                    self.complain(&error, "failed to read results that Java admins stored", STORED_EVERY);
                }
            }
            // A node that checks a run has it to itself for a while. Runs of dead nodes cannot wait for that to
            // expire; that live nodes then ask twice is harmless.
            let early = self.inner.asker_gone.swap(false, Ordering::Relaxed);
            let by = self.now() + if early { ASK_MAX } else { Duration::ZERO };
            looks |= early || self.has_work(|agenda| agenda.check_at.is_some_and(|at| at <= by));
            if !std::mem::take(&mut looks) {
                wait = if self.has_work(Agenda::has_open_runs) { LOOK } else { IDLE_LOOK };
                continue;
            }
            wait = LOOK;
            match self.watch(by).await {
                Ok(next) => {
                    let left = next.map(|at| at.duration_since(self.now())).filter(|left| *left <= LOOK);
                    is_due = left.is_some();
                    wait = left.map_or(LOOK, |left| left + JUST_AFTER);
                }
                Err(error) => {
                    looks = true;
                    self.inner.asker_gone.fetch_or(early, Ordering::Relaxed);
                    self.complain(&error, "failed to check open runs", LOOK);
                }
            };
        }
    }

    /// Ends runs with a result that a Java admin received.
    async fn take_stored_results(&self) -> Result<(), StoreError> {
        for (run, outcome) in self.inner.store.stored_results(BATCH_MAX).await? {
            self.conclude(Ending { run, outcome, version: None, address: None }).await;
        }
        Ok(())
    }

    /// Checks the runs with a check time up to `by`; returns the earliest next check time of them.
    async fn watch(&self, by: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        let mut watched = self.inner.store.overdue(by, BATCH_MAX).await?;
        // A Java admin received the report.
        for reported in watched.extract_if(.., |watched| watched.stored.is_some()) {
            let (run, outcome) = (reported.run.id, reported.stored.expect("only these are extracted"));
            self.conclude(Ending { run, outcome, version: None, address: None }).await;
        }
        let mut next: Option<Timestamp> = None;
        for part in watched.chunks(ASK_AT_ONCE) {
            // A node that was paused may be fenced: it would keep the others from checking, and then end.
            if self.lease_left().is_zero() {
                break;
            }
            let moves = self.look_at(part).await?;
            next = moves.iter().filter_map(|asked| check_at(&asked.to)).chain(next).min();
        }
        Ok(next)
    }

    /// Asks about some runs, and writes the results.
    async fn look_at(&self, watched: &[Watched]) -> Result<Vec<Move>, StoreError> {
        let now = self.now();
        // The node that advances the check time is the one that checks now.
        let moves: Vec<Move> = watched
            .iter()
            .map(|watched| {
                let run = &watched.run;
                let to = stay(run, now + ASK_MAX, run.doubt_since);
                Move { run: run.id, version: run.version, to, trouble: None }
            })
            .collect();
        let moved = self.inner.store.move_runs(&moves).await?;
        let mut mine = Vec::new();
        for (watched, moved) in watched.iter().zip(moved) {
            if let Moved::Done(version) = moved {
                let mut watched = watched.clone();
                watched.run.version = version;
                mine.push(watched);
            }
        }
        self.check_workflows(&mut mine).await?;
        let judged: Vec<(Run, Judgement, Option<Trouble>)> =
            stream::iter(mine).map(|watched| self.ask(watched)).buffer_unordered(ASK_AT_ONCE).collect().await;
        let mut moves = Vec::new();
        for (run, judgement, trouble) in judged {
            match judgement {
                Judgement::Move(to) => moves.push(Move { run: run.id, version: run.version, to, trouble }),
                Judgement::End(outcome) => {
                    tracing::warn!(run = %run.id, job = %run.job, ?outcome, "closing a run without a result");
                    self.conclude(Ending { run: run.id, outcome, version: Some(run.version), address: None })
                        .await;
                }
            }
        }
        moves.sort_by_key(|asked| asked.run);
        if !moves.is_empty() {
            self.inner.store.move_runs(&moves).await?;
            self.inner.claim_now.notify_one();
        }
        Ok(moves)
    }

    /// Asks the executor about a run. One that exceeds its timeout it is also asked to end; if it does not, the run
    /// stays open like a cancelled one, with a problem to notify.
    async fn ask(&self, watched: Watched) -> (Run, Judgement, Option<Trouble>) {
        let Watched { run, job, .. } = watched;
        let job = job.as_deref();
        let mut trouble = None;
        if let Some((timeout, is_first)) = exceeded(&run, job, self.now()) {
            let late = format!("no result {TIMEOUT_GRACE:?} after its timeout of {timeout:?}");
            let answer = self.ask_to_end(&run, job).await;
            let Some(problem) = answer.problem() else {
                return (run, Judgement::End(Outcome::TimedOut(late)), None);
            };
            let text = format!("{late}; cancel requested, {problem}");
            tracing::warn!(run = %run.id, job = %run.job, "{text}");
            // Otherwise the run ends soon, at the next request or as lost, and that is notified.
            let is_refused = matches!(answer, KillAnswer::Refused(_));
            let is_wanted = is_refused && is_first && job.is_some_and(|job| job.spec.alert);
            trouble = is_wanted.then(|| Trouble::new(TroubleKind::TimedOut, text));
        }
        let probe = tokio::select! {
            biased;
            probe = self.inner.dispatch.probe(&run, job) => probe,
            () = self.inner.clock.sleep(PROBE_MAX) => Probe::Silent,
        };
        let judgement = match run.state {
            RunState::Unknown => match judge_unknown(&run, job, &probe, self.now()) {
                Judgement::End(Outcome::Dropped(..)) if self.sabotaged(Sabotage::ResendHoweverLate) => {
                    Judgement::Move(To::Waiting { due_at: self.now() })
                }
                judgement => judgement,
            },
            _ => judge_running(&run, &probe, self.now()),
        };
        (run, judgement, trouble)
    }
}

/// Consequence of a probe's answer for a run.
#[derive(Debug, PartialEq)]
enum Judgement {
    Move(To),
    End(Outcome),
}

/// The timeout that a run exceeds, if so, and whether this is the first check that finds it. The scheduling centre
/// enforces the timeout of a job too, in case the executor does not.
fn exceeded(run: &Run, job: Option<&Job>, now: Timestamp) -> Option<(Duration, bool)> {
    let timeout = job?.spec.timeout?;
    let over = run.due_at + timeout + TIMEOUT_GRACE;
    // The check before this one was at most one interval earlier. A run in doubt is checked more often, and ends soon.
    let is_first = run.check_at <= over + WATCH_EVERY && run.doubt_since.is_none();
    (run.state == RunState::Running && now > over).then_some((timeout, is_first))
}

/// Judges a run that was possibly sent.
fn judge_unknown(run: &Run, job: Option<&Job>, probe: &Probe, now: Timestamp) -> Judgement {
    let delivery = job.map_or(Delivery::Probe, |job| job.spec.delivery);
    let given_up = now.duration_since(run.due_at) > PROBE_WINDOW;
    let ambiguous = |why: &str| Judgement::End(Outcome::Ambiguous(why.into()));
    match (delivery, probe) {
        (_, Probe::Started | Probe::Finished) => {
            Judgement::Move(To::Running { address: None, check_at: now + WATCH_EVERY, doubt_since: None })
        }
        (_, Probe::StartedAt(address)) => Judgement::Move(To::Running {
            address: Some(address.clone()),
            check_at: now + WATCH_EVERY,
            doubt_since: None,
        }),
        (Delivery::AtMostOnce, _) => {
            ambiguous("no response to the request; the delivery policy is at most once")
        }
        (Delivery::AtLeastOnce, _) => Judgement::Move(To::Waiting { due_at: now }),
        (Delivery::Probe, Probe::Denied) => match run.doubt_since {
            // Denied before, long enough ago that a request in flight would have arrived.
            Some(since) if now.duration_since(since) >= DENIAL_GAP => resend(run, job, now),
            since => Judgement::Move(To::Unknown {
                address: None,
                check_at: since.unwrap_or(now) + DENIAL_GAP,
                doubt_since: Some(since.unwrap_or(now)),
            }),
        },
        (Delivery::Probe, Probe::Dead) => {
            ambiguous("the executor died; it is unknown whether the run had started")
        }
        (Delivery::Probe, Probe::Silent) if given_up => {
            ambiguous("no response to the request, and the executor is unreachable")
        }
        (Delivery::Probe, Probe::Silent) => {
            Judgement::Move(To::Unknown { address: None, check_at: now + ASK_AGAIN, doubt_since: None })
        }
    }
}

/// A request certainly did not arrive: it is sent again, unless the job's misfire policy forbids that by now.
fn resend(run: &Run, job: Option<&Job>, now: Timestamp) -> Judgement {
    match job.and_then(|job| plan::too_late_again(job, run, now)) {
        Some(disposition) => Judgement::End(Outcome::Dropped(disposition, TOO_LATE.into())),
        None => Judgement::Move(To::Waiting { due_at: now }),
    }
}

/// Judges a run that an executor accepted.
fn judge_running(run: &Run, probe: &Probe, now: Timestamp) -> Judgement {
    let doubt_since = run.doubt_since.unwrap_or(now);
    let in_doubt_for = now.duration_since(doubt_since);
    let lost = |why: &str| Judgement::End(Outcome::Lost(why.into()));
    match probe {
        Probe::Started | Probe::StartedAt(_) => Judgement::Move(stay(run, now + WATCH_EVERY, None)),
        Probe::Dead => lost("its executor died"),
        Probe::Finished if in_doubt_for >= RESULT_MAX => {
            lost("its executor has finished it, but never reported a result")
        }
        Probe::Finished => Judgement::Move(stay(run, now + ASK_AGAIN_RUNNING, Some(doubt_since))),
        Probe::Denied if run.doubt_since.is_some() && in_doubt_for >= FORGOTTEN_GAP => {
            lost("its executor does not know it any more: the executor was restarted, or the result was lost")
        }
        Probe::Denied => Judgement::Move(stay(run, now + FORGOTTEN_GAP, Some(doubt_since))),
        Probe::Silent if in_doubt_for >= SILENT_MAX => lost("its executor has not responded for a minute"),
        Probe::Silent => Judgement::Move(stay(run, now + ASK_AGAIN_RUNNING, Some(doubt_since))),
    }
}

/// The same state with another check time.
fn stay(run: &Run, check_at: Timestamp, doubt_since: Option<Timestamp>) -> To {
    match run.state {
        RunState::Unknown => To::Unknown { address: None, check_at, doubt_since },
        _ => To::Running { address: None, check_at, doubt_since },
    }
}

fn check_at(to: &To) -> Option<Timestamp> {
    match to {
        To::Waiting { .. } | To::Deferred { .. } => None,
        To::Running { check_at, .. } | To::Unknown { check_at, .. } => Some(*check_at),
    }
}

/// First check time of a run that an executor has just accepted.
pub(crate) fn first_check(job: &Job, now: Timestamp) -> Timestamp {
    let over = job.spec.timeout.map(|timeout| timeout + TIMEOUT_GRACE + LOOK);
    now + over.map_or(WATCH_EVERY, |over| over.min(WATCH_EVERY))
}

/// Interval at which each node looks whether runs are to be checked.
const LOOK: Duration = Duration::from_millis(250);

/// The same while there are no open runs.
const IDLE_LOOK: Duration = Duration::from_secs(1);

/// Interval in which each node looks for results that Java admins stored.
const STORED_EVERY: Duration = Duration::from_secs(1);

/// How long after a check is due the engine wakes up for it: timestamps are whole milliseconds, and at the exact one the
/// check may not be due yet, so that it would wait for another [`LOOK`].
const JUST_AFTER: Duration = Duration::from_millis(2);

/// Delay of the first question to the executor after a request without a response.
pub(crate) const FIRST_PROBE: Duration = Duration::from_millis(500);

/// Two denials at least this far apart mean that a request never arrived: longer than a request is in flight, even
/// if it is lost on the wire and retransmitted. See ADR 7.
pub const DENIAL_GAP: Duration = Duration::from_millis(250);

/// Two denials at least this far apart mean that an executor has forgotten a run that it accepted.
const FORGOTTEN_GAP: Duration = Duration::from_secs(1);

/// Time for which the executor is asked about an unanswered request before the run fails as ambiguous.
pub const PROBE_WINDOW: Duration = Duration::from_secs(60);

/// Interval of checks of a running run. With the two below, the death of a run's executor is detected within 120 s.
pub const WATCH_EVERY: Duration = Duration::from_secs(30);

/// Time without a response after which the runs of an executor are lost.
pub const SILENT_MAX: Duration = Duration::from_secs(60);

/// Maximum time until the result of a finished run arrives. Executors keep results that they could not deliver and
/// retry every 30 s, so after an outage of the scheduling centre one may arrive a little later than that.
pub const RESULT_MAX: Duration = Duration::from_secs(45);

const ASK_AGAIN: Duration = Duration::from_secs(2);
const ASK_AGAIN_RUNNING: Duration = Duration::from_secs(10);

/// Timeout of a question to an executor.
const PROBE_MAX: Duration = Duration::from_secs(3);

/// Time after which another node may check too: the questions, all asked at once, and two commits.
pub const ASK_MAX: Duration = Duration::from_secs(5);

/// Time beyond its timeout after which the scheduling centre ends a run; the executor should have done so by then.
const TIMEOUT_GRACE: Duration = Duration::from_secs(20);

/// Number of runs asked about concurrently.
const ASK_AT_ONCE: usize = 64;

/// Maximum number of runs per check.
const BATCH_MAX: usize = 500;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Misfire;
    use crate::run::Disposition;
    use crate::testing::{each_second, ms, run};

    const NOW: i64 = 20_000;

    /// Result of a judgement: the next state and check time of the run, or its final state.
    fn summary(judgement: Judgement) -> (RunState, Option<i64>) {
        match judgement {
            Judgement::Move(To::Waiting { due_at }) => (RunState::Waiting, Some(due_at.as_millis() - NOW)),
            Judgement::Move(To::Deferred { .. }) => unreachable!("only a run that was not sent is deferred"),
            Judgement::Move(To::Running { check_at, .. }) => {
                (RunState::Running, Some(check_at.as_millis() - NOW))
            }
            Judgement::Move(To::Unknown { check_at, .. }) => {
                (RunState::Unknown, Some(check_at.as_millis() - NOW))
            }
            Judgement::End(outcome) => (RunState::Running.after(outcome.event()).unwrap(), None),
        }
    }

    #[test]
    fn an_unanswered_request_is_repeated_only_after_two_denials() {
        let check = |delivery, probe, doubt: Option<i64>, due, expected| {
            let mut job = each_second(0);
            job.spec.delivery = delivery;
            let run = Run { doubt_since: doubt.map(ms), ..run(1, RunState::Unknown, due) };
            let judgement = judge_unknown(&run, Some(&job), &probe, ms(NOW));
            assert_eq!(summary(judgement), expected, "{delivery:?} {probe:?} {doubt:?}");
        };
        let due = NOW - 2_000;
        check(Delivery::Probe, Probe::Started, None, due, (RunState::Running, Some(30_000)));
        check(Delivery::Probe, Probe::Finished, None, due, (RunState::Running, Some(30_000)));
        check(
            Delivery::AtMostOnce,
            Probe::StartedAt("a".into()),
            None,
            due,
            (RunState::Running, Some(30_000)),
        );
        check(Delivery::Probe, Probe::Denied, None, due, (RunState::Unknown, Some(250)));
        check(Delivery::Probe, Probe::Denied, Some(NOW - 150), due, (RunState::Unknown, Some(100)));
        check(Delivery::Probe, Probe::Denied, Some(NOW - 250), due, (RunState::Waiting, Some(0)));
        check(Delivery::Probe, Probe::Silent, Some(NOW - 1_000), due, (RunState::Unknown, Some(2_000)));
        check(Delivery::Probe, Probe::Silent, None, NOW - 60_001, (RunState::Lost, None));
        check(Delivery::Probe, Probe::Dead, None, due, (RunState::Lost, None));
        check(Delivery::AtMostOnce, Probe::Denied, None, due, (RunState::Lost, None));
        check(Delivery::AtMostOnce, Probe::Started, None, due, (RunState::Running, Some(30_000)));
        check(Delivery::AtLeastOnce, Probe::Silent, None, due, (RunState::Waiting, Some(0)));
        // Too late for the job by now: a misfire, however long nobody could ask.
        check(Delivery::Probe, Probe::Denied, Some(NOW - 500), NOW - 5_001, (RunState::Cancelled, None));
        check(Delivery::Probe, Probe::Denied, Some(NOW - 500), NOW - 70_000, (RunState::Cancelled, None));
        check(Delivery::Probe, Probe::Denied, None, NOW - 70_000, (RunState::Unknown, Some(250)));
        check(Delivery::AtLeastOnce, Probe::Denied, None, NOW - 70_000, (RunState::Waiting, Some(0)));
    }

    #[test]
    fn a_run_that_never_arrived_is_a_misfire_if_it_is_too_late_to_send_it_again() {
        let check = |misfire, scheduled_ago: i64, next: i64, expected: Option<Disposition>| {
            let mut job = each_second(NOW + next);
            job.spec.misfire = misfire;
            let run =
                Run { doubt_since: Some(ms(NOW - 900)), ..run(1, RunState::Unknown, NOW - scheduled_ago) };
            let found = match judge_unknown(&run, Some(&job), &Probe::Denied, ms(NOW)) {
                Judgement::End(Outcome::Dropped(disposition, _)) => Some(disposition),
                Judgement::Move(To::Waiting { .. }) => None,
                other => panic!("{other:?}"),
            };
            assert_eq!(found, expected, "{misfire:?} {scheduled_ago} {next}");
        };
        use Disposition::{Coalesced, MisfireSkipped};
        check(Misfire::Skip, 5_000, 1_000, None);
        check(Misfire::Skip, 5_001, 1_000, Some(MisfireSkipped));
        check(Misfire::FireOnce, 70_000, 1_000, None);
        check(Misfire::FireOnce, 70_000, -6_000, Some(Coalesced));
        let all = Misfire::FireAll { window: Duration::from_secs(30), max: 3 };
        check(all, 29_000, 1_000, None);
        check(all, 31_000, 1_000, Some(MisfireSkipped));
    }

    #[test]
    fn a_running_run_is_lost_when_its_executor_denies_it_twice_or_stays_silent() {
        let check = |probe, doubt: Option<i64>, expected| {
            let run = Run { doubt_since: doubt.map(ms), ..run(1, RunState::Running, 0) };
            assert_eq!(summary(judge_running(&run, &probe, ms(NOW))), expected, "{probe:?} {doubt:?}");
        };
        check(Probe::Started, Some(0), (RunState::Running, Some(30_000)));
        check(Probe::Finished, None, (RunState::Running, Some(10_000)));
        check(Probe::Finished, Some(NOW - 44_999), (RunState::Running, Some(10_000)));
        check(Probe::Finished, Some(NOW - 45_000), (RunState::Lost, None));
        check(Probe::Denied, None, (RunState::Running, Some(1_000)));
        check(Probe::Denied, Some(NOW - 1_000), (RunState::Lost, None));
        check(Probe::Silent, None, (RunState::Running, Some(10_000)));
        check(Probe::Silent, Some(NOW - 59_999), (RunState::Running, Some(10_000)));
        check(Probe::Silent, Some(NOW - 60_000), (RunState::Lost, None));
        check(Probe::Dead, None, (RunState::Lost, None));
    }

    #[test]
    fn the_centre_ends_what_its_executor_should_have_ended() {
        let mut job = each_second(0);
        job.spec.timeout = Some(Duration::from_secs(5));
        let run = run(1, RunState::Running, 0);
        assert_eq!(exceeded(&run, Some(&job), ms(25_000)), None);
        let timeout = Duration::from_secs(5);
        assert_eq!(exceeded(&run, Some(&job), ms(25_001)), Some((timeout, true)));
        let again = Run { check_at: ms(55_001), ..run.clone() };
        assert_eq!(exceeded(&again, Some(&job), ms(99_000)), Some((timeout, false)), "told before");
        assert_eq!(first_check(&job, ms(0)), ms(25_250));
        job.spec.timeout = None;
        assert_eq!(exceeded(&run, Some(&job), ms(9_999_999)), None);
        assert_eq!(first_check(&job, ms(0)), ms(30_000));
    }
}
