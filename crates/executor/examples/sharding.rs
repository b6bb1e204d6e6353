//! Several executors of one app share the work: with the route strategy "sharding broadcast", each run gets a
//! shard. Here two executors run in one program; usually each is a process on its own machine.

use std::convert::Infallible;

use tickwright_executor::{Context, Error, Executor, job};

#[job("bill-customers")]
async fn bill_customers(ctx: Context) -> Result<String, Infallible> {
    let mine: Vec<u64> = (0..1_000).filter(|customer| ctx.shard().owns(*customer)).collect();
    for (done, customer) in mine.iter().enumerate() {
        tickwright_executor::log!(ctx, "billing customer {customer}");
        ctx.progress(done as u64 + 1, mine.len() as u64);
    }
    Ok(format!("billed {} customers, shard {}", mine.len(), ctx.shard()))
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    tracing_subscriber::fmt().init();
    let centre = std::env::args().nth(1).unwrap_or("http://127.0.0.1:8080".to_owned());
    let executor = |directory: &str| {
        Executor::builder("billing-app").centre(&centre).listen("127.0.0.1:0").directory(directory)
    };
    let (first, second) = tokio::join!(executor("executor-1").run(), executor("executor-2").run());
    first.and(second)
}
