//! How the centre calls.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::guard::Guard;
use super::tls::{Trust, TrustError};

/// What can be set. The defaults suit a few hundred executors.
#[derive(Clone, Debug)]
pub struct Options {
    /// How long a connect may take, and again an answer: 1 to 10 s.
    pub timeout: Duration,
    /// Runs one address is sent at the same time.
    pub in_flight_max: usize,
    /// Runs that wait for one address; those beyond are told so at once.
    pub waiting_max: usize,
    /// Connections to all addresses together. Keep it well below the number of files the process may open.
    pub connections_max: usize,
    /// Which IPs may be called.
    pub guard: Guard,
    /// Whose certificates are believed.
    pub trust: Trust,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            // What XXL-JOB waits.
            timeout: Duration::from_secs(3),
            // Measured: with hundreds in flight throughput falls and the slowest answers take 60 ms.
            in_flight_max: 64,
            // All of 10 000 jobs due at the same second, to one executor.
            waiting_max: 10_000,
            // Of 4 096 files, what most systems give a service; the others are for the console and the database.
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

/// Shorter and an ordinary pause of an executor looks like its death; longer and its death is found too late.
const TIMEOUTS: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(10);

/// Options that cannot work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    /// Too short or too long.
    #[error("executors cannot be waited for {0:?}; choose 1 to 10 s")]
    Timeout(Duration),
    /// A limit is zero.
    #[error("with no call at a time nothing is ever sent; choose limits of at least 1")]
    NoCalls,
    /// The extra authorities cannot be read.
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
