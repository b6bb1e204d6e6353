//! The scheduling centre, as a library that is easy to start in a test.
//!
//! It grows door by door. What is here today serves every program that runs an engine: [`health`] answers whoever
//! restarts processes or sends them traffic, [`outbound`] calls executors.

pub mod health;
pub mod outbound;
