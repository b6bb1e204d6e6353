//! Runs: one execution is one row; their states and transitions.
//!
//! [`RunState::after`] defines all transitions; `docs/lifecycle.md` draws them. A fire that never becomes a request
//! (skipped, coalesced, blocked) is not a run but a [`Disposition`].

use std::fmt;
use std::time::Duration;

use cron::Timestamp;

use crate::backfill::BackfillId;
use crate::job::{Job, JobId};

/// Id of a run; never changes. XXL-JOB's executors know it as the log id. Positive and below 2^53.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(pub i64);

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An open run.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Id of the run.
    pub id: RunId,
    /// First attempt of the first shard of the same fire; for most runs the run itself.
    pub fire: RunId,
    /// Id of the job.
    pub job: JobId,
    /// Scheduled time.
    pub scheduled_at: Timestamp,
    /// Why it exists.
    pub origin: Origin,
    /// Shard of the fire. `total` 0: not split yet; the claim splits it.
    pub shard: Shard,
    /// Attempt number, from 1.
    pub attempt: u32,
    /// Run that this one retries.
    pub retry_of: Option<RunId>,
    /// Number of ancestors: a child's child has 2.
    pub depth: u32,
    /// State of the run.
    pub state: RunState,
    /// Version, incremented by every change of the row. A write names the version it is based on, so that only one
    /// of several succeeds.
    pub version: i64,
    /// Node that holds it, from the claim on.
    pub node: Option<Node>,
    /// Time to send it.
    pub due_at: Timestamp,
    /// Time of the next check, in any case. Every open run has one.
    pub check_at: Timestamp,
    /// Time since when its executor has not responded, denies knowing it, or could not be asked to accept it, if
    /// so.
    pub doubt_since: Option<Timestamp>,
    /// Set if the run is obsolete (its job was stopped, edited or deleted, or another run replaces it): it is
    /// cancelled if it proves unsent, and is not retried.
    pub recalled: bool,
    /// Set if a user cancelled it, or a later run replaced it, while an executor had it. Then it is also `recalled`, and a failure counts as
    /// cancelled.
    pub cancel: bool,
    /// Set if a later run of its job replaced it while an executor had it. Then it is also `cancel`, and no longer
    /// counts as the active run of its job.
    pub replaced: bool,
    /// Address of the executor selected for it.
    pub address: Option<String>,
    /// Parameter for this run instead of the job's.
    pub param: Option<String>,
}

/// Shard of a fire; an unsharded run is 0 of 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shard {
    /// Index, from 0.
    pub index: u32,
    /// Number of shards.
    pub total: u32,
}

impl Shard {
    /// The only shard.
    pub const WHOLE: Shard = Shard { index: 0, total: 1 };
    /// Not split yet.
    pub const UNSPLIT: Shard = Shard { index: 0, total: 0 };
}

/// Why a run exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// The schedule of the job fired.
    Schedule,
    /// A catch-up run for scheduled times that passed while no node could fire.
    Misfire,
    /// A user or program triggered it; `key` makes the trigger idempotent.
    Manual {
        /// Idempotency key of the request.
        key: i64,
    },
    /// A run of a parent job succeeded.
    Child {
        /// Id of that run; for a parent with shards and children that run once, the first shard of its fire.
        of: RunId,
    },
    /// A step of a workflow run opened.
    Step {
        /// Id of the workflow run.
        of: RunId,
        /// Number of the step, below [`STEPS_MAX`].
        step: u32,
    },
    /// A workflow run that has ended was resumed.
    Resume {
        /// Id of that run.
        of: RunId,
    },
    /// A backfill opened it for a scheduled time of the past.
    Backfill {
        /// Id of the backfill.
        of: BackfillId,
    },
}

/// Number of steps that a workflow cannot have: step and run share one number in the row.
pub const STEPS_MAX: u32 = 1 << STEP_BITS;

const STEP_BITS: u32 = 14;

