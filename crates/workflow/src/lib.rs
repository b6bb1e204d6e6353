//! What follows what? Workflows: their steps, conditions and expressions, and the steps that an end opens.
//!
//! This crate touches nothing: no clock, no database, no network. The engine and the store use it inside a transaction,
//! and the server and the command line use it to check definitions.
//!
//! - [`definition`]: a workflow as it is stored.
//! - [`Graph`]: the same, checked and connected.
//! - [`Progress`]: what follows when steps end.
//! - [`resume`]: what a new run keeps of one that has ended.
//! - [`taken`]: which connections were taken.
//! - [`dependency`]: dependencies on runs of other jobs.
//! - [`secret`]: secrets in parameters.
//! - [`join`], [`expression`], [`template`], [`data`]: the rules that these use.

mod connections;
pub mod data;
pub mod date;
pub mod definition;
pub mod dependency;
pub mod expression;
mod graph;
pub mod join;
mod progress;
#[cfg(feature = "reference")]
pub mod reference;
pub mod resume;
pub mod secret;
pub mod template;

pub use connections::taken;
pub use graph::{
    Condition, EDGES_MAX, Edge, Graph, NAME_MAX, Node, Opening, PARAM_MAX, PROBLEMS_MAX, Problem, STEPS_MAX,
    StepNo,
};
pub use progress::{Changes, Progress, RunOutcome, RunRow, StepEnd, StepRow, Stop, Wants};
pub use words::StepState;
