//! Health checks and metrics for load balancers, supervisors and Prometheus, without credentials.
//!
//! `/healthz` answers as long as the process runs. `/readyz` answers 200 while the node may claim runs and the
//! disk of its database has free space, otherwise 503; both responses include its lease, its clock and its open
//! work. `/metrics` serves Prometheus metrics; requests from other machines need an API key. `/actuator/health` is
//! the path that XXL-JOB users expect.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use engine::{Adopting, Engine, Status};

use crate::centre::ServerState;
use crate::executors::Directory;
use crate::http;
use crate::telemetry::Metrics;
use crate::users::Users;

/// Parts of a node that this API uses.
struct HealthState {
    engine: Engine,
    metrics: Arc<Metrics>,
    directory: Arc<Directory>,
    users: Arc<Users>,
}

/// Routes of this API.
pub fn router(node: &ServerState) -> Router {
    let state = HealthState {
        engine: node.engine.clone(),
        metrics: node.metrics.clone(),
        directory: node.directory.clone(),
        users: node.users.clone(),
    };
    Router::new()
        .route("/healthz", get(alive))
        .route("/actuator/health", get(actuator))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .with_state(Arc::new(state))
}

async fn alive() -> Response {
    json(StatusCode::OK, r#"{"status":"alive"}"#.into())
}

async fn actuator() -> Response {
    json(StatusCode::OK, r#"{"status":"UP"}"#.into())
}

async fn ready(State(state): State<Arc<HealthState>>) -> Response {
    let status = state.engine.status();
    let code = if is_ready(&status) { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    json(code, readiness(&status))
}

async fn metrics(State(state): State<Arc<HealthState>>, request: Request<Body>) -> Response {
    let (head, _) = request.into_parts();
    if !http::caller(&head).ip.is_loopback() && !has_key(&state, &head).await {
        let why = "requests from other machines need an API key: `Authorization: Bearer tw_…`\n";
        return (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Bearer")], why).into_response();
    }
    let text = state.metrics.render(&state.engine.status(), state.directory.count());
    let kind = HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

/// Whether the caller sent a valid API key, with any rights.
async fn has_key(state: &HealthState, head: &Parts) -> bool {
    let said = head.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let Some(secret) = said.and_then(|value| value.strip_prefix("Bearer ")) else { return false };
    // An unavailable database must not make metrics public.
    state.users.key(secret.trim()).await.is_ok_and(|key| key.is_some())
}

/// Whether the node may claim runs and can store them.
fn is_ready(status: &Status) -> bool {
    status.may_claim && !status.disk_full
}

/// Status of the node as JSON. All values are numbers and our own words, so nothing needs escaping.
fn readiness(status: &Status) -> String {
    let reason = match status {
        Status { disk_full: true, .. } => "the disk of the database is full: free some space",
        Status { may_claim: true, .. } => "ready",
        Status { node: None, .. } => "not joined: the database has not responded yet",
        Status { may_send: false, .. } => {
            "no lease: the database does not respond, or other nodes have declared this node dead"
        }
        Status { skew, .. } if skew.is_too_large() => "the clock differs too much from the database's",
        Status { adopting: Some(Adopting { done, total }), .. } => {
            &format!("adopting {done} of {total} jobs of the database")
        }
        _ => "stopping",
    };
    format!(
        r#"{{"ready":{},"reason":"{reason}","may_send":{},"clock_skew_ms":{},"runs_in_hand":{}}}"#,
        is_ready(status),
        status.may_send,
        status.skew.millis,
        status.held
    )
}

fn json(code: StatusCode, body: String) -> Response {
    (code, [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response()
}
