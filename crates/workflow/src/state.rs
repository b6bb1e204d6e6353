//! States of steps.

use std::fmt;

/// State of a step in a workflow run. The last five are final.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StepState {
    /// Not all steps that it needs have ended, or its phase has not begun.
    Blocked,
    /// It could open, but its run is paused.
    Held,
    /// It runs a job, another workflow, or items.
    Open,
    /// It waits for a person, a time or an event.
    Waiting,
    /// Ended: it did its work.
    Succeeded,
    /// Ended: its last attempt failed, or it was refused, or waited too long.
    Failed,
    /// Ended: a condition was false, or none of its connections was taken.
    Skipped,
    /// Ended: a step that it needs failed, so that it can never open.
    Unreached,
    /// Ended: its run was stopped or cancelled first.
    Cancelled,
}

impl StepState {
    /// All states.
    pub const ALL: [StepState; 9] = {
        use StepState::*;
        [Blocked, Held, Open, Waiting, Succeeded, Failed, Skipped, Unreached, Cancelled]
    };

    /// Whether it is final.
    pub fn is_over(self) -> bool {
        use StepState::*;
        matches!(self, Succeeded | Failed | Skipped | Unreached | Cancelled)
    }

    /// Whether the step does something or waits for something, so that its phase goes on.
    pub fn is_active(self) -> bool {
        matches!(self, StepState::Open | StepState::Waiting)
    }

    /// Whether a step in this state may change to `next`.
    pub fn may_become(self, next: StepState) -> bool {
        use StepState::*;
        match self {
            Blocked => next != Blocked,
            Held => matches!(next, Open | Waiting | Failed | Skipped | Cancelled),
            Open | Waiting => matches!(next, Succeeded | Failed | Cancelled),
            Succeeded | Failed | Skipped | Unreached | Cancelled => false,
        }
    }

    /// Number in the row.
    pub const fn to_number(self) -> i64 {
        use StepState::*;
        match self {
            Blocked => 0,
            Held => 1,
            Open => 2,
            Waiting => 3,
            Succeeded => 10,
            Failed => 11,
            Skipped => 12,
            Unreached => 13,
            Cancelled => 14,
        }
    }

    /// Inverse of [`to_number`](StepState::to_number).
    pub fn from_number(number: i64) -> Option<StepState> {
        StepState::ALL.into_iter().find(|state| state.to_number() == number)
    }

    /// Word in the API.
    pub fn word(self) -> &'static str {
        use StepState::*;
        match self {
            Blocked => "blocked",
            Held => "held",
            Open => "open",
            Waiting => "waiting",
            Succeeded => "succeeded",
            Failed => "failed",
            Skipped => "skipped",
            Unreached => "unreached",
            Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for StepState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_final_state_never_changes_and_every_other_can_end() {
        for state in StepState::ALL {
            let next: Vec<_> = StepState::ALL.into_iter().filter(|next| state.may_become(*next)).collect();
            assert_eq!(next.is_empty(), state.is_over(), "{state} → {next:?}");
            assert_eq!(next.iter().any(|next| next.is_over()), !state.is_over());
            assert_eq!(StepState::from_number(state.to_number()), Some(state));
        }
    }
}
