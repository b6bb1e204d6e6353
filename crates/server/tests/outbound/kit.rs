//! A scripted executor, and a client to call it.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use protocol::xxl::TriggerRequest;
use tickwright_server::outbound::{Address, Callee, Calls, Figures, Guard, Options, Outbound, Secret, Sent};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

/// Canary of all tests: it must not appear in any of our texts.
pub const TOKEN: &str = "canary-p2Vq0mXo5tYb";

/// Longer than every deadline under test.
pub const PATIENCE: Duration = Duration::from_secs(120);
/// Enough time to send a request.
pub const SOON: Duration = Duration::from_secs(5);

/// Listens, and runs its script for each connection; the script gets the number of the connection, from 1.
pub struct Scripted {
    pub at: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl Scripted {
    pub async fn start<F, P>(script: F) -> Scripted
    where
        F: Fn(usize, TcpStream) -> P + Send + 'static,
        P: Future<Output = ()> + Send + 'static,
    {
        Scripted::start_at("127.0.0.1:0".parse().unwrap(), script).await
    }

    pub async fn start_at<F, P>(at: SocketAddr, script: F) -> Scripted
    where
        F: Fn(usize, TcpStream) -> P + Send + 'static,
        P: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind(at).await.unwrap();
        let at = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&connections);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let number = counted.fetch_add(1, Ordering::SeqCst) + 1;
                tokio::spawn(script(number, stream));
            }
        });
        Scripted { at, connections }
    }

    /// Answers each request with the same bytes.
    pub async fn answering(reply: impl Into<Vec<u8>>) -> Scripted {
        let reply: Arc<[u8]> = reply.into().into();
        Scripted::start(move |_, mut stream| {
            let reply = Arc::clone(&reply);
            async move {
                while take(&mut stream).await.is_some() {
                    stream.write_all(&reply).await.unwrap();
                }
            }
        })
        .await
    }

    /// Returns this page of a log, and the other if the request is for a line that no log has.
    pub async fn logging(page: &str, beyond: &str) -> Scripted {
        let (page, beyond) = (reply(page), reply(beyond));
        Scripted::start(move |_, mut stream| {
            let (page, beyond) = (page.clone(), beyond.clone());
            async move {
                while let Some(asked) = take(&mut stream).await {
                    let is_beyond = asked.contains(r#""fromLineNum":1000000000"#);
                    let answer = if is_beyond { &beyond } else { &page };
                    stream.write_all(answer.as_bytes()).await.unwrap();
                }
            }
        })
        .await
    }

    /// Reads requests and never answers.
    pub async fn hanging() -> Scripted {
        Scripted::start(|_, mut stream| async move { while take(&mut stream).await.is_some() {} }).await
    }

    pub fn callee(&self) -> Callee {
        callee(&format!("http://{}/", self.at))
    }

    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// Reads one request, which must arrive in one piece: it is read at once or not at all.
pub async fn take(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = vec![0; 64 * 1024];
    let length = stream.read(&mut bytes).await.ok()?;
    bytes.truncate(length);
    (length > 0).then(|| String::from_utf8(bytes).unwrap())
}

/// A reply with a length.
pub fn reply(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

pub fn ok() -> String {
    reply(r#"{"code":200}"#)
}

pub fn callee(address: &str) -> Callee {
    let address = Address::parse(address).unwrap();
    Callee { address, app: "sample".to_owned(), token: Some(Secret::new(TOKEN)) }
}

/// Options for loopback with the shortest timeout.
pub fn options() -> Options {
    let guard = Guard { loopback: true, ..Guard::default() };
    Options { guard, timeout: Duration::from_secs(1), ..Options::default() }
}

pub fn outbound() -> Outbound {
    Outbound::new(options()).unwrap()
}

pub fn request(log_id: i64) -> TriggerRequest {
    TriggerRequest {
        job_id: 7,
        executor_handler: "demo".to_owned(),
        executor_block_strategy: "SERIAL_EXECUTION".to_owned(),
        log_id,
        log_date_time: 1_586_629_003_729,
        glue_type: "BEAN".to_owned(),
        broadcast_total: 1,
        ..TriggerRequest::default()
    }
}

pub async fn run(outbound: &Outbound, to: &Callee) -> Sent {
    run_within(outbound, to, SOON).await
}

pub async fn run_within(outbound: &Outbound, to: &Callee, within: Duration) -> Sent {
    let sent = timeout(PATIENCE, outbound.run(to, &request(1), 1, within)).await.expect("every call ends");
    assert!(!format!("{sent:?}").contains(TOKEN), "a token in {sent:?}");
    sent
}

/// Waits until the figures satisfy the condition.
pub async fn until(outbound: &Outbound, to: &Callee, is_so: impl Fn(Figures) -> bool) {
    let waiting = async {
        while !outbound.figures(&to.address).is_some_and(&is_so) {
            sleep(Duration::from_millis(5)).await;
        }
    };
    let figures = || outbound.figures(&to.address);
    timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("still {:?}", figures()));
}
