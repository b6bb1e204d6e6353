//! Executors go away and come back, at one of several nodes, and with the token they have.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use engine::policy::{Delivery, Route};
use engine::{AppId, JobSpec, RunState, Store as _};
use store::Registry as _;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::kit::{Bench, echo, until};

fn registration(address: &str) -> String {
    format!(r#"{{"registryGroup":"EXECUTOR","registryKey":"tickwright-sample","registryValue":"{address}"}}"#)
}

/// An executor that accepts every run with the right token, and reports nothing.
struct Taker {
    address: String,
    taken: Arc<AtomicUsize>,
    listening: JoinHandle<()>,
}

impl Taker {
    async fn start(at: SocketAddr, token: &str) -> Taker {
        let listener = TcpListener::bind(at).await.unwrap();
        let address = format!("http://{}/", listener.local_addr().unwrap());
        let (taken, token) = (Arc::new(AtomicUsize::new(0)), token.to_ascii_lowercase());
        let counted = taken.clone();
        let listening = tokio::spawn(async move {
            loop {
                let Ok((mut stream, _)) = listener.accept().await else { return };
                let (taken, token) = (counted.clone(), token.clone());
                tokio::spawn(async move {
                    let mut request = Vec::new();
                    let mut part = [0; 4096];
                    while let Ok(read) = stream.read(&mut part).await {
                        request.extend_from_slice(&part[..read]);
                        let text = String::from_utf8_lossy(&request).to_ascii_lowercase();
                        let Some((head, body)) = text.split_once("\r\n\r\n") else {
                            if read == 0 {
                                return;
                            } else {
                                continue;
                            };
                        };
                        let length = head.split("content-length:").nth(1).and_then(|rest| {
                            rest.lines().next().and_then(|number| number.trim().parse::<usize>().ok())
                        });
                        if body.len() < length.unwrap_or(0) {
                            if read == 0 {
                                return;
                            } else {
                                continue;
                            };
                        }
                        let is_right = head.contains(&format!("xxl-job-access-token: {token}"));
                        let answer =
                            if is_right { r#"{"code":200}"# } else { r#"{"code":500,"msg":"wrong token"}"# };
                        if is_right && (head.starts_with("post /run") || head.starts_with("post /trigger")) {
                            taken.fetch_add(1, Ordering::SeqCst);
                        }
                        let length = answer.len();
                        let reply = format!(
                            "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{answer}"
                        );
                        let _ = stream.write_all(reply.as_bytes()).await;
                        return;
                    }
                });
            }
        });
        Taker { address, taken, listening }
    }

    fn taken(&self) -> usize {
        self.taken.load(Ordering::SeqCst)
    }
}

impl Drop for Taker {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

/// An address without a listener, for now.
fn nobody_at() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

#[tokio::test]
async fn a_herd_is_taken_by_an_executor_that_was_away() {
    let bench = Bench::start().await;
    let at = nobody_at();
    let address = format!("http://{at}/");
    bench.post("/api/registry", Some(&bench.token), &registration(&address)).await;
    // It is down long enough for its breaker to open.
    let job = bench.job("down", |_| {}).await;
    for key in 1..=8 {
        bench.engine.trigger(job, key, None).await.unwrap();
    }
    until("it is known to be away", async || {
        let seen = bench.directory.sightings(AppId(1));
        seen.iter().any(|seen| seen.suspect_since.is_some()).then_some(())
    })
    .await;
    let executor = Taker::start(at, &bench.token).await;
    until("it answers again", async || {
        let seen = bench.directory.sightings(AppId(1));
        seen.iter().all(|seen| seen.suspect_since.is_none()).then_some(())
    })
    .await;
    let before = executor.taken();
    let herd = bench.job("herd", |_| {}).await;
    for key in 1..=60 {
        bench.engine.trigger(herd, key, None).await.unwrap();
    }
    until("the whole herd is taken", async || (executor.taken() >= before + 60).then_some(())).await;
    let runs = bench.database.runs(herd, None, 100).await.unwrap();
    assert!(runs.iter().all(|run| run.state != RunState::Failed), "{runs:?}");
    bench.stop().await;
}

#[tokio::test]
async fn a_run_that_must_arrive_waits_for_its_executor_behind_the_breaker() {
    let bench = Bench::start().await;
    let at = nobody_at();
    bench.post("/api/registry", Some(&bench.token), &registration(&format!("http://{at}/"))).await;
    // Five of them reach no executor, and fail; the breaker then holds back the others.
    let job = bench.job("must arrive", |spec: &mut JobSpec| spec.delivery = Delivery::AtLeastOnce).await;
    for key in 1..=12 {
        bench.engine.trigger(job, key, None).await.unwrap();
    }
    let failed = async || {
        let runs = bench.database.runs(job, None, 100).await.unwrap();
        runs.iter().filter(|run| run.state == RunState::Failed).count()
    };
    until("the breaker is open", async || (failed().await >= 5).then_some(())).await;
    let executor = Taker::start(at, &bench.token).await;
    until("all the others are taken", async || {
        (executor.taken() + failed().await == 12 && executor.taken() > 0).then_some(())
    })
    .await;
    let runs = bench.database.runs(job, None, 100).await.unwrap();
    let kept_back =
        |text: &str| text.contains("the next call follows shortly") && !text.contains("failed to connect");
    assert!(!runs.iter().filter_map(|run| run.message.as_deref()).any(kept_back), "{runs:?}");
    bench.stop().await;
}

#[tokio::test]
async fn an_executor_keeps_working_with_the_token_it_registered_with() {
    let bench = Bench::start().await;
    let old = Taker::start("127.0.0.1:0".parse().unwrap(), &bench.token).await;
    bench.post("/api/registry", Some(&bench.token), &registration(&old.address)).await;
    let second = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    bench.add_token(second).await;
    let answer = |text: String| assert!(text.contains(r#""code":200"#), "{text}");
    until("the second token counts", async || {
        let here = registration(&old.address);
        bench.post("/api/registryRemove", Some(second), &here).await.contains(r#""code":200"#).then_some(())
    })
    .await;
    // It continues with its own token; a new executor uses the second.
    answer(bench.post("/api/registry", Some(&bench.token), &registration(&old.address)).await);
    let new = Taker::start("127.0.0.1:0".parse().unwrap(), second).await;
    answer(bench.post("/api/registry", Some(second), &registration(&new.address)).await);
    let job = bench.job("both", |spec| spec.route = Route::Broadcast.into()).await;
    bench.engine.trigger(job, 1, None).await.unwrap();
    until("both have taken their part", async || ((old.taken(), new.taken()) == (1, 1)).then_some(())).await;
    // It gets the second token, and shows that by registering with it.
    let again = Taker::start("127.0.0.1:0".parse().unwrap(), second).await;
    answer(bench.post("/api/registry", Some(&bench.token), &registration(&again.address)).await);
    answer(bench.post("/api/registry", Some(second), &registration(&again.address)).await);
    bench.engine.trigger(job, 2, None).await.unwrap();
    until("all have taken their part", async || {
        ((old.taken(), new.taken(), again.taken()) == (2, 2, 1)).then_some(())
    })
    .await;
    bench.stop().await;
}

#[tokio::test]
async fn a_run_keeps_its_address_when_its_result_is_first() {
    let bench = Bench::start().await;
    let executor = bench.executor(vec![echo()]).await;
    for route in [Route::Failover, Route::FirstIdle] {
        let job = bench.job("echo", |spec| spec.route = route.into()).await;
        for round in 0..20 {
            let runs = bench.run(job, None).await;
            assert_eq!(runs.len(), round + 1);
        }
        until("every run has its address", async || {
            let runs = bench.database.runs(job, None, 100).await.unwrap();
            runs.iter().all(|run| run.address.as_deref() == Some(executor.address())).then_some(())
        })
        .await;
    }
    bench.stop().await;
}

#[tokio::test]
async fn an_executor_that_registers_at_one_node_is_known_to_the_other() {
    let bench = Bench::start_with(|settings| settings.database.push_str("?shared=true")).await;
    let other = bench.beside("another").await;
    let executor = Taker::start("127.0.0.1:0".parse().unwrap(), &bench.token).await;
    // It was registered so long ago that no node counts it, and its row has not been deleted yet.
    let file = rusqlite::Connection::open(bench.folder.join("centre.db")).unwrap();
    // Two nodes write all the time, and SQLite has no queue of writers.
    file.busy_timeout(std::time::Duration::from_secs(60)).unwrap();
    let sql = "INSERT INTO xxl_job_registry (registry_group, registry_key, registry_value, update_time) \
               VALUES ('EXECUTOR', 'tickwright-sample', ?, datetime('now', '-100 seconds'))";
    file.execute(sql, [&executor.address]).unwrap();
    let before = bench.database.registry_revision().await.unwrap();
    bench.post("/api/registry", Some(&bench.token), &registration(&executor.address)).await;
    assert!(bench.database.registry_revision().await.unwrap() > before, "it is news for the other nodes");
    until("the other node knows it", async || other.sees(&executor.address).then_some(())).await;
    let job = other.job("by hand", |_| {}).await;
    other.engine.trigger(job, 1, None).await.unwrap();
    until("a run of the other node arrives", async || (executor.taken() > 0).then_some(())).await;
    other.leave().await;
    bench.stop().await;
}
