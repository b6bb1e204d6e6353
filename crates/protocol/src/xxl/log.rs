//! A centre reads a run's log, page by page.

use serde::{Deserialize, Serialize};

use super::lenient;

/// The body of `/log`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRequest {
    /// When the run was triggered, in milliseconds since the epoch.
    pub log_date_time: i64,
    /// The run.
    pub log_id: i64,
    /// The first line wanted, from 1.
    pub from_line_num: i32,
}

impl LogRequest {
    /// As a body for executors of every lineage, which disagree on the name of the time.
    pub fn to_json(self) -> String {
        let LogRequest { log_date_time, log_id, from_line_num } = self;
        format!(
            r#"{{"logDateTim":{log_date_time},"logDateTime":{log_date_time},"logId":{log_id},"fromLineNum":{from_line_num}}}"#
        )
    }

    /// Reads a request of any lineage.
    pub fn read(body: &[u8]) -> serde_json::Result<LogRequest> {
        let read: Read = lenient::object(body)?;
        Ok(LogRequest {
            log_date_time: read.log_date_time.or(read.log_date_tim).unwrap_or_default(),
            log_id: read.log_id,
            from_line_num: read.from_line_num,
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Read {
    #[serde(default, deserialize_with = "lenient::maybe_integer")]
    log_date_tim: Option<i64>,
    #[serde(default, deserialize_with = "lenient::maybe_integer")]
    log_date_time: Option<i64>,
    #[serde(deserialize_with = "lenient::integer")]
    log_id: i64,
    #[serde(default, deserialize_with = "lenient::integer_or_default")]
    from_line_num: i32,
}

/// Lines of a log. `from_line_num > to_line_num` means that there is nothing new; the next page starts after
/// `to_line_num`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogPage {
    /// The first line asked for.
    #[serde(default, deserialize_with = "lenient::integer_or_default")]
    pub from_line_num: i32,
    /// The last line given, or the last there is.
    #[serde(default, deserialize_with = "lenient::integer_or_default")]
    pub to_line_num: i32,
    /// The lines, each with its end.
    #[serde(default, deserialize_with = "lenient::text")]
    pub log_content: String,
    /// Whether no line will follow. Most executors never say so; the centre knows from the run's state.
    #[serde(default, deserialize_with = "lenient::flag")]
    pub is_end: bool,
}

impl LogPage {
    /// Makes a page of an answer that was cut off because it was too long: its whole lines, so that the next page begins
    /// where this one ends. A stock executor puts everything it has into one answer.
    ///
    /// ```
    /// use tickwright_protocol::xxl::LogPage;
    ///
    /// let cut = br#"{"code":200,"content":{"fromLineNum":4,"toLineNum":99,"logContent":"a\nb\nhalf of a li"#;
    /// let page = LogPage::of_cut(cut, 4).expect("two whole lines");
    /// assert_eq!((page.log_content.as_str(), page.to_line_num), ("a\nb\n", 5));
    /// ```
    pub fn of_cut(answer: &[u8], from_line_num: i32) -> Option<LogPage> {
        let start = answer.windows(CONTENT_KEY.len()).position(|window| window == CONTENT_KEY)?;
        let text = &answer[start + CONTENT_KEY.len()..];
        let (end, lines) = whole_lines(text);
        let quoted = [b"\"", &text[..end], b"\""].concat();
        let log_content = serde_json::from_slice(&quoted).ok()?;
        let to_line_num = from_line_num.saturating_add(lines).saturating_sub(1);
        (lines > 0).then_some(LogPage { from_line_num, to_line_num, log_content, is_end: false })
    }
}

const CONTENT_KEY: &[u8] = br#""logContent":""#;

/// Where the last whole line of an escaped text ends, and how many there are.
fn whole_lines(text: &[u8]) -> (usize, i32) {
    let (mut at, mut end, mut lines) = (0, 0, 0);
    while at < text.len() && text[at] != b'"' {
        if text[at] != b'\\' {
            at += 1;
            continue;
        }
        at += 2;
        if text.get(at - 1) == Some(&b'n') {
            (end, lines) = (at, lines + 1);
        }
    }
    (end, lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_lines_are_saved_from_a_cut_answer() {
        check(r"a\nb\nha", Some(("a\nb\n", 5)));
        check(r"a\r\n\u00e9\r\n\u00", Some(("a\r\né\r\n", 5)));
        check(r"C:\\new\nx\", Some(("C:\\new\n", 4)));
        check("é\\n\u{e9}", Some(("é\n", 4)));
        check(r"no line end", None);
        check("", None);
        assert_eq!(LogPage::of_cut(b"{\"code\":200", 4), None);
    }

    fn check(content: &str, expected: Option<(&str, i32)>) {
        let cut = format!(r#"{{"code":200,"data":{{"logContent":"{content}"#);
        let page = LogPage::of_cut(cut.as_bytes(), 4);
        let found = page.as_ref().map(|page| (page.log_content.as_str(), page.to_line_num));
        assert_eq!(found, expected, "{content}");
    }
}
