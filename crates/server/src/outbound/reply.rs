//! Reads an executor's reply: as leniently as real executors write it, and never beyond a size limit.
//!
//! Accepts any content type, bare line feeds, chunked bodies and a missing length. A reply that is too large is
//! rejected, unread if it announces its size, or cut if its beginning is useful.

use std::io;
use std::ops::Range;

use tokio::io::{AsyncRead, AsyncReadExt};

/// A reply. Its body is a range of the buffer it was read into.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reply {
    pub status: u16,
    pub body: Range<usize>,
    /// Whether the body continues beyond the limit.
    pub is_cut: bool,
    /// Whether the connection can be used for another call.
    pub is_reusable: bool,
}

/// How much of a body is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    pub bytes: usize,
    /// Whether the beginning of a larger body is useful; if not, a larger body is an error.
    pub may_cut: bool,
}

impl Limit {
    fn cut(self, body: Range<usize>) -> Result<Reply, ReplyError> {
        if !self.may_cut {
            return Err(ReplyError::TooLarge(self.bytes));
        }
        Ok(Reply { status: OK, body, is_cut: true, is_reusable: false })
    }
}

/// Reads one reply into `buffer`, which may already hold its beginning.
///
/// The body of an error response is not read: the status is enough, and the connection is not reused.
pub(super) async fn read<S>(stream: &mut S, buffer: &mut Vec<u8>, limit: Limit) -> Result<Reply, ReplyError>
where
    S: AsyncRead + Unpin,
{
    let head = loop {
        match parse_head(buffer)? {
            // Interim response: the final one follows.
            Some(head) if (100..200).contains(&head.status) => drop(buffer.drain(..head.length)),
            Some(head) => break head,
            None if buffer.len() > HEAD_MAX => return Err(ReplyError::NotHttp("its header is too long")),
            None => more(stream, buffer).await?,
        }
    };
    if head.status != OK {
        return Ok(Reply { status: head.status, body: 0..0, is_cut: false, is_reusable: false });
    }
    let bound = head.length + limit.bytes;
    match head.framing {
        Framing::Length(length) if length > limit.bytes => {
            while limit.may_cut && buffer.len() < bound {
                more(stream, buffer).await?;
            }
            limit.cut(head.length..bound)
        }
        Framing::Length(length) => {
            let end = head.length + length;
            while buffer.len() < end {
                more(stream, buffer).await?;
            }
            let is_reusable = head.is_persistent && buffer.len() == end;
            Ok(Reply { status: OK, body: head.length..end, is_cut: false, is_reusable })
        }
        Framing::UntilClose => {
            while buffer.len() <= bound {
                match more(stream, buffer).await {
                    Ok(()) => {}
                    Err(ReplyError::Closed) => {
                        let body = head.length..buffer.len();
                        return Ok(Reply { status: OK, body, is_cut: false, is_reusable: false });
                    }
                    Err(error) => return Err(error),
                }
            }
            limit.cut(head.length..bound)
        }
        Framing::Chunked => {
            buffer.drain(..head.length);
            let mut body = Vec::new();
            let is_whole = loop {
                match take_chunks(buffer, &mut body, limit)? {
                    Chunks::More => more(stream, buffer).await?,
                    Chunks::End => break true,
                    Chunks::TooMany => break false,
                }
            };
            let is_reusable = head.is_persistent && buffer.is_empty();
            *buffer = body;
            if !is_whole {
                return limit.cut(0..buffer.len());
            }
            Ok(Reply { status: OK, body: 0..buffer.len(), is_cut: false, is_reusable })
        }
    }
}

async fn more<S: AsyncRead + Unpin>(stream: &mut S, buffer: &mut Vec<u8>) -> Result<(), ReplyError> {
    if buffer.capacity() - buffer.len() < READ_MIN {
        buffer.reserve(READ_SIZE);
    }
    match stream.read_buf(buffer).await {
        Ok(0) => Err(ReplyError::Closed),
        Ok(_) => Ok(()),
        // Many TLS servers close without `close_notify`.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(ReplyError::Closed),
        Err(error) => Err(ReplyError::Broken(error)),
    }
}

struct Head {
    status: u16,
    length: usize,
    framing: Framing,
    is_persistent: bool,
}

enum Framing {
    Length(usize),
    Chunked,
    UntilClose,
}

