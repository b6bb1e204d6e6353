//! HTTP client for the scheduling centre. Its addresses are known here only.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Request, StatusCode, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use protocol::declare::{DECLARE, Declaration, Settled};
use protocol::xxl::{self, Answer, CallbackItem, CallbackShape, Registry};
use timer::Clock;

use crate::error::Error;
use crate::https::{self, Connector, Trust};
use crate::run::{Outcome, Report};

/// The nodes of one scheduling centre. Each call tries them in order until one answers with success; they share a
/// database, so one is enough.
pub(crate) struct Centre {
    nodes: Vec<Node>,
    app: HeaderValue,
    token: HeaderValue,
    clock: Arc<dyn Clock>,
    client: Client<Connector, Full<Bytes>>,
}

struct Node {
    base: String,
    is_https: bool,
    /// Whether this node expects results as an object; learned from its error responses.
    wants_object: AtomicBool,
}

/// Why every node failed; the reason of the last one.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    #[error("no address of a scheduling centre is configured")]
    Nowhere,
    #[error("{node} does not respond: {why}; check that the scheduling centre is running there")]
    Silent { node: String, why: String },
    #[error("{node} is not a scheduling centre: {why}; check its address")]
    Strange { node: String, status: StatusCode, why: String },
    #[error("{node} is temporarily unavailable: {why}")]
    Unavailable { node: String, why: String },
    #[error("{node} rejected the request: {why}{}", way_out(why))]
    Refused { node: String, why: String },
}

/// Hint appended to the error of a rejected call. Every XXL-JOB lineage mentions "token" in its text for a wrong token.
fn way_out(why: &str) -> &'static str {
    if why.to_ascii_lowercase().contains("token") {
        " (use the token that `tickwright app token` creates for this app; with XXL-JOB, the value of `xxl.job.accessToken`)"
    } else {
        ""
    }
}

/// Response of a centre to a declaration.
pub(crate) enum Heard {
    /// The centre processed the declaration; one result per job.
    Settled(Vec<Settled>),
    /// The centre does not support declarations, or has them disabled.
    Refused(String),
}

impl CallError {
    /// Whether the centre received the call and rejected it; false if the call did not get through.
    pub fn is_refusal(&self) -> bool {
        matches!(self, CallError::Refused { .. })
    }
}

impl Centre {
    pub fn new(addresses: &[String], app: &str, token: &str, clock: Arc<dyn Clock>) -> Result<Centre, Error> {
        let nodes: Vec<Node> =
            addresses.iter().map(|address| Node::parse(address)).collect::<Result<_, _>>()?;
        let app = HeaderValue::from_str(app).map_err(|_| Error::App)?;
        let token = HeaderValue::from_str(token).map_err(|_| Error::TokenText)?;
        let trust = if nodes.iter().any(|node| node.is_https) { Trust::System } else { Trust::Nobody };
        let client = Client::builder(TokioExecutor::new())
            // Shorter than the keep-alive timeout of any server, so that pooled connections are rarely dead.
            .pool_idle_timeout(Duration::from_secs(4))
            .pool_timer(hyper_util::rt::TokioTimer::new())
            .build(https::connector(trust));
        Ok(Centre { nodes, app, token, clock, client })
    }

    /// Host and port of the first node, used to find the local address from which it is reached.
    pub fn first_host(&self) -> Option<String> {
        let node = self.nodes.first()?;
        let uri: Uri = node.base.parse().ok()?;
        let usual = if node.is_https { 443 } else { 80 };
        Some(format!("{}:{}", uri.host()?, uri.port_u16().unwrap_or(usual)))
    }

    pub async fn register(&self, registry: &Registry) -> Result<(), CallError> {
        self.tell("registry", registry).await
    }

    pub async fn deregister(&self, registry: &Registry) -> Result<(), CallError> {
        self.tell("registryRemove", registry).await
    }

