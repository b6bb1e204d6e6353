//! Policies of a job, each a pure function of its inputs.

mod delivery;
mod misfire;
mod overlap;
mod repeats;
mod retry;
mod route;

pub use delivery::Delivery;
pub use misfire::Misfire;
pub use overlap::Overlap;
pub use repeats::Repeats;
pub use retry::{Backoff, Retry};
pub use route::{Router, Target};
