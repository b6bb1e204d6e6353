//! Marks functions as scheduled and starts all of them with one call.
//!
//! Run it with `cargo run -p tickwright-timer --example scheduled_attribute`.

use std::time::Duration;

use tickwright_timer::{Scheduler, scheduled};

#[scheduled(fixed_rate = "300ms")]
async fn pulse() {
    println!("pulse");
}

#[scheduled(fixed_delay = "500ms", initial_delay = "100ms", name = "sweep")]
fn sweep() -> Result<(), String> {
    Err("the broom is broken".to_string())
}

#[scheduled(cron = "0 30 2 * * ?", zone = "Europe/London")]
async fn nightly() {}

#[tokio::main]
async fn main() {
    let scheduler = Scheduler::builder()
        .on_error(|failure| println!("{} failed: {}", failure.task, failure.cause))
        .start();
    for task in scheduler.start_scheduled() {
        println!("{} is due at {:?}", task.name(), task.next_at().map(|at| at.to_string()));
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    scheduler.shutdown(Duration::from_secs(1)).await;
}
