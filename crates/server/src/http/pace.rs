//! A connection on which a request must be asked for swiftly once it has begun. Between requests it may rest.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// Whether a request is being answered, so that what comes is a body: that has its own pace.
#[derive(Clone, Debug, Default)]
pub struct Answering(Arc<AtomicBool>);

impl Answering {
    /// From now on, or no longer.
    pub fn set(&self, answering: bool) {
        self.0.store(answering, Ordering::Relaxed);
    }
}

/// A connection whose heads of requests come within [`HEAD_WAIT`] of their first byte.
pub struct Paced<S> {
    stream: S,
    answering: Answering,
    /// When the head that has begun must be there.
    by: Option<Pin<Box<Sleep>>>,
}

impl<S> Paced<S> {
    /// Paces a connection.
    pub fn new(stream: S, answering: Answering) -> Self {
        Paced { stream, answering, by: None }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Paced<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.answering.0.load(Ordering::Relaxed) {
            self.by = None;
            return Pin::new(&mut self.stream).poll_read(context, buffer);
        }
        if let Some(by) = &mut self.by
            && by.as_mut().poll(context).is_ready()
        {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the head of a request drips")));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        if buffer.filled().len() > before && self.by.is_none() {
            self.by = Some(Box::pin(sleep_until(Instant::now() + HEAD_WAIT)));
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Paced<S> {
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
        Pin::new(&mut self.stream).poll_shutdown(context)
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

/// How long a head may take from its first byte on. Clients write it at once.
const HEAD_WAIT: Duration = Duration::from_secs(5);
