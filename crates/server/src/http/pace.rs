//! A connection on which a request must be asked for swiftly once it has begun, and whose answer arrives also when not
//! all of the request was wanted. Between requests it may rest.

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

/// How far the request on a connection has come, known to all who have to do with it.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<AtomicU8>);

/// Nothing is asked.
const REST: u8 = 0;
/// A head is being read.
const HEAD: u8 = 1;
/// The request is being answered, and not all of its body was read.
const BODY: u8 = 2;
/// The request is being answered, and all of it was read.
const READ: u8 = 3;

impl Progress {
    /// A request begins to be answered.
    pub fn asked(&self, request: hyper::Request<Incoming>) -> hyper::Request<Asked> {
        self.set(if request.body().is_end_stream() { READ } else { BODY });
        request.map(|body| Asked { body, progress: self.clone() })
    }

    /// The request was answered. What is left of a body that nobody wanted is still to come.
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

/// The body of a request, which notes when all of it was read.
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

/// A connection whose heads of requests come within [`HEAD_WAIT`] of their first byte. Where it ends before all that was
/// sent is read, it first hears the other side out for at most [`LINGER`]: a connection that is closed with something
/// unread is reset, and takes the answer along that says what was wrong.
pub struct Paced<S> {
    stream: S,
    progress: Progress,
    /// When the head that has begun must be there; when the connection ends, until when it goes on hearing.
    by: Option<Pin<Box<Sleep>>>,
    /// We have said all that we will.
    said: bool,
}

impl<S> Paced<S> {
    /// Paces a connection.
    pub fn new(stream: S, progress: Progress) -> Self {
        Paced { stream, progress, by: None, said: false }
    }

    /// Whether the time is over.
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
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the head of a request drips")));
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

/// How long a head may take from its first byte on. Clients write it at once.
const HEAD_WAIT: Duration = Duration::from_secs(5);

/// How long somebody may go on sending what nobody wants, to read then why.
const LINGER: Duration = Duration::from_secs(2);
