//! Runs a task with a fixed delay between the end of a run and the start of the next.
//!
//! Run it with `cargo run -p tickwright-timer --example fixed_delay`.

use std::thread;
use std::time::{Duration, Instant};

use tickwright_timer::{Scheduler, When};

#[tokio::main]
async fn main() {
    let scheduler = Scheduler::new();
    let started = Instant::now();
    let rest = When::fixed_delay(Duration::from_millis(200)).initial_delay(Duration::from_millis(100));
    // It blocks, so it runs on a thread of its own.
    let poll = scheduler.spawn_blocking("poll", rest, move || {
        println!("{:>5.1?}: polls for 300 ms, then rests for 200", started.elapsed());
        thread::sleep(Duration::from_millis(300));
    });
    tokio::time::sleep(Duration::from_secs(2)).await;
    println!("ran {} times; the next run is at {:?}", poll.count(), poll.next_at().map(|at| at.to_string()));
    scheduler.shutdown(Duration::from_secs(1)).await;
}
