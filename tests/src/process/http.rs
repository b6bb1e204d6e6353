//! Minimal HTTP/1.1 for executors, fast enough not to affect measurements.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// One side of a connection, with the bytes read but not yet consumed.
pub struct Wire {
    /// The connection itself, for sending raw bytes.
    pub stream: TcpStream,
    read: Vec<u8>,
}

/// A request or a response.
pub struct Message {
    /// `POST /run HTTP/1.1` or `HTTP/1.1 200 OK`, and the headers.
    head: String,
    /// The body.
    pub body: Vec<u8>,
}

impl Message {
    /// Path of a request.
    pub fn path(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }

    /// Status code of a response.
    pub fn status(&self) -> u16 {
        self.path().parse().unwrap_or(0)
    }

    /// Value of the first header with this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| value_of(line, name))
    }
}

impl Wire {
    /// Wraps a new connection.
    pub fn new(stream: TcpStream) -> Wire {
        // Only a performance setting.
        let _ = stream.set_nodelay(true);
        Wire { stream, read: Vec::with_capacity(2 * 1024) }
    }

    /// The next message; `None` if the peer has closed the connection.
    pub async fn receive(&mut self) -> io::Result<Option<Message>> {
        loop {
            if let Some(message) = self.take_message()? {
                return Ok(Some(message));
            }
            if self.stream.read_buf(&mut self.read).await? == 0 {
                return Ok(None);
            }
        }
    }

    fn take_message(&mut self) -> io::Result<Option<Message>> {
        let Some(head_end) = self.read.windows(4).position(|four| four == b"\r\n\r\n") else {
            return Ok(None);
        };
        let head = std::str::from_utf8(&self.read[..head_end]).map_err(io::Error::other)?;
        let length = head.lines().find_map(|line| value_of(line, "content-length"));
        let length = length.and_then(|length| length.parse().ok()).unwrap_or(0);
        let end = head_end + 4 + length;
        if self.read.len() < end {
            return Ok(None);
        }
        let head = head.to_owned();
        let body = self.read[head_end + 4..end].to_vec();
        self.read.drain(..end);
        Ok(Some(Message { head, body }))
    }

    /// Sends a response with a JSON body.
    pub async fn answer(&mut self, body: &str) -> io::Result<()> {
        self.stream.write_all(answer(body).as_bytes()).await
    }

    /// Posts JSON to a centre and waits for the response.
    pub async fn post(&mut self, path: &str, token: &str, body: &str) -> io::Result<Message> {
        let lines =
            format!("Content-Type: application/json;charset=UTF-8\r\nXXL-JOB-ACCESS-TOKEN: {token}\r\n");
        self.ask("POST", path, &lines, body).await
    }

    /// Posts a form, as a browser does.
    pub async fn post_form(&mut self, path: &str, cookie: &str, form: &str) -> io::Result<Message> {
        let lines = format!("Content-Type: application/x-www-form-urlencoded\r\nCookie: {cookie}\r\n");
        self.ask("POST", path, &lines, form).await
    }

    /// Sends a GET request.
    pub async fn get(&mut self, path: &str) -> io::Result<Message> {
        self.ask("GET", path, "", "").await
    }

    /// Sends a request with these header lines and waits for the response.
    pub async fn ask(&mut self, method: &str, path: &str, lines: &str, body: &str) -> io::Result<Message> {
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\n{lines}Content-Length: {length}\r\n\r\n{body}"
        );
        self.stream.write_all(request.as_bytes()).await?;
        self.receive().await?.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}

/// A complete response with this body.
pub fn answer(body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json;charset=UTF-8\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

fn value_of<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (found, value) = line.split_once(':')?;
    found.eq_ignore_ascii_case(name).then(|| value.trim())
}