impl Origin {
    /// Whether a schedule created it: such runs end when the job is stopped.
    pub fn is_scheduled(self) -> bool {
        matches!(self, Origin::Schedule | Origin::Misfire)
    }

    /// Converts it to two numbers for a unique key: the kind and the id of the cause.
    pub fn to_numbers(self) -> (i64, i64) {
        match self {
            Origin::Schedule => (1, 0),
            Origin::Misfire => (2, 0),
            Origin::Manual { key } => (3, key),
            Origin::Child { of } => (4, of.0),
            Origin::Step { of, step } => (5, of.0 << STEP_BITS | i64::from(step)),
            Origin::Resume { of } => (6, of.0),
            Origin::Backfill { of } => (7, of.0),
        }
    }

    /// Inverse of [`to_numbers`](Origin::to_numbers).
    pub fn from_numbers(kind: i64, cause: i64) -> Option<Origin> {
        Some(match kind {
            1 => Origin::Schedule,
            2 => Origin::Misfire,
            3 => Origin::Manual { key: cause },
            4 => Origin::Child { of: RunId(cause) },
            5 => {
                let step = u32::try_from(cause & i64::from(STEPS_MAX - 1)).ok()?;
                Origin::Step { of: RunId(cause >> STEP_BITS), step }
            }
            6 => Origin::Resume { of: RunId(cause) },
            7 => Origin::Backfill { of: BackfillId(cause) },
            _ => return None,
        })
    }
}

/// One incarnation of a node. A process that was fenced rejoins with a higher epoch, so that writes for runs it
/// still believes to own are rejected.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node {
    /// Name of the node.
    pub name: String,
    /// Number of the incarnation.
    pub epoch: i64,
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.name, self.epoch)
    }
}

/// State of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RunState {
    /// A row that any node may claim when it is due.
    Waiting,
    /// Claimed by one node, which sends it when it is due.
    Claimed,
    /// To be cancelled; the node that holds it answers whether it was in time.
    Cancelling,
    /// Sent or possibly sent, without a response: the delivery policy decides.
    Unknown,
    /// Accepted by an executor.
    Running,
    /// Finished: the handler succeeded.
    Succeeded,
    /// Finished: the handler failed, or no executor accepted the run.
    Failed,
    /// Finished: the run exceeded its timeout.
    TimedOut,
    /// Finished: the executor died or does not know the run, or it stayed unknown whether the run started. A late
    /// real result replaces this, once.
    Lost,
    /// Finished: the run was cancelled.
    Cancelled,
}

/// Event that moves a run from one state to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEvent {
    /// A node claims it.
    Claim,
    /// The node releases it, or died before it can have sent it.
    Release,
    /// Cancellation is requested.
    AskCancel,
    /// An executor accepted it.
    Accept,
    /// No response to the request, or the node died when it may have sent it.
    Doubt,
    /// The handler succeeded.
    Succeed,
    /// The handler failed, or no executor accepted the run.
    Fail,
    /// The timeout is exceeded.
    TimeOut,
    /// The executor died or denies knowing the run, or it stays unknown whether the run started.
    Lose,
    /// The run is cancelled.
    Cancel,
}

impl RunState {
    /// The state after `event`. Every change of state in the system is one of these.
    pub fn after(self, event: RunEvent) -> Result<RunState, IllegalEvent> {
        use RunEvent::*;
        use RunState::*;
        Ok(match (self, event) {
            (Waiting, Claim) => Claimed,
            (Claimed | Unknown, Release) => Waiting,
            (Claimed, AskCancel) => Cancelling,
            (Claimed | Cancelling | Unknown, Accept) => Running,
            (Claimed | Cancelling, Doubt) => Unknown,
            // The report can overtake our own note that the executor accepted, or arrive while the run waits to be
            // sent again because there was no response.
            (Waiting | Claimed | Cancelling | Unknown | Running, Succeed) => Succeeded,
            (Waiting | Claimed | Cancelling | Unknown | Running, Fail) => Failed,
            (Waiting | Claimed | Cancelling | Unknown | Running, TimeOut) => TimedOut,
            (Claimed | Cancelling | Unknown | Running, Lose) => Lost,
            (Waiting | Claimed | Cancelling | Unknown | Running, Cancel) => Cancelled,
            // An executor that was only unreachable reports after all.
            (Lost, Succeed) => Succeeded,
            (Lost, Fail) => Failed,
            (Lost, TimeOut) => TimedOut,
            (from, event) => return Err(IllegalEvent { from, event }),
        })
    }

