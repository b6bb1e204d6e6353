//! Rules of a backfill: how many runs it may open, which scheduled times it leaves out, and when it ends. Pure: the
//! store calls them between reading and writing rows.

use std::collections::BTreeMap;
use std::fmt;

use cron::Timestamp;
use words::{BackfillOrder, BackfillState, Existing, InstantState, OnFailure};

use super::times::TimeRange;
use crate::job::JobId;
use crate::run::{Outcome, RunId, RunState};

/// Id of a backfill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BackfillId(pub i64);

impl fmt::Display for BackfillId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A backfill: runs of a job for scheduled times of the past.
#[derive(Clone, Debug, PartialEq)]
pub struct Backfill {
    /// Id of the backfill.
    pub id: BackfillId,
    /// Id of the job.
    pub job: JobId,
    /// Settings from the request.
    pub settings: BackfillSettings,
    /// State of the backfill.
    pub state: BackfillState,
    /// Number of scheduled times by their state.
    pub counts: InstantCounts,
    /// Time when it was started.
    pub begun_at: Timestamp,
    /// Time when its last run ended; none while it is not finished.
    pub ended_at: Option<Timestamp>,
}

/// Settings of a backfill.
#[derive(Clone, Debug, PartialEq)]
pub struct BackfillSettings {
    /// Range that was asked for.
    pub range: TimeRange,
    /// Order in which runs are opened.
    pub order: BackfillOrder,
    /// Maximum number of scheduled times with open runs, up to [`PARALLEL_MAX`].
    pub parallel: u32,
    /// Rule for scheduled times that have runs.
    pub existing: Existing,
    /// What happens after a failure.
    pub on_failure: OnFailure,
    /// Parameter instead of the job's.
    pub param: Option<String>,
    /// Name of the user who started it.
    pub by: String,
}

/// Maximum of [`BackfillSettings::parallel`].
pub const PARALLEL_MAX: u32 = 100;

/// Number of scheduled times of a backfill by their state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InstantCounts {
    /// All of them.
    pub total: u32,
    /// With open runs.
    pub open: u32,
    /// Succeeded.
    pub succeeded: u32,
    /// Failed.
    pub failed: u32,
    /// Left out.
    pub skipped: u32,
    /// Cancelled.
    pub cancelled: u32,
}

impl InstantCounts {
    /// Those whose runs are not opened yet.
    pub fn pending(&self) -> u32 {
        let others = self.open + self.succeeded + self.failed + self.skipped + self.cancelled;
        self.total.saturating_sub(others)
    }

    /// Counts a scheduled time that changes its state.
    pub fn moved(&mut self, from: InstantState, to: InstantState) {
        if let Some(count) = self.of(from) {
            *count = count.saturating_sub(1);
        }
        if let Some(count) = self.of(to) {
            *count += 1;
        }
    }

    /// The count of a state; pending ones are the rest.
    fn of(&mut self, state: InstantState) -> Option<&mut u32> {
        match state {
            InstantState::Pending => None,
            InstantState::Open => Some(&mut self.open),
            InstantState::Succeeded => Some(&mut self.succeeded),
            InstantState::Failed => Some(&mut self.failed),
            InstantState::Skipped => Some(&mut self.skipped),
            InstantState::Cancelled => Some(&mut self.cancelled),
        }
    }
}

/// A change of a backfill by a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackfillChange {
    /// Open no more runs until [`Continue`](BackfillChange::Continue).
    Pause,
    /// Open runs again.
    Continue,
    /// Open no more runs, ever.
    Cancel,
    /// Run failed and cancelled scheduled times again.
    Retry,
}

impl Backfill {
    /// Number of runs that it may open now. The runs of an exclusive job would only wait for each other.
    pub fn room(&self, is_exclusive: bool) -> u32 {
        let limit = if is_exclusive { 1 } else { self.settings.parallel };
        match self.state {
            BackfillState::Running => limit.saturating_sub(self.counts.open).min(self.counts.pending()),
            BackfillState::Paused | BackfillState::Cancelled | BackfillState::Finished => 0,
        }
    }

    /// State of a scheduled time after the end of its run; none if the end changes nothing. A success that arrives
    /// after the run was given up still counts.
    pub fn after_end(before: InstantState, ended: InstantState) -> Option<InstantState> {
        match before {
            InstantState::Open => Some(ended),
            InstantState::Failed if ended == InstantState::Succeeded => Some(ended),
            _ => None,
        }
    }

