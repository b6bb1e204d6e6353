//! Commands that call a scheduling centre: the real binary against a real server.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod backfills;
mod calendars;
mod crashes;
mod errors;
mod examples;
mod files;
mod guides;
mod jobs;
mod keys;
mod kit;
mod looks;
mod runs;
mod sessions;
mod workflows;
