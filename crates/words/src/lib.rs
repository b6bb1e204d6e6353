//! Vocabulary: policies and states that have a word in the API and in the database.
//!
//! Each enum is defined once, as a table of variant, word and stored word. Parsing, JSON, OpenAPI schemas, columns,
//! command-line values and the console's types are derived from that table. Policies with durations (misfire policy,
//! retry policy) are ordinary types; their durations are milliseconds in JSON.
//!
//! The tables are a crate because `engine` and `protocol` both need these types and neither may depend on the
//! other. The alternative was one enum in each of them, converted through the word and compared by a test: that is
//! two definitions and a conversion for every enum, and a new value is a change in both.
//!
//! Origin and schedule are not here, because their API types differ from the engine's, nor is the state of a run,
//! whose transitions belong to `engine`. `server` converts those with an exhaustive `match`, without writing a word.
#![doc = include_str!("../README.md")]

mod alert;
mod backfill;
mod job;
#[cfg(feature = "serde")]
mod millis;
mod misfire;
mod named;
mod retry;
mod run;
mod script;
mod word;
mod workflow;

pub use alert::{AlertKind, AlertState};
pub use backfill::{BackfillOrder, BackfillState, Existing, InstantState, OnFailure};
pub use job::{Beyond, Block, ChildrenMode, CronDialect, Delivery, OnDays, Overlap, Route, Shift};
pub use misfire::Misfire;
pub use named::Named;
pub use retry::{Backoff, Retry};
pub use run::RunStatus;
pub use script::ScriptLanguage;
pub use word::{UnknownWord, Word};
pub use workflow::{DependsNeed, IfFailed, IfMissing, InputType, OnError, Phase, RetryFrom, StepState};
