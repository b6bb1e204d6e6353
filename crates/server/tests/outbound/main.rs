//! Calls over real sockets to scripted executors: well-behaved, odd, slow, hanging, hostile.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod answers;
mod bounds;
mod connections;
mod guard;
mod kit;
mod paths;
mod tls;
mod wire;
