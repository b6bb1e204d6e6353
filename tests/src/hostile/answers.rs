//! What attackers are answered.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// How often each status was seen; 0 for a connection that was closed without a word. Clones are the same.
#[derive(Clone, Default)]
pub struct Answers(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    by_status: BTreeMap<u16, u64>,
    failures: Vec<String>,
}

impl Answers {
    /// Sends bytes on a connection of their own, and notes the status of the answer.
    pub async fn send(&self, to: SocketAddr, bytes: &[u8]) {
        let status = tokio::time::timeout(PATIENCE, exchange(to, bytes)).await.unwrap_or(0);
        self.note(status, || String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN)]).into_owned());
    }

    /// Notes the status of an answer to something.
    pub fn note(&self, status: u16, to: impl FnOnce() -> String) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *seen.by_status.entry(status).or_default() += 1;
        if status >= 500 && seen.failures.len() < FAILURES_MAX {
            seen.failures.push(format!("{status} to {:?}", to()));
        }
    }

    /// Answers that say that the centre failed.
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

/// Sends, and reads no more than the status.
async fn exchange(to: SocketAddr, bytes: &[u8]) -> u16 {
    let Ok(mut stream) = TcpStream::connect(to).await else { return 0 };
    // Who refuses may close before all is sent, and has said why.
    let _ = stream.write_all(bytes).await;
    status(&mut stream).await
}

/// The status of the answer that comes next; 0 if none does.
pub async fn status(stream: &mut TcpStream) -> u16 {
    let mut head = [0; 12];
    match stream.read_exact(&mut head).await {
        Ok(_) => std::str::from_utf8(&head[9..]).ok().and_then(|code| code.parse().ok()).unwrap_or(0),
        Err(_) => 0,
    }
}

/// Longer than any bound of the centre's.
const PATIENCE: Duration = Duration::from_secs(40);

const SHOWN: usize = 120;
const FAILURES_MAX: usize = 10;
