//! Runs a task once: at a given time, and after a delay.
//!
//! Run it with `cargo run -p tickwright-timer --example once`.

use std::time::Duration;

use tickwright_timer::{Clock, Scheduler, SystemClock, When};

#[tokio::main]
async fn main() {
    let scheduler = Scheduler::new();
    let at = SystemClock::new().now() + Duration::from_millis(500);
    let meeting = scheduler.spawn("meeting", When::at(at), move || async move {
        println!("it is {at}: the meeting begins");
    });
    let tea = scheduler.spawn("tea", When::after(Duration::from_secs(1)), || async {
        println!("a second has passed: the tea is ready");
    });
    let never = scheduler.spawn("never", When::after(Duration::from_millis(700)), || async {
        println!("nobody will read this");
    });
    println!("cancelled `{}` in time: {}", never.name(), never.cancel());
    meeting.over().await;
    tea.over().await;
    println!("the tea was due at {:?}", tea.last_run().map(|run| run.scheduled_at.to_string()));
}
