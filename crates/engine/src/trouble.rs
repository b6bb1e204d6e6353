//! Problems that raise alerts, and their messages. Pure: the store writes them with the event, and `alert` sends
//! them.

use std::time::Duration;

use cron::Timestamp;
pub use words::AlertKind as TroubleKind;

use crate::job::Job;
use crate::run::{Disposition, Outcome, Run, Unsent};

/// A problem to notify.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// Kind of problem.
    pub kind: TroubleKind,
    /// Description of the problem.
    pub message: String,
}

impl Trouble {
    /// Creates a problem.
    pub fn new(kind: TroubleKind, message: impl Into<String>) -> Trouble {
        Trouble { kind, message: message.into() }
    }

    /// Problem of a run that ended with this outcome and is not retried, if any.
    pub(crate) fn of_end(job: &Job, outcome: &Outcome) -> Option<Trouble> {
        let kind = match outcome {
            Outcome::Succeeded(_) | Outcome::Cancelled(_) => return None,
            Outcome::Dropped(disposition, _) if !is_missed(*disposition) => return None,
            Outcome::Failed(_) | Outcome::FailedWith(..) => TroubleKind::Failed,
            Outcome::TimedOut(_) => TroubleKind::TimedOut,
            Outcome::Lost(_) | Outcome::Ambiguous(_) => TroubleKind::Lost,
            Outcome::Refused(_) | Outcome::Dropped(..) => TroubleKind::NotRun,
        };
        job.spec.alert.then(|| Trouble::new(kind, outcome.message()))
    }

    /// Problem of scheduled times that were not sent, if any.
    pub fn of_unsent(job: &Job, unsent: &Unsent) -> Option<Trouble> {
        if !job.spec.alert || !is_missed(unsent.disposition) {
            return None;
        }
        let Unsent { first, last, count, reason, .. } = unsent;
        let when = match count {
            0 | 1 => format!("the fire at {first} did not run"),
            more => format!("{more} fires from {first} to {last} did not run"),
        };
        Some(Trouble::new(TroubleKind::NotRun, format!("{when}: {reason}")))
    }

    /// Problem of a started job that never fires because its schedule cannot be read, if any.
    pub fn of_schedule(job: &Job) -> Option<Trouble> {
        let problem = job.problem.as_ref().filter(|_| job.enabled && job.spec.alert)?;
        Some(Trouble::new(TroubleKind::NotRun, format!("it does not fire: {problem}")))
    }

    /// Problem of a run that starts now, if it is too late. Retries and manual triggers have no scheduled time to
    /// meet.
    pub(crate) fn of_start(job: &Job, run: &Run, now: Timestamp, late_after: Duration) -> Option<Trouble> {
        let late = now.duration_since(run.scheduled_at).saturating_sub(job.spec.jitter);
        let is_late = job.spec.alert && run.attempt == 1 && run.origin.is_scheduled() && late > late_after;
        is_late.then(|| {
            let (seconds, due) = (late.as_secs(), run.scheduled_at);
            Trouble::new(
                TroubleKind::Late,
                format!("it started {seconds} s late; it was scheduled for {due}"),
            )
        })
    }
}

fn is_missed(disposition: Disposition) -> bool {
    matches!(disposition, Disposition::MisfireSkipped | Disposition::Blocked)
}

#[cfg(test)]
mod tests {
    use words::Word;

    use super::*;
    use crate::run::{Origin, RunState};
    use crate::testing::{each_second, ms, run};

    fn watched() -> Job {
        let mut job = each_second(60_000);
        job.spec.alert = true;
        job
    }

    #[test]
    fn every_end_but_a_good_one_has_its_word() {
        let check = |outcome: Outcome, expected: Option<&str>| {
            let found = Trouble::of_end(&watched(), &outcome);
            assert_eq!(found.map(|trouble| trouble.kind.word()), expected, "{outcome:?}");
            assert_eq!(Trouble::of_end(&each_second(60_000), &outcome), None, "nobody asked to be told");
        };
        let text = String::new;
        check(Outcome::Succeeded(text()), None);
        check(Outcome::Cancelled(text()), None);
        check(Outcome::Failed(text()), Some("failed"));
        check(Outcome::TimedOut(text()), Some("timed_out"));
        check(Outcome::Lost(text()), Some("lost"));
        check(Outcome::Ambiguous(text()), Some("lost"));
        check(Outcome::Refused(text()), Some("not_run"));
        check(Outcome::Dropped(Disposition::MisfireSkipped, text()), Some("not_run"));
        check(Outcome::Dropped(Disposition::Blocked, text()), Some("not_run"));
        check(Outcome::Dropped(Disposition::Cancelled, text()), None);
    }

    #[test]
    fn a_started_job_with_an_unreadable_schedule_is_notified() {
        let check = |job: Job, expected: Option<&str>| {
            let found = Trouble::of_schedule(&job);
            assert_eq!(found.as_ref().map(|trouble| trouble.message.as_str()), expected, "{job:?}");
        };
        let broken = Job { problem: Some("`x` is not a cron".into()), ..watched() };
        check(watched(), None);
        check(Job { enabled: false, ..broken.clone() }, None);
        check(broken, Some("it does not fire: `x` is not a cron"));
    }

    #[test]
    fn instants_that_nobody_sent_are_told_with_their_number() {
        let check = |disposition, count, expected: Option<&str>| {
            let unsent =
                Unsent { disposition, first: ms(1_000), last: ms(9_000), count, reason: "no luck".into() };
            let found = Trouble::of_unsent(&watched(), &unsent);
            assert_eq!(found.as_ref().map(|trouble| trouble.message.as_str()), expected);
            assert_eq!(Trouble::of_unsent(&each_second(60_000), &unsent), None);
        };
        let one = "the fire at 1970-01-01T00:00:01Z did not run: no luck";
        let nine = "9 fires from 1970-01-01T00:00:01Z to 1970-01-01T00:00:09Z did not run: no luck";
        check(Disposition::Blocked, 1, Some(one));
        check(Disposition::MisfireSkipped, 9, Some(nine));
        check(Disposition::Coalesced, 9, None);
        check(Disposition::Cancelled, 1, None);
    }

    #[test]
    fn a_run_is_late_only_by_its_schedule() {
        let minute = Duration::from_secs(60);
        let check = |job: &Job, run: &Run, now, late| {
            assert_eq!(Trouble::of_start(job, run, ms(now), minute).is_some(), late, "{run:?} at {now}");
        };
        let scheduled = run(1, RunState::Claimed, 100_000);
        check(&watched(), &scheduled, 160_000, false);
        check(&watched(), &scheduled, 160_001, true);
        check(&watched(), &scheduled, 90_000, false);
        check(&each_second(60_000), &scheduled, 900_000, false);
        check(&watched(), &Run { attempt: 2, ..scheduled.clone() }, 900_000, false);
        check(&watched(), &Run { origin: Origin::Manual { key: 1 }, ..scheduled.clone() }, 900_000, false);
        let mut spread = watched();
        spread.spec.jitter = minute;
        check(&spread, &scheduled, 220_000, false);
        check(&spread, &scheduled, 220_001, true);
    }
}
