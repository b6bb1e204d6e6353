//! A program that does something else, and is an executor too: start it, go on, stop it at the end.

use std::time::Duration;

use tickwright_executor::{Context, Error, Executor, Job};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let greeting = String::from("hello");
    // Made here rather than marked, so that it can use what the program has.
    let greet = Job::new("greet", move |ctx: Context| {
        let greeting = greeting.clone();
        async move { format!("{greeting} {}", ctx.param()) }
    });
    let executor = Executor::builder("my-service").centre("http://127.0.0.1:8080").job(greet).start().await?;
    println!("the centre calls {}", executor.address());

    serve_customers().await;

    let left = executor.stop(Duration::from_secs(30)).await;
    println!("{} runs were stopped, {} results wait for the next start", left.killed, left.unreported);
    Ok(())
}

async fn serve_customers() {
    tokio::time::sleep(Duration::from_secs(60)).await;
}
