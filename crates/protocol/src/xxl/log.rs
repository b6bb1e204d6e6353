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
