//! Scheduling rules, and the loops that apply them.
//!
//! The engine does no I/O of its own: the clock, the database and the executors are traits. The scheduling centre,
//! a program that schedules for itself ([`embedded`]), and the deterministic simulation all run this same code.
//!
//! One fire passes through these files in this order: [`plan`](Planner) → `claim` → `outbox` → `dispatch` → `note`
//! → `complete`. Besides, `agenda` shows the loops whether they have work, `lifeline` detects dead nodes, `rescue` takes over their runs, `watch` asks executors
//! about runs without a report, `control` starts, stops and edits jobs, `declare` applies declarations of programs,
//! `kill` cancels one run, `history` recognises a database that has lost commits, `workflow` lets the steps of workflow runs follow one another, `backfill` runs jobs for
//! scheduled times of the past, `alert` sends notifications and `prune` deletes old rows.

mod adopt;
mod agenda;
mod alert;
mod backfill;
mod claim;
mod complain;
mod complete;
mod control;
mod declare;
mod dispatch;
pub mod embedded;
mod engine;
mod history;
mod job;
mod kill;
mod lanes;
mod lifeline;
mod membership;
mod note;
mod outbox;
mod pace;
mod plan;
pub mod policy;
mod ports;
mod prune;
mod quota;
mod rescue;
mod run;
mod sabotage;
mod telemetry;
#[cfg(test)]
mod testing;
mod trouble;
pub mod watch;
mod workflow;

pub use adopt::Adopting;
pub use agenda::RegistryState;
pub use backfill::{
    Backfill, BackfillChange, BackfillId, BackfillSettings, EarlierRun, Filled, INSTANTS_MAX, InstantCounts,
    NewBackfill, PARALLEL_MAX, TimeRange, TimesError, Turn, state_after, times_of, turn,
};
pub use complete::CHILD_DEPTH_MAX;
pub use declare::Declaration;
pub use engine::{Engine, LEASE, Options, Parts, Status};
pub use job::{
    AppId, CalendarId, ChildrenMode, Job, JobId, JobSpec, JobWorkdays, Script, ScriptLanguage, WorkflowId,
};
pub use kill::Killed;
pub use membership::Skew;
pub use ports::*;
pub use run::*;
pub use sabotage::{Bugs, Sabotage};
pub use telemetry::{StepEvent, Telemetry};
pub use trouble::{Trouble, TroubleKind};
pub use words::{AlertState, BackfillOrder, BackfillState, Existing, InstantState, OnFailure, RunStatus};
