//! Our own API, as programs and pages use it.

mod alerts;
mod apps;
pub mod client;
mod events;
mod jobs;
mod rights;
mod runs;
mod session;
mod users;
