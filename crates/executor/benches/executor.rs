//! Throughput of one executor that accepts, executes and reports runs over local TCP, with everything synced to
//! disk as promised; and its memory when idle.
//!
//! The executor is a separate process. The centre and the callers run on the same machine.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use protocol::xxl::{Answer, TOKEN_HEADER, TriggerRequest};
use tickwright_executor::{Executor, Job};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const TOKEN: &str = "p2Vq0mXo5tYb";
const CONNECTIONS: usize = 256;
const RUNS: usize = 100_000;
const REPEATS: usize = 3;

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    if arguments.next().as_deref() == Some("executor") {
        let (centre, directory) =
            (arguments.next().expect("a centre"), arguments.next().expect("a directory"));
        return run_executor(centre, Path::new(&directory));
    }
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(measure());
}

async fn measure() {
    let centre = Centre::start().await;
    let directory = tempfile::tempdir().expect("a directory");
    let mut child = start(&centre, directory.path());
    let to = wait_for_address(directory.path()).await;
    centre.until(|centre| centre.registered.load(Ordering::SeqCst) > 0).await;
    show("memory when idle", resident_mib(&child), "MiB", "at most 15");

    let mut rates = Vec::new();
    let mut latencies = Vec::new();
    for repeat in 0..REPEATS {
        let started = Instant::now();
        latencies.extend(offer(to, repeat * RUNS).await);
        centre.until(|centre| centre.reported.load(Ordering::SeqCst) >= (repeat + 1) * RUNS).await;
        rates.push(RUNS as f64 / started.elapsed().as_secs_f64());
    }
    rates.sort_by(f64::total_cmp);
    latencies.sort();
    let percentile = |part: f64| latencies[(latencies.len() as f64 * part) as usize].as_secs_f64() * 1e3;
    show("runs taken, done and reported", rates[REPEATS / 2], "runs/s", "at least 15,000");
    show("answer to a trigger, median", percentile(0.5), "ms", "256 at once, each on disk");
    show("answer to a trigger, 99 %", percentile(0.99), "ms", "256 at once, each on disk");
    show("memory after 300,000 runs", resident_mib(&child), "MiB", "remembers their ids");
    let extra = centre.reported.load(Ordering::SeqCst) - REPEATS * RUNS;
    show("runs reported twice", extra as f64, "runs", "none");
    child.kill().expect("it runs");
    child.wait().expect("it was killed");
}

fn show(case: &str, value: f64, unit: &str, bar: &str) {
    println!("{case:<32} {value:>12.1} {unit:<8} ({bar})");
    println!(r#"{{"bench":"executor","case":"{case}","value":{value:.1},"unit":"{unit}"}}"#);
}

/// Sends runs over all connections, one at a time per connection; returns the latency of each response.
async fn offer(to: SocketAddr, first: usize) -> Vec<Duration> {
    let next = Arc::new(AtomicUsize::new(first));
    let callers: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let next = Arc::clone(&next);
            tokio::spawn(async move {
                let mut stream = TcpStream::connect(to).await.expect("it listens");
                stream.set_nodelay(true).expect("a socket");
                let mut latencies = Vec::new();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= first + RUNS {
                        return latencies;
                    }
                    let asked = Instant::now();
                    ask(&mut stream, number as i64 + 1).await;
                    latencies.push(asked.elapsed());
                }
            })
        })
        .collect();
    let mut latencies = Vec::with_capacity(RUNS);
    for caller in callers {
        latencies.extend(caller.await.expect("a caller"));
    }
    latencies
}

async fn ask(stream: &mut TcpStream, run_id: i64) {
    let request = TriggerRequest {
        job_id: run_id % 1_000,
        executor_handler: "nothing".to_owned(),
        log_id: run_id,
        log_date_time: 1_794_769_410_531,
        glue_type: "BEAN".to_owned(),
        broadcast_total: 1,
        ..TriggerRequest::default()
    };
    let body = serde_json::to_string(&request).expect("a request");
    let request = format!(
        "POST /run HTTP/1.1\r\nHost: x\r\n{TOKEN_HEADER}: {TOKEN}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.expect("it listens");
    let mut answer = [0; 1_024];
    let mut length = 0;
    // The response is one object without a nested one.
    while !answer[..length].ends_with(b"}") {
        let read = stream.read(&mut answer[length..]).await.expect("an answer");
        assert!(read > 0, "the executor hung up");
        length += read;
    }
    let answer = String::from_utf8_lossy(&answer[..length]);
    assert!(answer.contains(r#"{"code":200,"#), "{answer}");
}

/// A centre that only counts calls.
#[derive(Default)]
struct Centre {
    address: Option<SocketAddr>,
    registered: AtomicUsize,
    reported: AtomicUsize,
}

impl Centre {
    async fn start() -> Arc<Centre> {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let centre = Arc::new(Centre { address: listener.local_addr().ok(), ..Centre::default() });
        let serving = Arc::clone(&centre);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).expect("a socket");
                let centre = Arc::clone(&serving);
                let service = service_fn(move |request| Arc::clone(&centre).answer(request));
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        centre
    }

    async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, Infallible> {
        let (head, body) = request.into_parts();
        let body = body.collect().await.expect("a body").to_bytes();
        if head.uri.path().ends_with("/callback") {
            let results = std::str::from_utf8(&body).expect("text").matches("\"logId\":").count();
            self.reported.fetch_add(results, Ordering::SeqCst);
        } else {
            self.registered.fetch_add(1, Ordering::SeqCst);
        }
        Ok(Response::new(Full::from(Answer::ok().to_json())))
    }

    async fn until(&self, holds: impl Fn(&Centre) -> bool) {
        while !holds(self) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

fn start(centre: &Centre, directory: &Path) -> Child {
    let address = centre.address.expect("it listens");
    Command::new(std::env::current_exe().expect("this program"))
        .args(["executor", &format!("http://{address}")])
        .arg(directory)
        .stdin(Stdio::null())
        .spawn()
        .expect("this program runs")
}

async fn wait_for_address(directory: &Path) -> SocketAddr {
    loop {
        let text = std::fs::read_to_string(directory.join("address")).unwrap_or_default();
        if let Ok(address) = text.parse() {
            return address;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Resident memory of the executor's process.
fn resident_mib(child: &Child) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|kib| kib.parse::<f64>().ok()).unwrap_or(f64::NAN) / 1_024.0
}

fn run_executor(centre: String, directory: &Path) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let builder = Executor::builder("app").centre(centre).token(TOKEN).listen("127.0.0.1:0");
        let nothing = Job::new("nothing", |_| async {});
        let executor =
            builder.directory(directory.join("executor")).job(nothing).start().await.expect("it starts");
        std::fs::write(directory.join("address"), executor.local_address().to_string()).expect("a disk");
        std::future::pending::<()>().await;
    });
}
