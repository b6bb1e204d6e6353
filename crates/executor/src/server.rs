//! The HTTP server that the centre calls.
//!
//! Every error is an HTTP 200 with a code and a text, because centres expect that; only a body that is far too
//! large gets a 413. The types of XXL-JOB's protocol are converted here and not used anywhere else.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONNECTION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use protocol::v1::{Block, Word};
use protocol::xxl::{self, Answer, GlueType, JobRequest, LogPage, LogRequest, TriggerRequest, texts};
use subtle::ConstantTimeEq;
use timer::{Clock, Timestamp};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::inbox::{Acceptance, Inbox};
use crate::journal::Journal;
use crate::ledger::Standing;
use crate::run::{Overlap, Run, Shard};
use crate::run_log::RunLogs;
use crate::scripts::{Language, Script, ScriptCache};

pub(crate) struct HttpServer {
    pub app: String,
    /// Blank disables the check; the builder allows that on loopback only.
    pub token: String,
    pub inbox: Inbox,
    /// Cache of script files; `None` if scripts are disabled.
    pub script_cache: Option<Arc<ScriptCache>>,
    pub journal: Journal,
    pub logs: RunLogs,
    pub clock: Arc<dyn Clock>,
}

impl HttpServer {
    /// Serves requests until `stop` is cancelled, then completes the requests in progress.
    pub async fn serve(self: Arc<Self>, listener: TcpListener, stop: CancellationToken) {
        let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        loop {
            let slot = Arc::clone(&slots).acquire_owned().await.expect("the semaphore is never closed");
            let stream = tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => stream,
                    Err(error) => {
                        // Usually too many open files: other connections have to close first.
                        tracing::warn!(%error, "failed to accept a connection; retrying");
                        self.clock.sleep(Duration::from_millis(100)).await;
                        continue;
                    }
                },
                () = stop.cancelled() => return,
            };
            let (server, stop) = (Arc::clone(&self), stop.clone());
            tokio::spawn(async move {
                server.converse(stream, stop).await;
                drop(slot);
            });
        }
    }

    async fn converse(self: Arc<Self>, stream: TcpStream, stop: CancellationToken) {
        // Responses are small, and the centre waits for each.
        let _ = stream.set_nodelay(true);
        let service = service_fn(move |request| {
            let server = Arc::clone(&self);
            async move { Ok::<_, Infallible>(server.respond(request).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(IDLE_MAX)
            .max_buf_size(HEAD_MAX)
            .serve_connection(TokioIo::new(stream), service);
        tokio::pin!(connection);
        tokio::select! {
            // If the connection breaks, the centre opens a new one.
            _ = connection.as_mut() => return,
            () = stop.cancelled() => connection.as_mut().graceful_shutdown(),
        }
        let _ = connection.await;
    }

    async fn respond(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (head, body) = request.into_parts();
        if let Some(refusal) = self.check(&head.method, &head.headers) {
            self.hear_out(body).await;
            return json(&refusal);
        }
        let body = match self.read(body).await {
            Ok(body) => body,
            Err(response) => return *response,
        };
        // The raw request target: with a query or a trailing slash it is a different path.
        let path = head.uri.path_and_query().map_or("", |path| path.as_str());
        let answer = match path {
            "/beat" => Ok(Answer::ok()),
            "/idleBeat" => self.idle_beat(&body),
            "/run" | "/trigger" => self.run(&body, attempt(&head.headers)).await,
            "/kill" => self.kill(&body),
            "/log" => self.log(&body).await,
            "" => Ok(Answer::fail(texts::NO_URI)),
            unknown => Ok(Answer::fail(texts::unknown_uri(unknown))),
        };
        json(&answer.unwrap_or_else(|BadRequest(why)| Answer::fail(texts::request_error(why))))
    }

    /// Checks method and token; returns the error response if the request is rejected.
    fn check(&self, method: &Method, headers: &HeaderMap) -> Option<Answer> {
        if method != Method::POST {
            return Some(Answer::fail(texts::NOT_POST));
        }
        if !self.token.trim().is_empty() {
            let mut tokens = headers.get_all(xxl::TOKEN_HEADER).iter();
            // With two tokens it is unclear which one is meant.
            let (Some(token), None) = (tokens.next(), tokens.next()) else {
                return Some(Answer::fail(texts::WRONG_TOKEN));
            };
            if !bool::from(token.as_bytes().ct_eq(self.token.as_bytes())) {
                return Some(Answer::fail(texts::WRONG_TOKEN));
            }
        }
        let is_ours = |app: &HeaderValue| app.is_empty() || app.as_bytes() == self.app.as_bytes();
        if !headers.get_all(xxl::APP_HEADER).iter().all(is_ours) {
            return Some(Answer::fail(texts::WRONG_TOKEN_OR_APP));
        }
        None
    }

    /// Reads the rest of a rejected request: a client that is cut off while it is sending does not read the error
    /// response.
    async fn hear_out(&self, body: Incoming) {
        let mut body = Limited::new(body, xxl::BODY_MAX);
        let heard = async { while let Some(Ok(_)) = body.frame().await {} };
        tokio::select! {
            () = heard => {}
            () = self.clock.sleep(REFUSED_WAIT) => {}
        }
    }

    async fn read(&self, body: Incoming) -> Result<Bytes, Box<Response<Full<Bytes>>>> {
        let collected = tokio::select! {
            biased;
            collected = Limited::new(body, xxl::BODY_MAX).collect() => collected,
            () = self.clock.sleep(BODY_WAIT) => return Err(close(StatusCode::REQUEST_TIMEOUT)),
        };
        match collected {
            Ok(body) => Ok(body.to_bytes()),
            Err(error) if error.is::<LengthLimitError>() => Err(close(StatusCode::PAYLOAD_TOO_LARGE)),
            Err(_) => Err(close(StatusCode::BAD_REQUEST)),
        }
    }

    fn idle_beat(&self, body: &[u8]) -> Result<Answer, BadRequest> {
        let JobRequest { job_id } = JobRequest::read(body)?;
        Ok(if self.inbox.is_busy(job_id) { Answer::fail(texts::BUSY) } else { Answer::ok() })
    }

    async fn run(&self, body: &[u8], attempt: Option<u32>) -> Result<Answer, BadRequest> {
        let request = TriggerRequest::read(body)?;
        let language = match GlueType::read(&request.glue_type) {
            Some(GlueType::Bean) => None,
            Some(other) => match self.runnable(other) {
                Some(language) => Some(language),
                None => return Ok(Answer::fail(texts::glue_refused(other))),
            },
            None => return Ok(Answer::fail(texts::glue_unknown(&request.glue_type))),
        };
        let run = order(request, language, attempt)?;
        let (run_id, inbox) = (run.id, self.inbox.clone());
        // A task of its own, so that it completes even if the centre closes the connection.
        let accepted = tokio::spawn(async move { inbox.accept(run).await });
        Ok(match accepted.await {
            Ok(Ok(Acceptance::Accepted | Acceptance::AlreadyOver)) => Answer::ok(),
            Ok(Err(refusal)) => {
                tracing::info!(run_id, %refusal, "run rejected");
                Answer::fail(refusal.to_string())
            }
            Err(_) => Answer::fail(texts::request_error("the executor is stopping")),
        })
    }

    /// The language of the script in the request, if this executor runs such scripts.
    fn runnable(&self, glue: GlueType) -> Option<Language> {
        let language = Language::of(glue)?;
        self.script_cache.as_ref()?.takes(language).then_some(language)
    }

    fn kill(&self, body: &[u8]) -> Result<Answer, BadRequest> {
        let JobRequest { job_id } = JobRequest::read(body)?;
        if self.inbox.kill(job_id, texts::KILLED) {
            return Ok(Answer::ok());
        }
        // XXL-JOB lineages look for this text in different fields.
        let nothing = texts::NOTHING_TO_KILL;
        Ok(Answer { msg: Some(nothing.to_owned()), ..Answer::with(nothing.into()) })
    }

    async fn log(&self, body: &[u8]) -> Result<Answer, BadRequest> {
        let LogRequest { log_id, log_date_time, from_line_num: from } = LogRequest::read(body)?;
        if log_id < 0 || from < 0 || !(0..=TIME_MAX).contains(&log_date_time) {
            return Err(BadRequest("invalid log id or date".to_owned()));
        }
        let (logs, triggered_at) = (self.logs.clone(), Timestamp::from_millis(log_date_time));
        let page = tokio::task::spawn_blocking(move || logs.page(log_id, triggered_at, from)).await;
        let page = match page {
            Ok(Ok(page)) => page,
            Ok(Err(error)) => return Err(BadRequest(format!("failed to read the log: {error}"))),
            Err(_) => return Err(BadRequest("the executor is stopping".to_owned())),
        };
        let page = match page {
            Some(page) => {
                LogPage { from_line_num: from, to_line_num: page.to, log_content: page.text, is_end: false }
            }
            None => match self.journal.standing(log_id) {
                Standing::New => LogPage {
                    from_line_num: from,
                    to_line_num: 0,
                    log_content: texts::NO_LOG_FILE.to_owned(),
                    is_end: true,
                },
                // As for a file without lines: a client that continues from here misses nothing.
                Standing::Open => {
                    LogPage { from_line_num: from, to_line_num: 0, log_content: String::new(), is_end: false }
                }
                Standing::Unacknowledged | Standing::Done => LogPage {
                    from_line_num: from,
                    to_line_num: 1,
                    log_content: if from <= 1 { SILENT.to_owned() } else { String::new() },
                    is_end: false,
                },
            },
        };
        Ok(Answer::with(serde_json::to_value(page).expect("numbers and texts are writable")))
    }
}

/// Shown for a finished run without a log.
const SILENT: &str = "no log was written\n";
/// End of the year 9999: later times have no date.
const TIME_MAX: i64 = 253_402_300_799_999;
/// Idle timeout of a connection, as in stock executors.
const IDLE_MAX: Duration = Duration::from_secs(90);
/// Timeout for reading a request body.
const BODY_WAIT: Duration = Duration::from_secs(30);

/// Timeout for reading the rest of a rejected request.
const REFUSED_WAIT: Duration = Duration::from_secs(2);
/// A centre uses a few dozen connections.
const CONNECTIONS_MAX: usize = 1_024;
const HEAD_MAX: usize = 64 * 1024;

/// The request cannot be parsed or has invalid values.
struct BadRequest(String);

impl From<serde_json::Error> for BadRequest {
    fn from(error: serde_json::Error) -> Self {
        BadRequest(error.to_string())
    }
}

/// Converts a request to this crate's type.
fn order(
    request: TriggerRequest,
    language: Option<Language>,
    attempt: Option<u32>,
) -> Result<Run, BadRequest> {
    if language.is_none() && request.executor_handler.is_empty() {
        return Err(BadRequest("executorHandler is missing".to_owned()));
    }
    if request.log_id < 0 || !(0..=TIME_MAX).contains(&request.log_date_time) {
        return Err(BadRequest("invalid job id or run id".to_owned()));
    }
    // Stock executors, too, queue the run if the word is unknown.
    let overlap = match Block::from_stored(&request.executor_block_strategy).unwrap_or_default() {
        Block::Serial => Overlap::Wait,
        Block::DiscardLater => Overlap::RefuseNew,
        Block::CoverEarly => Overlap::StopOld,
    };
    let timeout = u64::try_from(request.executor_timeout).ok().filter(|seconds| *seconds > 0);
    let (handler, script) = match language {
        None => (request.executor_handler, None),
        Some(language) => {
            let (source, version) = (request.glue_source, request.glue_updatetime);
            (format!("{language} script"), Some(Script { language, source, version }))
        }
    };
    let total = u32::try_from(request.broadcast_total).unwrap_or(1).max(1);
    Ok(Run {
        id: request.log_id,
        job_id: request.job_id,
        handler,
        script,
        param: request.executor_params,
        overlap,
        timeout: timeout.map(Duration::from_secs),
        triggered_at: Timestamp::from_millis(request.log_date_time),
        shard: Shard { index: u32::try_from(request.broadcast_index).unwrap_or(0), total },
        attempt,
    })
}

fn attempt(headers: &HeaderMap) -> Option<u32> {
    headers.get(protocol::ATTEMPT_HEADER)?.to_str().ok()?.parse().ok()
}

fn json(answer: &Answer) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(answer.to_json()));
    let headers = response.headers_mut();
    // Stock executors send `text/html`, which lets a browser execute text echoed from a request. No centre checks it.
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(xxl::CONTENT_TYPE));
    headers.insert(NO_SNIFF, HeaderValue::from_static("nosniff"));
    response
}

