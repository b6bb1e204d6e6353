//! HTTP listener: accepts connections, limits the resources that each may use, and routes requests.
//!
//! Clients of XXL-JOB write paths in different ways, so paths are normalised first: doubled slashes become one,
//! and the old context path is removed.

mod body;
mod body_slots;
mod hosts;
mod origin;
mod pace;
mod tls;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::header::{
    CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, HOST, LOCATION, REFERRER_POLICY,
    STRICT_TRANSPORT_SECURITY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderName, HeaderValue, Method, Request, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

pub use body::{BodyLimit, Received, SMALL_MAX, body, is_too_deep};
pub use body_slots::{BodySlots, Holder, SLOT_WAIT};
pub use hosts::Hosts;
use hosts::WrongHost;
pub use origin::{Caller, Proxies, caller};
use pace::{Asked, Paced, Progress};
pub use tls::{Identity, IdentityError, Tls};

use crate::open_files;
use crate::share::Shares;
use crate::users::network;

/// Configuration of the listener.
#[derive(Clone)]
pub struct Front {
    /// Routes of all APIs.
    pub api: Router,
    /// TLS configuration; `None` serves plain HTTP.
    pub tls: Option<Arc<Tls>>,
    /// Trusted reverse proxies.
    pub proxies: Arc<Proxies>,
    /// Accepted host names.
    pub hosts: Arc<Hosts>,
}

/// Serves until stopped; then finishes open requests within [`DRAIN_MAX`].
pub async fn serve(listener: TcpListener, front: Front, stop: CancellationToken) {
    // Files are also needed for executors, the database and scripts.
    let slots = Shares::new(CONNECTIONS_MAX.min(open_files::limit() / 2));
    let (mut open, mut warned_at) = (JoinSet::new(), None);
    loop {
        while open.try_join_next().is_some() {}
        let (stream, peer) = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "failed to accept a connection; retrying in {ACCEPT_AGAIN:?}");
                    tokio::time::sleep(ACCEPT_AGAIN).await;
                    continue;
                }
            },
            () = stop.cancelled() => break,
        };
        let Some(slot) = slots.take(network(peer.ip())) else {
            if warned_at.is_none_or(|at: Instant| at.elapsed() > WARN_EVERY) {
                warned_at = Some(Instant::now());
                tracing::warn!(%peer, max = slots.max(), "too many connections; rejecting those of addresses that have many");
            }
            // Best effort: a client without TLS can read why. The socket does not block.
            if let Ok(mut stream) = stream.into_std() {
                let _ = io::Write::write(&mut stream, BUSY);
            }
            continue;
        };
        let (front, stop) = (front.clone(), stop.clone());
        open.spawn(async move {
            let _slot = slot;
            front.welcome(stream, peer, stop).await;
        });
    }
    let drained = async { while open.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(DRAIN_MAX, drained).await;
}

/// Response to a connection above the limit.
const BUSY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nCache-Control: no-store\r\n\
    X-Content-Type-Options: nosniff\r\nContent-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n\
    Content-Type: text/plain\r\nContent-Length: 51\r\nConnection: close\r\n\r\n\
    too many connections from this address; close some\n";

impl Front {
    async fn welcome(self, stream: TcpStream, peer: SocketAddr, stop: CancellationToken) {
        // Responses are small, and a client waits for each.
        let _ = stream.set_nodelay(true);
        let Some(tls) = &self.tls else {
            // Boxed, so that an idle connection does not reserve memory for the future of a response.
            let service = move |request| Box::pin(self.clone().answer(request, peer, false));
            return converse(stream, service, stop).await;
        };
        match tokio::time::timeout(HANDSHAKE_MAX, speaks_tls(&stream)).await {
            Ok(Ok(true)) => {}
            Ok(Ok(false)) => {
                let hosts = self.hosts.clone();
                return converse(stream, async |request| Ok(elsewhere(&hosts, &request)), stop).await;
            }
            _ => return,
        }
        // If the handshake fails, TLS itself sends the alert to the client.
        let accepted = tokio::time::timeout(HANDSHAKE_MAX, tls.acceptor().accept(stream)).await;
        let Ok(Ok(stream)) = accepted else { return };
        let service = move |request| Box::pin(self.clone().answer(request, peer, true));
        converse(stream, service, stop).await;
    }

