//! The smallest executor: one handler, one centre.
//!
//! Run: `cargo run -p tickwright-executor --example hello -- http://127.0.0.1:8080/xxl-job-admin default_token`.

use tickwright_executor::{Context, Error, Executor, job};

#[job("hello")]
async fn hello(ctx: Context) -> String {
    ctx.log("about to greet");
    format!("hello {}", ctx.param())
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    tracing_subscriber::fmt().init();
    let centre = std::env::args().nth(1).unwrap_or("http://127.0.0.1:8080".to_owned());
    let token = std::env::args().nth(2).unwrap_or_default();
    Executor::builder("hello-app").centre(centre).token(token).listen("127.0.0.1:0").run().await
}
