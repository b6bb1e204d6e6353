//! The listener: takes connections, bounds what each may cost, and hands requests to the doors.
//!
//! Clients of XXL-JOB write paths in many ways, so a path is put in order first: slashes that are doubled become one, and
//! the old context path goes.

mod body;
mod hosts;
mod origin;
mod pace;
mod places;
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
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

pub use body::{Received, Room, SMALL_MAX, body, is_too_deep};
pub use hosts::Hosts;
use hosts::WrongHost;
pub use origin::{Caller, Proxies, caller};
use pace::{Asked, Paced, Progress};
pub use places::{Holder, PLACE_WAIT, Places};
pub use tls::{Identity, IdentityError, Tls};

/// What listens.
#[derive(Clone)]
pub struct Front {
    /// Where requests go.
    pub doors: Router,
    /// What encrypts them, if anything does.
    pub tls: Option<Arc<Tls>>,
    /// Who may ask for others.
    pub proxies: Arc<Proxies>,
    /// The names by which it is reached.
    pub hosts: Arc<Hosts>,
}

/// Serves until told to stop; then finishes what is being asked, for at most [`DRAIN_MAX`].
pub async fn serve(listener: TcpListener, front: Front, stop: CancellationToken) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let place = Arc::clone(&places).acquire_owned().await.expect("the semaphore is never closed");
        let (stream, peer) = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "cannot take a connection; trying again in {ACCEPT_AGAIN:?}");
                    tokio::time::sleep(ACCEPT_AGAIN).await;
                    continue;
                }
            },
            () = stop.cancelled() => break,
        };
        let (front, stop) = (front.clone(), stop.clone());
        tokio::spawn(async move {
            front.welcome(stream, peer, stop).await;
            drop(place);
        });
    }
    let everybody = u32::try_from(CONNECTIONS_MAX).unwrap_or(u32::MAX);
    let _ = tokio::time::timeout(DRAIN_MAX, places.acquire_many(everybody)).await;
}

impl Front {
    async fn welcome(self, stream: TcpStream, peer: SocketAddr, stop: CancellationToken) {
        // Answers are small, and somebody waits for each.
        let _ = stream.set_nodelay(true);
        let Some(tls) = &self.tls else {
            // In a box: a connection that waits for a request has no room for its answer yet.
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
        // Who cannot agree on a key with us is told so by the protocol.
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
                (StatusCode::FORBIDDEN, "come through the proxy in front of this centre\n").into_response()
            );
        };
        // A proxy chooses by its own configuration which names it serves; where names are set here, they count for it, too.
        let is_proxied =
            self.proxies.has(peer.ip()) && matches!(&*self.hosts, Hosts::Only(names) if names.is_empty());
        if !is_proxied && let Err(wrong) = self.hosts.check(&head.uri, &head.headers) {
            return Ok(misdirected(&wrong));
        }
        head.uri = in_order(&head.uri);
        head.extensions.insert(ConnectInfo(SocketAddr::new(caller.ip, peer.port())));
        head.extensions.insert(caller);
        let mut response = self.doors.oneshot(Request::from_parts(head, Body::new(body))).await?;
        if caller.secure {
            response.headers_mut().insert(STRICT_TRANSPORT_SECURITY, HeaderValue::from_static(ONLY_TLS));
        }
        Ok(response)
    }
}

/// The answer to a request for another host.
fn misdirected(wrong: &WrongHost) -> Response {
    match wrong {
        WrongHost::Malformed => (StatusCode::BAD_REQUEST, "send one readable header Host\n").into_response(),
        WrongHost::Other(name) => {
            let name: String = name.chars().filter(|letter| !letter.is_control()).take(NAME_SHOWN).collect();
            let why = format!(
                "this centre is not known by the name `{name}`; use its IP address or localhost, or start it with \
                 --hostnames {name}\n"
            );
            (StatusCode::MISDIRECTED_REQUEST, why).into_response()
        }
    }
}

/// Letters of a name that are repeated in an answer.
const NAME_SHOWN: usize = 100;

/// Adds the headers that protect browsers from what an answer contains, where it does not have its own, and forbids caches
/// to store it unless it says otherwise.
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

/// Whether the first byte begins an encrypted connection. It stays to be read.
async fn speaks_tls(stream: &TcpStream) -> io::Result<bool> {
    let mut first = [0];
    stream.peek(&mut first).await?;
    Ok(first[0] == TLS_HANDSHAKE)
}

/// Where somebody is sent who speaks plainly to an encrypted port. What was posted has been seen by whoever listens, and
/// is refused.
fn elsewhere(hosts: &Hosts, request: &Request<Asked>) -> Response {
    if let Err(wrong) = hosts.check(request.uri(), request.headers()) {
        return misdirected(&wrong);
    }
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    let target = request.uri().path_and_query().map_or("/", PathAndQuery::as_str);
    let location = host.and_then(|host| HeaderValue::try_from(format!("https://{host}{target}")).ok());
    let mut response = match location.filter(|_| matches!(*request.method(), Method::GET | Method::HEAD)) {
        Some(location) => (StatusCode::PERMANENT_REDIRECT, [(LOCATION, location)]).into_response(),
        None => (StatusCode::BAD_REQUEST, "this port speaks https only\n").into_response(),
    };
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Answers the requests of one connection.
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
        // A connection that breaks is the client's to open again.
        _ = connection.as_mut() => return,
        () = stop.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

/// The same place without doubled slashes and without XXL-JOB's old context path.
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

/// Where XXL-JOB's admin lived up to 3.4.0.
const CONTEXT_PATH: &str = "/xxl-job-admin";

/// Connections at the same time; more wait to be accepted. Executors in the thousands keep one each.
const CONNECTIONS_MAX: usize = 16_384;

/// How long a client may take to ask, and a connection be idle. Executors beat each 30 s on the same one.
const IDLE_MAX: Duration = Duration::from_secs(75);

/// How long it may take to agree on encryption.
const HANDSHAKE_MAX: Duration = Duration::from_secs(5);

/// The first byte of an encrypted connection.
const TLS_HANDSHAKE: u8 = 0x16;

/// Browsers that came encrypted come so for a year.
const ONLY_TLS: &str = "max-age=31536000";

/// The longest head of a request.
const HEAD_MAX: usize = 16 * 1024;

/// How long requests may take when the centre stops.
const DRAIN_MAX: Duration = Duration::from_secs(3);

/// Mostly too many open files: others have to close theirs first.
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