    /// Reports outcomes in one batch: the centre has stored all of them, or none.
    pub async fn report(&self, reports: &[Report]) -> Result<(), CallError> {
        let items: Vec<CallbackItem> = reports.iter().map(callback_item).collect();
        let mut failure = CallError::Nowhere;
        for node in &self.nodes {
            match self.report_to(node, &items).await {
                Ok(()) => return Ok(()),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    async fn report_to(&self, node: &Node, items: &[CallbackItem]) -> Result<(), CallError> {
        let shape = node.shape();
        let refusal = match self.post(node, "callback", xxl::write_callbacks(items, shape)).await {
            Err(CallError::Refused { why, .. }) => why,
            other => return other,
        };
        let Some(other_shape) = shape.corrected_by(&refusal) else {
            return Err(node.refused(refusal));
        };
        node.wants_object.store(other_shape == CallbackShape::Object, Ordering::Relaxed);
        self.post(node, "callback", xxl::write_callbacks(items, other_shape)).await
    }

    /// Sends the declared handlers and jobs. An error may be temporary.
    pub async fn declare(&self, declaration: &Declaration) -> Result<Heard, CallError> {
        let body = serde_json::to_string(declaration).expect("texts and numbers are writable");
        let mut failure = CallError::Nowhere;
        for node in &self.nodes {
            match self.ask(node, DECLARE, body.clone()).await {
                Ok(answer) if answer.is_ok() => {
                    let settled = answer.payload_as().map(Heard::Settled);
                    return Ok(settled.unwrap_or_else(|| {
                        Heard::Refused("it contains no result of the declaration".to_owned())
                    }));
                }
                Ok(answer) if answer.code == xxl::CODE_FAIL => {
                    return Ok(Heard::Refused(answer.message().to_owned()));
                }
                Ok(answer) => failure = node.refused(answer.message().to_owned()),
                Err(CallError::Strange { status, why, .. }) if !status.is_server_error() => {
                    return Ok(Heard::Refused(why));
                }
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    async fn tell(&self, call: &str, registry: &Registry) -> Result<(), CallError> {
        let body = serde_json::to_string(registry).expect("three texts are writable");
        let mut failure = CallError::Nowhere;
        for node in &self.nodes {
            match self.post(node, call, body.clone()).await {
                Ok(()) => return Ok(()),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    async fn post(&self, node: &Node, call: &str, body: String) -> Result<(), CallError> {
        let answer = self.ask(node, call, body).await?;
        let why = || answer.message().to_owned();
        match answer.code {
            xxl::CODE_OK => Ok(()),
            xxl::CODE_LATER => Err(CallError::Unavailable { node: node.base.clone(), why: why() }),
            _ => Err(node.refused(why())),
        }
    }

    async fn ask(&self, node: &Node, call: &str, body: String) -> Result<Answer, CallError> {
        let exchange = self.exchange(format!("{}/api/{call}", node.base), body);
        let answered = tokio::select! {
            biased;
            answered = exchange => answered,
            () = self.clock.sleep(PATIENCE) => Err(format!("no response within {} s", PATIENCE.as_secs())),
        };
        let (status, body) = answered.map_err(|why| node.silent(why))?;
        if status != StatusCode::OK {
            return Err(node.strange(status, format!("HTTP status {status}")));
        }
        Answer::read(&body).map_err(|error| node.strange(status, error.to_string()))
    }

    async fn exchange(&self, uri: String, body: String) -> Result<(StatusCode, Bytes), String> {
        let request = Request::post(uri)
            .header(CONTENT_TYPE, xxl::CONTENT_TYPE)
            .header(xxl::TOKEN_HEADER, self.token.clone())
            .header(xxl::APP_HEADER, self.app.clone())
            .body(Full::from(body))
            .map_err(|error| error.to_string())?;
        let response = self.client.request(request).await.map_err(|error| with_causes(&error))?;
        let (head, body) = response.into_parts();
        let body = Limited::new(body, ANSWER_MAX).collect().await.map_err(|error| error.to_string())?;
        Ok((head.status, body.to_bytes()))
    }
}

/// Timeout of one call to one node, from connecting to the last byte; the same as in stock clients.
const PATIENCE: Duration = Duration::from_secs(3);
/// Responses are one line long; a longer one is not from a centre.
const ANSWER_MAX: usize = 64 * 1024;

impl Node {
    fn parse(address: &str) -> Result<Node, Error> {
        let base = address.trim().trim_end_matches('/');
        let wrong = || Error::Centre { address: address.to_owned() };
        let uri: Uri = base.parse().map_err(|_| wrong())?;
        let is_https = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(wrong()),
        };
        if uri.host().is_none() || uri.query().is_some() {
            return Err(wrong());
        }
        Ok(Node { base: base.to_owned(), is_https, wants_object: AtomicBool::new(false) })
    }

    fn shape(&self) -> CallbackShape {
        if self.wants_object.load(Ordering::Relaxed) { CallbackShape::Object } else { CallbackShape::Array }
    }

    fn silent(&self, why: String) -> CallError {
        CallError::Silent { node: self.base.clone(), why }
    }

    fn strange(&self, status: StatusCode, why: String) -> CallError {
        CallError::Strange { node: self.base.clone(), status, why }
    }

    fn refused(&self, why: String) -> CallError {
        CallError::Refused { node: self.base.clone(), why }
    }
}

fn callback_item(report: &Report) -> CallbackItem {
    let (handle_code, handle_msg) = match &report.outcome {
        Outcome::Succeeded(message) => (xxl::CODE_OK, message.clone()),
        Outcome::Failed(error) => (xxl::CODE_FAIL, Some(error.clone())),
        Outcome::TimedOut => (xxl::CODE_TIMEOUT, Some(xxl::texts::TIMED_OUT.to_owned())),
    };
    CallbackItem {
        log_id: report.run_id,
        log_date_time: report.triggered_at.as_millis(),
        handle_code: handle_code.into(),
        handle_msg,
    }
}

/// The client's own message only states that the call failed; the reason is in the error's sources.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_joined_once() {
        check("http://10.0.0.1:8080", Some("http://10.0.0.1:8080"));
        check(" http://centre/xxl-job-admin/ ", Some("http://centre/xxl-job-admin"));
        check("http://centre//", Some("http://centre"));
        check("https://centre/", Some("https://centre"));
        for wrong in ["", "centre:8080", "/xxl-job-admin", "ftp://centre", "http://centre/?a=b"] {
            check(wrong, None);
        }
    }

    fn check(address: &str, base: Option<&str>) {
        let node = Node::parse(address).ok();
        assert_eq!(node.map(|node| node.base).as_deref(), base, "{address}");
    }
}
