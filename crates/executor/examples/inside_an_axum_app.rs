//! A web application that is also an executor: one process, shared state, stopped together.
//!
//! Run: `cargo run -p tickwright-executor --example inside_an_axum_app -- http://127.0.0.1:8080`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use tickwright_executor::{Context, Executor, Job, RunLogLayer};
use tracing_subscriber::prelude::*;

/// State shown by pages and changed by jobs.
#[derive(Default)]
struct Shop {
    restocked: AtomicU64,
}

async fn front_page(State(shop): State<Arc<Shop>>) -> String {
    format!("restocked {} times\n", shop.restocked.load(Ordering::Relaxed))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Also copies `tracing` events of handlers to the logs of their runs.
    tracing_subscriber::registry().with(tracing_subscriber::fmt::layer()).with(RunLogLayer).init();
    let centre = std::env::args().nth(1).unwrap_or("http://127.0.0.1:8080".to_owned());
    let shop = Arc::new(Shop::default());
    // Created here instead of marked with `#[job]`, so that it can use the application's state.
    let restock = {
        let shop = Arc::clone(&shop);
        Job::new("restock", move |ctx: Context| {
            let shop = Arc::clone(&shop);
            async move {
                tracing::info!(goods = ctx.param(), "ordering");
                format!("restocked {} times", shop.restocked.fetch_add(1, Ordering::Relaxed) + 1)
            }
        })
    };
    let executor =
        Executor::builder("shop").centre(centre).listen("127.0.0.1:0").job(restock).start().await?;
    println!("the centre calls {}", executor.address());

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("customers come to http://{}/", listener.local_addr()?);
    let pages = Router::new().route("/", get(front_page)).with_state(shop);
    axum::serve(listener, pages).with_graceful_shutdown(told_to_end()).await?;

    // The web server has stopped; now wait for the runs.
    let left = executor.stop(Duration::from_secs(30)).await;
    println!("{} runs were stopped, {} results wait for the next start", left.killed, left.unreported);
    Ok(())
}

async fn told_to_end() {
    // Without a handler for it, Ctrl-C ends the process anyway.
    let _ = tokio::signal::ctrl_c().await;
}
