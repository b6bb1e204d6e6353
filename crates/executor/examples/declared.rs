//! Declared jobs: the centre creates them without a user adding them. If you edit one in the console and restart
//! this program, your edit is kept.
//!
//! ```sh
//! cargo run --example declared -- http://127.0.0.1:8080
//! ```
//!
//! The token of the app `my-app` is read from `my-app.token`, written by
//! `tickwright app token my-app --to my-app.token`.

use std::time::Duration;

use tickwright_executor::{Context, Declaration, Error, Executor, Job, job};

/// Every five minutes during working hours, Shanghai time.
#[job("sync-orders", cron = "0 0/5 9-17 ? * MON-FRI", zone = "Asia/Shanghai", retries = 2)]
async fn sync_orders(ctx: Context) -> String {
    ctx.log("asking the shop for new orders");
    "synced".to_owned()
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    tracing_subscriber::fmt().init();
    let centre = std::env::args().nth(1).unwrap_or("http://127.0.0.1:8080".to_owned());
    // The same for a handler created at run time.
    let heartbeat = Job::new("heartbeat", |_: Context| async { "alive" })
        .declare(Declaration::fixed_rate(Duration::from_secs(10)).name("Say that we are alive"));
    let executor =
        Executor::builder("my-app").centre(centre).token_file("my-app.token").listen("127.0.0.1:0");
    executor.job(heartbeat).run().await
}
