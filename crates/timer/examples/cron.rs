//! Runs a task by a cron expression in a time zone.
//!
//! Run it with `cargo run -p tickwright-timer --example cron`.

use std::time::Duration;

use tickwright_timer::{CronError, Scheduler, When};

#[tokio::main]
async fn main() -> Result<(), CronError> {
    let scheduler = Scheduler::new();
    let tick = scheduler.spawn("tick", When::cron("* * * * * ?", "UTC")?, || async {
        println!("a new second");
    });
    let report = scheduler.spawn("report", When::cron("0 0 9 ? * MON-FRI", "Asia/Shanghai")?, || async {});
    println!("the next report is due at {:?}", report.next_at().map(|at| at.to_string()));

    if let Err(error) = When::cron("0 0 25 * * ?", "UTC") {
        println!("refused: {error}");
    }
    while tick.count() < 3 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    scheduler.shutdown(Duration::from_secs(1)).await;
    Ok(())
}
