//! Shuts a scheduler down gracefully: no new runs start, current runs get a grace period, the rest is listed.
//!
//! Run it with `cargo run -p tickwright-timer --example shutdown`.

use std::time::Duration;

use tickwright_timer::{Scheduler, When};

#[tokio::main]
async fn main() {
    let scheduler = Scheduler::builder().max_running(2).start();
    for (name, seconds) in [("short", 1), ("endless", 3_600), ("held back", 1)] {
        scheduler.spawn(name, When::after(Duration::ZERO), move || async move {
            println!("{name} begins");
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            println!("{name} ends");
        });
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    println!("two may run, so one waits: {:?}", scheduler.load());
    let report = scheduler.shutdown(Duration::from_secs(2)).await;
    println!("finished: {:?}", report.finished);
    println!("abandoned: {:?}", report.abandoned);
    println!("never started: {:?}", report.unstarted);
}