fn parse_head(bytes: &[u8]) -> Result<Option<Head>, ReplyError> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut headers);
    let parsed = httparse::ParserConfig::default()
        .allow_spaces_after_header_name_in_responses(true)
        .allow_obsolete_multiline_headers_in_responses(true)
        .allow_multiple_spaces_in_response_status_delimiters(true)
        .ignore_invalid_headers_in_responses(true)
        .parse_response(&mut response, bytes)
        .map_err(|_| ReplyError::NotHttp("it is not HTTP"))?;
    let httparse::Status::Complete(length) = parsed else {
        return Ok(None);
    };
    let named = |name: &'static str| {
        let has_name = move |header: &&httparse::Header<'_>| header.name.eq_ignore_ascii_case(name);
        response.headers.iter().filter(has_name).map(|header| header.value.trim_ascii())
    };
    let has_word = |name, word: &str| {
        named(name)
            .any(|value| value.split(|byte| *byte == b',').any(|part| is_word(part.trim_ascii(), word)))
    };
    let framing = if has_word("transfer-encoding", "chunked") {
        Framing::Chunked
    } else {
        let mut lengths = named("content-length").map(parse_length);
        match lengths.next() {
            None => Framing::UntilClose,
            Some(first) if lengths.all(|other| other == first) => {
                Framing::Length(first.ok_or(ReplyError::NotHttp("its Content-Length is not a number"))?)
            }
            Some(_) => return Err(ReplyError::NotHttp("it has two Content-Length headers")),
        }
    };
    let is_persistent = if response.version == Some(1) {
        !has_word("connection", "close")
    } else {
        has_word("connection", "keep-alive")
    };
    Ok(Some(Head { status: response.code.unwrap_or_default(), length, framing, is_persistent }))
}

fn is_word(part: &[u8], word: &str) -> bool {
    part.eq_ignore_ascii_case(word.as_bytes())
}

