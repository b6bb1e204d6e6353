//! The program of docs/guides/start.md: your first handler, called by the centre.

use tickwright_executor::{Context, Error, Executor, job};

#[job("greet")]
async fn greet(ctx: Context) -> String {
    ctx.log(format!("hello {} program", ctx.param()));
    "greeted".to_owned()
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    tracing_subscriber::fmt().init();
    let centre = std::env::args().nth(1).unwrap_or("http://127.0.0.1:8080".to_owned());
    Executor::builder("my-app").centre(centre).token_file("my-app.token").listen("127.0.0.1:0").run().await
}
