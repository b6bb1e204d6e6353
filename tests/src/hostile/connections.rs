//! Connections that use more resources than their request needs.

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::answers::{Answers, status};

/// Opens connections of every kind, anonymous and with these credential headers; closed ones are opened again.
pub fn open(to: SocketAddr, credentials: &str, answers: &Answers, attackers: &mut JoinSet<()>) {
    for number in 0..HALF_OPEN {
        let word = if number % 2 == 0 { "" } else { "POST /api/call" };
        attackers.spawn(again(to, answers.clone(), move |stream| silent(stream, word)));
    }
    for _ in 0..DRIPPING {
        attackers.spawn(again(to, answers.clone(), |stream| drip(stream, String::new(), 1_000, 0)));
        // Most of a large body arrives immediately, so it has to be buffered; the rest arrives slowly.
        for lines in [String::new(), credentials.to_owned()] {
            let attack = move |stream| drip(stream, lines.clone(), LARGE + 1_000, LARGE);
            attackers.spawn(again(to, answers.clone(), attack));
        }
    }
    for _ in 0..ENDLESS {
        attackers.spawn(again(to, answers.clone(), endless_head));
        attackers.spawn(again(to, answers.clone(), endless_body));
    }
    attackers.spawn(lie(to, answers.clone()));
}

/// Opens a connection repeatedly, after a random pause.
async fn again<F: Future<Output = u16>>(to: SocketAddr, answers: Answers, attack: impl Fn(TcpStream) -> F) {
    loop {
        tokio::time::sleep(Duration::from_millis(fastrand::u64(..REOPEN_MS))).await;
        if let Ok(stream) = TcpStream::connect(to).await {
            answers.note(attack(stream).await, || "a connection that costs more than it asks".into());
        }
    }
}

/// Sends nothing, or half a request line, and waits.
async fn silent(mut stream: TcpStream, word: &str) -> u16 {
    let _ = stream.write_all(word.as_bytes()).await;
    status(&mut stream).await
}

/// Announces a body, sends the first part at once, and the rest byte by byte.
async fn drip(stream: TcpStream, lines: String, length: usize, at_once: usize) -> u16 {
    let (mut read, mut write) = stream.into_split();
    let head = format!(
        "POST /api/callback HTTP/1.1\r\nHost: localhost\r\n{lines}Content-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    let dripping = async {
        write.write_all(head.as_bytes()).await?;
        let chunk = vec![b' '; CHUNK];
        for _ in 0..at_once / CHUNK {
            write.write_all(&chunk).await?;
        }
        loop {
            tokio::time::sleep(DRIP).await;
            write.write_all(b" ").await?;
        }
    };
    let mut answer = [0; 12];
    tokio::select! {
        read = read.read_exact(&mut answer) => match read {
            Ok(_) => std::str::from_utf8(&answer[9..]).ok().and_then(|code| code.parse().ok()).unwrap_or(0),
            Err(_) => 0,
        },
        _ = async { let result: std::io::Result<()> = dripping.await; result } => 0,
    }
}

/// Sends headers without end.
async fn endless_head(mut stream: TcpStream) -> u16 {
    let _ = stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n").await;
    while stream.write_all(b"X-More: and more and more and more and more\r\n").await.is_ok() {
        tokio::task::yield_now().await;
    }
    status(&mut stream).await
}

/// Sends chunks without end.
async fn endless_body(mut stream: TcpStream) -> u16 {
    let _ = stream
        .write_all(b"POST /jobinfo/insert HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        .await;
    let chunk = [format!("{CHUNK:x}\r\n").into_bytes(), vec![b'x'; CHUNK], b"\r\n".to_vec()].concat();
    while stream.write_all(&chunk).await.is_ok() {
        tokio::task::yield_now().await;
    }
    status(&mut stream).await
}

/// Invalid requests, and requests with a wrong length.
async fn lie(to: SocketAddr, answers: Answers) {
    let post = |head: &str, body: &str| {
        format!("POST /api/callback HTTP/1.1\r\nHost: localhost\r\n{head}\r\n{body}")
    };
    let lies = [
        "GARBAGE\r\n\r\n".to_owned(),
        "\u{16}\u{3}\u{1}\u{2}\r\n\r\n".to_owned(),
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\nBad Header: 1\r\n\r\n".to_owned(),
        format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "a".repeat(100_000)),
        post("Content-Length: -1\r\n", "{}"),
        post("Content-Length: 99999999999999999999\r\n", "{}"),
        post("Content-Length: 5000000000\r\n", "{}"),
        post("Content-Length: 2\r\nContent-Length: 3\r\n", "{}"),
        post("Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
        post("Transfer-Encoding: chunked\r\n", "zz\r\n{}\r\n0\r\n\r\n"),
        post("Transfer-Encoding: chunked\r\n", "ffffffffffffffff\r\n{}"),
        post("Content-Length: 2\r\n", "{}GARBAGE GARBAGE\r\n\r\n"),
    ];
    loop {
        for lie in &lies {
            answers.send(to, lie.as_bytes()).await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Connections that send nothing, or half a request line.
const HALF_OPEN: usize = 2_000;

/// Slow bodies of each kind. Buffered completely, they would exceed the memory limit.
const DRIPPING: usize = 80;

const LARGE: usize = 64 * CHUNK;
const CHUNK: usize = 64 * 1024;
const DRIP: Duration = Duration::from_millis(200);

/// Endless heads and endless bodies, of each.
const ENDLESS: usize = 4;

/// Longest pause before a connection is opened again, in milliseconds.
const REOPEN_MS: u64 = 1_500;
