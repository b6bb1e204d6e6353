//! The whole thing at once: clusters of engines over the real store, simulated with everything that can go wrong; and
//! real processes, with real signals and a real network.

pub mod chaos;
pub mod database;
pub mod process;
pub mod sim;
