//! Runs a task with a custom trigger: a probe that doubles its delay after each try and stops in the end.
//!
//! Run it with `cargo run -p tickwright-timer --example own_trigger`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tickwright_timer::{Past, Scheduler, Timestamp, Trigger, When};

/// Doubles the delay after each run.
struct Doubling {
    wait: Duration,
    longest: Duration,
}

impl Trigger for Doubling {
    fn next(&mut self, past: Past) -> Option<Timestamp> {
        let from = past.last.map_or(past.now, |run| run.completed_at);
        let next = from + self.wait;
        self.wait *= 2;
        (self.wait <= self.longest * 2).then_some(next)
    }
}

#[tokio::main]
async fn main() {
    let scheduler = Scheduler::new();
    let tries = Arc::new(AtomicU32::new(0));
    let rule = Doubling { wait: Duration::from_millis(100), longest: Duration::from_millis(800) };
    let probe = scheduler.spawn("probe", When::trigger(rule), move || {
        println!("try {}", tries.fetch_add(1, Ordering::Relaxed) + 1);
        std::future::ready(())
    });
    probe.over().await;
    println!("gave up after {} tries", probe.count());

    // A closure is enough for a simple trigger.
    let once = |past: Past| past.last.is_none().then(|| past.now + Duration::from_millis(200));
    scheduler.spawn("closure", When::trigger(once), || async { println!("once more") }).over().await;
}
