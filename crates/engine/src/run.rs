//! A run: one execution, one row, and the states it passes through.
//!
//! [`RunState::after`] is the whole life of a run; `docs/lifecycle.md` draws it. A fire that never becomes a
//! request (skipped, coalesced, blocked) is not a run but a [`Disposition`].

use std::fmt;
use std::time::Duration;

use cron::Timestamp;

use crate::job::{Job, JobId};

/// Names a run, for ever. XXL-JOB's executors know it as the log id. Positive and below 2^53.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(pub i64);

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One run, while it is open.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Its name.
    pub id: RunId,
    /// The first shard's first attempt of the same fire; itself, for most runs.
    pub fire: RunId,
    /// The job it runs.
    pub job: JobId,
    /// The instant it stands for.
    pub scheduled_at: Timestamp,
    /// Why it exists.
    pub origin: Origin,
    /// Which part of the fire it is. `total` 0: not split yet, the claim will.
    pub shard: Shard,
    /// 1 for the first try.
    pub attempt: u32,
    /// The run that this one repeats.
    pub retry_of: Option<RunId>,
    /// How many parents stand above it: a child's child has 2.
    pub depth: u32,
    /// Where it is in its life.
    pub state: RunState,
    /// Rises with every change of the row. Whoever writes names the version it read, so that only one succeeds.
    pub version: i64,
    /// The node that has it, from the claim on.
    pub node: Option<Node>,
    /// When to send it.
    pub due_at: Timestamp,
    /// When somebody must look at it again, whatever happened meanwhile. Every open run has one.
    pub check_at: Timestamp,
    /// Since when its executor has not answered, denied knowing it, or could not be asked to take it, while that is so.
    pub doubt_since: Option<Timestamp>,
    /// Control wanted it gone: should it prove unsent it is cancelled, and it is not tried again.
    pub recalled: bool,
    /// A person asked to cancel it while an executor had it. Then it is also `recalled`, and a failure counts as cancelled.
    pub cancel: bool,
    /// The executor chosen for it.
    pub address: Option<String>,
    /// A parameter for this run instead of the job's.
    pub param: Option<String>,
}

/// A part of a fire: all of it is 0 of 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shard {
    /// From 0.
    pub index: u32,
    /// How many there are.
    pub total: u32,
}

impl Shard {
    /// The only part.
    pub const WHOLE: Shard = Shard { index: 0, total: 1 };
    /// Not split yet.
    pub const UNSPLIT: Shard = Shard { index: 0, total: 0 };
}

/// Why a run exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// Its job's schedule reached an instant.
    Schedule,
    /// It makes up for instants that passed while nobody could fire.
    Misfire,
    /// A person or program asked for it; `key` makes asking twice harmless.
    Manual {
        /// Names the request.
        key: i64,
    },
    /// Another job's run succeeded.
    Child {
        /// That run; for a parent in shards whose children run once, its fire's first shard.
        of: RunId,
    },
}

impl Origin {
    /// Whether a schedule made it: what a stop of the job ends.
    pub fn is_scheduled(self) -> bool {
        matches!(self, Origin::Schedule | Origin::Misfire)
    }

    /// As two numbers, for a unique key: what kind of cause, and which one.
    pub fn to_numbers(self) -> (i64, i64) {
        match self {
            Origin::Schedule => (1, 0),
            Origin::Misfire => (2, 0),
            Origin::Manual { key } => (3, key),
            Origin::Child { of } => (4, of.0),
        }
    }

    /// The reverse of [`to_numbers`](Origin::to_numbers).
    pub fn from_numbers(kind: i64, cause: i64) -> Option<Origin> {
        Some(match kind {
            1 => Origin::Schedule,
            2 => Origin::Misfire,
            3 => Origin::Manual { key: cause },
            4 => Origin::Child { of: RunId(cause) },
            _ => return None,
        })
    }
}

/// One life of one scheduling-centre process. A process that was declared dead comes back with a higher epoch,
/// so that what it still believes to own is refused.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node {
    /// The process's name.
    pub name: String,
    /// Which life of it.
    pub epoch: i64,
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.name, self.epoch)
    }
}

/// Where a run is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RunState {
    /// A row that any node may claim when it is due.
    Waiting,
    /// One node has it and will send it when it is due.
    Claimed,
    /// Control wants it gone; the node that has it says whether it was in time.
    Cancelling,
    /// Sent, or perhaps sent, and no answer: the delivery policy decides.
    Unknown,
    /// An executor has it.
    Running,
    /// Over: the handler succeeded.
    Succeeded,
    /// Over: the handler failed, no executor took it, or it stayed ambiguous.
    Failed,
    /// Over: it took longer than its job allows.
    TimedOut,
    /// Over: its executor died or knows nothing of it. A late real result replaces this, once.
    Lost,
    /// Over: control ended it.
    Cancelled,
}

