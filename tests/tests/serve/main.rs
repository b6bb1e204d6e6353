//! `tickwright serve` as users start it: every option has its effect, alerts are mailed, credentials are kept safe,
//! connections are shared fairly, and the API matches its description.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod connections;
mod credentials;
mod description;
mod mail;
mod options;
mod stopping;
