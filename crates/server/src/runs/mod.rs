//! What there is to know about runs beyond their rows: their logs, read from executors and kept
//! by us, and how many there are of each day.

mod flight_keeper;
mod flights;
mod follow;
mod keep;
mod kill;
pub mod log;
mod report;
mod tail;

pub use flight_keeper::FlightKeeper;
pub use flights::Flights;
pub use follow::{Following, LogFollower};
pub use keep::{Ended, LogKeeper, ended};
pub use kill::not_ended;
pub use report::count_loop;
