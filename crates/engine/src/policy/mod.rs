//! Policies of a job, each a pure function of its inputs.

mod repeats;
mod route;

pub use repeats::Repeats;
pub use route::{Router, Target};
pub use words::{Backoff, Block, Delivery, Misfire, Named, Overlap, Retry, Route, Word};
