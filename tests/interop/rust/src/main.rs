//! An executor built on xxljob-sdk-rs.

use std::env::var;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use async_trait::async_trait;
use tokio::signal::unix::{SignalKind, signal};
use xxljob_sdk_rs::{AsyncJobHandler, JobContext, XxlClientBuilder};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let client = XxlClientBuilder::new(var("INTEROP_CENTRE")?)
        .set_access_token(var("INTEROP_TOKEN")?)
        .set_app_name(var("INTEROP_APP")?)
        .set_ip("127.0.0.1".into())
        .set_port(var("INTEROP_PORT")?.parse()?)
        .set_log_path("log".into())
        .build()?;
    for handler in [Handler::Ok, Handler::Fail, Handler::Slow, Handler::Shard] {
        client.register_async(Arc::new(handler.name().into()), Arc::new(handler))?;
    }
    // The client cannot deregister; its process simply ends.
    signal(SignalKind::terminate())?.recv().await;
    Ok(())
}

#[derive(Clone, Copy)]
enum Handler {
    Ok,
    Fail,
    Slow,
    Shard,
}

impl Handler {
    fn name(self) -> &'static str {
        match self {
            Handler::Ok => "ok",
            Handler::Fail => "fail",
            Handler::Slow => "slow",
            Handler::Shard => "shard",
        }
    }
}

#[async_trait]
impl AsyncJobHandler for Handler {
    async fn process(&self, context: JobContext) -> Result<JobContext> {
        let param = context.job_param.clone().unwrap_or_default();
        match self {
            Handler::Ok => {
                for line in 1..=3 {
                    println!("ok line {line}");
                }
                println!("ok with {param}");
            }
            Handler::Fail => bail!("deliberate failure"),
            Handler::Slow => {
                for second in 1..=param.parse()? {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    let second: u64 = second;
                    println!("slow second {second}");
                }
                println!("slow is done");
            }
            Handler::Shard => println!("shard {}/{}", context.shard_index, context.shard_total),
        }
        Ok(context)
    }
}
