//! One connection to an executor. Each request is sent in one piece and gets one reply.

use std::future::poll_fn;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::client::TlsStream;

use super::Callee;
use super::reply::{self, Limit, Reply, ReplyError};
use super::request::{Ask, Unsendable};
use crate::share::Share;

pub(super) struct Connection {
    stream: Stream,
    /// Buffers for requests and replies, reused across calls.
    body: Vec<u8>,
    output: Vec<u8>,
    input: Vec<u8>,
    /// Time of the last use, or of opening.
    idle_since: Instant,
    /// Generation of the address when it was opened; a connection opened before a `forget` is not reused after it.
    pub(super) generation: u64,
    /// Whether it has been idle in the pool, so the peer may have closed it meanwhile.
    has_waited: bool,
    /// Counts this connection against the limit of open connections until it is dropped.
    _slot: Share<String>,
}

impl Connection {
    pub(super) fn new(stream: Stream, generation: u64, slot: Share<String>) -> Connection {
        Connection {
            stream,
            body: Vec::new(),
            output: Vec::new(),
            input: Vec::new(),
            idle_since: Instant::now(),
            generation,
            has_waited: false,
            _slot: slot,
        }
    }

    /// Marks it as idle until the next call.
    pub(super) fn rest(&mut self) {
        self.idle_since = Instant::now();
        self.has_waited = true;
        // One large request or log page must not stay in memory for as long as the executor is in use.
        for buffer in [&mut self.body, &mut self.output, &mut self.input] {
            buffer.clear();
            if buffer.capacity() > BUFFER_KEPT_MAX {
                *buffer = Vec::new();
            }
        }
    }

    pub(super) fn has_waited(&self) -> bool {
        self.has_waited
    }

    /// Returns whether it has been idle too long to be reused.
    pub(super) fn is_stale(&self, now: Instant) -> bool {
        now.duration_since(self.idle_since) >= IDLE_MAX
    }

    /// Returns whether the connection is still open, as far as the kernel knows. Anything readable on an idle
    /// connection is a close or unsolicited data.
    pub(super) fn is_quiet(&mut self) -> bool {
        // TLS data may already have left the kernel and still wait to be read.
        if let Stream::Tls(tls) = &mut self.stream
            && !tls.get_mut().1.process_new_packets().is_ok_and(|state| state.plaintext_bytes_to_read() == 0)
        {
            return false;
        }
        let mut byte = [MaybeUninit::uninit(); 1];
        let peeked = SockRef::from(self.stream.tcp()).peek(&mut byte);
        matches!(peeked, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Sends the request: the kernel has all of it by `send_by`, or the executor never sees a complete one.
    pub(super) async fn send(
        &mut self,
        to: &Callee,
        ask: &Ask<'_>,
        send_by: Instant,
    ) -> Result<Sending, SendError> {
        ask.write(to, &mut self.body, &mut self.output)?;
        if Instant::now() >= send_by {
            return Err(SendError::Nothing(io::ErrorKind::TimedOut.into()));
        }
        let Connection { stream, output, input, .. } = self;
        input.clear();
        let mut written = 0;
        let sending = poll_fn(|cx| poll_send(stream, output, &mut written, input, cx));
        let sent = timeout_at(send_by, sending).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        sent.map_err(|error| match stream {
            Stream::Plain(_) if written == 0 => SendError::Nothing(error),
            // TLS sends records of its own; some of them may have left.
            _ => SendError::Part(error),
        })
    }

    /// Waits for the reply, at most `patience` in total.
    pub(super) async fn receive(&mut self, limit: Limit, patience: Duration) -> Result<Reply, ReceiveError> {
        let reading = reply::read(&mut self.stream, &mut self.input, limit);
        match timeout_at(Instant::now() + patience, reading).await {
            Ok(read) => Ok(read?),
            Err(_) => Err(ReceiveError::Timeout(patience)),
        }
    }

    /// Returns the body of the last received reply.
    pub(super) fn body_of(&self, reply: &Reply) -> &[u8] {
        &self.input[reply.body.clone()]
    }
}

/// How much of a request was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sending {
    Whole,
    /// The executor began to answer before it had read everything; it will not read the rest.
    Interrupted,
}

/// Writes; while the peer accepts no more data, also reads, in case it answers early.
fn poll_send(
    stream: &mut Stream,
    output: &[u8],
    written: &mut usize,
    input: &mut Vec<u8>,
    cx: &mut Context<'_>,
) -> Poll<io::Result<Sending>> {
    while *written < output.len() {
        match Pin::new(&mut *stream).poll_write(cx, &output[*written..]) {
            Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
            Poll::Ready(Ok(bytes)) => *written += bytes,
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            Poll::Pending => return poll_interruption(stream, input, cx),
        }
    }
    match Pin::new(&mut *stream).poll_flush(cx) {
        Poll::Ready(flushed) => Poll::Ready(flushed.map(|()| Sending::Whole)),
        Poll::Pending => poll_interruption(stream, input, cx),
    }
}

fn poll_interruption(
    stream: &mut Stream,
    input: &mut Vec<u8>,
    cx: &mut Context<'_>,
) -> Poll<io::Result<Sending>> {
    let mut bytes = [0; 512];
    let mut early = ReadBuf::new(&mut bytes);
    ready!(Pin::new(stream).poll_read(cx, &mut early))?;
    if early.filled().is_empty() {
        return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
    }
    input.extend_from_slice(early.filled());
    Poll::Ready(Ok(Sending::Interrupted))
}

/// Why a request was not sent completely.
#[derive(Debug, thiserror::Error)]
pub(super) enum SendError {
    #[error(transparent)]
    Unsendable(#[from] Unsendable),
    /// The kernel accepted no byte, so the executor cannot have seen it.
    #[error("failed to send the request: {0}")]
    Nothing(io::Error),
    #[error("lost the connection while sending the request: {0}")]
    Part(io::Error),
}

/// Why there is no reply.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReceiveError {
    #[error("did not respond within {0:?}")]
    Timeout(Duration),
    #[error(transparent)]
    Reply(#[from] ReplyError),
}

/// A connection, plain or TLS.
pub(super) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    fn tcp(&self) -> &TcpStream {
        match self {
            Stream::Plain(tcp) => tcp,
            Stream::Tls(tls) => tls.get_ref().0,
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(tcp) => Pin::new(tcp).poll_read(cx, into),
            Stream::Tls(tls) => Pin::new(tls).poll_read(cx, into),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(tcp) => Pin::new(tcp).poll_write(cx, from),
            Stream::Tls(tls) => Pin::new(tls).poll_write(cx, from),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(tcp) => Pin::new(tcp).poll_flush(cx),
            Stream::Tls(tls) => Pin::new(tls).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(tcp) => Pin::new(tcp).poll_shutdown(cx),
            Stream::Tls(tls) => Pin::new(tls).poll_shutdown(cx),
        }
    }
}

/// The shortest known keep-alive timeout of a server is 5 s; a request must not be sent while the server closes.
pub(super) const IDLE_MAX: Duration = Duration::from_secs(2);
/// Ordinary requests and replies are smaller.
const BUFFER_KEPT_MAX: usize = 8 * 1024;
