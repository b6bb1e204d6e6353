//! Benchmark: how many runs the server can send on one core, compared with a common client and a bare socket.
//!
//! The client has one thread, so the CPU time of that thread is the cost of the client. The executors are bare
//! sockets on threads of their own that answer at once; both share the machine.

use std::hint::black_box;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use protocol::xxl::{APP_HEADER, Answer, CONTENT_TYPE, TOKEN_HEADER, TriggerRequest};
use tickwright_server::outbound::{Address, Callee, Calls, Guard, Options, Outbound, Secret, Sent};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinSet, LocalSet};

const RUNS: usize = 100_000;
const REPEATS: usize = 3;
/// Concurrent calls to each executor.
const IN_FLIGHT: usize = 64;
const HERD: usize = 10_000;
const EXECUTORS: usize = 4;
const TOKEN: &str = "p2Vq0mXo5tYb";

fn main() {
    let executors: Vec<SocketAddr> = (0..EXECUTORS).map(|_| executor()).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    LocalSet::new().block_on(&runtime, async {
        let to = executors[0];
        // Alternating, so that a change in the machine's speed affects all.
        let mut figures = [Vec::new(), Vec::new(), Vec::new()];
        for _ in 0..REPEATS {
            figures[0].push(measure(ours(to)).await);
            figures[1].push(measure(hyper_util(to)).await);
            figures[2].push(measure(bare(to)).await);
        }
        let names = ["outbound", "hyper-util legacy client", "bare socket, nothing parsed"];
        for (name, mut figures) in names.into_iter().zip(figures) {
            figures.sort_by(|a, b| a.rate.total_cmp(&b.rate));
            show(&format!("{name}: rate"), figures[REPEATS / 2].rate, "POSTs/s");
            show(&format!("{name}: client CPU"), figures[REPEATS / 2].cpu_micros, "µs/POST");
        }
        herd(&executors).await;
    });
}

fn show(case: &str, value: f64, unit: &str) {
    println!("{case:<40} {value:>12.1} {unit}");
    println!(r#"{{"bench":"outbound","case":"{case}","value":{value:.1},"unit":"{unit}"}}"#);
}

struct Measured {
    rate: f64,
    cpu_micros: f64,
}

/// Runs as many callers as may be in flight.
async fn measure(callers: Callers) -> Measured {
    let (started, cpu) = (Instant::now(), thread_cpu());
    let tasks: Vec<_> = callers.into_iter().map(tokio::task::spawn_local).collect();
    for task in tasks {
        task.await.expect("a caller");
    }
    let runs = (RUNS / IN_FLIGHT * IN_FLIGHT) as f64;
    Measured {
        rate: runs / started.elapsed().as_secs_f64(),
        cpu_micros: (thread_cpu() - cpu).as_secs_f64() * 1e6 / runs,
    }
}

/// CPU time of this thread so far.
fn thread_cpu() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or_default();
    Duration::from_nanos(nanos)
}

type Callers = Vec<std::pin::Pin<Box<dyn Future<Output = ()>>>>;

fn callers<F: Future<Output = ()> + 'static>(one: impl Fn(usize) -> F) -> Callers {
    (0..IN_FLIGHT).map(|number| Box::pin(one(number)) as _).collect()
}

fn ours(to: SocketAddr) -> Callers {
    let outbound = outbound();
    let callee = Rc::new(callee(to));
    callers(move |_| {
        let (outbound, callee) = (outbound.clone(), Rc::clone(&callee));
        async move {
            for number in 0..RUNS / IN_FLIGHT {
                let sent = outbound.run(&callee, &request(number), 1, Duration::from_secs(5)).await;
                assert_eq!(sent, Sent::Accepted);
            }
        }
    })
}

fn outbound() -> Outbound {
    let guard = Guard { loopback: true, ..Guard::default() };
    Outbound::new(Options { guard, in_flight_max: IN_FLIGHT, ..Options::default() }).expect("options")
}

fn callee(to: SocketAddr) -> Callee {
    let address = Address::parse(&format!("http://{to}")).expect("an address");
    Callee { address, app: "bench".to_owned(), token: Some(Secret::new(TOKEN)) }
}