const NO_SNIFF: HeaderName = hyper::header::X_CONTENT_TYPE_OPTIONS;

/// An empty response that closes the connection, because the rest of the body is not read.
fn close(status: StatusCode) -> Box<Response<Full<Bytes>>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    Box::new(response)
}

/// The weakness of the token, if listening on this address with it is not allowed.
pub(crate) fn weakness(token: &str, address: SocketAddr) -> Option<&'static str> {
    let token = token.trim();
    if address.ip().to_canonical().is_loopback() {
        None
    } else if token.is_empty() {
        Some("an empty token")
    } else if WELL_KNOWN.iter().any(|known| known.eq_ignore_ascii_case(token)) {
        Some("a publicly known token")
    } else {
        None
    }
}

/// The default of XXL-JOB, the values in its guides, and common placeholder passwords.
const WELL_KNOWN: [&str; 12] = [
    "default_token",
    "defaulttoken",
    "xxl-job",
    "xxl_job",
    "xxljob",
    "token",
    "accesstoken",
    "123456",
    "admin",
    "password",
    "changeme",
    "secret",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_may_have_a_weak_token() {
        for token in ["", " ", "default_token", "Default_Token", "123456"] {
            check(token, "127.0.0.1:9999", false);
            check(token, "[::1]:9999", false);
            check(token, "0.0.0.0:9999", true);
            check(token, "10.0.0.1:9999", true);
            check(token, "[::]:9999", true);
        }
        check("p2Vq0mXo5tYb", "0.0.0.0:9999", false);
    }

    fn check(token: &str, address: &str, is_weak: bool) {
        assert_eq!(weakness(token, address.parse().unwrap()).is_some(), is_weak, "{token} on {address}");
    }
}
