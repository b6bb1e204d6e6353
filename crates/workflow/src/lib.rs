//! What follows what? Workflows: their steps, conditions and expressions, and the steps that an end opens.
//!
//! This crate touches nothing: no clock, no database, no network. The engine and the store use it inside a transaction,
//! and the server and the command line use it to check definitions.
//!
//! - [`definition`]: a workflow as it is stored.
//! - [`Graph`]: the same, checked and connected.
//! - [`Progress`]: what follows when steps end.
//! - [`join`], [`expression`], [`template`], [`data`]: the rules that these use.

pub mod data;
pub mod date;
pub mod definition;
pub mod expression;
mod graph;
pub mod join;
mod progress;
#[cfg(feature = "reference")]
pub mod reference;
pub mod template;

pub use graph::{
    Condition, EDGES_MAX, Edge, Graph, NAME_MAX, Node, Opening, PARAM_MAX, PROBLEMS_MAX, Problem, STEPS_MAX,
    StepNo,
};
pub use progress::{Changes, Progress, RunOutcome, RunRow, StepEnd, StepRow, Stop, Wants};
pub use words::StepState;
