//! The whole thing at once: clusters of engines over the real store, simulated with everything that can go wrong.

pub mod sim;
