//! Wake me then.

mod clock;

pub use clock::{Clock, Sleep, SystemClock};
pub use cron::Timestamp;
