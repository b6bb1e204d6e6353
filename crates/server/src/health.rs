//! Is it alive, and may it work? Two doors without secrets behind them, for load balancers and supervisors.
//!
//! `/healthz` answers as long as the process does. `/readyz` answers 200 while the node may claim work, else 503, and says
//! in both cases what it knows: its lease, its clock, what it has in hand.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use engine::{Engine, Status};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// Answers until `stop`. Anything but a GET of the two doors is refused.
pub async fn serve(engine: Engine, listener: TcpListener, stop: impl Future<Output = ()>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    tokio::pin!(stop);
    loop {
        let place = Arc::clone(&places).acquire_owned().await.expect("the semaphore is never closed");
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "cannot take a connection; trying again in {ACCEPT_AGAIN:?}");
                    tokio::time::sleep(ACCEPT_AGAIN).await;
                    continue;
                }
            },
            () = &mut stop => return,
        };
        let engine = engine.clone();
        tokio::spawn(async move {
            converse(engine, stream).await;
            drop(place);
        });
    }
}

async fn converse(engine: Engine, stream: TcpStream) {
    let service = service_fn(move |request| {
        let response = respond(&engine, &request);
        async move { Ok::<_, Infallible>(response) }
    });
    // A connection that breaks is the asker's to open again.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE_MAX)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

fn respond(engine: &Engine, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    match (request.method(), request.uri().path()) {
        (&Method::GET, "/healthz") => json(StatusCode::OK, r#"{"status":"alive"}"#.into()),
        (&Method::GET, "/readyz") => {
            let status = engine.status();
            let code = if status.may_claim { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
            json(code, readiness(&status))
        }
        (_, "/healthz" | "/readyz") => json(StatusCode::METHOD_NOT_ALLOWED, r#"{"error":"use GET"}"#.into()),
        _ => json(StatusCode::NOT_FOUND, r#"{"error":"there are /healthz and /readyz"}"#.into()),
    }
}

/// What is known about the node. All of it is numbers and words of ours, so nothing needs escaping.
fn readiness(status: &Status) -> String {
    let reason = match status {
        Status { may_claim: true, .. } => "ready",
        Status { node: None, .. } => "not joined: the database has not answered yet",
        Status { may_send: false, .. } => {
            "no lease: the database does not answer, or others have declared this node dead"
        }
        Status { skew, .. } if skew.is_too_large() => "the clock differs too much from the database's",
        _ => "stopping",
    };
    format!(
        r#"{{"ready":{},"reason":"{reason}","may_send":{},"clock_skew_ms":{},"runs_in_hand":{}}}"#,
        status.may_claim, status.may_send, status.skew.millis, status.held
    )
}

fn json(code: StatusCode, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Askers at the same time; more wait.
const CONNECTIONS_MAX: usize = 64;

/// How long an asker may take to ask, and a connection be idle.
const IDLE_MAX: Duration = Duration::from_secs(5);

/// Mostly too many open files: others have to close theirs first.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);
