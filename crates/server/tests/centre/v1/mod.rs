//! Our own API, as programs and pages use it.

mod apps;
mod client;
mod jobs;
mod runs;
mod session;
