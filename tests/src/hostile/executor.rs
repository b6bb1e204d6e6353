//! An executor with endless responses and logs.

use std::io;
use std::net::SocketAddr;

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

use crate::process::http::Wire;

/// A hostile executor that listens until it is dropped.
pub struct Endless {
    address: SocketAddr,
    listening: JoinHandle<()>,
}

impl Endless {
    pub async fn start() -> io::Result<Endless> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        Ok(Endless { address, listening: tokio::spawn(listen(listener)) })
    }

    /// URL of the executor.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Endless {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

async fn listen(listener: TcpListener) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => if let Ok((stream, _)) = accepted {
                connections.spawn(serve(stream));
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve(stream: TcpStream) -> io::Result<()> {
    let mut wire = Wire::new(stream);
    while let Some(request) = wire.receive().await? {
        match request.path() {
            // Every other run is accepted, so that there are logs to read.
            "/run" | "/trigger" if fastrand::bool() => {
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {HUGE}\r\n\r\n");
                return forever(wire.stream, head.as_bytes(), b" ").await;
            }
            "/log" => {
                let head =
                    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\"code\":200,\"content\":{\
                             \"fromLineNum\":1,\"toLineNum\":2,\"isEnd\":false,\"logContent\":\"";
                return forever(wire.stream, head, b"x").await;
            }
            _ => wire.answer(r#"{"code":200,"msg":null,"content":null}"#).await?,
        }
    }
    Ok(())
}

/// Sends until the client closes the connection.
async fn forever(mut stream: TcpStream, begin: &[u8], rest: &[u8]) -> io::Result<()> {
    stream.write_all(begin).await?;
    let rest = rest.repeat(64 * 1024);
    loop {
        stream.write_all(&rest).await?;
    }
}

const HUGE: usize = 100 * 1024 * 1024;
