//! Runs a task at a fixed rate, from start to start, including one that cannot keep up.
//!
//! Run it with `cargo run -p tickwright-timer --example fixed_rate`.

use std::time::Duration;

use tickwright_timer::{Late, Scheduler, When};

#[tokio::main]
async fn main() {
    let scheduler = Scheduler::builder()
        .on_late(|late| match late {
            Late::Started { task, by, missed, .. } => {
                println!("{task}: started {by:.0?} late, missed {missed} ticks")
            }
            Late::Held { task, ahead, .. } => println!("{task}: due, behind {ahead} others"),
        })
        .start();
    let every = Duration::from_millis(200);
    let quick = scheduler.spawn("quick", When::fixed_rate(every), || async {
        println!("quick: tick");
    });
    // Each run lasts two and a half periods: the ticks missed meanwhile become one run and are reported.
    let slow = scheduler.spawn("slow", When::fixed_rate(every).initial_delay(every), || async {
        println!("slow: begins");
        tokio::time::sleep(Duration::from_millis(500)).await;
    });
    tokio::time::sleep(Duration::from_secs(2)).await;
    println!(
        "quick ran {} times; slow {} times, and missed {} ticks",
        quick.count(),
        slow.count(),
        slow.missed()
    );
    scheduler.shutdown(Duration::from_secs(1)).await;
}
