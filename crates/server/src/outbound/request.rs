//! Requests to executors, written byte for byte.
//!
//! Executors in other languages compare header names case-sensitively, and some treat a request as empty if head and
//! body arrive separately. So the head is written here and sent with the body in one piece.

use std::io::Write;

use protocol::ATTEMPT_HEADER;
use protocol::xxl::{
    APP_HEADER, Answer, BODY_MAX, CONTENT_TYPE, JobRequest, Lineage, LogPage, LogRequest, TOKEN_HEADER,
    TriggerRequest,
};

use super::Callee;
use super::reply::Limit;

/// A call to an executor.
#[derive(Clone, Copy)]
pub(super) enum Ask<'a> {
    Beat,
    IdleBeat(JobRequest),
    Run { request: &'a TriggerRequest, attempt: u32, at: TriggerPath },
    Kill(JobRequest),
    Log(LogRequest),
}

/// Path at which an executor accepts runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriggerPath {
    /// `/run`: all releases so far.
    Run,
    /// `/trigger`: the newest lineage.
    Trigger,
}

impl TriggerPath {
    /// Returns the path.
    pub fn as_str(self) -> &'static str {
        match self {
            TriggerPath::Run => Lineage::L33.trigger_path(),
            TriggerPath::Trigger => Lineage::Next.trigger_path(),
        }
    }

    pub(super) fn other(self) -> TriggerPath {
        match self {
            TriggerPath::Run => TriggerPath::Trigger,
            TriggerPath::Trigger => TriggerPath::Run,
        }
    }
}

impl Ask<'_> {
    /// Returns how much of an answer is read. A log page may have any length; all other answers are one line.
    pub(super) fn limit(&self) -> Limit {
        match self {
            Ask::Log(_) => Limit { bytes: 1024 * 1024, may_cut: true },
            _ => Limit { bytes: 64 * 1024, may_cut: false },
        }
    }

    /// Parses an answer that was cut off, if it makes sense without its end.
    pub(super) fn read_cut(&self, body: &[u8]) -> Option<Answer> {
        let Ask::Log(request) = self else { return None };
        let page = LogPage::of_cut(body, request.from_line_num)?;
        Some(Answer::with(serde_json::to_value(page).ok()?))
    }

    fn path(&self) -> &'static str {
        match self {
            Ask::Beat => "/beat",
            Ask::IdleBeat(_) => "/idleBeat",
            Ask::Run { at, .. } => at.as_str(),
            Ask::Kill(_) => "/kill",
            Ask::Log(_) => "/log",
        }
    }

    fn write_body(&self, body: &mut Vec<u8>) {
        let written = match self {
            // An object, because some executors fail on a text or an empty body.
            Ask::Beat => body.write_all(b"{}"),
            Ask::IdleBeat(request) | Ask::Kill(request) => {
                serde_json::to_writer(body, request).map_err(Into::into)
            }
            Ask::Run { request, .. } => serde_json::to_writer(body, request).map_err(Into::into),
            Ask::Log(request) => body.write_all(request.to_json().as_bytes()),
        };
        written.expect("numbers and texts are written to memory");
    }

    /// Writes head and body into `out`, which is cleared first; `body` is a scratch buffer.
    pub(super) fn write(&self, to: &Callee, body: &mut Vec<u8>, out: &mut Vec<u8>) -> Result<(), Unsendable> {
        body.clear();
        self.write_body(body);
        if body.len() > BODY_MAX {
            return Err(Unsendable::TooLarge { bytes: body.len() });
        }
        // Sent even if empty: executors of the newest releases need the header, and no other objects to it.
        let token = to.token.as_ref().map_or("", |token| token.value());
        if [token, &to.app].iter().any(|value| value.bytes().any(|byte| byte.is_ascii_control())) {
            return Err(Unsendable::ControlCharacter);
        }
        out.clear();
        let (prefix, path, host, length) =
            (to.address.prefix(), self.path(), to.address.authority(), body.len());
        let written = write!(
            out,
            "POST {prefix}{path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: \
             {CONTENT_TYPE}\r\n{TOKEN_HEADER}: {token}\r\n{APP_HEADER}: {app}\r\n",
            app = to.app,
        )
        .and_then(|()| match self {
            Ask::Run { attempt, .. } => write!(out, "{ATTEMPT_HEADER}: {attempt}\r\n"),
            _ => Ok(()),
        })
        .and_then(|()| write!(out, "Content-Length: {length}\r\n\r\n"));
        written.expect("texts are written to memory");
        out.extend_from_slice(body);
        Ok(())
    }
}

