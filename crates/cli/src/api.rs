//! Client of the scheduling centre's API `/v1`: one call at a time, each with a timeout.

use std::env;
use std::time::Duration;

use clap::{Args, ValueEnum};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::client::legacy::Client as Http;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use protocol::v1::{Page, Problem, ProblemCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use server::client_tls::{self, Connector, NoAuthorities};

use crate::session::{Credential, Sessions};
use crate::trouble::Trouble;

/// Options of all commands that call a scheduling centre.
#[derive(Args, Clone)]
pub struct Remote {
    /// Address of the scheduling centre [default: the last one you signed in to, or http://127.0.0.1:8080].
    #[arg(long, env = "TICKWRIGHT_URL", value_name = "URL", global = true)]
    pub url: Option<String>,

    /// Output format.
    #[arg(long, short, value_enum, default_value_t, global = true)]
    pub output: Output,
}

/// Output format.
#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// Table for people.
    #[default]
    Table,
    /// Response of the API, for programs.
    Json,
}

/// Limits the number of rows of a list.
#[derive(Args, Clone, Copy)]
pub struct Most {
    /// Maximum number of rows.
    #[arg(long, short = 'n', value_name = "COUNT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Show all rows.
    #[arg(long, conflicts_with = "limit")]
    all: bool,
}

impl Most {
    /// Maximum number of rows.
    pub fn rows(self) -> usize {
        if self.all { usize::MAX } else { usize::try_from(self.limit).unwrap_or(usize::MAX) }
    }

    /// Prints a hint if there are more rows.
    pub fn hint(self, more: bool) {
        if more {
            eprintln!("there are more rows; use --all, or --limit with a number above {}", self.limit);
        }
    }
}

/// Default address of the scheduling centre.
pub const LOCAL: &str = "http://127.0.0.1:8080";

/// Client of one scheduling centre.
pub struct Client {
    http: Http<Connector, Full<Bytes>>,
    /// Address, without a trailing slash.
    base: String,
    credential: Option<Credential>,
}

impl Client {
    /// Client of the named scheduling centre, or of the last one signed in to, with its credential.
    pub fn of(remote: &Remote) -> anyhow::Result<Client> {
        let sessions = Sessions::load()?;
        let base = remote.url.as_deref().or(sessions.current()).unwrap_or(LOCAL);
        let credential = Credential::for_centre(&trimmed(base), &sessions);
        Client::new(base, credential)
    }

    /// Client of the scheduling centre at an address.
    pub fn new(base: &str, credential: Option<Credential>) -> anyhow::Result<Client> {
        let base = trimmed(base);
        if !base.starts_with("http://") && !base.starts_with("https://") {
            anyhow::bail!("`{base}` is not the URL of a scheduling centre; use for example {LOCAL}");
        }
        let http = Http::builder(TokioExecutor::new()).build(connector(&base)?);
        Ok(Client { http, base, credential })
    }

    /// Address of the scheduling centre.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Sends a request and parses the response.
    pub async fn fetch<T: DeserializeOwned>(&self, call: Call) -> Result<T, Trouble> {
        self.send(call).await?.read()
    }

    /// Sends a request and reads the whole response. If rate-limited, waits for the time in the response and
    /// retries.
    pub async fn send(&self, call: Call) -> Result<Answer, Trouble> {
        for _ in 0..TURNS_MAX {
            match self.once(&call).await {
                Err(Trouble::Refused { problem, wait: Some(wait), .. })
                    if problem.code == ProblemCode::TooManyRequests && wait <= WAIT_MAX =>
                {
                    tokio::time::sleep(wait).await;
                }
                answer => return answer,
            }
        }
        self.once(&call).await
    }

    async fn once(&self, call: &Call) -> Result<Answer, Trouble> {
        let whole = async {
            let response = self.begin(call).await?;
            let headers = response.headers().clone();
            let body = response.into_body().collect().await.map_err(|error| self.lost(&error))?.to_bytes();
            Ok(Answer { base: self.base.clone(), headers, body })
        };
        tokio::time::timeout(call.patience, whole).await.unwrap_or_else(|_| Err(self.silent(call.patience)))
    }

