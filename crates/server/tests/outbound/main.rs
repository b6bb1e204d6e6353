//! The centre's calls, over real sockets, to executors that follow a script: well-behaved, odd, slow, hung, hostile.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod answers;
mod bounds;
mod connections;
mod guard;
mod kit;
mod paths;
mod tls;
mod wire;
