//! Options of calls to executors.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::guard::Guard;
use super::tls::{Trust, TrustError};

/// Options of calls to executors. The defaults suit a few hundred executors.
#[derive(Clone, Debug)]
pub struct Options {
    /// Timeout of a connect, and again of an answer: 1 to 10 s, 3 s by default.
    pub timeout: Duration,
    /// Maximum number of runs sent to one address concurrently.
    pub in_flight_max: usize,
    /// Maximum number of runs that wait for one address; further runs are rejected at once.
    pub waiting_max: usize,
    /// Maximum number of open connections to all addresses, shared fairly by apps. Keep it well below the process's
    /// limit of open files.
    pub connections_max: usize,
    /// Rules for which IP addresses may be called.
    pub guard: Guard,
    /// Certificates that are trusted.
    pub trust: Trust,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            // Same as XXL-JOB.
            timeout: Duration::from_secs(3),
            // Measured: with hundreds in flight throughput drops and the slowest answers take 60 ms.
            in_flight_max: 64,
            // Enough for 10 000 jobs due in the same second on one executor.
            waiting_max: 10_000,
            // Of 4 096 files, the usual limit of a service; the others are for the console and the database.
            connections_max: 2_048,
            guard: Guard::default(),
            trust: Trust::default(),
        }
    }
}

impl Options {
    pub(super) fn check(&self) -> Result<(), OptionsError> {
        if !TIMEOUTS.contains(&self.timeout) {
            return Err(OptionsError::Timeout(self.timeout));
        }
        if self.in_flight_max == 0 || self.connections_max == 0 {
            return Err(OptionsError::NoCalls);
        }
        Ok(())
    }
}

/// If shorter, an ordinary pause of an executor looks like a crash; if longer, a crash is noticed too late.
const TIMEOUTS: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(10);

/// Invalid options.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    /// The timeout is too short or too long.
    #[error("the call timeout is {0:?}; it must be 1 s to 10 s")]
    Timeout(Duration),
    /// A limit is zero.
    #[error("limits of concurrent calls must be 1 or more")]
    NoCalls,
    /// The additional certificate authorities cannot be parsed.
    #[error(transparent)]
    Trust(#[from] TrustError),
}

#[cfg(test)]
mod tests {
    use super::super::Outbound;
    use super::*;

    #[test]
    fn options_that_cannot_work_are_refused() {
        for (seconds, fine) in [(0, false), (1, true), (10, true), (11, false)] {
            let timeout = Duration::from_secs(seconds);
            assert_eq!(Outbound::new(Options { timeout, ..Options::default() }).is_ok(), fine, "{seconds}");
        }
        assert!(Outbound::new(Options { in_flight_max: 0, ..Options::default() }).is_err());
        for pem in ["", "nonsense", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
            let trust = Trust { authorities: Some(pem.into()), accept_invalid: false };
            assert!(Outbound::new(Options { trust, ..Options::default() }).is_err(), "{pem}");
        }
    }
}