    /// Sends a request and streams the response body.
    pub async fn open(&self, call: Call) -> Result<Incoming, Trouble> {
        let begun = tokio::time::timeout(PATIENCE, self.begin(&call)).await;
        Ok(begun.unwrap_or_else(|_| Err(self.silent(PATIENCE)))?.into_body())
    }

    /// Returns the head of a successful response; an error response is read completely and returned as an error.
    async fn begin(&self, call: &Call) -> Result<Response<Incoming>, Trouble> {
        let request = call.request(&self.base, self.credential.as_ref())?;
        let response = self.http.request(request).await.map_err(|error| self.lost(&error))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let (status, wait) = (response.status(), retry_after(response.headers()));
        let body = response.into_body().collect().await.map_err(|error| self.lost(&error))?.to_bytes();
        Err(self.refused(call, status, &body, wait))
    }

    fn refused(&self, call: &Call, status: StatusCode, body: &[u8], wait: Option<Duration>) -> Trouble {
        let (base, path) = (self.base.clone(), call.path.clone());
        match serde_json::from_slice::<Box<Problem>>(body) {
            Ok(problem) => Trouble::Refused { base, path, problem, wait, by_key: self.has_key() },
            Err(_) => Trouble::Strange { base, said: format!("status {status}") },
        }
    }

    fn has_key(&self) -> bool {
        matches!(self.credential, Some(Credential::Key(_)))
    }

