//! Responses to attackers.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Count of each status; 0 for a connection closed without a response. Clones share the counts.
#[derive(Clone, Default)]
pub struct Answers(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    by_status: BTreeMap<u16, u64>,
    failures: Vec<String>,
}

impl Answers {
    /// Sends bytes on a new connection and counts the status of the response.
    pub async fn send(&self, to: SocketAddr, bytes: &[u8]) {
        let status = tokio::time::timeout(PATIENCE, exchange(to, bytes)).await.unwrap_or(0);
        self.note(status, || String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN)]).into_owned());
    }

    /// Counts the status of a response.
    pub fn note(&self, status: u16, to: impl FnOnce() -> String) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *seen.by_status.entry(status).or_default() += 1;
        if status >= 500 && seen.failures.len() < FAILURES_MAX {
            seen.failures.push(format!("{status} to {:?}", to()));
        }
    }

    /// Responses that indicate a failure of the centre.
    pub fn failures(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).failures.clone()
    }
}

impl fmt::Display for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        write!(f, "answers")?;
        seen.by_status.iter().try_for_each(|(status, count)| write!(f, " {status}×{count}"))
    }
}

/// Sends bytes and reads only the status.
async fn exchange(to: SocketAddr, bytes: &[u8]) -> u16 {
    let Ok(mut stream) = TcpStream::connect(to).await else { return 0 };
    // A server may close the connection before everything is sent; its response is still read.
    let _ = stream.write_all(bytes).await;
    status(&mut stream).await
}

/// Status of the next response; 0 if there is none.
pub async fn status(stream: &mut TcpStream) -> u16 {
    let mut head = [0; 12];
    match stream.read_exact(&mut head).await {
        Ok(_) => std::str::from_utf8(&head[9..]).ok().and_then(|code| code.parse().ok()).unwrap_or(0),
        Err(_) => 0,
    }
}

/// Longer than any timeout of the centre.
const PATIENCE: Duration = Duration::from_secs(40);

const SHOWN: usize = 120;
const FAILURES_MAX: usize = 10;