/// A request that no executor could accept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unsendable {
    #[error(
        "the request has {bytes} bytes, but executors accept at most {BODY_MAX}; shorten the job's script \
         or parameter"
    )]
    TooLarge { bytes: usize },
    #[error("the name or token of the app contains a control character; change it")]
    ControlCharacter,
}

#[cfg(test)]
mod tests {
    use super::super::{Address, Secret};
    use super::*;

    #[test]
    fn every_request_is_written_letter_for_letter() {
        let job = JobRequest { job_id: 7 };
        let log = LogRequest { log_date_time: 1, log_id: 2, from_line_num: 3 };
        check(Ask::Beat, "/beat", "", "{}");
        check(Ask::IdleBeat(job), "/idleBeat", "", r#"{"jobId":7}"#);
        check(Ask::Kill(job), "/kill", "", r#"{"jobId":7}"#);
        check(Ask::Log(log), "/log", "", r#"{"logDateTim":1,"logDateTime":1,"logId":2,"fromLineNum":3}"#);
        let request = TriggerRequest { job_id: 7, log_id: 9, glue_type: "BEAN".into(), ..Default::default() };
        check(
            Ask::Run { request: &request, attempt: 2, at: TriggerPath::Trigger },
            "/trigger",
            "Tickwright-Attempt: 2\r\n",
            r#"{"jobId":7,"executorHandler":"","executorParams":"","executorBlockStrategy":"","executorTimeout":0,"logId":9,"logDateTime":0,"glueType":"BEAN","glueSource":"","glueUpdatetime":0,"broadcastIndex":0,"broadcastTotal":0}"#,
        );
    }

    fn check(ask: Ask<'_>, path: &str, attempt: &str, body: &str) {
        let expected = format!(
            "POST /job{path} HTTP/1.1\r\nHost: 10.0.0.5:9999\r\nContent-Type: \
             application/json;charset=UTF-8\r\nXXL-JOB-ACCESS-TOKEN: t0ken\r\nXXL-JOB-APPNAME: \
             my-app\r\n{attempt}Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        assert_eq!(written(ask, &callee("my-app", Some("t0ken"))).unwrap(), expected);
    }

    #[test]
    fn without_a_token_the_header_is_empty() {
        let text = written(Ask::Beat, &callee("a", None)).unwrap();
        assert!(text.contains("\r\nXXL-JOB-ACCESS-TOKEN: \r\n"), "{text}");
    }

    #[test]
    fn nobody_smuggles_a_header_in() {
        for (app, token) in [("a\r\nX: y", "t"), ("a", "t\nX: y"), ("a", "t\u{0}")] {
            assert_eq!(written(Ask::Beat, &callee(app, Some(token))), Err(Unsendable::ControlCharacter));
        }
    }

    #[test]
    fn a_body_no_executor_takes_is_not_sent() {
        let request = TriggerRequest { glue_source: "x".repeat(BODY_MAX), ..Default::default() };
        let ask = Ask::Run { request: &request, attempt: 1, at: TriggerPath::Run };
        assert!(matches!(written(ask, &callee("a", None)), Err(Unsendable::TooLarge { .. })));
    }

    fn callee(app: &str, token: Option<&str>) -> Callee {
        let address = Address::parse("http://10.0.0.5:9999/job").unwrap();
        Callee { address, app: app.to_owned(), token: token.map(Secret::new) }
    }

    fn written(ask: Ask<'_>, to: &Callee) -> Result<String, Unsendable> {
        let (mut body, mut out) = (Vec::new(), Vec::new());
        ask.write(to, &mut body, &mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }
}
