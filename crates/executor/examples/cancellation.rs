//! Long runs, and how they end when a user kills them or they time out.

use std::time::Duration;

use tickwright_executor::{Context, Error, Executor, job};

/// Async: nothing to do. The future is dropped at its next `.await`, which releases its resources.
#[job("poll")]
async fn poll(ctx: Context) {
    loop {
        ctx.log("still nothing");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// Blocking: check regularly whether the run was cancelled.
#[job("crunch")]
fn crunch(ctx: Context) -> Result<String, &'static str> {
    let mut sum = 0u64;
    for number in 0..10_000_000_000 {
        if number % 1_000_000 == 0 {
            ctx.progress(number, 10_000_000_000);
            if ctx.is_cancelled() {
                return Err("stopped halfway");
            }
        }
        sum = sum.wrapping_add(number * number);
    }
    Ok(sum.to_string())
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    tracing_subscriber::fmt().init();
    let centre = std::env::args().nth(1).unwrap_or("http://127.0.0.1:8080".to_owned());
    // On Ctrl-C, runs have ten seconds to finish.
    let executor = Executor::builder("long-app").centre(centre).listen("127.0.0.1:0");
    executor.drain(Duration::from_secs(10)).run().await
}