    async fn answer(
        self,
        request: Request<Asked>,
        peer: SocketAddr,
        encrypted: bool,
    ) -> Result<Response, Infallible> {
        let (mut head, body) = request.into_parts();
        let Some(caller) = self.proxies.caller(peer.ip(), encrypted, &head.headers) else {
            return Ok(
                (StatusCode::FORBIDDEN, "use the proxy in front of this scheduling centre\n").into_response()
            );
        };
        // A proxy's own configuration decides which host names it serves; names configured here apply to it too.
        let is_proxied =
            self.proxies.has(peer.ip()) && matches!(&*self.hosts, Hosts::Only(names) if names.is_empty());
        if !is_proxied && let Err(wrong) = self.hosts.check(&head.uri, &head.headers) {
            return Ok(misdirected(&wrong));
        }
        head.uri = in_order(&head.uri);
        head.extensions.insert(ConnectInfo(SocketAddr::new(caller.ip, peer.port())));
        head.extensions.insert(caller);
        let mut response = self.api.oneshot(Request::from_parts(head, Body::new(body))).await?;
        if caller.secure {
            response.headers_mut().insert(STRICT_TRANSPORT_SECURITY, HeaderValue::from_static(ONLY_TLS));
        }
        Ok(response)
    }
}

/// Response to a request for another host.
fn misdirected(wrong: &WrongHost) -> Response {
    match wrong {
        WrongHost::Malformed => {
            (StatusCode::BAD_REQUEST, "the request must have one valid header Host\n").into_response()
        }
        WrongHost::Other(name) => {
            let name: String = name.chars().filter(|letter| !letter.is_control()).take(NAME_SHOWN).collect();
            let why = format!(
                "`{name}` is not a host name of this scheduling centre; use its IP address or localhost, or start it with --hostnames {name}\n"
            );
            (StatusCode::MISDIRECTED_REQUEST, why).into_response()
        }
    }
}

/// Characters of a host name that are repeated in a response.
const NAME_SHOWN: usize = 100;