    fn lost(&self, error: &(dyn std::error::Error + 'static)) -> Trouble {
        // The innermost error is the familiar one: connection refused, no such host.
        let cause =
            std::iter::successors(Some(error), |error| error.source()).last().map(ToString::to_string);
        Trouble::Unreachable { base: self.base.clone(), cause: cause.unwrap_or_default() }
    }

    fn silent(&self, patience: Duration) -> Trouble {
        let cause = format!("no response within {} s", patience.as_secs());
        Trouble::Unreachable { base: self.base.clone(), cause }
    }

    /// Fetches up to `most` items of a paginated list; also returns whether there are more.
    pub async fn list<T: DeserializeOwned>(
        &self,
        call: Call,
        most: usize,
    ) -> Result<(Vec<T>, bool), Trouble> {
        self.list_watched(call, most, |_, _| {}).await
    }

    /// The same; after each page, `watch` gets the number of items so far and in all, if that is known.
    pub async fn list_watched<T: DeserializeOwned>(
        &self,
        call: Call,
        most: usize,
        mut watch: impl FnMut(usize, Option<u64>),
    ) -> Result<(Vec<T>, bool), Trouble> {
        let mut rows = Vec::new();
        let mut after = None;
        loop {
            let limit = (most - rows.len()).min(PAGE_MAX);
            let page = call.clone().query("limit", Some(limit)).query("after", after);
            let page: Page<T> = self.fetch(page).await?;
            rows.extend(page.items);
            watch(rows.len(), page.total);
            match page.next {
                Some(_) if rows.len() >= most => return Ok((rows, true)),
                Some(next) => after = Some(next),
                None => return Ok((rows, false)),
            }
        }
    }
}

/// Timeout of a call. An edit waits until all nodes know it.
const PATIENCE: Duration = Duration::from_secs(30);

/// Timeout of a call about many jobs: 100 000 take half a minute, and longer beside others.
const LONG_PATIENCE: Duration = Duration::from_secs(600);

/// Maximum number of retries after a rate limit, and maximum wait before each.
const TURNS_MAX: usize = 5;
const WAIT_MAX: Duration = Duration::from_secs(10);

/// Page size: the maximum of the API.
const PAGE_MAX: usize = 200;

fn trimmed(base: &str) -> String {
    base.trim().trim_end_matches('/').to_owned()
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(header::RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

fn connector(base: &str) -> Result<Connector, NoAuthorities> {
    let mut http = HttpConnector::new();
    http.set_nodelay(true);
    http.set_connect_timeout(Some(CONNECT));
    client_tls::connector(base.starts_with("https://"), http)
}

/// Connection timeout; a live scheduling centre accepts connections immediately.
const CONNECT: Duration = Duration::from_secs(5);

/// A request to the scheduling centre.
#[derive(Clone)]
pub struct Call {
    method: Method,
    path: String,
    query: Vec<(&'static str, String)>,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Option<Bytes>,
    patience: Duration,
}

impl Call {
    /// Creates a GET request, which reads an object.
    pub fn get(path: impl Into<String>) -> Call {
        Call::new(Method::GET, path)
    }

    /// Creates a DELETE request.
    pub fn delete(path: impl Into<String>) -> Call {
        Call::new(Method::DELETE, path)
    }

    /// Creates a POST request, which performs an action.
    pub fn post(path: impl Into<String>) -> Call {
        Call::new(Method::POST, path)
    }

    /// Creates a PUT request, which creates or replaces an object.
    pub fn put(path: impl Into<String>) -> Call {
        Call::new(Method::PUT, path)
    }

    fn new(method: Method, path: impl Into<String>) -> Call {
        let (query, headers) = (Vec::new(), Vec::new());
        Call { method, path: path.into(), query, headers, body: None, patience: PATIENCE }
    }

    /// Sets the timeout, for a request about many jobs.
    pub fn patient(self) -> Call {
        Call { patience: LONG_PATIENCE, ..self }
    }

    /// Adds a query parameter, if it has a value.
    pub fn query(mut self, name: &'static str, value: Option<impl ToString>) -> Call {
        self.query.extend(value.map(|value| (name, value.to_string())));
        self
    }

    /// Adds a header.
    pub fn header(mut self, name: &str, value: &str) -> Call {
        let (name, value) = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value));
        self.headers.extend(name.ok().zip(value.ok()));
        self
    }

    /// Sets the body.
    pub fn json(mut self, body: &impl Serialize) -> Call {
        let json = serde_json::to_vec(body).expect("API types have text keys");
        self.body = Some(Bytes::from(json));
        self
    }

    fn request(&self, base: &str, credential: Option<&Credential>) -> Result<Request<Full<Bytes>>, Trouble> {
        let mut uri = format!("{base}{}", self.path);
        if !self.query.is_empty() {
            let pairs = form_urlencoded::Serializer::new(String::new()).extend_pairs(&self.query).finish();
            uri = format!("{uri}?{pairs}");
        }
        let mut request = Request::builder().method(self.method.clone()).uri(uri);
        request = request.header(header::USER_AGENT, AGENT).header(header::ACCEPT_LANGUAGE, language());
        if let Some(credential) = credential {
            request = request.header(header::AUTHORIZATION, format!("Bearer {}", credential.secret()));
        }
        if self.body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let body = Full::new(self.body.clone().unwrap_or_default());
        let unusable =
            |error: hyper::http::Error| Trouble::Unreachable { base: base.into(), cause: error.to_string() };
        request.body(body).map_err(unusable)
    }
}

/// Language of the descriptions that the scheduling centre sends, by the locale.
fn language() -> &'static str {
    let set = |name: &str| env::var(name).ok().filter(|locale| !locale.is_empty());
    let locale = ["LC_ALL", "LC_MESSAGES", "LANG"].into_iter().find_map(set).unwrap_or_default();
    if locale.starts_with("zh") { "zh" } else { "en" }
}

/// User agent, shown in the user's list of sessions.
const AGENT: &str = concat!("tickwright-cli/", env!("CARGO_PKG_VERSION"));

/// A response.
pub struct Answer {
    base: String,
    headers: HeaderMap,
    body: Bytes,
}

impl Answer {
    /// Value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Parses the body.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Trouble> {
        let strange =
            |error: serde_json::Error| Trouble::Strange { base: self.base.clone(), said: error.to_string() };
        serde_json::from_slice(&self.body).map_err(strange)
    }
}

/// Builds a path with a name in it, percent-encoded; the name may contain any character, also slashes.
pub fn path(before: &str, name: &str, after: &str) -> String {
    let mut path = before.to_owned();
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b':' => {
                path.push(byte.into())
            }
            _ => path.push_str(&format!("%{byte:02X}")),
        }
    }
    path + after
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_paths_may_hold_anything() {
        let check = |name: &str, expected: &str| assert_eq!(path("/v1/jobs/", name, "/stop"), expected);
        check("orders/sync", "/v1/jobs/orders%2Fsync/stop");
        check("id:42", "/v1/jobs/id:42/stop");
        check("日 ?", "/v1/jobs/%E6%97%A5%20%3F/stop");
    }
}