fn hyper_util(to: SocketAddr) -> Callers {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new()).build(connector);
    let uri: hyper::Uri = format!("http://{to}/run").parse().expect("an address");
    callers(move |_| {
        let (client, uri) = (client.clone(), uri.clone());
        async move {
            for number in 0..RUNS / IN_FLIGHT {
                let body = serde_json::to_vec(&request(number)).expect("a request");
                let request = Request::post(uri.clone())
                    .header("Content-Type", CONTENT_TYPE)
                    .header(TOKEN_HEADER, TOKEN)
                    .header(APP_HEADER, "bench")
                    .body(Full::from(body))
                    .expect("a request");
                let call = tokio::time::timeout(Duration::from_secs(5), client.request(request));
                let response = call.await.expect("in time").expect("an answer");
                let body = response.into_body().collect().await.expect("a body").to_bytes();
                assert!(Answer::read(&body).expect("an answer").is_ok());
            }
        }
    })
}

fn bare(to: SocketAddr) -> Callers {
    callers(move |_| async move {
        let mut stream = TcpStream::connect(to).await.expect("it listens");
        stream.set_nodelay(true).expect("a socket");
        let body = serde_json::to_string(&request(1)).expect("a request");
        let request = format!(
            "POST /run HTTP/1.1\r\nHost: {to}\r\nContent-Type: {CONTENT_TYPE}\r\n{TOKEN_HEADER}: {TOKEN}\r\n\
             {APP_HEADER}: bench\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut answer = [0; 1_024];
        for _ in 0..RUNS / IN_FLIGHT {
            stream.write_all(request.as_bytes()).await.expect("it listens");
            let length = stream.read(&mut answer).await.expect("an answer");
            assert!(black_box(length) > 0);
        }
    })
}

/// All at once, as if every job were due in the same second.
async fn herd(executors: &[SocketAddr]) {
    let outbound = outbound();
    let callees: Vec<Callee> = executors.iter().map(|at| callee(*at)).collect();
    for callee in &callees {
        outbound.warm(callee, IN_FLIGHT).await;
    }
    let started = Instant::now();
    let mut runs = JoinSet::new();
    for number in 0..HERD {
        let (outbound, callee) = (outbound.clone(), callees[number % callees.len()].clone());
        runs.spawn_local(async move {
            let sent = outbound.run(&callee, &request(number), 1, Duration::from_secs(5)).await;
            assert_eq!(sent, Sent::Accepted);
        });
    }
    while let Some(run) = runs.join_next().await {
        run.expect("a run");
    }
    show("10 000 at once, 4 executors: all taken", started.elapsed().as_secs_f64() * 1e3, "ms");
}

fn request(number: usize) -> TriggerRequest {
    TriggerRequest {
        job_id: number as i64,
        executor_handler: "nothing".to_owned(),
        executor_block_strategy: "SERIAL_EXECUTION".to_owned(),
        log_id: number as i64 + 1,
        log_date_time: 1_794_769_410_531,
        glue_type: "BEAN".to_owned(),
        broadcast_total: 1,
        ..TriggerRequest::default()
    }
}

/// An executor that answers at once, on a thread of its own.
fn executor() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let at = listener.local_addr().expect("it listens");
    listener.set_nonblocking(true).expect("a socket");
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async move {
            let listener = TcpListener::from_std(listener).expect("a listener");
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream));
            }
        });
    });
    at
}

/// A request ends with its body, which ends with the last of the twelve fields.
async fn answer(mut stream: TcpStream) {
    stream.set_nodelay(true).expect("a socket");
    let body = Answer::ok().to_json();
    let reply = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let mut request = [0; 4_096];
    let mut length = 0;
    while let Ok(read @ 1..) = stream.read(&mut request[length..]).await {
        length += read;
        if request[..length].ends_with(b"\"broadcastTotal\":1}") {
            length = 0;
            if stream.write_all(reply.as_bytes()).await.is_err() {
                return;
            }
        }
    }
}
