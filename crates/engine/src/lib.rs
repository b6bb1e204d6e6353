//! What happens now? The rules of scheduling, and the loops that follow them.
//!
//! The engine is pure: the clock, the database and the executors come in through traits, so the scheduling centre, a
//! program that schedules for itself ([`embedded`]), and the simulation that breaks everything from a seed all run this
//! same code.
//!
//! One fire passes through these files in this order: [`plan`](Planner) → `claim` → `outbox` → `dispatch` → `note` →
//! `complete`. Beside it `lifeline` notices dead nodes, `rescue` takes over from them, `watch` asks about runs that do not report, `control`
//! starts, stops and edits, `declare` takes what programs say of their jobs, `kill` ends one run, `alert` tells people and `prune` forgets.

mod alert;
mod claim;
mod complain;
mod complete;
mod control;
mod declare;
mod dispatch;
pub mod embedded;
mod engine;
mod job;
mod kill;
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
#[cfg(test)]
mod testing;
mod trouble;
pub mod watch;

pub use complete::CHILD_DEPTH_MAX;
pub use declare::Declaration;
pub use engine::{Engine, LEASE, Options, Parts, Status};
pub use job::{AppId, ChildrenMode, Job, JobId, JobSpec, Language, Script};
pub use kill::Killed;
pub use membership::Skew;
pub use ports::*;
pub use run::*;
pub use sabotage::{Bugs, Sabotage};
pub use trouble::{Trouble, TroubleKind};
