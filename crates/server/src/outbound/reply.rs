//! An executor's reply, read as leniently as real ones are written, and never beyond its bound.
//!
//! Any content type, bare line feeds, chunks, no length at all; but a reply that is larger than it may be is given up
//! at its first surplus byte, or unread if it announces its size.

use std::io;
use std::ops::Range;

use tokio::io::{AsyncRead, AsyncReadExt};

/// A reply. Its body is a part of the buffer it was read into.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reply {
    pub status: u16,
    pub body: Range<usize>,
    /// Whether the connection is good for another call.
    pub is_reusable: bool,
}

/// Reads one reply into `buffer`, which may hold the beginning of it already.
///
/// The body of a failure is left unread: the status says it all, and such a connection is not used again.
pub(super) async fn read<S>(
    stream: &mut S,
    buffer: &mut Vec<u8>,
    body_max: usize,
) -> Result<Reply, ReplyError>
where
    S: AsyncRead + Unpin,
{
    let head = loop {
        match parse_head(buffer)? {
            // Interim: the real one follows.
            Some(head) if (100..200).contains(&head.status) => drop(buffer.drain(..head.length)),
            Some(head) => break head,
            None if buffer.len() > HEAD_MAX => return Err(ReplyError::NotHttp("its head does not end")),
            None => more(stream, buffer).await?,
        }
    };
    if head.status != OK {
        return Ok(Reply { status: head.status, body: 0..0, is_reusable: false });
    }
    match head.framing {
        Framing::Length(length) => {
            let end = head.length.saturating_add(length);
            if length > body_max {
                return Err(ReplyError::TooLarge(body_max));
            }
            while buffer.len() < end {
                more(stream, buffer).await?;
            }
            let is_reusable = head.is_persistent && buffer.len() == end;
            Ok(Reply { status: OK, body: head.length..end, is_reusable })
        }
        Framing::UntilClose => {
            while buffer.len() <= head.length + body_max {
                match more(stream, buffer).await {
                    Ok(()) => {}
                    Err(ReplyError::Closed) => {
                        return Ok(Reply { status: OK, body: head.length..buffer.len(), is_reusable: false });
                    }
                    Err(error) => return Err(error),
                }
            }
            Err(ReplyError::TooLarge(body_max))
        }
        Framing::Chunked => {
            buffer.drain(..head.length);
            let mut body = Vec::new();
            while !take_chunks(buffer, &mut body, body_max)? {
                more(stream, buffer).await?;
            }
            let is_reusable = head.is_persistent && buffer.is_empty();
            *buffer = body;
            Ok(Reply { status: OK, body: 0..buffer.len(), is_reusable })
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
        // Many a TLS server forgets to say goodbye.
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
                Framing::Length(first.ok_or(ReplyError::NotHttp("its length is no number"))?)
            }
            Some(_) => return Err(ReplyError::NotHttp("it has two lengths")),
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

/// Moves whole chunks from `raw` to `body`; says whether that was the last.
fn take_chunks(raw: &mut Vec<u8>, body: &mut Vec<u8>, body_max: usize) -> Result<bool, ReplyError> {
    const BROKEN: ReplyError = ReplyError::NotHttp("its chunks are broken");
    let mut at = 0;
    let is_last = loop {
        let httparse::Status::Complete((line, size)) =
            httparse::parse_chunk_size(&raw[at..]).map_err(|_| BROKEN)?
        else {
            break false;
        };
        let data = at + line;
        if size == 0 {
            let mut trailers = [httparse::EMPTY_HEADER; HEADERS_MAX];
            match httparse::parse_headers(&raw[data..], &mut trailers).map_err(|_| BROKEN)? {
                httparse::Status::Complete((end, _)) => at = data + end,
                httparse::Status::Partial => break false,
            }
            break true;
        }
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        if size > body_max - body.len() {
            return Err(ReplyError::TooLarge(body_max));
        }
        match raw.get(data + size..data + size + 2) {
            None => break false,
            Some(b"\r\n") => body.extend_from_slice(&raw[data..data + size]),
            Some(_) => return Err(BROKEN),
        }
        at = data + size + 2;
    };
    raw.drain(..at);
    // What is left is one unfinished chunk, or trailers that do not end.
    if !is_last && raw.len() > body_max + HEAD_MAX {
        return Err(ReplyError::TooLarge(body_max));
    }
    Ok(is_last)
}

/// Why there is no reply.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReplyError {
    #[error("closed the connection instead of answering")]
    Closed,
    #[error("broke the connection instead of answering: {0}")]
    Broken(io::Error),
    #[error("gave an answer that cannot be read: {0}")]
    NotHttp(&'static str),
    #[error("gave an answer of more than {0} bytes, which was not read")]
    TooLarge(usize),
}

const OK: u16 = 200;
/// Executors send five headers; gateways in between add some.
const HEADERS_MAX: usize = 64;
/// As much as common servers allow themselves.
const HEAD_MAX: usize = 16 * 1024;
/// A usual answer fits, head and all.
const READ_SIZE: usize = 1024;
/// Reading less at once would mean reading twice.
const READ_MIN: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: usize = 32;

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

    /// Whole, and one byte at a time.
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
        fails("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}", "two lengths").await;
        fails("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}", "no number").await;
        fails("HTTP/1.1 200 OK\r\nContent-Length: 33\r\n\r\n", "more than 32 bytes").await;
        fails("HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\n", "more than 32").await;
        fails("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "broken").await;
        fails("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}{}\r\n", "broken").await;
        fails("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffff\r\n", "more than 32")
            .await;
        fails(&format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(99_999)), "more than 32").await;
        fails(&format!("HTTP/1.1 200 OK\r\nX: {}", "x".repeat(99_999)), "does not end").await;
    }

    async fn fails(sent: &str, why: &str) {
        let error = read(&mut sent.as_bytes(), &mut Vec::new(), MAX).await.unwrap_err().to_string();
        assert!(error.contains(why), "{sent:?}: {error}");
    }
}
