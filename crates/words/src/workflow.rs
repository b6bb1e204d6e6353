//! Words of workflows and their runs.

use crate::word::words;

words! {
    "input type";
    /// Type of an input of a workflow run.
    pub enum InputType {
        /// A text.
        Text: "text",
        /// A whole number.
        Int: "int",
        /// A number.
        Number: "number",
        /// True or false.
        Bool: "bool",
        /// A day, for example `2026-11-17`.
        Date: "date",
        /// Any JSON value.
        Json: "json",
    }
}

words! {
    "error strategy";
    /// What happens to the other steps of a workflow run when a step fails.
    pub enum OnError = Stop {
        /// No more steps open; open ones may end.
        Stop: "stop",
        /// Steps that do not need the failed one go on.
        Continue: "continue",
        /// No more steps open, and open ones are cancelled.
        Cancel: "cancel",
    }
}

words! {
    "start of a retry";
    /// Where a retry of a failed workflow run begins.
    pub enum RetryFrom = Failed {
        /// At the failed steps: steps that succeeded are kept.
        Failed: "failed",
        /// At the first steps: all steps run again.
        Start: "start",
    }
}

words! {
    "number of needed runs";
    /// How many of the scheduled times that a step depends on must have succeeded.
    pub enum DependsNeed = All {
        /// Each of them.
        All: "all",
        /// At least one of them.
        Any: "any",
    }
}

words! {
    "rule for missing runs";
    /// What happens while a scheduled time that a step depends on has no run.
    pub enum IfMissing = Wait {
        /// The step waits for one.
        Wait: "wait",
        /// The step fails.
        Fail: "fail",
        /// The step starts one, if the scheduled time has passed, and waits for it.
        Start: "start",
    }
}

words! {
    "rule for failed runs";
    /// What happens when the newest run of a scheduled time that a step depends on has failed.
    pub enum IfFailed = Wait {
        /// The step waits for a newer run, for example a resumed one.
        Wait: "wait",
        /// The step fails.
        Fail: "fail",
    }
}

words! {
    "phase";
    /// Phase of a workflow run. Steps need only steps of their own phase.
    pub enum Phase = Main {
        /// The work.
        Main: "main",
        /// Begins after the main phase if that failed.
        OnFailure: "on_failure",
        /// Begins last, always.
        Finally: "finally",
    }
}

words! {
    "state of a step";
    /// State of a step in a workflow run. The last five are final.
    pub enum StepState {
        /// Not all steps that it needs have ended, or its phase has not begun.
        Blocked: "blocked",
        /// It could open, but its run is paused.
        Held: "held",
        /// It runs a job or another workflow.
        Open: "open",
        /// It waits for a person or a time.
        Waiting: "waiting",
        /// Ended: it did its work.
        Succeeded: "succeeded",
        /// Ended: its last attempt failed, or it was refused, or waited too long.
        Failed: "failed",
        /// Ended: a condition was false, or none of its connections was taken.
        Skipped: "skipped",
        /// Ended: a step that it needs failed, so that it can never open.
        Unreached: "unreached",
        /// Ended: its run was stopped or cancelled first.
        Cancelled: "cancelled",
    }
}

impl StepState {
    /// Whether it is final.
    pub fn is_over(self) -> bool {
        use StepState::*;
        matches!(self, Succeeded | Failed | Skipped | Unreached | Cancelled)
    }

    /// Whether it counts as a success for the steps that need it.
    pub fn counts_as_success(self, allow_failure: bool) -> bool {
        self == StepState::Succeeded || (self == StepState::Failed && allow_failure)
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Word as _;

    #[test]
    fn a_final_state_never_changes_and_every_other_can_end() {
        for state in StepState::all() {
            let next: Vec<_> = StepState::all().filter(|next| state.may_become(*next)).collect();
            assert_eq!(next.is_empty(), state.is_over(), "{state} → {next:?}");
            assert_eq!(next.iter().any(|next| next.is_over()), !state.is_over());
        }
    }
}
