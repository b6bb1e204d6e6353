//! Policies of a job, each a pure function of its inputs.

mod misfire;
mod repeats;
mod retry;
mod route;

pub use misfire::Misfire;
pub use repeats::Repeats;
pub use retry::{Backoff, Retry};
pub use route::{Router, Target};
pub use words::{Block, Delivery, Named, Overlap, Route, Word};
