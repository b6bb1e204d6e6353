//! Random numbers, derived from the seed alone.
//!
//! Every concern has its own generator: an additional draw by one does not change the numbers of another, so a
//! small change of the workload leaves the faults unchanged.

use std::time::Duration;

/// A random number generator.
#[derive(Clone, Debug)]
pub struct Dice(fastrand::Rng);

impl Dice {
    /// The generator of one concern.
    pub fn new(seed: u64, concern: &str, index: usize) -> Self {
        let mut mixed = seed ^ 0x9E37_79B9_7F4A_7C15;
        for byte in concern.bytes().chain(index.to_le_bytes()) {
            mixed = (mixed ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3).rotate_left(23);
        }
        Dice(fastrand::Rng::with_seed(mixed))
    }

    /// True with this probability.
    pub fn chance(&mut self, share: f64) -> bool {
        // Always draws once, so that a probability of zero does not change the following numbers.
        self.0.f64() < share
    }

    /// A number from `from` to `to`, both included.
    pub fn number(&mut self, from: i64, to: i64) -> i64 {
        self.0.i64(from..=to)
    }

    /// A duration between `from` and `to` milliseconds.
    pub fn millis(&mut self, from: i64, to: i64) -> Duration {
        Duration::from_millis(self.number(from, to).max(0) as u64)
    }

    /// A random element.
    pub fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.0.usize(0..of.len())].clone()
    }
}
