//! Wake me then.

mod clock;
pub mod testing;
mod wheel;

pub use clock::{Clock, Sleep, SystemClock};
pub use cron::Timestamp;
pub use wheel::{Key, Wheel};
