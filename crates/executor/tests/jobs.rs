//! Functions marked `#[job]` are found, and mistakes are reported with an explanation.

mod kit;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kit::{Centre, builder, call, trigger};
use protocol::xxl::Lineage;
use tickwright_executor::{Context, job, testing};

// As in a crate that renamed this one.
use tickwright_executor as executor;

static CONNECTIONS: AtomicUsize = AtomicUsize::new(0);

#[job("asynchronous", init = connect, destroy = elsewhere::disconnect)]
async fn asynchronous(ctx: Context) -> Result<String, std::fmt::Error> {
    executor::log!(ctx, "param {}", ctx.param());
    Ok(ctx.param().to_uppercase())
}

async fn connect() {
    CONNECTIONS.fetch_add(1, Ordering::SeqCst);
}

#[job("blocking")]
fn blocking() -> Result<(), String> {
    Err("not today".to_owned())
}

mod elsewhere {
    use super::executor;

    pub async fn disconnect() -> Result<(), String> {
        super::CONNECTIONS.fetch_sub(1, super::Ordering::SeqCst);
        Ok(())
    }

    #[executor::job("renamed", crate = "super::executor")]
    async fn renamed() -> &'static str {
        "renamed"
    }
}

#[tokio::test]
async fn marked_functions_are_handlers_without_a_list() {
    let centre = Centre::start(Lineage::L33).await;
    let directory = tempfile::tempdir().unwrap();
    let executor = builder(&centre, directory.path()).start().await.unwrap();
    for (run_id, handler, expected) in [
        (100, "asynchronous", (200, "HI")),
        (200, "blocking", (500, "not today")),
        (300, "renamed", (200, "renamed")),
    ] {
        call(executor.local_address(), "/run", &trigger(run_id, handler, "hi").to_string()).await;
        assert_eq!(centre.result(run_id).await, (expected.0, expected.1.to_owned()));
    }
    assert_eq!(CONNECTIONS.load(Ordering::SeqCst), 1);
    executor.stop(Duration::from_secs(20)).await;
    assert_eq!(CONNECTIONS.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn handlers_are_tested_without_an_executor() {
    let ended = testing::run(asynchronous, "hi").await;
    assert_eq!((ended.message(), ended.log.as_slice()), (Some("HI"), ["param hi".to_owned()].as_slice()));
    assert_eq!(testing::run_blocking(|_| blocking(), "").await.error(), Some("not today"));
    let sharded = testing::run(
        |ctx: Context| async move {
            ctx.progress(1, 3);
            ctx.progress(1, 3);
            ctx.progress(3, 3);
            format!("{} {:?} {:?}", ctx.shard(), ctx.attempt(), ctx.deadline().is_some())
        },
        testing::Args::new("").shard(1, 2).attempt(3).timeout(Duration::from_secs(5)),
    )
    .await;
    assert_eq!(sharded.message(), Some("1/2 Some(3) true"));
    assert_eq!(sharded.log, ["33 % done (1 of 3)", "100 % done (3 of 3)"]);
    let panicked = testing::run(
        |_| async {
            if true {
                panic!("at the disco")
            }
        },
        "",
    )
    .await;
    assert_eq!(panicked.error(), Some("the handler panicked: at the disco"));
    let cancelled = tickwright_executor::CancellationToken::new();
    cancelled.cancel();
    let stopped = testing::run(
        |ctx: Context| async move { ctx.cancellation().cancelled().await },
        testing::Args::new("").cancellation(cancelled),
    )
    .await;
    assert_eq!(stopped.error(), None);
}
