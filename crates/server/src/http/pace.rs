//! A connection with a timeout for request heads, which also delivers an error response if the request was not
//! read completely. It may be idle between requests.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Bytes, HttpBody};
use hyper::body::{Frame, Incoming, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// State of the request on a connection, shared by its reader, body and handler.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<AtomicU8>);

/// No request.
const REST: u8 = 0;
/// A head is being read.
const HEAD: u8 = 1;
/// The request is being handled, and its body was not read completely.
const BODY: u8 = 2;
/// The request is being handled, and all of it was read.
const READ: u8 = 3;

impl Progress {
    /// Marks the start of handling a request.
    pub fn asked(&self, request: hyper::Request<Incoming>) -> hyper::Request<Asked> {
        self.set(if request.body().is_end_stream() { READ } else { BODY });
        request.map(|body| Asked { body, progress: self.clone() })
    }

    /// Marks the end of handling a request. If its body was not read completely, the rest may still arrive.
    pub fn answered(&self) {
        if self.get() == READ {
            self.set(REST);
        }
    }

    fn set(&self, progress: u8) {
        self.0.store(progress, Ordering::Relaxed);
    }

    fn get(&self) -> u8 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Body of a request; updates the progress when all of it was read.
pub struct Asked {
    body: Incoming,
    progress: Progress,
}

impl HttpBody for Asked {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if frame.is_none() || self.body.is_end_stream() {
            self.progress.set(READ);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A connection on which each request head must arrive within [`HEAD_WAIT`] of its first byte. If it is closed
/// before all input was read, it first discards input for at most [`LINGER`]: closing a TCP connection with unread
/// input resets it, and the client would lose the error response.
pub struct Paced<S> {
    stream: S,
    progress: Progress,
    /// Deadline for the head that has begun; while closing, the deadline for discarding input.
    by: Option<Pin<Box<Sleep>>>,
    /// Whether our side is shut down.
    said: bool,
}

impl<S> Paced<S> {
    /// Wraps a connection.
    pub fn new(stream: S, progress: Progress) -> Self {
        Paced { stream, progress, by: None, said: false }
    }

    /// Whether the deadline has passed.
    fn is_over(&mut self, context: &mut Context<'_>) -> bool {
        self.by.as_mut().is_some_and(|by| by.as_mut().poll(context).is_ready())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Paced<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.progress.get() != HEAD {
            self.by = None;
        } else if self.is_over(context) {
            return Poll::Ready(Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the request header arrives too slowly",
            )));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        if buffer.filled().len() > before && self.progress.get() == REST {
            self.progress.set(HEAD);
            self.by = Some(Box::pin(sleep_until(Instant::now() + HEAD_WAIT)));
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Paced<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.said {
            ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
            self.said = true;
            self.by = Some(Box::pin(sleep_until(Instant::now() + LINGER)));
        }
        let mut unwanted = [0; 4096];
        while self.progress.get() != REST && !self.is_over(context) {
            let mut buffer = ReadBuf::new(&mut unwanted);
            let read = ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer));
            if read.is_err() || buffer.filled().is_empty() {
                break;
            }
        }
        Poll::Ready(Ok(()))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

/// Timeout for a head after its first byte. Clients send it at once.
const HEAD_WAIT: Duration = Duration::from_secs(5);

/// How long input is discarded after a rejected request, so that the client can read the response.
const LINGER: Duration = Duration::from_secs(2);
