//! End-to-end tests: clusters of engines on the real store, simulated with random faults; and real processes, with
//! real signals and a real network.

pub mod chaos;
pub mod database;
mod figure;
pub mod ha;
pub mod hostile;
pub mod interop;
pub mod lifecycles;
pub mod process;
pub mod serve;
pub mod sim;

pub use figure::Figure;

use std::sync::atomic::{AtomicU64, Ordering};

/// Calls `work` for each number from `from` on, on all cores, until it returns false.
pub fn for_each(from: u64, count: u64, work: impl Fn(u64) -> bool + Sync) {
    let next = AtomicU64::new(from);
    let end = from + count;
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= end || !work(number) {
                        return;
                    }
                }
            });
        }
    });
}
