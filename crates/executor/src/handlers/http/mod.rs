//! Calls a URL of an allowlist.

mod allowed;
mod parameter;

use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, COOKIE, LOCATION};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use url::Url;

use self::allowed::Allowed;
pub use self::allowed::UrlError;
use self::parameter::Parameter;
use crate::centre::with_causes;
use crate::context::Context;
use crate::https::{self, Connector, Trust};
use crate::job::Job;
use crate::output::Output;
use crate::process::Lines;

/// The handler `http`, also named `httpJobHandler`: calls a URL of its allowlist.
///
/// The parameter is JSON:
///
/// | field | is | default |
/// |---|---|---|
/// | `url` | the URL to call | |
/// | `method` | `GET`, `POST` … | `POST` |
/// | `headers`, `cookies` | objects with string values | |
/// | `body` or `data` | a string, sent unchanged, or any other JSON | |
/// | `contentType` | content type of the body | `application/json`; with `form` that of a form |
/// | `form` | an object with string values, sent as a form | |
/// | `auth` | the `Authorization` header, `{"user": …, "password": …}` or `{"bearer": …}` | |
/// | `timeout` | timeout of the whole call in milliseconds | 3000 |
/// | `status` | the status that means success, or an array of them | any 2xx |
/// | `output` | whether the run returns `{"status": …, "body": …}`, with the body as JSON if it is JSON | no |
///
/// XXL-JOB's older format with lines `url:`, `method:` and `data:` is accepted too. The response body, up to 1 MiB,
/// is written to the run's log. Redirects are followed if they stay within the allowlist. Certificates are verified.
///
/// ```
/// use tickwright_executor::handlers::Http;
///
/// let http = Http::new().allow("https://api.example.com/hooks/")?.allow("intranet.example.com")?;
/// assert_eq!(http.jobs().map(|job| job.name().to_owned()), ["http", "httpJobHandler"]);
/// assert!(Http::new().allow("ftp://example.com").is_err());
/// # Ok::<(), tickwright_executor::handlers::UrlError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Http {
    allowed: Vec<Allowed>,
}

impl Http {
    /// An empty allowlist.
    pub fn new() -> Http {
        Http::default()
    }

    /// Adds the URLs that begin with this one or, given a host (`example.com`, `example.com:8443`), all URLs on it.
    /// Paths are compared by whole segments: `/api` allows `/api/users` but not `/apis`.
    pub fn allow(mut self, url: &str) -> Result<Http, UrlError> {
        self.allowed.push(url.parse()?);
        Ok(self)
    }

    /// The handlers, one per name.
    pub fn jobs(self) -> [Job; 2] {
        let trust =
            if self.allowed.iter().any(Allowed::includes_https) { Trust::System } else { Trust::Nobody };
        let client = Client::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE_MAX)
            .pool_timer(hyper_util::rt::TokioTimer::new())
            // A call that may have been received must only be retried by the centre.
            .retry_canceled_requests(false)
            .build(https::connector(trust));
        let caller = Arc::new(Caller { allowed: self.allowed, client });
        ["http", "httpJobHandler"].map(|name| {
            let caller = Arc::clone(&caller);
            Job::new(name, move |ctx: Context| {
                let caller = Arc::clone(&caller);
                async move { caller.run(&ctx).await }
            })
        })
    }
}

struct Caller {
    allowed: Vec<Allowed>,
    client: Client<Connector, Full<Bytes>>,
}

impl Caller {
    async fn run(&self, ctx: &Context) -> Result<String, String> {
        let parameter = Parameter::read(ctx.param())?;
        let timeout = parameter.timeout;
        tokio::select! {
            biased;
            answered = self.call(ctx, parameter) => answered,
            () = ctx.clock().sleep(timeout) => Err(format!("no response within {} ms", timeout.as_millis())),
        }
    }

    async fn call(&self, ctx: &Context, mut parameter: Parameter) -> Result<String, String> {
        for _ in 0..=REDIRECTS_MAX {
            self.check(&parameter.url)?;
            ctx.log(format_args!("{} {}", parameter.method, parameter.url));
            let response = self.client.request(request(&parameter)?).await;
            let response = response.map_err(|error| with_causes(&error))?;
            match redirection(&response, &parameter.url) {
                // A redirect status that the job expects is the final response.
                Some(next) if !parameter.expects(response.status()) => {
                    redirect(&mut parameter, response.status(), next?)
                }
                _ => return conclude(ctx, &parameter, response).await,
            }
        }
        Err(format!("redirected more than {REDIRECTS_MAX} times"))
    }

    fn check(&self, url: &Url) -> Result<(), String> {
        if self.allowed.iter().any(|allowed| allowed.permits(url)) {
            return Ok(());
        }
        let allowed: Vec<_> = self.allowed.iter().map(Allowed::to_string).collect();
        let allowed = if allowed.is_empty() { "none".to_owned() } else { allowed.join(", ") };
        Err(format!("URL `{url}` is not allowed on this executor (allowed: {allowed})"))
    }
}

fn request(parameter: &Parameter) -> Result<Request<Full<Bytes>>, String> {
    let mut request = Request::builder().method(parameter.method.clone()).uri(parameter.url.as_str());
    for (name, value) in &parameter.headers {
        request = request.header(name, value);
    }
    request.body(Full::from(parameter.body.clone())).map_err(|error| error.to_string())
}

/// The target of a redirect, if the response is one.
fn redirection(response: &Response<Incoming>, from: &Url) -> Option<Result<Url, String>> {
    if !response.status().is_redirection() {
        return None;
    }
    let location = response.headers().get(LOCATION)?;
    let next = location.to_str().ok().and_then(|location| from.join(location).ok());
    Some(next.ok_or_else(|| format!("redirected to {location:?}, which is not a URL")))
}

fn redirect(parameter: &mut Parameter, status: StatusCode, next: Url) {
    let keeps_method = matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
    if !keeps_method && parameter.method != Method::HEAD {
        parameter.method = Method::GET;
        parameter.body.clear();
        parameter.headers.remove(CONTENT_TYPE);
    }
    if next.origin() != parameter.url.origin() {
        // They were meant for the first server.
        parameter.headers.remove(AUTHORIZATION);
        parameter.headers.remove(COOKIE);
    }
    parameter.url = next;
}

async fn conclude(
    ctx: &Context,
    parameter: &Parameter,
    response: Response<Incoming>,
) -> Result<String, String> {
    let (head, mut body) = response.into_parts();
    ctx.log(format_args!("status {}", head.status));
    let mut lines = Lines::new(ctx, RESPONSE_MAX);
    let mut kept = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            format!("lost the connection while reading the response: {}", with_causes(&error))
        })?;
        if let Some(bytes) = frame.data_ref() {
            if parameter.output {
                kept.extend_from_slice(bytes);
            }
            if !lines.push(bytes) {
                break;
            }
        }
    }
    lines.finish();
    if !parameter.expects(head.status) {
        return Err(format!("expected status {}, found {}", parameter.expected(), head.status));
    }
    if parameter.output {
        let body = String::from_utf8_lossy(&kept);
        let body: serde_json::Value = serde_json::from_str(&body).unwrap_or_else(|_| body.into());
        let status = head.status.as_u16();
        Output::json(&serde_json::json!({ "status": status, "body": body })).into_text()
    } else {
        Ok(format!("status {}", head.status))
    }
}

const IDLE_MAX: Duration = Duration::from_secs(4);
/// Limit of older browsers; more is a redirect loop.
const REDIRECTS_MAX: usize = 5;
/// Maximum size of a response that is read and kept, in bytes.
const RESPONSE_MAX: usize = 1024 * 1024;