fn parse_length(digits: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(digits).ok()?;
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

enum Chunks {
    More,
    End,
    TooMany,
}

/// Moves whole chunks from `raw` to `body`, as many as fit.
fn take_chunks(raw: &mut Vec<u8>, body: &mut Vec<u8>, limit: Limit) -> Result<Chunks, ReplyError> {
    const BROKEN: ReplyError = ReplyError::NotHttp("its chunked encoding is invalid");
    let mut at = 0;
    let found = loop {
        let httparse::Status::Complete((line, size)) =
            httparse::parse_chunk_size(&raw[at..]).map_err(|_| BROKEN)?
        else {
            break Chunks::More;
        };
        let data = at + line;
        if size == 0 {
            let mut trailers = [httparse::EMPTY_HEADER; HEADERS_MAX];
            match httparse::parse_headers(&raw[data..], &mut trailers).map_err(|_| BROKEN)? {
                httparse::Status::Complete((end, _)) => at = data + end,
                httparse::Status::Partial => break Chunks::More,
            }
            break Chunks::End;
        }
        let room = limit.bytes - body.len();
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        if size > room {
            // A single chunk may hold the whole body, so the part of it that fits counts too.
            match raw.get(data..data + room) {
                None if limit.may_cut => break Chunks::More,
                None => break Chunks::TooMany,
                Some(fitting) => body.extend_from_slice(fitting),
            }
            break Chunks::TooMany;
        }
        match raw.get(data + size..data + size + 2) {
            None => break Chunks::More,
            Some(b"\r\n") => body.extend_from_slice(&raw[data..data + size]),
            Some(_) => return Err(BROKEN),
        }
        at = data + size + 2;
    };
    raw.drain(..at);
    // The rest is one unfinished chunk, or trailers that do not end.
    if raw.len() > limit.bytes + HEAD_MAX {
        return Ok(Chunks::TooMany);
    }
    Ok(found)
}

/// Why there is no reply.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReplyError {
    #[error("closed the connection without a response")]
    Closed,
    #[error("lost the connection before a response: {0}")]
    Broken(io::Error),
    #[error("sent an invalid response: {0}")]
    NotHttp(&'static str),
    #[error("sent a response of more than {0} bytes")]
    TooLarge(usize),
}

const OK: u16 = 200;
/// Executors send five headers; proxies in between add some.
const HEADERS_MAX: usize = 64;
/// The limit of common servers.
const HEAD_MAX: usize = 16 * 1024;
/// A usual reply fits, including its head.
const READ_SIZE: usize = 1024;
/// A smaller read would need a second one.
const READ_MIN: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: Limit = Limit { bytes: 32, may_cut: false };

    #[tokio::test]
    async fn replies_are_read_however_they_are_framed() {
        check("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", 200, "{}", true).await;
        check("HTTP/1.1 200 OK\ncontent-length:2\nX: y\n\n{}", 200, "{}", true).await;
        check("HTTP/1.1 200\r\nCONTENT-LENGTH: 2\r\n\r\n{}\n", 200, "{}", false).await;
        check("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}", 200, "{}", false).await;
        check("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}", 200, "{}", false).await;
        check("HTTP/1.0 200 OK\r\nContent-Length: 2\r\nConnection: Keep-Alive\r\n\r\n{}", 200, "{}", true)
            .await;
        check("HTTP/1.1 200 OK\r\n\r\n{\"code\":200}\n", 200, "{\"code\":200}\n", false).await;
        check(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n1\r\n{\r\n1;x=y\r\n}\r\n0\r\n\r\n",
            200,
            "{}",
            true,
        )
        .await;
        check(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nTrailer: 1\r\n\r\n",
            200,
            "{}",
            true,
        )
        .await;
        check("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200, "", true)
            .await;
        check("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}", 200, "{}", true).await;
        check("HTTP/1.1 401 Unauthorized\r\nContent-Length: 99999\r\n\r\n", 401, "", false).await;
        check("HTTP/1.1 302 Found\r\nLocation: http://evil/\r\n\r\n", 302, "", false).await;
    }

    /// Reads the reply as a whole, then one byte at a time.
    async fn check(sent: &str, status: u16, body: &str, is_reusable: bool) {
        let mut buffer = Vec::new();
        let whole = read(&mut sent.as_bytes(), &mut buffer, MAX).await.unwrap();
        assert_eq!(std::str::from_utf8(&buffer[whole.body.clone()]), Ok(body), "{sent}");
        assert_eq!((whole.status, whole.is_reusable), (status, is_reusable), "{sent}");

        let mut buffer = Vec::new();
        let drip = read(&mut Drip(sent.as_bytes()), &mut buffer, MAX).await.unwrap();
        assert_eq!((drip.status, std::str::from_utf8(&buffer[drip.body])), (status, Ok(body)), "{sent}");
    }

    struct Drip<'a>(&'a [u8]);

    impl AsyncRead for Drip<'_> {
        fn poll_read(
            mut self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
            into: &mut tokio::io::ReadBuf<'_>,
        ) -> std::task::Poll<io::Result<()>> {
            let (now, later) = self.0.split_at(self.0.len().min(1));
            into.put_slice(now);
            self.0 = later;
            std::task::Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn what_is_no_reply_is_told_apart() {
        fails("", "closed").await;
        fails("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{}", "closed").await;
        fails("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n", "closed").await;
        fails("SSH-2.0-OpenSSH_9.2\r\n", "not HTTP").await;
        fails("{\"code\":200}", "not HTTP").await;
        fails(
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
            "two Content-Length headers",
        )
        .await;
        fails("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}", "not a number").await;
        fails("HTTP/1.1 200 OK\r\nContent-Length: 33\r\n\r\n", "more than 32 bytes").await;
        fails("HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\n", "more than 32").await;
        fails("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "chunked encoding is invalid")
            .await;
        fails(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}{}\r\n",
            "chunked encoding is invalid",
        )
        .await;
        fails("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffff\r\n", "more than 32")
            .await;
        fails(&format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(99_999)), "more than 32").await;
        fails(&format!("HTTP/1.1 200 OK\r\nX: {}", "x".repeat(99_999)), "its header is too long").await;
    }

    #[tokio::test]
    async fn the_beginning_of_a_large_reply_is_read_where_it_is_of_use() {
        let body = "x".repeat(99);
        for sent in [
            format!("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{body}"),
            format!("HTTP/1.1 200 OK\r\n\r\n{body}"),
            format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n63\r\n{body}\r\n0\r\n\r\n"),
            format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n62\r\n{}", &body[1..]),
        ] {
            let mut buffer = Vec::new();
            let limit = Limit { bytes: 32, may_cut: true };
            let reply = read(&mut sent.as_bytes(), &mut buffer, limit).await.unwrap();
            assert_eq!(buffer[reply.body], [b'x'; 32], "{sent}");
            assert!(reply.is_cut && !reply.is_reusable, "{sent}");
        }
    }

    async fn fails(sent: &str, why: &str) {
        let error = read(&mut sent.as_bytes(), &mut Vec::new(), MAX).await.unwrap_err().to_string();
        assert!(error.contains(why), "{sent:?}: {error}");
    }
}
