//! The whole server, as its clients see it: over TCP, with real executors and a real database.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod alerts;
mod attacks;
mod bad_input;
mod cancelling;
mod declared;
mod doctor;
mod executors;
mod fake;
mod health;
mod job_calls;
mod kit;
mod log_ends;
mod log_follows;
mod logs;
mod records;
mod recovery;
mod script;
mod tls;
mod users;
mod v1;
mod web;
