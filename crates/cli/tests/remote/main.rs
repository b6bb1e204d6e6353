//! The commands that talk to a centre, as typed in a shell: the real binary against a real centre.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod crashes;
mod errors;
mod files;
mod guides;
mod jobs;
mod keys;
mod kit;
mod looks;
mod runs;
mod sessions;
