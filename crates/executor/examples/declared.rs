//! Jobs that declare themselves: nobody adds them in the centre. Change one there, and start this again: what was changed
//! stays.
//!
//! ```sh
//! cargo run --example declared -- http://127.0.0.1:8080
//! ```
//!
//! The token of the app `my-app` is read from `my-app.token`, as `tickwright app token my-app --to my-app.token` writes
//! it.

use std::time::Duration;

use tickwright_executor::{Context, Declaration, Error, Executor, Job, job};

/// Every five minutes of a working day, by the clocks of Shanghai.
#[job("sync-orders", cron = "0 0/5 9-17 ? * MON-FRI", zone = "Asia/Shanghai", retries = 2)]
async fn sync_orders(ctx: Context) -> String {
    ctx.log("asking the shop for new orders");
    "synced".to_owned()
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    tracing_subscriber::fmt().init();
    let centre = std::env::args().nth(1).unwrap_or("http://127.0.0.1:8080".to_owned());
    // The same for a handler that is made at run time.
    let heartbeat = Job::new("heartbeat", |_: Context| async { "alive" })
        .declare(Declaration::fixed_rate(Duration::from_secs(10)).name("Say that we are alive"));
    let executor =
        Executor::builder("my-app").centre(centre).token_file("my-app.token").listen("127.0.0.1:0");
    executor.job(heartbeat).run().await
}
