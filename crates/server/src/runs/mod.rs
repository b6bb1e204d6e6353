//! Data about runs beyond their rows: logs, read from executors and stored, traces, and counts per day.

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
