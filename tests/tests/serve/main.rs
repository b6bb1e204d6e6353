//! `tickwright serve` as users start it.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod credentials;