    /// Whether the run is finished. `Lost` is, although one late result may still replace it.
    pub fn is_over(self) -> bool {
        use RunState::*;
        matches!(self, Succeeded | Failed | TimedOut | Lost | Cancelled)
    }

    /// Number in the row.
    pub const fn to_number(self) -> i64 {
        use RunState::*;
        match self {
            Waiting => 0,
            Claimed => 1,
            Cancelling => 2,
            Unknown => 3,
            Running => 4,
            Succeeded => 10,
            Failed => 11,
            TimedOut => 12,
            Lost => 13,
            Cancelled => 14,
        }
    }

    /// Inverse of [`to_number`](RunState::to_number).
    pub fn from_number(number: i64) -> Option<RunState> {
        use RunState::*;
        [Waiting, Claimed, Cancelling, Unknown, Running, Succeeded, Failed, TimedOut, Lost, Cancelled]
            .into_iter()
            .find(|state| state.to_number() == number)
    }
}

/// An event that cannot happen to a run in that state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a run that is {from:?} cannot {event:?}")]
pub struct IllegalEvent {
    /// State of the run.
    pub from: RunState,
    /// The event.
    pub event: RunEvent,
}

/// Outcome of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The handler succeeded, with a message.
    Succeeded(String),
    /// The handler failed, with a message.
    Failed(String),
    /// The handler failed, with a result code of the executor's own and a message.
    FailedWith(i32, String),
    /// The run exceeded its timeout.
    TimedOut(String),
    /// No executor accepted the run: it certainly did not start.
    Refused(String),
    /// It is unknown whether the run started.
    Ambiguous(String),
    /// The executor died or does not know the run.
    Lost(String),
    /// The run was cancelled.
    Cancelled(String),
    /// The run was never sent and never will be; with the disposition of its scheduled time.
    Dropped(Disposition, String),
}

impl Outcome {
    /// Event that it causes for the run.
    pub fn event(&self) -> RunEvent {
        match self {
            Outcome::Succeeded(_) => RunEvent::Succeed,
            Outcome::Failed(_) | Outcome::FailedWith(..) | Outcome::Refused(_) => RunEvent::Fail,
            Outcome::TimedOut(_) => RunEvent::TimeOut,
            Outcome::Lost(_) | Outcome::Ambiguous(_) => RunEvent::Lose,
            Outcome::Cancelled(_) | Outcome::Dropped(..) => RunEvent::Cancel,
        }
    }

    /// Message for people.
    pub fn message(&self) -> &str {
        match self {
            Outcome::Succeeded(text)
            | Outcome::Failed(text)
            | Outcome::FailedWith(_, text)
            | Outcome::TimedOut(text)
            | Outcome::Refused(text)
            | Outcome::Ambiguous(text)
            | Outcome::Lost(text)
            | Outcome::Cancelled(text)
            | Outcome::Dropped(_, text) => text,
        }
    }

    /// Whether an executor reported it. Only such an outcome replaces `Lost`.
    pub fn is_reported(&self) -> bool {
        matches!(
            self,
            Outcome::Succeeded(_) | Outcome::Failed(_) | Outcome::FailedWith(..) | Outcome::TimedOut(_)
        )
    }
}

/// Disposition of scheduled times that were never sent, or of a run that was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Disposition {
    /// Missed; skipped by the misfire policy.
    MisfireSkipped,
    /// Missed; covered by one catch-up run together with others.
    Coalesced,
    /// Blocked by an active run of a job that may not overlap, or by the quota.
    Blocked,
    /// Cancelled before it was sent.
    Cancelled,
    /// Sent or possibly sent, but the result is unknown: the executor died, did not know the run, or did not answer.
    Lost,
}