/// What moves a run from one state to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEvent {
    /// A node takes it.
    Claim,
    /// The node gives it back, or died before it can have sent it.
    Release,
    /// Control asks for its end.
    AskCancel,
    /// An executor took it.
    Accept,
    /// No answer to the request, or the node died when it may have sent it.
    Doubt,
    /// The handler succeeded.
    Succeed,
    /// The handler failed, or no executor took the run.
    Fail,
    /// The time allowed is over.
    TimeOut,
    /// The executor died or denies knowing it.
    Lose,
    /// It is ended by control.
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
            // The report can overtake our own note that the executor accepted, and come while the run waits to be sent
            // again because nobody had answered.
            (Waiting | Claimed | Cancelling | Unknown | Running, Succeed) => Succeeded,
            (Waiting | Claimed | Cancelling | Unknown | Running, Fail) => Failed,
            (Waiting | Claimed | Cancelling | Unknown | Running, TimeOut) => TimedOut,
            (Unknown | Running, Lose) => Lost,
            (Waiting | Claimed | Cancelling | Unknown | Running, Cancel) => Cancelled,
            // An executor that was only out of reach reports after all.
            (Lost, Succeed) => Succeeded,
            (Lost, Fail) => Failed,
            (Lost, TimeOut) => TimedOut,
            (from, event) => return Err(IllegalEvent { from, event }),
        })
    }

    /// Whether the run is over. `Lost` is, though one late result may still replace it.
    pub fn is_over(self) -> bool {
        use RunState::*;
        matches!(self, Succeeded | Failed | TimedOut | Lost | Cancelled)
    }

    /// A number for the row.
    pub fn to_number(self) -> i64 {
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

    /// The reverse of [`to_number`](RunState::to_number).
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
    /// Where the run is.
    pub from: RunState,
    /// What was asked.
    pub event: RunEvent,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The handler succeeded, with a message.
    Succeeded(String),
    /// The handler failed, with a message.
    Failed(String),
    /// The handler failed, with a result code of the executor's own and a message.
    FailedWith(i32, String),
    /// It took longer than its job allows.
    TimedOut(String),
    /// No executor took it: it certainly did not run.
    Refused(String),
    /// Nobody can say whether it ran.
    Ambiguous(String),
    /// Its executor died or knows nothing of it.
    Lost(String),
    /// Control ended it.
    Cancelled(String),
    /// It was never sent, and will not be: this became of its instant.
    Dropped(Disposition, String),
}

impl Outcome {
    /// What it does to the run.
    pub fn event(&self) -> RunEvent {
        match self {
            Outcome::Succeeded(_) => RunEvent::Succeed,
            Outcome::Failed(_) | Outcome::FailedWith(..) | Outcome::Refused(_) | Outcome::Ambiguous(_) => {
                RunEvent::Fail
            }
            Outcome::TimedOut(_) => RunEvent::TimeOut,
            Outcome::Lost(_) => RunEvent::Lose,
            Outcome::Cancelled(_) | Outcome::Dropped(..) => RunEvent::Cancel,
        }
    }

    /// For people.
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

    /// Whether an executor said so itself. Only that replaces `Lost`.
    pub fn is_reported(&self) -> bool {
        matches!(
            self,
            Outcome::Succeeded(_) | Outcome::Failed(_) | Outcome::FailedWith(..) | Outcome::TimedOut(_)
        )
    }
}

/// What became of instants of a schedule that were never sent, or of a run that was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Disposition {
    /// Too late, and the job's policy is not to make up for it.
    MisfireSkipped,
    /// Too late; one make-up run stands for it and others.
    Coalesced,
    /// A run of the job was going on, and its runs may not overlap.
    Blocked,
    /// Control ended it before it was sent.
    Cancelled,
    /// It was sent, and its executor died or knew nothing of it.
    Lost,
}

impl Disposition {
    /// A number for the row.
    pub fn to_number(self) -> i64 {
        match self {
            Disposition::MisfireSkipped => 1,
            Disposition::Coalesced => 2,
            Disposition::Blocked => 3,
            Disposition::Cancelled => 4,
            Disposition::Lost => 5,
        }
    }

    /// The reverse of [`to_number`](Disposition::to_number).
    pub fn from_number(number: i64) -> Option<Disposition> {
        use Disposition::*;
        [MisfireSkipped, Coalesced, Blocked, Cancelled, Lost].into_iter().find(|d| d.to_number() == number)
    }
}

/// Instants of one job with one disposition: kept as a range, since an outage may cover very many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsent {
    /// What became of them.
    pub disposition: Disposition,
    /// The first instant,
    pub first: Timestamp,
    /// the last,
    pub last: Timestamp,
    /// and how many of the schedule's instants these are.
    pub count: u64,
    /// Why, for people.
    pub reason: String,
}

/// A run with the job it belongs to, as the loops handle it.
#[derive(Clone, Debug, PartialEq)]
pub struct Order {
    /// What to send.
    pub run: Run,
    /// The job as it was when the run was claimed.
    pub job: std::sync::Arc<Job>,
}

/// How long before a fire is due it may be claimed. Long enough that a slow commit (200 ms) and a missed poll
/// do not make it late; short enough that little has to be taken back when a job is edited.
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
        for origin in
            [Origin::Schedule, Origin::Misfire, Origin::Manual { key: -9 }, Origin::Child { of: RunId(12) }]
        {
            let (kind, cause) = origin.to_numbers();
            assert_eq!(Origin::from_numbers(kind, cause), Some(origin));
        }
        assert_eq!(RunState::from_number(99), None);
        assert_eq!(Origin::from_numbers(99, 0), None);
    }
}
