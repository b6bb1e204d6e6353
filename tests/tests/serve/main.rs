//! `tickwright serve` as users start it: every option has its effect, alerts are mailed, credentials are kept safe.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod credentials;
mod mail;
mod options;
