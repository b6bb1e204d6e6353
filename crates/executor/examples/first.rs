//! The program of docs/guides/start.md: a handler of one's own, called by the centre.

use tickwright_executor::{Context, Executor, job};

#[job("greet")]
async fn greet(ctx: Context) -> String {
    ctx.log(format!("hello {} program", ctx.param()));
    "greeted".to_owned()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let centre = std::env::args().nth(1).unwrap_or("http://127.0.0.1:8080".to_owned());
    let token = std::fs::read_to_string("my-app.token")?;
    Ok(Executor::builder("my-app").centre(centre).token(token).listen("127.0.0.1:0").run().await?)
}