/// Adds headers that protect browsers, unless the response sets them itself, and forbids caching unless the
/// response allows it.
fn protected(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in PROTECTION {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

const PROTECTION: [(HeaderName, &str); 5] = [
    (CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (X_FRAME_OPTIONS, "DENY"),
    (CACHE_CONTROL, "no-store"),
];

/// Whether the first byte starts a TLS handshake. The byte stays in the buffer.
async fn speaks_tls(stream: &TcpStream) -> io::Result<bool> {
    let mut first = [0];
    stream.peek(&mut first).await?;
    Ok(first[0] == TLS_HANDSHAKE)
}

/// Redirects a plain HTTP request on a TLS port. A POST is rejected, because its content was already sent
/// unencrypted.
fn elsewhere(hosts: &Hosts, request: &Request<Asked>) -> Response {
    if let Err(wrong) = hosts.check(request.uri(), request.headers()) {
        return misdirected(&wrong);
    }
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    let target = request.uri().path_and_query().map_or("/", PathAndQuery::as_str);
    let location = host.and_then(|host| HeaderValue::try_from(format!("https://{host}{target}")).ok());
    let mut response = match location.filter(|_| matches!(*request.method(), Method::GET | Method::HEAD)) {
        Some(location) => (StatusCode::PERMANENT_REDIRECT, [(LOCATION, location)]).into_response(),
        None => (StatusCode::BAD_REQUEST, "this port supports HTTPS only\n").into_response(),
    };
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Serves the requests of one connection.
async fn converse<S, F>(stream: S, answer: impl Fn(Request<Asked>) -> F, stop: CancellationToken)
where
    S: AsyncRead + AsyncWrite + Unpin,
    F: Future<Output = Result<Response, Infallible>>,
{
    let progress = Progress::default();
    let stream = Paced::new(stream, progress.clone());
    let service = service_fn(|request| {
        let answered = answer(progress.asked(request));
        let progress = progress.clone();
        async move {
            let answer = answered.await;
            progress.answered();
            answer.map(protected)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE_MAX)
        .max_buf_size(HEAD_MAX)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    tokio::select! {
        // If the connection breaks, the client has to reconnect.
        _ = connection.as_mut() => return,
        () = stop.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

/// Normalised URI: without doubled slashes and without XXL-JOB's old context path.
fn in_order(uri: &Uri) -> Uri {
    let path = uri.path();
    let is_in_order = !path.contains("//") && !path.starts_with(CONTEXT_PATH);
    if is_in_order {
        return uri.clone();
    }
    let mut tidy = String::with_capacity(path.len());
    for character in path.chars() {
        if !(character == '/' && tidy.ends_with('/')) {
            tidy.push(character);
        }
    }
    let below = tidy.strip_prefix(CONTEXT_PATH).filter(|rest| rest.is_empty() || rest.starts_with('/'));
    let mut target = below.map_or(tidy.as_str(), |rest| if rest.is_empty() { "/" } else { rest }).to_owned();
    if let Some(query) = uri.query() {
        target.push('?');
        target.push_str(query);
    }
    let mut parts = uri.clone().into_parts();
    match PathAndQuery::try_from(target) {
        Ok(target) => parts.path_and_query = Some(target),
        Err(_) => return uri.clone(),
    }
    Uri::from_parts(parts).unwrap_or_else(|_| uri.clone())
}

/// Context path of XXL-JOB's admin up to 3.4.0.
const CONTEXT_PATH: &str = "/xxl-job-admin";

/// Maximum number of connections, shared fairly by client networks; further ones are closed. Thousands of executors
/// keep one each.
const CONNECTIONS_MAX: usize = 16_384;

/// Timeout for a request head and for idle connections. Executors send a heartbeat every 30 s on the same
/// connection.
const IDLE_MAX: Duration = Duration::from_secs(75);

/// Timeout for the TLS handshake.
const HANDSHAKE_MAX: Duration = Duration::from_secs(5);

/// First byte of a TLS connection.
const TLS_HANDSHAKE: u8 = 0x16;

/// HSTS header: browsers use only TLS for one year.
const ONLY_TLS: &str = "max-age=31536000";

/// Maximum size of a request head in bytes.
const HEAD_MAX: usize = 16 * 1024;

/// How long open requests may take when the node stops.
const DRAIN_MAX: Duration = Duration::from_secs(3);

/// Interval of warnings about rejected connections.
const WARN_EVERY: Duration = Duration::from_secs(60);

/// Delay after a failed accept. The usual reason is too many open files, so others must close first.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_all_clients_lead_to_the_same_door() {
        let check = |written: &str, expected: &str| {
            let uri: Uri = written.parse().expect("a path");
            assert_eq!(in_order(&uri).to_string(), expected, "{written}");
        };
        check("/api/registry", "/api/registry");
        check("//api/registry", "/api/registry");
        check("/xxl-job-admin/api/registry?a=//b", "/api/registry?a=//b");
        check("/xxl-job-admin//api///callback", "/api/callback");
        check("//xxl-job-admin/api/callback", "/api/callback");
        check("/xxl-job-admin", "/");
        check("/xxl-job-admin/", "/");
        check("/xxl-job-administrator", "/xxl-job-administrator");
        check("/jobinfo?id=1", "/jobinfo?id=1");
    }
}