    /// Counts the end of a scheduled time.
    pub fn end(&mut self, before: InstantState, ended: InstantState) {
        self.counts.moved(before, ended);
        if ended == InstantState::Failed
            && self.settings.on_failure == OnFailure::Stop
            && self.state == BackfillState::Running
        {
            self.state = BackfillState::Paused;
        }
    }

    /// Ends the backfill if nothing is left to run.
    pub fn conclude(&mut self, now: Timestamp) {
        if self.counts.open > 0 || self.counts.pending() > 0 {
            return;
        }
        if matches!(self.state, BackfillState::Running | BackfillState::Paused) {
            self.state = BackfillState::Finished;
        }
        self.ended_at.get_or_insert(now);
    }

    /// Applies a change; the reason if it is not possible in this state. The caller changes the scheduled times: those
    /// that are cancelled or retried.
    pub fn change(&mut self, change: BackfillChange, now: Timestamp) -> Result<(), String> {
        use BackfillState::*;
        match (change, self.state) {
            (BackfillChange::Pause, Running | Paused) => self.state = Paused,
            (BackfillChange::Continue, Running | Paused) => self.state = Running,
            (BackfillChange::Cancel, Running | Paused | Cancelled) => {
                self.state = Cancelled;
                self.counts.cancelled += self.counts.pending();
                self.conclude(now);
            }
            (BackfillChange::Retry, Running | Paused | Finished) => {
                if self.counts.failed + self.counts.cancelled == 0 {
                    return Err(format!("backfill {} has no failed scheduled time", self.id));
                }
                (self.counts.failed, self.counts.cancelled) = (0, 0);
                (self.state, self.ended_at) = (Running, None);
            }
            (_, state) => return Err(format!("backfill {} is {state} already", self.id)),
        }
        Ok(())
    }
}

/// State of a scheduled time by the outcome of its run.
pub fn state_after(outcome: &Outcome) -> InstantState {
    match outcome {
        Outcome::Succeeded(_) => InstantState::Succeeded,
        Outcome::Cancelled(_) => InstantState::Cancelled,
        _ => InstantState::Failed,
    }
}

/// A run that a scheduled time already has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlierRun {
    /// Id of the run.
    pub id: RunId,
    /// Its shard, as the log has it; empty if it is the only one.
    pub shard: String,
    /// State of the run. One that is not over is open.
    pub state: RunState,
}

/// Decision about a scheduled time whose turn has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Open a run.
    Run,
    /// An open run decides.
    Wait(RunId),
    /// Leave it out, because this run succeeded.
    LeaveOut(RunId),
}

