//! The scheduling centre reads a run's log from the executor, page by page.

use serde::{Deserialize, Serialize};

use super::lenient;

/// Body of `/log`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRequest {
    /// Time of the trigger, in milliseconds since the epoch.
    pub log_date_time: i64,
    /// Id of the run.
    pub log_id: i64,
    /// Number of the first requested line, from 1.
    pub from_line_num: i32,
}

impl LogRequest {
    /// Serializes it for executors of every lineage, which use different names for the time.
    pub fn to_json(self) -> String {
        let LogRequest { log_date_time, log_id, from_line_num } = self;
        format!(
            r#"{{"logDateTim":{log_date_time},"logDateTime":{log_date_time},"logId":{log_id},"fromLineNum":{from_line_num}}}"#
        )
    }

    /// Parses a request of any lineage.
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

/// Lines of a log. `from_line_num > to_line_num` means that there are no new lines; the next page starts after
/// `to_line_num`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogPage {
    /// Number of the first requested line.
    #[serde(default, deserialize_with = "lenient::integer_or_default")]
    pub from_line_num: i32,
    /// Number of the last returned line, or of the last existing one.
    #[serde(default, deserialize_with = "lenient::integer_or_default")]
    pub to_line_num: i32,
    /// Lines, each with its line break.
    #[serde(default, deserialize_with = "lenient::text")]
    pub log_content: String,
    /// Whether the log is complete. Most executors never set it; the scheduling centre derives it from the state of
    /// the run.
    #[serde(default, deserialize_with = "lenient::flag")]
    pub is_end: bool,
}

impl LogPage {
    /// Builds a page from a response that was truncated at the size limit: only its complete lines, so that the
    /// next page continues after them. A stock executor returns the whole rest of a log in one response.
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

/// End of the last complete line of an escaped text, and the number of lines.
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
