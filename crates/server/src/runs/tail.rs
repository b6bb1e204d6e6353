//! The last lines of a log while it is being read.

use store::RunLog;

use super::log::{LogPage, Source, left_out_line};
use crate::request_error::RequestError;

/// The last lines of a log while it is being read.
#[derive(Default)]
pub struct Tail {
    text: String,
    /// Number of the last line read.
    last: u32,
    /// How many of the first lines were dropped.
    left_out: u32,
    bytes_seen: usize,
}

/// How far a log was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    /// There may be more.
    More,
    /// There are no more lines now.
    Newest,
    /// The executor marked these lines as the last.
    End,
}

impl Tail {
    /// Number of the last line read.
    pub fn last(&self) -> u32 {
        self.last
    }

    /// Returns the number of bytes held.
    pub fn bytes(&self) -> usize {
        self.text.len()
    }

    /// Continues reading, at most `pages` pages. Of a log that is too long the end matters: lines in between are
    /// skipped. Lines read before an error are kept.
    pub async fn read(&mut self, source: &Source<'_>, pages: usize) -> Result<Reached, RequestError> {
        for _ in 0..pages {
            let (next, is_first) = (self.last + 1, self.last == 0);
            let page = source.page(next).await?;
            if page.to < next {
                return Ok(Reached::Newest);
            }
            self.add(&page);
            if page.end {
                return Ok(Reached::End);
            }
            if is_first && self.bytes_seen > KEPT_MAX / 4 {
                self.skip_to(source.last_line().await?.unwrap_or_default());
            }
        }
        Ok(Reached::More)
    }

    /// Appends the next page.
    fn add(&mut self, page: &LogPage) {
        self.bytes_seen += page.text.len();
        self.text.push_str(&page.text);
        if !self.text.ends_with('\n') {
            self.text.push('\n');
        }
        self.last = page.to;
        self.cut();
    }

    /// Skips lines that would be dropped anyway, estimated from the average line length so far.
    fn skip_to(&mut self, end: u32) {
        let line = (self.bytes_seen / self.last.max(1) as usize).max(1);
        let wanted = u32::try_from(2 * KEPT_MAX / line).unwrap_or(u32::MAX);
        let start = end.saturating_sub(wanted);
        if start > self.last {
            self.text.clear();
            (self.last, self.left_out) = (start, start);
        }
    }

    /// Drops whole lines from the front until the rest is short enough.
    fn cut(&mut self) {
        let Some(beyond) = self.text.len().checked_sub(KEPT_MAX).filter(|beyond| *beyond > 0) else { return };
        let line_end = self.text.as_bytes()[beyond..].iter().position(|byte| *byte == b'\n');
        let mut cut = line_end.map_or(self.text.len(), |end| beyond + end + 1);
        if cut == self.text.len() {
            // The last line alone is too long: its end is kept in its place.
            cut = self.text.ceil_char_boundary(beyond);
            self.left_out = self.last - 1;
        } else {
            let lines = self.text.as_bytes()[..cut].iter().filter(|byte| **byte == b'\n').count();
            self.left_out += u32::try_from(lines).unwrap_or(u32::MAX);
        }
        self.text.drain(..cut);
    }

    /// Returns the part of the log to store.
    pub fn to_log(&self, at_its_end: bool) -> RunLog {
        let mark = if self.left_out > 0 { left_out_line(self.left_out) } else { String::new() };
        let rest = if at_its_end { "" } else { "[the rest is not stored]\n" };
        RunLog { complete: self.left_out == 0 && at_its_end, text: format!("{mark}{}{rest}", self.text) }
    }
}

/// Bytes stored of a log: some thousand lines, the last ones.
const KEPT_MAX: usize = 256 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn page(from: u32, lines: u32, width: usize) -> LogPage {
        let text = (from..from + lines).map(|line| format!("{line:0width$}\n")).collect();
        LogPage { from, to: from + lines - 1, text, end: false }
    }

    #[test]
    fn a_short_log_is_kept_as_it_is() {
        let mut tail = Tail::default();
        tail.add(&page(1, 3, 1));
        tail.add(&LogPage { from: 4, to: 4, text: "no end".into(), end: false });
        assert_eq!(tail.to_log(true), RunLog { text: "1\n2\n3\nno end\n".into(), complete: true });
    }

    #[test]
    fn of_a_long_log_the_last_lines_are_kept_and_the_mark_counts_the_others() {
        let mut tail = Tail::default();
        let width = KEPT_MAX / 100;
        tail.add(&page(1, 60, width));
        tail.add(&page(61, 60, width));
        let log = tail.to_log(true);
        assert!(!log.complete && log.text.len() <= KEPT_MAX + 100);
        let mut lines = log.text.lines();
        assert_eq!(lines.next(), Some(left_out_line(21).trim_end()));
        let rest: Vec<u32> = lines.map(|line| line.parse().unwrap()).collect();
        assert_eq!(rest, (22..=120).collect::<Vec<_>>());
    }

    #[test]
    fn lines_that_would_be_cut_off_are_passed_over() {
        let mut tail = Tail::default();
        tail.add(&page(1, 100, 999));
        tail.skip_to(1_000_000);
        let next = tail.last + 1;
        assert!((999_000..1_000_000).contains(&next), "{next}");
        tail.add(&page(next, 5, 999));
        let log = tail.to_log(false);
        assert!(log.text.starts_with(&left_out_line(next - 1)), "{}", &log.text[..80]);
        assert!(log.text.ends_with("not stored]\n"));

        let mut short = Tail::default();
        short.add(&page(1, 100, 999));
        short.skip_to(150);
        assert_eq!((short.last, short.left_out), (100, 0), "there is nothing to pass over");
    }

    #[test]
    fn a_single_line_that_is_too_long_is_cut_between_letters() {
        let mut tail = Tail::default();
        tail.add(&page(1, 2, 1));
        tail.add(&LogPage { from: 3, to: 3, text: "字".repeat(KEPT_MAX), end: false });
        let log = tail.to_log(true);
        assert!(log.text.starts_with(&left_out_line(2)) && log.text.ends_with("字\n"));
    }
}
