//! Parses the job's JSON parameter into a type. If that fails, the run fails with an error that explains why.
//!
//! In the centre, give the job the parameter `{"bucket": "invoices", "older_than_days": 30}`.

use serde::Deserialize;
use tickwright_executor::{Context, Error, Executor, ParamError, job};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cleanup {
    bucket: String,
    older_than_days: u32,
}

#[job("cleanup")]
async fn cleanup(ctx: Context) -> Result<String, ParamError> {
    let Cleanup { bucket, older_than_days } = ctx.param_as()?;
    tickwright_executor::log!(ctx, "deleting what is older than {older_than_days} days from {bucket}");
    Ok(format!("{bucket} is clean"))
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    tracing_subscriber::fmt().init();
    let centre = std::env::args().nth(1).unwrap_or("http://127.0.0.1:8080".to_owned());
    Executor::builder("cleanup-app").centre(centre).listen("127.0.0.1:0").run().await
}
