//! Writes the output of a process or an HTTP response to a run's log, line by line.

use tokio::io::{AsyncRead, AsyncReadExt};

use crate::context::Context;

/// Splits bytes into lines as they arrive, up to a limit. Invalid UTF-8 is replaced.
pub(crate) struct Lines<'a> {
    ctx: &'a Context,
    begun: Vec<u8>,
    room: usize,
    max: usize,
}

impl<'a> Lines<'a> {
    /// Lines for the log of `ctx`, at most `max` bytes in total.
    pub fn new(ctx: &'a Context, max: usize) -> Lines<'a> {
        Lines { ctx, begun: Vec::new(), room: max, max }
    }

    /// Reads to the end. Bytes over the limit are read too, because the writer would block otherwise.
    pub async fn copy(&mut self, mut from: impl AsyncRead + Unpin) {
        let mut chunk = vec![0; CHUNK];
        loop {
            match from.read(&mut chunk).await {
                Ok(0) | Err(_) => return,
                Ok(length) => {
                    self.push(&chunk[..length]);
                }
            }
        }
    }

    /// Adds bytes; returns whether there is room for more.
    pub fn push(&mut self, bytes: &[u8]) -> bool {
        if self.room == 0 {
            return false;
        }
        let kept = bytes.len().min(self.room);
        self.room -= kept;
        for mut part in bytes[..kept].split_inclusive(|byte| *byte == b'\n') {
            while !part.is_empty() {
                let (fitting, rest) = part.split_at(part.len().min(LINE_MAX - self.begun.len()));
                self.begun.extend_from_slice(fitting);
                if self.begun.ends_with(b"\n") || self.begun.len() >= LINE_MAX {
                    self.write();
                }
                part = rest;
            }
        }
        if self.room == 0 {
            self.write();
            self.ctx
                .log(format_args!("the output is longer than {} bytes; the rest is not stored", self.max));
        }
        self.room > 0
    }

    /// Writes the last line if it has no line end.
    pub fn finish(mut self) {
        self.write();
    }

    fn write(&mut self) {
        let rest = self.begun.split_off(whole(&self.begun));
        let line = std::mem::replace(&mut self.begun, rest);
        if !line.is_empty() {
            let text = String::from_utf8_lossy(&line);
            self.ctx.log(text.trim_end_matches(['\r', '\n']));
        }
    }
}

const CHUNK: usize = 16 * 1024;
/// Longer lines are split, because a log truncates them.
const LINE_MAX: usize = 16 * 1024;

/// Length of the part that can be written: a character cut by the limit waits for its remaining bytes.
fn whole(line: &[u8]) -> usize {
    if line.len() < LINE_MAX || line.ends_with(b"\n") {
        return line.len();
    }
    match std::str::from_utf8(line) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => line.len(),
    }
}

#[cfg(test)]
mod tests {
    use crate::testing;

    use super::*;

    #[tokio::test]
    async fn lines_are_those_that_were_written() {
        check(&["one\ntwo\n"], &["one", "two"]).await;
        check(&["on", "e\r\n\ntwo"], &["one", "", "two"]).await;
        check(&[], &[]).await;
        check(&["\n"], &[""]).await;
    }

    #[tokio::test]
    async fn a_long_line_is_cut_between_characters() {
        let long = "é".repeat(LINE_MAX);
        let ended = log(vec![format!("x{long}\n").into_bytes()], usize::MAX).await;
        assert!(ended.len() > 1);
        assert_eq!(ended.concat(), format!("x{long}"));
    }

    #[tokio::test]
    async fn what_is_not_text_is_replaced_and_what_is_too_much_is_left_out() {
        assert_eq!(log(vec![b"a\xffb\n".to_vec()], 100).await, ["a\u{fffd}b"]);
        let ended = log(vec![b"123\n".to_vec(), b"456\n".to_vec(), b"789\n".to_vec()], 6).await;
        assert_eq!(ended, ["123", "45", "the output is longer than 6 bytes; the rest is not stored"]);
    }

    async fn check(chunks: &[&str], lines: &[&str]) {
        let chunks = chunks.iter().map(|chunk| chunk.as_bytes().to_vec()).collect();
        assert_eq!(log(chunks, 1_000).await, lines);
    }

    async fn log(chunks: Vec<Vec<u8>>, max: usize) -> Vec<String> {
        let handler = move |ctx: Context| {
            let chunks = chunks.clone();
            async move {
                let mut lines = Lines::new(&ctx, max);
                for chunk in chunks {
                    lines.push(&chunk);
                }
                lines.finish();
            }
        };
        testing::run(handler, "").await.log
    }
}