/// Decides about a scheduled time by the runs that it has. With shards, each of them must have succeeded.
pub fn turn(existing: Existing, runs: &[EarlierRun]) -> Turn {
    if existing == Existing::Again {
        return Turn::Run;
    }
    if let Some(open) = runs.iter().find(|run| !run.state.is_over()) {
        return Turn::Wait(open.id);
    }
    let mut shards: BTreeMap<&str, Vec<&EarlierRun>> = BTreeMap::new();
    for run in runs {
        shards.entry(&run.shard).or_default().push(run);
    }
    let success = |runs: &Vec<&EarlierRun>| {
        let newest = runs.iter().max_by_key(|run| run.id).copied();
        let candidates = if existing == Existing::Failed { newest.as_slice() } else { runs.as_slice() };
        candidates.iter().find(|run| run.state == RunState::Succeeded).map(|run| run.id)
    };
    let successes: Option<Vec<RunId>> = shards.values().map(success).collect();
    match successes.and_then(|runs| runs.into_iter().max()) {
        Some(run) => Turn::LeaveOut(run),
        None => Turn::Run,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ms;

    fn backfill(parallel: u32, total: u32) -> Backfill {
        let settings = BackfillSettings {
            range: TimeRange { from: ms(0), until: ms(1_000) },
            order: BackfillOrder::Oldest,
            parallel,
            existing: Existing::Skip,
            on_failure: OnFailure::Continue,
            param: None,
            by: "ada".into(),
        };
        Backfill {
            id: BackfillId(1),
            job: JobId(1),
            settings,
            state: BackfillState::Running,
            counts: InstantCounts { total, ..InstantCounts::default() },
            begun_at: ms(0),
            ended_at: None,
        }
    }

    #[test]
    fn a_backfill_has_room_for_what_is_neither_open_nor_done() {
        let check = |parallel, counts: InstantCounts, exclusive, expected| {
            let found = Backfill { counts, ..backfill(parallel, 0) }.room(exclusive);
            assert_eq!(found, expected, "{counts:?}");
        };
        let counts = |total, open, succeeded| InstantCounts { total, open, succeeded, ..Default::default() };
        check(3, counts(10, 0, 0), false, 3);
        check(3, counts(10, 2, 4), false, 1);
        check(3, counts(10, 0, 9), false, 1);
        check(3, counts(10, 0, 10), false, 0);
        check(3, counts(10, 0, 0), true, 1);
        check(3, counts(10, 1, 0), true, 0);
        let paused = Backfill { state: BackfillState::Paused, ..backfill(3, 10) };
        assert_eq!(paused.room(false), 0);
    }

    #[test]
    fn a_run_ends_its_scheduled_time_once() {
        use InstantState::*;
        let check = |before, ended, expected| assert_eq!(Backfill::after_end(before, ended), expected);
        check(Open, Succeeded, Some(Succeeded));
        check(Open, Failed, Some(Failed));
        check(Succeeded, Failed, None);
        check(Cancelled, Succeeded, None);
        check(Pending, Succeeded, None);
        // Its run was lost, and has reported after all.
        check(Failed, Succeeded, Some(Succeeded));
        check(Failed, Failed, None);
    }

    #[test]
    fn a_backfill_finishes_when_nothing_is_left() {
        let mut two = backfill(1, 2);
        for ended in [InstantState::Succeeded, InstantState::Failed] {
            two.counts.moved(InstantState::Pending, InstantState::Open);
            two.conclude(ms(5));
            assert_eq!(two.state, BackfillState::Running);
            two.end(InstantState::Open, ended);
        }
        two.conclude(ms(7));
        assert_eq!((two.state, two.ended_at), (BackfillState::Finished, Some(ms(7))));
        assert_eq!(two.change(BackfillChange::Pause, ms(8)), Err("backfill 1 is finished already".into()));
        two.change(BackfillChange::Retry, ms(8)).unwrap();
        assert_eq!((two.state, two.ended_at, two.room(false)), (BackfillState::Running, None, 1));
        two.change(BackfillChange::Cancel, ms(9)).unwrap();
        assert_eq!((two.state, two.ended_at), (BackfillState::Cancelled, Some(ms(9))));
        assert_eq!(two.counts.cancelled, 1);
    }

    #[test]
    fn a_failure_stops_a_backfill_only_if_that_was_asked() {
        for (on_failure, expected) in
            [(OnFailure::Continue, BackfillState::Running), (OnFailure::Stop, BackfillState::Paused)]
        {
            let mut some = backfill(1, 3);
            some.settings.on_failure = on_failure;
            some.counts.moved(InstantState::Pending, InstantState::Open);
            some.end(InstantState::Open, InstantState::Failed);
            assert_eq!(some.state, expected);
        }
    }

    #[test]
    fn existing_runs_decide_as_the_rule_says() {
        use Existing::*;
        use RunState::{Failed as Bad, Running, Succeeded as Good};
        let check = |existing, runs: &[(&str, RunState)], expected: Turn| {
            let run = |(index, (shard, state)): (usize, &(&str, RunState))| EarlierRun {
                id: RunId(index as i64 + 1),
                shard: (*shard).to_owned(),
                state: *state,
            };
            let runs: Vec<EarlierRun> = runs.iter().enumerate().map(run).collect();
            assert_eq!(turn(existing, &runs), expected, "{existing} {runs:?}");
        };
        let left_out = |run| Turn::LeaveOut(RunId(run));
        for existing in [Skip, Failed, Again] {
            check(existing, &[], Turn::Run);
            check(existing, &[("", Bad)], Turn::Run);
        }
        check(Skip, &[("", Good), ("", Bad)], left_out(1));
        check(Failed, &[("", Good), ("", Bad)], Turn::Run);
        check(Failed, &[("", Bad), ("", Good)], left_out(2));
        check(Again, &[("", Good)], Turn::Run);
        check(Skip, &[("", Bad), ("", Running)], Turn::Wait(RunId(2)));
        check(Again, &[("", Running)], Turn::Run);
        check(Skip, &[("0/2", Good), ("1/2", Bad)], Turn::Run);
        check(Skip, &[("0/2", Good), ("1/2", Bad), ("1/2", Good)], left_out(3));
    }
}
