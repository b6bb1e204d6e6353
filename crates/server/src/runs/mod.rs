//! Data about runs beyond their rows: logs, read from executors and stored, traces, and counts per day.

mod clear;
mod follow;
mod keep;
mod kill;
pub mod log;
mod report;
mod tail;
mod trace_recorder;
mod trace_writer;

pub use clear::{Cleared, clear};
pub use follow::{Following, LogFollower};
pub use keep::{Ended, LogKeeper};
pub use kill::not_ended;
pub use report::count_loop;
pub use trace_recorder::TraceRecorder;
pub use trace_writer::TraceWriter;