impl Disposition {
    /// Number in the row.
    pub fn to_number(self) -> i64 {
        match self {
            Disposition::MisfireSkipped => 1,
            Disposition::Coalesced => 2,
            Disposition::Blocked => 3,
            Disposition::Cancelled => 4,
            Disposition::Lost => 5,
        }
    }

    /// Inverse of [`to_number`](Disposition::to_number).
    pub fn from_number(number: i64) -> Option<Disposition> {
        use Disposition::*;
        [MisfireSkipped, Coalesced, Blocked, Cancelled, Lost].into_iter().find(|d| d.to_number() == number)
    }
}

/// Scheduled times of one job with one disposition: stored as a range, because an outage may cover very many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsent {
    /// Disposition of the scheduled times.
    pub disposition: Disposition,
    /// First scheduled time.
    pub first: Timestamp,
    /// Last scheduled time.
    pub last: Timestamp,
    /// Number of scheduled times.
    pub count: u64,
    /// Reason, for people.
    pub reason: String,
}

/// A run with its job, as the loops process it.
#[derive(Clone, Debug, PartialEq)]
pub struct Order {
    /// Run to send.
    pub run: Run,
    /// The job as it was when the run was claimed.
    pub job: std::sync::Arc<Job>,
}

/// Time before its due time at which a fire may be claimed. Long enough that a slow commit (200 ms) and a missed
/// poll do not make it late; short enough that few runs have to be taken back when a job is edited.
pub const LOOK_AHEAD: Duration = Duration::from_millis(1500);

#[cfg(test)]
mod tests {
    use super::*;

    const STATES: [RunState; 10] = {
        use RunState::*;
        [Waiting, Claimed, Cancelling, Unknown, Running, Succeeded, Failed, TimedOut, Lost, Cancelled]
    };

    const EVENTS: [RunEvent; 10] = {
        use RunEvent::*;
        [Claim, Release, AskCancel, Accept, Doubt, Succeed, Fail, TimeOut, Lose, Cancel]
    };

    #[test]
    fn what_is_over_stays_over_except_that_a_lost_run_may_report() {
        for from in STATES.into_iter().filter(|state| state.is_over()) {
            for event in EVENTS {
                match from.after(event) {
                    Ok(to) => assert!(from == RunState::Lost && to.is_over(), "{from:?} {event:?} {to:?}"),
                    Err(illegal) => assert_eq!((illegal.from, illegal.event), (from, event)),
                }
            }
        }
    }

    #[test]
    fn the_published_graph_is_the_one_in_the_code() {
        let page = include_str!("../../../docs/lifecycle.md");
        let mut drawn: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
        let mut coded = Vec::new();
        for from in STATES {
            for event in EVENTS {
                if let Ok(to) = from.after(event) {
                    coded.push(format!("| `{from:?}` | {event:?} | `{to:?}` |"));
                }
            }
        }
        drawn.sort_unstable();
        coded.sort_unstable();
        assert_eq!(drawn, coded, "the table in docs/lifecycle.md should read:\n{}", coded.join("\n"));
    }

    #[test]
    fn numbers_in_rows_mean_what_they_meant() {
        for state in STATES {
            assert_eq!(RunState::from_number(state.to_number()), Some(state));
        }
        for origin in [
            Origin::Schedule,
            Origin::Misfire,
            Origin::Manual { key: -9 },
            Origin::Child { of: RunId(12) },
            Origin::Step { of: RunId(1 << 40), step: STEPS_MAX - 1 },
            Origin::Resume { of: RunId(12) },
            Origin::Backfill { of: BackfillId(7) },
        ] {
            let (kind, cause) = origin.to_numbers();
            assert_eq!(Origin::from_numbers(kind, cause), Some(origin));
        }
        assert_eq!(RunState::from_number(99), None);
        assert_eq!(Origin::from_numbers(99, 0), None);
    }
}
