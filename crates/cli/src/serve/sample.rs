//! Built-in sample executor: its handler prints a greeting, so that users see a first run within a minute.

use std::net::SocketAddr;
use std::path::Path;

use executor::{Context, Executor, Job};
use server::{Centre, SAMPLE_APP, SAMPLE_HANDLER};

/// Starts it; none if the sample app does not exist, because users may delete it.
pub async fn start(
    centre: &Centre,
    address: SocketAddr,
    data_dir: &Path,
) -> anyhow::Result<Option<Executor>> {
    let Some(token) = centre.token_of(SAMPLE_APP) else { return Ok(None) };
    let executor = Executor::builder(SAMPLE_APP)
        .centre(format!("http://{address}"))
        .token(token.value())
        .listen("127.0.0.1:0")
        .directory(data_dir.join("sample-executor"))
        .job(Job::new(SAMPLE_HANDLER, greet))
        .start()
        .await?;
    Ok(Some(executor))
}

async fn greet(ctx: Context) -> String {
    let greeting = format!("hello, {}", ctx.param());
    ctx.log(&greeting);
    ctx.log("this line is in the log of the run; change the parameter of the job to greet another name");
    greeting
}
