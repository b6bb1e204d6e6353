//! The listener: takes connections, bounds what each may cost, and hands requests to the doors.
//!
//! Clients of XXL-JOB write paths in many ways, so a path is put in order first: slashes that are doubled become one, and
//! the old context path goes.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::ConnectInfo;
use axum::http::uri::PathAndQuery;
use axum::http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

/// Serves until told to stop; then finishes what is being asked, for at most [`DRAIN_MAX`].
pub async fn serve(listener: TcpListener, doors: Router, stop: CancellationToken) {
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
        let (doors, stop) = (doors.clone(), stop.clone());
        tokio::spawn(async move {
            converse(stream, peer, doors, stop).await;
            drop(place);
        });
    }
    let everybody = u32::try_from(CONNECTIONS_MAX).unwrap_or(u32::MAX);
    let _ = tokio::time::timeout(DRAIN_MAX, places.acquire_many(everybody)).await;
}

async fn converse(stream: TcpStream, peer: SocketAddr, doors: Router, stop: CancellationToken) {
    // Answers are small, and somebody waits for each.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request: Request<Incoming>| answer(doors.clone(), request, peer));
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

fn answer(
    doors: Router,
    request: Request<Incoming>,
    peer: SocketAddr,
) -> impl Future<Output = Result<axum::response::Response, Infallible>> {
    let (mut head, body) = request.into_parts();
    head.uri = in_order(&head.uri);
    head.extensions.insert(ConnectInfo(peer));
    doors.oneshot(Request::from_parts(head, Body::new(body)))
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

/// The whole body, if it is no longer than `max` and comes within [`BODY_WAIT`].
pub async fn body(body: Body, max: usize) -> Result<Bytes, StatusCode> {
    // What says itself that it is too long is not waited for.
    if body.size_hint().lower() > max as u64 {
        return Err(StatusCode::PAYLOAD_TOO_LARGE);
    }
    match tokio::time::timeout(BODY_WAIT, Limited::new(body, max).collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(StatusCode::PAYLOAD_TOO_LARGE),
        Ok(Err(_)) => Err(StatusCode::BAD_REQUEST),
        Err(_) => Err(StatusCode::REQUEST_TIMEOUT),
    }
}

/// Where XXL-JOB's admin lived up to 3.4.0.
const CONTEXT_PATH: &str = "/xxl-job-admin";

/// Connections at the same time; more wait to be accepted. Executors in the thousands keep one each.
const CONNECTIONS_MAX: usize = 16_384;

/// How long a client may take to ask, and a connection be idle. Executors beat each 30 s on the same one.
const IDLE_MAX: Duration = Duration::from_secs(75);

/// How long a body may take to come.
const BODY_WAIT: Duration = Duration::from_secs(10);

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
